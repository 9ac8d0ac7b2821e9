import { expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import { WebhookSink } from "../support/webhook-sink.ts";
import { TIMEOUT_MS } from "./browser.ts";
import { Console, useConsole } from "./console.ts";

const server = useConsole({ args: ["--allow-private-targets", "127.0.0.0/8"] });

test(
  "creates a bucket with a recipe, updates it, sends a test event, and shows it",
  async () => {
    const visit = await Console.enter(server);
    const { page } = visit;
    await visit.go("catch?new=1");
    await page.getByLabel("Target URL").fill(server.url);
    await page.getByLabel("Provider").selectOption("meta");
    await page.getByLabel("Verify token").waitFor();
    await page.getByLabel("Provider").selectOption("custom");
    await page.getByLabel("Signing secret").fill("a-secret");
    await page.getByRole("button", { name: "Create bucket" }).click();

    await page.getByRole("button", { name: "Edit…" }).click();
    await page.getByText("More", { exact: true }).click();
    await page.getByLabel("GET", { exact: true }).check();
    await page.getByLabel("Deduplication window (hours)").fill("24");
    await page.getByLabel("Response to them").selectOption("401");
    await page.getByLabel("Retry schedule").fill("5s, 5m");
    await page.getByLabel("Previous secret").fill("an-older-secret");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Bucket updated").waitFor();
    const { body } = await server.operator.get("/v1/catch/buckets");
    expect((body["buckets"] as object[])[0]).toMatchObject({
      provider: "custom",
      has_signing_secret: true,
      deduplicate_hours: 24,
      invalid_status: 401,
      retry_schedule: ["5s", "5m"],
      methods: ["GET", "POST", "PUT", "PATCH", "DELETE"],
      response: null,
      retention_hours: null,
      previous_expires_at: expect.stringContaining("T"),
    });

    await page.getByRole("button", { name: "Send test event…" }).click();
    await page.getByLabel("Method").selectOption("PUT");
    await page.getByLabel("Path after the bucket's URL").fill("orders?shop=1");
    await page
      .getByRole("textbox", { name: "Headers", exact: true })
      .fill("Content-Type: text/plain\nX-Two: 2");
    await page.getByRole("textbox", { name: "Body", exact: true }).fill('{"id":1234567890123456789}');
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.getByText("The bucket returned 401: accepted, signature invalid").waitFor();

    await page.locator("main a.row").first().click();
    await page.getByRole("button", { name: "Headers", exact: true }).click();
    const shown = await page.locator(".inspector").innerText();
    for (const text of ["PUT /orders?shop=1", "127.0.0.1", "x-two", "text/plain"])
      expect(shown).toContain(text);
    await page.getByRole("button", { name: "Body", exact: true }).click();
    await page.getByText('"id": 1234567890123456789').waitFor();
  },
  TIMEOUT_MS,
);

test(
  "shows when and why the retries of an event ended",
  async () => {
    const target = new WebhookSink();
    target.answers(410);
    const terms = { name: "gone", target_url: target.url(), retry_schedule: ["1h"] };
    const { body: bucket } = await server.operator.post("/v1/catch/buckets", terms);
    const id = String(bucket["id"]);
    await server.operator.patch(`/v1/catch/buckets/${id}`, { state: "live" });
    await server.client(null).post(`/v1/catch/${id}`, { a: 1 });
    const visit = await Console.enter(server);
    await visit.go(`catch/${id}`);
    const { page } = visit;
    await page.locator("main a.row").first().click();
    await page.getByText("no more attempts: the target rejected the event for good").waitFor();
    await page.getByText("the target responded with 410").waitFor();

    // A replay goes to the bucket's current target, and does not redirect live traffic.
    await page.getByLabel("Select all on this page").check();
    const bar = page.getByRole("region", { name: "Selection" });
    await bar.getByText(`sent to the current target of the bucket, ${target.url()},`).waitFor();
    await bar.getByText("A replay does not redirect live traffic.").waitFor();
    await eventually(async () => expect(await visit.violations()).toEqual([]));
    const other = new WebhookSink();
    await server.operator.patch(`/v1/catch/buckets/${id}`, { target_url: other.url("/other") });
    await bar.getByText(`${other.url("/other")},`).waitFor();
    target.take();
    await bar.getByRole("button", { name: "Replay 1 event" }).click();
    await page.getByText("Replay finished: 1 of 1 sent · 1 delivered").waitFor();
    expect([target.take().length, other.take().map(({ path }) => path)]).toEqual([0, ["/other"]]);
    await server.client(null).post(`/v1/catch/${id}`, { a: 2 });
    await page.locator("main tbody tr").nth(1).waitFor();
    await page.getByRole("button", { name: "Delivered 2" }).waitFor();
    expect(other.take()).toHaveLength(1);
    other.stop();
    target.stop();
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

test(
  "chooses endpoints as targets, shows an event's deliveries, and replays it to them",
  async () => {
    const target = new WebhookSink();
    for (const name of ["orders", "archive"])
      await server.operator.post("/v1/relay/endpoints", { name, url: target.url(`/${name}`) });
    const visit = await Console.enter(server);
    const { page } = visit;
    await visit.go("catch?new=1");
    await page.getByLabel("Delivery").selectOption("endpoints");
    await page.getByLabel("orders").check();
    await page.getByLabel("archive").check();
    await page.getByRole("button", { name: "Create bucket" }).click();
    await page.getByText("delivers to 2 endpoints").waitFor();
    const bucket = async (): Promise<{ id: string; targets: object[]; target_url: string | null }> => {
      const { body } = await server.operator.get("/v1/catch/buckets");
      return (body["buckets"] as never[])[0] as never;
    };
    const { id, targets } = await bucket();
    expect(targets.length).toBe(2);
    await page.getByRole("button", { name: "Resume" }).click();
    await server.client(null).post(`/v1/catch/${id}`, { a: 1 });
    await page.locator("main a.row").first().click();
    await page.getByRole("table", { name: "Deliveries" }).waitFor();
    await eventually(async () => expect(await page.locator(".inspector").innerText()).toContain("ep_"));
    await page.getByRole("button", { name: "Replay", exact: true }).click();
    await page.getByText("Queued: 2 deliveries").waitFor();

    await page.getByRole("button", { name: "Edit…" }).click();
    await page.getByLabel("archive").uncheck();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("delivers to 1 endpoint").waitFor();
    await page.getByRole("button", { name: "Edit…" }).click();
    await page.getByLabel("Delivery").selectOption("push");
    await page.getByLabel("Target URL").fill(server.url);
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("forwards to").waitFor();
    expect(await bucket()).toMatchObject({ targets: [], target_url: server.url });
    target.stop();
  },
  TIMEOUT_MS,
);
