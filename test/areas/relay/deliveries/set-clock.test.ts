import { afterEach, beforeEach, expect, jest, spyOn, test } from "bun:test";
import { realDelay } from "../../../../src/kernel/time/clock.ts";
import { until } from "../../../support/eventually.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { WebhookSink } from "../../../support/webhook-sink.ts";

const HOUR = 60 * 60 * 1000;

let server: TestServer;
let account: AccountClient;
let sink: WebhookSink;
/** Offset of the machine's wall clock. */
let ahead = 0;

beforeEach(async () => {
  ahead = 0;
  spyOn(Date, "now").mockImplementation(() => Math.floor(performance.timeOrigin + performance.now()) + ahead);
  sink = new WebhookSink();
  server = await startTestServer({ args: ["--allow-private-targets", "127.0.0.0/8"] });
  account = await server.account();
});
afterEach(async () => {
  await server.stop();
  sink.stop();
  jest.restoreAllMocks();
});

async function schedule(delay: string): Promise<void> {
  const body = { target_url: sink.url("/"), method: "POST", delay, payload: {}, headers: {} };
  expect((await account.post("/v1/relay", body)).status).toBe(201);
}

/** Waits until a number of requests have arrived. What waits for the wall clock waits for hours. */
function untilReceived(count: number): Promise<void> {
  return until(() => sink.received.length >= count);
}

test("a delivery is not late because the machine's clock jumps forward and back", async () => {
  await schedule("1h");
  await realDelay(20);
  ahead = 2 * HOUR;
  await untilReceived(1);
  await schedule("1s");
  ahead = -3 * HOUR;
  await untilReceived(2);
  await schedule("1s");
  await untilReceived(3);
  expect(sink.received).toHaveLength(3);
});
