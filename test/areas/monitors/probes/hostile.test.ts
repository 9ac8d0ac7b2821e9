import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { MONITORS_PER_PART } from "../../../../src/areas/monitors/probes/removal.ts";
import { RESULTS_BYTES_MAX, RESULTS_MAX } from "../../../../src/areas/monitors/probes/schema.ts";
import { realDelay } from "../../../../src/kernel/time/clock.ts";
import type { Client } from "../../../support/client.ts";
import { expectError } from "../../../support/errors.ts";
import { until } from "../../../support/eventually.ts";
import { leastMs, longestTurnMs, TURN_MS_MAX } from "../../../support/processor-time.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";

const MINUTE = 60_000;

let server: TestServer;
let account: Client;
let probe: Client;
let probeId: string;
let results = 0;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());
beforeEach(async () => {
  account = await server.account({ tier: "pro" });
  const { body } = await account.post("/v1/pulse/probes", { name: "fra" });
  probeId = String(body["id"]);
  probe = server.client(String(body["token"]));
});

async function monitor(): Promise<string> {
  const settings = { url: "https://10.9.8.7/", interval: MINUTE, timeout: 1_000, probes: ["fra"] };
  const { status, body, text } = await account.post("/v1/pulse", settings);
  expect(status, text).toBe(201);
  return String(body["id"]);
}

function resultOf(monitor_id: string, more: object = {}): object {
  results += 1;
  return { result_id: `r-${results}`, monitor_id, age_ms: 0, status: "up", latency_ms: 20, ...more };
}

const send = (sent: readonly object[]) => probe.post("/v1/probe/results", { results: sent });
const many = (count: number, id: string, more: object = {}) =>
  Array.from({ length: count }, () => resultOf(id, more));
const view = async (id: string) => (await account.get(`/v1/pulse/${id}`)).body;
const unknown = { accepted: 0, rejected: [{ index: 0, reason: "unknown_monitor" }] };

