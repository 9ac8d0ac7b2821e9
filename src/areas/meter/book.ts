import { ActorRegistry } from "../../kernel/actors/registry.ts";
import { BatchedWrites } from "../../kernel/background/batched-writes.ts";
import { BALANCE_MAX, type EntryKind } from "../../kernel/data/ledger.ts";
import { uuidToBytes } from "../../kernel/data/uuid.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { Extras, MeterActor, type OpenHolds } from "./actor.ts";
import { nextRefill, type Plan } from "./domain.ts";
import { RecentEntries } from "./recent-entries.ts";
import type { MeterBalance } from "./schema.ts";
import { type MeterRow, type MeterStore, planOfRow } from "./store.ts";

/**
 * Idle meters in memory, about 0.5 KB each. Any other idle meter costs one indexed read.
 */
export const METERS_IN_MEMORY_MAX = 131_072;
/** Changes that trigger a flush. It limits the entries that a start replays and the meters with unwritten rows. */
export const FLUSH_AFTER_ENTRIES = 50_000;
/** Longest delay of a flush, in milliseconds. */
const FLUSH_AFTER_MS = 2_000;
/** Rows per unit of work, about a millisecond. */
const ROWS_PER_UNIT = 250;

/** Missed refills of a plan that are applied after a downtime: about three years of days. */
export const MISSED_REFILLS_MAX = 1_000;

/** Kinds of entries, in the order of their stored numbers. Numbers save space in the ledger. */
export const KINDS = [
  "deduct",
  "refill",
  "reset",
  "capture",
  "grant",
] as const satisfies readonly EntryKind[];
type Kind = (typeof KINDS)[number];
/** Number of the first kind. */
export const FIRST_KIND = 1;
/** Time before the expiry of any hold. */
const BEFORE_ALL_HOLDS = 0;
/** Request id of entries without a request. */
const NO_REQUEST = new Uint8Array(0);

/** Project, meter and request of a change. */
export interface MeterChange {
  readonly projectRef: number;
  readonly meterId: string;
  readonly requestId: string;
}

/** A meter with less available credits than its threshold. */
export interface LowMeter extends MeterChange {
  readonly ref: number;
  readonly balance: number;
  readonly available: number;
}

/** Listeners of changes. */
export interface MeterListeners {
  /** Called in the unit of work that brings the meter below its threshold. */
  low(tx: Tx, meter: LowMeter): void;
  /** Called after each flush. */
  flushed(): void;
}

const NO_LISTENERS: MeterListeners = { low: () => {}, flushed: () => {} };

/**
 * The meters in memory and their ledger. Changes run within units of work, which append ledger entries; the meters' rows are
 * written later.
 */
export class MeterBook {
  private readonly actors: ActorRegistry<string, MeterActor>;
  /** Writes the meters' rows in the background. */
  private readonly flusher: BatchedWrites<MeterActor>;
  /** The newest entries, for the sums of usage. */
  readonly recent: RecentEntries;
  /** Thresholds of project alerts, by project. */
  readonly thresholds: Map<number, number>;
  listeners = NO_LISTENERS;
  private nextRef: number;
  private nextSequence: number;

  /** Meters that were refilled while the clock is not trusted. */
  private readonly refilledOnce = new Set<number>();

  constructor(
    private readonly store: MeterStore,
    private readonly kernel: Pick<Kernel, "writer" | "log" | "scheduler">,
    inMemoryMax: number = METERS_IN_MEMORY_MAX,
  ) {
    this.actors = new ActorRegistry(inMemoryMax);
    this.nextRef = store.highestRef() + 1;
    // Numbers of entries removed with their project are not reused: a flush or the sums may be beyond them.
    const { through, begun } = store.usage;
    this.nextSequence = Math.max(store.highestSequence(), store.flushedThrough(), through(), begun()) + 1;
    this.recent = new RecentEntries(this.nextSequence - 1);
    const projects = store.plans.projectAlerts();
    this.thresholds = new Map(projects.map(({ project_ref, threshold }) => [project_ref, threshold]));
    this.flusher = new BatchedWrites({
      ...kernel,
      warning: "meter balances could not be written, retrying",
      waitMs: FLUSH_AFTER_MS,
      marksMax: FLUSH_AFTER_ENTRIES,
      rowsPerUnit: ROWS_PER_UNIT,
      write: (tx, { ref, balance, lastSequence }) => store.saveBalance(tx, balance, lastSequence, ref),
      // A flush stores the ledger position of its start. The next start of the server reads the entries after it.
      begun: () => {
        const position = this.nextSequence - 1;
        return (tx) => {
          store.setFlushedThrough(tx, position);
          tx.afterCommit(() => this.listeners.flushed());
        };
      },
    });
    this.restoreUnflushed();
  }

