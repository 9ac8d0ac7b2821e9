import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { KeyUses, UNWRITTEN_USES_MAX } from "../../../src/areas/keys/key-uses.ts";
import { type ActiveKey, KEYS_IN_MEMORY_MAX, KeyRegistry } from "../../../src/areas/keys/registry.ts";
import { KeyRoles } from "../../../src/areas/keys/roles/roles.ts";
import { roleStore } from "../../../src/areas/keys/roles/store.ts";
import { type KeyRow, type KeyStore, keyStore, type NewKeyRow } from "../../../src/areas/keys/store.ts";
import { ApiError } from "../../../src/kernel/errors.ts";
import { keyDigest, keyDigestHex } from "../../../src/kernel/secrets/key-format.ts";
import { eventually } from "../../support/eventually.ts";
import { KernelBench } from "../projects/kernel-bench.ts";

let bench: KernelBench;
let store: KeyStore;
let uses: KeyUses;
beforeEach(() => {
  bench = new KernelBench();
  store = keyStore(bench.kernel.db);
  uses = new KeyUses(store, bench.kernel);
});
afterEach(async () => {
  await uses.finish();
  bench.close();
});

function registryWith(inMemoryMax?: number, from: KeyStore = store): KeyRegistry {
  const accounts = {
    account: () => {
      throw new Error("nobody calls here");
    },
  };
  const projects = { find: () => null, isDeleted: () => false, activity: { changed: () => {} } };
  const roles = new KeyRoles(roleStore(bench.kernel.db));
  return new KeyRegistry({ store: from, accounts, projects, uses, roles, ...bench.kernel }, inMemoryMax);
}

function keyRow(ref: number): NewKeyRow {
  const id = new Uint8Array(16);
  new DataView(id.buffer).setUint32(0, ref);
  return {
    ref,
    id,
    account_ref: 1,
    project_ref: null,
    project_id: null,
    digest: keyDigest(`secret-${ref}`),
    prefix: "acme",
    last4: "0000",
    name: `k${ref}`,
    scopes: `["scope-${ref % 3}"]`,
    environment: null,
    metadata: null,
    created_at: ref,
    expires_at: null,
    owner_id: null,
    meter_id: null,
    enabled: 1,
    ratelimits: null,
    allowed_ips: null,
    allowance_ref: null,
    managed_by: null,
    created_by: null,
    holder: null,
    permissions: null,
    roles: null,
  };
}

const STANDING = { rotated_at: null, revoked_at: null, deleted: 0, purge_at: null };

/** Inserts keys with the secrets `secret-1` and so on. */
function fill(count: number): Promise<void> {
  return bench.kernel.writer.submit((tx) => {
    for (let ref = 1; ref <= count; ref += 1) store.insert(tx, keyRow(ref));
  });
}

function keyIn(registry: KeyRegistry, ref: number): ActiveKey {
  const key = registry.find(keyDigestHex(`secret-${ref}`));
  if (key === undefined) throw new Error(`there is no key ${ref}`);
  return key;
}

describe("keys in memory", () => {
  test("are read from their rows unchanged", async () => {
    await fill(40);
    const registry = registryWith(10);
    for (let round = 0; round < 2; round += 1) {
      for (let ref = 1; ref <= 40; ref += 1) {
        expect(keyIn(registry, ref)).toMatchObject({
          ref,
          scopes: { list: [`scope-${ref % 3}`] },
          revoked_at: null,
        });
      }
    }
  });

  const bounds = [
    [10, 10],
    [KEYS_IN_MEMORY_MAX, undefined],
  ] as const;
  test.each(bounds)("are the recently used ones, up to %d", (bound, given) => {
    let reads = 0;
    const withDigest = (digest: Uint8Array): KeyRow => ({ ...keyRow(++reads), ...STANDING, digest });
    const registry = registryWith(given, { ...store, withDigest });
    const find = (key: number) => registry.find(key.toString(16).padStart(64, "0"));
    for (let key = 1; key <= bound; key += 1) find(key);
    // The oldest is still in memory and recently used from now on: one more drops the next one.
    find(1);
    expect(reads).toBe(bound);
    find(bound + 1);
    find(1);
    expect(reads).toBe(bound + 1);
    find(2);
    expect(reads).toBe(bound + 2);
  });

  test("do not include unknown digests", async () => {
    await fill(1);
    const registry = registryWith(1);
    const key = keyIn(registry, 1);
    expect(registry.find(keyDigestHex("nobody's"))).toBeUndefined();
    expect(keyIn(registry, 1)).toBe(key);
  });

  test("are restored when the unit that changed them fails, also a key that was read in between", async () => {
    await fill(2);
    const registry = registryWith();
    keyIn(registry, 1);
    for (const ref of [1, 2]) {
      const failing = bench.kernel.writer.submit((tx) => {
        store.setRevoked(tx, tx.now, 5, ref);
        registry.change(tx, keyDigest(`secret-${ref}`), { revoked_at: tx.now, purge_at: 5 });
        expect(keyIn(registry, ref).revoked_at).toBe(tx.now);
        throw new ApiError("conflict", "Rejected by this test, after the change.");
      });
      expect(await failing.catch((error: ApiError) => error.code)).toBe("conflict");
      expect(keyIn(registry, ref)).toMatchObject({ revoked_at: null, purge_at: null });
    }
  });
});

describe("uses of keys", () => {
  /** Number of stored uses. */
  const written = (count: number): number => {
    let found = 0;
    for (let ref = 1; ref <= count; ref += 1) if (store.use(ref) !== null) found += 1;
    return found;
  };

  test(`of ${UNWRITTEN_USES_MAX} keys are written immediately, and of fewer keys later`, async () => {
    const key = (ref: number) => ({ ref, use: null });
    for (let ref = 1; ref < UNWRITTEN_USES_MAX; ref += 1) uses.recordUse(key(ref), 7);
    await bench.kernel.writer.submit(() => {});
    expect(store.use(1)).toBe(null);
    expect(uses.lastUseOf(1)).toEqual({ at: 7, ip: null, ua: null });
    uses.recordUse(key(UNWRITTEN_USES_MAX), 7);
    await eventually(() => expect(store.use(1)).toEqual({ at: 7, ip: null, ua: null }));
    await uses.finish();
    expect(written(UNWRITTEN_USES_MAX)).toBe(UNWRITTEN_USES_MAX);
  });

  test("of a removed key are not written", async () => {
    uses.recordUse({ ref: 1, use: null }, 7);
    uses.recordUse({ ref: 2, use: null }, 7);
    uses.forget(1);
    await uses.finish();
    expect([store.use(1), store.use(2)]).toEqual([null, { at: 7, ip: null, ua: null }]);
  });
});
