import { afterAll, beforeAll, expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import type { AccountClient } from "../support/server.ts";
import { WebhookSink } from "../support/webhook-sink.ts";
import { TIMEOUT_MS } from "./browser.ts";
import { Console, useConsole } from "./console.ts";

const MINUTE_MS = 60_000;

const server = useConsole({ args: ["--allow-private-targets", "127.0.0.0/8"] });
let sink: WebhookSink;
beforeAll(() => {
  sink = new WebhookSink();
});
afterAll(() => sink.stop());

const enter = (account: AccountClient): Promise<Console> => Console.enter(server, String(account.key));

/** Has something that waits in relay, catch and notary. */
async function letThemWait(account: AccountClient): Promise<void> {
  const later = { method: "POST", delay: "0s", retry_schedule: ["1h"] };
  await account.post("/v1/relay", { ...later, target_url: sink.url("/refused") });
  const bucket = await account.post("/v1/catch/buckets", { target_url: sink.url("/held") });
  await account.patch(`/v1/catch/buckets/${bucket.body["id"]}`, { state: "live" });
  await account.post(`/v1/catch/${bucket.body["id"]}`, { hello: "there" });
  await account.post("/v1/witness/sys/init");
  await account.post("/v1/witness/config", {
    endpoint: sink.url("/refused"),
    bucket: "receipts",
    region: "us-east-1",
    accessKeyId: "AKIATESTTESTTESTTEST",
    secretAccessKey: "a-secret-of-some-length",
  });
  await account.post("/v1/witness/log", { log: { n: 1 } });
}

test(
  "work that waits for more than ten minutes and low credits need attention; nothing else does",
  async () => {
    const held = Promise.withResolvers<number>();
    sink.answersBy(({ path }) => (path === "/held" ? held.promise.then(() => new Response()) : 500));
    try {
      const account = await server.account({ tier: "pro", balance: 100_100 });
      await account.post("/v1/gate", { flag_key: "one", enabled: true });
      await letThemWait(account);
      const visit = await enter(account);
      const { page } = visit;
      await visit.go("overview");
      const attention = page.locator(".attention");
      await attention.getByText("Nothing needs attention").waitFor();
      await page.locator("a.card", { hasText: "1 waiting for storage" }).waitFor();
      await visit.installClock();
      await page.locator("a.card", { hasText: "1 waiting for storage" }).waitFor();
      await page.clock.fastForward(12 * MINUTE_MS);
      await attention.getByText("3 things need attention").waitFor();
      for (const [title, href] of [
        ["Deliveries wait for retries", "#/relay"],
        ["Inbound events are pending", "#/catch"],
        ["Receipts wait for storage", "#/notary"],
      ] as const) {
        const item = attention.locator("li", { hasText: title });
        await eventually(async () => expect(await item.innerText()).toContain("the oldest for 1"));
        await eventually(async () => expect(await item.getByRole("link").getAttribute("href")).toBe(href));
      }
      await account.post("/v1/meter/deduct", { amount: 1_000 });
      await attention
        .locator("li", { hasText: "of 1,000,000 a month" })
        .getByText("low", { exact: true })
        .waitFor();
      await visit.expectClean();
    } finally {
      held.resolve(200);
    }
  },
  TIMEOUT_MS,
);

/** Has something down or failed in each service. */
async function letThemFail(account: AccountClient): Promise<void> {
  const monitor = await account.post("/v1/pulse", {
    name: "Shop",
    url: sink.url("/down"),
    interval: 300_000,
  });
  await account.post(`/v1/pulse/${monitor.body["id"]}/check`);
  for (const name of ["Backup", "Report"]) {
    const beat = await account.post("/v1/pulse", { type: "heartbeat", name, period_ms: 3_600_000 });
    await fetch(`${beat.body["ping_url"]}/fail`, { method: "POST" });
  }
  await account.post("/v1/pulse/incidents", {
    title: "Card payments fail",
    impact: "degraded",
    message: "Looking into it.",
    monitor_ids: [],
    public: true,
  });
  const delivery = { method: "POST", delay: "0s", retry_schedule: [], target_url: sink.url("/refused") };
  await account.post("/v1/relay", delivery);
  const bucket = await account.post("/v1/catch/buckets", {
    name: "Stripe",
    target_url: sink.url(),
    provider: "github",
    signing_secret: "a secret of some length",
  });
  await account.post(`/v1/catch/${bucket.body["id"]}`, { no: "signature" });
}

test(
  "what is down or failed needs attention, each with its action, and the sidebar counts it",
  async () => {
    sink.answersBy(() => 500);
    const account = await server.account({ tier: "pro" });
    await letThemFail(account);
    const visit = await enter(account);
    const { page } = visit;
    await visit.go("overview");
    const item = (text: string) => page.locator(".attention li", { hasText: text });
    await page.getByText("5 things need attention").waitFor();
    await item("2 heartbeats are down").getByText("Report").waitFor();
    const links = (text: string) =>
      item(text)
        .getByRole("link")
        .evaluateAll((all) => all.map((link) => [link.textContent, link.getAttribute("href")]));
    const target = encodeURIComponent(sink.url("/refused"));
    await eventually(async () =>
      expect(await links("/refused failed")).toEqual([["Open", `#/relay?status=failed&target=${target}`]]),
    );
    await eventually(async () =>
      expect((await links("1 event of Stripe not delivered"))[0]?.[1]).toEndWith("?status=failed"),
    );
    await eventually(async () =>
      expect((await links("Card payments fail")).map(([text]) => text)).toEqual([
        "Card payments fail",
        "Open",
      ]),
    );
    const pages = page.getByRole("navigation", { name: "Pages" });
    for (const [name, text] of [
      ["Monitors", "3"],
      ["Relay", "1"],
      ["Catch", "1"],
    ] as const)
      await eventually(async () =>
        expect(await pages.getByRole("link", { name }).locator(".count").innerText()).toStartWith(text),
      );
    await eventually(async () => expect(await page.locator(".strips li").count()).toBe(3));
    await page.getByRole("button", { name: "7 d" }).click();
    await page.getByRole("img", { name: "Deliveries, last 7d" }).waitFor();
    await eventually(() => expect(page.url()).toEndWith("?period=7d"));
    await visit.installClock();
    await item("Card payments fail").waitFor();
    await page.clock.fastForward(40 * MINUTE_MS);
    await item("Card payments fail").getByText("Post an update").waitFor();
    await item("Shop is down").getByRole("button", { name: "Acknowledge" }).click();
    await page.waitForURL(/#\/monitors\/incidents\/inc_/);
    await visit.go("overview");
    await item("Shop is down").waitFor();
    await eventually(async () => expect(await item("Shop is down").innerText()).not.toContain("cknowledge"));
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

test(
  "a new account sees first steps until it has created something",
  async () => {
    const account = await server.account();
    const visit = await enter(account);
    const { page } = visit;
    await visit.go("overview");
    await page.getByRole("link", { name: "a monitor" }).click();
    await page.getByLabel("URL").waitFor();
    await account.post("/v1/gate", { flag_key: "one", enabled: true });
    await visit.go("overview");
    await page.locator("main").getByText("Get started").waitFor({ state: "detached" });
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

test(
  "lists paused monitors separately",
  async () => {
    const account = await server.account();
    const created: string[] = [];
    for (const name of ["Till", "Shop"]) {
      const { body } = await account.post("/v1/pulse", { url: sink.url(), interval: 300_000, name });
      created.push(String(body["id"]));
    }
    const visit = await enter(account);
    const rows = visit.page.locator("main a.row");
    await visit.go("monitors?status=paused");
    await visit.page.getByText("No matching monitors").waitFor();
    await account.put(`/v1/pulse/${created[0]}`, { active: false });
    await visit.go("monitors");
    await rows.nth(1).waitFor();
    await visit.page.getByRole("button", { name: "Paused" }).click();
    await rows.nth(1).waitFor({ state: "detached" });
    await eventually(async () => expect(await rows.innerText()).toContain("Till"));
    await eventually(() => expect(visit.page.url()).toEndWith("?status=paused"));
    await visit.expectClean();
  },
  TIMEOUT_MS,
);
