import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { RESULTS_BYTES_MAX, RESULTS_MAX } from "../../../../src/areas/monitors/probes/schema.ts";
import type { Client } from "../../../support/client.ts";
import { expectError } from "../../../support/errors.ts";
import { until } from "../../../support/eventually.ts";
import { leastMs, longestTurnMs, TURN_MS_MAX } from "../../../support/processor-time.ts";
import { startTestServer, type TestServer } from "../../../support/server.ts";

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
