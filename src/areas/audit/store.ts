import type { AuditRow } from "../../kernel/audit/trail.ts";
import { bytesToUuid, uuidToBytes } from "../../kernel/data/uuid.ts";
import type { Database } from "../../kernel/storage/database.ts";
import type { Tx } from "../../kernel/storage/tx.ts";

/** An entry as it is read. */
export type StoredEntry = Omit<AuditRow, "accountRef" | "subjectRef"> & { readonly sequence: number };

/** An entry as its row has it. */
type Row = Omit<StoredEntry, "keyId" | "requestId" | "truncated"> & {
  readonly keyId: Uint8Array | null;
  readonly requestId: Uint8Array | null;
  readonly truncated: number;
};

/** What a list is narrowed to; null where it is not. */
export type Filters = {
  /** The whole action. */
  readonly action: string | null;
  /** How it begins. */
  readonly actionPrefix: string | null;
  /** A key's id, a user's id, or a kind of actor. */
  readonly actor: string | null;
  readonly actorKey: Uint8Array | null;
  readonly targetType: string | null;
  readonly targetId: string | null;
  readonly projectId: string | null;
  /** Epoch milliseconds, included. */
  readonly from: number | null;
  /** Epoch milliseconds, not included. */
  readonly to: number | null;
};

const COLUMNS = `sequence, at, action, summary, project_id AS projectId, actor_type AS actorType, key_id AS keyId,
  key_name AS keyName, user_id AS userId, target_type AS targetType, target_id AS targetId, was AS before, became AS after,
  truncated, ip, user_agent AS userAgent, request_id AS requestId`;

const SIZE = "sequence, coalesce(octet_length(was), 0) + coalesce(octet_length(became), 0) AS bytes";

const MATCHES = `($action IS NULL OR action = $action)
  AND ($actionPrefix IS NULL OR substr(action, 1, length($actionPrefix)) = $actionPrefix)
  AND ($actor IS NULL OR user_id = $actor OR actor_type = $actor OR key_id = $actorKey)
  AND ($targetType IS NULL OR target_type = $targetType) AND ($targetId IS NULL OR target_id = $targetId)
  AND ($projectId IS NULL OR project_id = $projectId)
  AND ($from IS NULL OR at >= $from) AND ($to IS NULL OR at < $to)`;

/** Entries between two sequences, both included. */
export type Stretch = { readonly first: number; readonly last: number };

/** How large an entry is. */
export interface EntrySize {
  readonly sequence: number;
  /** Bytes of both sides. */
  readonly bytes: number;
}

/** A walk through entries that one index leads to, in slices of rows. */
export interface Walk<Whose> {
  /** The sequence of the row that lies `rows` before `last`, that one counted; 0 when there are fewer. */
  readonly downFrom: (whose: Whose & { last: number; rows: number }) => number;
  /** The same upwards. */
  readonly upFrom: (whose: Whose & { first: number; rows: number }) => number;
  /** What matches in a stretch, newest first, without reading it. */
  readonly newestSizes: (query: Whose & Filters & Stretch & { limit: number }) => EntrySize[];
  /** The same, oldest first. */
  readonly oldestSizes: (query: Whose & Filters & Stretch) => EntrySize[];
  /** The entries that match in a stretch, oldest first. */
  readonly oldest: (query: Whose & Filters & Stretch) => StoredEntry[];
}

type Named = Record<string, string | number | Uint8Array | null>;

