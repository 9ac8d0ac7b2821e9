import { type Actor, ActorRegistry } from "../../kernel/actors/registry.ts";
import { isoTime } from "../../kernel/date-time.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Vault } from "../../kernel/secrets/vault.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Writer } from "../../kernel/storage/writer.ts";
import {
  type Admission,
  admit,
  type BucketState,
  bucketNotFound,
  type EventStatus,
  NO_TRAFFIC,
  type Provider,
  type Traffic,
} from "./domain.ts";
import { newBucketId } from "./ids.ts";
import type { Bucket, BucketCreateBody, BucketUpdateBody } from "./schema.ts";
import type { BucketRow, BucketStore } from "./store.ts";

/** Buckets kept in memory when idle: some hundred bytes each. */
export const BUCKETS_IN_MEMORY_MAX = 20_000;

/** A bucket in memory. Only memory knows its recent traffic: a restart forgives it. */
export class BucketActor implements Actor {
  readonly ref: number;
  readonly id: string;
  readonly accountRef: number;
  readonly projectRef: number;
  readonly provider: Provider | null;
  readonly createdAt: number;
  readonly counts: Record<EventStatus, number>;
  targetUrl: string;
  live: boolean;
  updatedAt: number;
  deleted: boolean;
  recent = false;
  /** Whether the counts are not written yet. */
  dirty = false;
  private traffic: Traffic = NO_TRAFFIC;

  constructor(
    row: BucketRow,
    public signingSecret: string | null,
  ) {
    this.ref = row.ref;
    this.id = row.id;
    this.accountRef = row.account_ref;
    this.projectRef = row.project_ref;
    this.provider = row.provider;
    this.createdAt = row.created_at;
    this.counts = { pending: row.pending, delivered: row.delivered, failed: row.failed };
    this.targetUrl = row.target_url;
    this.live = row.live;
    this.updatedAt = row.updated_at;
    this.deleted = row.deleted_at !== null;
  }

  get idle(): boolean {
    return !this.dirty;
  }

  get state(): BucketState {
    return this.live ? "live" : "paused";
  }

  /** Events of any status. */
  get events(): number {
    const { pending, delivered, failed } = this.counts;
    return pending + delivered + failed;
  }

  /** Counts a request and says whether it may come in. */
  admit(now: number, perMinute: number): Admission {
    const { traffic, admission } = admit(this.traffic, now, perMinute);
    this.traffic = traffic;
    return admission;
  }

  view(): Bucket {
    return {
      id: this.id,
      target_url: this.targetUrl,
      provider: this.provider,
      has_signing_secret: this.signingSecret !== null,
      state: this.state,
      created_at: isoTime(this.createdAt),
      updated_at: isoTime(this.updatedAt),
      events: { ...this.counts },
    };
  }
}

/** The buckets in memory. Their counts change there, within units of work, and are written once per batch. */
export class Buckets {
  private readonly actors: ActorRegistry<string, BucketActor>;
  private changed = new Set<BucketActor>();
  private nextRef: number;

  constructor(
    private readonly deps: {
      readonly store: BucketStore;
      readonly vault: Vault;
      readonly ids: Ids;
      readonly writer: Writer;
      readonly inMemoryMax?: number;
    },
  ) {
    this.actors = new ActorRegistry(deps.inMemoryMax ?? BUCKETS_IN_MEMORY_MAX);
    this.nextRef = deps.store.highestRef() + 1;
    deps.writer.beforeCommit((tx) => this.writeCounts(tx));
  }

  /** How many are in memory. */
  get inMemory(): number {
    return this.actors.size;
  }

  /** The bucket of an id; undefined once it is deleted. */
  find(id: string): BucketActor | undefined {
    const bucket = this.actors.get(id, () => this.load(id));
    return bucket?.deleted === false ? bucket : undefined;
  }

  /** The bucket of a reference; undefined once it is deleted. */
  withRef(ref: number): BucketActor | undefined {
    const id = this.deps.store.idOf(ref);
    return id === null ? undefined : this.find(id);
  }

  /** @throws ApiError `catch.bucket_not_found` when it is missing or belongs to another project. */
  ofProject(projectRef: number, id: string): BucketActor {
    const bucket = this.find(id);
    if (bucket === undefined || bucket.projectRef !== projectRef) throw bucketNotFound();
    return bucket;
  }