describe("results that are not accepted", () => {
  test("are those of a deleted monitor, also while they arrive", async () => {
    const id = await monitor();
    expect((await send([resultOf(id)])).body).toEqual({ accepted: 1, rejected: [] });
    const [sent] = await Promise.all([send(many(RESULTS_MAX, id)), account.delete(`/v1/pulse/${id}`)]);
    expect(sent.status).toBe(200);
    expect((await send([resultOf(id)])).body).toEqual(unknown);
  });

  test("are those of a monitor that is paused, or that the probe has left", async () => {
    const id = await monitor();
    await account.put(`/v1/pulse/${id}`, { active: false });
    expect((await send([resultOf(id)])).body).toEqual(unknown);
    await account.post("/v1/pulse/probes", { name: "nyc" });
    await account.put(`/v1/pulse/${id}`, { active: true, probes: ["nyc"] });
    expect((await send([resultOf(id)])).body).toEqual(unknown);
  });

  test("are those of a probe that is deleted, also while they arrive", async () => {
    const id = await monitor();
    await account.post("/v1/pulse/probes", { name: "nyc" });
    await account.put(`/v1/pulse/${id}`, { probes: ["fra", "nyc"] });
    const sending = send(many(RESULTS_MAX, id));
    expect((await account.delete(`/v1/pulse/probes/${probeId}`)).status).toBe(200);
    // Those that came before the deletion are recorded.
    expect([200, 401]).toContain((await sending).status);
    expectError(await send([resultOf(id)]), "unauthorized");
    expect((await view(id))["probe_states"]).toMatchObject([{ name: "nyc", status: "unknown" }]);
  });

  test("are awaited by no manual check once their probe is deleted", async () => {
    const id = await monitor();
    await account.post("/v1/pulse/probes", { name: "nyc" });
    await account.put(`/v1/pulse/${id}`, { probes: ["fra", "nyc"] });
    const { body } = await probe.get("/v1/probe/work?wait_ms=0");
    const checked = account.post(`/v1/pulse/${id}/check?probe=fra`);
    const work = await probe.get(`/v1/probe/work?wait_ms=55000&after=${body["cursor"]}`);
    expect(work.body["due"]).toEqual([id]);
    expect((await account.delete(`/v1/pulse/probes/${probeId}`)).status).toBe(200);
    expect((await checked).status).toBe(503);
  });

  test("are those of a deleted project", async () => {
    const created = await account.post("/v1/projects", { name: "Other" });
    const terms = { prefix: "sm", name: "k", scopes: ["*"] };
    const minted = await account.post(`/v1/projects/${created.body["id"]}/keys`, terms);
    const key = server.client(String(minted.body["secret"]));
    const { body, text } = await key.post("/v1/pulse/probes", { name: "fra" });
    expect(body["token"], text).toBeString();
    const other = server.client(String(body["token"]));
    const work = await other.get("/v1/probe/work?wait_ms=0");
    const waiting = other.get(`/v1/probe/work?wait_ms=55000&after=${work.body["cursor"]}`);
    await until(async () => (await key.get("/v1/pulse/probes")).text.includes('"online"'));
    const path = `/v1/projects/${created.body["id"]}`;
    const deleted = await account.delete(`${path}?confirm=${created.body["id"]}`);
    expect(deleted.status, deleted.text).toBeLessThan(300);
    expectError(await other.post("/v1/probe/results", { results: [] }), "unauthorized");
    expectError(await waiting, "unauthorized");
  });

  test("are those of a monitor of another account or project, whose probe has the same name", async () => {
    const id = await monitor();
    const own = account;
    account = await server.account({ tier: "pro" });
    const { body } = await account.post("/v1/pulse/probes", { name: "fra" });
    const other = server.client(String(body["token"]));
    const result = resultOf(id, { status: "down" });
    expect((await other.post("/v1/probe/results", { results: [result] })).body).toEqual(unknown);
    const foreign = await monitor();
    expect((await send([resultOf(foreign)])).body).toEqual(unknown);
    expect((await other.get("/v1/probe/work?wait_ms=0")).body["monitors"]).toMatchObject([
      { monitor_id: foreign },
    ]);
    account = own;
    expect(await view(id)).toMatchObject({ status: "unknown", last_checked_at: null });
  });

  test("have an id that was seen in the last 24 hours, in this request or an earlier one", async () => {
    const id = await monitor();
    const result = resultOf(id);
    const duplicate = { accepted: 0, rejected: [{ index: 0, reason: "duplicate" }] };
    expect((await send([result, { ...result, status: "down" }])).body).toEqual({
      accepted: 1,
      rejected: [{ index: 1, reason: "duplicate" }],
    });
    expect((await send([{ ...result, status: "down" }])).body).toEqual(duplicate);
    // Those of another probe are other results.
    const { body } = await account.post("/v1/pulse/probes", { name: "nyc" });
    await account.put(`/v1/pulse/${id}`, { probes: ["fra", "nyc"] });
    const other = server.client(String(body["token"]));
    expect((await other.post("/v1/probe/results", { results: [result] })).body["accepted"]).toBe(1);
  });

  test("are beyond what is read", async () => {
    const id = await monitor();
    const body = JSON.stringify({ results: [resultOf(id)], pad: "x".repeat(1024 * 1024) });
    expectError(await probe.send("POST", "/v1/probe/results", body), "request_too_large");
    const levels = `{"results":${"[".repeat(100)}${"]".repeat(100)}}`;
    expect((await probe.send("POST", "/v1/probe/results", levels)).status).toBe(400);
    expectError(
      await send(many(10_000, id).map((item) => ({ ...item, result_id: "r" }))),
      "request_too_large",
    );
    expectError(await send(many(RESULTS_MAX + 1, id)), "validation_error");
    expect((await view(id))["last_checked_at"]).toBeNull();
  });

  test.each([
    ["an error that is too long", { status: "down", error: "x".repeat(501) }],
    ["a latency of more than a minute", { latency_ms: 60_001 }],
    ["an age that is no number", { age_ms: "1" }],
    ["a status of another kind", { status: "degraded" }],
    ["a certificate that expires beyond all dates", { certificate: { not_after: 1e15, issuer: "a" } }],
    ["a certificate that expired before all dates", { certificate: { not_after: -1e15, issuer: "a" } }],
    ["a certificate with a long name", { certificate: { not_after: 1e9, issuer: "a".repeat(65) } }],
    ["a latency below none", { latency_ms: -1 }],
    ["a status beyond all", { response_status: 1_000 }],
    ["half a character", { status: "down", error: "a\ud800" }],
    ["more packets than can be sent", { icmp: { sent: 11, received: 11, loss_percent: 0 } }],
    ["an id that is too long", { result_id: "x".repeat(65) }],
    ["no id", { result_id: "" }],
  ])("have %s", async (_, more) => {
    const id = await monitor();
    expectError(await send([resultOf(id, more)]), "validation_error");
  });

  test("of the future change nothing, whatever the probe's clock says", async () => {
    const id = await monitor();
    await probe.get(`/v1/probe/work?wait_ms=0&time_ms=${Number.MAX_SAFE_INTEGER}`);
    const { body } = await send([
      resultOf(id, { age_ms: -1e9, status: "down" }),
      resultOf(id, { age_ms: 1e300 }),
    ]);
    expect(body["rejected"]).toMatchObject([{ reason: "age" }, { reason: "age" }]);
    expect(await view(id)).toMatchObject({ status: "unknown", last_checked_at: null });
  });
});

