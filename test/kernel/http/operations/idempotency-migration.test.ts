import { afterEach, beforeEach, expect, test } from "bun:test";
import { MIGRATIONS } from "../../../../migrations/index.ts";
import type { Caller } from "../../../../src/kernel/callers/caller.ts";
import { FreeResponses } from "../../../../src/kernel/http/operations/free-responses.ts";
import { fingerprintOf, IdempotencyStore } from "../../../../src/kernel/http/operations/idempotency.ts";
import { ReplayedResponse } from "../../../../src/kernel/http/responses/response.ts";
import { DEFAULT_TIERS } from "../../../../src/kernel/limits/tiers.ts";
import { createVault } from "../../../../src/kernel/secrets/vault.ts";
import { migrate } from "../../../../src/kernel/storage/migrate.ts";
import { rejection, TestStorage } from "../../support.ts";
import { callerOf } from "./performing.ts";

/** The schema before keys were per project. */
const BEFORE = MIGRATIONS.slice(0, 11);
const FINGERPRINT = fingerprintOf({ method: "POST", target: "/v1/things" }, new Uint8Array());

const vault = createVault(new Uint8Array(32).fill(7));
let storage: TestStorage;
beforeEach(() => {
  storage = new TestStorage();
  migrate(storage.db, BEFORE);
});
afterEach(() => storage.close());

/** A response as earlier versions stored it: sealed under account and key. */
async function keep(key: string, credential: string): Promise<void> {
  const answer = vault.seal(
    JSON.stringify({ status: 200, text: `"${key}"`, headers: null }),
    `idempotency:usr_1:${key}`,
  );
  const insert = storage.db.change<[string, Uint8Array, string, Uint8Array, number]>(
    "INSERT INTO idempotency (account_ref, key, fingerprint, credential, secret, answer, created_at) VALUES (1, ?, ?, ?, 0, ?, ?)",
  );
  await storage.writer.submit((tx) => insert(tx, key, FINGERPRINT, credential, answer, tx.now));
}

async function managedKey(ref: number, projectRef: number | null): Promise<void> {
  const insert = storage.db.change<[number, Uint8Array, number | null, Uint8Array]>(
    "INSERT INTO keys (ref, id, account_ref, project_ref, digest, prefix, last4, name, scopes, created_at, deleted) VALUES (?, ?, 1, ?, ?, 'sm', '1234', 'k', '[]', 0, 0)",
  );
  const bytes = new Uint8Array(16).fill(ref);
  await storage.writer.submit((tx) => insert(tx, ref, bytes, projectRef, bytes));
}

/** What a caller reads under a key after the step; null if the key is free. */
async function readBy(caller: Caller, key: string): Promise<string | null> {
  const answers = new IdempotencyStore(storage.db, vault, new FreeResponses(storage.db, DEFAULT_TIERS));
  const request = { key, fingerprint: FINGERPRINT, secret: false };
  const looking = storage.writer.submit((tx) => {
    answers.check(tx, caller, request);
    throw new Error("free");
  });
  const found = await rejection(looking);
  return found instanceof ReplayedResponse ? found.response.text : null;
}

test("earlier responses are still returned, in the project of their credential", async () => {
  await managedKey(5, 3);
  await managedKey(6, null);
  await keep("of the account", "platform:1");
  await keep("of project 3", "managed:5");
  await keep("of a managed key of the account", "managed:6");
  await keep("of a key that is gone", "managed:99");
  expect(migrate(storage.db, MIGRATIONS)).toContain("0012_idempotency_per_project");

  const account = callerOf(1);
  const production: Caller = { ...account, projectBound: true };
  const staging: Caller = { ...production, project: { ref: 3, id: "proj_3" } };
  const everywhere = ["of the account", "of a managed key of the account", "of a key that is gone"];
  for (const key of everywhere) {
    expect(await readBy(account, key)).toBe(`"${key}"`);
    expect(await readBy(production, key)).toBe(`"${key}"`);
    expect(await readBy(staging, key)).toBeNull();
  }
  expect(await readBy(staging, "of project 3")).toBe('"of project 3"');
  expect(await readBy(account, "of project 3")).toBeNull();
  expect(await readBy(production, "of project 3")).toBeNull();
});
