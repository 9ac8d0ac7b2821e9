import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fillConsole } from "../../scripts/console/filling.ts";
import { SET_BUCKET, VIEWS, WITH_ROWS } from "../../scripts/console/views.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { closeBrowser } from "./browser.ts";
import { Console, type Look } from "./console.ts";

/** Starting a browser takes seconds on a machine that is busy with other things. */
const TIMEOUT_MS = 240_000;

/**
 * Where nothing is there yet, the form of the page is the same: one look of each size and colour does. Where all is
 * filled, each view is looked at in the other colours as well, before the walk goes on.
 */
const LOOKS: readonly (readonly [name: string, at: number, look: Look])[] = [
  ["empty, wide, light", 0, { colorScheme: "light" }],
  ["empty, 390 px, dark", 0, { colorScheme: "dark", width: 390 }],
  ["full, wide, light and dark", 1, { colorScheme: "light" }],
  ["full, 390 px, dark and light", 1, { colorScheme: "dark", width: 390 }],
];

let folder: string;
const servers: TestServer[] = [];
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "ninefold-views-"));
  for (const isFull of [false, true]) {
    const server = await startTestServer({
      args: [...["--allow-private-targets", "127.0.0.0/8"], ...(isFull ? ["--backup-dir", folder] : [])],
    });
    if (isFull) await fillConsole(server.url, server.key);
    servers.push(server);
  }
}, TIMEOUT_MS);
afterAll(async () => {
  await closeBrowser();
  for (const server of servers) await server.stop();
  rmSync(folder, { recursive: true });
}, TIMEOUT_MS);

/** What is wrong with the view that is drawn. */
async function troubles(visit: Console, view: string): Promise<string[]> {
  const others = visit.server === servers[1] ? await visit.violationsInOtherColours() : [];
  const found = [...(await visit.violations()), ...others].map((violation) => `${view}: ${violation}`);
  const overflow = await visit.overflow();
  return overflow > 0 ? [...found, `${view}: ${overflow} px too wide`] : found;
}

/** Goes through all that is shown of an event with a few tries behind it. */
async function walkEvent(visit: Console): Promise<string[]> {
  const found: string[] = [];
  await visit.page.locator("main a.row").nth(1).click();
  for (const tab of ["Body", "Raw", "Headers", "Attempts"]) {
    await visit.page.getByRole("button", { name: tab, exact: true }).click();
    found.push(...(await troubles(visit, `an event, ${tab}`)));
  }
  await visit.page.getByText("What it answered").first().click();
  return [...found, ...(await troubles(visit, "an event, an answer"))];
}

/** The form with all that is set of a bucket. */
async function walkSettings(visit: Console): Promise<string[]> {
  await visit.go("catch");
  await visit.page.getByRole("link", { name: SET_BUCKET }).click();
  await visit.page.getByRole("button", { name: "Settings…" }).click();
  const form = visit.page.locator("dialog");
  expect(await form.getByLabel("and body").inputValue()).toContain("thanks");
  const found = await troubles(visit, "a bucket's settings");
  await form.getByRole("button", { name: "Cancel" }).click();
  return found;
}

async function walk(visit: Console): Promise<string[]> {
  const found: string[] = [];
  for (const view of VIEWS) {
    await visit.go(view);
    found.push(...(await troubles(visit, view)));
    const row = visit.page.locator("main a.row").first();
    if (!WITH_ROWS.includes(view) || (await row.count()) === 0) continue;
    await row.click();
    await visit.settle();
    found.push(...(await troubles(visit, `${view}, one`)));
    if (view === "catch") found.push(...(await walkEvent(visit)), ...(await walkSettings(visit)));
  }
  return found;
}

test.each(LOOKS)(
  "every page, %s: nothing that axe finds, nothing to scroll sideways, no error in the console",
  async (_, at, look) => {
    const server = servers[at] as TestServer;
    const visit = await Console.open(server, look);
    expect(await troubles(visit, "log-in")).toEqual([]);
    await visit.logIn(server.key);
    expect(await walk(visit)).toEqual([]);
    await visit.expectClean();
  },
  TIMEOUT_MS,
);
