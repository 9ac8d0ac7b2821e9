import { type Actor, ActorRegistry } from "../../kernel/actors/registry.ts";
import type { Caller, CallerAccount, Charger } from "../../kernel/http/caller.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { OutboundClient } from "../../kernel/outbound/client.ts";
import type { ProjectActivity } from "../../kernel/project-activity.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Tiers } from "../../kernel/tiers.ts";
import { bucketNotFound, type EventStatus, NO_TRAFFIC, type Provider, type Traffic } from "./domain.ts";
import { type EventSequence, newBucketId } from "./ids.ts";
import type { BucketCreateBody, BucketUpdateBody } from "./schema.ts";
import {
  type BucketRow,
  type BucketStore,
  decodeProvider,
  type EventStore,
  encodeProvider,
} from "./store.ts";

/** Buckets kept in memory when idle: some hundred bytes each. */
export const BUCKETS_IN_MEMORY_MAX = 20_000;

/** What buckets need of the rest of the server. */
export interface CatchPorts {
  readonly accounts: {
    /** A live account: a change of tier, balance or suspension shows at once. */
    account(accountRef: number): CallerAccount;
    /** The account's newest platform key: what is sent on is signed with it. */
    signingKey(accountRef: number): string;
  };
  readonly charger: Charger;
  readonly activity: ProjectActivity;
  readonly outbound: OutboundClient;
  readonly tiers: Tiers;
}

/** What everything in this area works with. */
export interface CatchDeps extends Kernel, CatchPorts {
  readonly store: BucketStore;
  readonly events: EventStore;
  readonly sequence: EventSequence;
}

/** A bucket in memory. Only memory knows its recent traffic: a restart forgives it. */
export interface BucketActor extends Actor, Pick<BucketRow, "ref" | "id" | "account_ref" | "project_ref"> {
  /** False while its counts are not written. */
  idle: boolean;
  readonly provider: Provider | null;
  readonly created_at: number;
  readonly counts: Record<EventStatus, number>;
  target_url: string;
  /** Opened. */
  signing_secret: string | null;
  live: boolean;
  updated_at: number;
  deleted: boolean;
  traffic: Traffic;
}

/** The buckets in memory. Their counts change there, within units of work, and are written once per batch. */
export class Buckets {
  private readonly actors: ActorRegistry<string, BucketActor>;
  private changed = new Set<BucketActor>();
  private nextRef: number;

  constructor(
    private readonly deps: Pick<CatchDeps, "store" | "vault" | "ids" | "writer">,
    inMemoryMax = BUCKETS_IN_MEMORY_MAX,
  ) {
    this.actors = new ActorRegistry(inMemoryMax);
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
    const row = this.deps.store.idOf(ref);
    return row === null ? undefined : this.find(row.id);
  }

  /** @throws ApiError `catch.bucket_not_found` when it is missing or belongs to another project. */
  ofProject(projectRef: number, id: string): BucketActor {
    const bucket = this.find(id);
    if (bucket === undefined || bucket.project_ref !== projectRef) throw bucketNotFound();
    return bucket;
  }

  /** A project's buckets, newest first. */
  listOfProject(projectRef: number): BucketActor[] {
    return this.deps.store.ofProject(projectRef).flatMap(({ id }) => this.find(id) ?? []);
  }

  create(
    tx: Tx,
    {
      account,
      project,
    }: { account: Pick<Caller["account"], "ref">; project: Pick<Caller["project"], "ref"> },
    terms: BucketCreateBody & { provider: Provider | null },
  ): BucketActor {
    const id = this.freeId();
    this.deps.store.insert(tx, {
      ref: this.nextRef++,
      id,
      account_ref: account.ref,
      project_ref: project.ref,
      target_url: terms.target_url,
      provider: encodeProvider(terms.provider),
      signing_secret: this.seal(id, terms.signing_secret ?? null),
      created_at: tx.now,
      updated_at: tx.now,
    });
    tx.onRollback(() => this.actors.drop(id));
    return this.ofProject(project.ref, id);
  }

  /** Changes what the caller names; what is left out stays. */
  change(tx: Tx, bucket: BucketActor, changes: BucketUpdateBody): void {
    const { target_url, signing_secret, live, updated_at } = bucket;
    tx.onRollback(() => Object.assign(bucket, { target_url, signing_secret, live, updated_at }));
    if (changes.target_url !== undefined) bucket.target_url = changes.target_url;
    if (changes.signing_secret !== undefined) bucket.signing_secret = changes.signing_secret;
    if (changes.state !== undefined) bucket.live = changes.state === "live";
    bucket.updated_at = tx.now;
    this.keep(bucket);
    this.deps.store.setTerms(tx, { ...bucket, signing_secret: this.seal(bucket.id, bucket.signing_secret) });
  }

  /** Marks a bucket as deleted: it can no longer be found, though its rows are removed later. */
  markDeleted(tx: Tx, bucket: BucketActor): void {
    bucket.deleted = true;
    tx.onRollback(() => {
      bucket.deleted = false;
    });
    this.keep(bucket);
    this.deps.store.setDeleted(tx, tx.now, bucket.ref);
    tx.afterCommit(() => this.actors.drop(bucket.id));
  }

  /** Moves events between statuses: `from` is null for one that came, `to` for one that went. */
  count(tx: Tx, bucket: BucketActor, from: EventStatus | null, to: EventStatus | null): void {
    this.keep(bucket);
    move(bucket, from, to);
    tx.onRollback(() => move(bucket, to, from));
  }

  /** Keeps a bucket in memory, where its changes can be taken back, until the batch ends. */
  private keep(bucket: BucketActor): void {
    bucket.idle = false;
    this.changed.add(bucket);
  }

  /** When the batch is taken back, each unit's own undo puts memory right. */
  private writeCounts(tx: Tx): void {
    if (this.changed.size === 0) return;
    for (const bucket of this.changed) {
      const { pending, delivered, failed } = bucket.counts;
      this.deps.store.setCounts(tx, pending, delivered, failed, bucket.ref);
      bucket.idle = true;
    }
    this.changed = new Set();
  }

  private load(id: string): BucketActor | undefined {
    const row = this.deps.store.find(id);
    if (row === null) return undefined;
    const { provider, signing_secret: sealed, pending, delivered, failed, deleted_at, ...same } = row;
    return {
      ...same,
      idle: true,
      recent: false,
      provider: decodeProvider(provider),
      counts: { pending, delivered, failed },
      signing_secret: sealed === null ? null : this.deps.vault.open(sealed, sealContext(id)),
      live: row.live !== 0,
      deleted: deleted_at !== null,
      traffic: NO_TRAFFIC,
    };
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

function move({ counts }: BucketActor, from: EventStatus | null, to: EventStatus | null): void {
  if (from !== null) counts[from] -= 1;
  if (to !== null) counts[to] += 1;
}

function sealContext(bucketId: string): string {
  return `catch-signing-secret:${bucketId}`;
}
