import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { LAST_PASS_MS } from "../../../src/areas/accounts/removal.ts";
import { expectError } from "../../support/errors.ts";
import { FULL_ACCOUNT_ARGS, makeFullAccount } from "../../support/full-account.ts";
import { endpoint, USER_ID } from "../../support/scenario.ts";
import { AccountClient, startTestServer, type TestServer } from "../../support/server.ts";

let server: TestServer;
beforeEach(async () => {
  server = await startTestServer({ manualClock: true, args: FULL_ACCOUNT_ARGS });
});
afterEach(() => server.stop());

const EMAIL = "jane@example.com";

function pathOf({ userId }: AccountClient): string {
  return `/v1/admin/accounts/${userId}`;
}

function refOf({ userId }: AccountClient): number {
  return server.server.kernel.db.number<[string]>("SELECT ref AS n FROM accounts WHERE user_id = ?")(userId);
}

function tables(): string[] {
  const { db } = server.server.kernel;
  const rows = db.all<{ name: string }>(
    "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name",
  )();
  return rows.map(({ name }) => name);
}

/** Rows of each table. */
function rowCounts(): Record<string, number> {
  const { db } = server.server.kernel;
  return Object.fromEntries(
    tables().map((name) => [name, db.number(`SELECT count(*) AS n FROM "${name}"`)()]),
  );
}

/** Columns that can refer to an account, in any table. */
function accountColumns(): [table: string, column: string][] {
  const { db } = server.server.kernel;
  return tables().flatMap((table) =>
    db
      .all<{ name: string }>(`SELECT name FROM pragma_table_info('${table}')`)()
      .filter(({ name }) => name === "account_ref" || name === "subject_ref" || name === "user_id")
      .map(({ name }): [string, string] => [table, name]),
  );
}

/** The texts of all rows of a table, sealed values excluded. */
function textOf(table: string): string {
  return JSON.stringify(server.server.kernel.db.all(`SELECT * FROM "${table}"`)());
}

async function removed(): Promise<void> {
  await server.clock.advance(1);
  await server.clock.advance(LAST_PASS_MS);
}

/** Tables that others than the account change meanwhile. */
const OF_THE_SERVER: Readonly<Record<string, string>> = {
  audit_log: "the operator's own entries, and the one of the removal",
  audit_bytes: "the operator's",
  jobs: "recurring jobs of the server, and one of all meters",
  monitor_checks: "sequences continue from the newest check, which is stored without its content",
  settings: "highest references, so that none is used again",
  sqlite_sequence: "the same",
  server_minutes: "measurements",
};

/** Tables in which the account of the test has no rows. */
const NOT_FILLED: Readonly<Record<string, string>> = {
  alert_digests: "only of channels that get alerts later",
  escalated_channels: "only during an outage that escalates",
  held_alerts: "only in quiet hours, or for minutes",
  held_totals: "only while alerts are held",
  incident_link_uses: "only of outages with a link that was used",
  login_links: "the operator's, for half an hour",
  meter_stopped_projects: "only while a project is being removed",
  monitor_observer_outages: "of the server",
  monitor_stopped_projects: "only while a project is being removed",
  monitor_votes: "only of monitors that probes check",
  notary_tile_roots: "only from 256 receipts on",
  notary_witness_key: "of the server",
  notary_witnessed: "of the server",
  open_claims: "only between the two units of work of a request",
  probe_results: "only of probes that have sent results",
  rdap_bootstrap: "of the server",
  relay_fan_outs: "only while the deliveries of a message are being stored",
  relay_later_deliveries: "only of messages that were resent to an endpoint without a delivery",
  relay_stopped_projects: "only while a project is being removed",
  replica_position: "of the server",
  server_settings: "of the server",
};

