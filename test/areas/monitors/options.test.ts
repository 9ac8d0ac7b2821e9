import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { JSON_PATH_LENGTH_MAX } from "../../../src/areas/monitors/json-path.ts";
import {
  ACCEPTED_MAX,
  GROUP_LENGTH_MAX,
  KEYWORD_LENGTH_MAX,
  RETRY_MS_MIN,
} from "../../../src/areas/monitors/options.ts";
import type { Answer } from "../../support/client.ts";
import { expectError } from "../../support/errors.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import { newestOf } from "../audit/support.ts";

let server: TestServer;
let account: AccountClient;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  account = await server.account({ tier: "unlimited" });
});
afterAll(() => server.stop());

const BODY = { url: "https://site.example.com/health", interval: 60_000 };
const DEFAULTS = {
  group: null,
  retry_interval: null,
  recovery_threshold: 1,
  degraded_ms: null,
  notify_degraded: false,
  accept_status: null,
  keyword: null,
  keyword_absent: null,
  tls_expiry_days: 14,
  json_path: null,
  json_op: null,
  json_value: null,
};
const EVERYTHING = {
  group: "checkout",
  retry_interval: 10_000,
  recovery_threshold: 3,
  degraded_ms: 2_000,
  notify_degraded: true,
  accept_status: ["200", "300-399"],
  keyword: "ok",
  keyword_absent: "bad",
  json_path: "$.a[0]",
  json_op: ">=",
  json_value: 5,
  tls_expiry_days: 30,
};

const create = (change: object, by: AccountClient = account): Promise<Answer> =>
  by.post("/v1/pulse", { ...BODY, ...change });
const createMonitor = async (change: object, by: AccountClient = account): Promise<string> => {
  const { status, body, text } = await create(change, by);
  expect([status, text]).toEqual([201, expect.any(String)]);
  return String(body["id"]);
};
const put = (id: string, change: object, by: AccountClient = account): Promise<Answer> =>
  by.put(`/v1/pulse/${id}`, change);

describe("options", () => {
  test("have their defaults in each view and are not stored", async () => {
    const id = await createMonitor({});
    const shown = { ...DEFAULTS, degraded: false, failing: false, certificate: null };
    expect((await account.get(`/v1/pulse/${id}`)).body).toMatchObject(shown);
    expect((await put(id, {})).body).toMatchObject(shown);
    const { db } = server.server.kernel;
    expect(db.all("SELECT DISTINCT options FROM monitors")()).toEqual([{ options: null }]);
  });

  test("are set, survive a restart, stay when others change, and are cleared", async () => {
    const id = await createMonitor(EVERYTHING);
    await server.restart();
    account = server.client(account.key) as AccountClient;
    expect((await account.get(`/v1/pulse/${id}`)).body).toMatchObject(EVERYTHING);
    expect((await put(id, { cooldown_ms: 60_000 })).body).toMatchObject(EVERYTHING);
    expect((await put(id, { keyword: null, recovery_threshold: 1 })).body).toMatchObject({
      ...EVERYTHING,
      keyword: null,
      recovery_threshold: 1,
    });
    const { json_op, json_value, ...given } = DEFAULTS;
    expect((await put(id, given)).body).toMatchObject(DEFAULTS);
  });

  test("are in the audit log before and after; results of checks are not", async () => {
    const id = await createMonitor({ keyword: "one" });
    const { after } = await newestOf(account);
    expect(after).toMatchObject({ keyword: "one", tls_expiry_days: 14 });
    expect(Object.keys(after ?? {})).not.toContain("degraded");
    expect(Object.keys(after ?? {})).not.toContain("certificate");
    await put(id, { keyword: "two", group: "shop" });
    const changed = await newestOf(account);
    expect([changed.before, changed.after]).toEqual([
      { keyword: "one", group: null },
      { keyword: "two", group: "shop" },
    ]);
  });
});