  /** Returns a meter after applying due expiries and refills. */
  current(tx: Tx, { projectRef, meterId }: Pick<MeterChange, "projectRef" | "meterId">) {
    const meter = this.find(projectRef, meterId);
    if (meter !== undefined && meter.extras !== null) this.settle(tx, meter);
    return meter;
  }

  /** Returns a meter like {@link current}, created with a balance of 0 if it does not exist. */
  getOrCreate(tx: Tx, change: MeterChange): MeterActor {
    const known = this.current(tx, change);
    if (known !== undefined) return known;
    this.apply(tx, change, "reset", () => 0);
    return this.getOrCreate(tx, change);
  }

  /** Appends an entry that sets the balance to the result of `next`, which may throw to reject the change. */
  apply(
    tx: Tx,
    change: MeterChange,
    kind: Kind,
    next: (balance: number, held: number) => number,
  ): MeterBalance {
    const known = this.find(change.projectRef, change.meterId);
    const extras = known === undefined || known.extras === null ? null : this.settle(tx, known);
    const balance = known?.balance ?? 0;
    const held = extras === null ? 0 : extras.holds.held;
    const balanceAfter = next(balance, held);
    // Created only after the change is accepted.
    const actor = known ?? this.create(tx, change);
    this.enter(tx, actor, kind, balanceAfter, uuidToBytes(change.requestId));
    if (extras !== null || this.thresholds.size > 0) this.notifyIfLow(tx, change, actor, balance - held);
    return { balance: balanceAfter, meter_id: change.meterId };
  }

  /** Notifies the listener if a change has brought the available credits below the threshold. */
  notifyIfLow(tx: Tx, change: MeterChange, meter: MeterActor, before: number): void {
    const { balance, extras, ref } = meter;
    const threshold = extras?.threshold ?? this.thresholds.get(change.projectRef);
    if (threshold === undefined || before < threshold) return;
    const available = balance - (extras?.holds.held ?? 0);
    if (available < threshold) this.listeners.low(tx, { ...change, ref, balance, available });
  }

  /** Returns a meter's optional state, created if it has none. */
  extrasFor(tx: Tx, meter: MeterActor): Extras {
    // The change must stay in memory until it is durable or rolled back.
    this.flusher.mark(meter);
    const known = this.extrasOf(meter);
    if (known !== null) return known;
    const extras = new Extras();
    meter.extras = extras;
    this.store.setExtras(tx, meter.ref);
    tx.onRollback(() => {
      meter.extras = null;
    });
    return extras;
  }

  /** Appends an entry and sets the balance to `balanceAfter`. */
  enter(
    tx: Tx,
    meter: MeterActor,
    kind: Kind,
    balanceAfter: number,
    request_id: Uint8Array,
    hold_id: string | null = null,
  ): void {
    const { ref, balance, lastSequence: previous } = meter;
    const sequence = this.nextSequence++;
    this.flusher.mark(meter);
    meter.balance = balanceAfter;
    meter.lastSequence = sequence;
    const amount = balanceAfter - balance;
    const at = tx.now;
    const code = KINDS.indexOf(kind) + FIRST_KIND;
    const { projectRef: project_ref } = meter;
    this.recent.add({
      sequence,
      project_ref,
      meter_ref: ref,
      kind: code,
      amount,
      balance_after: balanceAfter,
      at,
    });
    tx.onRollback(() => {
      meter.balance = balance;
      meter.lastSequence = previous;
      this.recent.undo();
    });
    if (hold_id === null) {
      this.store.append(tx, sequence, ref, previous, code, amount, balanceAfter, at, request_id);
      return;
    }
    const row = { sequence, meter_ref: ref, previous, amount, balance_after: balanceAfter };
    this.store.appendCapture(tx, { ...row, at, request_id, hold_id });
  }

