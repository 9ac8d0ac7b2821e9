import { describe, expect, test } from "bun:test";
import { REPLAY_RETENTION_MS } from "../../../../src/areas/catch/index.ts";
import { BULK_IDS_MAX, PER_SECOND_MAX, RUNS_MAX, RUNS_STORED_MAX } from "../../../../src/kernel/bulk/bulk.ts";
import type { Client } from "../../../support/client.ts";
import { expectError } from "../../../support/errors.ts";
import { endpoint, type Scenario, type World } from "../../../support/scenario.ts";
import {
  accepted,
  balanceOf,
  bucketOf,
  eventOf,
  type Made,
  newBucket,
  scenario,
  setState,
} from "../support.ts";
import { receivingStage } from "./receiving-stage.ts";

const stage = receivingStage();

const created: Made & { replayId: string } = { bucketId: "", eventId: "", replayId: "" };
const NOBODYS = "/v1/catch/brave-otter-314159/replays";

/** A live bucket with events that its target did not accept. */
async function failed(account: Client, count: number, terms: object = {}): Promise<string[]> {
  stage.receiver.respond = () => 500;
  const { id } = await newBucket(account, { target_url: stage.receiver.url, ...terms });
  created.bucketId = id;
  await setState(account, id, "live");
  const ids: string[] = [];
  for (let number = 0; number < count; number += 1) ids.push(await accepted(stage.server, id, `${number}`));
  await stage.server.clock.advance(31_000);
  stage.receiver.hits.length = 0;
  stage.receiver.respond = () => 200;
  return ids;
}

async function begin(account: Client, body: object = {}): Promise<Record<string, unknown>> {
  const answer = await account.post(`/v1/catch/${created.bucketId}/replays`, body);
  expect(answer.status, answer.text).toBe(202);
  created.replayId = String(answer.body["replay_id"]);
  return answer.body;
}

const read = async (account: Client) =>
  (await account.get(`/v1/catch/${created.bucketId}/replays/${created.replayId}`)).body;

