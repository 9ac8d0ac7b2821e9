import { SQL } from "bun";
import { errorText, StartupError } from "../../kernel/errors.ts";
import { type Cancel, monotonicMs, realTimeout } from "../../kernel/time/clock.ts";
import {
  CALL_MS_MAX,
  CHANGE_MS_MAX,
  type ClusterNode,
  type CommitLog,
  type EngineErrorKind,
  EngineErrors,
  type EngineSpace,
  EngineUnavailable,
  type Leader,
  type LoggedEntry,
  type LogRange,
  LogTrimmed,
  type NodeReport,
  PlaceTaken,
  unreachable,
} from "../commit-log.ts";
import { holderName, type LeaseRow, ObservedLease } from "./observed-lease.ts";
import { commitOnStandbys } from "./synchronous-commit.ts";

/** How often a follower looks for new entries. */
const WATCH_MS = 50;
/** One for entries, one for the lease, which must not wait behind them. */
const CONNECTIONS = 2;
/** `server_version_num` of PostgreSQL 13. */
const VERSION_MIN = 130_000;
/** Values of `synchronous_commit` with which a commit waits for the standbys' disks. */
const DURABLE = ["on", "remote_apply"];
const NOT_DURABLE =
  "PostgreSQL does not replicate synchronously, so a failover could lose changes: set synchronous_standby_names, " +
  "and synchronous_commit to on.";

/** Where PostgreSQL is. */
export interface PostgresAddress {
  /** Connection URLs of all servers, of which one is the primary. */
  readonly urls: readonly string[];
  /** Whether the service replicates below SQL, so that nothing can be checked. */
  readonly isTrusted: boolean;
}

interface EntryRow {
  readonly seq: string;
  readonly epoch: string;
  readonly data: Uint8Array;
}

/** Two nodes that start concurrently would both create the tables, and one of them would fail. */
const TABLES_LOCK = 7_391_046_521;
const TABLES = `
  SELECT pg_advisory_xact_lock(${TABLES_LOCK});
  CREATE TABLE IF NOT EXISTS nf_log (
    cell text, seq bigint, epoch bigint NOT NULL, data bytea NOT NULL, PRIMARY KEY (cell, seq));
  CREATE TABLE IF NOT EXISTS nf_lease (
    cell text PRIMARY KEY, epoch bigint NOT NULL, node text NOT NULL, expires timestamptz NOT NULL,
    asked bigint NOT NULL DEFAULT 0);
  CREATE TABLE IF NOT EXISTS nf_node (
    cell text, node text, report text NOT NULL, PRIMARY KEY (cell, node));
  CREATE TABLE IF NOT EXISTS nf_identity (cell text PRIMARY KEY, log text NOT NULL);`;

/** The settings without which a confirmed commit can be lost. */
interface Settings {
  readonly commit: string;
  readonly standbys: string;
}

/** A commit log in PostgreSQL with synchronous standbys. */
export class PostgresLog implements CommitLog {
  readonly errors = new EngineErrors();
  /** Connections to the primary; rejected if none was found. */
  private pool: Promise<SQL> | null = null;
  private current = 0;
  private readonly lease = new ObservedLease(monotonicMs);

  constructor(
    private readonly address: PostgresAddress,
    private readonly cell: string,
  ) {}

  async prepare(): Promise<void> {
    try {
      await this.run(async (sql) => {
        const [row] = (await sql`
          SELECT current_setting('server_version_num')::int AS version,
            current_setting('synchronous_commit') AS commit,
            current_setting('synchronous_standby_names') AS standbys`) as [Settings & { version: number }];
        if (row.version < VERSION_MIN) throw new StartupError("PostgreSQL 13 or later is required.");
        if (!this.keepsCommits(row))
          throw new StartupError(
            `${NOT_DURABLE} For a service that replicates by other means: --commit-log-trusted.`,
          );
        await sql.unsafe(TABLES);
      }, CHANGE_MS_MAX);
    } catch (error) {
      if (error instanceof StartupError) throw error;
      throw unreachable(error);
    }
  }

