import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { WHOLE_PROJECT } from "../../../src/areas/meter/usage/reader.ts";
import { tablesIn } from "../../../src/kernel/projects/account-export.ts";
import { FULL_ACCOUNT_ARGS, makeFullAccount, SEALED } from "../../support/full-account.ts";
import { repeated } from "../../support/long-form.ts";
import { longestTurnMs } from "../../support/processor-time.ts";
import { endpoint, USER_ID } from "../../support/scenario.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";

let server: TestServer;
beforeEach(async () => {
  server = await startTestServer({ manualClock: true, args: FULL_ACCOUNT_ARGS });
});
afterEach(() => server.stop());

type ExportedLine = Record<string, unknown> & { readonly type: string };

async function exported({ userId }: AccountClient): Promise<{ lines: ExportedLine[]; text: string }> {
  const answer = await fetch(`${server.url}/v1/admin/accounts/${userId}/export`, {
    headers: { authorization: `Bearer ${server.key}` },
  });
  expect(answer.status).toBe(200);
  expect(answer.headers.get("content-type")).toBe("application/x-ndjson");
  expect(answer.headers.get("content-disposition")).toBe(`attachment; filename="${userId}.jsonl"`);
  const text = await answer.text();
  expect(text.endsWith("\n")).toBe(true);
  return {
    lines: text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line)),
    text,
  };
}

test("numbers have their digits", async () => {
  const account = await server.account({ tier: "pro" });
  const body =
    '{"cron": "@daily", "target_url": "https://example.com/", "payload": {"id": 1234567890123456789}}';
  expect((await account.post("/v1/relay/schedules", body)).status).toBe(201);
  const { text } = await exported(account);
  expect(text.split("1234567890123456789").length).toBeGreaterThan(2);
});

/** Tables that no export has, each with its reason. */
const NOT_EXPORTED: Readonly<Record<string, string>> = {
  account_counts: "in the header",
  accounts: "the record of the account, without the columns of the server",
  alert_digests: "when alerts that channels got later were sent",
  audit_bytes: "a counter of the server",
  catch_seen: "digests of ids that the events have",
  catch_targets: "an index of the targets in the settings of buckets",
  escalated_channels: "who gets the recovery of an outage that is open",
  free_answers: "a counter of the server",
  held_alerts: "alerts that are sent later; the incidents are exported",
  held_totals: "a counter of the server",
  idempotency: "responses that are stored for a day; what they describe is exported",
  incident_link_uses: "digests of links",
  incident_monitors: "an index of the incidents' monitor_ids",
  jobs: "what they will do follows from what is exported",
  keys_with_roles: "an index of the roles in keys",
  login_links: "the operator's, for half an hour",
  meter_stopped_projects: "only while a project is being removed",
  monitor_observer_outages: "of the server",
  monitor_stopped_projects: "only while a project is being removed",
  monitor_votes: "what the next results of probes say again",
  notary_tile_roots: "hashes over the leaves",
  notary_witness_key: "of the server",
  notary_witnessed: "of the server",
  open_claims: "only between the two units of work of a request",
  probe_results: "digests of ids of results",
  rdap_bootstrap: "of the server",
  receipt_leaves: "hashes of the receipts",
  receipt_values: "an index of the receipts",
  receipts_without_log: "in the receipts",
  relay_fan_outs: "only while the deliveries of a message are being stored",
  relay_later_deliveries: "deliveries that are exported",
  relay_order: "deliveries that are exported",
  relay_parked: "deliveries that are exported",
  relay_stopped_projects: "only while a project is being removed",
  replica_position: "of the server",
  server_minutes: "of the server",
  server_settings: "of the server",
  settings: "of the server",
  sqlite_sequence: "of the server",
  status_unsubscribed: "digests of addresses that have left",
};

test("every table is exported or has a reason, and every row of the account is a record", async () => {
  const before = rowCounts();
  const { account } = await makeFullAccount(server, "jane@example.com");
  const earlier = rowCounts();
  const { lines, text } = await exported(account);
  const tables = tablesOfExport();
  const names = new Set(tables.map(({ table }) => table));
  const all = Object.keys(before);
  expect(all.filter((table) => !names.has(table))).toEqual(Object.keys(NOT_EXPORTED));
  const after = rowCounts();
  const records = Map.groupBy(lines, ({ type }) => type);
  for (const name of names) {
    const types = tables.filter(({ table }) => table === name).map(({ type }) => type);
    const count = types.reduce((sum, type) => sum + (records.get(type)?.length ?? 0), 0);
    // Those of the server and the operator, and what the export itself adds.
    const others = name === "audit_log" ? othersEntries(account) : (before[name] ?? 0) + (EMPTIED[name] ?? 0);
    const rows = (after[name] ?? 0) - others;
    // Sums of meters are written in the background, also during the export.
    if (name === "meter_usage") expect(count).toBeWithin((earlier[name] ?? 0) - others, rows + 1);
    else expect([name, count]).toEqual([name, rows]);
    expect([name, count > 0]).toEqual([name, true]);
  }
  for (const secret of HIDDEN) expect(text).not.toContain(secret);
  for (const secret of ["monitor-secret", "pinged", "event-secret"]) expect(text).toContain(secret);
  expect(
    lines.filter(({ type }) => type.endsWith("_secret")).map(({ secret }) => String(secret).slice(0, 6)),
  ).toContain("whsec_");
  await expectAsTheApiShows(account, lines);
}, 180_000);

