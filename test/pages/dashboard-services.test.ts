import { describe, expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import { TIMEOUT_MS } from "./browser.ts";
import { Console, useFilledConsole } from "./console.ts";

const server = useFilledConsole();

/** Types into the field in focus without a pause, which on a slow machine would be long enough for a search. */
const TYPED = `for (const text of ["I", "IN", "IN_", "IN_3"]) {
  document.activeElement.value = text;
  document.activeElement.dispatchEvent(new InputEvent("input", { bubbles: true }));
}`;

describe("a bucket's events", () => {
  test(
    "are searched while typing, and the text is part of the address",
    async () => {
      const visit = await Console.enter(server);
      const { page } = visit;
      await visit.go("catch");
      await page.getByRole("link", { name: "Shop payments" }).click();
      const rows = page.locator("main a.row");
      await rows.nth(5).waitFor();
      await page.getByLabel("Search headers and bodies").focus();
      await page.evaluate(TYPED);
      await rows.nth(1).waitFor({ state: "detached" });
      await eventually(() => expect(page.url()).toEndWith("?q=IN_3"));
      const searches = visit.requests.filter((request) => request.includes("q=")).length;
      expect(searches).toBe(1);
      await rows.click();
      await page.getByRole("button", { name: "Body", exact: true }).click();
      await eventually(async () =>
        expect(await page.locator(".inspector pre").innerText()).toContain('"in_3"'),
      );
      await page.getByLabel("Search headers and bodies").fill("nowhere");
      await page.getByText("No matching events").waitFor();
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "show each attempt with the target's response, and new ones immediately",
    async () => {
      const visit = await Console.enter(server);
      const { page } = visit;
      await visit.go("catch");
      await page.getByRole("link", { name: "Shop payments" }).click();
      await page.locator("main a.row").nth(1).click();
      const tries = page.getByRole("list", { name: "Attempts" }).getByRole("button");
      await tries.first().waitFor();
      await eventually(async () => expect(await tries.last().innerText()).toContain("200"));
      await tries.filter({ hasText: "404" }).first().click();
      await page.locator(".inspector pre", { hasText: "not_found" }).waitFor();
      const before = await tries.count();
      await page.getByRole("button", { name: "Resume" }).click();
      await page.getByRole("button", { name: "Replay", exact: true }).click();
      await page.getByText("Replayed: the target returned 200").waitFor();
      await tries.nth(before).waitFor();
      await page.getByRole("button", { name: "Pause" }).click();
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "are replayed in bulk, and a bucket can be set to pull",
    async () => {
      const { body } = await server.operator.post("/v1/catch/buckets", {
        target_url: `${server.url}/v1/ping`,
      });
      const id = String(body["id"]);
      for (const number of [1, 2, 3]) await server.client(null).post(`/v1/catch/${id}`, { number });
      await server.operator.patch(`/v1/catch/buckets/${id}`, { delivery: "pull", state: "live" });
      const visit = await Console.enter(server);
      const { page } = visit;
      await visit.go(`catch/${id}`);
      await page.getByText(`forwarded by ninefold listen ${id}`).waitFor();
      await page.getByRole("button", { name: "Pending 3" }).click();
      const ticks = page.getByRole("checkbox", { name: /^Select evt_/ });
      await ticks.nth(2).waitFor();
      await ticks.first().check();
      await page.getByRole("button", { name: "Select all 3 that match" }).click();
      await page.getByText(`the current target of the bucket, ${server.url}/v1/ping,`).waitFor();
      await page.getByRole("button", { name: "Replay 3 events" }).click();
      await page.getByText(/Replay finished: 3 of 3 sent/).waitFor();
      await page.getByRole("button", { name: "Edit…" }).click();
      await page.getByLabel("Target URL").fill("");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("Bucket updated").waitFor();
      expect((await server.operator.get(`/v1/catch/buckets/${id}`)).body).toMatchObject({
        target_url: null,
        delivery: "pull",
      });
      await visit.expectClean();
      await server.operator.delete(`/v1/catch/buckets/${id}`);
    },
    TIMEOUT_MS,
  );

  test(
    "a bucket is shown by its name",
    async () => {
      const { body } = await server.operator.post("/v1/catch/buckets", { target_url: server.url });
      const visit = await Console.enter(server);
      const { page } = visit;
      await visit.go(`catch/${body["id"]}`);
      await page.getByRole("button", { name: "Edit…" }).click();
      await page.getByLabel("Name", { exact: true }).fill("Returns");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByRole("heading", { name: "Returns", level: 1 }).waitFor();
      expect((await server.operator.get("/v1/catch/buckets?name=Returns")).body).toMatchObject({
        buckets: [{ id: body["id"], target_url: server.url, has_signing_secret: false }],
      });
      await server.operator.delete(`/v1/catch/buckets/${body["id"]}`);
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});

describe("monitors", () => {
  test(
    "are created with their settings, updated, paused and resumed",
    async () => {
      const visit = await Console.enter(server);
      const { page } = visit;
      await visit.go("monitors?new=1");
      await page.getByLabel("URL").fill(`${server.url}/v1/ping`);
      await page.getByLabel("Name", { exact: true }).fill("Till");
      await page.getByLabel("Timeout (seconds)").fill("2.5");
      await page.getByRole("button", { name: "Create monitor" }).click();
      await page.getByRole("heading", { name: "Till", level: 1 }).waitFor();
      await page.getByRole("button", { name: "Edit…" }).click();
      await page.getByLabel("Method").fill("POST");
      await page.getByLabel("Body").fill('{"a":1}');
      await page.getByLabel("Failures until down").fill("3");
      await page.getByText("More", { exact: true }).click();
      const recovery = page.getByLabel("Webhook and e-mail also report recovery");
      await eventually(async () => expect(await recovery.count()).toBe(0));
      await page.getByLabel("Send alerts to").fill(`${server.url}/v1/ping`);
      await recovery.check();
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("3 failed checks").waitFor();
      await page.getByRole("button", { name: "Pause" }).click();
      await page.locator("header.title").getByText("paused").waitFor();
      const found = async () => (await server.operator.get("/v1/pulse?name=Till")).body["monitors"];
      expect(await found()).toMatchObject([
        {
          url: `${server.url}/v1/ping`,
          interval: 60_000,
          timeout: 2_500,
          method: "POST",
          body: '{"a":1}',
          consecutive_threshold: 3,
          webhook_url: `${server.url}/v1/ping`,
          notify_recovery: true,
          active: false,
        },
      ]);
      await page.getByRole("button", { name: "Resume" }).click();
      await page.getByRole("button", { name: "Pause" }).waitFor();
      expect(await found()).toMatchObject([{ active: true }]);
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});

describe("maintenance", () => {
  test(
    "is created once and recurring, shown with its monitors, and deleted",
    async () => {
      const { body } = await server.operator.post("/v1/pulse", {
        url: `${server.url}/v1/ping`,
        interval: 60_000,
        name: "Stock",
      });
      const visit = await Console.enter(server);
      const { page } = visit;
      await visit.go("monitors");
      await page.getByRole("link", { name: "Maintenance", exact: true }).click();
      await page.getByRole("button", { name: "New window" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Title").fill("New shelves");
      await dialog.getByLabel("Start").fill("2020-01-01T00:00");
      await dialog.getByLabel("End").fill("2099-01-01T00:00");
      await dialog.getByLabel("Stock").check();
      await dialog.getByRole("button", { name: "Create window" }).click();
      await page.getByText("Maintenance window created").waitFor();
      const row = page.getByRole("row").filter({ hasText: "New shelves" });
      await row.getByText("1 monitor").waitFor();
      await row.getByText("active").waitFor();
      await page.getByRole("button", { name: "New window" }).click();
      await dialog.getByLabel("Title").fill("Night");
      await dialog.getByLabel("Repeat").selectOption("again");
      await dialog.getByLabel("Schedule").fill("30 2 * * *");
      await dialog.getByLabel("Time zone").fill("Europe/Berlin");
      await dialog.getByRole("button", { name: "Create window" }).click();
      await page.getByText("30 2 * * *, Europe/Berlin, for 1 h").waitFor();
      await page.getByRole("button", { name: "Edit Night" }).click();
      await dialog.getByLabel("Duration").fill("120");
      await dialog.getByRole("button", { name: "Save" }).click();
      await page.getByText("30 2 * * *, Europe/Berlin, for 2 h").waitFor();
      await visit.go("monitors");
      await page.getByRole("row").filter({ hasText: "Stock" }).getByText("maintenance").waitFor();
      await visit.go("monitors/maintenance");
      await page.getByRole("button", { name: "Delete New shelves" }).click();
      await page.getByRole("button", { name: "Delete window" }).click();
      await row.waitFor({ state: "detached" });
      expect((await server.operator.get(`/v1/pulse/${body["id"]}`)).body).toMatchObject({
        maintenance: false,
      });
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "a monitor can depend on another",
    async () => {
      const create = async (name: string) =>
        (await server.operator.post("/v1/pulse", { url: `${server.url}/v1/ping`, interval: 60_000, name }))
          .body;
      const [parent, child] = [await create("Line"), await create("Desk")];
      const visit = await Console.enter(server);
      const { page } = visit;
      await visit.go(`monitors/${child["id"]}`);
      await page.getByRole("button", { name: "Edit…" }).click();
      await page.getByLabel("Depends on").selectOption("Line");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByRole("link", { name: "Line", exact: true }).waitFor();
      expect((await server.operator.get(`/v1/pulse/${child["id"]}`)).body).toMatchObject({
        depends_on: parent["id"],
      });
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});

describe("ports and records", () => {
  test(
    "are checked by monitors of other types, which are updated",
    async () => {
      const visit = await Console.enter(server);
      const { page } = visit;
      const { port } = new URL(server.url);
      await visit.go("monitors?new=1");
      await page.getByLabel("Check", { exact: true }).selectOption("tcp");
      await page.getByLabel("Host").fill("127.0.0.1");
      await page.getByLabel("Port", { exact: true }).fill(port);
      await page.getByLabel("Interval", { exact: true }).selectOption("86400000");
      await page.getByRole("button", { name: "Create monitor" }).click();
      await page.getByRole("heading", { name: `127.0.0.1:${port}`, level: 1 }).waitFor();
      await page.getByRole("button", { name: "Edit…" }).click();
      await page.getByLabel("Expected text").fill("ESMTP");
      await page.getByLabel("Failures until down").fill("2");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("2 failed checks").waitFor();
      await visit.go("monitors?new=1");
      await page.getByLabel("Check", { exact: true }).selectOption("dns");
      await page.getByLabel("Host").fill("shop.example");
      await page.getByLabel("Record type").selectOption("MX");
      await page.getByLabel("Expected value").fill("10 mail.example");
      await page.getByRole("button", { name: "Create monitor" }).click();
      await page.getByRole("heading", { name: "shop.example", level: 1 }).waitFor();
      await visit.go("monitors?new=1");
      await page.getByLabel("Check", { exact: true }).selectOption("icmp");
      await page.getByLabel("Host").fill("127.0.0.2");
      await page.getByLabel("Packets", { exact: true }).fill("2");
      await page.getByLabel("Packets that may be lost").fill("40");
      await page.getByRole("button", { name: "Create monitor" }).click();
      await page.getByRole("heading", { name: "127.0.0.2", level: 1 }).waitFor();
      await page.getByText("2 packets to 127.0.0.2").waitFor();
      await page.getByText("more than 40 % of the packets are lost").waitFor();
      await page.getByText("2 of 2 packets returned").waitFor();
      await visit.go("monitors?new=1");
      await page.getByLabel("Check", { exact: true }).selectOption("domain");
      await page.getByLabel("Domain", { exact: true }).fill("shop.nosuch");
      expect(await page.getByLabel("Interval", { exact: true }).count()).toBe(0);
      await page.getByRole("button", { name: "Create monitor" }).click();
      await page.getByRole("heading", { name: "shop.nosuch", level: 1 }).waitFor();
      await page.getByText("Registration of shop.nosuch, asked once a day").waitFor();
      const { monitors } = (await server.operator.get("/v1/pulse?limit=4")).body as { monitors: object[] };
      expect(monitors).toMatchObject([
        { type: "domain", host: "shop.nosuch", interval: 86_400_000 },
        { type: "icmp", host: "127.0.0.2", packets: 2, max_loss_percent: 40 },
        { type: "dns", host: "shop.example", record_type: "MX", record_value: "10 mail.example" },
        { type: "tcp", host: "127.0.0.1", port: Number(port), keyword: "ESMTP", interval: 86_400_000 },
      ]);
      for (const { monitor_id } of monitors as { monitor_id: string }[])
        await server.operator.delete(`/v1/pulse/${monitor_id}`);
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});

describe("assertions on the response", () => {
  test(
    "are set under More, shown, and kept by other changes",
    async () => {
      const visit = await Console.enter(server);
      const { page } = visit;
      await visit.go("monitors?new=1");
      await page.getByLabel("URL").fill(`${server.url}/v1/ping`);
      await page.getByLabel("Name", { exact: true }).fill("Particular");
      await page.getByText("More", { exact: true }).click();
      await page.getByLabel("Group").fill("shop");
      await page.getByLabel("Accepted statuses").fill("200, 300-399");
      await page.getByLabel("Response contains", { exact: true }).fill("ok");
      await page.getByLabel("JSON path").fill("$.status");
      await page.getByLabel("Expected value").fill("5");
      await page.getByLabel("Interval after a failed check (seconds)").fill("7.5");
      await page.getByLabel("Successes until up").fill("2");
      await page.getByLabel("Slow above (milliseconds)").fill("900");
      // A target without TLS has no certificate.
      await eventually(async () => expect(await page.getByLabel("Certificate warning").count()).toBe(0));
      await page.getByLabel("Notify channels when slow").check();
      await page.getByRole("button", { name: "Create monitor" }).click();
      await page.getByText("$.status == 5").waitFor();
      const body = {
        group: "shop",
        accept_status: ["200", "300-399"],
        keyword: "ok",
        keyword_absent: null,
        json_path: "$.status",
        json_op: "==",
        json_value: 5,
        retry_interval: 7_500,
        recovery_threshold: 2,
        degraded_ms: 900,
        notify_degraded: true,
      };
      const found = async () => (await server.operator.get("/v1/pulse?name=Particular")).body["monitors"];
      expect(await found()).toMatchObject([body]);
      await page.getByRole("button", { name: "Edit…" }).click();
      await page.getByLabel("Failures until down").fill("4");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("4 failed checks").waitFor();
      expect(await found()).toMatchObject([{ ...body, consecutive_threshold: 4 }]);
      await page.getByRole("button", { name: "Edit…" }).click();
      await page.getByText("More", { exact: true }).click();
      await page.getByLabel("Expected value").fill('"5"');
      await page.getByLabel("Response contains", { exact: true }).fill("");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText('$.status == "5"').waitFor();
      expect(await found()).toMatchObject([{ json_value: "5", keyword: null }]);
      await page.getByRole("button", { name: "Edit…" }).click();
      await page.getByLabel("Method").fill("HEAD");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("$.status").waitFor({ state: "detached" });
      expect(await found()).toMatchObject([{ method: "HEAD", json_path: null, group: "shop" }]);
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});

describe("the audit log", () => {
  test(
    "shows the entry in the address at any position",
    async () => {
      const account = await server.account({ tier: "scale" });
      for (let at = 0; at <= 205; at += 1)
        await account.post("/v1/gate", { flag_key: `flag-${at}`, enabled: true });
      const { body } = await account.get("/v1/audit?target_id=flag-0");
      const [{ sequence } = { sequence: "" }] = body["entries"] as { sequence: string }[];
      const visit = await Console.enter(server, String(account.key));
      const { page } = visit;
      await visit.go(`audit/${sequence}`);
      await page.getByRole("heading", { name: "Flag flag-0 created, on" }).waitFor();
      await eventually(async () =>
        expect(await page.locator("main table").first().innerText()).not.toContain("flag-0 "),
      );
      await visit.go("audit/999999999999");
      await page.getByText("Entry not found").waitFor();
      // The browser itself notes in its console that a request was answered with an error.
      expect(visit.faults.splice(0)).toEqual([expect.stringContaining("404")]);
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "is shown and downloaded for the selected time",
    async () => {
      const visit = await Console.enter(server);
      const { page } = visit;
      await visit.go("audit");
      await page.locator("main a.row").first().waitFor();
      const saved = async (): Promise<string> => {
        const download = page.waitForEvent("download");
        await page.getByRole("button", { name: "JSON lines" }).click();
        return Bun.file(await (await download).path()).text();
      };
      expect(await saved()).toContain('"gate.save"');
      await page.getByLabel("From").fill("2999-01-01T00:00");
      await page.getByText("No entries").waitFor();
      await eventually(() => expect(new URL(page.url()).hash).toContain("from=2"));
      expect(await saved()).toBe("");
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "is that of all accounts for the operator, or that of one of them",
    async () => {
      const account = await server.account();
      await account.post("/v1/gate", { flag_key: "of-another", enabled: true });
      const visit = await Console.enter(server);
      const { page } = visit;
      await visit.go("audit?target_id=of-another");
      await page.getByText("No entries").waitFor();
      await page.getByRole("button", { name: "All accounts" }).click();
      await page.getByRole("link", { name: "Flag of-another created, on" }).click();
      await page.locator(".inspector").getByText("gate.save").waitFor();
      await page.getByLabel("Resource ID").fill("");
      await page.getByRole("link", { name: "Flag flag-205 created" }).waitFor();
      await page.getByLabel("Account ID").fill(account.userId);
      await page.getByRole("link", { name: "Flag flag-205 created" }).waitFor({ state: "detached" });
      const download = page.waitForEvent("download");
      await page.getByRole("button", { name: "JSON lines" }).click();
      const lines = await Bun.file(await (await download).path()).text();
      expect(lines).toContain('"of-another"');
      expect(lines).not.toContain('"dark-mode"');
      await visit.expectClean();
      const other = await Console.enter(server, String(account.key));
      await other.go("audit?of=all");
      await other.page.getByRole("link", { name: "Flag of-another created, on" }).waitFor();
      await eventually(async () =>
        expect(await other.page.getByRole("button", { name: "All accounts" }).count()).toBe(0),
      );
      await other.expectClean();
    },
    TIMEOUT_MS,
  );
});
