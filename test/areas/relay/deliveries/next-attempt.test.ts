import { afterAll, beforeAll, expect, test } from "bun:test";
import { eventually } from "../../../support/eventually.ts";
import { startTestServer, type TestServer } from "../../../support/server.ts";
import { WebhookSink } from "../../../support/webhook-sink.ts";

let server: TestServer;
let sink: WebhookSink;
beforeAll(async () => {
  sink = new WebhookSink();
  server = await startTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });
});
afterAll(async () => {
  sink.stop();
  await server.stop();
});

test("a delivery says when its next attempt is, until it is finished", async () => {
  sink.answersBy(() => 500);
  const account = await server.account();
  const terms = { target_url: sink.url(), method: "POST", delay: "10s", retry_schedule: ["1h"] };
  const { body } = await account.post("/v1/relay", terms);
  const read = async () => (await account.get(`/v1/relay/${body["relay_id"]}`)).body;
  const planned = server.clock.now() + 10_000;
  expect(await read()).toMatchObject({ status: "scheduled", next_attempt_at: planned });
  await server.clock.advance(10_000);
  await eventually(async () => expect(await read()).toMatchObject({ status: "delivering", attempts: 1 }));
  const next = Number((await read())["next_attempt_at"]);
  // A retry varies by a tenth.
  expect(Math.abs(next - planned - 3_600_000)).toBeLessThanOrEqual(360_000 + 1_000);
  const [listed] = (await account.get("/v1/relay")).body["deliveries"] as object[];
  expect(listed).toMatchObject({ next_attempt_at: next });
  await server.clock.advance(next - server.clock.now());
  await eventually(async () =>
    expect(await read()).toMatchObject({ status: "failed", next_attempt_at: null }),
  );
});
