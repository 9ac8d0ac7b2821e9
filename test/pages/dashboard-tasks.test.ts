import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Locator, Page } from "playwright-core";
import { eventually } from "../support/eventually.ts";
import { IS_LONG } from "../support/long-form.ts";
import { WebhookSink } from "../support/webhook-sink.ts";
import { TIMEOUT_MS } from "./browser.ts";
import { Console, useConsole } from "./console.ts";

/**
 * Widths of a laptop and a phone, in the long form of a large screen too. Each has its own data, since a task changes what
 * it is about.
 */
const WIDTHS = IS_LONG ? [1440, 1280, 390] : [1280, 390];
const DAY_MS = 86_400_000;

const server = useConsole({ args: ["--allow-private-targets", "127.0.0.0/8"] });
const site = new WebhookSink();
/** Ids of the endpoints and ends of the leaked keys, by width. */
const LEAKED = new Map<number, string>();

beforeAll(seed, TIMEOUT_MS);
afterAll(() => site.stop());

/** Sends a request that must succeed. */
async function send(path: string, body: object): Promise<Record<string, unknown>> {
  const created = await server.operator.post(path, body);
  expect(created.status, created.text).toBeLessThan(300);
  return created.body;
}

/** Everything that the tasks are about, for each width. */
async function seed(): Promise<void> {
  site.answersBy(({ path }) => (path.startsWith("/broken") ? 500 : 200));
  const bucket = await send("/v1/catch/buckets", { name: "Shop payments", target_url: site.url("/hooks") });
  await server.operator.patch(`/v1/catch/buckets/${bucket["id"]}`, { state: "live" });
  const changer = await send("/v1/keys", { name: "Ada's laptop", prefix: "sm", scopes: ["*"] });
  const monitor_ids: unknown[] = [];
  for (const width of WIDTHS) {
    const shop = { url: site.url("/"), interval: DAY_MS, name: `Shop ${width}` };
    monitor_ids.push((await send("/v1/pulse", shop))["id"]);
    const broken = await send("/v1/pulse", { ...shop, url: site.url("/broken"), name: `Search ${width}` });
    await send(`/v1/pulse/${broken["id"]}/check`, {});
    await send("/v1/pulse/incidents", { title: `Payments fail ${width}`, message: "We look.", public: true });
    const retries = { retry_schedule: [], event_types: [`order.${width}`] };
    await send("/v1/relay/endpoints", { url: site.url("/broken"), name: `Warehouse ${width}`, ...retries });
    for (const order of [1, 2])
      await send("/v1/relay/messages", { event_type: `order.${width}`, payload: { order } });
    await send(`/v1/meter/customer-${width}/refill`, { amount: 1_000 });
    await send("/v1/gate", { flag_key: `new-checkout-${width}`, enabled: true });
    const leaked = await send("/v1/keys", { name: `Partner ${width}`, prefix: "sm", scopes: ["gate:read"] });
    LEAKED.set(width, String(leaked["secret"]).slice(-4));
    const hook = { method: "POST", body: JSON.stringify({ type: "invoice.paid", invoice: `in_${width}` }) };
    await fetch(`${server.url}/v1/catch/${bucket["id"]}`, hook);
  }
  await send("/v1/pulse/pages", { slug: "acme", title: "Acme", groups: [{ name: "", monitor_ids }] });
  await send("/v1/gate", { flag_key: "dark-mode", enabled: false });
  const headers = { authorization: `Bearer ${changer["secret"]}`, "content-type": "application/json" };
  const flag = JSON.stringify({ flag_key: "dark-mode", enabled: true });
  await fetch(`${server.url}/v1/gate`, { method: "POST", headers, body: flag });
  const { db, writer } = server.server.kernel;
  const backdate = db.change<[ms: number]>("UPDATE audit_log SET at = at - ? WHERE target_id = 'dark-mode'");
  await writer.submit((tx) => backdate(tx, DAY_MS));
  await listed("/v1/relay?status=failed", "deliveries", 2 * WIDTHS.length);
  await listed(`/v1/catch/${bucket["id"]}/events?status=delivered`, "events", WIDTHS.length);
}

/** Waits until a list has so many items. */
async function listed(path: string, key: string, count: number): Promise<void> {
  for (;;) {
    const { status, body, text } = await server.operator.get(path);
    expect(status, text).toBe(200);
    if ((body[key] as unknown[]).length >= count) return;
  }
}

/** A user who clicks, types, and counts. After each click the page fits its width. */
class User {
  clicks = 0;
  readonly page: Page;
  readonly dialog: Locator;

