import type { AuditRow } from "../../kernel/audit/trail.ts";
import { bytesToUuid, uuidToBytes } from "../../kernel/data/uuid.ts";
import type { Database } from "../../kernel/storage/database.ts";
import type { Tx } from "../../kernel/storage/tx.ts";

export type StoredEntry = Omit<AuditRow, "accountRef" | "subjectRef"> & { readonly sequence: number };

type Row = Omit<StoredEntry, "keyId" | "requestId" | "truncated"> & {
  readonly keyId: Uint8Array | null;
  readonly requestId: Uint8Array | null;
  readonly truncated: number;
};

/** The filters of a list; null for none. */
export type Filters = {
  /** The complete action. */
  readonly action: string | null;
  /** The start of the action. */
  readonly actionPrefix: string | null;
  /** A key's id, a person's id, a user's id, or a kind of actor. */
  readonly actor: string | null;
  readonly actorKey: Uint8Array | null;
  readonly targetType: string | null;
  readonly targetId: string | null;
  readonly projectId: string | null;
  /** Epoch milliseconds, inclusive. */
  readonly from: number | null;
  /** Epoch milliseconds, exclusive. */
  readonly to: number | null;
};

const COLUMNS = `sequence, at, action, summary, project_id AS projectId, actor_type AS actorType, key_id AS keyId,
  key_name AS keyName, user_id AS userId, owner_id AS ownerId, person_id AS personId, person_email AS personEmail, person_name AS personName, session_id AS sessionId, schedule, target_type AS targetType, target_id AS targetId, was AS before, became AS after,
  truncated, ip, user_agent AS userAgent, request_id AS requestId`;

const SIZE = "sequence, coalesce(octet_length(was), 0) + coalesce(octet_length(became), 0) AS bytes";

const MATCHES = `($action IS NULL OR action = $action)
  AND ($actionPrefix IS NULL OR substr(action, 1, length($actionPrefix)) = $actionPrefix)
  AND ($actor IS NULL OR user_id = $actor OR actor_type = $actor OR key_id = $actorKey OR person_id = $actor)
  AND ($targetType IS NULL OR target_type = $targetType) AND ($targetId IS NULL OR target_id = $targetId)
  AND ($projectId IS NULL OR project_id = $projectId)
  AND ($from IS NULL OR at >= $from) AND ($to IS NULL OR at < $to)`;

/** A range of sequences, both ends inclusive. */
export type SequenceRange = { readonly first: number; readonly last: number };

/** The size of an entry. */
export interface EntrySize {
  readonly sequence: number;
  /** Bytes of `before` and `after`. */
  readonly bytes: number;
}

/** A walk through the entries of a scope along one index, in slices of rows. */
export interface Walk<Scope> {
  /** The first sequence of the `rows` rows that end at `last`; 0 when there are fewer. */
  readonly downFrom: (scope: Scope & { last: number; rows: number }) => number;
  /** The last sequence of the `rows` rows that start at `first`; 0 when there are fewer. */
  readonly upFrom: (scope: Scope & { first: number; rows: number }) => number;
  /** The sizes of the matching entries in a range, newest first. */
  readonly newestSizes: (query: Scope & Filters & SequenceRange & { limit: number }) => EntrySize[];
  /** The sizes of the matching entries in a range, oldest first. */
  readonly oldestSizes: (query: Scope & Filters & SequenceRange) => EntrySize[];
  /** The matching entries in a range, oldest first. */
  readonly oldest: (query: Scope & Filters & SequenceRange) => StoredEntry[];
}

type Named = Record<string, string | number | Uint8Array | null>;

function walk<Scope extends Named>(db: Database, where: readonly string[]): Walk<Scope> {
  const all = (columns: string, more: string) =>
    where
      .map((condition) => `SELECT ${columns} FROM audit_log WHERE ${condition} AND ${more}`)
      .join(" UNION ALL ");
  const range = "sequence >= $first AND sequence <= $last";
  const down = db.number<[Named]>(
    `SELECT sequence AS n FROM (${all("sequence", "sequence <= $last")} ORDER BY sequence DESC LIMIT 1 OFFSET $rows - 1)`,
  );
  const up = db.number<[Named]>(
    `SELECT sequence AS n FROM (${all("sequence", "sequence >= $first")} ORDER BY sequence LIMIT 1 OFFSET $rows - 1)`,
  );
  const matching = `${range} AND ${MATCHES}`;
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

/** The SQL statements of the audit log. */
export function auditStore(db: Database) {
  const insert = db.change<[Named]>(
    `INSERT INTO audit_log (at, account_ref, subject_ref, project_id, action, summary, actor_type, key_id, key_name, user_id, owner_id, person_id, person_email, person_name, session_id, schedule, target_type, target_id, was, became, truncated, ip, user_agent, request_id)
     VALUES ($at, $accountRef, $subjectRef, $projectId, $action, $summary, $actorType, $keyId, $keyName, $userId, $ownerId, $personId, $personEmail, $personName, $sessionId, $schedule, $targetType, $targetId, $before, $after, $truncated, $ip, $userAgent, $requestId)`,
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
    /** Removes the rows with the lowest sequences if they are older than a time. */
    removeExpired: db.change<[rowsMax: number, before: number]>(
      "DELETE FROM audit_log WHERE sequence IN (SELECT sequence FROM audit_log ORDER BY sequence LIMIT ?) AND at < ?",
    ),
    /**
     * Moves entries of a deleted account into the server's own log: what it did as an operator, and to other accounts.
     * `rowsMax`: how many at most.
     */
    keepOperatorEntries: db.change<[accountRef: number, rowsMax: number]>(
      `UPDATE audit_log SET account_ref = NULL WHERE sequence IN (SELECT sequence FROM audit_log
       WHERE account_ref = ? AND (subject_ref IS NOT NULL OR action GLOB 'admin.*') LIMIT ?)`,
    ),
    removeOfAccount: db.change<[accountRef: number, rowsMax: number]>(
      "DELETE FROM audit_log WHERE sequence IN (SELECT sequence FROM audit_log WHERE account_ref = ? LIMIT ?)",
    ),
    /** Removes what entries of other accounts say about a deleted one; its user id remains. */
    anonymizeSubject: db.change<[accountRef: number, rowsMax: number]>(
      `UPDATE audit_log SET subject_ref = NULL, was = NULL, became = NULL, summary = 'Account ' || target_id ||
         CASE action WHEN 'admin.accounts.delete' THEN ' deleted' ELSE ', which has been deleted since' END
       WHERE sequence IN (SELECT sequence FROM audit_log WHERE subject_ref = ? LIMIT ?)`,
    ),
    removeBytesOf: db.change<[accountRef: number]>("DELETE FROM audit_bytes WHERE account_ref = ?"),
    /** Bytes of an account's entries on a day. */
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
    /** Changes by the account, and of the account. */
    aboutAccount: walk<{ accountRef: number }>(db, [
      "account_ref = $accountRef",
      "subject_ref = $accountRef",
    ]),
    // The `+` selects the project's index, which has fewer rows than the account's.
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
