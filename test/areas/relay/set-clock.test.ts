import { afterEach, beforeEach, expect, jest, spyOn, test } from "bun:test";
import { monotonicMs, realDelay } from "../../../src/kernel/time/clock.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import { WebhookSink } from "../../support/webhook-sink.ts";

const HOUR = 60 * 60 * 1000;
/** Longest delay because of a jump, and on a machine that is busy with other things. Without the repair it is hours. */
const LATE_MAX_MS = 1_000 + 10_000;

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

/** Milliseconds until a number of requests have arrived. */
async function untilReceived(count: number, patienceMs: number): Promise<number> {
  const start = monotonicMs();
  while (sink.received.length < count && monotonicMs() - start < patienceMs) await realDelay(5);
  return monotonicMs() - start;
}

test("a delivery is not a second late because the machine's clock jumps forward and back", async () => {
  await schedule("1h");
  await realDelay(20);
  ahead = 2 * HOUR;
  expect(await untilReceived(1, 20_000)).toBeLessThan(LATE_MAX_MS);
  await schedule("1s");
  ahead = -3 * HOUR;
  expect(await untilReceived(2, 20_000)).toBeLessThan(1_000 + LATE_MAX_MS);
  await schedule("1s");
  expect(await untilReceived(3, 20_000)).toBeLessThan(1_000 + LATE_MAX_MS);
  expect(sink.received).toHaveLength(3);
});