  constructor(
    private readonly visit: Console,
    readonly width: number,
  ) {
    this.page = visit.page;
    this.dialog = this.page.getByRole("dialog");
  }

  async click(target: Locator): Promise<void> {
    this.clicks += 1;
    await target.click();
    await this.visit.settle();
    await eventually(async () =>
      expect(await this.visit.overflow(), `after ${target}`).toBeLessThanOrEqual(0),
    );
  }

  /** Opens a page of the sidebar. */
  open(name: string): Promise<void> {
    return this.click(
      this.page
        .getByRole("navigation", { name: "Pages" })
        .getByRole("link", { name: new RegExp(`^${name}`) }),
    );
  }

  button(name: string | RegExp): Promise<void> {
    return this.click(this.page.getByRole("button", { name, exact: typeof name === "string" }));
  }

  /** Types into a field, which takes a click unless it has the focus. */
  async type(field: Locator, text: string): Promise<void> {
    await field.waitFor();
    if ((await field.and(this.page.locator(":focus")).count()) === 0) this.clicks += 1;
    await field.fill(text);
  }

  /** Types into the field that has the focus when a dialog opens. */
  async typeFirst(label: string, text: string): Promise<void> {
    await this.dialog.locator(":focus").waitFor();
    await this.type(this.dialog.getByLabel(label, { exact: true }), text);
  }

  sees(text: string | RegExp): Promise<void> {
    return this.page.locator("main").getByText(text).first().waitFor();
  }

  /** What needs attention, on the overview. */
  item(text: string): Locator {
    return this.page.getByRole("listitem").filter({ hasText: text }).first();
  }

  /** The row of a table with a text. */
  row(text: string): Locator {
    return this.page.getByRole("row").filter({ hasText: text });
  }
}

/** A task: the most clicks that a designer would accept from the overview until its result is seen. */
type Task = readonly [name: string, clicks: number, run: (user: User) => Promise<void>];

