import type { AuditedKey } from "../../kernel/audit/trail.ts";
import type { Caller, Charger } from "../../kernel/callers/caller.ts";
import { hourOf } from "../../kernel/data/usage.ts";
import { bytesToUuid } from "../../kernel/data/uuid.ts";
import type { Authenticator } from "../../kernel/http/access/guard.ts";
import type { Api } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { TierLimit } from "../../kernel/limits/tier-limits.ts";
import type { Tiers } from "../../kernel/limits/tiers.ts";
import { COUNTED_MAX } from "../../kernel/projects/overview-card.ts";
import type { ProjectResources, RemoveAccountRows } from "../../kernel/projects/resources.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { Admission, admissionRequestOf } from "./admission.ts";
import { grantableScopes, RETENTION_MS, USAGE_RETENTION_MS } from "./domain.ts";
import { keyExport } from "./export.ts";
import { KeyUses } from "./key-uses.ts";
import { LimitLevels } from "./limit-levels.ts";
import { KEYS_SCANNED_MAX, keyCard } from "./overview-card.ts";
import { KeyLimits } from "./rate-limits.ts";
import { type KeyDeps, KeyRegistry, managedRef } from "./registry.ts";
import { KeyRoles } from "./roles/roles.ts";
import { roleRoutes } from "./roles/routes.ts";
import { roleStore } from "./roles/store.ts";
import { keyRoutes } from "./routes.ts";
import { KeyService } from "./service.ts";
import { type KeyStore, keyStore, type RemovableKey } from "./store.ts";
import { KeyVerdict, VERIFY_FIELDS } from "./verify-schema.ts";

/** Rows of usage removed in one unit of work: under a millisecond. */
const USAGE_ROWS_PURGED = 500;
/** Levels of rate limits that are full again, removed in one unit of work: a millisecond. */
const LEVELS_PURGED = 500;

const DESCRIPTION =
  "Managed keys with scopes, for this API or for your own: create, rotate, revoke and verify them. Rotation of the platform key.";

/** Builds the area: keys that accounts create, for this API or for their own. */
export function createKeys(
  kernel: Kernel,
  deps: Pick<KeyDeps, "accounts" | "projects"> & { tiers: Tiers; charger: Charger },
) {
  const store = keyStore(kernel.db);
  const uses = new KeyUses(store, kernel);
  const roles = new KeyRoles(roleStore(kernel.db));
  const shared = { ...kernel, ...deps, store, uses, roles };
  const registry = new KeyRegistry(shared);
  const tierLimit = new TierLimit(kernel.db, deps.tiers, "keys", "key_limit_exceeded");
  const levels = new LimitLevels(store, kernel);
  const limits = new KeyLimits(levels);
  /** Removes keys from memory, and from the database by `removeRow`. Returns their number. */
  const remove = (tx: Tx, keys: readonly RemovableKey[], removeRow: (ref: number) => void): number => {
    for (const { ref, digest, allowance_ref } of keys) {
      removeRow(ref);
      store.removeUse(tx, ref);
      store.removeUnusedAllowance(tx, allowance_ref ?? ref);
      store.removeUnusedLimitLevels(tx, allowance_ref ?? ref);
      registry.drop(tx, digest);
      uses.forget(ref);
    }
    return keys.length;
  };
  const removeKey = (tx: Tx, key: RemovableKey) => {
    remove(tx, [key], (ref) => store.remove(tx, ref));
  };
  const service = new KeyService({ ...shared, registry, tierLimit, limits, remove: removeKey });
  const admission = new Admission({ store, registry, uses, limits });
  const purgeKeys = (tx: Tx, rowsMax: number) =>
    remove(tx, store.purgeable(tx.now, rowsMax), (ref) => store.remove(tx, ref));
  registerPurges(kernel, store, purgeKeys);
  const resources: ProjectResources = {
    name: "keys",
    // Keys of the project that are not revoked; in the default project also those of the account.
    count: (project, defaultOf) =>
      store.countOfProject(project, KEYS_SCANNED_MAX, COUNTED_MAX) +
      (defaultOf === null ? 0 : store.countOfAccount(defaultOf, KEYS_SCANNED_MAX, COUNTED_MAX)),
    // Cleared rather than removed: for 30 days verify reports `deleted`, and a request with the key gets 403.
    removeRows: (tx, projectRef, rowsMax) => {
      let removed = remove(tx, store.batchOfProject(projectRef, rowsMax), (ref) =>
        store.empty(tx, tx.now + RETENTION_MS, ref),
      );
      removed += store.removeLimitLevelsOfProject(tx, projectRef, rowsMax - removed);
      return removed + roles.removeRows(tx, projectRef, rowsMax - removed);
    },
  };
  /** Removes the keys of a deleted account with their usage. */
  const removeRows: RemoveAccountRows = (tx, accountRef, rowsMax) => {
    let left = rowsMax;
    for (const find of [store.batchOfAccount, store.emptiedOfAccount]) {
      for (const key of left === 0 ? [] : find(accountRef, left)) {
        left -= store.removeUsageOf(tx, key.ref, left);
        if (left === 0) break;
        left -= remove(tx, [key], (ref) => store.remove(tx, ref));
        if (left === 0) break;
      }
    }
    // Last: as long as there are keys, levels may still be written.
    left -= store.removeLimitLevelsOfAccount(tx, accountRef, left);
    return rowsMax - left;
  };
  return {
    removeRows,
    exported: keyExport,
    /** An authenticator of both managed and platform keys. */
    authenticatorWith: (platformKeys: Authenticator): Authenticator => ({
      // Memory first, so that a recently used managed key does not cost a lookup among the platform keys.
      authenticate: (digest) =>
        registry.authenticateActive(digest) ??
        platformKeys.authenticate(digest) ??
        registry.authenticate(digest),
    }),
    resources,
    /** Evaluates the keys of end users for other areas: the fields of a request, and the evaluation. */
    admission: admissionOf(admission),
    card: keyCard(store),
    /** The key behind a credential, for the audit log; null if it is not a managed key. */
    auditedKey: (credential: string) => auditedKey(store, credential),
    /** Who holds the key behind a credential: see `KeyService.holderOf`. */
    holderOf: (credential: string) => service.holderOf(credential),
    keyNames: keyNames(store),
    /** Keys that people have created. */
    ofPeople: {
      createdBy: (accountRef: number, personId: string) => service.createdBy(accountRef, personId),
      revokeCreatedBy: (tx: Tx, caller: Caller, personId: string) =>
        service.revokeCreatedBy(tx, caller, personId),
    },
    /** Sets the scopes that operations require, which limits the scopes that keys can have. */
    setRequiredScopes: (required: Iterable<string>) => {
      service.knownScopes = grantableScopes(required);
    },
    parts: [{ name: "Keys", description: DESCRIPTION }],
    alsoCalled: { keys: ["api-keys", "apikeys"], verify: ["validate"] },
    routes: (api: Api) => [...keyRoutes(api, service, admission), roleRoutes(api, roles)],
    /** Writes what is only in memory. Call before the process exits. */
    finish: async () => {
      await uses.finish();
      await levels.finish();
    },
  };
}

