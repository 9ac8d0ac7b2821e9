import type { AuditedKey } from "../../kernel/audit/trail.ts";
import { bytesToUuid } from "../../kernel/data/uuid.ts";
import type { Authenticator } from "../../kernel/http/access/caller.ts";
import type { Api } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { TierBound } from "../../kernel/limits/tier-limits.ts";
import type { Tiers } from "../../kernel/limits/tiers.ts";
import type { ProjectResources } from "../../kernel/projects/resources.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { Admission, askedOf } from "./admission.ts";
import { keyCard } from "./card.ts";
import { grantableScopes, RETENTION_MS, USAGE_KEPT_MS } from "./domain.ts";
import { hourOf, KeyUses } from "./key-uses.ts";
import { KeyLimits } from "./limits.ts";
import { type KeyParts, KeyRegistry, managedRef } from "./registry.ts";
import { keyRoutes } from "./routes.ts";
import { KeyService } from "./service.ts";
import { type KeyStore, keyStore, type LeavingKey } from "./store.ts";
import { ASKED, KeyVerdict } from "./verify-schema.ts";

/** Hours of usage removed in one unit of work: under a millisecond. */
const USAGE_ROWS_PURGED = 500;

const DESCRIPTION =
  "Rotation of the platform key, and managed keys with scopes, for this API or for your own: created, rotated, revoked at once, verified.";

/** Builds the area: keys that accounts make, for this API or for their own. */
export function createKeys(
  kernel: Kernel,
  ports: Pick<KeyParts, "accounts" | "projects"> & { tiers: Tiers },
) {
  const store = keyStore(kernel.db);
  const uses = new KeyUses(store, kernel);
  const parts = { ...kernel, ...ports, store, uses };
  const registry = new KeyRegistry(parts);
  const bound = new TierBound(kernel.db, ports.tiers, "keys", "key_limit_exceeded");
  const limits = new KeyLimits();
  const service = new KeyService({ ...parts, registry, bound, limits });
  const admission = new Admission({ store, registry, uses, limits });

  /** Takes keys out of the file, by `take`, and out of memory. Returns how many. */
  const remove = (tx: Tx, leaving: readonly LeavingKey[], take: (ref: number) => void): number => {
    for (const { ref, digest, allowance_ref } of leaving) {
      take(ref);
      store.removeUse(tx, ref);
      store.removeUnusedAllowance(tx, allowance_ref ?? ref);
      registry.drop(tx, digest);
      uses.forget(ref);
    }
    return leaving.length;
  };
  const removeEnded = (tx: Tx, rowsMax: number) =>
    remove(tx, store.purgeable(tx.now, rowsMax), (ref) => store.remove(tx, ref));
  registerPurges(kernel, store, removeEnded);
  const resources: ProjectResources = {
    name: "keys",
    // Keys that work in the project and are not revoked: its own, in the default project also the account's.
    count: (project, defaultOf) =>
      store.countOfProject(project) + (defaultOf === null ? 0 : store.countOfAccount(defaultOf)),
    // Emptied rather than removed: for 30 days verify says `deleted`, and a request with one gets 403.
    removeRows: (tx, projectRef, rowsMax) =>
      remove(tx, store.someOfProject(projectRef, rowsMax), (ref) =>
        store.empty(tx, tx.now + RETENTION_MS, ref),
      ),
  };
  return {
    /** Puts managed keys beside the platform keys as credentials. */
    authenticatorBeside: (platformKeys: Authenticator): Authenticator => ({
      // Memory first, so that a managed key in use does not cost a look for a platform key in the file.
      authenticate: (digest) =>
        registry.authenticateActive(digest) ??
        platformKeys.authenticate(digest) ??
        registry.authenticate(digest),
    }),
    resources,
    /** Judges the keys that requests come with, for whoever lets them in: what can be asked, and the judgement. */
    admission: admissionOf(admission),
    card: keyCard(store),
    /** The key behind a credential, for the audit log; null when that is no managed key. */
    auditedKey: (credential: string) => auditedKey(store, credential),
    keyNames: keyNames(store),
    /** Says which scopes operations ask for. */
    knowScopes: (asked: Iterable<string>) => {
      service.knownScopes = grantableScopes(asked);
    },
    parts: [{ name: "Keys", description: DESCRIPTION }],
    alsoCalled: { keys: ["api-keys", "apikeys"], verify: ["validate"] },
    routes: (api: Api) => keyRoutes(api, service, admission),
    /** Writes down what is only in memory. For the end of the process. */
    finish: () => uses.finish(),
  };
}

function admissionOf(admission: Admission) {
  return {
    fields: ASKED,
    facts: KeyVerdict.properties,
    askedOf,
    takesUses: admission.takesUses.bind(admission),
    examine: admission.examine.bind(admission),
  };
}

function keyNames(store: KeyStore) {
  return {
    /** What names the key behind a credential for ever; null where that is no managed key. */
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

/** `removeEnded` removes so many keys whose retention is over. */
function registerPurges(
  kernel: Kernel,
  store: KeyStore,
  removeEnded: (tx: Tx, rowsMax: number) => number,
): void {
  // Between the end of their retention and the purge, keys are answered as if they were gone.
  kernel.housekeeping.addPurge({ name: "keys.purge", rowsMax: 100, remove: removeEnded });
  kernel.housekeeping.addPurge({
    name: "keys.usage.purge",
    rowsMax: USAGE_ROWS_PURGED,
    remove: (tx, rowsMax) => store.removeUsage(tx, hourOf(tx.now - USAGE_KEPT_MS), rowsMax),
  });
}

function auditedKey(store: KeyStore, credential: string): AuditedKey | null {
  const ref = managedRef(credential);
  const key = ref === null ? null : store.withRef(ref);
  return key && { id: bytesToUuid(key.id), name: key.name };
}
