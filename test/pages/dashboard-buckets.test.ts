import { expect, test } from "bun:test";
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
    await page.getByLabel("Previous secret").fill("an-older-secret");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Bucket updated").waitFor();
    const { body } = await server.operator.get("/v1/catch/buckets");
    expect((body["buckets"] as object[])[0]).toMatchObject({
      provider: "custom",
      has_signing_secret: true,
      deduplicate_hours: 24,
      invalid_status: 401,
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