test("nothing of a deleted account remains in any table", async () => {
  const before = rowCounts();
  const { account } = await makeFullAccount(server, EMAIL);
  const full = rowCounts();
  const unfilled = Object.keys(full).filter((table) => full[table] === before[table]);
  expect(unfilled).toEqual(Object.keys(NOT_FILLED));
  const ref = refOf(account);
  const { db } = server.server.kernel;
  const projects = db.all<{ id: string }, [number]>("SELECT id FROM projects WHERE account_ref = ?")(ref);
  expect(projects.length).toBeGreaterThan(1);
  expect((await server.operator.delete(pathOf(account))).status).toBe(202);
  await removed();
  for (const [table, column] of accountColumns()) {
    const value = column === "user_id" ? account.userId : ref;
    const left = db.number<[string | number]>(`SELECT count(*) AS n FROM "${table}" WHERE ${column} = ?`)(
      value,
    );
    expect([table, column, left]).toEqual([table, column, 0]);
  }
  const after = rowCounts();
  const changed = Object.keys(after).filter((table) => after[table] !== before[table]);
  expect(Object.keys(OF_THE_SERVER)).toEqual(expect.arrayContaining(changed));
  const words = [EMAIL, ...projects.map(({ id }) => id), "127.0.0.1:9", "endpoint-secret"];
  const found = tables().flatMap((table) => words.filter((word) => textOf(table).includes(word)));
  expect(found).toEqual([]);
  expect(tables().filter((table) => textOf(table).includes(account.userId))).toEqual(["audit_log"]);
  // Nothing is left that could fail later.
  await server.clock.advance(31 * 24 * 3_600_000);
  await server.restart();
  expect(server.logs.filter(({ level }) => level === "error" || level === "warn")).toEqual([]);
}, 60_000);

describe("from the response on", () => {
  test("keys and sessions get 401, public addresses are gone, and the e-mail address is free", async () => {
    const { account, managed, browser, publicPaths } = await makeFullAccount(server, EMAIL);
    const look = async (path: string) => (await fetch(server.url + path)).status;
    expect(await look(publicPaths.page)).toBe(200);
    expect(await look(publicPaths.ping)).toBe(200);
    const deleted = await server.operator.delete(pathOf(account));
    expect(deleted.status).toBe(202);
    expect(deleted.body).toEqual({ user_id: account.userId, deleted_at: expect.stringMatching(/Z$/) });
    expect((await browser.get("/v1/gate")).status).toBe(401);
    for (const moment of ["before the removal", "after a restart", "after the removal"]) {
      if (moment === "after a restart") await server.restart();
      if (moment === "after the removal") await removed();
      const clients = [server.client(account.key), server.client(managed.key)];
      for (const client of clients) expectError(await client.get("/v1/meter/balance"), "unauthorized");
      expect(await look(publicPaths.page)).toBe(404);
      expect(await look(publicPaths.ping)).toBe(404);
      // An unknown bucket responds like every other one, and stores nothing.
      await look(publicPaths.bucket);
    }
    const { accounts } = (await server.operator.get("/v1/admin/accounts")).body;
    expect((accounts as { email: string }[]).map(({ email }) => email)).toEqual(["operator@localhost"]);
  }, 60_000);

  test("it is not found, and a new account with its e-mail address starts clean", async () => {
    const account = await server.account({ email: EMAIL, tier: "free" });
    await account.post("/v1/gate", { flag_key: "a", enabled: true });
    expect((await server.operator.delete(pathOf(account))).status).toBe(202);
    expectError(await server.operator.delete(pathOf(account)), "not_found");
    expectError(await server.operator.patch(pathOf(account), { tier: "pro" }), "not_found");
    expectError(await server.operator.post(`${pathOf(account)}/reset-key`), "not_found");
    const again = await server.account({ email: EMAIL, tier: "free" });
    expect(again.userId).not.toBe(account.userId);
    await removed();
    await server.restart();
    const client = new AccountClient(server.url, again.key ?? "", again.userId, EMAIL);
    expect((await client.get("/v1/gate")).body.flags).toEqual([]);
    expect((await client.get("/v1/meter/balance")).body).toEqual({ balance: 10_000, user_id: again.userId });
    expect((await client.get("/v1/audit")).body.entries).toEqual([]);
  });

  test("waiting requests and open streams end", async () => {
    const account = await server.account();
    await account.post("/v1/latch/l/acquire", { ttl: 900_000 });
    const waiting = account.post("/v1/latch/l/acquire", { ttl: 900_000, wait: true, wait_timeout: 600_000 });
    const stream = await fetch(`${server.url}/v1/changes`, {
      headers: { authorization: `Bearer ${account.key}` },
    });
    expect(stream.status).toBe(200);
    await Bun.sleep(50);
    expect((await server.operator.delete(pathOf(account))).status).toBe(202);
    expect([401, 403]).toContain((await waiting).status);
    // Ends by itself.
    await stream.text();
  });
});

