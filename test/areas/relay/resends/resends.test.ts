import { describe, expect, test } from "bun:test";
import { RELAY_RETENTION_MS } from "../../../../src/areas/relay/domain.ts";
import {
  BULK_MAX,
  EXAMINED_MAX,
  PER_SECOND_MAX,
  RUNS_MAX,
  RUNS_STORED_MAX,
} from "../../../../src/kernel/bulk/bulk.ts";
import { expectError } from "../../../support/errors.ts";
import { endpoint, type Scenario } from "../../../support/scenario.ts";
import { relayStage } from "../support.ts";

const stage = relayStage();

const balance = async () => Number((await stage.account.get("/v1/meter/balance")).body["balance"]);

/** A bulk resend. */
async function readResend(id: unknown) {
  return (await stage.account.get(`/v1/relay/resends/${id}`)).body;
}

async function begin(body: object): Promise<Record<string, unknown>> {
  const answer = await stage.account.post("/v1/relay/resend", body);
  expect(answer.status, answer.text).toBe(202);
  return answer.body;
}

describe("POST /v1/relay/resend", () => {
  const request = (body: object): Scenario["request"] => ["POST", "/v1/relay/resend", body];
  const refused = (name: string, body: object): Scenario => ({
    name,
    request: request({ since: 0, ...body }),
    status: 400,
    code: "validation_error",
  });
  endpoint(() => stage.server, "POST /v1/relay/resend", [
    {
      name: "nothing matches",
      request: request({ since: 0, per_second: 1 }),
      status: 202,
      holds: { matched: 0 },
    },
    {
      name: "a dry run",
      request: request({ since: 0, dry_run: true, status: "failed" }),
      status: 200,
      body: { matched: 0 },
    },
    { name: "no since", request: request({ until: 5 }), status: 400, code: "validation_error" },
    refused("a status that keeps nothing", { status: "delivered" }),
    refused("none in a second", { per_second: 0 }),
    refused("too many in a second", { per_second: PER_SECOND_MAX + 1 }),
    refused("an end that is no time", { until: "now" }),
    refused("an empty type", { event_type: "" }),
    refused("a dry run that is no boolean", { dry_run: 1 }),
    { name: "no key", as: "nobody", request: request({ since: 0 }), status: 401, code: "unauthorized" },
    {
      name: "too many run",
      before: async ({ account }) => {
        stage.account = account;
        await stage.failed(1);
        for (let count = 0; count < RUNS_MAX; count += 1)
          expect((await account.post("/v1/relay/resend", { since: 0 })).status).toBe(202);
      },
      request: request({ since: 0 }),
      status: 409,
      code: "conflict",
    },
  ]);

  test("resends all failed deliveries since a time, at a rate, for 1 credit each", async () => {
    const { clock } = stage.server;
    const before = await stage.failed(2);
    await clock.advance(60_000);
    const since = clock.now();
    const wanted = await stage.failed(25);
    await clock.advance(60_000);
    const until = clock.now();
    await stage.failed(1);
    await stage.sent();
    stage.sink.take();
    const filters = { since, until, per_second: 10 };
    const dry = await stage.account.post("/v1/relay/resend", { ...filters, dry_run: true });
    expect([dry.status, dry.body]).toEqual([200, { matched: 25 }]);
    const credits = await balance();
    const { resend_id, ...started } = await begin(filters);
    expect(resend_id).toMatch(/^rsn_[0-9a-f]{32}$/);
    expect(started).toEqual({ matched: 25 });
    const counts: number[] = [];
    for (let second = 0; second < 4; second += 1) {
      await clock.advance(second === 0 ? 0 : 1_000);
      counts.push(stage.sink.received.length);
    }
    expect(counts).toEqual([10, 20, 25, 25]);
    expect(await readResend(resend_id)).toEqual({
      resend_id,
      status: "done",
      matched: 25,
      resent: 25,
      skipped: 0,
      error: null,
      created_at: until,
      finished_at: until + 2_000,
    });
    const ids = stage.sink.take().map(({ headers }) => headers.get("webhook-id"));
    expect(ids).toEqual(wanted);
    expect(await balance()).toBe(credits - 25);
    expect((await stage.listed("status=failed")).slice(1)).toEqual(before.toReversed());
  });

  test("continues after a restart and sends none twice", async () => {
    const { clock } = stage.server;
    await stage.failed(5);
    const { resend_id } = await begin({ since: 0, per_second: 1 });
    for (let turn = 0; turn < 6; turn += 1) {
      await stage.restart();
      await clock.advance(1_000);
    }
    expect(await readResend(resend_id)).toMatchObject({ status: "done", resent: 5, skipped: 0 });
    const ids = stage.sink.take().map(({ headers }) => headers.get("webhook-id"));
    expect([ids.length, new Set(ids).size]).toEqual([5, 5]);
  });

  test("skips deliveries that failed again or were resent in the meantime", async () => {
    const { clock } = stage.server;
    const [first = "", second = ""] = await stage.failed(3);
    stage.sink.answersBy(() => 400);
    const { resend_id } = await begin({ since: 0, per_second: 1 });
    await clock.advance(0);
    expect(await stage.read(first)).toMatchObject({ status: "failed", attempts: 2 });
    await clock.advance(1);
    await stage.account.post(`/v1/relay/${second}/resend`);
    await clock.advance(5_000);
    expect(await readResend(resend_id)).toMatchObject({ status: "done", matched: 3, resent: 2, skipped: 1 });
    expect(stage.sink.take()).toHaveLength(3);
  });

  test("stops without credits, with an error; earlier deliveries are sent", async () => {
    await stage.failed(3);
    const credits = await balance();
    await stage.account.post("/v1/meter/deduct", { amount: credits - 2 });
    expect(await balance()).toBe(2);
    const { resend_id } = await begin({ since: 0 });
    await stage.server.clock.advance(10_000);
    expect(await readResend(resend_id)).toMatchObject({
      status: "cancelled",
      matched: 3,
      resent: 2,
      skipped: 1,
      error: "the account has no credits left",
    });
    expect(stage.sink.take()).toHaveLength(2);
    expect(await balance()).toBe(0);
  });

  test("filters by type", async () => {
    stage.sink.answersBy(() => 500);
    const monitor = await stage.monitor();
    await stage.server.clock.advance(50_000);
    await stage.account.delete(`/v1/pulse/${monitor}`);
    await stage.failed(1);
    const matched = async (event_type: string) =>
      (await stage.account.post("/v1/relay/resend", { since: 0, event_type, dry_run: true })).body["matched"];
    expect([await matched("monitor.down"), await matched("monitor.up")]).toEqual([1, 0]);
    await begin({ since: 0, event_type: "monitor.down" });
    await stage.server.clock.advance(1_000);
    const received = stage.sink.take().filter(({ path }) => path !== "/health");
    expect(received.map(({ path, headers }) => [path, headers.get("x-svc-event")])).toEqual([
      ["/alerts", "monitor.down"],
    ]);
  });

  test("is done immediately without a match, and does not count as running", async () => {
    for (let count = 0; count <= RUNS_MAX; count += 1) {
      const { resend_id } = await begin({ since: 0 });
      expect(await readResend(resend_id)).toMatchObject({
        status: "done",
        matched: 0,
        resent: 0,
        skipped: 0,
      });
    }
  });

  test("starts only one resend under an Idempotency-Key", async () => {
    const post = () =>
      stage.account.post("/v1/relay/resend", { since: 0 }, { headers: { "idempotency-key": "one" } });
    const [first, repeat] = [await post(), await post()];
    expect([first.status, repeat.status]).toEqual([202, 202]);
    expect(repeat.body).toEqual(first.body);
  });
});