describe("limits", () => {
  const taken: readonly (readonly [string, object])[] = [
    ["the lowest values", { recovery_threshold: 1, degraded_ms: 1, tls_expiry_days: 0 }],
    ["the highest", { recovery_threshold: 10, tls_expiry_days: 90 }],
    ["slow just below the timeout", { timeout: 30_000, degraded_ms: 29_999 }],
    ["the quickest retries", { retry_interval: RETRY_MS_MIN }],
    ["retries at the interval", { interval: 300_000, retry_interval: 300_000 }],
    ["the longest group", { group: "é".repeat(GROUP_LENGTH_MAX) }],
    ["the longest keyword", { keyword: "\u{1f642}".repeat(KEYWORD_LENGTH_MAX) }],
    ["most statuses", { accept_status: Array(ACCEPTED_MAX).fill("200-200") }],
    ["the ends of statuses", { accept_status: ["100", "999", "100-999"] }],
    ["the longest path", { json_path: `$.${"a".repeat(JSON_PATH_LENGTH_MAX - 2)}`, json_value: null }],
    ["the longest value", { json_path: "$", json_value: "x".repeat(KEYWORD_LENGTH_MAX) }],
    ["an empty value", { json_path: "$", json_value: "" }],
    ["a false value", { json_path: "$", json_value: false }],
    ["a path with POST", { method: "POST", json_path: "$.ok", json_op: "exists" }],
    ["HEAD with a status", { method: "HEAD", accept_status: ["200"] }],
  ];
  for (const [name, change] of taken) {
    test(`201 ${name}`, async () => {
      expect((await create(change)).body).toMatchObject(change);
    });
  }

  const refused: readonly (readonly [field: string, change: object])[] = [
    ["group", { group: "" }],
    ["group", { group: "x".repeat(GROUP_LENGTH_MAX + 1) }],
    ["group", { group: "a\nb" }],
    ["retry_interval", { retry_interval: RETRY_MS_MIN - 1 }],
    ["retry_interval", { retry_interval: 60_001 }],
    ["recovery_threshold", { recovery_threshold: 0 }],
    ["recovery_threshold", { recovery_threshold: 11 }],
    ["recovery_threshold", { recovery_threshold: null }],
    ["degraded_ms", { degraded_ms: 0 }],
    ["degraded_ms", { degraded_ms: 30_001, timeout: 30_000 }],
    ["degraded_ms", { degraded_ms: 10_000 }],
    ["degraded_ms", { timeout: 1_000, degraded_ms: 1_000 }],
    ["notify_degraded", { notify_degraded: "yes" }],
    ["accept_status", { accept_status: [] }],
    ["accept_status", { accept_status: Array(ACCEPTED_MAX + 1).fill("200") }],
    ["accept_status", { accept_status: "200" }],
    ["accept_status", { accept_status: [200] }],
    ["accept_status", { accept_status: ["200", "2xx"] }],
    ["accept_status", { accept_status: ["99"] }],
    ["accept_status", { accept_status: ["1000"] }],
    ["accept_status", { accept_status: ["200-"] }],
    ["accept_status", { accept_status: ["299-200"] }],
    ["keyword", { keyword: "" }],
    ["keyword", { keyword: "x".repeat(KEYWORD_LENGTH_MAX + 1) }],
    ["keyword_absent", { keyword_absent: "x".repeat(KEYWORD_LENGTH_MAX + 1) }],
    ["keyword", { method: "HEAD", keyword: "x" }],
    ["keyword_absent", { method: "HEAD", keyword_absent: "x" }],
    ["json_path", { method: "HEAD", json_path: "$", json_op: "exists" }],
    ["json_path", { json_path: "status", json_value: 1 }],
    ["json_path", { json_path: "$..a", json_value: 1 }],
    ["json_path", { json_path: `$.${"a".repeat(JSON_PATH_LENGTH_MAX - 1)}`, json_value: 1 }],
    ["json_op", { json_path: "$", json_op: "=", json_value: 1 }],
    ["json_op", { json_op: "==" }],
    ["json_value", { json_value: "UP" }],
    ["json_value", { json_path: "$" }],
    ["json_value", { json_path: "$", json_op: "<", json_value: "5" }],
    ["json_value", { json_path: "$", json_op: "contains", json_value: null }],
    ["json_value", { json_path: "$", json_value: "x".repeat(KEYWORD_LENGTH_MAX + 1) }],
    ["json_value", { json_path: "$", json_value: { a: 1 } }],
    ["tls_expiry_days", { tls_expiry_days: -1 }],
    ["tls_expiry_days", { tls_expiry_days: 91 }],
    ["tls_expiry_days", { tls_expiry_days: 1.5 }],
  ];
  for (const [field, change] of refused) {
    test(`400 ${JSON.stringify(change).slice(0, 60)}`, async () => {
      const { fields } = expectError(await create(change), "validation_error") as { fields?: object };
      expect(Object.keys(fields ?? {})).toEqual([field]);
    });
  }

  test("an update is validated with the stored settings; a rejection is free and changes nothing", async () => {
    const payer = await server.account({ tier: "scale", balance: 2 });
    const id = await createMonitor({ keyword: "ok", degraded_ms: 5_000, retry_interval: 30_000 }, payer);
    for (const change of [{ method: "HEAD" }, { timeout: 5_000 }, { interval: 29_999 }]) {
      expectError(await put(id, change, payer), "validation_error");
    }
    expect((await payer.get(`/v1/pulse/${id}`)).body).toMatchObject({
      method: "GET",
      timeout: 10_000,
      interval: 60_000,
    });
    expectError(await put(id, {}, payer), "insufficient_balance");
  });
});

