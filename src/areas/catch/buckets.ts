import { ActorRegistry } from "../../kernel/actors/registry.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Vault } from "../../kernel/secrets/vault.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Writer } from "../../kernel/storage/writer.ts";
import { Bucket } from "./bucket.ts";
import { newBucketId } from "./bucket-id.ts";
import { bucketNotFound, type EventStatus, type Provider } from "./domain.ts";
import { decodeProvider, encodeProvider } from "./event-store.ts";
import type { BucketRow, BucketStore } from "./store.ts";

/** Buckets kept in memory when idle: some hundred bytes each. */
export const BUCKETS_IN_MEMORY_MAX = 20_000;

/** What a new bucket is made of. */
export interface NewBucket {
  readonly accountRef: number;
  readonly projectRef: number;
  readonly targetUrl: string;
  readonly provider: Provider | null;
  readonly signingSecret: string | null;
}

/** What a change of a bucket names; what is left out stays. */
export interface BucketChange {
  readonly targetUrl?: string | undefined;
  /** Null takes the secret away. */
  readonly signingSecret?: string | null | undefined;
  readonly live?: boolean | undefined;
}

/** The buckets in memory. Their counts change there, within units of work, and are written once per batch. */
export class Buckets {
  private readonly actors: ActorRegistry<string, Bucket>;
  private readonly store: BucketStore;
  private readonly vault: Vault;
  private readonly ids: Ids;
  private changed = new Set<Bucket>();
  private nextRef: number;

  constructor(deps: {
    store: BucketStore;
    vault: Vault;
    ids: Ids;
    writer: Writer;
    inMemoryMax?: number;
  }) {
    this.store = deps.store;
    this.vault = deps.vault;
    this.ids = deps.ids;
    this.actors = new ActorRegistry(deps.inMemoryMax ?? BUCKETS_IN_MEMORY_MAX);
    this.nextRef = deps.store.highestRef() + 1;
    deps.writer.beforeCommit((tx) => this.writeCounts(tx));
  }

  /** How many are in memory. */
  get inMemory(): number {
    return this.actors.size;
  }

  /** The bucket of an id, or undefined when there is none any more. */
  find(id: string): Bucket | undefined {
    const bucket = this.actors.get(id, () => this.load(id));
    return bucket?.deleted === false ? bucket : undefined;
  }

  /** The bucket of a reference, or undefined when there is none any more. */
  withRef(ref: number): Bucket | undefined {
    const id = this.store.idOf(ref);
    return id === null ? undefined : this.find(id);
  }

  /** @throws ApiError `catch.bucket_not_found` when it is missing or belongs to another project. */
  ofProject(projectRef: number, id: string): Bucket {
    const bucket = this.find(id);
    if (bucket === undefined || bucket.projectRef !== projectRef) throw bucketNotFound();
    return bucket;
  }

  /** A project's buckets, newest first. */
  listOfProject(projectRef: number): Bucket[] {
    return this.store.idsOfProject(projectRef).flatMap((id) => this.find(id) ?? []);
  }

  create(tx: Tx, terms: NewBucket): Bucket {
    const { accountRef, projectRef, targetUrl, provider, signingSecret } = terms;
    const id = this.freeId();
    const bucket = new Bucket({
      ref: this.nextRef++,
      id,
      ...{ accountRef, projectRef, provider, targetUrl, signingSecret },
      createdAt: tx.now,
      updatedAt: tx.now,
      live: false,
      deleted: false,
      counts: { pending: 0, delivered: 0, failed: 0 },
    });
    this.store.insert(
      tx,
      { ref: bucket.ref, id, accountRef, projectRef, provider: encodeProvider(provider) },
      { targetUrl, sealedSecret: this.seal(id, signingSecret) },
    );
    this.actors.insert(id, bucket);
    tx.onRollback(() => this.actors.drop(id));
    return bucket;
  }

  change(tx: Tx, bucket: Bucket, change: BucketChange): void {
    const { targetUrl, signingSecret, live, updatedAt } = bucket;
    bucket.targetUrl = change.targetUrl ?? targetUrl;
    bucket.signingSecret = change.signingSecret === undefined ? signingSecret : change.signingSecret;
    bucket.live = change.live ?? live;
    bucket.updatedAt = tx.now;
    tx.onRollback(() => Object.assign(bucket, { targetUrl, signingSecret, live, updatedAt }));
    this.keep(bucket);
    this.store.setTerms(tx, bucket.ref, {
      targetUrl: bucket.targetUrl,
      sealedSecret: this.seal(bucket.id, bucket.signingSecret),
      live: bucket.live,
    });
  }

  /** Marks a bucket as deleted: from here on it is as good as gone, though its rows are still to be removed. */
  markDeleted(tx: Tx, bucket: Bucket): void {
    bucket.deleted = true;
    tx.onRollback(() => {
      bucket.deleted = false;
    });
    this.keep(bucket);
    this.store.setDeleted(tx, bucket.ref);
    tx.afterCommit(() => this.actors.drop(bucket.id));
  }

  /** Moves events between statuses: `from` null for one that came, `to` null for one that went. */
  count(tx: Tx, bucket: Bucket, from: EventStatus | null, to: EventStatus | null): void {
    this.keep(bucket);
    this.move(bucket, from, to);
    tx.onRollback(() => this.move(bucket, to, from));
  }

  private move({ counts }: Bucket, from: EventStatus | null, to: EventStatus | null): void {
    if (from !== null) counts[from] -= 1;
    if (to !== null) counts[to] += 1;
  }

  /** Keeps a bucket in memory, where its changes can be taken back, until the batch ends. */
  private keep(bucket: Bucket): void {
    bucket.dirty = true;
    this.changed.add(bucket);
  }

  /** When the batch is taken back, memory is put right by each unit's own undo. */
  private writeCounts(tx: Tx): void {
    if (this.changed.size === 0) return;
    for (const bucket of this.changed) {
      this.store.setCounts(tx, bucket.ref, bucket.counts);
      bucket.dirty = false;
    }
    this.changed = new Set();
  }

  private load(id: string): Bucket | undefined {
    const row = this.store.find(id);
    return row === null ? undefined : this.bucketOf(row);
  }

  private bucketOf(row: BucketRow): Bucket {
    const sealed = row.signing_secret;
    return new Bucket({
      ref: row.ref,
      id: row.id,
      accountRef: row.account_ref,
      projectRef: row.project_ref,
      provider: decodeProvider(row.provider),
      createdAt: row.created_at,
      targetUrl: row.target_url,
      signingSecret: sealed === null ? null : this.vault.open(sealed, sealContext(row.id)),
      live: row.live !== 0,
      updatedAt: row.updated_at,
      counts: { pending: row.pending, delivered: row.delivered, failed: row.failed },
      deleted: row.deleted_at !== null,
    });
  }

  private seal(id: string, secret: string | null): Uint8Array | null {
    return secret === null ? null : this.vault.seal(secret, sealContext(id));
  }

  /** Random ids hardly ever meet; those of deleted buckets count too as long as their rows are there. */
  private freeId(): string {
    for (;;) {
      const id = newBucketId(this.ids);
      if (this.store.find(id) === null) return id;
    }
  }
}

function sealContext(bucketId: string): string {
  return `catch-signing-secret:${bucketId}`;
}