/** Stores copies of a failed delivery. */
async function fill(relayId: string, copies: number): Promise<void> {
  const { kernel } = stage.server.server;
  const ref = kernel.db.number("SELECT max(ref) AS n FROM relays")();
  const columns =
    "relay_id, account_ref, project_ref, kind, status, target_url, method, attempts, scheduled_for, finished_at, created_at, failure";
  const copy = kernel.db.change<[number, number]>(
    `INSERT INTO relays (${columns}) SELECT ${columns} FROM relays, (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT i FROM n) WHERE ref = ?`,
  );
  expect(await stage.read(relayId)).toMatchObject({ status: "failed" });
  await kernel.writer.submit((tx) => void copy(tx, copies, ref));
  // The references of new deliveries follow these.
  await stage.restart();
}

describe("a bulk resend of very many deliveries", () => {
  test(`sends at most ${BULK_MAX}, counted in slices`, async () => {
    const [relayId = ""] = await stage.failed(1);
    await fill(relayId, BULK_MAX - 1);
    const dry = { since: 0, dry_run: true };
    expect((await stage.account.post("/v1/relay/resend", dry)).body).toEqual({ matched: BULK_MAX });
    await fill(relayId, 1);
    const counted = (await stage.account.post("/v1/relay/resend", dry)).body;
    expect(counted).toEqual({ matched: BULK_MAX, more: true });
    const started = await begin({ since: 0 });
    expect(started).toMatchObject({ matched: BULK_MAX, more: true });
    expect(await readResend(started["resend_id"])).toMatchObject({
      status: "running",
      more: true,
      resent: 0,
    });
    await stage.account.delete(`/v1/relay/resends/${started["resend_id"]}`);
  });

  test("finds matches after many others", async () => {
    const [first = ""] = await stage.failed(1);
    await fill(first, 2 * EXAMINED_MAX);
    await stage.server.clock.advance(1_000);
    const since = stage.server.clock.now();
    const wanted = await stage.failed(2);
    const { resend_id } = await begin({ since });
    await stage.server.clock.advance(1_000);
    expect(await readResend(resend_id)).toMatchObject({ status: "done", matched: 2, resent: 2 });
    expect(stage.sink.take().map(({ headers }) => headers.get("webhook-id"))).toEqual(wanted);
  });
});

