import { expect, test } from "bun:test";
import { Messaging } from "../messages-support.ts";
import { relayStage } from "../support.ts";

const HOUR_MS = 3_600_000;

const stage = relayStage({ NINEFOLD_RELAY_PAYLOAD_RETENTION_HOURS: "1" });
const messaging = new Messaging(stage);

const recover = (id: string) => stage.account.post(`/v1/relay/endpoints/${id}/recover`, { since: 0 });

test("missed messages whose payload is deleted match, whatever the filter, and count as skipped", async () => {
  for (const n of [1, 2]) await messaging.send({ n });
  await messaging.send({ n: 3 }, { event_type: "other" });
  await stage.server.clock.advance(3 * HOUR_MS);
  for (const n of [4, 50]) await messaging.send({ n });
  const filtered = { event_types: ["invoice.*"], filter: { n: { $lt: 10 } } };
  const { body } = await recover(await messaging.endpoint("/a", filtered));
  expect(body["matched"]).toBe(3);
  await messaging.settle();
  expect(messaging.takenNumbers()).toEqual([4]);
  const run = await stage.account.get(`/v1/relay/resends/${String(body["resend_id"])}`);
  expect(run.body).toMatchObject({ status: "done", matched: 3, resent: 1, skipped: 2, error: null });
});

test("messages of more than 7 days ago are left alone, also those with a payload", async () => {
  const holding = await messaging.endpoint("/holding", { state: "paused" });
  // Its payload is stored until its delivery is finished.
  await messaging.send({ n: 1 }, { message_id: "old" });
  await stage.server.clock.advance(7 * 24 * HOUR_MS - 1);
  const a = await messaging.endpoint("/a");
  expect((await recover(a)).body["matched"]).toBe(1);
  await messaging.settle();
  expect(messaging.takenNumbers()).toEqual([1]);
  const b = await messaging.endpoint("/b");
  expect((await recover(b)).body["matched"]).toBe(0);
  expect((await stage.account.get("/v1/relay/messages/old")).body).toMatchObject({ payload: { n: 1 } });
  await stage.account.delete(`/v1/relay/endpoints/${holding}`);
});
