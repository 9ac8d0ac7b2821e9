import { ActorRegistry } from "../../kernel/actors/registry.ts";
import { BatchedWrites } from "../../kernel/background/batched-writes.ts";
import { BALANCE_MAX, type EntryKind } from "../../kernel/data/ledger.ts";
import { uuidToBytes } from "../../kernel/data/uuid.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { Extras, MeterActor, type OpenHolds } from "./actor.ts";
import { nextRefill, type Plan } from "./domain.ts";
import { planOfRow } from "./plans/store.ts";
import type { MeterBalance } from "./schema.ts";
import type { MeterRow, MeterStore } from "./store.ts";

/**
 * Meters kept in memory when idle, about half a kilobyte each with everything around them. Beyond it, a meter
 * that was not used lately costs one indexed read.
 */
export const METERS_IN_MEMORY_MAX = 131_072;
/** Changes after which balances are flushed: bounds what start-up replays, and how many meters wait in memory. */
export const FLUSH_AFTER_ENTRIES = 50_000;
/** Longest wait when there are fewer changes. */
const FLUSH_AFTER_MS = 2_000;
/** Rows written in one unit of work: about a millisecond. */
const ROWS_PER_UNIT = 250;

/** Refills of a plan that a server which was down makes up for: some three years of days. */
export const MISSED_REFILLS_MAX = 1_000;

/** The kinds of entries, in the order of their numbers in files: the ledger has many rows, and a number takes one byte. */
export const KINDS = [
  "deduct",
  "refill",
  "reset",
  "capture",
  "grant",
] as const satisfies readonly EntryKind[];
type Kind = (typeof KINDS)[number];
/** How the numbers begin. */
export const FIRST_KIND = 1;
/** Before every hold's end. */
const EVER = 0;
/** Stands for the request of what comes by itself. */
const NO_REQUEST = new Uint8Array(0);

/** Where a change belongs: the project, the meter, and the request that causes it. */
export interface MeterChange {
  readonly projectRef: number;
  readonly meterId: string;
  readonly requestId: string;
}

/** A meter that has just come to have less available than somebody wants to hear of. */
export interface LowMeter extends MeterChange {
  readonly ref: number;
  readonly balance: number;
  readonly available: number;
}

/** What others want to know of the meters. */
export interface MeterListeners {
  /** In the unit of work that makes it low. */
  low(tx: Tx, meter: LowMeter): void;
  /** Every now and then while there are changes. */
  flushed(): void;
}

const NOBODY: MeterListeners = { low: () => {}, flushed: () => {} };

/**
 * The meters in memory and their ledger: every entry is written here, and every row follows. Changes run within units of
 * work.
 */
export class MeterBook {
  private readonly actors: ActorRegistry<string, MeterActor>;
  /** Brings the rows up to the ledger in the background. */
  private readonly flusher: BatchedWrites<MeterActor>;
  /** The thresholds of alerts that projects have for all their meters. */
  readonly thresholds: Map<number, number>;
  listeners = NOBODY;
  private nextRef: number;
  private nextSequence: number;

  /** Meters that were refilled since the clock is not trusted. */
  private readonly refilledOnce = new Set<number>();

  constructor(
    private readonly store: MeterStore,
    private readonly kernel: Pick<Kernel, "writer" | "log" | "scheduler">,
    inMemoryMax: number = METERS_IN_MEMORY_MAX,
  ) {
    this.actors = new ActorRegistry(inMemoryMax);
    this.nextRef = store.highestRef() + 1;
    // Entries that were removed with their project leave their numbers unused: a flush or the sums may have passed them.
    const { through, begun } = store.usage;
    this.nextSequence = Math.max(store.highestSequence(), store.flushedThrough(), through(), begun()) + 1;
    const projects = store.terms.projectAlerts();
    this.thresholds = new Map(projects.map(({ project_ref, threshold }) => [project_ref, threshold]));
    this.flusher = new BatchedWrites({
      ...kernel,
      warning: "balances of meters could not be flushed yet",
      waitMs: FLUSH_AFTER_MS,
      marksMax: FLUSH_AFTER_ENTRIES,
      rowsPerUnit: ROWS_PER_UNIT,
      write: (tx, { ref, balance, lastSequence }) => store.saveBalance(tx, balance, lastSequence, ref),
      // A round notes how far the ledger went when it began: start-up reads the entries after that.
      begun: () => {
        const position = this.nextSequence - 1;
        return (tx) => {
          store.setFlushedThrough(tx, position);
          tx.afterCommit(() => this.listeners.flushed());
        };
      },
    });
    this.takeUp();
  }

