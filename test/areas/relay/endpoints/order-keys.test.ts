import { beforeEach, describe, expect, test } from "bun:test";
import { ORDER_KEY_LENGTH_MAX, ORDER_WAIT_MS_MAX } from "../../../../src/areas/relay/endpoints/schema.ts";
import { expectError } from "../../../support/errors.ts";
import { messagingStage } from "../messages-support.ts";

const { stage, messaging } = messagingStage();
beforeEach(() => {
  tests += 1;
});

const advance = (ms: number) => stage.server.clock.advance(ms);
const TERMS = { retry_schedule: ["10s", "10s"] };

/** Each test has a path of its own: retries of earlier tests arrive later. */
let tests = 0;
const endpoint = (terms: object = {}) => messaging.endpoint(`/${tests}`, terms);
const taken = () => messaging.takenNumbers(`/${tests}`);

/** Rejects these numbers of payloads. */
function failing(...numbers: number[]): void {
  stage.sink.answersBy(({ body }) => {
    const { n } = (JSON.parse(body) as { data: { n: number } }).data;
    return numbers.includes(n) ? 500 : 200;
  });
}

/** Sends messages with a key. Returns their deliveries to an endpoint. */
async function sendMany(id: string, keys: readonly (string | undefined)[], first = 0): Promise<string[]> {
  const ids: string[] = [];
  for (const [at, order_key] of keys.entries())
    ids.push((await messaging.send({ n: first + at }, { order_key }))[id] ?? "");
  return ids;
}

const waitingFor = async (relayId = "") => (await stage.read(relayId))["waiting_for"];

test("a failing delivery holds those of its key alone, which use no attempts, also over a restart", async () => {
  const id = await endpoint(TERMS);
  failing(0);
  const [head = "", held = "", , last = ""] = await sendMany(id, ["a", "a", "b", "a", undefined]);
  await messaging.settle();
  expect(taken().sort()).toEqual([0, 2, 4]);
  expect(await stage.read(held ?? "")).toMatchObject({ status: "scheduled", attempts: 0, waiting_for: head });
  expect([await waitingFor(head), await waitingFor(last)]).toEqual([null, head]);
  const listed = (await stage.account.get("/v1/relay?status=scheduled")).body["deliveries"];
  expect((listed as { waiting_for: string }[]).map(({ waiting_for }) => waiting_for)).toEqual([head, head]);
  await stage.restart();
  failing();
  await advance(11_000);
  await messaging.settle();
  expect(taken()).toEqual([0, 1, 3]);
  expect((await messaging.read(id)).counts).toMatchObject({ waiting: 0, delivered_24h: 5 });
});

test("a delivery that fails for good, and one that is cancelled, free the next one", async () => {
  const id = await endpoint({ retry_schedule: [] });
  await messaging.patch(id, { state: "paused" });
  const [head, held] = await sendMany(id, ["a", "a", "a", "a"]);
  await messaging.settle();
  expect(await waitingFor(held)).toBe(String(head));
  for (const item of [held, head])
    expect((await stage.account.delete(`/v1/relay/${String(item)}`)).status).toBe(200);
  failing(2);
  await messaging.patch(id, { state: "live" });
  await messaging.settle();
  expect(taken()).toEqual([2, 3]);
});

test("an unfinished delivery holds the others for order_wait_ms after its first attempt, and keeps its retries", async () => {
  const id = await endpoint({ retry_schedule: Array(5).fill("10s"), order_wait_ms: 15_000 });
  failing(0);
  const [head, held] = await sendMany(id, ["a", "a", "a"]);
  await messaging.settle();
  await advance(12_000);
  expect(taken()).toEqual([0, 0]);
  expect(await waitingFor(held)).toBe(String(head));
  await advance(4_000);
  await messaging.settle();
  expect(taken()).toEqual([1, 2]);
  failing();
  await advance(20_000);
  expect(taken()).toEqual([0]);
  expect((await stage.read(head ?? "")).status).toBe("delivered");
});

test("with order_wait_ms 0, a failed attempt frees the next one", async () => {
  const id = await endpoint({ ...TERMS, order_wait_ms: 0 });
  failing(0);
  await sendMany(id, ["a", "a"]);
  await messaging.settle();
  expect(taken()).toEqual([0, 1]);
});

describe("order_by", () => {
  test("is the text or number at a pointer; the message's key wins, and other values have no order", async () => {
    const id = await endpoint({ ...TERMS, order_by: "/who/id" });
    failing(0, 10);
    const send = async (n: number, who: unknown, change: object = {}) =>
      (await messaging.send({ n, who: { id: who } }, change))[id];
    const [text, number] = [await send(0, "x"), await send(10, 7)];
    const held = [
      [await send(1, "x"), text],
      [await send(2, 7), number],
      [await send(3, "other", { order_key: "x" }), text],
    ] as const;
    for (const value of [null, true, ["x"], { x: 1 }, "y", undefined]) await send(20, value);
    await messaging.settle();
    for (const [delivery, head] of held) expect(await waitingFor(delivery)).toBe(String(head));
    expect(taken().sort((a, b) => a - b)).toEqual([0, 10, ...Array<number>(6).fill(20)]);
  });

  test("tells numbers beyond doubles, and long texts, apart", async () => {
    const id = await endpoint({ ...TERMS, order_by: "/id" });
    failing(0);
    const long = "x".repeat(ORDER_KEY_LENGTH_MAX);
    const send = async (text: string): Promise<string> => {
      const body = `{"event_type":"a","payload":${text}}`;
      const sent = (await stage.account.post("/v1/relay/messages", body)).body["deliveries"];
      const found = (sent as { endpoint_id: string; relay_id: string }[]).find(
        (one) => one.endpoint_id === id,
      );
      return found?.relay_id ?? "";
    };
    const keys = ["9007199254740993", `"${long}1"`];
    const heads: string[] = [];
    for (const key of keys) heads.push(await send(`{"n":0,"id":${key}}`));
    await messaging.settle();
    for (const [at, key] of keys.entries())
      expect(await waitingFor(await send(`{"n":1,"id":${key}}`))).toBe(heads[at] ?? "");
    for (const key of ["9007199254740992", `"${long}2"`])
      expect(await waitingFor(await send(`{"n":1,"id":${key}}`))).toBeNull();
  });
});

