import { ApiError, errorText } from "../kernel/errors.ts";
import type { Logger } from "../kernel/log.ts";
import { Histogram } from "../kernel/metrics/instruments.ts";
import type { Cancel } from "../kernel/time/clock.ts";
import {
  CALL_MS_MAX,
  CHANGE_MS_MAX,
  type ClusterNode,
  type CommitLog,
  EngineUnavailable,
  type LoggedEntry,
  PlaceTaken,
} from "./commit-log.ts";
import { type NodeTime, REAL_TIME, sleptMs } from "./node-time.ts";

/** Part of the lease during which this process trusts it: the rest covers clocks that run at different rates. */
const TRUSTED_PART = 0.8;
/** Renewals in the trusted time: two may fail. */
const RENEWALS_PER_LEASE = 4;
/** An entry that is not confirmed for so long suspends the server: the engine has lost its majority, or the network. */
const APPEND_MS_MAX = 2_000;
/** Pause before work that must not begin now tries again. */
const OPEN_RETRY_MS = 200;
/** Pause before an append is repeated. */
const APPEND_RETRY_MS = 50;
/** The wall clock gains more on the monotonic one only when it is set, or when the machine has slept. */
const GAINED_MS_MAX = 100;
const LOOK_MS = 1_000;
/** Longest wait for the entries that are being appended when a node stops in order: nobody gets their responses any more. */
const FINISH_MS_MAX = 2_000;
/** Upper limits of the counted times of appends, in seconds: from an engine on the same machine to one that hangs. */
const APPEND_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];

/** What a leader needs. */
export interface LeadershipDeps {
  readonly log: CommitLog;
  readonly node: ClusterNode;
  readonly epoch: number;
  readonly leaseMs: number;
  readonly logger: Logger;
  /** When the lease was taken, by the monotonic clock: before the request to the engine. */
  readonly since: number;
  /** That of this machine, unless a test has its own. */
  readonly time?: NodeTime;
  /** Called when this node gives the lease up because it cannot serve: it lets others lead for a while. */
  readonly onGivenUp?: () => void;
}

/**
 * The time in which this process leads. Decides whether a response may leave, and appends entries one after another.
 *
 * Suspended: the lease has run out by this machine's clock, or the engine does not confirm. Nothing leaves; when the engine
 * says that the epoch is still this one, it goes on. Given up: that has lasted for a lease, and another node could lead: its
 * requests may reach the engine and renew the lease, although no response comes back. Deposed: another epoch has begun. After
 * both the process must end.
 */
export class Leadership {
  readonly epoch: number;
  /** Resolves to the reason when another epoch has begun. */
  readonly deposed: Promise<string>;
  /** Seconds until each entry was confirmed. */
  readonly appendSeconds = new Histogram(APPEND_BUCKETS);
  /** Whether another node could lead. */
  hasSuccessor: () => boolean = () => false;
  /** Called when nothing can be appended any more. */
  onEnded: () => void = () => undefined;
  private readonly depose: (reason: string) => void;
  private isDeposed = false;
  private isOver = false;
  /** Until when the lease is trusted, by the monotonic clock. */
  private trustedUntil: number;
  /** Entries that were handed in and are not confirmed. */
  private pending = 0;
  /** Since when the engine has failed to confirm renewals, and an entry, by the monotonic clock; null: it has not. */
  private renewalsFailSince: number | null = null;
  private appendFailsSince: number | null = null;
  private appending: Promise<void> | null = null;
  /** Whether an append takes too long. */
  private isUncertain = false;
  private readonly interruptions = new Set<(error: ApiError) => void>();
  private cancelLook: Cancel = () => undefined;
  private readonly time: NodeTime;
  private sleptMs: number;
  /** What the wall clock shows beyond the monotonic one. */
  private wallLead: number;

  constructor(private readonly deps: LeadershipDeps) {
    const { promise, resolve } = Promise.withResolvers<string>();
    this.deposed = promise;
    this.depose = resolve;
    this.epoch = deps.epoch;
    this.time = deps.time ?? REAL_TIME;
    this.sleptMs = sleptMs(this.time);
    this.wallLead = this.time.wall() - this.time.monotonic();
    this.trustedUntil = deps.since + deps.leaseMs * TRUSTED_PART;
    this.keepLease().catch((error: unknown) => this.end(errorText(error)));
    this.look();
  }

  /** Whether another epoch has begun. */
  get wasDeposed(): boolean {
    return this.isDeposed;
  }

  /** Whether it was given up, deposed or closed. */
  get isEnded(): boolean {
    return this.isOver;
  }

  /** Entries that are not confirmed. */
  get unconfirmed(): number {
    return this.pending;
  }

