import { expect, test } from "bun:test";
import { expectError } from "../../../support/errors.ts";
import { messagingStage } from "../messages-support.ts";

const { stage, messaging } = messagingStage();

const recover = (id: string, body: object) => stage.account.post(`/v1/relay/endpoints/${id}/recover`, body);
const run = async (id: unknown) => (await stage.account.get(`/v1/relay/resends/${String(id)}`)).body;
const balance = async () => Number((await stage.account.get("/v1/meter/balance")).body["balance"]);

test("an endpoint gets what it missed: while it was disabled, and what failed; oldest first, each once", async () => {
  const a = await messaging.endpoint("/a", { event_types: ["invoice.*"], filter: { n: { $lt: 90 } } });
  const since = stage.server.clock.now();
  await messaging.send({ n: 1 });
  await messaging.settle();
  stage.sink.answersBy(() => 410);
  await messaging.send({ n: 2 });
  await messaging.settle();
  expect((await messaging.read(a)).state).toBe("disabled");
  stage.sink.answersBy(() => 200);
  for (const n of [3, 4, 99]) await messaging.send({ n });
  await messaging.send({ n: 5 }, { event_type: "other" });
  await messaging.send({ n: 6 }, { owner_id: "acme" });
  expectError(await recover(a, { since }), "conflict");
  await messaging.patch(a, { state: "live" });
  stage.sink.take();
  const counted = await recover(a, { since, dry_run: true });
  expect([counted.status, counted.body]).toEqual([200, { matched: 3 }]);
  const before = await balance();
  const started = await recover(a, { since, per_second: 2 });
  expect([started.status, started.body["matched"]]).toEqual([202, 3]);
  expectError(await recover(a, { since }), "conflict");
  await messaging.settle();
  await stage.server.clock.advance(3_000);
  await messaging.settle();
  expect(messaging.takenNumbers()).toEqual([2, 3, 4]);
  expect(await run(started.body["resend_id"])).toMatchObject({
    kind: "recover",
    status: "done",
    matched: 3,
    resent: 3,
    skipped: 0,
    error: null,
  });
  expect(before - (await balance())).toBe(3);
  const again = await recover(a, { since });
  expect(again.body["matched"]).toBe(0);
});

test("an endpoint that is created later gets what was sent in a time before", async () => {
  const times: number[] = [];
  for (const n of [1, 2, 3]) {
    times.push(stage.server.clock.now());
    await messaging.send({ n });
    await stage.server.clock.advance(1_000);
  }
  const b = await messaging.endpoint("/b");
  expectError(await recover(b, {}), "validation_error");
  expectError(await recover(b, { since: times[1], until: times[1] }), "validation_error");
  // Later than every date: digits of such a number may be lost.
  expectError(await recover(b, { since: 8_640_000_000_000_001, dry_run: true }), "validation_error");
  expectError(await recover("ep_none", { since: 0 }), "not_found");
  const tooLong = await recover("e".repeat(65), { since: 0 });
  expect(expectError(tooLong, "validation_error").fields).toEqual({
    endpoint_id: ["must have at most 64 characters"],
  });
  const { body } = await recover(b, { since: times[1], until: times[2] });
  expect(body["matched"]).toBe(1);
  await messaging.settle();
  expect(messaging.takenNumbers("/b")).toEqual([2]);
});

test("an endpoint names its recovery while it is running", async () => {
  for (const n of [1, 2]) await messaging.send({ n });
  const id = await messaging.endpoint("/named");
  const { body } = await recover(id, { since: 0, per_second: 1 });
  expect(await messaging.read(id)).toMatchObject({ recovery_id: body["resend_id"] });
  await stage.account.delete(`/v1/relay/resends/${String(body["resend_id"])}`);
  expect(await messaging.read(id)).not.toHaveProperty("recovery_id");
});

test("a recovery is stopped, and ends when its endpoint is disabled", async () => {
  const messages = async () => {
    for (const n of [1, 2, 3]) await messaging.send({ n });
  };
  const since = stage.server.clock.now();
  await messages();
  const c = await messaging.endpoint("/c");
  const { body } = await recover(c, { since, per_second: 1 });
  const stopped = await stage.account.delete(`/v1/relay/resends/${String(body["resend_id"])}`);
  expect(stopped.body).toMatchObject({ kind: "recover", status: "cancelled" });
  await messaging.settle();
  stage.sink.take();
  const next = await recover(c, { since, per_second: 1 });
  stage.sink.answersBy(() => 410);
  for (let second = 0; second < 6; second += 1) {
    await stage.server.clock.advance(1_000);
    await messaging.settle();
  }
  expect(await run(next.body["resend_id"])).toMatchObject({
    status: "cancelled",
    error: "the endpoint is disabled or deleted",
  });
});

test("a recovery goes on while its endpoint is paused, and the deliveries wait in their order", async () => {
  const since = stage.server.clock.now();
  for (const n of [1, 2, 3]) await messaging.send({ n });
  const id = await messaging.endpoint("/paused");
  const { body } = await recover(id, { since, per_second: 1 });
  await messaging.settle();
  await messaging.patch(id, { state: "paused" });
  for (let second = 0; second < 3; second += 1) await stage.server.clock.advance(1_000);
  expect(await run(body["resend_id"])).toMatchObject({ status: "done", matched: 3, resent: 3, skipped: 0 });
  expect(messaging.takenNumbers("/paused")).toEqual([1]);
  expectError(await recover(id, { since }), "conflict");
  await messaging.patch(id, { state: "live" });
  await messaging.settle();
  expect(messaging.takenNumbers("/paused")).toEqual([2, 3]);
});

test("a recovery ends when its endpoint is deleted", async () => {
  const since = stage.server.clock.now();
  for (const n of [1, 2]) await messaging.send({ n });
  const id = await messaging.endpoint("/deleted");
  const { body } = await recover(id, { since, per_second: 1 });
  await messaging.settle();
  expect((await stage.account.delete(`/v1/relay/endpoints/${id}`)).status).toBe(204);
  await stage.server.clock.advance(1_000);
  expect(await run(body["resend_id"])).toMatchObject({
    status: "cancelled",
    resent: 1,
    error: "the endpoint is disabled or deleted",
  });
});

test("a recovery ends when the credits are spent, and another one sends the rest", async () => {
  const since = stage.server.clock.now();
  for (const n of [1, 2, 3]) await messaging.send({ n });
  const id = await messaging.endpoint("/credits");
  const setBalance = (amount: number) =>
    stage.server.operator.patch(`/v1/admin/accounts/${stage.account.userId}`, { balance: amount });
  await setBalance(2);
  const { body } = await recover(id, { since, per_second: 100 });
  await messaging.settle();
  expect(await run(body["resend_id"])).toMatchObject({
    status: "cancelled",
    matched: 3,
    resent: 2,
    skipped: 1,
    error: "the account has no credits left",
  });
  expect([messaging.takenNumbers("/credits").sort(), await balance()]).toEqual([[1, 2], 0]);
  await setBalance(10);
  const next = await recover(id, { since });
  expect(next.body["matched"]).toBe(1);
  await messaging.settle();
  expect([messaging.takenNumbers("/credits"), await balance()]).toEqual([[3], 9]);
});
