import type { AlertEvent } from "../../kernel/data/incident-words.ts";
import {
  column,
  elsewhere,
  flag,
  json,
  once,
  type RowOf,
  resourceTable,
} from "../../kernel/resources/table.ts";
import type { Database } from "../../kernel/storage/database.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { ChannelKind, Remind } from "./schema.ts";

/** A step of an escalation, as it is stored. Channels that were deleted may be in it. */
export interface EscalationStep {
  /** Time since the alert of the channel, milliseconds. */
  readonly afterMs: number;
  readonly channelRefs: readonly number[];
}

const CHANNELS = {
  name: "channels",
  id: "channel_id",
  columns: {
    accountRef: once(column<number>()),
    name: column<string>(),
    kind: once(column<ChannelKind>()),
    /** Sealed. */
    config: column<Uint8Array>(),
    isDefault: flag(),
    events: json<readonly AlertEvent[]>(),
    remind: column<Remind>(),
    escalate: json<readonly EscalationStep[]>(),
    /** When the last message was delivered, epoch milliseconds; null before the first. */
    lastSentAt: elsewhere(column<number | null>()),
    /** Error of the last attempt to deliver a message; null if it succeeded. */
    lastError: elsewhere(column<string | null>()),
    createdAt: once(column<number>()),
    updatedAt: column<number>(),
  },
};

export type ChannelRow = RowOf<typeof CHANNELS>;
export type ChannelStore = ReturnType<typeof channelStore>;

/** All SQL of channels and of the channels of monitors. */
export function channelStore(db: Database) {
  const chosen = db.one<{ refs: string }, [monitorRef: number]>(
    "SELECT channel_refs AS refs FROM monitor_channels WHERE monitor_ref = ?",
  );
  const choose = db.change<[monitorRef: number, refs: string]>(
    "INSERT OR REPLACE INTO monitor_channels (monitor_ref, channel_refs) VALUES (?, ?)",
  );
  const exists = db.number<[ref: number]>("SELECT 1 AS n FROM channels WHERE ref = ?");
  const forget = db.change<[monitorRef: number]>("DELETE FROM monitor_channels WHERE monitor_ref = ?");
  const rows = resourceTable(db, CHANNELS);
  const escalated = db.all<{ ref: number }, [monitorRef: number]>(
    "SELECT channel_ref AS ref FROM escalated_channels WHERE monitor_ref = ?",
  );
  return {
    ...rows,
    /** Channels of a project whose last message could not be delivered. */
    failing: rows.all<[projectRef: number, rowsMax: number]>(
      "WHERE project_ref = ? AND last_error IS NOT NULL ORDER BY ref LIMIT ?",
    ),
    /** Projects that have channels. */
    projects: db.all<{ projectRef: number }>("SELECT DISTINCT project_ref AS projectRef FROM channels"),
    /** Notes the last delivery or e-mail of a channel, by its id. */
    setDelivery: db.change<[deliveryId: string, ref: number]>(
      "UPDATE channels SET last_delivery = ? WHERE ref = ?",
    ),
    /** Records an attempt of a delivery, if it is the last one of its channel. `sentAt`: null if it failed. */
    recordAttempt: db.change<[sentAt: number | null, error: string | null, deliveryId: string]>(
      "UPDATE channels SET last_sent_at = coalesce(?, last_sent_at), last_error = ? WHERE last_delivery = ?",
    ),
    /** Records a test. */
    recordTest: db.change<[sentAt: number | null, error: string | null, ref: number]>(
      "UPDATE channels SET last_sent_at = coalesce(?, last_sent_at), last_error = ? WHERE ref = ?",
    ),
    /** Channels that steps have notified of the outage of a monitor. */
    escalatedFor: (monitorRef: number): readonly number[] => escalated(monitorRef).map(({ ref }) => ref),
    addEscalated: db.change<[monitorRef: number, channelRef: number]>(
      "INSERT OR IGNORE INTO escalated_channels (monitor_ref, channel_ref) VALUES (?, ?)",
    ),
    removeEscalated: db.change<[monitorRef: number]>("DELETE FROM escalated_channels WHERE monitor_ref = ?"),
    idsOf: db.all<{ ref: number; id: string }, [projectRef: number]>(
      "SELECT ref, channel_id AS id FROM channels WHERE project_ref = ?",
    ),
    /** References of the channels of a monitor. Null: it has none, or all of them were deleted, which must not silence it. */
    chosen(monitorRef: number): readonly number[] | null {
      const row = chosen(monitorRef);
      if (row === null) return null;
      const refs: number[] = JSON.parse(row.refs);
      const existing = refs.filter((ref) => exists(ref) !== 0);
      return refs.length > 0 && existing.length === 0 ? null : existing;
    },
    choose(tx: Tx, monitorRef: number, refs: readonly number[] | null): void {
      if (refs === null) forget(tx, monitorRef);
      else choose(tx, monitorRef, JSON.stringify(refs));
    },
  };
}