describe("DELETE /v1/admin/accounts/{user_id}", () => {
  const PATH = `/v1/admin/accounts/${USER_ID}`;
  endpoint(() => server, "DELETE /v1/admin/accounts/{user_id}", [
    {
      name: "an account",
      as: "operator",
      request: ["DELETE", PATH],
      status: 202,
      after: async ({ account }, { body }) => {
        const deleted_at = new Date(server.clock.now()).toISOString();
        expect(body).toEqual({ user_id: account.userId, deleted_at });
      },
      gone: true,
    },
    {
      name: "a user id that is too long",
      as: "operator",
      request: ["DELETE", `/v1/admin/accounts/${"x".repeat(65)}`],
      status: 400,
      code: "validation_error",
    },
    { name: "without a key", as: "nobody", request: ["DELETE", PATH], status: 401, code: "unauthorized" },
    { name: "with its own key", request: ["DELETE", PATH], status: 403, code: "forbidden" },
    {
      name: "an account that does not exist",
      as: "operator",
      request: ["DELETE", "/v1/admin/accounts/usr_00000000000000000000"],
      status: 404,
      code: "not_found",
    },
    {
      name: "an Idempotency-Key used for another request",
      as: "operator",
      headers: { "idempotency-key": "deletion" },
      before: () =>
        server.operator.post(
          "/v1/meter/refill",
          { amount: 1 },
          { headers: { "idempotency-key": "deletion" } },
        ),
      request: ["DELETE", PATH],
      status: 409,
      code: "conflict",
    },
  ]);
});

test("the operator's account and the caller's own cannot be deleted", async () => {
  const { accounts } = (await server.operator.get("/v1/admin/accounts")).body;
  const [{ user_id: operatorId }] = accounts as [{ user_id: string }];
  const { error } = expectError(await server.operator.delete(`/v1/admin/accounts/${operatorId}`), "conflict");
  expect(error.message).toBe("This is the operator's account, which cannot be deleted.");
  const other = await server.account({ tier: "unlimited" });
  const own = expectError(await other.delete(pathOf(other)), "conflict");
  expect(own.error.message).toContain("your own account");
  expectError(await other.delete(`/v1/admin/accounts/${operatorId}`), "conflict");
  expect((await server.operator.get("/v1/admin/accounts")).status).toBe(200);
  expectError(await (await server.account()).delete(pathOf(other)), "forbidden");
  expectError(await server.operator.delete("/v1/admin/accounts/usr_nobody"), "not_found");
});

test("the audit log keeps the deletion and what a deleted operator did, without the e-mail address", async () => {
  const other = await server.account({ tier: "unlimited", email: EMAIL });
  const tenant = await other.post("/v1/admin/accounts", { email: "kept@example.com", tier: "free" });
  await other.post("/v1/gate", { flag_key: "private", enabled: true });
  expect((await server.operator.delete(pathOf(other))).status).toBe(202);
  await removed();
  const { text, body } = await server.operator.get("/v1/admin/audit");
  expect(text).not.toContain(EMAIL);
  const entries = body.entries as { action: string; summary: string; target: { id: string } }[];
  expect(entries.map(({ action }) => action)).toEqual([
    "accounts.purge",
    "admin.accounts.delete",
    "admin.accounts.create",
    "admin.accounts.create",
    "server.start",
  ]);
  expect(entries.map(({ target }) => target.id)).toEqual([
    other.userId,
    other.userId,
    String(tenant.body["user_id"]),
    other.userId,
    "ninefold",
  ]);
  expect(entries[1]?.summary).toBe(`Account ${other.userId} deleted`);
  expect(entries[3]?.summary).toBe(`Account ${other.userId}, which has been deleted since`);
});

test("the removal continues after a stop, and references are not used again", async () => {
  const { account } = await makeFullAccount(server, EMAIL);
  const ref = refOf(account);
  expect((await server.operator.delete(pathOf(account))).status).toBe(202);
  await server.restart();
  expect(refOf(account)).toBe(ref);
  await server.clock.advance(LAST_PASS_MS);
  await removed();
  expect(refOf(account)).toBe(0);
  await server.restart();
  const next = await server.account();
  expect(refOf(next)).toBe(ref + 1);
  expectError(await server.client(account.key).get("/v1/meter/balance"), "unauthorized");
}, 60_000);