function walk<Whose extends Named>(db: Database, where: readonly string[]): Walk<Whose> {
  const all = (columns: string, more: string) =>
    where.map((one) => `SELECT ${columns} FROM audit_log WHERE ${one} AND ${more}`).join(" UNION ALL ");
  const stretch = "sequence >= $first AND sequence <= $last";
  const down = db.number<[Named]>(
    `SELECT sequence AS n FROM (${all("sequence", "sequence <= $last")} ORDER BY sequence DESC LIMIT 1 OFFSET $rows - 1)`,
  );
  const up = db.number<[Named]>(
    `SELECT sequence AS n FROM (${all("sequence", "sequence >= $first")} ORDER BY sequence LIMIT 1 OFFSET $rows - 1)`,
  );
  const matching = `${stretch} AND ${MATCHES}`;
  const oldest = db.all<Row, [Named]>(`${all(COLUMNS, matching)} ORDER BY sequence`);
  return {
    downFrom: down,
    upFrom: up,
    newestSizes: db.all<EntrySize, [Named]>(`${all(SIZE, matching)} ORDER BY sequence DESC LIMIT $limit`),
    oldestSizes: db.all<EntrySize, [Named]>(`${all(SIZE, matching)} ORDER BY sequence`),
    oldest: (query) => oldest(query).map(entryOf),
  };
}

export type AuditStore = ReturnType<typeof auditStore>;

/** All SQL of the audit log. */
export function auditStore(db: Database) {
  const insert = db.change<[Named]>(
    `INSERT INTO audit_log (at, account_ref, subject_ref, project_id, action, summary, actor_type, key_id, key_name, user_id, target_type, target_id, was, became, truncated, ip, user_agent, request_id)
     VALUES ($at, $accountRef, $subjectRef, $projectId, $action, $summary, $actorType, $keyId, $keyName, $userId, $targetType, $targetId, $before, $after, $truncated, $ip, $userAgent, $requestId)`,
  );
  const withSequence = db.one<Row & { accountRef: number | null }, [sequence: number]>(
    `SELECT ${COLUMNS}, account_ref AS accountRef FROM audit_log WHERE sequence = ?`,
  );
  return {
    insert(tx: Tx, { keyId, requestId, truncated, ...row }: AuditRow): void {
      insert(tx, {
        ...row,
        truncated: Number(truncated),
        keyId: bytesOf(keyId),
        requestId: bytesOf(requestId),
      });
    },
    find(sequence: number): (StoredEntry & { readonly accountRef: number | null }) | null {
      const row = withSequence(sequence);
      return row && { ...entryOf(row), accountRef: row.accountRef };
    },
    /** Removes the oldest rows, if they are older than a moment; they have the lowest sequences. */
    removeOld: db.change<[rowsMax: number, before: number]>(
      "DELETE FROM audit_log WHERE sequence IN (SELECT sequence FROM audit_log ORDER BY sequence LIMIT ?) AND at < ?",
    ),
    /** Bytes of the entries that an account has written in a day. */
    bytesOf: db.number<[accountRef: number, day: number]>(
      "SELECT bytes AS n FROM audit_bytes WHERE account_ref = ? AND day = ?",
    ),
    addBytes: db.change<[accountRef: number, day: number, bytes: number]>(
      `INSERT INTO audit_bytes (account_ref, day, bytes) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET
       bytes = excluded.bytes + CASE day WHEN excluded.day THEN bytes ELSE 0 END, day = excluded.day`,
    ),
    highest: db.number("SELECT max(sequence) AS n FROM audit_log"),
    everything: walk<Record<never, never>>(db, ["true"]),
    ofAccount: walk<{ accountRef: number }>(db, ["account_ref = $accountRef"]),
    /** What the account did, and what was done to it. */
    aboutAccount: walk<{ accountRef: number }>(db, [
      "account_ref = $accountRef",
      "subject_ref = $accountRef",
    ]),
    // By the project's index: its rows are fewer.
    ofProject: walk<{ accountRef: number; project: string }>(db, [
      "project_id = $project AND +account_ref = $accountRef",
    ]),
    ofTarget: walk<{ accountRef: number; targetType: string; targetId: string }>(db, [
      "account_ref = $accountRef AND target_type = $targetType AND target_id = $targetId",
    ]),
  };
}

function entryOf({ keyId, requestId, truncated, ...row }: Row): StoredEntry {
  return {
    ...row,
    truncated: truncated !== 0,
    keyId: keyId && bytesToUuid(keyId),
    requestId: requestId && bytesToUuid(requestId),
  };
}

function bytesOf(uuid: string | null): Uint8Array | null {
  return uuid === null ? null : uuidToBytes(uuid);
}