test("an id of a result counts again after 24 hours, and not after a restart", async () => {
  const shared = server;
  server = await startTestServer({ manualClock: true });
  try {
    account = await server.account();
    const { body } = await account.post("/v1/pulse/probes", { name: "fra" });
    const settings = { url: "https://10.9.8.7/", interval: 5 * MINUTE, probes: ["fra"] };
    const { id } = (await account.post("/v1/pulse", settings)).body;
    const result = resultOf(String(id));
    const accepted = async () => {
      probe = server.client(String(body["token"]));
      return (await send([result])).body["accepted"];
    };
    expect([await accepted(), await accepted()]).toEqual([1, 0]);
    await server.restart();
    expect(await accepted()).toBe(0);
    await server.clock.advance(24 * 60 * MINUTE - 1);
    expect(await accepted()).toBe(0);
    await server.clock.advance(1);
    expect(await accepted()).toBe(1);
  } finally {
    await server.stop();
    server = shared;
  }
}, 30_000);

test("results are recorded after the changes of others, however many requests bring them", async () => {
  const shared = server;
  // Under a manual clock no time passes in a commit.
  server = await startTestServer();
  try {
    account = await server.account();
    probe = server.client(String((await account.post("/v1/pulse/probes", { name: "fra" })).body["token"]));
    const id = await monitor();
    const { writer } = server.server.kernel;
    const requests = 30;
    let isOver = false;
    const sending = Promise.all(Array.from({ length: requests }, () => send(many(200, id)))).finally(() => {
      isOver = true;
    });
    const units: number[] = [];
    while (!isOver) {
      const before = writer.stats.units;
      await writer.submit(() => null);
      units.push(writer.stats.units - before);
      await realDelay(1);
    }
    expect((await sending).map(({ status }) => status)).toEqual(Array(requests).fill(200));
    // In their lane, most would wait for one unit of each request.
    expect(units.toSorted((a, b) => a - b)[units.length >> 1]).toBeLessThan(requests / 2);
  } finally {
    await server.stop();
    server = shared;
  }
}, 60_000);

describe("odd results", () => {
  test("are JSON: what is no number is rejected, and names of prototypes are names", async () => {
    const id = await monitor();
    const post = (more: string) =>
      probe.send(
        "POST",
        "/v1/probe/results",
        `{"results":[{"result_id":"${crypto.randomUUID()}","monitor_id":"${id}","status":"up"${more}}]}`,
      );
    for (const age of ["NaN", "1e400", '"0"', "null", "[]"])
      expect([age, (await post(`,"age_ms":${age},"latency_ms":1`)).status]).toEqual([age, 400]);
    expectError(await post(',"age_ms":0,"latency_ms":9007199254740993'), "validation_error");
    const late = await post(',"age_ms":9007199254740993,"latency_ms":1');
    expect(late.body["rejected"]).toEqual([{ index: 0, reason: "age" }]);
    const named = await post(',"age_ms":0,"latency_ms":1,"__proto__":{"status":"down"},"constructor":1');
    expect(named.body["accepted"]).toBe(1);
    expect(await view(id)).toMatchObject({ status: "up", error: null });
  });

  test("have errors on one line, since these stand in e-mails and terminals", async () => {
    const id = await monitor();
    const error = "smtp: \u001b[2J\r\nSubject: x\u0000\u2028y";
    expect((await send([resultOf(id, { status: "down", error })])).body["accepted"]).toBe(1);
    expect((await view(id))["error"]).toBe("smtp:  [2J  Subject: x  y");
  });

  test("may lack a latency", async () => {
    const id = await monitor();
    const results = [resultOf(id, { latency_ms: null }), resultOf(id, { latency_ms: undefined })];
    expect((await send(results)).body["accepted"]).toBe(2);
    expect((await view(id))["latency_ms"]).toBe(0);
  });

  test("are no votes while the probe was offline, whatever their status", async () => {
    const id = await monitor();
    for (const status of ["up", "down"]) {
      expect((await send([resultOf(id, { status, observer_offline: true })])).body["accepted"]).toBe(1);
      expect((await view(id))["status"]).toBe("unknown");
    }
  });
});