/** Buckets have the settings, and events and what belongs to them the ids, that the API shows. */
async function expectAsTheApiShows(account: AccountClient, lines: readonly ExportedLine[]): Promise<void> {
  const of = (wanted: string) => lines.filter(({ type }) => type === wanted);
  const withSettings = of("bucket").filter(({ settings }) => settings !== null);
  expect(withSettings.length).toBeGreaterThan(2);
  for (const { id, settings } of withSettings)
    expect((await account.get(`/v1/catch/buckets/${id}`)).body).toMatchObject(settings as object);
  expect(withSettings).toContainEqual(
    expect.objectContaining({
      settings: expect.objectContaining({ challenge: expect.objectContaining({ has_token: true }) }),
    }),
  );
  const events = new Set(of("event").map(({ id }) => id));
  const bucket_id = of("event_attempt")[0]?.["bucket_id"];
  for (const { id } of of("event").filter((item) => item["bucket_id"] === bucket_id))
    expect((await account.get(`/v1/catch/${bucket_id}/events/${id}`)).body).toMatchObject({ id });
  const below = [...of("event_payload"), ...of("event_attempt")];
  const ofEvents = of("delivery").filter(({ event_id }) => event_id !== null);
  expect(new Set(below.map(({ type }) => type)).size).toBe(2);
  expect(ofEvents.length).toBeGreaterThan(0);
  for (const { event_id } of [...below, ...ofEvents]) expect(events).toContain(event_id);
}

/** Rows without data: the key of a deleted project, and the latest check of the server. */
const EMPTIED: Readonly<Record<string, number>> = { keys: 1 };
/** Secrets that the API never shows. */
const HIDDEN = ["s3-secret-s3-secret", ...SEALED.filter((secret) => secret !== "monitor-secret")];

function othersEntries({ userId }: AccountClient): number {
  return server.server.kernel.db.number<[string]>(
    "SELECT count(*) AS n FROM audit_log WHERE account_ref IS NOT (SELECT ref FROM accounts WHERE user_id = ?)",
  )(userId);
}

function rowCounts(): Record<string, number> {
  const { db } = server.server.kernel;
  const tables = db.all<{ name: string }>(
    "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name",
  )();
  // Sums of whole projects are no records: they follow from those of the meters.
  const recordsOf = (name: string) => (name === "meter_usage" ? ` WHERE meter_ref <> ${WHOLE_PROJECT}` : "");
  return Object.fromEntries(
    tables.map(({ name }) => [name, db.number(`SELECT count(*) AS n FROM "${name}"${recordsOf(name)}`)()]),
  );
}

function tablesOfExport() {
  return tablesIn(server.server.app.accounts.exportedTables());
}

describe("GET /v1/admin/accounts/{user_id}/export", () => {
  const PATH = `/v1/admin/accounts/${USER_ID}/export`;
  endpoint(() => server, "GET /v1/admin/accounts/{user_id}/export", [
    {
      name: "an account",
      as: "operator",
      request: ["GET", PATH],
      status: 200,
      after: ({ account }, { text }) => {
        const lines = text
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line));
        expect(lines[0]).toEqual({
          type: "export",
          format: 1,
          version: expect.any(String),
          user_id: account.userId,
          exported_at: new Date(server.clock.now()).toISOString(),
          counts: { projects: 1 },
        });
        expect(lines[1]).toMatchObject({ type: "account", user_id: account.userId, email: account.email });
        expect(lines.at(-1)).toEqual({ type: "end", user_id: account.userId, records: lines.length - 2 });
      },
    },
    {
      name: "a user id that is too long",
      as: "operator",
      request: ["GET", `/v1/admin/accounts/${"x".repeat(65)}/export`],
      status: 400,
      code: "validation_error",
    },
    { name: "without a key", as: "nobody", request: ["GET", PATH], status: 401, code: "unauthorized" },
    { name: "with its own key", request: ["GET", PATH], status: 403, code: "forbidden" },
    {
      name: "an account that does not exist",
      as: "operator",
      request: ["GET", "/v1/admin/accounts/usr_00000000000000000000/export"],
      status: 404,
      code: "not_found",
    },
  ]);
});

