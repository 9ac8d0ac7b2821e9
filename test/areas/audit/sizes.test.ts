import { afterAll, beforeAll, expect, test } from "bun:test";
import { STEP_BYTES_MAX } from "../../../src/areas/audit/domain.ts";
import { AuditService } from "../../../src/areas/audit/service.ts";
import { auditStore } from "../../../src/areas/audit/store.ts";
import { DEFINITION_SIDE } from "../../../src/kernel/audit/redaction.ts";
import type { Caller } from "../../../src/kernel/callers/caller.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import { type Entry, newestOf, switchFlag } from "./support.ts";

let server: TestServer;
let account: AccountClient;
let accountRef = 0;
/** Entries with the largest possible sides. */
const LARGE_ENTRIES = 40;
const ENTRY_BYTES = 2 * DEFINITION_SIDE.bytesMax;

beforeAll(async () => {
  server = await startTestServer();
  account = await server.account();
  await switchFlag(account, "beta", true);
  await switchFlag(account, "beta", false);
  const { db, writer } = server.server.kernel;
  const copy = db.change<[string, string, number]>(
    "INSERT INTO audit_log (at, account_ref, action, summary, actor_type, target_type, target_id, was, became, truncated) SELECT at, account_ref, action, summary, actor_type, target_type, target_id, ?, ?, 0 FROM audit_log WHERE sequence = ?",
  );
  const side = JSON.stringify({ text: "x".repeat(DEFINITION_SIDE.bytesMax - '{"text":""}'.length) });
  const sequence = Number((await newestOf(account)).sequence);
  await writer.submit((tx) => {
    for (let count = 0; count < LARGE_ENTRIES; count += 1) copy(tx, side, side, sequence);
  });
  accountRef = db.number<[number]>("SELECT account_ref AS n FROM audit_log WHERE sequence = ?")(sequence);
});
afterAll(() => server.stop());

test("a page ends at the size of a step, and its cursor leads to all entries", async () => {
  const sequences: number[] = [];
  let cursor: string | undefined;
  do {
    const query = cursor === undefined ? "" : `&cursor=${cursor}`;
    const { body, text } = await account.get(`/v1/audit?limit=100${query}`);
    expect(text.length).toBeLessThanOrEqual(STEP_BYTES_MAX + ENTRY_BYTES);
    sequences.push(...(body.entries as Entry[]).map(({ sequence }) => Number(sequence)));
    cursor = body.cursor as string | undefined;
  } while (cursor !== undefined);
  expect(sequences).toEqual([...sequences].sort((sequence, other) => other - sequence));
  expect(new Set(sequences).size).toBe(sequences.length);
  expect(sequences.length).toBeGreaterThanOrEqual(LARGE_ENTRIES + 2);
});

test("an export is made in steps limited by bytes, not only by entries", () => {
  const { db } = server.server.kernel;
  const service = new AuditService(auditStore(db), { refOfUser: () => 0 });
  const account = { ref: accountRef };
  const caller = { account, projectBound: false, scopes: new Set(["*"]) } as unknown as Caller;
  const source = service.export(caller, caller, {});
  let lines = 0;
  let steps = 0;
  for (let piece = source.next(); piece !== null; piece = source.next()) {
    expect(piece.length).toBeLessThanOrEqual(STEP_BYTES_MAX + ENTRY_BYTES);
    lines += piece.split("\n").length - 1;
    steps += 1;
  }
  source.end();
  expect(lines).toBeGreaterThanOrEqual(LARGE_ENTRIES + 2);
  expect(steps).toBeGreaterThanOrEqual(LARGE_ENTRIES);
});
