import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { CREATIONS_PER_MINUTE, PINGS_PER_MINUTE } from "../../../../src/areas/monitors/heartbeats/pings.ts";
import { PING_BODY_BYTES_MAX, PINGS_STORED } from "../../../../src/areas/monitors/heartbeats/schema.ts";
import { BODY_BYTES_MAX } from "../../../../src/kernel/http/operation.ts";
import { Client } from "../../../support/client.ts";
import { makeHeartbeat, makePingKey } from "../../../support/heartbeats.ts";
import {
  type AccountClient,
  startTestServer,
  TEST_START_MS,
  type TestServer,
} from "../../../support/server.ts";

const MINUTE = 60_000;
const UNKNOWN = "0c5cd6f4-6e0c-4a4f-8f0c-6f2f6b1a2d3e";
const RID = "123e4567-e89b-42d3-a456-426614174000";

let server: TestServer;
let account: AccountClient;
let nobody: Client;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  account = await server.account();
  nobody = new Client(server.url, null);
});
afterAll(() => server.stop());

async function pingsOf(id: string): Promise<Record<string, unknown>[]> {
  const { body } = await account.get(`/v1/pulse/${id}/pings`);
  return body["pings"] as Record<string, unknown>[];
}

describe("a ping", () => {
  test("gets the response of Healthchecks and is stored with its contents", async () => {
    const beat = await makeHeartbeat(server, account);
    const answer = await beat.ping();
    expect([answer.status, answer.text]).toEqual([200, "OK"]);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "content-type": "text/plain; charset=utf-8",
      "ping-body-limit": "10000",
      "access-control-allow-origin": "*",
      "referrer-policy": "no-referrer",
      "cache-control": "no-store",
    });
    await beat.ping("/start", "begins");
    await beat.ping("/log", "half-way");
    await server.clock.advance(1_500);
    await beat.ping("/0", "42 files");
    await beat.ping("/fail", "no disk");
    await beat.ping("/255");
    const at = new Date(TEST_START_MS + 1_500).toISOString();
    const [exit, fail, success, log, start, first] = await pingsOf(beat.id);
    const plain = { exit: null, duration_ms: null, rid: null, ip: "127.0.0.1", body: null };
    expect(exit).toEqual({ ...plain, at, kind: "fail", exit: 255 });
    expect(fail).toEqual({ ...plain, at, kind: "fail", body: "no disk" });
    expect(success).toEqual({
      ...plain,
      at,
      kind: "success",
      exit: 0,
      duration_ms: 1_500,
      body: "42 files",
    });
    expect(log).toMatchObject({ kind: "log", body: "half-way" });
    expect(start).toMatchObject({ kind: "start", body: "begins" });
    expect(first).toMatchObject({ kind: "success", exit: null, body: null });
    const status = await beat.view();
    expect(status).toMatchObject({ status: "down", last_ping_at: at, consecutive_failures: 2 });
  });

  test("means what the query of another product's client says", async () => {
    const beat = await makeHeartbeat(server, account);
    await beat.ping("?status=up&msg=OK&ping=12");
    await beat.ping("?status=down&msg=no%20disk&ping=");
    await beat.ping("?state=run");
    await beat.ping("?state=fail&message=no+network", "the output");
    await beat.ping("?state=complete");
    await beat.ping("/log?status=down");
    const stored = (await pingsOf(beat.id)).map(({ kind, body }) => [kind, body]);
    expect(stored.reverse()).toEqual([
      ["success", null],
      ["fail", "no disk"],
      ["start", null],
      ["fail", "the output"],
      ["success", null],
      ["log", null],
    ]);
  });

  test("is accepted by HEAD and in upper case; other methods are rejected", async () => {
    const beat = await makeHeartbeat(server, account);
    const head = await nobody.send("HEAD", beat.path);
    expect([head.status, head.text]).toEqual([200, ""]);
    expect((await nobody.get(`/ping/${beat.path.slice(6).toUpperCase()}`)).text).toBe("OK");
    for (const method of ["PUT", "DELETE", "PATCH", "OPTIONS"]) {
      const { status, headers } = await nobody.send(method, beat.path);
      expect([status, headers.get("allow")]).toEqual([405, "GET, HEAD, POST"]);
    }
    expect((await pingsOf(beat.id)).length).toBe(2);
  });

  test("may end with a slash", async () => {
    const beat = await makeHeartbeat(server, account);
    for (const path of [`${beat.path}/`, `${beat.path}/start/`])
      expect((await nobody.get(path)).text).toBe("OK");
    expect((await pingsOf(beat.id)).map(({ kind }) => kind)).toEqual(["start", "success"]);
  });

  test.each([
    "/ping/nonsense",
    "/ping/nonsense%zz",
    "/ping/nonsense/start",
    `/ping/${UNKNOWN}/256`,
    `/ping/${UNKNOWN}/-1`,
    `/ping/${UNKNOWN}/1000`,
    `/ping/${UNKNOWN}/stop`,
    `/ping/${UNKNOWN}//`,
    `/ping/${UNKNOWN}/start//`,
    `/ping/${UNKNOWN}/start/more`,
    `/ping/${UNKNOWN}0`,
    `/ping/${UNKNOWN}?rid=7`,
    `/ping/${"a".repeat(22)}`,
    `/ping/${"a".repeat(22)}/Slug`,
    `/ping/${"a".repeat(22)}/${"a".repeat(65)}`,
    `/ping/${"a".repeat(21)}/slug`,
    `/ping/${UNKNOWN}?a=${"a".repeat(1_024)}`,
  ])("of another form is rejected: 400 (%#)", async (path) => {
    const { status, text, headers } = await nobody.get(path);
    expect([status, text]).toEqual([400, "invalid url format"]);
    expect(headers.get("content-type")).toBe("text/plain; charset=utf-8");
  });

  test.each([
    `/ping/${UNKNOWN}`,
    `/ping/${UNKNOWN}/start`,
    `/ping/${"a".repeat(22)}/slug`,
    `/ping/${"a".repeat(22)}/slug?create=1`,
  ])("that nothing waits for is 404 (%#)", async (path) => {
    const { status, text } = await nobody.get(path);
    expect([status, text]).toEqual([404, "not found"]);
  });

  test("to a deleted heartbeat is 404", async () => {
    const beat = await makeHeartbeat(server, account);
    await beat.ping("", "secret");
    await account.delete(`/v1/pulse/${beat.id}`);
    expect((await beat.ping()).status).toBe(404);
    const left = (from: string) => server.server.kernel.db.number(`SELECT count(*) AS n FROM ${from}`)();
    expect(left("heartbeat_pings WHERE body = 'secret'")).toBe(0);
    for (const table of ["heartbeats", "heartbeat_states"])
      expect(left(`${table} WHERE monitor_ref NOT IN (SELECT ref FROM monitors)`)).toBe(0);
    expect(left("jobs WHERE kind = 'monitors.heartbeats' AND key NOT IN (SELECT ref FROM monitors)")).toBe(0);
  });

  test("to a deleted project is 404, by id and by slug", async () => {
    const owner = await server.account();
    const { body } = await owner.post("/v1/projects", { name: "Doomed" });
    const terms = { prefix: "sm", name: "k", scopes: ["pulse:*"] };
    const key = await owner.post(`/v1/projects/${body["id"]}/keys`, terms);
    const inProject = server.client(String(key.body["secret"]));
    const beat = await makeHeartbeat(server, inProject, { slug: "job" });
    const base = await makePingKey(inProject);
    expect((await nobody.get(`${base}/job`)).status).toBe(200);
    await owner.delete(`/v1/projects/${body["id"]}`);
    expect((await beat.ping()).status).toBe(404);
    expect((await nobody.get(`${base}/job`)).status).toBe(404);
    expect((await nobody.get(`${base}/other?create=1`)).status).toBe(404);
    await server.clock.advance(MINUTE);
  });
});

