import type { Caller } from "../../kernel/http/caller.ts";
import type { TargetPolicy } from "../../kernel/outbound/target.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Tiers } from "../../kernel/tiers.ts";
import type { BucketView } from "./bucket.ts";
import type { Buckets } from "./buckets.ts";
import { assertProvider, assertRoomForBucket, type BucketState } from "./domain.ts";
import type { Forwarder } from "./forwarder.ts";
import type { Removal } from "./removal.ts";
import type { BucketStore } from "./store.ts";

/** What a caller hands in for a new bucket. */
export interface BucketTerms {
  readonly target_url: string;
  readonly provider?: string | null;
  readonly signing_secret?: string | null;
}

/** What a caller changes of a bucket. */
export interface BucketUpdate {
  readonly state?: BucketState;
  readonly target_url?: string;
  readonly signing_secret?: string | null;
}

/** The use cases of buckets. */
export class BucketService {
  private readonly deps: {
    readonly store: BucketStore;
    readonly buckets: Buckets;
    readonly forwarder: Forwarder;
    readonly removal: Removal;
    readonly targets: TargetPolicy;
    readonly tiers: Tiers;
  };

  constructor(deps: BucketService["deps"]) {
    this.deps = deps;
  }

  /** @throws ApiError `validation_error`, `catch.provider_unsupported`, `bucket_limit_exceeded` */
  create(tx: Tx, { account, project }: Caller, terms: BucketTerms): BucketView {
    const { store, buckets, tiers } = this.deps;
    this.assertTarget(terms.target_url);
    const { provider = null, signing_secret = null } = terms;
    const known = provider === null ? null : assertProvider(provider);
    assertRoomForBucket(store.countOfAccount(account.ref), tiers[account.tier].buckets);
    const bucket = buckets.create(tx, {
      accountRef: account.ref,
      projectRef: project.ref,
      targetUrl: terms.target_url,
      provider: known,
      signingSecret: signing_secret,
    });
    return bucket.view();
  }

  list(projectRef: number): { buckets: BucketView[] } {
    return { buckets: this.deps.buckets.listOfProject(projectRef).map((bucket) => bucket.view()) };
  }

  /** @throws ApiError `catch.bucket_not_found` */
  get(projectRef: number, id: string): BucketView {
    return this.deps.buckets.ofProject(projectRef, id).view();
  }

  /** What is left out stays. @throws ApiError `catch.bucket_not_found`, `validation_error` */
  update(tx: Tx, projectRef: number, id: string, update: BucketUpdate): BucketView {
    const { buckets, forwarder } = this.deps;
    const bucket = buckets.ofProject(projectRef, id);
    const { state, target_url: targetUrl, signing_secret: signingSecret } = update;
    if (targetUrl !== undefined) this.assertTarget(targetUrl);
    if (state === undefined && targetUrl === undefined && signingSecret === undefined) return bucket.view();
    const wasLive = bucket.live;
    buckets.change(tx, bucket, {
      targetUrl,
      signingSecret,
      live: state === undefined ? undefined : state === "live",
    });
    if (bucket.live && !wasLive) forwarder.wentLive(tx, bucket);
    return bucket.view();
  }

  /** From here on the bucket ignores what it is sent; its events are removed in the background. */
  delete(tx: Tx, projectRef: number, id: string): void {
    const { buckets, removal } = this.deps;
    const bucket = buckets.ofProject(projectRef, id);
    buckets.markDeleted(tx, bucket);
    removal.enqueue(tx, bucket.ref);
  }

  private assertTarget(url: string): void {
    this.deps.targets.assertUrl("target_url", url, { requireHttps: true });
  }
}
