import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { SCANNED_ROWS_MAX } from "../../../src/areas/audit/domain.ts";
import type { Client } from "../../support/client.ts";
import { expectError } from "../../support/errors.ts";
import { endpoint } from "../../support/scenario.ts";
import { startTestServer, TEST_START_MS, type TestServer } from "../../support/server.ts";
import { entriesIn, entriesOf, newestOf, switchFlag } from "./support.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true, args: ["--trust-proxy", "127.0.0.1"] });
});
afterAll(() => server.stop());

async function managedKey(client: Client, scopes: readonly string[], project?: string): Promise<Client> {
  const path = project === undefined ? "/v1/keys" : `/v1/projects/${project}/keys`;
  const { body, text } = await client.post(path, { prefix: "sm", name: "CI", scopes });
  expect(text).toContain("secret");
  return server.client(String(body.secret));
}

describe("GET /v1/audit", () => {
  endpoint(() => server, "GET /v1/audit", [
    {
      name: "an account's changes",
      status: 200,
      request: ["GET", "/v1/audit"],
      before: ({ account }) => switchFlag(account, "beta", true),
      holds: {
        entries: [
          {
            action: "gate.save",
            summary: "Flag beta created, on",
            actor: { type: "key", key_id: null, key_name: null },
            target: { type: "flag", id: "beta" },
            before: null,
            after: { enabled: true, description: null },
          },
        ],
      },
    },
    { name: "no entries", status: 200, request: ["GET", "/v1/audit"], body: { entries: [] } },
    {
      name: "an invalid time",
      status: 400,
      code: "validation_error",
      request: ["GET", "/v1/audit?from=yesterday"],
    },
    {
      name: "a limit that is too high",
      status: 400,
      code: "validation_error",
      request: ["GET", "/v1/audit?limit=101"],
    },
    { name: "no key", status: 401, code: "unauthorized", request: ["GET", "/v1/audit"], as: "nobody" },
  ]);
});

test("an entry has the digits of numbers that a double does not hold", async () => {
  const account = await server.account({ tier: "pro" });
  const payload = '{"id":1234567890123456789}';
  const created = await account.post(
    "/v1/relay/schedules",
    `{"cron": "@daily", "target_url": "https://example.com/", "payload": ${payload}}`,
  );
  expect(created.status).toBe(201);
  expect((await account.get("/v1/audit?limit=1")).text).toContain(`"payload":${payload}`);
});