describe("requests for work", () => {
  test("without end: each ends the one before, and then they get 429, which others do not notice", async () => {
    const { body } = await probe.get("/v1/probe/work?wait_ms=0");
    const path = `/v1/probe/work?wait_ms=55000&after=${body["cursor"]}`;
    let waiting: ReturnType<Client["get"]> = probe.get(path);
    const statuses = new Set<number>();
    for (let count = 0; count < 118; count += 1) {
      const next = probe.get(path);
      statuses.add((await waiting).status);
      waiting = next;
    }
    expectError(await probe.get(path), "rate_limit_exceeded");
    expect([...statuses]).toEqual([200]);
    const other = await account.post("/v1/pulse/probes", { name: "nyc" });
    const { status } = await server.client(String(other.body["token"])).get("/v1/probe/work?wait_ms=0");
    expect(status).toBe(200);
    await account.delete(`/v1/pulse/probes/${probeId}`);
    expectError(await waiting, "unauthorized");
  });

  test.each(["", "x", "0", "0.1", "0.1.", "-0.1.0", "0.99.0", "999999999999.0.0", "0.1.0\u0000"])(
    "of a probe with the version %j get what versions get",
    async (version) => {
      const query = new URLSearchParams({ wait_ms: "0", version });
      const { status } = await probe.get(`/v1/probe/work?${query}`);
      // Whatever follows the second dot is one of many texts.
      expect([version, status]).toEqual([version, /^0\.1\./.test(version) ? 200 : 409]);
      const { body } = await account.get(`/v1/pulse/probes/${probeId}`);
      expect(body["status"]).toBe(status === 200 ? "online" : "new");
    },
  );

  test("leave what is due to the next one if the connection is closed", async () => {
    const id = await monitor();
    const { body } = await probe.get("/v1/probe/work?wait_ms=0");
    const ending = new AbortController();
    const headers = { authorization: `Bearer ${probe.key}` };
    const path = `/v1/probe/work?wait_ms=55000&after=${body["cursor"]}`;
    const shown = async () => (await account.get(`/v1/pulse/probes/${probeId}`)).body;
    const cut = fetch(server.url + path, { headers, signal: ending.signal }).catch(() => null);
    await until(async () => (await shown())["status"] === "online");
    ending.abort();
    await cut;
    // A probe that waits is seen now.
    await server.clock.advance(1_000);
    await until(async () => Date.parse(String((await shown())["last_seen_at"])) < server.clock.now());
    const check = () => account.post(`/v1/pulse/${id}/check`);
    expectError(await check(), "probe_offline");
    const next = probe.get(`${path}&queue=7`);
    await until(async () => (await shown())["queue"] === 7);
    const checked = check();
    expect((await next).body["due"]).toEqual([id]);
    // What is rejected is no result of the check.
    await send([resultOf(id, { age_ms: -1 })]);
    await send([resultOf(id, { status: "down" })]);
    expect((await checked).body).toMatchObject({ status: "down" });
  });
});

describe("a manual check by a probe", () => {
  const ask = async () => {
    const id = await monitor();
    await account.put(`/v1/pulse/${id}`, { timeout: 30_000 });
    await probe.get("/v1/probe/work?wait_ms=0");
    const asked = account.post(`/v1/pulse/${id}/check`);
    const work = async () => (await probe.get("/v1/probe/work?wait_ms=0")).body["due"] as string[];
    await until(async () => (await work()).includes(id));
    return { id, asked, work };
  };

  test("has one result for all who ask meanwhile", async () => {
    const { id, asked, work } = await ask();
    const other = account.post(`/v1/pulse/${id}/check`);
    await until(async () => (await work()).includes(id));
    await send([resultOf(id, { status: "down" })]);
    for (const { status, body } of [await asked, await other])
      expect([status, body["status"]]).toEqual([200, "down"]);
    const { checks } = (await account.get(`/v1/pulse/${id}/history`)).body;
    expect(checks).toMatchObject([{ manual: true, status: "down" }]);
  });

  test("ends with the suspension of the account, and with the server", async () => {
    const suspended = await ask();
    const { userId } = account as AccountClient;
    await server.operator.patch(`/v1/admin/accounts/${userId}`, { suspended: true });
    expect((await suspended.asked).status).toBeOneOf([403, 503]);
    await server.operator.patch(`/v1/admin/accounts/${userId}`, { suspended: false });
    const stopped = await ask();
    const ended = stopped.asked.then(
      ({ status }) => status,
      () => 503,
    );
    await server.restart();
    expect(await ended).toBe(503);
  });
});

