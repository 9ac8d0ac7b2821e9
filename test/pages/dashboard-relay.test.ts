import { afterAll, beforeAll, expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { WebhookSink } from "../support/webhook-sink.ts";
import { closeBrowser, TIMEOUT_MS } from "./browser.ts";
import { Console } from "./console.ts";

let server: TestServer;
const sink = new WebhookSink();
beforeAll(async () => {
  server = await startTestServer({ args: ["--allow-private-targets", "127.0.0.0/8"] });
}, TIMEOUT_MS);
afterAll(async () => {
  await closeBrowser();
  await server.stop();
  sink.stop();
}, TIMEOUT_MS);

/** Deliveries that have failed. */
async function failed(count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const delivery = {
      target_url: sink.url("/hook"),
      method: "POST",
      delay: "0s",
      headers: { "X-A": "hidden" },
    };
    ids.push(String((await server.operator.post("/v1/relay", delivery)).body["relay_id"]));
  }
  while (
    ((await server.operator.get("/v1/relay?status=failed")).body["deliveries"] as unknown[]).length < count
  )
    await Bun.sleep(10);
  return ids;
}

test(
  "shows response, sent body and headers of a failed delivery, closes it, and resends one or a selection",
  async () => {
    sink.answersBy(() => new Response("<b>no such hook</b>", { status: 404, headers: { "X-Trace": "abc" } }));
    const [first = ""] = await failed(4);
    const visit = await Console.enter(server);
    const { page } = visit;
    await visit.go(`relay/${first}`);
    const inspector = page.locator(".inspector");
    const shows = async (part: string, ...texts: string[]): Promise<void> => {
      await inspector.getByRole("button", { name: part, exact: true }).click();
      for (const text of texts) await inspector.getByText(text).first().waitFor();
      await eventually(async () => expect(await inspector.innerText()).not.toContain("hidden"));
    };
    await inspector.getByText("no more attempts").waitFor();
    await shows(
      "Response 1 · 404",
      "<b>no such hook</b>",
      "The same response for 4 deliveries to this target",
    );
    await shows("Sent body", "2 bytes", "{}");
    await shows("Sent headers", `webhook-id: ${first}`, "X-A: [secret]");
    await shows("Response headers", "x-trace: abc");
    await inspector.getByRole("button", { name: "Response 1 · 404" }).click();
    await inspector.getByRole("link", { name: "Show them" }).click();
    await page.getByLabel("Target").waitFor();
    await eventually(async () => expect(await page.getByLabel("Response").inputValue()).toBe("404"));
    await page.locator("main tbody tr").nth(3).waitFor();
    await eventually(async () => expect(await page.locator("main tbody tr").count()).toBe(4));

    // Escape closes the details and returns the focus.
    const row = page.locator(`main a.row[href*="${first}"]`);
    await row.click();
    await inspector.getByRole("button", { name: "Close details" }).waitFor();
    await page.keyboard.press("Escape");
    await page.locator(`main a.row[href*="${first}"]:focus`).waitFor();
    await eventually(async () => expect(await inspector.count()).toBe(0));

    await visit.go(`relay/${first}`);
    sink.answersBy(() => 200);
    await inspector.getByRole("button", { name: "Resend" }).click();
    await inspector.getByRole("button", { name: "Response 2 · 200", exact: true }).waitFor();
    await shows("Sent body", "The body is not stored any more.");
    await inspector.getByRole("list", { name: "Attempts" }).getByRole("button", { name: "404" }).click();
    await inspector.getByRole("button", { name: "Response 1 · 404", exact: true }).waitFor();
    await eventually(async () =>
      expect(await inspector.getByRole("button", { name: "Resend" }).isDisabled()).toBe(true),
    );

    await visit.go("relay?status=failed");
    await page.getByRole("button", { name: "Failed 3" }).waitFor();
    const bar = page.getByRole("region", { name: "Selection" });
    await page.locator("main tbody input[type=checkbox]").first().check();
    await bar.getByText("1 selected").waitFor();
    await bar.getByRole("button", { name: "Select all 3 that match" }).click();
    await bar.getByText("3 selected").waitFor();
    await bar.getByRole("button", { name: "Cancel" }).click();
    await page.locator("main tbody input[type=checkbox]").first().check();
    await eventually(async () => expect(await visit.violations()).toEqual([]));
    await bar.getByRole("button", { name: "Resend 1 delivery" }).click();
    await page.getByText("Resend finished: 1 of 1 sent").waitFor();
    await page.getByRole("button", { name: "Failed 2" }).waitFor();

    // A slow one can be stopped.
    await page.getByLabel("Select all on this page").check();
    await bar.getByLabel("Rate").selectOption("1");
    await bar.getByRole("button", { name: "Resend 2 deliveries" }).click();
    const progress = page.locator(".bulk[role=status]");
    await progress.getByText(/Resend (running|finished)/).waitFor();
    await page.getByText("Resend finished: 2 of 2 sent").waitFor();
    await page.getByText("No deliveries here").waitFor();
    expect(sink.received).toHaveLength(8);
    await progress.getByRole("button", { name: "Close progress" }).click();
    await progress.waitFor({ state: "detached" });
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

test(
  "searches and filters deliveries, and stops a resend",
  async () => {
    sink.answersBy(() => 503);
    const { operator } = server;
    const send = { target_url: sink.url("/slow"), method: "POST", delay: "0s", retry_schedule: [] };
    for (let count = 0; count < 20; count += 1)
      await operator.post("/v1/relay", { ...send, payload: { customer: count === 3 ? "globex" : "acme" } });
    while (((await operator.get("/v1/relay?response_status=503")).body["deliveries"] as object[]).length < 20)
      await Bun.sleep(10);
    const visit = await Console.enter(server);
    const { page } = visit;
    await visit.go("relay?status=failed&error=5xx");
    const rows = page.locator("main tbody tr");
    await page.getByRole("button", { name: "Failed 20" }).waitFor();
    await eventually(async () =>
      expect(
        await page.getByRole("img", { name: /Deliveries over time: 0 delivered, 20 failed/ }).count(),
      ).toBe(1),
    );
    await page.getByLabel("Search URL").fill("GLOBEX");
    await rows.nth(1).waitFor({ state: "detached" });
    await rows.first().waitFor();
    await eventually(async () => expect(await rows.count()).toBe(1));
    await page.getByLabel("Search URL").fill("");
    await rows.nth(19).waitFor();
    await page.getByLabel("Select all on this page").check();
    const bar = page.getByRole("region", { name: "Selection" });
    await bar.getByLabel("Rate").selectOption("1");
    sink.answersBy(() => 200);
    await bar.getByRole("button", { name: "Resend 20 deliveries" }).click();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText(/Resend stopped: \d+ of 20 sent/).waitFor();
    const { body } = await operator.get("/v1/audit?limit=5");
    expect(JSON.stringify(body)).toContain("Resend of failed deliveries stopped");
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

test(
  "shows and rotates the signing secret, and removes it when the page is left",
  async () => {
    const visit = await Console.enter(server);
    const { page } = visit;
    await visit.go("relay");
    await page.getByRole("button", { name: "Signing secret" }).click();
    const shown = page.locator("[data-secret]");
    const secret = await shown.innerText();
    expect(secret).toBe(String((await server.operator.post("/v1/relay/secret")).body["secret"]));
    await page.getByRole("button", { name: "Rotate" }).click();
    await page.getByText("Deliveries are also signed with the previous secret until").waitFor();
    const next = String((await server.operator.post("/v1/relay/secret")).body["secret"]);
    expect(next).not.toBe(secret);
    await eventually(async () => expect(await shown.innerText()).toBe(next));
    await page.keyboard.press("Escape");
    await eventually(async () => expect(await page.locator("body").innerText()).not.toContain("whsec_"));
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

test(
  "creates a schedule, shows its next runs, runs, pauses and deletes it",
  async () => {
    sink.answersBy(() => 200);
    const visit = await Console.enter(server);
    const { page } = visit;
    await visit.go("relay");
    await page.getByRole("link", { name: "Schedules", exact: true }).click();
    await page.getByText("No schedules yet").waitFor();
    await page.getByRole("button", { name: "New schedule" }).click();
    await page.getByLabel("Name").fill("nightly");
    await page.getByLabel("Time zone").fill("Europe/Berlin");
    await page.getByLabel("URL").fill(sink.url("/cron"));
    await page.getByLabel("Schedule", { exact: true }).fill("30 2 * * *");
    await page.getByRole("button", { name: "Create schedule" }).click();
    const inspector = page.locator(".inspector");
    const next = inspector.getByRole("table", { name: "Next runs" }).locator("tbody tr");
    await next.first().waitFor();
    await eventually(async () => expect(await next.count()).toBe(5));
    await inspector.getByRole("button", { name: "Run now" }).click();
    await inspector.getByRole("table", { name: "Last runs" }).getByText("delivered").waitFor();
    await inspector.getByRole("button", { name: "Pause" }).click();
    await inspector.getByRole("button", { name: "Resume" }).waitFor();
    await eventually(async () => expect(await next.count()).toBe(0));
    await inspector.getByRole("button", { name: "Delete…" }).click();
    await page.getByRole("button", { name: "Delete schedule" }).click();
    await page.getByText("No schedules yet").waitFor();
    expect((await server.operator.get("/v1/relay/schedules")).body).toEqual({ schedules: [] });
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

test(
  "creates an endpoint, shows its secret once, sends a test event and a message, pauses and enables it",
  async () => {
    sink.answersBy(() => 200);
    sink.take();
    const visit = await Console.enter(server);
    const { page } = visit;
    await visit.go("relay/endpoints");
    await page.getByRole("button", { name: "New endpoint" }).click();
    await page.getByLabel("URL").fill(sink.url("/endpoint"));
    await page.getByLabel("Name").fill("Bookkeeping");
    await page.getByLabel("Event types").fill("order.*, invoice.paid");
    await page.getByRole("button", { name: "Create endpoint" }).click();
    await eventually(async () => expect(await page.locator("[data-secret]").innerText()).toMatch(/^whsec_/));
    await page.getByRole("button", { name: "I have saved it" }).click();
    const inspector = page.locator(".inspector");
    await inspector.getByRole("heading", { name: "Bookkeeping" }).waitFor();
    await eventually(async () => expect(await inspector.innerText()).toContain("order.*, invoice.paid"));

    await inspector.getByRole("button", { name: "Rotate secret…" }).click();
    const dialog = page.locator("dialog");
    await dialog.getByLabel("Sign with both secrets").fill("2");
    await dialog.getByRole("button", { name: "Rotate secret" }).click();
    await dialog.getByText("Deliveries are signed with both secrets until").waitFor();
    await eventually(async () =>
      expect(await dialog.locator("[data-secret]").innerText()).toMatch(/^whsec_/),
    );
    await dialog.getByRole("button", { name: "I have saved it" }).click();

    await inspector.getByRole("button", { name: "Pause" }).click();
    const message = { event_type: "order.paid", payload: { order: 7 }, message_id: "order-7" };
    await inspector.getByRole("button", { name: "Enable" }).waitFor();
    await server.operator.post("/v1/relay/messages", message);
    await inspector.getByRole("button", { name: "Enable" }).click();
    await inspector.getByText("1 delivered, 0 failed").waitFor();
    const sent = sink.take().map(({ headers }) => headers);
    expect(sent.map((headers) => headers.get("webhook-id"))).toEqual(["order-7"]);
    expect(sent[0]?.get("webhook-signature")?.split(" ")).toHaveLength(2);

    await visit.go("relay/messages/order-7");
    await inspector.getByRole("heading", { name: "order.paid" }).waitFor();
    await eventually(async () => expect(await inspector.innerText()).toContain('"order": 7'));

    await visit.go("relay/endpoints");
    await page.getByRole("link", { name: "Bookkeeping" }).click();
    await inspector.getByRole("button", { name: "Send test event" }).click();
    await inspector.getByRole("button", { name: "Response 1 · 200" }).waitFor();
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

test(
  "shows the owner of an endpoint, and creates a portal link for it",
  async () => {
    const endpoint = { url: sink.url("/acme"), owner_id: "acme", metadata: { plan: "pro" } };
    const { body } = await server.operator.post("/v1/relay/endpoints", endpoint);
    const visit = await Console.enter(server);
    const { page } = visit;
    await visit.go(`relay/endpoints/${body["endpoint_id"]}`);
    const inspector = page.locator(".inspector");
    await inspector.getByText('{"plan":"pro"}').waitFor();
    await eventually(async () => expect(await inspector.innerText()).toContain("acme"));
    await inspector.getByRole("button", { name: "Portal link" }).click();
    const form = page.locator("dialog");
    await eventually(async () => expect(await form.getByLabel("Owner").inputValue()).toBe("acme"));
    await eventually(async () => expect(await visit.violations()).toEqual([]));
    await form.getByLabel("Expires in").fill("2h");
    await form.getByLabel("Offered event types").fill("order.paid, order.refunded");
    await form.getByRole("button", { name: "Create link" }).click();
    const link = await form.locator("[data-secret]").innerText();
    await eventually(async () => expect(await visit.violations()).toEqual([]));
    await page.keyboard.press("Escape");
    await visit.expectClean();
    const token = link.slice(link.indexOf("#token=") + "#token=".length);
    const seen = await server.client(token).get("/v1/relay/portal");
    expect(seen.body).toMatchObject({ owner_id: "acme", event_types: ["order.paid", "order.refunded"] });
    const list = await server.client(token).get("/v1/relay/portal/endpoints");
    expect(list.body["endpoints"]).toMatchObject([{ endpoint_id: body["endpoint_id"] }]);
  },
  TIMEOUT_MS,
);

test(
  "replays what an endpoint missed, with a count before and the progress after",
  async () => {
    sink.answersBy(() => 200);
    const endpoint = { url: sink.url("/missing"), event_types: ["missing.sent"], state: "paused" };
    for (let sent = 0; sent < 3; sent += 1)
      await server.operator.post("/v1/relay/messages", { event_type: "missing.sent", payload: { sent } });
    const { body } = await server.operator.post("/v1/relay/endpoints", endpoint);
    const visit = await Console.enter(server);
    const { page } = visit;
    await visit.go(`relay/endpoints/${body["endpoint_id"]}`);
    const inspector = page.locator(".inspector");
    const dialog = page.locator("dialog");
    await inspector.getByRole("button", { name: "Replay missing…" }).click();
    await dialog.getByText("Enable the endpoint first").waitFor();
    await page.keyboard.press("Escape");
    await inspector.getByRole("button", { name: "Enable" }).click();
    await inspector.getByRole("button", { name: "Pause" }).waitFor();
    await inspector.getByRole("button", { name: "Replay missing…" }).click();
    await dialog.getByText("3 messages missing").waitFor();
    await eventually(async () => expect(await visit.violations()).toEqual([]));
    const since = await dialog.getByLabel("Since").inputValue();
    await dialog.getByLabel("Until").fill(since);
    await dialog.getByText("must be later than since").waitFor();
    await eventually(async () =>
      expect(await dialog.getByRole("button", { name: "Replay", exact: true }).isDisabled()).toBe(true),
    );
    await dialog.getByLabel("Until").fill("");
    await dialog.getByLabel("Rate").selectOption("50");
    await dialog.getByRole("button", { name: "Replay 3 messages" }).click();
    await page.getByText("Replay finished: 3 of 3 sent").waitFor();
    await eventually(async () => expect(await visit.violations()).toEqual([]));
    await page.getByRole("button", { name: "Close progress" }).click();
    await inspector.getByRole("button", { name: "Replay missing…" }).click();
    await dialog.getByText("0 messages missing").waitFor();
    // One that the page has not started is shown as well, and its end.
    const { body: next } = await server.operator.post("/v1/relay/endpoints", {
      ...endpoint,
      state: "live",
    });
    const path = `/v1/relay/endpoints/${next["endpoint_id"]}/recover`;
    await server.operator.post(path, { since: 0, per_second: 1 });
    await page.keyboard.press("Escape");
    await visit.go(`relay/endpoints/${next["endpoint_id"]}`);
    await page.getByText("Replay finished: 3 of 3 sent").waitFor();
    await visit.context.close();
  },
  TIMEOUT_MS,
);

test(
  "edits every field of an endpoint and does not send masked headers back",
  async () => {
    sink.answersBy(() => 200);
    sink.take();
    const visit = await Console.enter(server);
    const { page } = visit;
    const form = page.locator("dialog");
    const more = form.getByText("More", { exact: true });
    await visit.go("relay/endpoints");
    await page.getByRole("button", { name: "New endpoint" }).click();
    await form.getByLabel("URL").fill(sink.url("/all"));
    await form.getByLabel("Name").fill("All of it");
    await more.click();
    const typed = {
      Owner: "acme",
      Channels: "eu, us",
      Filter: '{"amount":{"$gte":5}}',
      Headers: "X-Api-Key: one\nAccept-Language: de",
      "Retry schedule": "none",
      Timeout: "2000",
      "Concurrent attempts": "3",
      "Attempts per second": "7",
      "Disable after": "0",
      Description: "Everything",
      "Signing secret": `whsec_${btoa("k".repeat(24))}`,
    };
    for (const [label, text] of Object.entries(typed)) await form.getByLabel(label).fill(text);
    const chosen = {
      Body: "raw",
      "Initial state": "paused",
    };
    for (const [label, value] of Object.entries(chosen))
      await form.getByLabel(label, { exact: true }).selectOption(value);
    for (const label of ["Send e-mail when", "Store responses"]) await form.getByLabel(label).uncheck();
    await eventually(async () => expect(await visit.violations()).toEqual([]));
    await page.getByRole("button", { name: "Create endpoint" }).click();
    await eventually(async () =>
      expect(await page.locator("[data-secret]").innerText()).toBe(typed["Signing secret"]),
    );
    await page.getByRole("button", { name: "I have saved it" }).click();
    const inspector = page.locator(".inspector");
    await inspector.getByRole("heading", { name: "All of it" }).waitFor();
    const read = async () =>
      (await server.operator.get("/v1/relay/endpoints?name=All%20of%20it")).body["endpoints"] as object[];
    const made = {
      url: sink.url("/all"),
      event_types: [],
      owner_id: "acme",
      channels: ["eu", "us"],
      filter: { amount: { $gte: 5 } },
      headers: { "X-Api-Key": "[secret]", "Accept-Language": "de" },
      description: "Everything",
      format: "raw",
      retry_schedule: [],
      timeout_ms: 2_000,
      max_concurrency: 3,
      max_per_second: 7,
      disable_after_hours: 0,
      notify_email: false,
      keep_responses: false,
      state: "paused",
    };
    expect(await read()).toMatchObject([made]);

    await inspector.getByRole("button", { name: "Settings…" }).click();
    await more.click();
    await eventually(async () => expect(await form.getByLabel("Retry schedule").inputValue()).toBe("none"));
    // What is wrong under More is shown, though it was folded.
    await form.getByLabel("Concurrent attempts").fill("1.5");
    await more.click();
    await page.getByRole("button", { name: "Save" }).click();
    await form.getByLabel("Concurrent attempts").fill("4");
    await form.getByLabel("Attempts per second").fill("");
    await form.getByLabel("Retry schedule").fill("5s, 2h");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Endpoint updated").waitFor();
    const changed = { ...made, max_concurrency: 4, max_per_second: null, retry_schedule: ["5s", "2h"] };
    expect(await read()).toMatchObject([changed]);

    await inspector.getByRole("button", { name: "Settings…" }).click();
    await more.click();
    await form.getByLabel("Headers").fill("X-Api-Key: [secret]\nAccept-Language: fr");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Enter the value of the header X-Api-Key again").waitFor();
    await form.getByLabel("Filter").fill('{"amount":');
    await page.getByRole("button", { name: "Save" }).click();
    await eventually(async () => expect(await form.locator("textarea[name=filter]:invalid").count()).toBe(1));
    await page.getByRole("button", { name: "Cancel" }).click();
    await inspector.getByRole("button", { name: "Enable" }).click();
    await inspector.getByRole("button", { name: "Send test event" }).click();
    await inspector.getByRole("button", { name: "Response 1 · 200" }).waitFor();
    const [sent] = sink.take();
    expect([sent?.headers.get("x-api-key"), sent?.headers.get("accept-language")]).toEqual(["one", "de"]);
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

test(
  "deletes an endpoint after a confirmation",
  async () => {
    const endpoint = { name: "Old shop", url: "https://example.com/hook" };
    const id = String((await server.operator.post("/v1/relay/endpoints", endpoint)).body["endpoint_id"]);
    const read = async () => (await server.operator.get(`/v1/relay/endpoints/${id}`)).status;
    const visit = await Console.enter(server);
    const { page } = visit;
    await visit.go(`relay/endpoints/${id}`);
    await page.getByRole("button", { name: "Delete…" }).click();
    const dialog = page.locator("dialog");
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await dialog.waitFor({ state: "detached" });
    expect(await read()).toBe(200);
    await page.getByRole("button", { name: "Delete…" }).click();
    await dialog.getByText("Delete Old shop?").waitFor();
    await dialog.getByRole("button", { name: "Delete endpoint" }).click();
    await page.getByText("Endpoint deleted").waitFor();
    expect(await read()).toBe(404);
    // The browser itself notes in its console that a request was answered with an error.
    expect(visit.faults.splice(0).every((fault) => fault.includes("404"))).toBe(true);
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

test(
  "an event type is created and changed, and the forms close",
  async () => {
    const visit = await Console.enter(server);
    const { page } = visit;
    await visit.go("relay/event-types?new=1");
    await page.getByLabel("Name", { exact: true }).fill("invoice.voided");
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByLabel("Description").fill("A voided invoice.");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("link", { name: "invoice.voided" }).click();
    await page.getByRole("button", { name: "Settings…" }).click();
    await page.getByLabel("Description").fill("An invoice was voided.");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    const path = "/v1/relay/event-types/invoice.voided";
    expect((await server.operator.get(path)).body).toMatchObject({ description: "An invoice was voided." });
    await visit.expectClean();
  },
  TIMEOUT_MS,
);