  /** A meter as a change finds it: what is over has ended, what is due was refilled. */
  current(tx: Tx, { projectRef, meterId }: Pick<MeterChange, "projectRef" | "meterId">) {
    const meter = this.find(projectRef, meterId);
    if (meter !== undefined && meter.extras !== null) this.settle(tx, meter);
    return meter;
  }

  /** The same, begun with a balance of 0 where it does not exist. */
  begun(tx: Tx, change: MeterChange): MeterActor {
    const known = this.current(tx, change);
    if (known !== undefined) return known;
    this.apply(tx, change, "reset", () => 0);
    return this.begun(tx, change);
  }

  /** Changes the balance by an entry. `next` says to what, and may refuse. */
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
    // Made once nothing refuses the change.
    const actor = known ?? this.create(tx, change);
    this.enter(tx, actor, kind, balanceAfter, uuidToBytes(change.requestId));
    if (extras !== null || this.thresholds.size > 0) this.tellIfLow(tx, change, actor, balance - held);
    return { balance: balanceAfter, meter_id: change.meterId };
  }

  /** Tells who wants to hear of it when a change has left less than a threshold of what was available before. */
  tellIfLow(tx: Tx, change: MeterChange, meter: MeterActor, before: number): void {
    const { balance, extras, ref } = meter;
    const threshold = extras?.threshold ?? this.thresholds.get(change.projectRef);
    if (threshold === undefined || before < threshold) return;
    const available = balance - (extras?.holds.held ?? 0);
    if (available < threshold) this.listeners.low(tx, { ...change, ref, balance, available });
  }

  /** What a meter has beside its balance, which from now on may be something. */
  extrasFor(tx: Tx, meter: MeterActor): Extras {
    // What changes in memory must stay there until it is durable, or taken back.
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

  /** Writes an entry, and changes the balance to what it says. */
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
    tx.onRollback(() => {
      meter.balance = balance;
      meter.lastSequence = previous;
    });
    const amount = balanceAfter - balance;
    const at = tx.now;
    if (hold_id === null) {
      const code = KINDS.indexOf(kind) + FIRST_KIND;
      this.store.append(tx, sequence, ref, previous, code, amount, balanceAfter, at, request_id);
      return;
    }
    const row = { sequence, meter_ref: ref, previous, amount, balance_after: balanceAfter };
    this.store.appendCapture(tx, { ...row, at, request_id, hold_id });
  }

  /** A meter; undefined for one that does not exist. */
  find(projectRef: number, meterId: string): MeterActor | undefined {
    return this.actors.get(`${projectRef}/${meterId}`, () => {
      const row = this.store.find(projectRef, meterId);
      return row === null ? undefined : this.actorOf(row);
    });
  }

  private actorOf({ ref, balance, last_sequence, has_extras }: MeterRow): MeterActor {
    const extras = has_extras === 0 ? null : undefined;
    return this.flusher.held(ref) ?? new MeterActor(ref, balance, last_sequence, extras);
  }

  /** What a meter has beside its balance; null for nothing. Read when it is first asked for. */
  extrasOf(meter: MeterActor): Extras | null {
    if (meter.extras === undefined) meter.extras = this.readExtras(meter.ref);
    return meter.extras;
  }

  private readExtras(ref: number): Extras | null {
    const { hasExtras, terms, place } = this.store;
    if (hasExtras(ref) === 0) return null;
    const extras = new Extras();
    extras.holds = this.openHolds(ref, EVER);
    const plan = terms.plan(ref);
    extras.plan = plan === null ? null : planOfRow(plan);
    extras.threshold = terms.alert(place(ref)?.project_ref ?? 0, ref)?.threshold ?? null;
    return extras;
  }

  /** What is held of a meter at a moment, also where a disk that takes no change keeps what is over open. */
  heldAt(meter: MeterActor, moment: number): number {
    const extras = this.extrasOf(meter);
    if (extras === null) return 0;
    const { held, endsFrom } = extras.holds;
    return endsFrom > moment ? held : this.openHolds(meter.ref, moment).held;
  }

  /** Whether something is over or due by a moment. */
  isDue(meter: MeterActor | undefined, now: number): boolean {
    if (meter === undefined || meter.extras === null) return false;
    return (this.extrasOf(meter)?.dueFrom ?? Number.POSITIVE_INFINITY) <= now;
  }

  /** Ends the holds of a meter that are over, and makes the refills that are due, in the order of their moments. */
  private settle(tx: Tx, meter: MeterActor): Extras | null {
    const extras = this.extrasOf(meter);
    if (extras === null || extras.dueFrom > tx.now) return extras;
    this.flusher.mark(meter);
    const { plan } = extras;
    let next = plan;
    const isTrusted = this.kernel.scheduler.clockTrust.isTrusted;
    if (isTrusted) this.refilledOnce.clear();
    else if (this.refilledOnce.has(meter.ref)) next = null;
    for (let made = 1; next !== null && next.nextAt <= tx.now; made += 1) {
      this.endHolds(tx, meter, extras, next.nextAt);
      this.grant(tx, meter, next, extras.holds.held);
      // A wrong clock may have skipped years. What is due beyond one period waits.
      if (!isTrusted) {
        next = { ...next, nextAt: nextRefill(next, next.nextAt) };
        this.refilledOnce.add(meter.ref);
        tx.onRollback(() => this.refilledOnce.delete(meter.ref));
        break;
      }
      // Once is as good as many times where a balance is raised.
      const isLast = next.mode === "raise" || made === MISSED_REFILLS_MAX;
      next = { ...next, nextAt: nextRefill(next, isLast ? tx.now : next.nextAt) };
    }
    this.endHolds(tx, meter, extras, tx.now);
    if (next === null || next === plan) return extras;
    this.store.terms.postponePlan(tx, next.nextAt, meter.ref);
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
    this.endHolds(tx, meter, extras, tx.now);
    const { plan } = extras;
    if (plan === null || plan.nextAt > tx.now) return;
    const nextAt = nextRefill(plan, tx.now);
    this.store.terms.postponePlan(tx, nextAt, meter.ref);
    extras.setPlan(tx, { ...plan, nextAt });
  }

  private endHolds(tx: Tx, { ref }: MeterActor, extras: Extras, moment: number): void {
    if (extras.holds.endsFrom > moment) return;
    this.store.holds.end(tx, ref, moment);
    extras.setHolds(tx, this.openHolds(ref, moment));
  }

  private openHolds(ref: number, moment: number): OpenHolds {
    const { held = 0, open = 0, first_end = null } = this.store.holds.openOf(ref, moment) ?? {};
    return { held, open, endsFrom: first_end ?? Number.POSITIVE_INFINITY };
  }

  /** One refill of a plan: up to the largest balance. */
  private grant(tx: Tx, meter: MeterActor, { mode, amount, carryMax }: Plan, held: number): void {
    const kept = carryMax === null ? meter.balance : Math.min(meter.balance, Math.max(carryMax, held));
    if (kept < meter.balance) this.enter(tx, meter, "reset", kept, NO_REQUEST);
    const after = mode === "raise" ? Math.max(kept, amount) : Math.min(BALANCE_MAX, kept + amount);
    if (after > kept) this.enter(tx, meter, "grant", after, NO_REQUEST);
  }

  private create(tx: Tx, { projectRef, meterId }: MeterChange): MeterActor {
    const key = `${projectRef}/${meterId}`;
    const actor = new MeterActor(this.nextRef++, 0, 0, null);
    this.store.insert(tx, actor.ref, projectRef, meterId);
    this.actors.insert(key, actor);
    tx.onRollback(() => this.actors.drop(key));
    return actor;
  }

  /**
   * Removes at most `rowsMax` meters and entries of a deleted project, each meter's newest entries first, so that
   * what is left stays a whole ledger; before them what is held, after them the sums. Returns how many it removed.
   */
  removeRows(tx: Tx, projectRef: number, rowsMax: number): number {
    let left = rowsMax - this.store.holds.removeOfProject(tx, projectRef, rowsMax);
    if (left === 0) return rowsMax;
    for (const row of this.store.someOfProject(projectRef, rowsMax)) {
      const key = `${projectRef}/${row.meter_id}`;
      left -= this.removeEntries(tx, this.actors.peek(key) ?? this.actorOf(row), left);
      if (left === 0) break;
      this.store.remove(tx, row.ref);
      this.store.terms.removePlan(tx, row.ref);
      this.store.terms.removeAlert(tx, projectRef, row.ref);
      this.actors.drop(key);
      left -= 1;
      if (left === 0) break;
    }
    // The sums are made of entries, so none can come after the last of these has gone.
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
    // Where entries are left, the row leads to the newest of them; otherwise it is the next to go.
    if (removed === rowsMax) this.store.saveBalance(tx, actor.balance, actor.lastSequence, actor.ref);
    return removed;
  }

  /** Brings every row up to the ledger. For the end of the process. */
  finish(): Promise<void> {
    return this.flusher.finish();
  }

  /** Takes up the entries that no round has reached: they are newer than the rows. */
  private takeUp(): void {
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
