import { describe, expect, test } from "bun:test";
import { EXACT_NUMBERS_MAX } from "../../../../src/json-text.ts";
import { Messaging } from "../messages-support.ts";
import { relayStage } from "../support.ts";

const stage = relayStage();
const messaging = new Messaging(stage);

const LONG = JSON.rawJSON("1234567890123456789");

/** The text of `data` in the only request that was received. */
function receivedData(): string {
  const [request] = stage.sink.take();
  return /"data":(.*)\}$/.exec(request?.body ?? "")?.[1] ?? "";
}

describe("a payload with a number that a double cannot hold is sent with its digits", () => {
  test.each([
    ["in the test of an endpoint", (id: string) => `/v1/relay/endpoints/${id}/test`],
    ["in a message", () => "/v1/relay/messages"],
  ])("%s", async (_, pathOf) => {
    const endpoint = await messaging.endpoint("/a");
    const payload = { id: LONG, amount: JSON.rawJSON("1e400") };
    const sent = await stage.account.post(pathOf(endpoint), { event_type: "a.b", payload });
    expect(sent.status, sent.text).toBe(201);
    await messaging.settle();
    expect(receivedData()).toBe('{"id":1234567890123456789,"amount":1e400}');
  });

  test("in a message of a schedule", async () => {
    await messaging.endpoint("/a");
    const schedule = { cron: "* * * * *", event_type: "a.b", payload: { id: LONG } };
    const created = await stage.account.post("/v1/relay/schedules", schedule);
    expect(created.status, created.text).toBe(201);
    await stage.account.post(`/v1/relay/schedules/${String(created.body["schedule_id"])}/run`);
    await messaging.settle();
    expect(receivedData()).toBe('{"id":1234567890123456789}');
  });
});

test("a filter compares all digits of a payload, in messages and batches", async () => {
  await messaging.endpoint("/a", { filter: { id: "9007199254740993" } });
  await messaging.endpoint("/b", { filter: { id: { $gt: 9007199254740991 } } });
  await messaging.send({ id: 9007199254740992 });
  await messaging.send({ id: JSON.rawJSON("9007199254740993") });
  const messages = ["9007199254740994", "9007199254740993"].map((id) => ({
    event_type: "a.b",
    payload: { id: JSON.rawJSON(id) },
  }));
  const { body } = await stage.account.post("/v1/relay/messages/batch", { messages });
  const sent = body["messages"] as { deliveries: unknown[] }[];
  expect(sent.map(({ deliveries }) => deliveries.length)).toEqual([1, 2]);
  await messaging.settle();
  expect(messaging.takenPaths()).toEqual(["/a", "/a", "/b", "/b", "/b", "/b"]);
});

test("a filter compares the nearest doubles of a payload with more such numbers than are read", async () => {
  await messaging.endpoint("/a", { filter: { id: { $gt: 9007199254740991 } } });
  const ids = Array(EXACT_NUMBERS_MAX + 1).fill(LONG);
  await messaging.send({ id: JSON.rawJSON("9007199254740993"), ids });
  await messaging.settle();
  expect(messaging.takenPaths()).toEqual(["/a"]);
});
