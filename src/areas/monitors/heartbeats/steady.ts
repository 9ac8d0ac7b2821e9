import { type Actor, ActorRegistry } from "../../../kernel/actors/registry.ts";
import { BatchedWrites, type PendingWrite } from "../../../kernel/background/batched-writes.ts";
import { bytesToUuid } from "../../../kernel/data/uuid.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { hourOf } from "../domain.ts";
import type { CheckStore, MonitorRow, MonitorRows, UnsavedMonitors } from "../store.ts";
import { PINGS_STORED } from "./schema.ts";
import { expectedAfter, withoutEarly } from "./state.ts";
import type { HeartbeatRow, HeartbeatRows, PingStore, UnsavedHeartbeats } from "./store.ts";

/** Heartbeats in memory when idle, about 2 KB each. Beyond it, a ping of one that was not used lately costs four reads and two writes. */
const HEARTBEATS_IN_MEMORY_MAX = 16_384;
/** Pings after which states are written: limits what a start replays. */
const SAVED_AFTER_PINGS = 50_000;
/** Longest wait when there are fewer pings. */
const SAVED_AFTER_MS = 2_000;
/** Heartbeats written in one unit of work, with up to {@link PINGS_STORED} pings each: two milliseconds at most. */
const HEARTBEATS_PER_UNIT = 10;
/** In place of a sequence: every row is current. The first check of all is never a steady heartbeat's. */
const ALL_SAVED = 0;

/** A success that says nothing more. */
export interface UnsavedPing {
  readonly number: number;
  readonly at: number;
  readonly ip: string | null;
}

/** Fields of a ping that an {@link UnsavedPing} omits. */
export const PLAIN_SUCCESS = {
  kind: "success",
  exit: null,
  durationMs: null,
  rid: null,
  body: null,
} as const;

/**
 * A heartbeat that is up and receives nothing but plain successes from one address. All that such a ping changes follows
 * from its check: from its time, its sequence, and how many there were. Its deadline's job stays as it was in the database:
 * when it is due before the deadline of the last ping, it is postponed, and a missing ping is found as for any heartbeat.
 */
class SteadyHeartbeat implements Actor, PendingWrite {
  recent = false;
  dueInRound = 0;
  /** Pings since the rows were read. */
  private pings = 0;
  private lastPingAt: number | null;
  private expectedAt: number | null;
  private lastCheck: number;
  private unsaved: UnsavedPing[] = [];

  /** `ip`: where its last ping came from. */
  constructor(
    private readonly monitorRow: MonitorRow,
    private readonly heartbeatRow: HeartbeatRow,
    private readonly ip: string | null,
    readonly pingId: string,
  ) {
    this.lastPingAt = heartbeatRow.waitsSince;
    this.expectedAt = heartbeatRow.expectedAt;
    this.lastCheck = monitorRow.lastCheck;
  }

  get ref(): number {
    return this.monitorRow.ref;
  }

  get projectRef(): number {
    return this.monitorRow.projectRef;
  }

  get accountRef(): number {
    return this.monitorRow.accountRef;
  }

  get monitorId(): string {
    return this.monitorRow.monitorId;
  }

  /** Pings without a row that are to have one, oldest first. */
  get unsavedPings(): readonly UnsavedPing[] {
    return this.unsaved.slice(-PINGS_STORED);
  }

  /** Sequence of its last check. */
  get previous(): number {
    return this.lastCheck;
  }

  /** The number of its last ping. */
  get number(): number {
    return this.heartbeatRow.pings + this.pings;
  }

  /** Until its rows are written, its state is in memory and in its checks alone. */
  get idle(): boolean {
    return this.dueInRound === 0;
  }

  /**
   * Whether a success leaves it steady: from the same address, in the hour that is being counted, and with a deadline that
   * its job precedes.
   */
  staysSteady(now: number, ip: string | null): boolean {
    if (ip !== this.ip || hourOf(now) > this.monitorRow.hour) return false;
    const expectedAt = this.expectedAfter(now);
    const { jobAt, grace_ms } = this.heartbeatRow;
    return expectedAt !== null && jobAt !== null && jobAt <= expectedAt + grace_ms;
  }

  /** Records a success whose check has this sequence. Returns how to undo it. */
  succeeded(sequence: number, at: number): () => void {
    const { pings, lastPingAt, expectedAt, lastCheck, number } = this;
    this.expectedAt = this.expectedAfter(at);
    this.pings += 1;
    this.lastPingAt = at;
    this.lastCheck = sequence;
    this.unsaved.push({ number: number + 1, at, ip: this.ip });
    return () => {
      this.pings = pings;
      this.lastPingAt = lastPingAt;
      this.expectedAt = expectedAt;
      this.lastCheck = lastCheck;
      this.unsaved = this.unsaved.filter((ping) => ping.number <= number);
    };
  }

