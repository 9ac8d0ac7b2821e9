import { type AuditBudget, AuditTrail, type AuditTrailDeps } from "../../kernel/audit/trail.ts";
import type { ApiArea } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { TierName, Tiers } from "../../kernel/limits/tiers.ts";
import type { AreaExport } from "../../kernel/projects/account-export.ts";
import type { RecentList } from "../../kernel/projects/overview-card.ts";
import type { RemoveAccountRows } from "../../kernel/projects/resources.ts";
import { DAY_MS } from "../../kernel/time/units.ts";
import { auditExport } from "./export.ts";
import { auditRoutes } from "./routes.ts";
import { AuditEntry } from "./schema.ts";
import { type AuditAccounts, AuditService } from "./service.ts";
import { type AuditStore, auditStore } from "./store.ts";

/** The configuration of the log. */
export interface AuditSettings extends Pick<AuditTrailDeps, "keepsAddresses"> {
  /** Days that entries are stored; 0: forever. */
  readonly retentionDays: number;
}

/** What the log needs of the accounts. */
interface Accounts extends AuditAccounts {
  tierOf(accountRef: number): TierName;
}

/** What the log needs of other areas. */
interface AuditDeps extends Pick<AuditTrailDeps, "keyOf"> {
  readonly accounts: Accounts;
  readonly tiers: Tiers;
}

/** What the log provides to other areas. */
export interface AuditArea extends ApiArea {
  /** Records changes. */
  readonly trail: AuditTrail;
  /** The latest entries. */
  readonly recent: RecentList;
  readonly exported: AreaExport;
  /** Removes the entries of a deleted account, and what other entries say about it. */
  readonly removeRows: RemoveAccountRows;
}

/** Entries removed in one unit of work: a few milliseconds of the writer's time. */
const PURGE_SLICE_ROWS = 200;

/** Builds the area: a log of who changed what. */
export function createAudit(
  kernel: Kernel,
  settings: AuditSettings,
  { keyOf, accounts, tiers }: AuditDeps,
): AuditArea {
  const store = auditStore(kernel.db);
  const service = new AuditService(store, accounts);
  if (settings.retentionDays > 0) {
    kernel.housekeeping.addPurge({
      name: "audit.purge",
      rowsMax: PURGE_SLICE_ROWS,
      remove: (tx, rowsMax) => store.removeExpired(tx, rowsMax, tx.now - settings.retentionDays * DAY_MS),
    });
  }
  return {
    trail: new AuditTrail({
      keyOf,
      keepsAddresses: settings.keepsAddresses,
      write: store.insert,
      budget: budgetOf(store, accounts, tiers),
      changes: kernel.changes,
    }),
    exported: auditExport,
    removeRows(tx, accountRef, rowsMax) {
      store.removeBytesOf(tx, accountRef);
      const kept = store.keepOperatorEntries(tx, accountRef, rowsMax);
      if (kept === rowsMax) return kept;
      const changed = kept + store.anonymizeSubject(tx, accountRef, rowsMax - kept);
      return changed === rowsMax
        ? changed
        : changed + store.removeOfAccount(tx, accountRef, rowsMax - changed);
    },
    recent: {
      area: "audit",
      item: AuditEntry,
      read: (caller, limit) => service.list(caller, { limit }).entries,
    },
    parts: [
      {
        name: "Audit",
        description: "Who changed what: one entry per change, stored in the same transaction.",
      },
    ],
    routes: (api) => auditRoutes(api, service),
  };
}

/** The budget of each account, by its tier and the day in UTC. */
function budgetOf(store: AuditStore, accounts: Accounts, tiers: Tiers): AuditBudget {
  return {
    isSpent: (ref, now) => store.bytesOf(ref, dayOf(now)) >= tiers[accounts.tierOf(ref)].auditBytesPerDay,
    spend: (tx, ref, bytes) => {
      store.addBytes(tx, ref, dayOf(tx.now), bytes);
    },
  };
}

function dayOf(time: number): number {
  return Math.floor(time / DAY_MS);
}
