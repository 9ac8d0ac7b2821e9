import { afterAll, beforeAll, expect, test } from "bun:test";
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
  "cards show work that waits for more than ten minutes as late, and credits below a tenth as low",
  async () => {
    const held = Promise.withResolvers<number>();
    sink.answersBy(({ path }) => (path === "/held" ? held.promise.then(() => new Response()) : 500));
    try {
      const account = await server.account({ tier: "pro", balance: 100_100 });
      await letThemWait(account);
      const visit = await enter(account);
      const { page } = visit;
      const card = (name: string) =>
        page.locator("a.card", { has: page.getByRole("heading", { name, exact: true }) });
      await visit.go("overview");
      await card("Notary").getByText("buffered").waitFor();
      for (const name of ["Meters", "Relay", "Catch"])
        expect(await card(name).innerText(), name).toContain("fine");
      expect(await card("Notary").locator(".status.warn").count()).toBe(1);
      await page.clock.install({ time: Date.now() + 12 * MINUTE_MS });
      for (const name of ["Relay", "Catch"]) await card(name).getByText("late", { exact: true }).waitFor();
      expect(await card("Relay").innerText()).toContain("retrying for 1");
      expect(await card("Catch").innerText()).toContain("oldest for 1");
      expect(await card("Notary").locator(".status.bad").count()).toBe(1);
      expect(await card("Notary").innerText()).toContain("1 waiting for storage for 1");
      await account.post("/v1/meter/deduct", { amount: 1_000 });
      await card("Meters").getByText("low", { exact: true }).waitFor();
      expect(await card("Meters").innerText()).toContain("of 1,000,000 a month");
      await visit.expectClean();
    } finally {
      held.resolve(200);
    }
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
    await page.getByText("Get started").waitFor({ state: "detached" });
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

test(
  "lists paused monitors separately",
  async () => {
    const account = await server.account();
    const made: string[] = [];
    for (const name of ["Till", "Shop"]) {
      const { body } = await account.post("/v1/pulse", { url: sink.url(), interval: 300_000, name });
      made.push(String(body["id"]));
    }
    const visit = await enter(account);
    const rows = visit.page.locator("main a.row");
    await visit.go("monitors?status=paused");
    await visit.page.getByText("No monitor in this state").waitFor();
    await account.put(`/v1/pulse/${made[0]}`, { active: false });
    await visit.go("monitors");
    await rows.nth(1).waitFor();
    await visit.page.getByRole("button", { name: "Paused" }).click();
    await rows.nth(1).waitFor({ state: "detached" });
    expect(await rows.innerText()).toContain("Till");
    expect(visit.page.url()).toEndWith("?status=paused");
    await visit.expectClean();
  },
  TIMEOUT_MS,
);