  /** Milliseconds for which the lease is still trusted. */
  get leaseLeftMs(): number {
    return this.isOver ? 0 : Math.max(0, this.trustedUntil - this.time.monotonic());
  }

  /** Whether responses may leave now. */
  get isTrusted(): boolean {
    if (this.isOver || this.isUncertain) return false;
    const now = this.time.monotonic();
    if (Math.abs(this.time.wall() - now - this.wallLead) > GAINED_MS_MAX) this.noteSleep();
    return now < this.trustedUntil;
  }

  /** A request that comes now could not be confirmed. @throws ApiError `not_leader` */
  assertOpen(): void {
    if (!this.isTrusted) throw notLeading();
  }

  /**
   * Lets a response, a job or a request to others pass: when the lease holds, and everything that it may have seen is
   * confirmed. Undefined: now. @throws ApiError `unconfirmed`
   */
  pass(): Promise<void> | undefined {
    if (!this.isTrusted) throw unavailable();
    if (this.appending === null) return undefined;
    return this.appending.then(() => {
      if (!this.isTrusted) throw unavailable();
    });
  }

  /** Waits until work may have effects outside. */
  async open(): Promise<void> {
    for (;;) {
      try {
        await this.pass();
        return;
      } catch {
        await this.time.delay(OPEN_RETRY_MS);
      }
    }
  }

  /** Calls `interrupt` when the engine does not confirm in time: what waits for it would wait too long. */
  onInterrupted(interrupt: (error: ApiError) => void): Cancel {
    this.interruptions.add(interrupt);
    return () => this.interruptions.delete(interrupt);
  }

  /** Appends an entry behind those before it. @throws ApiError `unconfirmed` when another leader has written its place. */
  append(entry: LoggedEntry): Promise<void> {
    const before = this.appending ?? Promise.resolve();
    const begunAt = this.time.monotonic();
    this.pending += 1;
    const appended = before.then(() => this.appendOne(entry));
    appended.then(
      () => this.appendSeconds.observe((this.time.monotonic() - begunAt) / 1_000),
      () => undefined,
    );
    const settled = appended.finally(() => {
      this.pending -= 1;
      if (this.appending === settled) this.appending = null;
    });
    settled.catch(() => undefined);
    this.appending = settled;
    return settled;
  }

  /** Waits for the entries that are being appended, as long as the engine confirms some, and gives the lease up. */
  async handOver(): Promise<void> {
    await Promise.race([this.appending?.catch(() => undefined), this.time.delay(FINISH_MS_MAX)]);
    await this.resign();
  }

  /** Gives the lease up without waiting for the entries that are being appended. */
  async resign(): Promise<void> {
    this.close();
    if (!this.isDeposed) await this.release();
  }

  /** Lets another node lead, because this one cannot serve. */
  async giveUp(reason: string): Promise<void> {
    if (this.isOver) return;
    this.deps.logger.error("this node cannot serve, and lets another one lead", { error: reason });
    this.trustedUntil = 0;
    this.close();
    this.interrupt();
    this.deps.onGivenUp?.();
    await this.release();
    this.isDeposed = true;
    this.depose(reason);
  }

  /** The engine has no space left: what its owner must do. */
  noteFullEngine(): void {
    this.deps.logger.error(
      "the engine of the commit log has no space left, and takes no changes: with etcd, run etcdctl defrag --cluster and then etcdctl " +
        "alarm disarm, and see what else it stores; with PostgreSQL, free space on its disk",
    );
  }

  /** The request may arrive although its response does not. */
  private async release(): Promise<void> {
    const { log, node } = this.deps;
    const released = log.release(node, this.epoch).catch(() => undefined);
    await Promise.race([released, this.time.delay(2 * CALL_MS_MAX)]);
  }

  /** Ends without giving the lease up. */
  close(): void {
    this.isOver = true;
    this.cancelLook();
    this.onEnded();
  }

  private async appendOne(entry: LoggedEntry): Promise<void> {
    let failure: unknown = null;
    const cancel = this.time.after(APPEND_MS_MAX, () => this.becomeUncertain(failure));
    let isFull = false;
    try {
      for (;;) {
        if (this.isOver) throw outcomeUnknown();
        const begun = this.time.monotonic();
        try {
          await this.deps.log.append(entry);
          break;
        } catch (error) {
          if (error instanceof PlaceTaken) {
            this.end(error.message);
            throw outcomeUnknown();
          }
          if (failure === null)
            this.deps.logger.warn("the commit log has not confirmed a change, which is sent again", {
              error: errorText(error),
            });
          failure = error;
          this.appendFailsSince ??= this.triedSince(begun);
          if (!isFull && error instanceof EngineUnavailable && error.kind === "no_space") {
            isFull = true;
            this.noteFullEngine();
          }
          await this.time.delay(APPEND_RETRY_MS);
        }
      }
    } finally {
      cancel();
    }
    this.appendFailsSince = null;
    if (!this.isUncertain) return;
    this.isUncertain = false;
    this.deps.logger.info("the commit log confirms changes again");
  }