describe("POST /v1/catch/{bucket_id}/replays", () => {
  const asked = (body: object, events = 1) => ({
    before: ({ account }: World) => failed(account, events),
    request: ({ bucketId }: Made): Scenario["request"] => ["POST", `/v1/catch/${bucketId}/replays`, body],
  });
  const refused = (name: string, body: object) =>
    scenario(created, { name, ...asked(body), status: 400, code: "validation_error" });
  endpoint(() => stage.server, "POST /v1/catch/{bucket_id}/replays", [
    scenario(created, {
      name: "nothing matches",
      ...asked({}, 0),
      status: 202,
      holds: () => ({ matched: 0 }),
    }),
    scenario(created, {
      name: "a dry run",
      ...asked({ dry_run: true }),
      status: 200,
      body: () => ({ matched: 1 }),
    }),
    refused("a start that is no time", { since: "yesterday" }),
    refused("an invalid end", { until: "tomorrow" }),
    refused("a status that there is not", { status: "lost" }),
    refused("ids and a filter", { event_ids: ["evt_00000000001"], status: "failed" }),
    refused("an invalid id", { event_ids: ["evt_1"] }),
    refused("no ids", { event_ids: [] }),
    refused("too many ids", { event_ids: Array(BULK_IDS_MAX + 1).fill("evt_00000000001") }),
    refused("none in a second", { per_second: 0 }),
    refused("too many in a second", { per_second: PER_SECOND_MAX + 1 }),
    scenario(created, {
      name: "an unknown provider",
      ...asked({ provider: "nobody" }),
      status: 400,
      code: "catch.provider_unsupported",
    }),
    scenario(created, {
      name: "a paused bucket",
      ...asked({}),
      before: async ({ account }) => {
        await failed(account, 1);
        await setState(account, created.bucketId, "paused");
      },
      status: 400,
      code: "bucket_paused",
    }),
    { name: "no key", as: "nobody", request: ["POST", NOBODYS, {}], status: 401, code: "unauthorized" },
    {
      name: "a bucket that does not exist",
      request: ["POST", NOBODYS, {}],
      status: 404,
      code: "catch.bucket_not_found",
    },
    scenario(created, {
      name: "too many run",
      ...asked({}),
      before: async ({ account }) => {
        await failed(account, 1);
        for (let at = 0; at < RUNS_MAX; at += 1) await begin(account);
      },
      status: 409,
      code: "conflict",
    }),
    scenario(created, {
      name: "by the delivery of an event",
      ...asked({}),
      headers: { "x-ninefold-hops": "1", "x-svc-event-id": "evt_00000000001" },
      status: 508,
      code: "catch.loop_detected",
    }),
    scenario(created, {
      name: "a bucket without a target",
      ...asked({}),
      before: async ({ account }) => {
        created.bucketId = (await newBucket(account, { target_url: null, delivery: "pull" })).id;
        await setState(account, created.bucketId, "live");
      },
      status: 409,
      code: "conflict",
    }),
  ]);

  test("sends all matching events in order, at a rate, for 1 credit each", async () => {
    const account = await stage.server.account();
    const ids = await failed(account, 25);
    // Concurrent requests can arrive in another order than the one in which they were sent.
    let [open, most] = [0, 0];
    stage.receiver.respond = async () => {
      open += 1;
      most = Math.max(most, open);
      await new Promise((later) => setImmediate(later));
      open -= 1;
      return 200;
    };
    const credits = await balanceOf(account);
    const begun = stage.server.clock.now();
    expect(await begin(account, { status: "failed" })).toEqual({ replay_id: created.replayId, matched: 25 });
    expect(created.replayId).toMatch(/^rpl_[0-9a-f]{32}$/);
    const counts: number[] = [];
    for (let second = 0; second < 4; second += 1) {
      await stage.server.clock.advance(second === 0 ? 0 : 1_000);
      counts.push(stage.receiver.hits.length);
    }
    expect(counts).toEqual([10, 20, 25, 25]);
    expect(stage.receiver.hits.map(({ headers }) => headers.get("x-svc-event-id"))).toEqual(ids);
    expect(most).toBe(1);
    expect(await read(account)).toEqual({
      replay_id: created.replayId,
      bucket_id: created.bucketId,
      status: "done",
      matched: 25,
      delivered: 25,
      failed: 0,
      queued: 0,
      skipped: 0,
      error: null,
      created_at: new Date(begun).toISOString(),
      finished_at: new Date(begun + 2_000).toISOString(),
    });
    expect(await balanceOf(account)).toBe(credits - 25);
    expect((await bucketOf(account, created.bucketId)).events).toEqual({
      pending: 0,
      delivered: 25,
      failed: 0,
    });
  });

  test("does not change or charge events that the target does not accept", async () => {
    const account = await stage.server.account();
    const [first = ""] = await failed(account, 3);
    stage.receiver.respond = (_, number) => (number === 2 ? 200 : 503);
    const credits = await balanceOf(account);
    await begin(account);
    await stage.server.clock.advance(1_000);
    expect(await read(account)).toMatchObject({ status: "done", matched: 3, delivered: 1, failed: 2 });
    expect(await balanceOf(account)).toBe(credits - 1);
    const { status, attempts, attempt_log } = await eventOf(account, created.bucketId, first);
    expect([status, attempts, attempt_log.at(-1)?.kind]).toEqual(["failed", 4, "replay"]);
  });

  test("filters by time and ids, and never sends events with invalid signatures", async () => {
    const account = await stage.server.account();
    const before = await failed(account, 2, { provider: "github" });
    const since = new Date(stage.server.clock.now()).toISOString();
    const later = await accepted(stage.server, created.bucketId, "later", { "x-github-event": "push" });
    await account.patch(`/v1/catch/buckets/${created.bucketId}`, { signing_secret: "s" });
    await stage.server.clock.advance(1_000);
    const until = new Date(stage.server.clock.now()).toISOString();
    await accepted(stage.server, created.bucketId, "forged");
    stage.receiver.hits.length = 0;
    const dry = async (body: object) =>
      (await account.post(`/v1/catch/${created.bucketId}/replays`, { ...body, dry_run: true })).body[
        "matched"
      ];
    expect(await dry({})).toBe(3);
    expect(await dry({ since })).toBe(1);
    expect(await dry({ until: since })).toBe(2);
    expect(await dry({ since, until })).toBe(1);
    expect(await dry({ provider: "stripe" })).toBe(0);
    expect(await dry({ provider: "github", status: "delivered" })).toBe(1);
    expect(await dry({ event_type: "push" })).toBe(1);
    expect(await dry({ event_type: "pull" })).toBe(0);
    expect(await dry({ event_ids: [later, before[0], before[0], "evt_00000000001"] })).toBe(2);
    await begin(account, { event_ids: [later, before[0]] });
    await stage.server.clock.advance(1_000);
    expect(stage.receiver.texts.sort()).toEqual(["0", "later"]);
    await begin(account);
    await stage.server.clock.advance(1_000);
    expect(await read(account)).toMatchObject({ status: "done", matched: 3, delivered: 3, skipped: 1 });
    expect(stage.receiver.texts).not.toContain("forged");
  });

  test("continues after a restart", async () => {
    const account = await stage.server.account();
    await failed(account, 4);
    await begin(account, { per_second: 1 });
    let client: Client = account;
    for (let turn = 0; turn < 5; turn += 1) {
      await stage.server.restart();
      client = stage.server.client(account.key);
      await stage.server.clock.advance(1_000);
    }
    expect(await read(client)).toMatchObject({ status: "done", delivered: 4 });
    expect(stage.receiver.texts).toEqual(["0", "1", "2", "3"]);
  });

  test("stops without credits, with an error; queued events are sent", async () => {
    const account = await stage.server.account();
    await failed(account, 3);
    const amount = (await balanceOf(account)) - 2;
    await account.post("/v1/meter/deduct", { amount });
    await begin(account);
    await stage.server.clock.advance(1_000);
    expect(await read(account)).toMatchObject({
      status: "cancelled",
      matched: 3,
      delivered: 2,
      failed: 0,
      skipped: 1,
      error: "the account has no credits left",
    });
    expect(stage.receiver.hits.length).toBe(2);
    expect(await balanceOf(account)).toBe(0);
  });

  test("refunds queued events when the bucket is paused or deleted", async () => {
    const account = await stage.server.account();
    await failed(account, 2);
    const credits = await balanceOf(account);
    await begin(account, { per_second: 1 });
    await setState(account, created.bucketId, "paused");
    await stage.server.clock.advance(2_000);
    expect(await read(account)).toMatchObject({ status: "done", delivered: 0, failed: 2 });
    await setState(account, created.bucketId, "live");
    await begin(account, { per_second: 1 });
    await account.delete(`/v1/catch/buckets/${created.bucketId}`);
    await stage.server.clock.advance(5_000);
    expect(stage.receiver.hits).toEqual([]);
    expect(await balanceOf(account)).toBe(credits);
    expect(stage.server.logs.filter(({ level }) => level === "error")).toEqual([]);
  });
});