test("a tier's shortest interval raises retry_interval to a tenth of it, with a warning", async () => {
  const least = { free: 30_000, starter: 6_000, pro: 5_000, scale: 5_000 };
  for (const [tier, minimum] of Object.entries(least)) {
    const { body } = await create(
      { interval: 300_000, retry_interval: 5_000 },
      await server.account({ tier }),
    );
    const warning = `retry_interval was raised from 5000 to ${minimum} ms, the minimum of the tier ${tier}.`;
    expect([body["retry_interval"], body["warning"]]).toEqual([
      minimum,
      minimum === 5_000 ? undefined : warning,
    ]);
  }
  const both = await create(
    { interval: 15_000, retry_interval: 5_000 },
    await server.account({ tier: "free" }),
  );
  expect(both.body["warning"]).toBe(
    "interval was raised from 15000 to 300000 ms, the minimum of the tier free. " +
      "retry_interval was raised from 5000 to 30000 ms, the minimum of the tier free.",
  );
});

test("the fields of a JSON assertion are set and cleared together", async () => {
  const id = await createMonitor({ json_path: "$.a", json_value: "UP" });
  const parts = ({ body }: Answer) => [body["json_path"], body["json_op"], body["json_value"]];
  expect(parts(await put(id, {}))).toEqual(["$.a", "==", "UP"]);
  expect(parts(await put(id, { json_path: "$.b" }))).toEqual(["$.b", "==", "UP"]);
  expect(parts(await put(id, { json_op: "contains" }))).toEqual(["$.b", "contains", "UP"]);
  expectError(await put(id, { json_op: "<" }), "validation_error");
  expect(parts(await put(id, { json_op: "<", json_value: 3 }))).toEqual(["$.b", "<", 3]);
  expect(parts(await put(id, { json_op: "exists" }))).toEqual(["$.b", "exists", null]);
  expectError(await put(id, { json_op: "==" }), "validation_error");
  expect(parts(await put(id, { json_op: "==", json_value: null }))).toEqual(["$.b", "==", null]);
  expect(parts(await put(id, { json_path: null }))).toEqual([null, null, null]);
});
