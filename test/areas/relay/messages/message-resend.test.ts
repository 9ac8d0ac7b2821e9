import { describe, expect, spyOn, test } from "bun:test";
import { RESEND_UNIT } from "../../../../src/areas/relay/messages/message-resends.ts";
import { LATER_DELIVERIES_MAX } from "../../../../src/areas/relay/messages/messages.ts";
import type { Tx } from "../../../../src/kernel/storage/tx.ts";
import { expectError } from "../../../support/errors.ts";
import { messagingStage } from "../messages-support.ts";

const { stage, messaging } = messagingStage();

const HOUR = 3_600_000;
const advance = (ms: number) => stage.server.clock.advance(ms);

describe("a message is resent", () => {
  const resend = (id: string, body: object = {}) =>
    stage.account.post(`/v1/relay/messages/${id}/resend`, body);

  const balance = async () => Number((await stage.account.get("/v1/meter/balance")).body["balance"]);

  test("where it failed, or to one endpoint, delivered or not", async () => {
    const [a, b] = [await messaging.endpoint("/a"), await messaging.endpoint("/b", { retry_schedule: [] })];
    stage.sink.answersBy(({ path }) => (path === "/b" ? 500 : 200));
    const sent = await messaging.send({ n: 1 }, { message_id: "again-1" });
    await messaging.settle();
    expect(messaging.takenPaths()).toEqual(["/a", "/b"]);
    stage.sink.answersBy(() => 200);
    const answer = await resend("again-1");
    expect([answer.status, answer.body]).toEqual([202, { resent: 1 }]);
    await messaging.settle();
    expect(messaging.takenPaths()).toEqual(["/b"]);
    expect((await resend("again-1")).body).toEqual({ resent: 0 });
    expect((await resend("again-1", { endpoint_id: a })).body).toEqual({ resent: 1 });
    await messaging.settle();
    expect(messaging.takenPaths()).toEqual(["/a"]);
    expect(await stage.read(sent[a] ?? "")).toMatchObject({ status: "delivered", attempts: 2 });
    expectError(await resend("again-1", { endpoint_id: "ep_x" }), "not_found");
    expectError(await resend("none"), "not_found");
    await messaging.patch(b, { state: "paused" });
    await resend("again-1", { endpoint_id: b });
    expectError(await resend("again-1", { endpoint_id: b }), "conflict");
    await stage.account.delete(`/v1/relay/endpoints/${a}`);
    expectError(await resend("again-1", { endpoint_id: a }), "conflict");
  });

  test("to an endpoint that was disabled then, or that was created later", async () => {
    const disabled = await messaging.endpoint("/disabled");
    // It says that it is gone.
    stage.sink.answersBy(() => 410);
    await messaging.send();
    await messaging.settle();
    expect((await messaging.read(disabled)).state).toBe("disabled");
    stage.sink.answersBy(() => 200);
    stage.sink.take();
    await messaging.send({ n: 7 }, { message_id: "missed-1" });
    expectError(await resend("missed-1", { endpoint_id: disabled }), "conflict");
    await messaging.patch(disabled, { state: "live" });
    const later = await messaging.endpoint("/later", { event_types: ["other.*"] });
    const before = await balance();
    for (const endpoint_id of [disabled, later]) {
      const answer = await resend("missed-1", { endpoint_id });
      expect([answer.status, answer.body]).toEqual([202, { resent: 1 }]);
    }
    expect(before - (await balance())).toBe(2);
    // It is the same message for its receivers, and a delivery like any other.
    expectError(await resend("missed-1", { endpoint_id: later }), "conflict");
    await messaging.settle();
    const received = stage.sink.take();
    expect(received.map(({ path }) => path).sort()).toEqual(["/disabled", "/later"]);
    for (const { headers, body } of received) {
      expect(headers.get("webhook-id")).toBe("missed-1");
      expect(JSON.parse(body)).toMatchObject({ type: "invoice.paid", data: { n: 7 } });
    }
    const { body } = await stage.account.get("/v1/relay/messages/missed-1");
    const deliveries = body["deliveries"] as { endpoint_id: string; status: string }[];
    expect(deliveries.map(({ endpoint_id, status }) => [endpoint_id, status])).toEqual([
      [disabled, "delivered"],
      [later, "delivered"],
    ]);
    expect((await resend("missed-1", { endpoint_id: disabled })).body).toEqual({ resent: 1 });
    await messaging.settle();
    expect(messaging.takenPaths()).toEqual(["/disabled"]);
  });

  test("to a thousand endpoints that were created later, at most", async () => {
    await messaging.send({ n: 1 }, { message_id: "often-1" });
    const id = await messaging.endpoint("/later");
    const { db, writer } = stage.server.server.kernel;
    const add = db.change<[rows: number]>(
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
       INSERT INTO relay_later_deliveries (message_ref, relay_ref) SELECT ref, 1000000 + i FROM n,
       (SELECT ref FROM relay_messages WHERE message_id = 'often-1')`,
    );
    await writer.submit((tx) => add(tx, LATER_DELIVERIES_MAX - 1));
    expect((await resend("often-1", { endpoint_id: id })).body).toEqual({ resent: 1 });
    const next = await messaging.endpoint("/next");
    const rejected = await resend("often-1", { endpoint_id: next });
    expectError(rejected, "conflict");
    expect(rejected.text).toContain("Send it again as a new message");
    const recovery = { since: 0, dry_run: true };
    const counted = await stage.account.post(`/v1/relay/endpoints/${next}/recover`, recovery);
    expect(counted.body).toEqual({ matched: 0 });
    await messaging.settle();
    expect((await resend("often-1", { endpoint_id: id })).body).toEqual({ resent: 1 });
  });

  test("not to an endpoint of another customer", async () => {
    await messaging.send({ n: 1 }, { message_id: "owned-1", owner_id: "acme" });
    const [acme, other] = [
      await messaging.endpoint("/acme", { owner_id: "acme" }),
      await messaging.endpoint("/other", { owner_id: "other" }),
    ];
    expectError(await resend("owned-1", { endpoint_id: other }), "not_found");
    expect((await resend("owned-1", { endpoint_id: acme })).status).toBe(202);
    await messaging.settle();
    expect(messaging.takenPaths()).toEqual(["/acme"]);
  });

  test("a payload that is stored until a later delivery is finished", async () => {
    await messaging.send({ n: 1 }, { message_id: "kept-1" });
    const late = await messaging.endpoint("/late", { state: "paused" });
    await resend("kept-1", { endpoint_id: late });
    await advance(9 * 24 * HOUR);
    await messaging.patch(late, { state: "live" });
    await messaging.settle();
    expect(messaging.takenPaths()).toEqual(["/late"]);
  });

  test(`in units of ${RESEND_UNIT}, each charged for what it sends`, async () => {
    const count = 2 * RESEND_UNIT + 50;
    const tries = { retry_schedule: [] };
    for (let start = 0; start < count; start += 50)
      await Promise.all(Array.from({ length: 50 }, (_, at) => messaging.endpoint(`/${start + at}`, tries)));
    stage.sink.answersBy(() => 500);
    await messaging.send({ n: 1 }, { message_id: "many" });
    await messaging.settle();
    stage.sink.answersBy(() => 200);
    stage.sink.take();
    const units: number[] = [];
    const { writer } = stage.server.server.kernel;
    const submit = writer.submit.bind(writer);
    const spy = spyOn(writer, "submit").mockImplementation(((work: (tx: Tx) => unknown) =>
      submit((tx) => {
        const before = pending();
        const result = work(tx);
        units.push(pending() - before);
        return result as object;
      })) as typeof writer.submit);
    const pending = stage.server.server.kernel.db.number(
      "SELECT count(*) AS n FROM relays WHERE status = 1 AND attempts > 0",
    );
    const before = await balance();
    const answer = await resend("many").finally(() => spy.mockRestore());
    expect([answer.status, answer.body]).toEqual([202, { resent: count }]);
    expect(units.filter((sent) => sent > 0)).toEqual([RESEND_UNIT, RESEND_UNIT, 50]);
    expect(before - (await balance())).toBe(count);
    await messaging.settle();
    expect(messaging.takenPaths()).toHaveLength(count);
  }, 60_000);

  test("to no endpoint without enough credits", async () => {
    // Four credits for the message, and two of the three that a resend costs.
    stage.account = await stage.server.account({ balance: 6 });
    for (const path of ["/a", "/b", "/c"]) await messaging.endpoint(path, { retry_schedule: [] });
    stage.sink.answersBy(() => 500);
    await messaging.send({ n: 1 }, { message_id: "poor" });
    await messaging.settle();
    stage.sink.take();
    expectError(await resend("poor"), "insufficient_balance");
    await messaging.settle();
    expect(messaging.takenPaths()).toEqual([]);
    expect(await balance()).toBe(2);
  });

  test("by one job: earlier jobs do not send it as well", async () => {
    const id = await messaging.endpoint("/a", { retry_schedule: ["10h"] });
    stage.sink.answersBy(() => 500);
    const cancelled = await messaging.send({ n: 1 }, { message_id: "later", delay: "4h" });
    await stage.account.delete(`/v1/relay/${cancelled[id]}`);
    await messaging.send({ n: 2 }, { message_id: "ended" });
    await messaging.settle();
    stage.sink.answersBy(() => 410);
    await messaging.send({ n: 3 });
    await messaging.settle();
    expect((await messaging.read(id)).state).toBe("disabled");
    await advance(2 * HOUR);
    await messaging.patch(id, { state: "live" });
    stage.sink.answersBy(() => 500);
    stage.sink.take();
    for (const item of ["later", "ended"])
      expect((await resend(item, { endpoint_id: id })).body).toEqual({ resent: 1 });
    await messaging.settle();
    expect(messaging.takenNumbers().sort()).toEqual([1, 2]);
    // The old jobs are due after 4 hours, and after 9 to 11; the new ones after 11 to 13.
    await advance(8.9 * HOUR);
    expect(messaging.takenNumbers()).toEqual([]);
    await advance(2.2 * HOUR);
    expect(messaging.takenNumbers().sort()).toEqual([1, 2]);
  });

  test("with others of its endpoint, by a bulk resend", async () => {
    const b = await messaging.endpoint("/b", { retry_schedule: [] });
    stage.sink.answersBy(() => 400);
    for (let n = 0; n < 3; n += 1) await messaging.send({ n });
    await stage.failed(2);
    await messaging.settle();
    stage.sink.answersBy(() => 200);
    expectError(await stage.account.post("/v1/relay/resend", {}), "validation_error");
    const body = { endpoint_id: b, dry_run: true };
    expect((await stage.account.post("/v1/relay/resend", body)).body).toEqual({ matched: 3 });
    await stage.account.post("/v1/relay/resend", { endpoint_id: b });
    await advance(2_000);
    expect(messaging.takenPaths().filter((path) => path === "/b").length).toBeGreaterThanOrEqual(3);
    expect(await stage.listed("status=failed")).toHaveLength(2);
  });

  test("not after the payload's retention, which lasts as long as deliveries are pending", async () => {
    const a = await messaging.endpoint("/a", { retry_schedule: [] });
    const b = await messaging.endpoint("/b", { state: "paused" });
    await messaging.send({ n: 1 }, { message_id: "old-1" });
    await messaging.settle();
    await advance(169 * HOUR);
    expect((await stage.account.get("/v1/relay/messages/old-1")).body).toMatchObject({ payload: { n: 1 } });
    await messaging.patch(b, { state: "live" });
    await messaging.settle();
    await advance(2 * HOUR);
    expect((await stage.account.get("/v1/relay/messages/old-1")).body).toMatchObject({ payload: null });
    expectError(await resend("old-1", { endpoint_id: a }), "conflict");
    const messages = stage.server.server.kernel.db.number(
      "SELECT count(*) AS n FROM relay_messages WHERE message_id = 'old-1'",
    );
    expect(messages()).toBe(1);
    await advance(16 * 24 * HOUR);
    expect(messages()).toBe(0);
  }, 60_000);
});

test("responses are not stored with keep_responses off", async () => {
  const id = await messaging.endpoint("/a", { keep_responses: false });
  stage.sink.answersBy(() => new Response("secret words"));
  const sent = await messaging.send();
  await messaging.settle();
  const [attempt] = (await stage.read(sent[id] ?? "")).attempt_log;
  expect(attempt).toMatchObject({ response_status: 200, response_headers: null, response_body: null });
});
