import { expect, test } from "bun:test";
import { BULK_ENDS } from "../../../../src/kernel/bulk/bulk.ts";
import { expectError } from "../../../support/errors.ts";
import { targetStage } from "../forwarding/targets-support.ts";
import { balanceOf } from "../support.ts";

const stage = targetStage();
const { advance, at, bucket, endpoint, event, patch, send, restart } = stage;

const replays = (body: object) => stage.account.post(`/v1/catch/${stage.bucketId}/replays`, body);
const run = async (replayId: unknown) =>
  (await stage.account.get(`/v1/catch/${stage.bucketId}/replays/${String(replayId)}`)).body;
const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn += 1) await advance(200);
};
const setState = (endpointId: string, state: string) =>
  stage.account.patch(`/v1/relay/endpoints/${endpointId}`, { state });

/** A bucket with a target, and another endpoint that becomes one after three events. */
async function late(terms: object = {}): Promise<readonly [first: string, added: string]> {
  const ids = [await endpoint("a"), await endpoint("b", terms)] as const;
  await bucket([ids[0]]);
  for (const n of [1, 2, 3]) await send(JSON.stringify({ n }), { "content-type": "application/json" });
  await settle();
  await patch({ targets: ids.map((endpoint_id) => ({ endpoint_id })) });
  return ids;
}

test("a replay with endpoint_id sends an endpoint alone what it never got, oldest first and each once", async () => {
  const [first, added] = await late();
  await send('{"n":4}', { "content-type": "application/json" });
  await settle();
  const counted = await replays({ endpoint_id: added, dry_run: true });
  expect([counted.status, counted.body]).toEqual([200, { matched: 3 }]);
  expect((await replays({ endpoint_id: first, dry_run: true })).body).toEqual({ matched: 0 });
  const before = await balanceOf(stage.account);
  const started = await replays({ endpoint_id: added });
  expect([started.status, started.body["matched"]]).toEqual([202, 3]);
  await restart();
  await settle();
  expect(at("b")).toEqual(['{"n":4}', '{"n":1}', '{"n":2}', '{"n":3}']);
  expect(at("a")).toHaveLength(4);
  expect(await balanceOf(stage.account)).toBe(before - 3);
  expect(await run(started.body["replay_id"])).toMatchObject({ status: "done", matched: 3, queued: 3 });
  expect((await replays({ endpoint_id: added, dry_run: true })).body).toEqual({ matched: 0 });
});

test("it includes events whose delivery to the endpoint failed, and not those that it or its filters reject", async () => {
  const [, added] = await late({ filter: { n: { $gte: 2 } }, retry_schedule: [] });
  const isFailing = ({ path }: { readonly path: string }): boolean => path === "/b";
  stage.receiver.respond = (hit) => (isFailing(hit) ? 500 : 200);
  const id = await send('{"n":5}', { "content-type": "application/json" });
  await settle();
  stage.receiver.respond = () => 200;
  stage.receiver.hits.length = 0;
  expect((await replays({ endpoint_id: added, dry_run: true })).body).toEqual({ matched: 3 });
  await replays({ endpoint_id: added, event_ids: [id] });
  await settle();
  expect(at("b")).toEqual(['{"n":5}']);
  const { deliveries } = await event(id);
  expect(deliveries.map(({ status }) => status)).toEqual(["delivered", "failed", "delivered"]);
});

test("it rejects endpoints that are no target, and those that are paused or disabled", async () => {
  const [, added] = await late();
  const other = await endpoint("c");
  for (const endpoint_id of [other, "ep_00000000000000000000000000000000", ""])
    expectError(await replays({ endpoint_id }), "validation_error");
  await setState(added, "paused");
  expectError(await replays({ endpoint_id: added }), "conflict");
  expect((await replays({ endpoint_id: added, dry_run: true })).body).toEqual({ matched: 3 });
  expectError(
    await stage.account.post("/v1/catch/brave-otter-314159/replays", { endpoint_id: added }),
    "catch.bucket_not_found",
  );
});

test("it ends when the endpoint is disabled, and says why", async () => {
  const [, added] = await late();
  const started = await replays({ endpoint_id: added, per_second: 1 });
  // It asks for no more, which disables it.
  stage.receiver.respond = () => 410;
  await settle();
  expect(await run(started.body["replay_id"])).toMatchObject({
    status: "cancelled",
    error: BULK_ENDS.disabled,
  });
});
