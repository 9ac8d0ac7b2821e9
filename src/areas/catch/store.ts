import type { Database } from "../../kernel/storage/database.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { EventStatus, Provider } from "./domain.ts";
import { decodeProvider, encodeProvider } from "./event-store.ts";

/** A row of `catch_buckets`, where provider and `live` are numbers. */
export interface BucketRow {
  ref: number;
  id: string;
  account_ref: number;
  project_ref: number;
  target_url: string;
  provider: Provider | null;
  /** Sealed. */
  signing_secret: Uint8Array | null;
  live: boolean;
  pending: number;
  delivered: number;
  failed: number;
  created_at: number;
  updated_at: number;
  deleted_at: number | null;
}

/** What a change of a bucket writes. */
type Terms = Pick<BucketRow, "ref" | "target_url" | "signing_secret" | "live">;

/** A bucket with its oldest event's age, for the clean-up. */
export interface OldestEvent {
  ref: number;
  id: string;
  account_ref: number;
  events: number;
  oldest_at: number | null;
}

const BUCKET =
  "ref, id, account_ref, project_ref, target_url, provider, signing_secret, live, pending, delivered, failed, created_at, updated_at, deleted_at";

/** All SQL of buckets. */
export class BucketStore {
  private readonly byId;
  private readonly idByRef;
  private readonly ofProject;
  private readonly ofAccount;
  private readonly anyOfProject;
  private readonly liveWithPending;
  private readonly oldestAfter;
  private readonly insertBucket;
  private readonly updateTerms;
  private readonly updateCounts;
  private readonly markDeleted;
  private readonly deleteBucket;
  private readonly highest;

  constructor(db: Database) {
    this.byId = db.query<Omit<BucketRow, "provider" | "live"> & { provider: number; live: number }, [string]>(
      `SELECT ${BUCKET} FROM catch_buckets WHERE id = ?`,
    );
    this.idByRef = db.query<{ id: string }, [number]>("SELECT id FROM catch_buckets WHERE ref = ?");
    this.ofProject = db.query<{ id: string }, [number]>(
      "SELECT id FROM catch_buckets WHERE project_ref = ? AND deleted_at IS NULL ORDER BY ref DESC",
    );
    this.ofAccount = db.query<{ buckets: number }, [number]>(
      "SELECT count(*) AS buckets FROM catch_buckets WHERE account_ref = ? AND deleted_at IS NULL",
    );
    this.anyOfProject = db.query<{ ref: number }, [number]>(
      "SELECT ref FROM catch_buckets WHERE project_ref = ? LIMIT 1",
    );
    this.liveWithPending = db.query<{ ref: number }, [number, number]>(
      "SELECT ref FROM catch_buckets WHERE ref > ? AND live = 1 AND pending > 0 AND deleted_at IS NULL ORDER BY ref LIMIT ?",
    );
    this.oldestAfter = db.query<OldestEvent, [number, number]>(
      `SELECT ref, id, account_ref, pending + delivered + failed AS events,
         (SELECT received_at FROM catch_events WHERE bucket_ref = ref ORDER BY sequence LIMIT 1) AS oldest_at
       FROM catch_buckets WHERE ref > ? AND deleted_at IS NULL ORDER BY ref LIMIT ?`,
    );
    this.insertBucket = db.command<[Omit<BucketRow, "provider"> & { provider: number }]>(
      `INSERT INTO catch_buckets (${BUCKET}) VALUES ($ref, $id, $account_ref, $project_ref, $target_url, $provider,
         $signing_secret, $live, $pending, $delivered, $failed, $created_at, $updated_at, $deleted_at)`,
    );
    this.updateTerms = db.command<[Terms & { now: number }]>(
      `UPDATE catch_buckets SET target_url = $target_url, signing_secret = $signing_secret, live = $live,
         updated_at = $now WHERE ref = $ref`,
    );
    this.updateCounts = db.command<[number, number, number, number]>(
      "UPDATE catch_buckets SET pending = ?, delivered = ?, failed = ? WHERE ref = ?",
    );
    this.markDeleted = db.command<[number, number]>("UPDATE catch_buckets SET deleted_at = ? WHERE ref = ?");
    this.deleteBucket = db.command<[number]>("DELETE FROM catch_buckets WHERE ref = ?");
    this.highest = db.query<{ ref: number | null }>("SELECT max(ref) AS ref FROM catch_buckets");
  }

  /** The largest reference given so far; 0 for no bucket. */
  highestRef(): number {
    return this.highest.get()?.ref ?? 0;
  }

  find(id: string): BucketRow | null {
    const row = this.byId.get(id);
    return row === null ? null : { ...row, provider: decodeProvider(row.provider), live: row.live !== 0 };
  }

  /** The id of a reference, also of a bucket that is being removed. */
  idOf(ref: number): string | null {
    return this.idByRef.get(ref)?.id ?? null;
  }

  /** Ids of a project's buckets, newest first. */
  idsOfProject(projectRef: number): string[] {
    return this.ofProject.all(projectRef).map(({ id }) => id);
  }

  /** How many buckets an account has, in all its projects. */
  countOfAccount(accountRef: number): number {
    return this.ofAccount.get(accountRef)?.buckets ?? 0;
  }

  /** A bucket of a project, also one that is being removed; null when the project has no buckets. */
  anyRefOfProject(projectRef: number): number | null {
    return this.anyOfProject.get(projectRef)?.ref ?? null;
  }

  /** References above `after` of live buckets that have something to forward. */
  refsToForward(after: number, limit: number): number[] {
    return this.liveWithPending.all(after, limit).map(({ ref }) => ref);
  }

  /** Buckets above `after`, each with the age of its oldest event. */
  oldestEvents(after: number, limit: number): OldestEvent[] {
    return this.oldestAfter.all(after, limit);
  }

  insert(tx: Tx, row: BucketRow): void {
    this.insertBucket.run(tx, { ...row, provider: encodeProvider(row.provider) });
  }

  setTerms(tx: Tx, terms: Terms): void {
    this.updateTerms.run(tx, { ...terms, now: tx.now });
  }

  setCounts(tx: Tx, ref: number, { pending, delivered, failed }: Record<EventStatus, number>): void {
    this.updateCounts.run(tx, pending, delivered, failed, ref);
  }

  setDeleted(tx: Tx, ref: number): void {
    this.markDeleted.run(tx, tx.now, ref);
  }

  delete(tx: Tx, ref: number): void {
    this.deleteBucket.run(tx, ref);
  }
}