describe("a probe with many monitors and results", () => {
  test("is deleted in parts", async () => {
    const kernel = server.server.kernel;
    const count = (table: string) => kernel.db.number(`SELECT count(*) AS n FROM ${table}`)();
    const before = { votes: count("monitor_votes"), results: count("probe_results") };
    account = await server.account({ tier: "unlimited" });
    const fra = (await account.post("/v1/pulse/probes", { name: "fra" })).body;
    probe = server.client(String(fra["token"]));
    await account.post("/v1/pulse/probes", { name: "nyc" });
    const ids: string[] = [];
    while (ids.length <= MONITORS_PER_PART) {
      ids.push(await monitor());
      await account.put(`/v1/pulse/${ids.at(-1)}`, { probes: ["fra", "nyc"] });
    }
    for (let sent = 0; sent < 5_000; sent += RESULTS_MAX) await send(many(RESULTS_MAX, ids[0] ?? ""));
    expect((await account.delete(`/v1/pulse/probes/${fra["id"]}`)).status).toBe(200);
    expect((await view(ids.at(-1) ?? ""))["probe_states"]).toMatchObject([{ name: "nyc" }]);
    await server.clock.advance(1);
    for (const id of [ids[0], ids.at(-1)]) expect((await view(id ?? ""))["probes"]).toEqual(["nyc"]);
    expect(count("monitor_votes") - before.votes).toBe(ids.length);
    expect(count("probe_results")).toBe(before.results);
  }, 60_000);
});

describe("results without end", () => {
  test("are recorded as often as checks can be, and then get 429", async () => {
    const id = await monitor();
    // What is rejected counts too.
    for (let count = 0; count < 20_000; count += RESULTS_MAX)
      expect((await send(many(RESULTS_MAX, crypto.randomUUID()))).status).toBe(200);
    expectError(await send(many(1, id)), "rate_limit_exceeded");
    // Its only monitor is checked each five seconds at most.
    await server.clock.advance(5 * MINUTE);
    expect((await send(many(60, id))).body["accepted"]).toBe(60);
    expectError(await send(many(1, id)), "rate_limit_exceeded");
    const settings = { url: "https://10.9.8.7/", interval: MINUTE, probes: ["fra"] };
    for (let more = 1; more < 4; more += 1) await account.post("/v1/pulse", settings);
    await server.clock.advance(MINUTE);
    expect((await send(many(48, id))).body["accepted"]).toBe(48);
    expectError(await send(many(1, id)), "rate_limit_exceeded");
  }, 60_000);

  test("hold the event loop for less than 20 ms", async () => {
    const id = await monitor();
    const { handle } = server.server.app.http;
    const text = JSON.stringify({ results: [] }).length;
    const post = async (body: string) => {
      const headers = { authorization: `Bearer ${probe.key}`, "content-type": "application/json" };
      const request = new Request(`${server.url}/v1/probe/results`, { method: "POST", headers, body });
      const response = await handle.call(server.server.app.http, request);
      await response.arrayBuffer();
      return response.status;
    };
    const error = "x".repeat(Math.floor((RESULTS_BYTES_MAX - text) / RESULTS_MAX) - 150);
    const kinds: (() => object[])[] = [
      () => many(RESULTS_MAX, id, { status: "down", error }),
      () => many(RESULTS_MAX, crypto.randomUUID()),
      () => many(RESULTS_MAX, id, { result_id: "same" }),
      () => many(RESULTS_MAX, id, { age_ms: 5 * 24 * 60 * MINUTE }),
    ];
    for (const make of kinds) {
      const best = await leastMs(TURN_MS_MAX, async () => {
        const body = JSON.stringify({ results: make() });
        expect(body.length).toBeLessThan(RESULTS_BYTES_MAX);
        return longestTurnMs(async () => expect(await post(body)).toBe(200));
      });
      expect(best).toBeLessThan(TURN_MS_MAX);
    }
  }, 60_000);
});