  private becomeUncertain(failure: unknown): void {
    if (this.isUncertain || this.isOver) return;
    this.isUncertain = true;
    this.deps.logger.error("the commit log does not confirm changes: requests are rejected until it does", {
      error: failure === null ? "no response yet" : errorText(failure),
    });
    this.interrupt();
  }

  private interrupt(): void {
    for (const interrupt of this.interruptions) interrupt(outcomeUnknown());
    this.interruptions.clear();
  }

  private async keepLease(): Promise<void> {
    const { log, node, leaseMs, logger } = this.deps;
    const pauseMs = (leaseMs * TRUSTED_PART) / RENEWALS_PER_LEASE;
    let isFailing = false;
    while (!this.isOver) {
      await this.time.delay(isFailing ? Math.min(pauseMs, APPEND_RETRY_MS * 4) : pauseMs);
      if (this.isOver) return;
      const [before, slept] = [this.time.monotonic(), sleptMs(this.time)];
      try {
        if (!(await log.renew(node, this.epoch, leaseMs))) {
          this.end("another node leads");
          return;
        }
        // Given up, or suspended, while the request was on its way.
        if (this.isOver) return;
        this.noteSleep();
        this.trustedUntil = before + leaseMs * TRUSTED_PART - (this.sleptMs - slept);
        this.renewalsFailSince = null;
        if (isFailing) logger.info("the lease was renewed");
        isFailing = false;
      } catch (error) {
        if (!isFailing) logger.warn("the lease could not be renewed", { error: errorText(error) });
        isFailing = true;
        this.renewalsFailSince ??= this.triedSince(before);
      }
    }
  }

  private look(): void {
    this.cancelLook = this.time.after(LOOK_MS, () => {
      this.noteSleep();
      void this.giveUpIfUseless();
      if (!this.isOver) this.look();
    });
  }

  /**
   * For a lease the engine has confirmed no renewal, or not the oldest change. A process that was paused for as long has not tried:
   * its next renewal tells whether another node leads.
   */
  private async giveUpIfUseless(): Promise<void> {
    if (!this.hasSuccessor()) return;
    const now = this.time.monotonic();
    const [renewals, append] = [this.renewalsFailSince ?? now, this.appendFailsSince ?? now];
    const forMs = now - Math.min(renewals, append);
    if (forMs <= this.deps.leaseMs) return;
    const what = renewals <= append ? "the lease" : "a change";
    await this.giveUp(`the commit log has not confirmed ${what} for ${Math.round(forMs / 1_000)} s`);
  }

  /** Since when a call that has failed now has been tried: from its begin. One that took longer than any may was paused with this process. */
  private triedSince(begun: number): number {
    return Math.max(begun, this.time.monotonic() - CHANGE_MS_MAX);
  }

  /** The lease goes on while this machine sleeps. */
  private noteSleep(): void {
    const slept = sleptMs(this.time);
    this.trustedUntil -= Math.max(0, slept - this.sleptMs);
    this.sleptMs = slept;
    this.wallLead = this.time.wall() - this.time.monotonic();
  }

  /** Another node leads, or another process is this node: nothing may leave this one any more. */
  end(reason: string): void {
    if (this.isDeposed || this.isOver) return;
    this.deps.logger.warn("this node does not lead any more: its process ends, and the next one follows", {
      reason,
    });
    this.isDeposed = true;
    this.trustedUntil = 0;
    this.close();
    this.interrupt();
    this.depose(reason);
  }
}

/** Of a change that was made here and may or may not stay: other nodes decide. */
function outcomeUnknown(): ApiError {
  return new ApiError(
    "unconfirmed",
    "The commit log did not confirm the change in time, so its outcome is unknown. Repeat the request with the same Idempotency-Key.",
    { retryAfterSeconds: 1, extras: { outcome: "unknown" } },
  );
}

/** To a request that is not begun. */
function notLeading(): ApiError {
  return new ApiError(
    "not_leader",
    "This node cannot confirm that it leads. Nothing was changed; retry in a moment.",
    { retryAfterSeconds: 1, extras: { leader: null, outcome: "none" } },
  );
}

function unavailable(): ApiError {
  return new ApiError(
    "unconfirmed",
    "This node cannot confirm that it leads. Retry in a moment, with the same Idempotency-Key if the request changes something.",
    { retryAfterSeconds: 1, extras: { outcome: "unknown" } },
  );
}
