import { afterAll, beforeAll, expect, test } from "bun:test";
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

test(
  "creates a channel, tests it, updates it without its secret, selects it for a monitor, and deletes it",
  async () => {
    const visit = await Console.enter(server);
    const { page } = visit;
    await visit.go("monitors");
    await page.getByRole("button", { name: "Channels", exact: true }).click();
    await page.getByText("No channels here").waitFor();
    await visit.go("monitors?new=heartbeat");
    await page.getByRole("link", { name: "create a channel" }).waitFor();
    await visit.go("monitors/channels");
    await page.getByRole("button", { name: "New channel" }).click();
    await page.getByLabel("Name", { exact: true }).fill("Ops phone");
    await page.getByLabel("Kind").selectOption("gotify");
    await page.getByLabel("URL").fill(sink.url("/gotify"));
    await page.getByLabel("Token").fill("s3cret");
    await page.getByLabel("is acknowledged").check();
    await page.getByLabel("Remind while a target is down").selectOption("6h");
    await page.getByLabel("Default for monitors without channels").uncheck();
    await page.getByRole("button", { name: "Create channel" }).click();
    await page.getByText("Channel created. Send a test.").waitFor();
    await page.getByRole("button", { name: "Test Ops phone" }).click();
    await page.getByText("Test sent to Ops phone").waitFor();
    expect(sink.take().map(({ path }) => path)).toEqual(["/gotify/message"]);
    await page.getByRole("button", { name: "Edit Ops phone" }).click();
    await page.getByLabel("Name", { exact: true }).fill("Ops");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("button", { name: "Test Ops" }).click();
    await page.getByText("Test sent to Ops", { exact: true }).waitFor();
    expect(sink.take()[0]?.headers.get("x-gotify-key")).toBe("s3cret");
    const [channel] = (await server.operator.get("/v1/pulse/channels")).body["channels"] as { id: string }[];
    expect(channel).toMatchObject({
      name: "Ops",
      kind: "gotify",
      default: false,
      remind: "6h",
      last_error: null,
    });
    expect(channel).toMatchObject({ config: { token: "[secret]" } });

    const monitor = { url: sink.url("/site"), interval: 300_000, name: "Shop" };
    const { body: made } = await server.operator.post("/v1/pulse", monitor);
    await visit.go(`monitors/${made["id"]}`);
    await page.getByRole("button", { name: "Edit…" }).click();
    await page.getByLabel("The project's default channels").uncheck();
    await page.getByLabel("Ops", { exact: true }).check();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Monitor updated").waitFor();
    const { body: chosen } = await server.operator.get(`/v1/pulse/${made["id"]}`);
    expect(chosen["channels"]).toEqual([channel?.id]);

    await visit.go("monitors/channels");
    await page.getByRole("button", { name: "Delete Ops" }).click();
    await page.getByRole("button", { name: "Delete channel" }).click();
    await page.getByText("No channels here").waitFor();
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

test(
  "shows and acknowledges the incident of an outage; creates, publishes and resolves a manual one",
  async () => {
    sink.answers(500);
    const monitor = { url: sink.url("/site"), interval: 300_000, name: "Basket" };
    const { body: made } = await server.operator.post("/v1/pulse", monitor);
    await server.operator.post(`/v1/pulse/${made["id"]}/check`);
    const visit = await Console.enter(server);
    const { page } = visit;
    await visit.go(`monitors/${made["id"]}`);
    await page.getByRole("link", { name: "open", exact: true }).click();
    const inspector = page.locator(".inspector");
    await inspector.getByText("the target responded with 500").waitFor();
    await inspector.getByRole("button", { name: "Acknowledge" }).click();
    await page.getByText("Acknowledged. The alert will not be repeated.").waitFor();
    await inspector.getByRole("button", { name: "Acknowledge" }).waitFor({ state: "detached" });

    await page.getByRole("button", { name: "New incident" }).click();
    await page.getByLabel("Title").fill("Payments fail");
    await page.getByRole("dialog").getByLabel("Message").fill("We look into it.");
    await page.getByRole("button", { name: "Open incident" }).click();
    await inspector.getByRole("heading", { name: "Payments fail" }).waitFor();
    await inspector.getByRole("button", { name: "Publish" }).click();
    await inspector.getByRole("button", { name: "Hide" }).waitFor();
    await inspector.getByLabel("State").selectOption("resolved");
    await inspector.getByLabel("Message").fill("All is well.");
    await inspector.getByRole("button", { name: "Post update" }).click();
    await inspector.getByRole("table", { name: "Updates" }).getByText("All is well.").waitFor();
    await inspector.getByRole("button", { name: "Post update" }).waitFor({ state: "detached" });
    const { body } = await server.operator.get("/v1/pulse/incidents?status=resolved");
    expect(body["incidents"]).toMatchObject([{ title: "Payments fail", public: true }]);
    await visit.expectClean();
  },
  TIMEOUT_MS,
);