test("a message for later takes its place when it is due", async () => {
  const id = await endpoint(TERMS);
  failing(1);
  const later = (await messaging.send({ n: 0 }, { order_key: "a", delay: "5s" }))[id];
  const head = (await messaging.send({ n: 1 }, { order_key: "a" }))[id];
  await messaging.settle();
  expect(await waitingFor(later)).toBeNull();
  await advance(6_000);
  await messaging.settle();
  expect(await waitingFor(later)).toBe(String(head));
  expect(taken()).toEqual([1]);
  failing();
  await advance(10_000);
  await messaging.settle();
  expect(taken()).toEqual([1, 0]);
});

test("with one concurrent attempt, the order of the endpoint goes before", async () => {
  const id = await endpoint({ ...TERMS, max_concurrency: 1, order_wait_ms: 0 });
  failing(0);
  const [, second] = await sendMany(id, ["a", "a", "b"]);
  await messaging.settle();
  expect(taken()).toEqual([0]);
  expect(await waitingFor(second)).toBeNull();
});

test("a recovery and resends of failed deliveries keep the order", async () => {
  const id = await endpoint({ retry_schedule: [] });
  failing(0, 1, 2);
  await sendMany(id, ["a", "a", "a"]);
  await messaging.settle();
  expect(taken()).toEqual([0, 1, 2]);
  await messaging.patch(id, { ...TERMS });
  failing(0);
  await stage.account.post(`/v1/relay/endpoints/${id}/recover`, { since: 0 });
  await messaging.settle();
  expect(taken()).toEqual([0]);
  failing();
  await advance(11_000);
  await messaging.settle();
  expect(taken()).toEqual([0, 1, 2]);
});

test("a disabled endpoint ends its held deliveries, and an endpoint that is deleted cancels them", async () => {
  const id = await endpoint(TERMS);
  stage.sink.answersBy(() => 410);
  const ids = await sendMany(id, ["a", "a", "a"]);
  await messaging.settle();
  for (const one of ids) expect((await stage.read(one)).status).toBe("failed");
  stage.sink.answersBy(() => 500);
  const other = await endpoint(TERMS);
  const more = await sendMany(other, ["a", "a", "a"]);
  await messaging.settle();
  await stage.account.delete(`/v1/relay/endpoints/${other}`);
  await messaging.settle();
  for (const one of more) expect((await stage.read(one)).status).toBe("cancelled");
  const left = stage.server.server.kernel.db.number<[string]>(
    "SELECT count(*) AS n FROM relay_order JOIN relay_endpoints AS e ON e.ref = endpoint_ref WHERE endpoint_id = ?",
  );
  expect([left(id), left(other)]).toEqual([0, 0]);
});

test("keys that fail delay no others", async () => {
  const id = await endpoint(TERMS);
  failing(...Array.from({ length: 10 }, (_, n) => n));
  await stage.server.operator.patch(`/v1/admin/accounts/${stage.account.userId}`, { balance: 100_000 });
  for (const round of [0, 1]) {
    const messages = Array.from({ length: 100 }, (_, at) => ({
      event_type: "a",
      payload: { n: at + round * 100 },
      order_key: `key-${at}`,
    }));
    expect((await stage.account.post("/v1/relay/messages/batch", { messages })).status).toBe(201);
  }
  for (let turn = 0; turn < 4; turn += 1) await messaging.settle();
  expect(new Set(taken()).size).toBe(190);
  expect((await messaging.read(id)).counts["waiting"]).toBe(20);
});

test("messages and endpoints show their settings, and wrong ones are rejected", async () => {
  const id = await endpoint();
  const shown = await messaging.read(id);
  expect(shown).toMatchObject({ order_by: null, order_wait_ms: 3_600_000 });
  for (const change of [
    { order_by: "customer" },
    { order_by: "/~2" },
    { order_by: 1 },
    { order_wait_ms: -1 },
    { order_wait_ms: ORDER_WAIT_MS_MAX + 1 },
  ])
    expectError(await stage.account.patch(`/v1/relay/endpoints/${id}`, change), "validation_error");
  await messaging.patch(id, { order_by: "", order_wait_ms: ORDER_WAIT_MS_MAX });
  const message = { event_type: "a", payload: {} };
  for (const order_key of ["", "x".repeat(ORDER_KEY_LENGTH_MAX + 1), 1])
    expectError(
      await stage.account.post("/v1/relay/messages", { ...message, order_key }),
      "validation_error",
    );
  const order_key = "x".repeat(ORDER_KEY_LENGTH_MAX);
  const sent = await stage.account.post("/v1/relay/messages", { ...message, order_key });
  const path = `/v1/relay/messages/${String(sent.body["message_id"])}`;
  expect((await stage.account.get(path)).body["order_key"]).toBe(order_key);
});