  async tryLead(node: ClusterNode, ttlMs: number, epochMin: number): Promise<number | null> {
    await this.observe();
    if (!this.lease.isFreeFor(node)) return null;
    const { row: held } = this.lease;
    return this.run(async (sql) => {
      const rows = (await sql`
        INSERT INTO nf_lease AS held (cell, epoch, node, expires)
        VALUES (${this.cell}, ${epochMin}, ${holderName(node, ttlMs)}, clock_timestamp() + ${ttlMs} * interval '1 millisecond')
        ON CONFLICT (cell) DO UPDATE
          SET epoch = greatest(held.epoch + 1, excluded.epoch), node = excluded.node, expires = excluded.expires
          WHERE held.epoch = ${held?.epoch ?? null}::bigint AND held.expires::text = ${held?.expires ?? null}
            OR held.node::json->>'id' = ${node.id}
        RETURNING epoch`) as { epoch: string }[];
      const [row] = rows;
      return row === undefined ? null : Number(row.epoch);
    }, CHANGE_MS_MAX);
  }

  renew(node: ClusterNode, epoch: number, ttlMs: number): Promise<boolean> {
    return this.run(async (sql) => {
      // Two renewals never have the same time, even if the server's clock is set back.
      const rows = (await sql`
        UPDATE nf_lease SET node = ${holderName(node, ttlMs)}, expires = CASE
            WHEN expires = clock_timestamp() + ${ttlMs} * interval '1 millisecond' THEN expires + interval '1 microsecond'
            ELSE clock_timestamp() + ${ttlMs} * interval '1 millisecond' END
        WHERE cell = ${this.cell} AND epoch = ${epoch}
        RETURNING current_setting('synchronous_commit') AS commit,
          current_setting('synchronous_standby_names') AS standbys`) as Settings[];
      const [settings] = rows;
      if (settings !== undefined && !this.keepsCommits(settings))
        throw this.errors.count(new EngineUnavailable(NOT_DURABLE, "not_durable"));
      return settings !== undefined;
    }, CHANGE_MS_MAX);
  }

  async release(_node: ClusterNode, epoch: number): Promise<void> {
    await this.run(
      (sql) => sql`UPDATE nf_lease SET expires = '-infinity' WHERE cell = ${this.cell} AND epoch = ${epoch}`,
      CHANGE_MS_MAX,
    );
  }

  async leader(): Promise<Leader | null> {
    await this.observe();
    return this.lease.leader;
  }

  private async observe(): Promise<void> {
    const rows = await this.run(
      async (sql) =>
        (await sql`
          SELECT epoch, node, expires::text AS expires, expires = '-infinity' AS "isReleased",
            expires < clock_timestamp() AS "isOver"
          FROM nf_lease WHERE cell = ${this.cell}`) as LeaseRow[],
    );
    this.lease.note(rows[0] ?? null);
  }

  async append({ seq, epoch, parts }: LoggedEntry): Promise<void> {
    const data = framed(parts);
    const write = (): Promise<void> =>
      this.run(async (sql) => {
        // An entry that is ours is written again: this commit waits for everything before it.
        const written = (await sql`
          INSERT INTO nf_log AS there (cell, seq, epoch, data) VALUES (${this.cell}, ${seq}, ${epoch}, ${data})
          ON CONFLICT (cell, seq) DO UPDATE SET epoch = there.epoch WHERE there.epoch = excluded.epoch RETURNING 1`) as unknown[];
        if (written.length === 0) throw new PlaceTaken(`another leader has written entry ${seq}`);
      }, CHANGE_MS_MAX);
    await commitOnStandbys(write, monotonicMs);
  }

