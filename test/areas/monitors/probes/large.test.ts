import { Database } from "bun:sqlite";
import { beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { RESULTS_MAX } from "../../../../src/areas/monitors/probes/schema.ts";
import { leastMs, longestTurnMs, TURN_MS_MAX } from "../../../support/processor-time.ts";
import { type AccountClient, useTestServer } from "../../../support/server.ts";

const MINUTE = 60_000;

const server = useTestServer({ manualClock: true });

test("a list of many monitors is read in parts: to its end when it changes meanwhile, and then again", async () => {
  const account = await server.account();
  const { body } = await account.post("/v1/pulse/probes", { name: "fra" });
  const probe = server.client(String(body["token"]));
  const work = async (query: string) => (await probe.get(`/v1/probe/work?wait_ms=0${query}`)).body;
  const ids: string[] = [];
  const add = async () => {
    const settings = { url: "https://10.9.8.7/", interval: MINUTE, timeout: 1_000, probes: ["fra"] };
    ids.push(String((await account.post("/v1/pulse", settings)).body["id"]));
  };
  for (let made = 0; made < 100; made += 1) await add();
  // The last part is complete, however full it is.
  const whole = await work("");
  expect(whole).toMatchObject({ reset: true, complete: true });
  expect(whole["monitors"]).toHaveLength(100);
  await add();
  const first = await work(`&after=${whole["cursor"]}`);
  expect(first).toMatchObject({ reset: true, complete: false });
  await account.put(`/v1/pulse/${ids[0]}`, { timeout: 2_000 });
  const second = await work(`&after=${first["cursor"]}`);
  expect(second).toMatchObject({ reset: false, complete: true, monitors: [{ monitor_id: ids[100] }] });
  const again = await work(`&after=${second["cursor"]}`);
  expect(again).toMatchObject({ reset: true, complete: false });
  expect(again["monitors"]).toContainEqual(expect.objectContaining({ monitor_id: ids[0], timeout: 2_000 }));
});

describe("10,000 monitors of a probe, whose last 20,000 results are remembered, hold the event loop for less than 20 ms", () => {
  const MONITORS = 10_000;
  const REMEMBERED = 20_000;
  /** As many as a page has: with headers, which are sealed. */
  const WITH_HEADERS = 100;
  /** Probes that can be deleted, each once. */
  const DELETED = 8;

  let account: AccountClient;
  let token: string;
  let monitorId: string;
  const deleted: string[] = [];
  let results = 0;

  beforeAll(async () => {
    account = await server.account({ tier: "unlimited" });
    const post = async (path: string, body: object) => {
      const created = await account.post(path, body);
      expect(created.status, created.text).toBe(201);
      return created.body;
    };
    token = String((await post("/v1/pulse/probes", { name: "all" }))["token"]);
    const names = Array.from({ length: DELETED }, (_, at) => `all-${at}`);
    for (const name of names) deleted.push(String((await post("/v1/pulse/probes", { name }))["id"]));
    const headers = Object.fromEntries(
      Array.from({ length: 10 }, (_, at) => [`x-header-${at}`, "v".repeat(100)]),
    );
    const settings = { url: "https://10.9.8.7/", interval: MINUTE, probes: ["all", ...names] };
    for (let made = 0; made < WITH_HEADERS; made += 1)
      monitorId = String((await post("/v1/pulse", { ...settings, headers }))["id"]);
    await server.halt();
    fill();
    await server.start();
  }, 60_000);

  /** Copies the last monitor with its votes, and writes ids of results. */
  function fill(): void {
    const db = new Database(join(server.folder, "ninefold.db"));
    const { ref } = db.query("SELECT max(ref) AS ref FROM monitors").get() as { ref: number };
    const columns = (table: string, ...others: string[]) =>
      (db.query(`PRAGMA table_info(${table})`).all() as { name: string }[])
        .map(({ name }) => name)
        .filter((name) => !others.includes(name))
        .join(", ");
    const numbers =
      "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)";
    const copied = MONITORS - WITH_HEADERS;
    db.transaction(() => {
      const more = columns("monitors", "ref", "monitor_id", "headers");
      db.query(
        `INSERT INTO monitors (monitor_id, ${more}) ${numbers} SELECT randomblob(16), ${more} FROM numbers, monitors WHERE ref = ?`,
      ).run(copied, ref);
      for (const table of ["monitor_states", "monitor_votes"]) {
        const rest = columns(table, "monitor_ref");
        db.query(
          `INSERT INTO ${table} (monitor_ref, ${rest}) ${numbers} SELECT n + monitor_ref, ${rest} FROM numbers, ${table} WHERE monitor_ref = ?`,
        ).run(copied, ref);
      }
      db.query(
        `INSERT INTO probe_results (probe_ref, place, digest, received_at) ${numbers}
         SELECT ref, n - 1, randomblob(16), 1 FROM numbers, probes WHERE name = 'all'`,
      ).run(REMEMBERED);
    })();
    db.close();
  }

  /** The longest turn of a request without a socket, which must succeed. */
  function turnOf(method: string, path: string, body: object | null, key: string): Promise<number> {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const text = body === null ? {} : { body: JSON.stringify(body) };
    const request = new Request(server.url + path, { method, headers, ...text });
    const { http } = server.server.app;
    return longestTurnMs(async () => {
      const response = await http.handle(request);
      expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
    });
  }

  const expectShort = async (measure: () => Promise<number>) =>
    expect(await leastMs(TURN_MS_MAX, measure)).toBeLessThan(TURN_MS_MAX);

  test("where it reads them", async () => {
    const whole = await server.client(token).get("/v1/probe/work?wait_ms=0");
    expect(whole.body["monitors"]).toHaveLength(WITH_HEADERS);
    expect(whole.text).toContain("x-header-9");
    await expectShort(() => turnOf("GET", "/v1/probe/work?wait_ms=0", null, token));
    await expectShort(() =>
      turnOf("GET", `/v1/probe/work?wait_ms=0&after=${whole.body["cursor"]}`, null, token),
    );
  }, 30_000);

  test("where it sends results", async () => {
    await expectShort(() => {
      const sent = Array.from({ length: RESULTS_MAX }, () => {
        results += 1;
        return {
          result_id: `r-${results}`,
          monitor_id: monitorId,
          age_ms: 0,
          status: "up",
          latency_ms: 20,
        };
      });
      return turnOf("POST", "/v1/probe/results", { results: sent }, token);
    });
    const db = new Database(join(server.folder, "ninefold.db"), { readonly: true });
    // Each new id has taken the place of the oldest one.
    expect(db.query("SELECT count(*) AS ids, sum(received_at > 1) AS sent FROM probe_results").get()).toEqual(
      { ids: REMEMBERED, sent: results },
    );
    db.close();
  }, 30_000);

  test("where one of them changes, and where they are listed", async () => {
    let timeout = 1_000;
    await expectShort(() => {
      timeout += 1;
      return turnOf("PUT", `/v1/pulse/${monitorId}`, { timeout }, account.key ?? "");
    });
    await expectShort(() => turnOf("GET", "/v1/pulse/probes?limit=100", null, account.key ?? ""));
    await expectShort(() => turnOf("GET", "/v1/pulse?limit=100", null, account.key ?? ""));
  }, 30_000);

  test("where one of their probes is deleted", async () => {
    const turns: number[] = [];
    for (const id of deleted)
      turns.push(await turnOf("DELETE", `/v1/pulse/probes/${id}`, null, account.key ?? ""));
    expect(Math.min(...turns)).toBeLessThan(TURN_MS_MAX);
  }, 30_000);
});
