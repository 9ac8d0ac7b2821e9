import { expect, test } from "bun:test";
import { expectError } from "../../../support/errors.ts";
import { relayStage } from "../support.ts";

const MINUTE = 60_000;
const TYPE = "report.due";

const stage = relayStage();

const advance = (ms: number) => stage.server.clock.advance(ms);
const balance = async () => Number((await stage.account.get("/v1/meter/balance")).body["balance"]);

async function addEndpoint(path: string, more: object = {}): Promise<string> {
  const body = { url: stage.sink.url(path), event_types: [TYPE], format: "raw", ...more };
  const answer = await stage.account.post("/v1/relay/endpoints", body);
  expect(answer.status, answer.text).toBe(201);
  return String(answer.body["endpoint_id"]);
}

async function addSchedule(more: object = {}): Promise<string> {
  const body = { cron: "* * * * *", event_type: TYPE, payload: { n: 1 }, ...more };
  const answer = await stage.account.post("/v1/relay/schedules", body);
  expect(answer.status, answer.text).toBe(201);
  expect(answer.body).toMatchObject({ event_type: TYPE, target_url: null });
  return `/v1/relay/schedules/${answer.body["schedule_id"]}`;
}

const read = async (path: string) => (await stage.account.get(path)).body;

test("a run sends a message to all matching endpoints, for 1 credit and 1 each", async () => {
  await addEndpoint("/one");
  await addEndpoint("/two");
  await addEndpoint("/other", { event_types: ["other.*"] });
  const schedule = await addSchedule();
  const before = await balance();
  await advance(2 * MINUTE);
  const received = stage.sink.take().map(({ path, body }) => [path, body]);
  expect(received.sort()).toEqual([
    ["/one", '{"n":1}'],
    ["/one", '{"n":1}'],
    ["/two", '{"n":1}'],
    ["/two", '{"n":1}'],
  ]);
  expect(await balance()).toBe(before - 6);
  const { last_message_id, ...after } = await read(schedule);
  expect(after).toMatchObject({ runs: 2, skipped: 0, last_relay_id: null });
  const message = await read(`/v1/relay/messages/${last_message_id}`);
  expect(message).toMatchObject({ event_type: TYPE, payload: { n: 1 } });
  await stage.account.delete(schedule);
});

test("its deliveries have the schedule_id and the header with its time, also when resent", async () => {
  const endpointId = await addEndpoint("/timed", {
    headers: { "X-Ninefold-Scheduled-At": "1", "X-Own": "own" },
  });
  const schedule = await addSchedule();
  const { next_run_at, schedule_id } = await read(schedule);
  await advance(MINUTE);
  await stage.account.delete(schedule);
  const { body } = await stage.account.get(`/v1/relay?schedule_id=${schedule_id}`);
  const [delivery] = body["deliveries"] as {
    schedule_id: string;
    message_id: string;
    scheduled_for: number;
  }[];
  expect(delivery).toMatchObject({ schedule_id, scheduled_for: next_run_at });
  await advance(MINUTE);
  const again = { endpoint_id: endpointId };
  await stage.account.post(`/v1/relay/messages/${delivery?.message_id}/resend`, again);
  await advance(1);
  const times = stage.sink.take().map(({ headers }) => headers.get("x-ninefold-scheduled-at"));
  expect(times).toEqual([String(next_run_at), String(next_run_at)]);
});

test("a manual run returns the message, and is rejected without enough credits", async () => {
  const schedule = await addSchedule({ state: "paused" });
  // No endpoint matches: only the run costs.
  const before = await balance();
  const alone = await stage.account.post(`${schedule}/run`);
  expect([alone.status, Object.keys(alone.body)]).toEqual([201, ["message_id"]]);
  expect(await balance()).toBe(before - 1);
  await addEndpoint("/one");
  const { body } = await stage.account.post(`${schedule}/run`);
  await advance(0);
  expect(stage.sink.take().map(({ headers }) => headers.get("webhook-id"))).toEqual([
    String(body["message_id"]),
  ]);
  await stage.account.post("/v1/meter/deduct", { amount: (await balance()) - 1 });
  expectError(await stage.account.post(`${schedule}/run`), "insufficient_balance");
  expect(await read(schedule)).toMatchObject({ runs: 2, last_message_id: body["message_id"] });
  expect(await balance()).toBe(1);
});

test("without enough credits for all deliveries a run is skipped", async () => {
  await addEndpoint("/one");
  const schedule = await addSchedule();
  await stage.account.post("/v1/meter/deduct", { amount: (await balance()) - 1 });
  await advance(MINUTE);
  expect(stage.sink.take()).toEqual([]);
  expect(await read(schedule)).toMatchObject({ runs: 0, skipped: 1 });
  expect(await balance()).toBe(1);
});

test("overlap skip waits until all deliveries of the previous message are finished", async () => {
  const endpoint = await addEndpoint("/slow", { state: "paused" });
  const schedule = await addSchedule({ overlap: "skip" });
  await advance(3 * MINUTE);
  expect(await read(schedule)).toMatchObject({ runs: 1, skipped: 2 });
  await stage.account.patch(`/v1/relay/endpoints/${endpoint}`, { state: "live" });
  await advance(MINUTE);
  expect(await read(schedule)).toMatchObject({ runs: 2, skipped: 2 });
});

test("a schedule can change between a target and a message", async () => {
  const schedule = await addSchedule({ state: "paused" });
  const target_url = stage.sink.url("/own");
  expect((await stage.account.patch(schedule, { target_url })).body).toMatchObject({
    target_url,
    event_type: null,
  });
  expect((await stage.account.patch(schedule, { event_type: TYPE })).body).toMatchObject({
    target_url: null,
    event_type: TYPE,
  });
});
