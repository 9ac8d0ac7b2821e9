import { ApiError, errorText } from "../kernel/errors.ts";
import type { Logger } from "../kernel/log.ts";
import type { Cancel } from "../kernel/time/clock.ts";
import { type ClusterNode, type CommitLog, type LoggedEntry, PlaceTaken } from "./commit-log.ts";
import { type NodeTime, REAL_TIME } from "./node-time.ts";

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
/** A machine that slept longer between two looks has lost the lease. */
const SLEPT_MS_MAX = 1_000;
const LOOK_MS = 1_000;

/** What a leader needs. */
export interface LeadershipParts {
  readonly log: CommitLog;
  readonly node: ClusterNode;
  readonly epoch: number;
  readonly leaseMs: number;
  readonly logger: Logger;
  /** When the lease was taken, by the monotonic clock: before the request to the engine. */
  readonly since: number;
  /** That of this machine, unless a test has its own. */
  readonly time?: NodeTime;
}

/**
 * The time in which this process leads. Decides whether a response may leave, and appends entries one after another.
 *
 * Suspended: the lease has run out by this machine's clock, or the engine does not confirm. Nothing leaves; when the engine
 * says that the epoch is still this one, it goes on. Deposed: another epoch has begun, and the process must end.
 */
export class Leadership {
  readonly epoch: number;
  /** Resolves to the reason when another epoch has begun. */
  readonly deposed: Promise<string>;
  private readonly depose: (reason: string) => void;
  private isDeposed = false;
  private isOver = false;
  /** Until when the lease is trusted, by the monotonic clock. */
  private trustedUntil: number;
  private appending: Promise<void> | null = null;
  /** Whether an append takes too long. */
  private isUncertain = false;
  private readonly interruptions = new Set<(error: ApiError) => void>();
  private cancelLook: Cancel = () => undefined;
  private readonly time: NodeTime;
  private slept: number;

  constructor(private readonly parts: LeadershipParts) {
    const { promise, resolve } = Promise.withResolvers<string>();
    this.deposed = promise;
    this.depose = resolve;
    this.epoch = parts.epoch;
    this.time = parts.time ?? REAL_TIME;
    this.slept = this.sleptMs();
    this.trustedUntil = parts.since + parts.leaseMs * TRUSTED_PART;
    this.keepLease().catch((error: unknown) => this.end(errorText(error)));
    this.look();
  }

  /** Whether another epoch has begun. */
  get wasDeposed(): boolean {
    return this.isDeposed;
  }

  /** Whether responses may leave now. */
  get isTrusted(): boolean {
    return !this.isOver && !this.isUncertain && this.time.monotonic() < this.trustedUntil;
  }

  /**
   * Lets a response, a job or a request to others pass: when the lease holds, and everything that it may have seen is
   * confirmed. Undefined: now. @throws ApiError `service_unavailable`
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

  /** Appends an entry behind those before it. @throws ApiError `service_unavailable` when another leader has written its place. */
  append(entry: LoggedEntry): Promise<void> {
    const before = this.appending ?? Promise.resolve();
    const appended = before.then(() => this.appendOne(entry));
    const settled = appended.finally(() => {
      if (this.appending === settled) this.appending = null;
    });
    settled.catch(() => undefined);
    this.appending = settled;
    return settled;
  }

  /** Waits for the entries that are being appended, and gives the lease up. */
  async handOver(): Promise<void> {
    await this.appending?.catch(() => undefined);
    this.close();
    if (!this.isDeposed) await this.parts.log.release(this.parts.node, this.epoch).catch(() => undefined);
  }

  /** Ends without giving the lease up. */
  close(): void {
    this.isOver = true;
    this.cancelLook();
  }

  private async appendOne(entry: LoggedEntry): Promise<void> {
    const cancel = this.time.after(APPEND_MS_MAX, () => this.becomeUncertain());
    try {
      for (;;) {
        if (this.isDeposed) throw outcomeUnknown();
        try {
          await this.parts.log.append(entry);
          break;
        } catch (error) {
          if (error instanceof PlaceTaken) {
            this.end(error.message);
            throw outcomeUnknown();
          }
          if (!this.isUncertain)
            this.parts.logger.debug("an entry is appended again", { error: errorText(error) });
          await this.time.delay(APPEND_RETRY_MS);
        }
      }
    } finally {
      cancel();
    }
    if (!this.isUncertain) return;
    this.isUncertain = false;
    this.parts.logger.info("the commit log confirms changes again");
  }

  private becomeUncertain(): void {
    if (this.isUncertain || this.isOver) return;
    this.isUncertain = true;
    this.parts.logger.error("the commit log does not confirm changes: requests are rejected until it does");
    this.interrupt();
  }

  private interrupt(): void {
    for (const interrupt of this.interruptions) interrupt(outcomeUnknown());
    this.interruptions.clear();
  }

  private async keepLease(): Promise<void> {
    const { log, node, leaseMs, logger } = this.parts;
    const pauseMs = (leaseMs * TRUSTED_PART) / RENEWALS_PER_LEASE;
    let isFailing = false;
    while (!this.isOver) {
      await this.time.delay(isFailing ? Math.min(pauseMs, APPEND_RETRY_MS * 4) : pauseMs);
      if (this.isOver) return;
      const before = this.time.monotonic();
      try {
        if (!(await log.renew(node, this.epoch, leaseMs))) {
          this.end("another node leads");
          return;
        }
        this.trustedUntil = before + leaseMs * TRUSTED_PART;
        if (isFailing) logger.info("the lease was renewed");
        isFailing = false;
      } catch (error) {
        if (!isFailing) logger.warn("the lease could not be renewed", { error: errorText(error) });
        isFailing = true;
      }
    }
  }

  /** The monotonic clock stands still while a machine is suspended; the time since its boot does not. */
  private look(): void {
    this.cancelLook = this.time.after(LOOK_MS, () => {
      const slept = this.sleptMs();
      if (slept - this.slept > SLEPT_MS_MAX) this.trustedUntil = 0;
      this.slept = slept;
      if (!this.isOver) this.look();
    });
  }

  /** How far the clock that counts sleep is before the other. */
  private sleptMs(): number {
    return this.time.sinceBoot() - this.time.monotonic();
  }

  /** Another node leads, or another process is this node: nothing may leave this one any more. */
  end(reason: string): void {
    if (this.isDeposed || this.isOver) return;
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
    "service_unavailable",
    "The commit log did not confirm the change in time, so its outcome is unknown. Repeat the request with the same Idempotency-Key.",
    { retryAfterSeconds: 1, extras: { outcome: "unknown" } },
  );
}

function unavailable(): ApiError {
  return new ApiError(
    "service_unavailable",
    "This node cannot confirm that it leads. Retry in a moment, with the same Idempotency-Key if the request changes something.",
    { retryAfterSeconds: 1 },
  );
}
