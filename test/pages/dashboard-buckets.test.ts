import { expect, test } from "bun:test";
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

    await page.getByRole("button", { name: "Settings…" }).click();
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
    await page.getByRole("textbox", { name: "Body", exact: true }).fill("hello");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.getByText("The bucket returned 401: accepted, signature invalid").waitFor();

    await page.locator("main a.row").first().click();
    await page.getByRole("button", { name: "Headers", exact: true }).click();
    const shown = await page.locator(".inspector").innerText();
    for (const text of ["PUT /orders?shop=1", "127.0.0.1", "x-two", "text/plain"])
      expect(shown).toContain(text);
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
    await page.getByRole("button", { name: "Attempts", exact: true }).click();
    await page.getByText("Retries ended").waitFor();
    const shown = await page.locator(".inspector").innerText();
    expect(shown).toContain("The target rejected the event for good.");
    expect(shown).toContain("the target responded with 410");
    target.stop();
  },
  TIMEOUT_MS,
);