test("an export is audited in the operator's log", async () => {
  const account = await server.account();
  await exported(account);
  const { entries } = (await server.operator.get("/v1/admin/audit?limit=1")).body as { entries: object[] };
  expect(entries).toMatchObject([
    { action: "admin.accounts.export", target: { type: "account", id: account.userId } },
  ]);
});

test("a chain is exported as receipts that the notary verifies", async () => {
  const account = await server.account();
  await account.post("/v1/witness/sys/init", {});
  for (const n of [1, 2, 3]) await account.post("/v1/witness/log", { log: { n } });
  const { lines } = await exported(account);
  const receipts = lines.filter(({ type }) => type === "receipt");
  expect(receipts.map(({ log }) => log)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
  for (const { type: _, project_id: __, chain_id: ___, ...receipt } of receipts) {
    const { body } = await account.post("/v1/witness/verify", { receipt });
    expect(body).toMatchObject({ valid: true });
  }
});

test("an account that is deleted during its export has no end marker", async () => {
  const account = await server.account();
  const { kernel } = server.server;
  await fillLedger(account, 20_000);
  const response = await fetch(`${server.url}/v1/admin/accounts/${account.userId}/export`, {
    headers: { authorization: `Bearer ${server.key}` },
  });
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  await reader.read();
  await server.operator.delete(`/v1/admin/accounts/${account.userId}`);
  let text = "";
  const rest = async (): Promise<void> => {
    for (let part = await reader.read(); !part.done; part = await reader.read())
      text += Buffer.from(part.value).toString();
  };
  await rest().catch(() => undefined);
  expect(text).not.toContain('"type":"end"');
  expect(kernel.db.number("SELECT count(*) AS n FROM accounts")()).toBe(2);
});

/** Appends entries to the ledger of an account balance. */
async function fillLedger({ userId }: AccountClient, count: number): Promise<void> {
  const { db, writer } = server.server.kernel;
  const ref = db.number<[string]>("SELECT ref AS n FROM accounts WHERE user_id = ?")(userId);
  const insert = db.change<[from: number, count: number, ref: number]>(
    `WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < ?2)
     INSERT INTO account_entries (sequence, account_ref, kind, amount, balance_after, at)
     SELECT ?1 + value, ?3, 'refill', 1, value, value FROM n`,
  );
  await writer.submit((tx) => insert(tx, 1_000_000, count, ref));
}

/** Exports an account line by line: how many there are, and the end of the last. `half` is called in the middle of the ledger. */
async function readExport({ userId }: AccountClient, half: () => void = () => undefined) {
  const response = await fetch(`${server.url}/v1/admin/accounts/${userId}/export`, {
    headers: { authorization: `Bearer ${server.key}` },
  });
  let [lines, last, isHalf] = [0, "", false];
  for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) {
    for (const byte of part) if (byte === 10) lines += 1;
    last = Buffer.from(part.subarray(-200)).toString();
    if (isHalf || lines < ENTRIES / 2) continue;
    isHalf = true;
    half();
  }
  return { lines, last };
}

test("a large ledger holds no other request up and needs little memory", async () => {
  const account = await server.account();
  await fillLedger(account, ENTRIES);
  let ended = { lines: 0, last: "" };
  const longest = await longestTurnMs(async () => {
    ended = await readExport(account);
  });
  expect(ended.lines).toBeGreaterThan(ENTRIES);
  expect(ended.last).toContain('"type":"end"');
  // Rendered in one piece it would take twice as long. The client of this test shares the event loop.
  expect(longest).toBeLessThan(LONGEST_MS);
  // What is kept of it in its middle. Garbage does not count: how much of it lies around depends on the other tests' heap.
  const used = (): number => {
    Bun.gc(true);
    return process.memoryUsage().heapUsed;
  };
  const before = used();
  let kept = 0;
  await readExport(account, () => {
    kept = used() - before;
  });
  expect(kept).toBeLessThan(KEPT_BYTES_MAX);
}, 600_000);

/** Entries of the ledger. */
const ENTRIES = repeated(100_000, 1_000_000);
const LONGEST_MS = repeated(400, 2_000);
/** The whole export of so many entries takes several times as much. */
const KEPT_BYTES_MAX = 4 * 1024 * 1024;