describe("an entry", () => {
  test("contains the actor, the address and the request", async () => {
    const account = await server.account();
    const client = await managedKey(account, ["gate:*", "audit:read"]);
    const headers = { "user-agent": "curl/8.5", "x-forwarded-for": "203.0.113.7" };
    const answer = await client.post("/v1/gate", { flag_key: "beta", enabled: true }, { headers });
    const entry = await newestOf(client);
    const key = (await account.get("/v1/keys")).body.keys as { id: string }[];
    expect(entry.actor).toEqual({
      type: "key",
      key_id: key[0]?.id as string,
      key_name: "CI",
      user_id: account.userId,
      owner_id: null,
    });
    expect(entry).toMatchObject({ ip: "203.0.113.7", user_agent: "curl/8.5" });
    expect(entry.at).toBe(new Date(TEST_START_MS).toISOString());
    expect(entry.request_id).toBe(answer.headers.get("x-request-id"));
  });

  test("of another project or of the account is not visible to a key of the account without *", async () => {
    const account = await server.account();
    const reader = await managedKey(account, ["audit:read", "keys:read"]);
    const before = (await entriesOf(account)).length;
    const { body: shop } = await account.post("/v1/projects", { name: "Shop" });
    const terms = { prefix: "sm", name: "k", scopes: ["*"] };
    const { body: key } = await account.post(`/v1/projects/${shop.id}/keys`, terms);
    await switchFlag(server.client(String(key.secret)), "elsewhere", true);
    await switchFlag(account, "mine", true);
    const all = await entriesOf(account);
    expect(all).toHaveLength(before + 4);
    expect((await entriesOf(reader)).map(({ target }) => target.id)).toEqual(["mine"]);
    expect(await entriesOf(reader, `?project_id=${shop.id}`)).toEqual([]);
    expect(await entriesOf(reader, `?target_type=key&target_id=${key.key_id}`)).toEqual([]);
    for (const { sequence, project_id } of all) {
      const isOwn = project_id !== null && project_id !== shop.id;
      expect((await reader.get(`/v1/audit/${sequence}`)).status).toBe(isOwn ? 200 : 404);
    }
    const exported = (await reader.get("/v1/audit/export")).text;
    expect(exported.trim().split("\n")).toHaveLength(1);
    expect(exported).toContain('"mine"');
  });

  test("contains only the changed fields", async () => {
    const account = await server.account();
    await switchFlag(account, "beta", false);
    await switchFlag(account, "beta", true);
    expect(await newestOf(account)).toMatchObject({
      summary: "Flag beta switched on",
      before: { enabled: false },
      after: { enabled: true },
    });
    await account.delete("/v1/gate/beta");
    expect(await newestOf(account)).toMatchObject({ before: { enabled: true }, after: null });
  });

  test("is not written if no field changed", async () => {
    const account = await server.account();
    await switchFlag(account, "beta", true);
    const project = await account.post("/v1/projects", { name: "Shop" });
    const count = (await entriesOf(account)).length;
    await switchFlag(account, "beta", true);
    expect((await account.patch(`/v1/projects/${project.body.id}`, {})).status).toBe(200);
    expect((await account.post("/v1/witness/sys/init")).status).toBe(201);
    expect((await account.post("/v1/witness/sys/init")).status).toBe(200);
    expect(await entriesOf(account)).toHaveLength(count + 1);
  });

  test("contains no secrets", async () => {
    const account = await server.account();
    const target_url = "https://user:pass-word@example.com/hook?token=hidden-1#hidden-2";
    const bucket = await account.post("/v1/catch/buckets", {
      target_url: "https://example.com/hook?token=hidden-1#hidden-2",
      signing_secret: "hidden-3-hidden-3",
    });
    expect(bucket.status).toBe(201);
    expectError(await account.post("/v1/catch/buckets", { target_url }), "validation_error");
    const path = `/v1/catch/buckets/${bucket.body.id}`;
    await account.patch(path, { signing_secret: "hidden-4-hidden-4" });
    expect(await newestOf(account)).toMatchObject({
      before: { signing_secret: "[secret]" },
      after: { signing_secret: "[secret]" },
    });
    await account.post("/v1/pulse", {
      url: "https://example.com/?key=hidden-5",
      interval: 60_000,
      headers: { "X-Token": "hidden-6" },
    });
    expect((await newestOf(account)).after).toMatchObject({
      url: "https://example.com/",
      headers: { "X-Token": "[secret]" },
    });
    const keys = { accessKeyId: "AKIAIOSFODNN7HIDDEN7", secretAccessKey: "hidden-8-hidden-8-hidden-8" };
    const place = { endpoint: "https://example.com", bucket: "receipts", region: "eu" };
    const configured = await account.post("/v1/witness/config", { ...place, ...keys });
    expect(configured.status, configured.text).toBe(200);
    const created = await account.post("/v1/keys", { prefix: "acme", name: "k", scopes: ["x"] });
    const text = JSON.stringify(await entriesOf(account));
    expect(text.toLowerCase()).not.toContain("hidden");
    expect(text).not.toContain(String(created.body.secret));
    expect(text).not.toContain(String(account.key));
  });

  test("can be read by its sequence, only by its account", async () => {
    const account = await server.account();
    await switchFlag(account, "beta", true);
    const entry = await newestOf(account);
    expect((await account.get(`/v1/audit/${entry.sequence}`)).body).toEqual({ ...entry });
    expect((await server.operator.get(`/v1/admin/audit/${entry.sequence}`)).body).toEqual({ ...entry });
    expectError(await (await server.account()).get(`/v1/audit/${entry.sequence}`), "not_found");
    expectError(await account.get("/v1/audit/999999999999999"), "not_found");
    expectError(await account.get("/v1/audit/0"), "validation_error");
    expectError(await account.get(`/v1/admin/audit/${entry.sequence}`), "forbidden");
  });
});

describe("access to entries", () => {
  test("a key of one project reads the entries of that project", async () => {
    const account = await server.account();
    const project = await account.post("/v1/projects", { name: "Shop" });
    await switchFlag(account, "elsewhere", true);
    const client = await managedKey(account, ["*"], String(project.body.id));
    await switchFlag(client, "beta", true);
    const seen = await entriesOf(client);
    expect(seen.map(({ action }) => action)).toEqual([
      "gate.save",
      "projects.keys.create",
      "projects.create",
    ]);
    expect(new Set(seen.map(({ project_id }) => project_id))).toEqual(new Set([String(project.body.id)]));
    const all = await entriesOf(account);
    expect(all).toHaveLength(seen.length + 1);
    const other = all.find(({ target }) => target.id === "elsewhere");
    expectError(await client.get(`/v1/audit/${other?.sequence}`), "not_found");
    expect(await entriesOf(account, `?project_id=${project.body.id}`)).toEqual([...seen]);
    const stranger = await server.account();
    expect(await entriesOf(stranger, `?project_id=${project.body.id}`)).toEqual([]);
  });

  test("the operator reads all, and for an account its own changes and changes of it", async () => {
    const account = await server.account();
    await switchFlag(account, "beta", true);
    await server.operator.patch(`/v1/admin/accounts/${account.userId}`, { tier: "pro" });
    const query = `/v1/admin/audit?user_id=${account.userId}`;
    const about = entriesIn(await server.operator.get(query));
    expect(about.map(({ action }) => action)).toEqual([
      "admin.accounts.update",
      "gate.save",
      "admin.accounts.create",
    ]);
    expect(about[0]).toMatchObject({ before: { tier: "scale" }, after: { tier: "pro" } });
    expect((await entriesOf(account)).map(({ action }) => action)).toEqual(["gate.save"]);
    const [second] = entriesIn(await server.operator.get(`${query}&limit=1&action=gate.*`));
    expect(second?.action).toBe("gate.save");
    expect(entriesIn(await server.operator.get("/v1/admin/audit?user_id=usr_nobody"))).toEqual([]);
    const system = entriesIn(await server.operator.get("/v1/admin/audit?actor=system&action=server.start"));
    expect(system[0]?.after?.options).toContain("trust_proxy");
    expect(system[0]?.after?.version).toMatch(/^\d+\./);
  });
});

