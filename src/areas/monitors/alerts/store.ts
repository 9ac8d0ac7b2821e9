import type { Database } from "../../../kernel/storage/database.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import type { ChannelEvent, ChannelKind, Remind } from "./schema.ts";

export interface ChannelRow {
  readonly ref: number;
  readonly channelId: string;
  readonly accountRef: number;
  readonly projectRef: number;
  readonly name: string;
  readonly kind: ChannelKind;
  /** Sealed. */
  readonly config: Uint8Array;
  readonly isDefault: boolean;
  readonly events: readonly ChannelEvent[];
  readonly remind: Remind;
  /** When the last message was delivered, epoch milliseconds; null before the first. */
  readonly lastSentAt: number | null;
  /** Error of the last attempt to deliver a message; null if it succeeded. */
  readonly lastError: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
}

type Stored = Omit<ChannelRow, "isDefault" | "events"> & {
  readonly isDefault: number;
  /** JSON. */
  readonly events: string;
};

/** The columns that requests set. */
type NewChannel = Omit<Stored, "lastSentAt" | "lastError">;

const SELECT = `SELECT ref, channel_id AS channelId, account_ref AS accountRef, project_ref AS projectRef, name, kind, config,
  is_default AS isDefault, events, remind, last_sent_at AS lastSentAt, last_error AS lastError, created_at AS createdAt, updated_at AS updatedAt FROM channels`;

export type ChannelStore = ReturnType<typeof channelStore>;

/** All SQL of channels and of the channels of monitors. */
export function channelStore(db: Database) {
  const page = db.all<Stored, [projectRef: number, before: number, rowsMax: number]>(
    `${SELECT} WHERE project_ref = ? AND ref < ? ORDER BY ref DESC LIMIT ?`,
  );
  const withId = db.one<Stored, [channelId: string]>(`${SELECT} WHERE channel_id = ?`);
  const withRef = db.one<Stored, [ref: number]>(`${SELECT} WHERE ref = ?`);
  const insert = db.change<[row: NewChannel]>(
    `INSERT INTO channels (ref, channel_id, account_ref, project_ref, name, kind, config, is_default, events, remind, created_at, updated_at)
     VALUES ($ref, $channelId, $accountRef, $projectRef, $name, $kind, $config, $isDefault, $events, $remind, $createdAt, $updatedAt)`,
  );
  const update = db.change<[row: NewChannel]>(
    "UPDATE channels SET name = $name, config = $config, is_default = $isDefault, events = $events, remind = $remind, updated_at = $updatedAt WHERE ref = $ref",
  );
  const chosen = db.one<{ refs: string }, [monitorRef: number]>(
    "SELECT channel_refs AS refs FROM monitor_channels WHERE monitor_ref = ?",
  );
  const choose = db.change<[monitorRef: number, refs: string]>(
    "INSERT OR REPLACE INTO monitor_channels (monitor_ref, channel_refs) VALUES (?, ?)",
  );
  const exists = db.number<[ref: number]>("SELECT 1 AS n FROM channels WHERE ref = ?");
  const forget = db.change<[monitorRef: number]>("DELETE FROM monitor_channels WHERE monitor_ref = ?");
  return {
    /** The highest reference ever used; 0 for none. */
    highestRef: db.number("SELECT seq AS n FROM sqlite_sequence WHERE name = 'channels'"),
    /** Projects that have channels. */
    projects: db.all<{ projectRef: number }>("SELECT DISTINCT project_ref AS projectRef FROM channels"),
    count: db.number<[projectRef: number]>("SELECT count(*) AS n FROM channels WHERE project_ref = ?"),
    insert: (tx: Tx, row: ChannelRow) => insert(tx, storedOf(row)),
    update: (tx: Tx, row: ChannelRow) => update(tx, storedOf(row)),
    remove: db.change<[ref: number]>("DELETE FROM channels WHERE ref = ?"),
    removeOfProject: db.change<[projectRef: number]>("DELETE FROM channels WHERE project_ref = ?"),
    find(channelId: string): ChannelRow | null {
      const stored = withId(channelId);
      return stored && rowOf(stored);
    },
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
    channel(ref: number): ChannelRow | null {
      const stored = withRef(ref);
      return stored && rowOf(stored);
    },
    /** A project's channels, newest first, below a reference. */
    page: (projectRef: number, before: number, rowsMax: number) =>
      page(projectRef, before, rowsMax).map(rowOf),
    idsOf: db.all<{ ref: number; channelId: string }, [projectRef: number]>(
      "SELECT ref, channel_id AS channelId FROM channels WHERE project_ref = ?",
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

function storedOf({ lastSentAt, lastError, ...row }: ChannelRow): NewChannel {
  return { ...row, isDefault: row.isDefault ? 1 : 0, events: JSON.stringify(row.events) };
}

function rowOf(stored: Stored): ChannelRow {
  return { ...stored, isDefault: stored.isDefault !== 0, events: JSON.parse(stored.events) };
}
