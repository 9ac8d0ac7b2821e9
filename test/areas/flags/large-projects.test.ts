import { afterAll, beforeAll, expect, test } from "bun:test";
import { FLAGS_PER_PROJECT_MAX } from "../../../src/areas/flags/domain.ts";
import type { Client } from "../../support/client.ts";
import { expectError } from "../../support/errors.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());

/** Fills a project with copies of the newest flag. */
async function fillProject(): Promise<void> {
  const { db, writer } = server.server.kernel;
  const copy = db.change<[number]>(
    "INSERT INTO flags (project_ref, flag_key, enabled, description, archived, version, created_at, updated_at, definition) SELECT project_ref, 'g' || i, enabled, description, archived, version, created_at, updated_at, definition FROM flags, (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT i FROM n) WHERE ref = (SELECT max(ref) FROM flags)",
  );
  await writer.submit((tx) => void copy(tx, FLAGS_PER_PROJECT_MAX - 1));
}

async function keysIn(client: Client, path: string): Promise<string[]> {
  const { body, status, headers } = await client.get(path);
  expect(status).toBe(200);
  expect(headers.get("content-type")).toStartWith("application/json");
  return (body.flags as (string | { flag_key: string })[]).map((flag) =>
    typeof flag === "string" ? flag : flag.flag_key,
  );
}

test("a failed bulk evaluation is refunded, and one without credits is rejected", async () => {
  const client = await server.account({ balance: 5 });
  const values = Array.from({ length: 1_000 }, (_, at) => `v${at}`);
  const when = [{ attribute: "a", op: "starts_with", values }];
  const fields = { flag_key: "f", enabled: true, rules: [{ when, serve: { variant: "on" } }] };
  expect((await client.post("/v1/gate", fields)).status).toBe(201);
  const balance = async () => Number((await client.get("/v1/meter/balance")).body.balance);
  const before = await balance();
  const long = { context: { a: Array.from({ length: 5_000 }, () => "x") } };
  expectError(await client.post("/ofrep/v1/evaluate/flags", long), "validation_error");
  expect(await balance()).toBe(before);
  for (let paid = 0; paid < before; paid += 1)
    expect((await client.post("/ofrep/v1/evaluate/flags", { context: {} })).status).toBe(200);
  expectError(await client.post("/ofrep/v1/evaluate/flags", { context: {} }), "insufficient_balance");
});

test("lists and bulk evaluations of the largest project have all of its flags", async () => {
  const client = await server.account({ balance: 100 });
  await client.post("/v1/gate", { flag_key: "f", enabled: true, tags: ["t"] });
  await fillProject();
  const keys = await keysIn(client, "/v1/gate");
  expect(keys).toHaveLength(FLAGS_PER_PROJECT_MAX);
  expect(keys.at(-1)).toBe("f");
  expect(await keysIn(client, "/v1/gate/config")).toEqual(keys);
  expect(await keysIn(client, "/v1/gate/config?full=true&tag=t")).toEqual(keys);
  const first = await client.post("/ofrep/v1/evaluate/flags", { context: {} });
  const flags = first.body.flags as { key: string; value: boolean }[];
  expect(flags.map(({ key }) => key)).toEqual(keys.toSorted());
  const etag = String(first.headers.get("etag"));
  const headers = { "if-none-match": etag };
  const again = await client.post("/ofrep/v1/evaluate/flags", { context: {} }, { headers });
  expect([again.status, again.text]).toEqual([304, ""]);
  await client.post("/v1/gate", { flag_key: "f", enabled: false });
  const changed = await client.post("/ofrep/v1/evaluate/flags", { context: {} }, { headers });
  expect(changed.status).toBe(200);
  expect(changed.body.flags).toHaveLength(FLAGS_PER_PROJECT_MAX);
}, 60_000);