  /** Returns a meter; undefined if it does not exist. */
  find(projectRef: number, meterId: string): MeterActor | undefined {
    return this.actors.get(`${projectRef}/${meterId}`, () => {
      const row = this.store.find(projectRef, meterId);
      if (row === null) return undefined;
      const actor = this.actorOf(row);
      actor.projectRef = projectRef;
      return actor;
    });
  }

  /** Balance and last entry of a stored meter as of now: its row may be behind. */
  stored(row: MeterRow): Pick<MeterActor, "balance" | "lastSequence"> {
    return this.actorOf(row);
  }

  private actorOf({ ref, balance, last_sequence, has_extras }: MeterRow): MeterActor {
    const extras = has_extras === 0 ? null : undefined;
    return this.flusher.held(ref) ?? new MeterActor(ref, balance, last_sequence, extras);
  }

  /** Returns a meter's optional state, loaded at the first use; null for none. */
  extrasOf(meter: MeterActor): Extras | null {
    if (meter.extras === undefined) meter.extras = this.readExtras(meter.ref);
    return meter.extras;
  }

  private readExtras(ref: number): Extras | null {
    const { hasExtras, plans, place } = this.store;
    if (hasExtras(ref) === 0) return null;
    const extras = new Extras();
    extras.holds = this.openHolds(ref, BEFORE_ALL_HOLDS);
    const plan = plans.plan(ref);
    extras.plan = plan === null ? null : planOfRow(plan);
    extras.threshold = plans.alert(place(ref)?.project_ref ?? 0, ref)?.threshold ?? null;
    return extras;
  }

  /** Returns the held credits at a time, without expired holds that a full disk keeps open. */
  heldAt(meter: MeterActor, time: number): number {
    const extras = this.extrasOf(meter);
    if (extras === null) return 0;
    const { held, expiresFrom } = extras.holds;
    return expiresFrom > time ? held : this.openHolds(meter.ref, time).held;
  }

  /** Whether an expiry or refill is due. */
  isDue(meter: MeterActor | undefined, now: number): boolean {
    if (meter === undefined || meter.extras === null) return false;
    return (this.extrasOf(meter)?.dueFrom ?? Number.POSITIVE_INFINITY) <= now;
  }

  /** Applies due expiries of holds and due refills, in the order of their times. */
  private settle(tx: Tx, meter: MeterActor): Extras | null {
    const extras = this.extrasOf(meter);
    if (extras === null || extras.dueFrom > tx.now) return extras;
    this.flusher.mark(meter);
    const { plan } = extras;
    let next = plan;
    const isTrusted = this.kernel.scheduler.clockTrust.isTrusted;
    if (isTrusted) this.refilledOnce.clear();
    else if (this.refilledOnce.has(meter.ref)) next = null;
    for (let refills = 1; next !== null && next.nextAt <= tx.now; refills += 1) {
      this.expireHolds(tx, meter, extras, next.nextAt);
      this.grant(tx, meter, next, extras.holds.held);
      // A wrong clock may have skipped years, so that only one period is refilled.
      if (!isTrusted) {
        next = { ...next, nextAt: nextRefill(next, next.nextAt) };
        this.refilledOnce.add(meter.ref);
        tx.onRollback(() => this.refilledOnce.delete(meter.ref));
        break;
      }
      // Raising a balance several times has the same effect as once.
      const isLast = next.mode === "raise" || refills === MISSED_REFILLS_MAX;
      next = { ...next, nextAt: nextRefill(next, isLast ? tx.now : next.nextAt) };
    }
    this.expireHolds(tx, meter, extras, tx.now);
    if (next === null || next === plan) return extras;
    this.store.plans.postponePlan(tx, next.nextAt, meter.ref);
    extras.setPlan(tx, next);
    return extras;
  }

  /**
   * Moves a meter's refill plan to its first time after now, without a refill, and ends expired holds: for meters of
   * suspended accounts, whose refills are skipped.
   */
  skipRefills(tx: Tx, { projectRef, meterId }: Pick<MeterChange, "projectRef" | "meterId">): void {
    const meter = this.find(projectRef, meterId);
    const extras = meter === undefined ? null : this.extrasOf(meter);
    if (meter === undefined || extras === null) return;
    this.flusher.mark(meter);
    this.expireHolds(tx, meter, extras, tx.now);
    const { plan } = extras;
    if (plan === null || plan.nextAt > tx.now) return;
    const nextAt = nextRefill(plan, tx.now);
    this.store.plans.postponePlan(tx, nextAt, meter.ref);
    extras.setPlan(tx, { ...plan, nextAt });
  }

