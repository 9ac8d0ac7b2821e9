import type { Clock } from "../../kernel/clock.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { OutboundClient } from "../../kernel/outbound/client.ts";
import type { RequestHeaders } from "../../kernel/outbound/headers.ts";
import { withDefaults } from "../../kernel/outbound/headers.ts";
import type { OutboundOutcome } from "../../kernel/outbound/outcome.ts";
import { notificationSignature, relaySignature } from "../../kernel/outbound/signing.ts";
import type { JobOutcome, Scheduler } from "../../kernel/scheduler/scheduler.ts";
import type { Vault } from "../../kernel/secrets/vault.ts";
import type { StoppedProjects } from "../../kernel/stopped-projects.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { DeliveryCounts } from "./counts.ts";
import { type AttemptResult, afterAttempt, type NextStep } from "./domain.ts";
import type { SigningKeys } from "./ports.ts";
import type { RelayRequestRow, RelayStore } from "./store.ts";

/**
 * The job that makes one attempt; its payload is the delivery's reference. It is never taken back: when its time
 * comes, one whose delivery was cancelled or removed does nothing.
 */
export const DELIVER = "relay.deliver";

/** Attempts under way at once, in all. */
const CONCURRENCY = 1_024;
/** Attempts under way at once to one host: what a small server takes. */
const PER_HOST = 16;
/** The same to a host that did not answer within a second. */
const PER_SLOW_HOST = 4;
/** Attempts under way at once to all such hosts: the other half is for those that answer. */
const SLOW_TOTAL = CONCURRENCY / 2;
/** Of both, what one account may take: however many hosts it names, the deliveries of others go on. */
const ACCOUNT_SHARE = 1 / 4;

/** Real time that a target has for an attempt. */
const ATTEMPT_TIMEOUT_MS = 15_000;
/** Bytes of an answer's body that are read: enough for a target that answers before it closes, and of no use otherwise. */
const RESPONSE_BYTES_MAX = 64 * 1024;

/** Wait before an attempt that this server had no connection for. */
const LOCAL_RETRY_MS = 1_000;

const USER_AGENT = "Svc-Relay/1.0";

/** What attempts are built on. */
export interface DeliveryDeps {
  readonly scheduler: Scheduler;
  readonly store: RelayStore;
  readonly stopped: StoppedProjects;
  readonly outbound: OutboundClient;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly vault: Vault;
  readonly keys: SigningKeys;
  readonly counts: DeliveryCounts;
}

/** Makes the attempts at deliveries. */
export class Deliveries {
  /** First attempts under way, by reference; each with its project. */
  private readonly firstAttempts = new Map<number, number>();

  constructor(private readonly deps: DeliveryDeps) {
    deps.scheduler.register(DELIVER, {
      concurrency: CONCURRENCY,
      lanes: {
        perLane: PER_HOST,
        perSlowLane: PER_SLOW_HOST,
        slowTotal: SLOW_TOTAL,
        ownerShare: ACCOUNT_SHARE,
      },
      run: (job) => this.attempt(Number(job.payload)),
    });
  }

  /** Whether the first attempt is under way: the row does not say so, since a crash would make it a lie. */
  isUnderWay(ref: number): boolean {
    return this.firstAttempts.has(ref);
  }

  /** The deliveries of a project whose first attempt is under way. */
  underWay(projectRef: number): number[] {
    return [...this.firstAttempts].filter(([, project]) => project === projectRef).map(([ref]) => ref);
  }

  private async attempt(ref: number): Promise<JobOutcome> {
    const relay = this.deps.store.request(ref);
    if (relay === null || relay.finishedAt !== null) return {};
    if (this.deps.stopped.has(relay.projectRef)) return {};
    if (relay.attempts === 0) this.firstAttempts.set(ref, relay.projectRef);
    try {
      return await this.attemptAt(relay);
    } catch (error) {
      this.firstAttempts.delete(ref);
      throw error;
    }
  }