describe("the body of a ping", () => {
  test("is stored up to its limit and a whole character; a body beyond the limit of requests is dropped", async () => {
    const beat = await makeHeartbeat(server, account);
    const bodies = [
      "a".repeat(PING_BODY_BYTES_MAX),
      "a".repeat(PING_BODY_BYTES_MAX + 1),
      `${"a".repeat(PING_BODY_BYTES_MAX - 1)}é`,
      "a".repeat(BODY_BYTES_MAX),
      "",
    ];
    for (const body of bodies) expect((await beat.ping("", body)).text).toBe("OK");
    const large = await beat.ping("", "a".repeat(BODY_BYTES_MAX + 1));
    expect([large.text, large.headers.get("connection")]).toEqual(["OK", "close"]);
    const kept = (await pingsOf(beat.id)).map(({ body }) => body && String(body).length).reverse();
    const most = PING_BODY_BYTES_MAX;
    expect(kept).toEqual([most, most, most - 1, most, null, null]);
  });

  test("need not be UTF-8", async () => {
    const beat = await makeHeartbeat(server, account);
    await nobody.send("POST", beat.path, new Uint8Array([97, 0xff, 0, 98]));
    expect((await pingsOf(beat.id))[0]?.["body"]).toBe("a\ufffd\0b");
  });

  test("is stored with the last 100 pings", async () => {
    const beat = await makeHeartbeat(server, account);
    for (let number = 0; number < PINGS_STORED + 2; number += 1) {
      if (number % PINGS_PER_MINUTE === 0) await server.clock.advance(MINUTE);
      await beat.ping("/log", String(number));
    }
    const bodies = (await pingsOf(beat.id)).map(({ body }) => Number(body));
    expect(bodies).toEqual(Array.from({ length: PINGS_STORED }, (_, index) => PINGS_STORED + 1 - index));
  });
});

