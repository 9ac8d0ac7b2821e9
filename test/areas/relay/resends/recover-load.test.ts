import { expect, test } from "bun:test";
import { leastMs, longestTurnMs, TURN_MS_MAX } from "../../../support/processor-time.ts";
import { messagingStage } from "../messages-support.ts";

const { stage, messaging } = messagingStage();

/** Deliveries of an endpoint, and messages that it has missed: so many that looking at all of one for each of the other takes seconds. */
const DELIVERIES = 3_000;
const MISSED = 6_000;
const BATCH = 100;
const TIMEOUT_MS = 120_000;

async function unlimited(): Promise<void> {
  stage.account = await stage.server.account({ tier: "unlimited" });
}

async function sendMany(event_type: string, count: number): Promise<void> {
  for (let sent = 0; sent < count; sent += BATCH) {
    const messages = Array.from({ length: BATCH }, (_, at) => ({ event_type, payload: { n: sent + at } }));
    const { status } = await stage.account.post("/v1/relay/messages/batch", { messages });
    expect(status).toBe(201);
  }
}

test(
  "counting what an endpoint with many deliveries has missed holds up no other request",
  async () => {
    await unlimited();
    const id = await messaging.endpoint("/many", { event_types: ["a"], state: "paused" });
    await sendMany("a", DELIVERIES);
    await sendMany("b", MISSED);
    await messaging.patch(id, { event_types: ["a", "b"] });
    const best = await leastMs(TURN_MS_MAX, () =>
      longestTurnMs(async () => {
        const path = `/v1/relay/endpoints/${id}/recover`;
        const { body } = await stage.account.post(path, { since: 0, dry_run: true });
        expect(body).toEqual({ matched: MISSED });
      }),
    );
    expect(best).toBeLessThanOrEqual(TURN_MS_MAX);
  },
  TIMEOUT_MS,
);

/** As many as may run at the same time. */
const RUNS = 10;

test(
  "ten recoveries of a hundred messages per second hold up no other request",
  async () => {
    await unlimited();
    await sendMany("c", BATCH);
    const started: string[] = [];
    const best = await leastMs(TURN_MS_MAX, async () => {
      for (const id of started.splice(0)) await stage.account.delete(`/v1/relay/resends/${id}`);
      const created = await Promise.all(
        Array.from({ length: RUNS }, (_, at) => messaging.endpoint(`/run-${at}`, { order_by: "/n" })),
      );
      for (const id of created) {
        const path = `/v1/relay/endpoints/${id}/recover`;
        const { body } = await stage.account.post(path, { since: 0, per_second: 100 });
        started.push(String(body["resend_id"]));
        // Nothing is sent, which takes time, too.
        await messaging.patch(id, { state: "paused" });
      }
      return longestTurnMs(() => stage.server.clock.advance(1_000));
    });
    expect(best).toBeLessThanOrEqual(TURN_MS_MAX);
  },
  TIMEOUT_MS,
);

/** Large payloads, in which their order key stands: each takes milliseconds to be parsed. */
const LARGE = 10;
const PAYLOAD = { id: "customer", list: Array.from({ length: 45_000 }, (_, at) => `item number ${at}`) };

test(
  "resends and recoveries of messages with large payloads, which have their order keys, hold up no other request",
  async () => {
    await unlimited();
    stage.sink.answersBy(() => 500);
    const terms = { order_by: "/id", retry_schedule: [] };
    const id = await messaging.endpoint("/large", terms);
    const sent: string[] = [];
    for (let n = 0; n < LARGE; n += 1)
      sent.push((await messaging.send(PAYLOAD, { message_id: `large-${n}` }))[id] ?? "");
    const later = await messaging.endpoint("/later", terms);
    const fail = async (): Promise<void> => {
      for (const one of [id, later]) await messaging.patch(one, { state: "live" });
      for (let turn = 0; turn < LARGE; turn += 1) await messaging.settle();
    };
    const requests: readonly (readonly [string, object, paused: string])[] = [
      [`/v1/relay/${sent[0]}/resend`, {}, id],
      ["/v1/relay/resend", { relay_ids: sent, per_second: 100 }, id],
      ["/v1/relay/messages/large-1/resend", {}, id],
      [`/v1/relay/endpoints/${id}/recover`, { since: 0, per_second: 100 }, id],
      [`/v1/relay/endpoints/${later}/recover`, { since: 0, per_second: 100 }, later],
    ];
    const slow: string[] = [];
    for (const [path, body, paused] of requests) {
      const best = await leastMs(TURN_MS_MAX, async () => {
        await fail();
        return longestTurnMs(async () => {
          const { status, text } = await stage.account.post(path, body);
          expect(status, text).toBe(202);
          // Nothing is sent, which takes time, too.
          await messaging.patch(paused, { state: "paused" });
          await messaging.settle();
        });
      });
      if (best > TURN_MS_MAX) slow.push(`${path}: ${best.toFixed(1)} ms`);
    }
    expect(slow).toEqual([]);
  },
  TIMEOUT_MS,
);

test(
  "a bulk resend of deliveries with large bodies writes few of them at a time, at the same rate",
  async () => {
    stage.sink.answersBy(() => 500);
    const relay_ids: string[] = [];
    const payload = { text: "x".repeat(600_000) };
    for (let n = 0; n < 5; n += 1) {
      const body = { target_url: stage.sink.url("/bodies"), method: "POST", delay: "0s", retry_schedule: [] };
      const { body: created } = await stage.account.post("/v1/relay", { ...body, payload });
      relay_ids.push(String(created["relay_id"]));
    }
    await messaging.settle();
    const { body } = await stage.account.post("/v1/relay/resend", { relay_ids, per_second: 100 });
    const resent: unknown[] = [];
    for (const ms of [1, 20, 20]) {
      await stage.server.clock.advance(ms);
      const { body: shown } = await stage.account.get(`/v1/relay/resends/${String(body["resend_id"])}`);
      resent.push(shown["resent"]);
    }
    expect(resent).toEqual([2, 4, 5]);
  },
  TIMEOUT_MS,
);