describe("filters", () => {
  test("by action, area, actor, target and time, and pages of them", async () => {
    const account = await server.account();
    await switchFlag(account, "one", true);
    await switchFlag(account, "two", true);
    const project = await account.post("/v1/projects", { name: "Shop" });
    const client = await managedKey(account, ["gate:write"]);
    await server.clock.advance(60_000);
    await switchFlag(client, "one", false);
    const found = async (query: string) =>
      (await entriesOf(account, query)).map(({ action, target }) => `${action} ${target.id}`);
    expect(await found("?action=gate.save")).toEqual(["gate.save one", "gate.save two", "gate.save one"]);
    expect(await found("?action=projects.*")).toEqual([`projects.create ${project.body.id}`]);
    expect(await found("?action=gate")).toEqual([]);
    expect(await found("?target_type=flag&target_id=one")).toEqual(["gate.save one", "gate.save one"]);
    expect(await found("?target_id=two")).toEqual(["gate.save two"]);
    const keyId = (await newestOf(account)).actor.key_id;
    expect(await found(`?actor=${keyId}`)).toEqual(["gate.save one"]);
    expect(await found(`?actor=${account.userId}&action=gate.*`)).toHaveLength(3);
    expect(await found("?actor=session")).toEqual([]);
    const later = new Date(TEST_START_MS + 60_000).toISOString();
    const from = encodeURIComponent((await newestOf(account)).at);
    expect(later <= decodeURIComponent(from)).toBe(true);
    expect(await found(`?from=${from}`)).toEqual(["gate.save one"]);
    expect(await found(`?to=${from}&action=gate.*`)).toEqual(["gate.save two", "gate.save one"]);

    const pages: string[] = [];
    let cursor: unknown;
    do {
      const more = cursor === undefined ? "" : `&cursor=${encodeURIComponent(String(cursor))}`;
      const page = await account.get(`/v1/audit?limit=2${more}`);
      pages.push(...entriesIn(page).map(({ sequence }) => sequence));
      cursor = page.body.cursor;
    } while (cursor !== undefined);
    expect(pages).toEqual((await entriesOf(account)).map(({ sequence }) => sequence));
  });

  test(`a page scans ${SCANNED_ROWS_MAX} entries at most, then returns a cursor`, async () => {
    const account = await server.account();
    await switchFlag(account, "first", true);
    const { kernel } = server.server;
    const own = await newestOf(account);
    const copy = kernel.db.change<[number, string]>(
      "INSERT INTO audit_log (at, account_ref, action, summary, actor_type, target_type, target_id, truncated) SELECT at, account_ref, 'other', summary, actor_type, target_type, target_id, 0 FROM audit_log, (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT i FROM n) WHERE sequence = ?",
    );
    // The first one is the last that is scanned.
    await kernel.writer.submit((tx) => void copy(tx, SCANNED_ROWS_MAX - 1, own.sequence));
    const at = await account.get("/v1/audit?action=gate.save");
    expect(entriesIn(at)).toHaveLength(1);
    expect(at.body.cursor).toBeDefined();
    const end = await account.get(`/v1/audit?action=gate.save&cursor=${at.body.cursor}`);
    expect(end.body).toEqual({ entries: [] });
    // One more, and it is beyond the end of the first page.
    await kernel.writer.submit((tx) => void copy(tx, 1, own.sequence));
    const past = await account.get("/v1/audit?action=gate.save");
    expect(entriesIn(past)).toEqual([]);
    const next = await account.get(`/v1/audit?action=gate.save&cursor=${past.body.cursor}`);
    expect(entriesIn(next)).toHaveLength(1);
  });

  test("use an index", () => {
    using db = new Database(server.server.kernel.db.path, { readonly: true });
    const plan = (where: string) =>
      JSON.stringify(
        db
          .query(
            `EXPLAIN QUERY PLAN SELECT sequence FROM audit_log WHERE ${where} AND sequence >= 1 AND sequence <= 9 ORDER BY sequence DESC LIMIT 5`,
          )
          .all(),
      );
    expect(plan("account_ref = 1")).toContain("audit_log_by");
    expect(plan("subject_ref = 1")).toContain("audit_log_by_subject");
    expect(plan("project_id = 'p' AND +account_ref = 1")).toContain("audit_log_by_project");
    expect(plan("account_ref = 1 AND target_type = 'a' AND target_id = 'b'")).toContain(
      "audit_log_by_target",
    );
  });
});