const TASKS: readonly Task[] = [
  [
    "find out what is wrong now, and acknowledge it",
    2,
    async (user) => {
      const item = user.item(`Search ${user.width} is down`);
      await item.getByText("the target responded with 500").waitFor();
      await user.click(item.getByRole("button", { name: "Acknowledge" }));
      await user.page.getByRole("heading", { name: `Search ${user.width} is down`, level: 1 }).waitFor();
      await user.sees("acknowledged by");
    },
  ],
  [
    "find why a delivery failed, and resend all failures of that endpoint",
    5,
    async (user) => {
      await user.click(user.item(`2 deliveries to Warehouse ${user.width} failed`).getByRole("link"));
      await user.click(user.page.locator("main a.row").first());
      await user.sees("the target responded with 500");
      const all = user.page.getByLabel("Select all on this page");
      // On a phone the details are in place of the list.
      if (!(await all.isVisible())) await user.click(user.page.locator(".opened > .up"));
      await user.click(all);
      await user.button("Resend 2 deliveries");
      await user.page.getByText("Resend finished: 2 of 2 sent").waitFor();
    },
  ],
  [
    "refill a customer's meter by 500 and see the new balance",
    4,
    async (user) => {
      await user.open("Meters");
      await user.click(user.page.getByRole("link", { name: `customer-${user.width}` }));
      await user.button("Refill");
      await user.typeFirst("Amount", "500");
      await user.click(user.dialog.getByRole("button", { name: "Refill" }));
      await user.sees("balance 1,500");
    },
  ],
  [
    "turn a flag off for everybody",
    2,
    async (user) => {
      const flag = `new-checkout-${user.width}`;
      await user.open("Flags");
      await user.click(user.page.getByRole("switch", { name: flag }));
      await user.page.getByText(`${flag} is off`).waitFor();
      await user.page.locator(`[role=switch][aria-label="${flag}"][aria-checked=false]`).waitFor();
      expect((await server.operator.get(`/v1/gate/${flag}`)).body["enabled"]).toBe(false);
    },
  ],
  [
    "create a key with one scope and copy it",
    6,
    async (user) => {
      const name = `Warehouse ${user.width}`;
      await user.open("Keys");
      await user.button("New key");
      await user.typeFirst("Name", name);
      await user.click(user.dialog.getByLabel("relay:write", { exact: true }));
      await user.click(user.dialog.getByRole("button", { name: "Create key" }));
      await user.button("Copy");
      await user.page.getByText("Secret copied").last().waitFor();
      const secret = await user.page.locator("[data-secret]").innerText();
      expect(await user.page.evaluate<string>("navigator.clipboard.readText()")).toBe(secret);
      await user.button("I have saved it");
      await user.row(name).waitFor();
    },
  ],
  [
    "revoke a key that leaked, found by its last four characters",
    4,
    async (user) => {
      await user.open("Keys");
      await user.type(user.page.getByLabel("Search keys"), LEAKED.get(user.width) ?? "");
      await user.page.getByRole("row").nth(2).waitFor({ state: "detached" });
      await user.button(`Revoke Partner ${user.width}`);
      await user.button("Revoke key");
      await user.row(`Partner ${user.width}`).getByText("revoked").waitFor();
    },
  ],
  [
    "announce planned maintenance for one monitor",
    8,
    async (user) => {
      const title = `New shelves ${user.width}`;
      await user.open("Monitors");
      await user.open("Maintenance");
      await user.button("New window");
      await user.typeFirst("Title", title);
      await user.type(user.dialog.getByLabel("Start"), "2098-01-01T00:00");
      await user.type(user.dialog.getByLabel("End"), "2099-01-01T00:00");
      await user.click(user.dialog.getByLabel(`Shop ${user.width}`));
      await user.click(user.dialog.getByLabel("Shown on status pages"));
      await user.click(user.dialog.getByRole("button", { name: "Create window" }));
      await user.row(title).waitFor();
      const { body } = await server.operator.get("/v1/pulse/maintenance");
      expect(body["maintenance"]).toContainEqual(expect.objectContaining({ title, public: true }));
    },
  ],
  [
    "post an update to a public incident and see it on the status page",
    5,
    async (user) => {
      await user.click(user.item(`Payments fail ${user.width}`).getByRole("link").last());
      await user.button("Identified");
      await user.type(user.page.getByLabel("Message"), "The provider has confirmed it.");
      await user.button("Post update");
      await user.page.getByRole("table", { name: "Timeline" }).getByText("has confirmed it").waitFor();
      const opened = user.page.context().waitForEvent("page");
      await user.click(user.page.getByRole("link", { name: "On Acme" }));
      const shown = await opened;
      await shown.getByRole("heading", { name: `Payments fail ${user.width}` }).waitFor();
      await shown.getByText("The provider has confirmed it.").waitFor();
      await eventually(async () =>
        expect(await shown.evaluate("document.documentElement.scrollWidth - innerWidth")).toBe(0),
      );
      await shown.close();
    },
  ],
  [
    "find an incoming webhook by a value in its body, and replay it",
    6,
    async (user) => {
      await user.open("Catch");
      await user.click(user.page.getByRole("link", { name: "Shop payments" }));
      await user.type(user.page.getByLabel("Search headers and bodies"), `in_${user.width}`);
      await user.page.locator("main a.row").nth(1).waitFor({ state: "detached" });
      await user.click(user.page.locator("main a.row"));
      await user.button("Body");
      await user.page.locator(".inspector pre").getByText(`in_${user.width}`).waitFor();
      site.take();
      await user.button("Replay");
      await user.page.getByText("Replayed: the target returned 200").last().waitFor();
      // The message may still be that of the width before.
      await eventually(() =>
        expect(site.received.map(({ body }) => body)).toEqual([expect.stringContaining(`in_${user.width}`)]),
      );
    },
  ],
  [
    "find who changed a flag yesterday, and what",
    3,
    async (user) => {
      await user.open("Flags");
      await user.click(user.page.getByRole("link", { name: "dark-mode" }));
      const change = user.page.getByRole("listitem").filter({ hasText: "by Ada's laptop" });
      await change.getByText(/^(1 d|24 h) ago$/).waitFor();
      await user.click(change.getByRole("link"));
      await user.sees("Ada's laptop (key)");
      const changes = user.page.getByRole("table", { name: "Changes" });
      await eventually(async () =>
        expect(await changes.getByRole("row").filter({ hasText: "enabled" }).innerText()).toMatch(
          /false\s*true/,
        ),
      );
    },
  ],
];

test.each(TASKS)(
  "%s: at most %i clicks at every width",
  async (_, clicks, run) => {
    const visit = await Console.enter(server);
    await visit.context.grantPermissions(["clipboard-read", "clipboard-write"]);
    for (const width of WIDTHS) {
      await visit.page.setViewportSize({ width, height: 860 });
      await visit.go("overview");
      await visit.page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
      await visit.settle();
      const user = new User(visit, width);
      await run(user);
      expect(user.clicks, `clicks at ${width} px`).toBeLessThanOrEqual(clicks);
    }
    await visit.expectClean();
  },
  TIMEOUT_MS,
);