function admissionOf(admission: Admission) {
  return {
    fields: VERIFY_FIELDS,
    facts: KeyVerdict.properties,
    requestOf: admissionRequestOf,
    consumesUses: admission.consumesUses.bind(admission),
    examine: admission.examine.bind(admission),
  };
}

function keyNames(store: KeyStore) {
  return {
    /** A permanent name of the key behind a credential; null if it is not a managed key. */
    nameOf: (credential: string): Uint8Array | null => {
      const ref = managedRef(credential);
      return ref === null ? null : (store.withRef(ref)?.id ?? null);
    },
    /** The digest (hex) of the key with this name; null when there is none, or its project has been deleted. */
    digestOf: (name: Uint8Array): string | null => {
      const key = store.withId(name);
      return key && Buffer.from(key.digest).toString("hex");
    },
  };
}

/** `purgeKeys` removes at most `rowsMax` keys whose retention has passed. */
function registerPurges(
  kernel: Kernel,
  store: KeyStore,
  purgeKeys: (tx: Tx, rowsMax: number) => number,
): void {
  // Keys whose retention has passed are treated as removed even before this purge.
  kernel.housekeeping.addPurge({ name: "keys.purge", rowsMax: 100, remove: purgeKeys });
  kernel.housekeeping.addPurge({
    name: "keys.usage.purge",
    rowsMax: USAGE_ROWS_PURGED,
    remove: (tx, rowsMax) => store.removeUsage(tx, hourOf(tx.now - USAGE_RETENTION_MS), rowsMax),
  });
  kernel.housekeeping.addPurge({
    name: "keys.limits.purge",
    rowsMax: LEVELS_PURGED,
    remove: (tx, rowsMax) => store.removeFullLimitLevels(tx, tx.now, rowsMax),
  });
}

function auditedKey(store: KeyStore, credential: string): AuditedKey | null {
  const ref = managedRef(credential);
  const key = ref === null ? null : store.withRef(ref);
  return key && { id: bytesToUuid(key.id), name: key.name };
}