test("pings of one heartbeat have a limit per minute of their own", async () => {
  const beat = await makeHeartbeat(server, account);
  const other = await makeHeartbeat(server, account);
  for (let number = 0; number < PINGS_PER_MINUTE; number += 1) expect((await beat.ping()).status).toBe(200);
  const { status, text, headers } = await beat.ping();
  expect([status, text, headers.get("retry-after")]).toEqual([429, "rate limited", "1"]);
  expect((await other.ping()).status).toBe(200);
  await server.clock.advance(1_000);
  expect((await beat.ping()).status).toBe(200);
  expect((await beat.ping()).status).toBe(429);
  const unlimited = await makeHeartbeat(server, await server.account({ tier: "unlimited" }));
  for (let number = 0; number <= PINGS_PER_MINUTE; number += 1)
    expect((await unlimited.ping()).status).toBe(200);
});

test("concurrent pings share a commit and leave one deadline each", async () => {
  const beats = await Promise.all(Array.from({ length: 50 }, () => makeHeartbeat(server, account)));
  const { stats } = server.server.kernel.writer;
  const before = stats.commits;
  const answers = await Promise.all(beats.map((beat) => beat.ping()));
  expect(answers.every(({ text }) => text === "OK")).toBe(true);
  expect(stats.commits - before).toBeLessThan(beats.length / 2);
  for (const beat of beats) await beat.ping();
  const { db } = server.server.kernel;
  const own = `(SELECT ref FROM monitors ORDER BY ref DESC LIMIT ${beats.length})`;
  expect(
    db.number(`SELECT count(*) AS n FROM jobs WHERE kind = 'monitors.heartbeats' AND key IN ${own}`)(),
  ).toBe(beats.length);
});