  /** A project's buckets, newest first. */
  listOfProject(projectRef: number): BucketActor[] {
    return this.deps.store.idsOfProject(projectRef).flatMap((id) => this.find(id) ?? []);
  }

  create(
    tx: Tx,
    owner: { readonly accountRef: number; readonly projectRef: number },
    terms: BucketCreateBody & { provider: Provider | null },
  ): BucketActor {
    const { target_url, provider, signing_secret = null } = terms;
    const id = this.freeId();
    const row: BucketRow = {
      ref: this.nextRef++,
      id,
      account_ref: owner.accountRef,
      project_ref: owner.projectRef,
      target_url,
      provider,
      signing_secret: this.seal(id, signing_secret),
      live: false,
      ...{ pending: 0, delivered: 0, failed: 0 },
      ...{ created_at: tx.now, updated_at: tx.now, deleted_at: null },
    };
    const bucket = new BucketActor(row, signing_secret);
    this.deps.store.insert(tx, row);
    this.actors.insert(id, bucket);
    tx.onRollback(() => this.actors.drop(id));
    return bucket;
  }

  /** Changes what the caller names; what is left out stays. */
  change(tx: Tx, bucket: BucketActor, { target_url, signing_secret, state }: BucketUpdateBody): void {
    const { targetUrl, signingSecret, live, updatedAt } = bucket;
    tx.onRollback(() => Object.assign(bucket, { targetUrl, signingSecret, live, updatedAt }));
    if (target_url !== undefined) bucket.targetUrl = target_url;
    if (signing_secret !== undefined) bucket.signingSecret = signing_secret;
    if (state !== undefined) bucket.live = state === "live";
    bucket.updatedAt = tx.now;
    this.keep(bucket);
    this.deps.store.setTerms(tx, {
      ref: bucket.ref,
      target_url: bucket.targetUrl,
      signing_secret: this.seal(bucket.id, bucket.signingSecret),
      live: bucket.live,
    });
  }

  /** Marks a bucket as deleted: it can no longer be found, though its rows are removed later. */
  markDeleted(tx: Tx, bucket: BucketActor): void {
    bucket.deleted = true;
    tx.onRollback(() => {
      bucket.deleted = false;
    });
    this.keep(bucket);
    this.deps.store.setDeleted(tx, bucket.ref);
    tx.afterCommit(() => this.actors.drop(bucket.id));
  }

  /** Moves events between statuses: `from` is null for one that came, `to` for one that went. */
  count(tx: Tx, bucket: BucketActor, from: EventStatus | null, to: EventStatus | null): void {
    this.keep(bucket);
    this.move(bucket, from, to);
    tx.onRollback(() => this.move(bucket, to, from));
  }

  private move({ counts }: BucketActor, from: EventStatus | null, to: EventStatus | null): void {
    if (from !== null) counts[from] -= 1;
    if (to !== null) counts[to] += 1;
  }

  /** Keeps a bucket in memory, where its changes can be taken back, until the batch ends. */
  private keep(bucket: BucketActor): void {
    bucket.dirty = true;
    this.changed.add(bucket);
  }

  /** When the batch is taken back, each unit's own undo puts memory right. */
  private writeCounts(tx: Tx): void {
    if (this.changed.size === 0) return;
    for (const bucket of this.changed) {
      this.deps.store.setCounts(tx, bucket.ref, bucket.counts);
      bucket.dirty = false;
    }
    this.changed = new Set();
  }

  private load(id: string): BucketActor | undefined {
    const row = this.deps.store.find(id);
    if (row === null) return undefined;
    const { signing_secret: sealed } = row;
    return new BucketActor(row, sealed === null ? null : this.deps.vault.open(sealed, sealContext(id)));
  }

  private seal(id: string, secret: string | null): Uint8Array | null {
    return secret === null ? null : this.deps.vault.seal(secret, sealContext(id));
  }

  /** A random id is hardly ever taken. A deleted bucket keeps its id until its rows are removed. */
  private freeId(): string {
    for (;;) {
      const id = newBucketId(this.deps.ids);
      if (this.deps.store.find(id) === null) return id;
    }
  }
}

function sealContext(bucketId: string): string {
  return `catch-signing-secret:${bucketId}`;
}