  private async attemptAt(relay: RelayRequestRow): Promise<JobOutcome> {
    const startedAt = this.deps.clock.now();
    const outcome = await this.deps.outbound.send({
      account: relay.accountRef,
      method: relay.method,
      url: relay.targetUrl,
      headers: this.headersOf(relay, startedAt),
      body: relay.body === null ? null : Buffer.from(relay.body),
      timeoutMs: ATTEMPT_TIMEOUT_MS,
      bodyBytesMax: RESPONSE_BYTES_MAX,
      keepsBody: false,
      longerBody: "truncate",
      redirectsMax: 0,
      reuseConnection: true,
    });
    if (!outcome.answered && outcome.failure.kind === "local") return this.later(relay);
    const result = resultOf(outcome, this.deps.clock.now());
    const number = relay.attempts + 1;
    const next = afterAttempt(relay.kind, number, result, this.deps.ids.fraction());
    const record = (tx: Tx): void => {
      this.record(tx, relay, { startedAt, durationMs: outcome.latencyMs, status: result.status }, next);
    };
    return next.kind === "retry" ? { record, retryAt: next.at } : { record };
  }

  /** An attempt that never left this machine is none: it is made again in a moment. */
  private later({ ref, attempts }: RelayRequestRow): JobOutcome {
    this.firstAttempts.delete(ref);
    return { retryAt: this.deps.clock.now() + LOCAL_RETRY_MS, attempt: attempts };
  }

  /** Each attempt is signed anew, with the key that is the newest now. */
  private headersOf(relay: RelayRequestRow, now: number): RequestHeaders {
    const key = this.deps.keys.signingKey(relay.accountRef);
    const body = relay.body ?? "";
    const defaults = { "Content-Type": "application/json", "User-Agent": USER_AGENT };
    const own =
      relay.kind === "pulse"
        ? { "X-Svc-Event": relay.event ?? "", "X-Svc-Signature": notificationSignature(key, body) }
        : { "X-Svc-Timestamp": String(now), "X-Svc-Signature": relaySignature(key, now, body) };
    return {
      ...withDefaults(this.customHeaders(relay), defaults),
      ...own,
      "X-Svc-Delivery-Id": relay.relayId,
    };
  }

  private customHeaders(relay: RelayRequestRow): RequestHeaders {
    if (relay.headers === null) return {};
    return JSON.parse(this.deps.vault.open(relay.headers, sealContext(relay.relayId)));
  }

  private record(
    tx: Tx,
    { ref, attempts, kind }: RelayRequestRow,
    made: { startedAt: number; durationMs: number; status: number | null },
    next: NextStep,
  ): void {
    const { store } = this.deps;
    tx.afterCommit(() => this.firstAttempts.delete(ref));
    const number = attempts + 1;
    const error = next.kind === "delivered" ? null : next.error;
    const there =
      next.kind === "retry"
        ? store.postpone(tx, ref, number, made.status, next.error)
        : store.finish(tx, ref, { status: next.kind, attempts: number, responseStatus: made.status, error });
    // Removed with its project meanwhile.
    if (!there) return;
    const { ended, retries } = this.deps.counts;
    tx.afterCommit(() => (next.kind === "retry" ? retries[kind] : ended[kind][next.kind]).add());
    store.recordAttempt(tx, ref, {
      number,
      started_at: made.startedAt,
      duration_ms: made.durationMs,
      response_status: made.status,
      error,
    });
  }
}

/** What sealed headers of a delivery are sealed for. */
export function sealContext(relayId: string): string {
  return `relay-headers:${relayId}`;
}

function resultOf(outcome: OutboundOutcome, endedAt: number): AttemptResult {
  if (outcome.answered) {
    return { status: outcome.status, failure: null, retryAfter: outcome.headers["retry-after"], endedAt };
  }
  const { kind, message } = outcome.failure;
  return { status: null, failure: { kind, message }, retryAfter: undefined, endedAt };
}