  async read(from: number, max: number): Promise<LoggedEntry[]> {
    const rows = await this.run(
      async (sql) =>
        (await sql`
          SELECT seq, epoch, data FROM nf_log WHERE cell = ${this.cell} AND seq >= ${from} ORDER BY seq LIMIT ${max}`) as EntryRow[],
      CHANGE_MS_MAX,
    );
    return rows.map(({ seq, epoch, data }, index) => {
      if (Number(seq) !== from + index) throw new LogTrimmed(`the log begins at entry ${seq}`);
      return { seq: Number(seq), epoch: Number(epoch), parts: unframed(data) };
    });
  }

  range(): Promise<LogRange | null> {
    return this.run(async (sql) => {
      const [row] = (await sql`
        SELECT min(seq) AS first, max(seq) AS last FROM nf_log WHERE cell = ${this.cell}`) as {
        first: string | null;
        last: string | null;
      }[];
      return row === undefined || row.first === null
        ? null
        : { first: Number(row.first), last: Number(row.last) };
    });
  }

  space(): Promise<EngineSpace> {
    return this.run(async (sql) => {
      const [row] = (await sql`SELECT pg_total_relation_size('nf_log')::text AS used`) as [{ used: string }];
      return { used: Number(row.used), quota: null };
    });
  }

  identity(): Promise<string | null> {
    return this.run(async (sql) => {
      const rows = (await sql`SELECT log FROM nf_identity WHERE cell = ${this.cell}`) as { log: string }[];
      return rows[0]?.log ?? null;
    });
  }

  identify(id: string): Promise<string> {
    return this.run(async (sql) => {
      const rows = (await sql`
        INSERT INTO nf_identity AS there (cell, log) VALUES (${this.cell}, ${id})
        ON CONFLICT (cell) DO UPDATE SET log = there.log RETURNING log`) as { log: string }[];
      return rows[0]?.log ?? id;
    }, CHANGE_MS_MAX);
  }

  watch(_from: number, wake: () => void): Cancel {
    let cancel = realTimeout(WATCH_MS, function look() {
      wake();
      cancel = realTimeout(WATCH_MS, look);
    });
    return () => cancel();
  }

  async trim(through: number): Promise<void> {
    await this.run(
      (sql) => sql`DELETE FROM nf_log WHERE cell = ${this.cell} AND seq <= ${through}`,
      CHANGE_MS_MAX,
    );
  }

  report(node: NodeReport): Promise<NodeReport | null> {
    return this.run(async (sql) => {
      const rows = (await sql`
        WITH before AS (SELECT report FROM nf_node WHERE cell = ${this.cell} AND node = ${node.id})
        INSERT INTO nf_node (cell, node, report) VALUES (${this.cell}, ${node.id}, ${JSON.stringify(node)})
        ON CONFLICT (cell, node) DO UPDATE SET report = excluded.report
        RETURNING (SELECT report FROM before) AS before`) as { before: string | null }[];
      const before = rows[0]?.before ?? null;
      return before === null ? null : (JSON.parse(before) as NodeReport);
    }, CHANGE_MS_MAX);
  }

  nodes(): Promise<NodeReport[]> {
    return this.run(async (sql) => {
      const rows = (await sql`SELECT report FROM nf_node WHERE cell = ${this.cell}`) as { report: string }[];
      return rows.map(({ report }) => JSON.parse(report) as NodeReport);
    });
  }

  async forget(id: string): Promise<void> {
    await this.run(
      (sql) => sql`DELETE FROM nf_node WHERE cell = ${this.cell} AND node = ${id}`,
      CHANGE_MS_MAX,
    );
  }

  async askToHandOver(epoch: number): Promise<void> {
    await this.run(
      (sql) => sql`UPDATE nf_lease SET asked = ${epoch} WHERE cell = ${this.cell} AND epoch = ${epoch}`,
      CHANGE_MS_MAX,
    );
  }

