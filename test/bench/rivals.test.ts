import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { WrkRequest } from "../../bench/benchmark.ts";
import { checkBodyOf, makeCustomer, makeFlags } from "../../bench/checks.ts";
import { evaluationRequest, flagOf } from "../../bench/ofrep.ts";
import type { Rival } from "../../bench/responses.ts";
import { deductRequest, logRequest } from "../../bench/rows.ts";
import { scheduleRequest } from "../../bench/schedule.ts";
import { type Stage, startRival } from "../../bench/stage.ts";
import { WEBHOOK_IN } from "../../bench/webhooks.ts";
import { ChainVerifier } from "../../src/verify/chain.ts";
import { createPortableCrypto } from "../../src/verify/noble.ts";
import { type AccountClient, startTestServer, type TestServer } from "../support/server.ts";

// The servers that rows of scripts/bench are compared with must send similar responses and write the same rows.

let server: TestServer;
let account: AccountClient;
let key: string;
let folder: string;
const rivals = {} as Record<Rival, Awaited<ReturnType<typeof startRival>>>;
const requests: Record<string, WrkRequest> = {};
/** Ninefold uses one file for all tests, so each server's holds have different ids. */
let unique = 17;

beforeAll(async () => {
  server = await startTestServer();
  account = await server.account();
  key = String(account.key);
  folder = mkdtempSync(join(tmpdir(), "ninefold-rivals-"));
  for (const who of ["bare", "ceiling"] as const)
    rivals[who] = await startRival(who, join(folder, "ceiling"), key);
  const post = async (path: string, body: object) => (await account.post(path, body)).body;
  const stage = { key, url: server.url, post } as unknown as Stage;
  await post("/v1/meter/meter-000000/refill", { amount: 1_000_000_000 });
  await post("/v1/witness/sys/init", {});
  await post("/v1/gate", { flag_key: "flag-42", enabled: true });
  await WEBHOOK_IN.prepare?.(stage);
  const headers = { Authorization: `Bearer ${key}` };
  const lock = (what: string): WrkRequest => {
    const body = '{"token":"6f1c2c1e-8a1b-4f0e-9c53-0d6a5c2f7f10"}';
    return { method: "POST", path: `/v1/latch/bench:1/${what}`, body, headers };
  };
  const hold = (which: string, body: object): WrkRequest => {
    const path = `/v1/meter/meter-000000/holds${which}`;
    return { method: "POST", path, body: JSON.stringify(body), headers };
  };
  const get = (path: string): WrkRequest => ({ method: "GET", path, headers });
  Object.assign(requests, {
    deduct: deductRequest({ key }),
    hold: hold("", { amount: 2, hold_id: "bench-{unique}" }),
    capture: hold("/bench-{unique}/capture", { amount: 1 }),
    acquire: lock("acquire"),
    release: lock("release"),
    relay: scheduleRequest(stage),
    webhook: WEBHOOK_IN.request(stage),
    receipt: logRequest(key),
    "account balance": get("/v1/meter/balance"),
    "meter balance": get("/v1/meter/meter-{random}/balance"),
    flag: get("/v1/gate/flag-42"),
  });
  const project = await post("/v1/projects", { name: "Flags" });
  const inProject = await post(`/v1/projects/${project["id"]}/keys`, {
    prefix: "sm",
    name: "flags",
    scopes: ["*"],
  });
  const flags = server.client(String(inProject["secret"]));
  for (let number = 0; number < 10; number += 1) await flags.post("/v1/gate", flagOf(number));
  requests["evaluation"] = evaluationRequest(String(flags.key), "/flag-7");
  requests["evaluations"] = evaluationRequest(String(flags.key), "?flags=10");
  const made = await post("/v1/keys", { prefix: "bench", name: "Bench", scopes: ["bench:read"] });
  const body = JSON.stringify({ secret: made["secret"], meta: { ip: "203.0.113.7" } });
  await makeFlags({ post });
  const checked = JSON.stringify(checkBodyOf(await makeCustomer({ post }, "meter-000000")));
  requests["check"] = { method: "POST", path: "/v1/check", body: checked, headers };
  requests["verify"] = { method: "POST", path: "/v1/keys/verify", body, headers };
});
afterAll(async () => {
  for (const { child } of Object.values(rivals)) child.kill("SIGKILL");
  await Promise.all(Object.values(rivals).map(({ child }) => child.exited));
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function send(url: string, name: string, more: Record<string, string> = {}) {
  const { method, path, body, headers } = requests[name] as WrkRequest;
  const filled = (text: string): string =>
    text.replace("{random}", "000000").replace("{unique}", `${unique}`);
  const response = await fetch(url + filled(path), {
    method,
    headers: { ...headers, ...more, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: filled(body) }),
  });
  return { status: response.status, text: await response.text() };
}

/** Maximum difference in length between two responses: balances and times have different numbers of digits. */
const LONGER_MAX = 16;

function expectAlike(other: string, own: string): void {
  const fieldsOf = (text: string): string[] =>
    Object.entries(JSON.parse(text)).map(([name, value]) => `${name}: ${typeof value}`);
  expect(fieldsOf(other)).toEqual(fieldsOf(own));
  expect(Math.abs(other.length - own.length)).toBeLessThanOrEqual(LONGER_MAX);
}

const DURABLE = ["deduct", "hold", "capture", "acquire", "release", "relay", "webhook", "receipt"];

describe("responses have the same form", () => {
  const reads = ["account balance", "meter balance", "flag", "evaluation", "evaluations", "verify", "check"];
  test.each([...DURABLE, ...reads])("bare: %s", async (name) => {
    const own = await send(server.url, name);
    const other = await send(rivals.bare.url, name);
    expect(other.status).toBe(200);
    expectAlike(other.text, own.text);
  });
});

describe("the ceiling", () => {
  beforeAll(() => {
    unique += 1;
  });
  const tables = [
    "meter_entries",
    "meter_holds",
    "locks",
    "relays",
    "jobs",
    "catch_events",
    "catch_payloads",
    "receipts",
  ];

  /** Written data: the columns with their types and sizes. */
  function rowsOf(file: string, table: string): unknown[] {
    const db = new Database(file, { readonly: true });
    try {
      const wanted = table === "jobs" ? " WHERE kind = 'relay.deliver'" : "";
      const rows = db.query(`SELECT * FROM ${table}${wanted}`).all() as Record<string, unknown>[];
      return rows.map((row) =>
        Object.entries(row).map(([name, value]) => {
          if (value instanceof Uint8Array) return `${name}: ${value.length} bytes`;
          return `${name}: ${value === null ? "null" : typeof value}`;
        }),
      );
    } finally {
      db.close();
    }
  }

  /** What both servers write for a request, by table. */
  async function written(name: string): Promise<Record<"own" | "ceiling", unknown>> {
    const files = {
      own: join(server.folder, "ninefold.db"),
      ceiling: join(folder, "ceiling", "ninefold.db"),
    };
    const counts = (file: string) => tables.map((table) => rowsOf(file, table).length);
    const before = { own: counts(files.own), ceiling: counts(files.ceiling) };
    const own = await send(server.url, name);
    const ceiling = await send(rivals.ceiling.url, name);
    expect([own.status < 300, ceiling.status]).toEqual([true, 200]);
    expectAlike(ceiling.text, own.text);
    const news = (who: "own" | "ceiling") =>
      tables.map((table, index) => {
        const rows = rowsOf(files[who], table);
        return [table, rows.length - (before[who][index] ?? 0), rows.slice(before[who][index])];
      });
    return { own: news("own"), ceiling: news("ceiling") };
  }

  test.each(DURABLE)("writes the rows of a %s", async (name) => {
    const { own, ceiling } = await written(name);
    expect(ceiling).toEqual(own);
    expect(JSON.stringify(own)).toMatch(name === "release" ? /"locks",-1/ : /,1,\[\[/);
  });

  test("makes receipts that anyone can follow", async () => {
    const verifier = new ChainVerifier(createPortableCrypto());
    const { text } = await send(rivals.ceiling.url, "receipt");
    const { problems } = verifier.add(text);
    // The response does not contain the key.
    expect(problems).toEqual(["signature is not a valid signature of chain_hash by public_key"]);
  });

  test("verifies keys", async () => {
    const refused = await send(rivals.ceiling.url, "deduct", { Authorization: "Bearer sm_other" });
    expect(refused.status).toBe(401);
  });

  test("returns different responses to concurrent requests", async () => {
    const before = rowsOf(join(folder, "ceiling", "ninefold.db"), "meter_entries").length;
    const answers = await Promise.all(Array.from({ length: 50 }, () => send(rivals.ceiling.url, "deduct")));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(50);
    expect(rowsOf(join(folder, "ceiling", "ninefold.db"), "meter_entries")).toHaveLength(before + 50);
  });
});