  /** Its pings have their rows. Returns how to undo it. */
  pingsSaved(): () => void {
    const { unsaved } = this;
    this.unsaved = [];
    return () => {
      this.unsaved = unsaved;
    };
  }

  get monitor(): MonitorRow {
    const { monitorRow, pings, lastCheck } = this;
    const { checks, up, lastCheckedAt, knownMs, upMs, standsSince } = monitorRow;
    const standsNow = pings === 0 ? standsSince : this.lastPingAt;
    const stoodMs = Math.max(0, (standsNow ?? 0) - (standsSince ?? 0));
    return {
      ...monitorRow,
      lastCheckedAt: pings === 0 ? lastCheckedAt : this.lastPingAt,
      lastCheck,
      checks: checks + pings,
      up: up + pings,
      knownMs: knownMs + stoodMs,
      upMs: upMs + stoodMs,
      standsSince: standsNow,
    };
  }

  get heartbeat(): HeartbeatRow {
    const { heartbeatRow, expectedAt } = this;
    if (this.pings === 0) return heartbeatRow;
    return {
      ...heartbeatRow,
      pings: heartbeatRow.pings + this.pings,
      lastPingAt: this.lastPingAt,
      waitsSince: this.lastPingAt,
      expectedAt,
      missedAt: expectedAt === null ? null : expectedAt + heartbeatRow.grace_ms,
    };
  }

  private expectedAfter(since: number): number | null {
    const { lastPingAt: waitsSince, expectedAt } = this;
    return withoutEarly(
      expectedAfter({ waitsSince, expectedAt }, this.heartbeatRow, since),
      this.heartbeatRow,
      since,
    );
  }
}

type Rows = {
  readonly monitors: MonitorRows;
  readonly heartbeats: HeartbeatRows;
  readonly pings: PingStore;
  readonly checks: Pick<CheckStore, "after" | "highestSequence" | "unsavedSince" | "setUnsavedSince">;
};

/**
 * Keeps steady heartbeats in memory: a ping appends its rows, and the states of its monitor and heartbeat are written
 * later, many pings at a time. After a crash a start makes up for what was not written from the checks.
 */
export class SteadyHeartbeats implements UnsavedMonitors, UnsavedHeartbeats {
  private readonly actors = new ActorRegistry<number, SteadyHeartbeat>(
    HEARTBEATS_IN_MEMORY_MAX,
    ({ pingId }) => this.refs.delete(pingId),
  );
  private readonly refs = new Map<string, number>();
  private readonly rounds: BatchedWrites<SteadyHeartbeat>;
  /** Sequence of the last check before those that the rows may lack. */
  private unsavedSince: number;
  private lastSequence: number;

  constructor(
    kernel: Pick<Kernel, "writer" | "log">,
    private readonly rows: Rows,
  ) {
    this.unsavedSince = rows.checks.unsavedSince();
    this.lastSequence = rows.checks.highestSequence();
    this.rounds = new BatchedWrites({
      ...kernel,
      warning: "states of heartbeats could not be written yet",
      waitMs: SAVED_AFTER_MS,
      marksMax: SAVED_AFTER_PINGS,
      rowsPerUnit: HEARTBEATS_PER_UNIT,
      // The one in memory now: another may have taken its place since it was marked.
      write: (tx, { ref }) => this.save(tx, this.actors.peek(ref)),
      begun: () => this.roundBegun(),
    });
    if (this.unsavedSince === ALL_SAVED || this.replay() > 0) return;
    // Otherwise the next start would look at the same checks, and at all that follow.
    kernel.writer.submit(this.roundBegun()).catch(() => {
      // The next round does it.
    });
  }

  /** A heartbeat that is in memory. */
  of(ref: number): SteadyHeartbeat | undefined {
    return this.actors.get(ref, () => undefined);
  }

  monitor(ref: number): MonitorRow | undefined {
    return this.actors.peek(ref)?.monitor;
  }

  heartbeat(ref: number): HeartbeatRow | undefined {
    return this.actors.peek(ref)?.heartbeat;
  }

  refOf(pingId: string): number | undefined {
    return this.refs.get(pingId);
  }

  /** Pings of a heartbeat that have no row yet, oldest first. */
  pingsOf(ref: number): readonly UnsavedPing[] {
    return this.actors.peek(ref)?.unsavedPings ?? [];
  }

  /** Keeps a heartbeat in memory from now on, where it is steady. All its rows are written. `ip`: where its last ping came from. */
  add(tx: Tx, monitor: MonitorRow, heartbeat: HeartbeatRow, ip: string | null): void {
    if (!isSteady(monitor, heartbeat)) return;
    const actor = this.insert(actorOf(monitor, heartbeat, ip));
    tx.onRollback(() => this.drop(actor));
  }

