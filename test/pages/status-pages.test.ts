import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { eventually } from "../support/eventually.ts";
import { IS_LONG } from "../support/long-form.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { WebhookSink } from "../support/webhook-sink.ts";
import { closeBrowser, openContext, TIMEOUT_MS } from "./browser.ts";
import { Console } from "./console.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"];

let server: TestServer;
const site = new WebhookSink();
beforeAll(async () => {
  server = await startTestServer({ args: ["--allow-private-targets", "127.0.0.0/8"] });
  site.answersBy(({ path }) => (path === "/bad" ? 503 : 200));
  await fill(3);
  await fill(60);
}, TIMEOUT_MS);
afterAll(async () => {
  await closeBrowser();
  await server.stop();
  site.stop();
}, TIMEOUT_MS);

/** A page of so many monitors with incidents and planned work. */
async function fill(count: number): Promise<void> {
  const { operator } = server;
  const monitor_ids: string[] = [];
  for (let at = 0; at < count; at += 1) {
    const name =
      at === 2
        ? `Payments in EUR, ${"with-a-name-that-has-no-space".repeat(2)}`
        : `Service ${at} of ${count}`;
    const body = { url: site.url(at === 1 ? "/bad" : "/ok"), interval: 300_000, name };
    const created = await operator.post("/v1/pulse", { ...body, name: `${name.slice(0, 90)} ${count}` });
    expect(created.status, created.text).toBe(201);
    if (at < 5) await operator.post(`/v1/pulse/${created.body["id"]}/check`);
    monitor_ids.push(String(created.body["id"]));
  }
  const incident = {
    title: "Payments fail",
    message: "See https://example.com/x\n\nWe look into it.",
    public: true,
  };
  await operator.post("/v1/pulse/incidents", { ...incident, monitor_ids: monitor_ids.slice(0, 1) });
  const work = {
    title: "New disks",
    message: "Short breaks.",
    public: true,
    monitor_ids: monitor_ids.slice(2, 3),
  };
  await operator.post("/v1/pulse/maintenance", { ...work, schedule: "* * * * *", duration_ms: 3_600_000 });
  const groups = [
    { name: "Shop", monitor_ids: monitor_ids.slice(0, 40) },
    { name: "", monitor_ids: monitor_ids.slice(40) },
  ];
  const texts = { title: "Acme", description: "What we run: https://example.com/", footer: "Acme Ltd" };
  const publish_incidents = count === 3 ? "all" : "outages";
  const flags = { show_latency: true, show_urls: true, publish_incidents };
  const created = await operator.post("/v1/pulse/pages", {
    slug: `with-${count}`,
    groups,
    ...texts,
    ...flags,
  });
  expect(created.status, created.text).toBe(201);
}

/** Every run has each number of monitors, theme and width once; the long form all of their combinations. */
const LOOKS = IS_LONG
  ? [3, 60].flatMap((count) =>
      (["light", "dark"] as const).flatMap((colorScheme) =>
        [1280, 390].map((width) => [count, colorScheme, width] as const),
      ),
    )
  : ([
      [3, "light", 1280],
      [60, "dark", 390],
    ] as const);