for (const method of ["GET", "DELETE"] as const) {
  describe(`${method} /v1/catch/{bucket_id}/replays/{replay_id}`, () => {
    const path = "/v1/catch/{bucket_id}/replays/{replay_id}";
    const nobodys = `${NOBODYS}/rpl_${"0".repeat(32)}`;
    const before = async ({ account }: World) => {
      await failed(account, 1);
      await begin(account);
    };
    const request = (id: () => string) => () =>
      [method, `/v1/catch/${created.bucketId}/replays/${id()}`] as const;
    endpoint(() => stage.server, `${method} ${path}`, [
      scenario(created, {
        name: "a replay with its progress",
        before,
        request: request(() => created.replayId),
        status: 200,
        holds: () => ({ status: method === "GET" ? "running" : "cancelled", matched: 1, delivered: 0 }),
      }),
      scenario(created, {
        name: "a too long id",
        before,
        request: request(() => "x".repeat(65)),
        status: 400,
        code: "validation_error",
      }),
      { name: "no key", as: "nobody", request: [method, nobodys], status: 401, code: "unauthorized" },
      {
        name: "a bucket that does not exist",
        request: [method, nobodys],
        status: 404,
        code: "catch.bucket_not_found",
      },
      scenario(created, {
        name: "none",
        before,
        request: request(() => "rpl_1"),
        status: 404,
        code: "not_found",
      }),
      ...(method === "GET"
        ? []
        : [
            scenario(created, {
              name: "an Idempotency-Key of another request",
              before: async (world) => {
                await before(world);
                await world.account.delete(`/v1/catch/${created.bucketId}/replays/${created.replayId}`, {
                  headers: { "idempotency-key": "k" },
                });
                await begin(world.account);
              },
              headers: { "idempotency-key": "k" },
              request: request(() => created.replayId),
              status: 409,
              code: "conflict",
            }),
          ]),
    ]);
  });
}

