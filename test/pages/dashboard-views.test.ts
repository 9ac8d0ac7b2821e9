import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fillConsole } from "../harness/console/filling.ts";
import { FILLED_VIEWS, SET_BUCKET, VIEWS, WITH_ROWS } from "../harness/console/views.ts";
import { eventually } from "../support/eventually.ts";
import { IS_LONG } from "../support/long-form.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { closeBrowser } from "./browser.ts";
import { Console, type Look } from "./console.ts";

/** Starting a browser takes seconds on a machine that is busy with other things. */
const TIMEOUT_MS = 600_000;

/** What is checked of each view: everything in both themes, everything in one theme, or only what depends on the width. */
type Scope = "both themes" | "one theme" | "size";

/**
 * Every run checks the filled console in one theme, and on a phone its sizes; the long form checks every theme and width,
 * and the empty console too.
 */
const LOOKS: readonly (readonly [name: string, at: number, look: Look, scope: Scope])[] = IS_LONG
  ? [
      ["empty, wide, light", 0, { colorScheme: "light" }, "one theme"],
      ["empty, 390 px, dark", 0, { colorScheme: "dark", width: 390 }, "one theme"],
      ["full, wide, light and dark", 1, { colorScheme: "light" }, "both themes"],
      ["full, 390 px, dark and light", 1, { colorScheme: "dark", width: 390 }, "both themes"],
    ]
  : [
      ["full, wide, light", 1, { colorScheme: "light" }, "one theme"],
      ["full, 390 px", 1, { colorScheme: "dark", width: 390 }, "size"],
    ];

let folder: string;
const servers: TestServer[] = [];
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "ninefold-views-"));
  for (const isFull of IS_LONG ? [false, true] : [true]) {
    const server = await startTestServer({
      args: [...["--allow-private-targets", "127.0.0.0/8"], ...(isFull ? ["--backup-dir", folder] : [])],
    });
    if (isFull) await fillConsole(server.url, server.key);
    servers[isFull ? 1 : 0] = server;
  }
}, TIMEOUT_MS);
afterAll(async () => {
  await closeBrowser();
  for (const server of Object.values(servers)) await server.stop();
  rmSync(folder, { recursive: true });
}, TIMEOUT_MS);

/** A walk through the console, with what is checked of each view. */
interface Walk {
  readonly visit: Console;
  readonly scope: Scope;
}

/** What is wrong with the view that is drawn. */
async function troubles({ visit, scope }: Walk, view: string): Promise<string[]> {
  const others = scope === "both themes" ? await visit.violationsInOtherColours() : [];
  const own = scope === "size" ? await visit.smallTargets() : await visit.violations();
  const found = [...own, ...others].map((violation) => `${view}: ${violation}`);
  const broken = await visit.brokenWords();
  if (broken.length > 0) found.push(`${view}: broken words: ${broken.slice(0, 10).join(", ")}`);
  const overflow = await visit.overflow();
  return overflow > 0 ? [...found, `${view}: ${overflow} px too wide`] : found;
}

/** Goes through all that is shown of an event with a few tries behind it. */
async function walkEvent(walk: Walk): Promise<string[]> {
  const { visit } = walk;
  const found: string[] = [];
  await visit.page.locator("main a.row").nth(1).click();
  for (const tab of ["Response", "Body", "Raw", "Headers"]) {
    await visit.page.getByRole("button", { name: tab, exact: true }).click();
    found.push(...(await troubles(walk, `an event, ${tab}`)));
  }
  if ((visit.page.viewportSize()?.width ?? 0) > 1_000) {
    await visit.page.getByLabel("Select all on this page").check();
    await visit.page.getByRole("region", { name: "Selection" }).waitFor();
    found.push(...(await troubles(walk, "selected events")));
  }
  return found;
}

/** The form with all that is set of a bucket. */
async function walkSettings(walk: Walk): Promise<string[]> {
  const { visit } = walk;
  await visit.go("catch");
  await visit.page.getByRole("link", { name: SET_BUCKET }).click();
  await visit.page.getByRole("button", { name: "Edit…" }).click();
  const form = visit.page.locator("dialog");
  await form.getByText("More", { exact: true }).click();
  await eventually(async () => expect(await form.getByLabel("Body").inputValue()).toContain("thanks"));
  const found = await troubles(walk, "a bucket's settings");
  await form.getByRole("button", { name: "Cancel" }).click();
  return found;
}

async function walkViews(walk: Walk, views: readonly string[]): Promise<string[]> {
  const { visit } = walk;
  const found: string[] = [];
  for (const view of views) {
    await visit.go(view);
    found.push(...(await troubles(walk, view)));
    const row = visit.page.locator("main a.row").first();
    if (!WITH_ROWS.includes(view) || (await row.count()) === 0) continue;
    const list = visit.page.url();
    await row.click();
    // The list has a heading, too: until its address is gone, there is nothing to wait for.
    await visit.page.waitForURL((url) => url.href !== list);
    await visit.page.evaluate(
      "new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))",
    );
    await visit.settle();
    found.push(...(await troubles(walk, `${view}, one`)));
    if (view === "catch") found.push(...(await walkEvent(walk)), ...(await walkSettings(walk)));
  }
  return found;
}

test.each(LOOKS)(
  "every page, %s: no findings of axe, no horizontal scrolling, no error in the console",
  async (_, at, look, scope) => {
    const server = servers[at] as TestServer;
    const views = at === 1 ? [...VIEWS, ...FILLED_VIEWS] : VIEWS;
    const visit = await Console.open(server, look);
    const walk = { visit, scope };
    expect(await troubles(walk, "log-in")).toEqual([]);
    await visit.logIn(server.key);
    expect(await walkViews(walk, views)).toEqual([]);
    await visit.expectClean();
  },
  TIMEOUT_MS,
);