  private expireHolds(tx: Tx, { ref }: MeterActor, extras: Extras, time: number): void {
    if (extras.holds.expiresFrom > time) return;
    this.store.holds.expire(tx, ref, time);
    extras.setHolds(tx, this.openHolds(ref, time));
  }

  private openHolds(ref: number, time: number): OpenHolds {
    const { held = 0, open = 0, first_end = null } = this.store.holds.openOf(ref, time) ?? {};
    return { held, open, expiresFrom: first_end ?? Number.POSITIVE_INFINITY };
  }

  /** Applies one refill of a plan, limited to the largest balance. */
  private grant(tx: Tx, meter: MeterActor, { mode, amount, carryMax }: Plan, held: number): void {
    const carried = carryMax === null ? meter.balance : Math.min(meter.balance, Math.max(carryMax, held));
    if (carried < meter.balance) this.enter(tx, meter, "reset", carried, NO_REQUEST);
    const after = mode === "raise" ? Math.max(carried, amount) : Math.min(BALANCE_MAX, carried + amount);
    if (after > carried) this.enter(tx, meter, "grant", after, NO_REQUEST);
  }

  private create(tx: Tx, { projectRef, meterId }: MeterChange): MeterActor {
    const key = `${projectRef}/${meterId}`;
    const actor = new MeterActor(this.nextRef++, 0, 0, null);
    actor.projectRef = projectRef;
    this.store.insert(tx, actor.ref, projectRef, meterId);
    this.actors.insert(key, actor);
    tx.onRollback(() => this.actors.drop(key));
    return actor;
  }

  /**
   * Removes at most `rowsMax` rows of a deleted project: first holds, then entries and meters, then sums. Each meter's newest
   * entries go first, so that the rest is a valid ledger. Returns the number of rows removed.
   */
  removeRows(tx: Tx, projectRef: number, rowsMax: number): number {
    let left = rowsMax - this.store.holds.removeOfProject(tx, projectRef, rowsMax);
    if (left === 0) return rowsMax;
    for (const row of this.store.someOfProject(projectRef, rowsMax)) {
      const key = `${projectRef}/${row.meter_id}`;
      left -= this.removeEntries(tx, this.actors.peek(key) ?? this.actorOf(row), left);
      if (left === 0) break;
      this.store.remove(tx, row.ref);
      this.store.plans.removePlan(tx, row.ref);
      this.store.plans.removeAlert(tx, projectRef, row.ref);
      this.actors.drop(key);
      left -= 1;
      if (left === 0) break;
    }
    // Sums are computed from entries, so that no new ones appear after the last entry is removed.
    return rowsMax - left + (left === 0 ? 0 : this.store.usage.removeOfProject(tx, projectRef, left));
  }

  private removeEntries(tx: Tx, actor: MeterActor, rowsMax: number): number {
    const { lastSequence } = actor;
    tx.onRollback(() => {
      actor.lastSequence = lastSequence;
    });
    let removed = 0;
    while (removed < rowsMax && actor.lastSequence !== 0) {
      const entry = this.store.entry(actor.lastSequence);
      this.store.removeEntry(tx, actor.lastSequence);
      actor.lastSequence = entry?.previous ?? 0;
      removed += 1;
    }
    // If entries remain, the row must point to the newest of them.
    if (removed === rowsMax) this.store.saveBalance(tx, actor.balance, actor.lastSequence, actor.ref);
    return removed;
  }

  /** Writes all rows at the end of the process. */
  finish(): Promise<void> {
    return this.flusher.finish();
  }

  /** Restores the balances of entries after the last flush, which are newer than the rows. */
  private restoreUnflushed(): void {
    for (const { meter_ref, balance_after, sequence } of this.store.entriesAfter(
      this.store.flushedThrough(),
    )) {
      const actor = this.flusher.held(meter_ref) ?? new MeterActor(meter_ref, 0, 0);
      actor.balance = balance_after;
      actor.lastSequence = sequence;
      this.flusher.hold(actor);
    }
  }
}