test.each(LOOKS)(
  "%d monitors, %s, %d px: no findings of axe, no horizontal scrolling, no script, no other host",
  async (count, colorScheme, width) => {
    const context = await openContext({
      colorScheme,
      viewport: { width, height: 900 },
      bypassCSP: true,
    });
    const page = await context.newPage();
    const asked: string[] = [];
    page.on("request", (request) => asked.push(request.url()));
    await page.goto(`${server.url}/status/with-${count}`);
    await page.getByRole("heading", { name: "Open incidents" }).waitFor();
    expect(asked.filter((url) => !url.startsWith(`${server.url}/status/`))).toEqual([]);
    // The page, its style and its icon.
    expect(new Set(asked).size).toBe(3);
    await eventually(async () => expect(await page.locator("script").count()).toBe(0));
    const fits = () =>
      eventually(async () =>
        expect(await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth")).toBe(0),
      );
    await fits();
    await page.getByText("Get updates").click();
    await page.getByRole("link", { name: "Atom feed" }).waitFor();
    await fits();
    await page.evaluate(AXE);
    const options = JSON.stringify({ runOnly: RULES, resultTypes: ["violations"] });
    const found = await page.evaluate<{ violations: { id: string }[] }>(`axe.run(${options})`);
    expect(found.violations.map(({ id }) => id)).toEqual([]);
    await context.close();
  },
  TIMEOUT_MS,
);

test(
  "its policy allows its style and no script",
  async () => {
    const context = await openContext();
    const page = await context.newPage();
    const faults: string[] = [];
    page.on("console", (message) => faults.push(message.text()));
    await page.goto(`${server.url}/status/with-3`);
    expect(faults).toEqual([]);
    const style = "getComputedStyle(document.querySelector('ul')).listStyleType";
    await eventually(async () => expect(await page.evaluate<string>(style)).toBe("none"));
    const missing = await page.goto(`${server.url}/status/nowhere`);
    expect(missing?.status()).toBe(404);
    await page.getByRole("heading", { name: "Status page not found" }).waitFor();
    await context.close();
  },
  TIMEOUT_MS,
);

test(
  "a reader without scripts chooses a time zone, which the page and its incidents keep",
  async () => {
    const context = await openContext({ javaScriptEnabled: false, viewport: { width: 390, height: 900 } });
    const page = await context.newPage();
    await page.goto(`${server.url}/status/with-3`);
    const since = page.locator("article.incident time").first();
    const shownAt = async () => `${await since.getAttribute("datetime")} ${await since.innerText()}`;
    const inZone = (time: string, timeZone: string) => {
      const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", timeZone });
      return clock.format(new Date(time));
    };
    const [time = ""] = (await shownAt()).split(" ");
    expect(await shownAt()).toEndWith(inZone(time, "UTC"));
    await page.getByLabel("Time zone").selectOption("Asia/Kathmandu");
    await page.getByRole("button", { name: "Show" }).click();
    await page.getByText("All times are in Asia/Kathmandu").waitFor();
    expect(page.url()).toContain("?tz=Asia%2FKathmandu");
    expect(await shownAt()).toBe(
      `${time} ${(await shownAt()).slice(time.length + 1, -5)}${inZone(time, "Asia/Kathmandu")}`,
    );
    await page.getByRole("link", { name: "Payments fail" }).first().click();
    await page.getByText("All times are in Asia/Kathmandu").waitFor();
    await page.getByRole("link", { name: "Acme" }).click();
    await page.getByText("All times are in Asia/Kathmandu").waitFor();
    await context.close();
  },
  TIMEOUT_MS,
);

/** A PNG image of one pixel. */
const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

test(
  "creates a page in the console, edits it with a preview, unpublishes and deletes it",
  async () => {
    const visit = await Console.enter(server);
    const { page } = visit;
    await visit.go("monitors/pages?new=1");
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Title").fill("Team");
    await dialog.getByLabel("Slug").fill("team");
    await dialog.getByRole("button", { name: "Create page" }).click();
    const inspector = page.locator(".inspector");
    await inspector.getByRole("button", { name: "Add group" }).click();
    await inspector.getByLabel("Group name").fill("Core");
    await inspector.getByLabel("Add monitor").selectOption({ label: "Service 0 of 3 3" });
    await inspector.getByLabel("Add monitor").selectOption({ label: "Service 1 of 3 3" });
    await inspector.getByRole("button", { name: "Remove Service 1 of 3 3" }).click();
    await inspector.getByLabel("Show latency").check();
    await inspector.getByRole("button", { name: "Save" }).click();
    await page.getByText("Status page saved").waitFor();
    const preview = page.frameLocator("iframe.preview");
    await preview.getByRole("heading", { name: "Core" }).waitFor();
    await preview.getByText("Service 0 of 3 3", { exact: true }).waitFor();
    await eventually(async () => expect(await preview.getByText("Service 1 of 3 3").count()).toBe(0));
    await eventually(async () => expect(await visit.violations()).toEqual([]));
    const { pages } = (await server.operator.get("/v1/pulse/pages")).body as { pages: { id: string }[] };
    expect((await server.operator.get(`/v1/pulse/pages/${pages[0]?.id}`)).body).toMatchObject({
      slug: "team",
      show_latency: true,
      groups: [{ name: "Core" }],
    });
    await server.operator.post("/v1/pulse", { url: site.url("/ok"), interval: 300_000, name: "Extra" });
    await inspector.getByLabel("Website").fill("https://acme.example");
    const logo = { name: "logo.png", mimeType: "image/png" };
    await inspector.getByLabel("Logo").setInputFiles({ ...logo, buffer: Buffer.alloc(33 * 1024) });
    await inspector.getByText("Choose one of at most 32 KiB").waitFor();
    await inspector.getByLabel("Logo").setInputFiles({ ...logo, buffer: Buffer.from(PIXEL, "base64") });
    await inspector.getByAltText("Logo of the page").waitFor();
    await inspector.getByLabel("Color").fill("#aa3300");
    for (const name of ["Service 1 of 3 3", "Extra"])
      await inspector.getByLabel("Add monitor").selectOption({ label: name });
    const order = inspector.getByRole("list", { name: "Monitors of group Core" });
    const names = () => order.getByRole("listitem").locator("div").allInnerTexts();
    const up = order.getByRole("button", { name: "Move Extra up" });
    await up.focus();
    await page.keyboard.press("Enter");
    await eventually(async () =>
      expect(await names()).toEqual(["Service 0 of 3 3", "Extra", "Service 1 of 3 3"]),
    );
    // The focus stays on the button of what was moved.
    const focused = "document.activeElement?.getAttribute('aria-label')";
    await eventually(async () => expect(await page.evaluate<string>(focused)).toBe("Move Extra up"));
    await order.getByTitle("Drag Service 1 of 3 3").dragTo(order.getByRole("listitem").first());
    await eventually(async () =>
      expect(await names()).toEqual(["Service 1 of 3 3", "Service 0 of 3 3", "Extra"]),
    );
    await inspector.getByRole("button", { name: "Add group" }).click();
    await inspector.getByLabel("Group name").last().fill("Second");
    await inspector.getByRole("button", { name: "Move group Second up" }).click();
    await inspector.getByRole("button", { name: "Save" }).click();
    await preview.getByRole("link", { name: "acme.example" }).waitFor();
    const saved = (await server.operator.get(`/v1/pulse/pages/${pages[0]?.id}`)).body;
    expect(saved).toMatchObject({
      website_url: "https://acme.example",
      color: "#aa3300",
      logo: `data:image/png;base64,${PIXEL}`,
    });
    const groups = saved["groups"] as unknown as { name: string; monitor_ids: string[] }[];
    expect(groups.map(({ name, monitor_ids }) => [name, monitor_ids.length])).toEqual([
      ["Second", 0],
      ["Core", 3],
    ]);
    await inspector.getByLabel("Published").uncheck();
    await inspector.getByRole("button", { name: "Save" }).click();
    await page.getByText("The page is not published").waitFor();
    expect((await server.client(null).get("/status/team")).status).toBe(404);
    await inspector.getByRole("button", { name: "Delete…" }).click();
    await page.getByRole("button", { name: "Delete page" }).click();
    await page.getByText("/status/team").waitFor({ state: "detached" });
    await visit.expectClean();
  },
  TIMEOUT_MS,
);