  isAskedToHandOver(epoch: number): Promise<boolean> {
    return this.run(async (sql) => {
      const rows = (await sql`
        SELECT 1 FROM nf_lease WHERE cell = ${this.cell} AND epoch = ${epoch} AND asked = ${epoch}`) as unknown[];
      return rows.length > 0;
    });
  }

  async reset(): Promise<void> {
    await this.run(
      (sql) =>
        sql.begin(async (tx) => {
          await tx`DELETE FROM nf_log WHERE cell = ${this.cell}`;
          await tx`DELETE FROM nf_node WHERE cell = ${this.cell}`;
          await tx`DELETE FROM nf_identity WHERE cell = ${this.cell}`;
          await tx`UPDATE nf_lease SET expires = '-infinity' WHERE cell = ${this.cell}`;
        }),
      CHANGE_MS_MAX,
    );
  }

  close(): void {
    this.disconnect();
  }

  private keepsCommits({ commit, standbys }: Settings): boolean {
    return this.address.isTrusted || (DURABLE.includes(commit) && standbys !== "");
  }

  /** Runs statements on the primary. After a failure the next call looks for it again, beginning with the next address. */
  private async run<T>(work: (sql: SQL) => PromiseLike<T>, msMax = CALL_MS_MAX): Promise<T> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const cancel = realTimeout(msMax, () => reject(new Error(`no response within ${msMax} ms`)));
    const pool = this.pool ?? this.findPrimary();
    this.pool = pool;
    try {
      return await Promise.race([pool.then(work), late]);
    } catch (error) {
      if (error instanceof PlaceTaken || error instanceof StartupError || error instanceof EngineUnavailable)
        throw error;
      // Calls that failed together begin again once.
      if (this.pool === pool) {
        this.disconnect();
        this.current += 1;
      }
      throw this.errors.count(new EngineUnavailable(`PostgreSQL: ${errorText(error)}`, kindOf(error)));
    } finally {
      cancel();
    }
  }

  /** Connects to the first address that takes changes. */
  private async findPrimary(): Promise<SQL> {
    const { urls } = this.address;
    let failure: unknown = null;
    for (let tried = 0; tried < urls.length; tried += 1) {
      const sql = new SQL(urls[this.current % urls.length] ?? "", {
        max: CONNECTIONS,
        connectionTimeout: CALL_MS_MAX / 1000,
        // A statement that waits for the same entry of a lost connection ends, and frees its own.
        connection: { application_name: "ninefold", statement_timeout: CHANGE_MS_MAX },
      });
      try {
        const [row] = (await sql`SELECT pg_is_in_recovery() AS standby`) as { standby: boolean }[];
        if (row?.standby === false) return sql;
        failure = new Error("this server is a standby");
      } catch (error) {
        failure = error;
      }
      closePool(sql);
      this.current += 1;
    }
    throw failure;
  }

  private disconnect(): void {
    this.pool?.then(closePool, () => undefined);
    this.pool = null;
  }
}

/** Classes 53 (such as a full disk) and 58 of SQLSTATE are about the server's resources; without a code nobody responded. */
function kindOf(error: unknown): EngineErrorKind {
  const code = typeof error === "object" && error !== null && "errno" in error ? String(error.errno) : "";
  if (code === "53100") return "no_space";
  return /^[0-9A-Z]{5}$/.test(code) ? "rejected" : "unreachable";
}

function closePool(sql: SQL): void {
  sql.close({ timeout: 0 }).catch(() => undefined);
}

/** Parts in one value, each behind its length. */
function framed(parts: readonly Uint8Array[]): Buffer {
  return Buffer.concat(
    parts.flatMap((part) => {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(part.length);
      return [length, part];
    }),
  );
}

function unframed(data: Uint8Array): Uint8Array[] {
  const bytes = Buffer.from(data);
  const parts: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = bytes.readUInt32BE(at);
    parts.push(bytes.subarray(at + 4, at + 4 + length));
    at += 4 + length;
  }
  return parts;
}
