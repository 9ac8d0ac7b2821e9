import type { Actor } from "../../kernel/actors/registry.ts";
import { isoTime } from "../../kernel/date-time.ts";
import {
  type Admission,
  admit,
  type BucketState,
  type EventStatus,
  NO_TRAFFIC,
  type Provider,
  type Traffic,
} from "./domain.ts";

/** How many events of each status a bucket holds. */
export type EventCounts = Readonly<Record<EventStatus, number>>;

/** A bucket, as its endpoints answer it. */
export interface BucketView {
  readonly id: string;
  readonly target_url: string;
  readonly provider: Provider | null;
  readonly has_signing_secret: boolean;
  readonly state: BucketState;
  readonly created_at: string;
  readonly updated_at: string;
  readonly events: EventCounts;
}

/** What a bucket is built from. */
export interface BucketData {
  readonly ref: number;
  readonly id: string;
  readonly accountRef: number;
  readonly projectRef: number;
  readonly provider: Provider | null;
  readonly createdAt: number;
  readonly targetUrl: string;
  readonly signingSecret: string | null;
  readonly live: boolean;
  readonly updatedAt: number;
  readonly counts: EventCounts;
  readonly deleted: boolean;
}

/** A bucket in memory. What it was sent lately is known here alone: a restart forgives it. */
export class Bucket implements Actor {
  readonly ref: number;
  readonly id: string;
  readonly accountRef: number;
  readonly projectRef: number;
  readonly provider: Provider | null;
  readonly createdAt: number;
  targetUrl: string;
  signingSecret: string | null;
  live: boolean;
  updatedAt: number;
  deleted: boolean;
  recent = false;
  /** Whether the counts are not written yet. */
  dirty = false;
  readonly counts: Record<EventStatus, number>;
  private traffic: Traffic = NO_TRAFFIC;

  constructor(data: BucketData) {
    this.ref = data.ref;
    this.id = data.id;
    this.accountRef = data.accountRef;
    this.projectRef = data.projectRef;
    this.provider = data.provider;
    this.createdAt = data.createdAt;
    this.targetUrl = data.targetUrl;
    this.signingSecret = data.signingSecret;
    this.live = data.live;
    this.updatedAt = data.updatedAt;
    this.deleted = data.deleted;
    this.counts = { ...data.counts };
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

  view(): BucketView {
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