describe("by slug", () => {
  test("a ping reaches its heartbeat; a replaced key is 404", async () => {
    const beat = await makeHeartbeat(server, account, { slug: "nightly" });
    expect((await beat.view())["ping_slug_url"]).toBeNull();
    const base = await makePingKey(account);
    expect((await beat.view())["ping_slug_url"]).toBe(`${server.url}${base}/nightly`);
    expect((await nobody.get(`${base}/nightly`)).text).toBe("OK");
    expect((await nobody.get(`${base}/nightly/start`)).text).toBe("OK");
    expect((await nobody.get(`${base}/nightly/7`)).text).toBe("OK");
    expect((await nobody.get(`${base}/nightly/`)).text).toBe("OK");
    expect((await nobody.get(`${base}/nightly/7/`)).text).toBe("OK");
    expect((await nobody.get(`${base}/nightly/7/7`)).status).toBe(400);
    expect((await nobody.get(`${base}/other`)).status).toBe(404);
    const renewed = await makePingKey(account);
    expect(renewed).not.toBe(base);
    expect((await nobody.get(`${base}/nightly`)).status).toBe(404);
    expect((await nobody.get(`${renewed}/nightly`)).status).toBe(200);
    expect((await pingsOf(beat.id)).map(({ exit }) => exit)).toEqual([null, 7, null, 7, null, null]);
  });

  test("create=1 creates the heartbeat once, within the tier", async () => {
    const owner = await server.account({ tier: "free" });
    const base = await makePingKey(owner);
    await owner.post("/v1/pulse", { type: "heartbeat", name: "first" });
    const both = await Promise.all([1, 2].map(() => nobody.get(`${base}/first?create=1`)));
    expect(both.map(({ status, text }) => `${status} ${text}`).sort()).toEqual(["200 OK", "201 Created"]);
    const { body } = await owner.get("/v1/pulse");
    expect((body["monitors"] as object[])[0]).toMatchObject({
      // Another monitor has the name already.
      type: "heartbeat",
      name: "Heartbeat",
      slug: "first",
      status: "up",
      period_ms: 86_400_000,
      grace_ms: 3_600_000,
    });
    let made = 0;
    let last = await nobody.get(`${base}/job-0?create=1`);
    for (; last.status === 201; made += 1) last = await nobody.get(`${base}/job-${made + 1}?create=1`);
    expect(last.status).toBe(403);
    expect(await owner.post("/v1/pulse", { type: "heartbeat" })).toMatchObject({ status: 403 });
    expect((await nobody.get(`${base}/job-${made}`)).status).toBe(404);
  });
});

test("pings of one account can create a limited number of heartbeats per minute; other accounts are not affected", async () => {
  const owner = await server.account({ tier: "pro" });
  const base = await makePingKey(owner);
  const make = async (path: string, n: number) => (await nobody.get(`${path}/job-${n}?create=1`)).status;
  for (let n = 0; n < CREATIONS_PER_MINUTE; n += 1) expect(await make(base, n)).toBe(201);
  expect(await make(base, CREATIONS_PER_MINUTE)).toBe(429);
  expect(await make(base, 0)).toBe(200);
  const other = await makePingKey(await server.account({ tier: "pro" }));
  expect(await make(other, 0)).toBe(201);
  await server.clock.advance(60_000 / CREATIONS_PER_MINUTE);
  expect(await make(base, CREATIONS_PER_MINUTE)).toBe(201);
});

test("overlapping runs are distinguished by their rid", async () => {
  const beat = await makeHeartbeat(server, account);
  const other = RID.replace("1", "2");
  await beat.ping(`/start?rid=${RID}`);
  await server.clock.advance(1_000);
  await beat.ping(`/start?rid=${other}`);
  await server.clock.advance(1_000);
  await beat.ping(`?rid=${RID}`);
  expect(await beat.view()).toMatchObject({ last_duration_ms: 2_000 });
  // The other run continues.
  expect((await beat.view())["started_at"]).not.toBeNull();
  await server.clock.advance(1_000);
  await beat.ping(`?rid=${other.toUpperCase()}`);
  expect(await beat.view()).toMatchObject({ last_duration_ms: 2_000, started_at: null });
  const [end] = await pingsOf(beat.id);
  expect(end).toMatchObject({ rid: other, duration_ms: 2_000 });
  await beat.ping(`?rid=${UNKNOWN}`);
  expect(await beat.view()).toMatchObject({ last_duration_ms: null });
});

test("503 when the ping could not be stored", async () => {
  const beat = await makeHeartbeat(server, account);
  const { db } = server.server.kernel;
  db.execute("PRAGMA query_only = ON");
  const { status, headers } = await beat.ping();
  db.execute("PRAGMA query_only = OFF");
  expect([status, headers.get("retry-after")]).toEqual([503, "5"]);
  expect(await pingsOf(beat.id)).toEqual([]);
});

test("neither log nor metrics contain ping URLs", async () => {
  const beat = await makeHeartbeat(server, account, { slug: "hidden" });
  const base = await makePingKey(account);
  await beat.ping();
  await nobody.get(`${base}/hidden`);
  await nobody.get(`${base}/none`);
  const metrics = (await server.operator.get("/metrics")).text;
  for (const secret of [beat.path.slice(6), base.slice(6)]) {
    expect(metrics).not.toContain(secret);
    expect(JSON.stringify(server.logs)).not.toContain(secret);
  }
  expect(metrics).toMatch(/ninefold_http_requests_total\{[^}]*operation="monitors.ping"/);
});