test("a stopped replay stays stopped, and queues nothing", async () => {
  const account = await stage.server.account();
  await failed(account, 3);
  await begin(account, { per_second: 1 });
  await stage.server.clock.advance(0);
  const path = `/v1/catch/${created.bucketId}/replays/${created.replayId}`;
  const stopped = (await account.delete(path)).body;
  expect(stopped).toMatchObject({ status: "cancelled", delivered: 1, skipped: 2 });
  await stage.server.clock.advance(5_000);
  expect(stage.receiver.hits.length).toBe(1);
  expect((await account.delete(path)).body).toEqual(stopped);
});

test("a finished replay is stored for 7 days, and deleted with its bucket", async () => {
  const account = await stage.server.account();
  await failed(account, 1);
  await begin(account);
  await stage.server.clock.advance(REPLAY_RETENTION_MS - 3_600_000);
  expect(await read(account)).toMatchObject({ status: "done" });
  await stage.server.clock.advance(2 * 3_600_000);
  const path = `/v1/catch/${created.bucketId}/replays/${created.replayId}`;
  expectError(await account.get(path), "not_found");
});

test(`a bucket stores its ${RUNS_STORED_MAX} newest bulk replays`, async () => {
  const account = await stage.server.account();
  await failed(account, 1);
  const nothing = { event_type: "none" };
  await begin(account, nothing);
  const first = created.replayId;
  const { db, writer } = stage.server.server.kernel;
  const copy = db.change<[id: string, of: string]>(
    `INSERT INTO catch_replays SELECT bucket_ref, ?1, status, filters, per_second, after_ref, through_ref, matched, more, resent, delivered, failed,
     invalid, error, created_at, finished_at, queued FROM catch_replays WHERE replay_id = ?2`,
  );
  const stored = db.number<[id: string]>(
    "SELECT count(*) AS n FROM catch_replays WHERE bucket_ref = (SELECT bucket_ref FROM catch_replays WHERE replay_id = ?)",
  );
  await writer.submit((tx) => {
    for (let n = 1; n <= RUNS_STORED_MAX - 2; n += 1)
      copy(tx, `${first.slice(0, -12)}${"f".repeat(8)}${n.toString(16).padStart(4, "0")}`, first);
  });
  await stage.server.clock.advance(1);
  await begin(account, nothing);
  expect(stored(first)).toBe(RUNS_STORED_MAX);
  await begin(account, nothing);
  expect(stored(created.replayId)).toBe(RUNS_STORED_MAX);
  expectError(await account.get(`/v1/catch/${created.bucketId}/replays/${first}`), "not_found");
  expect((await read(account))["status"]).toBe("done");
});