  /** Records a success whose check has this sequence. */
  succeeded(tx: Tx, actor: SteadyHeartbeat, sequence: number): void {
    if (this.unsavedSince === ALL_SAVED) this.setUnsavedSince(tx, sequence - 1);
    this.lastSequence = sequence;
    this.rounds.mark(actor);
    tx.onRollback(actor.succeeded(sequence, tx.now));
  }

  release(tx: Tx, ref: number): void {
    const actor = this.actors.peek(ref);
    if (actor === undefined) return;
    this.save(tx, actor);
    this.drop(actor);
    tx.onRollback(() => this.insert(actor));
  }

  /** Writes every state. For the end of the process. */
  finish(): Promise<void> {
    return this.rounds.finish();
  }

  private save(tx: Tx, actor: SteadyHeartbeat | undefined): void {
    if (actor === undefined || actor.idle) return;
    const { ref, monitor, heartbeat, unsavedPings } = actor;
    this.rows.monitors.writeState(tx, monitor);
    this.rows.heartbeats.writeState(tx, ref, heartbeat);
    for (const { number, at, ip } of unsavedPings)
      this.rows.pings.insertPing(tx, ref, number, { ...PLAIN_SUCCESS, at, ip });
    // From now on reads find the rows, also while the disk has not confirmed them.
    tx.onRollback(actor.pingsSaved());
  }

  private insert(actor: SteadyHeartbeat): SteadyHeartbeat {
    this.actors.insert(actor.ref, actor);
    this.refs.set(actor.pingId, actor.ref);
    return actor;
  }

  private drop({ ref, pingId }: SteadyHeartbeat): void {
    this.actors.drop(ref);
    this.refs.delete(pingId);
  }

  private setUnsavedSince(tx: Tx, sequence: number): void {
    const before = this.unsavedSince;
    if (sequence === before) return;
    this.rows.checks.setUnsavedSince(tx, sequence);
    this.unsavedSince = sequence;
    tx.onRollback(() => {
      this.unsavedSince = before;
    });
  }

  /** A round begins between two batches. Returns what notes that all pings up to here are in their rows. */
  private roundBegun(): (tx: Tx) => void {
    const through = this.lastSequence;
    return (tx) => this.setUnsavedSince(tx, through === this.lastSequence ? ALL_SAVED : through);
  }

  /**
   * Makes up for checks that are newer than the rows of their monitors: whatever else writes these rows releases them
   * first, so all of them are successes of steady heartbeats. Returns how many.
   */
  private replay(): number {
    let replayed = 0;
    for (const { sequence, ref, at } of this.rows.checks.after(this.unsavedSince)) {
      const actor = this.actors.peek(ref) ?? this.behind(ref, sequence);
      if (actor === null) continue;
      actor.succeeded(sequence, at);
      this.rounds.mark(actor);
      replayed += 1;
    }
    return replayed;
  }

  /** A heartbeat whose rows lack this check; null where they have it, and for what is no heartbeat. */
  private behind(ref: number, sequence: number): SteadyHeartbeat | null {
    const heartbeat = this.rows.heartbeats.read(ref);
    const monitor = heartbeat && this.rows.monitors.read(ref);
    if (heartbeat === null || monitor === null || monitor.lastCheck >= sequence) return null;
    return this.insert(actorOf(monitor, heartbeat, this.rows.pings.ipOf(ref, heartbeat.pings)));
  }
}

function actorOf(monitor: MonitorRow, heartbeat: HeartbeatRow, ip: string | null): SteadyHeartbeat {
  return new SteadyHeartbeat(monitor, heartbeat, ip, bytesToUuid(heartbeat.pingId));
}

/** Whether a success without a run changes nothing but what {@link SteadyHeartbeat} counts. */
function isSteady(monitor: MonitorRow, heartbeat: HeartbeatRow): boolean {
  const { settings, status, latencyMs, alertedAt, consecutiveFailures, degraded, streak } = monitor;
  const { standsSince, standsUp } = monitor;
  const { startedAt, startedRid, lastDurationMs, overranAt, repeatAt, waitsSince } = heartbeat;
  return (
    // Each of its pings counts as a run.
    heartbeat.max_runs_per_period === null &&
    settings.active &&
    status === "up" &&
    latencyMs === 0 &&
    alertedAt === null &&
    consecutiveFailures === 0 &&
    !degraded &&
    streak === 0 &&
    standsSince !== null &&
    standsUp &&
    startedAt === null &&
    startedRid === null &&
    lastDurationMs === null &&
    overranAt === null &&
    repeatAt === null &&
    waitsSince !== null
  );
}
