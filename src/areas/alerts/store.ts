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
import type { ChannelKind, QuietHours, Remind } from "./schema.ts";

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
    quietHours: json<QuietHours | null>(),
    /** Milliseconds. */
    groupMs: column<number>(),
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

/** An alert that a channel gets later. */
export type HeldAlertRow = {
  /** Ascending. */
  readonly ref: number;
  readonly accountRef: number;
  readonly channelRef: number;
  /** Null: it is about the project. */
  readonly monitorRef: number | null;
  /** Null: it is about none. */
  readonly incidentRef: number | null;
  readonly event: AlertEvent;
  /** Epoch milliseconds. */
  readonly at: number;
  /** JSON. */
  readonly message: string;
};

/** A number of alerts. */
interface EventCount {
  readonly event: AlertEvent;
  readonly n: number;
}

/** All SQL of the alerts that channels get later. */
function heldStatements(db: Database) {
  const heldCounts = db.all<EventCount, [channelRef: number]>(
    "SELECT event, count(*) AS n FROM held_alerts WHERE channel_ref = ? GROUP BY event",
  );
  const counted = db.one<{ counts: string }, [channelRef: number]>(
    "SELECT held_counts AS counts FROM channels WHERE ref = ?",
  );
  const setCounted = db.change<[counts: string, channelRef: number]>(
    "UPDATE channels SET held_counts = ? WHERE ref = ?",
  );
  const countsOf = (channelRef: number): Partial<Record<AlertEvent, number>> =>
    JSON.parse(counted(channelRef)?.counts ?? "{}");
  const release = db.change<[channelRef: number]>("DELETE FROM held_alerts WHERE channel_ref = ?");
  const nextDigest = db.change<[channelRef: number]>(
    "UPDATE channels SET digest = digest + 1, held_counts = '{}' WHERE ref = ?",
  );
  return {
    hold: db.change<[row: Omit<HeldAlertRow, "ref">]>(
      `INSERT INTO held_alerts (account_ref, channel_ref, monitor_ref, incident_ref, event, at, message)
       VALUES ($accountRef, $channelRef, $monitorRef, $incidentRef, $event, $at, $message)`,
    ),
    /** Held alerts of a channel, those that no other about the same monitor followed first, then the newest. */
    held: db.all<HeldAlertRow, [channelRef: number, rowsMax: number]>(
      `SELECT ref, account_ref AS accountRef, channel_ref AS channelRef, monitor_ref AS monitorRef, incident_ref AS incidentRef, event, at, message
       FROM held_alerts WHERE channel_ref = ? ORDER BY followed, ref DESC LIMIT ?`,
    ),
    heldCount: db.number<[channelRef: number]>("SELECT count(*) AS n FROM held_alerts WHERE channel_ref = ?"),
    /** Held alerts of all channels of an account. */
    heldOfAccount: db.number<[accountRef: number]>("SELECT n FROM held_totals WHERE account_ref = ?"),
    /** The last held alert of a channel about a monitor. */
    lastHeld: db.one<{ event: AlertEvent }, [channelRef: number, monitorRef: number]>(
      "SELECT event FROM held_alerts WHERE channel_ref = ? AND monitor_ref = ? AND followed = 0",
    ),
    /** Notes that another alert about a monitor follows. */
    setFollowed: db.change<[channelRef: number, monitorRef: number]>(
      "UPDATE held_alerts SET followed = 1 WHERE channel_ref = ? AND monitor_ref = ? AND followed = 0",
    ),
    /** The held alert of a channel that matters least: the oldest that another about the same monitor followed, else the oldest. */
    leastHeld: db.one<Pick<HeldAlertRow, "ref" | "event">, [channelRef: number]>(
      "SELECT ref, event FROM held_alerts WHERE channel_ref = ? ORDER BY followed DESC, ref LIMIT 1",
    ),
    removeHeld: db.change<[ref: number]>("DELETE FROM held_alerts WHERE ref = ?"),
    /** Counts an alert that is not stored. */
    countHeld(tx: Tx, channelRef: number, event: AlertEvent): void {
      const counts = countsOf(channelRef);
      setCounted(tx, JSON.stringify({ ...counts, [event]: (counts[event] ?? 0) + 1 }), channelRef);
    },
    /** The numbers of alerts that a channel gets later by their events, with those that are not stored. */
    heldCounts(channelRef: number): EventCount[] {
      const counts = new Map(Object.entries(countsOf(channelRef)) as [AlertEvent, number][]);
      for (const { event, n } of heldCounts(channelRef)) counts.set(event, n + (counts.get(event) ?? 0));
      return [...counts].map(([event, n]) => ({ event, n }));
    },
    /** The number of the next message of a channel with alerts that it gets later. */
    digestNumber: db.number<[channelRef: number]>("SELECT digest AS n FROM channels WHERE ref = ?"),
    /** Removes what a channel got with a message. */
    releaseHeld(tx: Tx, channelRef: number): void {
      release(tx, channelRef);
      nextDigest(tx, channelRef);
    },
    /** Incidents of a monitor with held alerts. */
    heldIncidents: db.all<{ incidentRef: number }, [monitorRef: number]>(
      "SELECT DISTINCT incident_ref AS incidentRef FROM held_alerts WHERE monitor_ref = ? AND incident_ref IS NOT NULL",
    ),
    removeHeldOf: db.change<[monitorRef: number]>("DELETE FROM held_alerts WHERE monitor_ref = ?"),
    removeHeldOfProject: db.change<[projectRef: number, rowsMax: number]>(
      `DELETE FROM held_alerts WHERE ref IN (
         SELECT held.ref FROM channels JOIN held_alerts AS held ON held.channel_ref = channels.ref WHERE project_ref = ? LIMIT ?)`,
    ),
  };
}

/** All SQL of channels, of the channels of monitors, and of alerts that channels get later. */
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
    ...heldStatements(db),
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