describe("/v1/relay/resends/{resend_id}", () => {
  const unknown = `/v1/relay/resends/rsn_${"0".repeat(32)}`;
  for (const method of ["GET", "DELETE"]) {
    const route = `${method} /v1/relay/resends/{resend_id}`;
    test(`404 ${route}`, async () => {
      await stage.failed(1);
      const { resend_id } = await begin({ since: 0 });
      await stage.anew();
      for (const path of [unknown, "/v1/relay/resends/x", `/v1/relay/resends/${resend_id}`])
        expectError(await stage.account.send(method, path), "not_found");
      expectError(await stage.server.client(null).send(method, unknown), "unauthorized");
      const long = `/v1/relay/resends/${"x".repeat(65)}`;
      expectError(await stage.account.send(method, long), "validation_error");
    });
  }

  test("DELETE stops a running resend; a finished one is unchanged", async () => {
    await stage.failed(3);
    const { resend_id } = await begin({ since: 0, per_second: 1 });
    await stage.server.clock.advance(0);
    const path = `/v1/relay/resends/${resend_id}`;
    const stopped = await stage.account.delete(path);
    expect(stopped.body).toMatchObject({
      status: "cancelled",
      matched: 3,
      resent: 1,
      skipped: 2,
      error: null,
    });
    await stage.server.clock.advance(10_000);
    expect(stage.sink.take()).toHaveLength(1);
    expect((await stage.account.delete(path)).body).toEqual(stopped.body);
    expect(await readResend(resend_id)).toEqual(stopped.body);
  });

  test("is deleted 7 days after it is finished, and with its project", async () => {
    const { kernel } = stage.server.server;
    const rows = kernel.db.number("SELECT count(*) AS n FROM relay_resends");
    await stage.server.clock.advance(RELAY_RETENTION_MS + 2 * 3_600_000);
    const project = await stage.account.post("/v1/projects", { name: "Shop" });
    const key = { prefix: "sm", name: "k", scopes: ["*"] };
    const created = await stage.account.post(`/v1/projects/${project.body.id}/keys`, key);
    const before = rows();
    await stage.server.client(String(created.body.secret)).post("/v1/relay/resend", { since: 0 });
    expect([before, rows()]).toEqual([0, 1]);
    await stage.account.delete(`/v1/projects/${project.body.id}`);
    await stage.server.clock.advance(1_000);
    expect(rows()).toBe(0);
  });
});

test(`a project stores its ${RUNS_STORED_MAX} newest bulk resends, and those that run`, async () => {
  await stage.failed(2);
  const running = String((await begin({ since: 0, per_second: 1 }))["resend_id"]);
  await stage.server.clock.advance(1);
  const nothing = { since: 0, until: 1 };
  const first = String((await begin(nothing))["resend_id"]);
  const { db, writer } = stage.server.server.kernel;
  const copy = db.change<[id: string, of: string]>(
    `INSERT INTO relay_resends SELECT project_ref, ?1, account_ref, status, filters, per_second, after_ref, through_ref, matched, more, resent,
     error, created_at, finished_at FROM relay_resends WHERE resend_id = ?2`,
  );
  const stored = db.number<[id: string]>(
    "SELECT count(*) AS n FROM relay_resends WHERE project_ref = (SELECT project_ref FROM relay_resends WHERE resend_id = ?)",
  );
  await writer.submit((tx) => {
    for (let n = 1; n <= RUNS_STORED_MAX - 3; n += 1) copy(tx, laterId(first, n), first);
  });
  await stage.server.clock.advance(1);
  await begin(nothing);
  expect(stored(running)).toBe(RUNS_STORED_MAX);
  await begin(nothing);
  // The oldest one runs.
  expect(stored(running)).toBe(RUNS_STORED_MAX + 1);
  expect((await readResend(first))["status"]).toBe("done");
  await begin(nothing);
  expect(stored(running)).toBe(RUNS_STORED_MAX + 1);
  expectError(await stage.account.get(`/v1/relay/resends/${first}`), "not_found");
  await stage.server.clock.advance(5_000);
  expect((await readResend(running))["status"]).toBe("done");
});

/** An id that was given after `id`, in the same millisecond. */
function laterId(id: string, n: number): string {
  return `${id.slice(0, -12)}${"f".repeat(8)}${n.toString(16).padStart(4, "0")}`;
}
