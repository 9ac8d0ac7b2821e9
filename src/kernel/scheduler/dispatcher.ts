import type { JobPosition, LaneRange } from "./job-store.ts";
import { LaneGroup, type LaneLimits, type LaneOptions } from "./lane-groups.ts";

/** Separates the owner from the destination in a lane's name. */
const OWNER_END = "/";
/** The character after it. */
const LANES_END = "0";

/** The name of the lane for jobs of this owner (an account's reference) that go to this destination (such as a host). */
export function laneName(owner: number, destination: string): string {
  return `${owner}${OWNER_END}${destination}`;
}

/** The range of the names of an owner's lanes. */
export function lanesOf(owner: number): LaneRange {
  return [`${owner}${OWNER_END}`, `${owner}${LANES_END}`];
}

/** The owner in a lane's name; null for another lane. */
export function ownerOfLane(lane: string): number | null {
  const end = lane.indexOf(OWNER_END);
  return end < 0 ? null : Number(lane.slice(0, end));
}

/** A job with a slot. */
export interface Placed extends JobPosition {
  /** Whether its lane was slow at that time. */
  readonly slow: boolean;
}

/** Due jobs of one kind in memory, about a hundred bytes each. Beyond that the search for due jobs pauses. */
export const DUE_IN_MEMORY_MAX = 50_000;
/** The same for one owner. Beyond that the owner's jobs stay in the table until half of these have run. */
export const DUE_OF_OWNER_IN_MEMORY_MAX = 10_000;
/** Slow lanes without jobs that are remembered. */
export const SLOW_LANES_REMEMBERED_MAX = 10_000;
/** Waiting jobs of a lane in memory, as a multiple of its slots. */
const WAITING_PER_SLOT = 2;
/** Least such number, for lanes with few slots. */
const WAITING_MIN = 4;

/** An owner or a lane: above its capacity in memory, jobs stay in the table and are read later. */
interface Leaving {
  /** Due time of the first job that was left in the table; null: none was. */
  leftFrom: number | null;
  /** Whether a search for what was left is running. */
  searched: boolean;
}

interface Owner extends Leaving {
  readonly name: string;
  /** Lanes in memory. */
  lanes: number;
  inMemory: number;
  running: number;
  runningSlow: number;
  /** Lanes with a job and a slot for it. */
  readonly ready: Set<Lane>;
  readonly waitingForSlowSlot: Set<Lane>;
}

interface Lane extends Leaving {
  readonly name: string;
  readonly owner: Owner;
  readonly waiting: JobPosition[];
  running: number;
  slow: boolean;
  /** Null for nearly all. */
  readonly terms: LaneOptions | null;
  readonly group: LaneGroup<Lane> | null;
}

/**
 * Gives due jobs their slots. A slot is the right to run one job, and a kind, a lane and an owner have a limited number of
 * slots. Owners take turns, and so do an owner's lanes. Memory holds a limited number of each lane's and each owner's jobs;
 * the rest stays in the table, and the lane or owner remembers the due time from which to search it again. So a million
 * overdue jobs of a lane cost no more memory than ten, and so do a million lanes of an owner.
 */
export class Dispatcher {
  private readonly perOwner: number;
  private readonly slowPerOwner: number;
  private readonly waitingMax: number;
  private readonly owners = new Map<string, Owner>();
  private readonly lanes = new Map<string, Lane>();
  private readonly groups = new Map<string, LaneGroup<Lane>>();
  private readonly inMemory = new Set<number>();
  private readonly ready = new Set<Owner>();
  private readonly waitingForSlowSlot = new Set<Owner>();
  private readonly idleSlow = new Set<string>();
  private readonly searching = new Set<Lane | Owner>();
  /** Jobs that are running. */
  running = 0;
  private slowCount = 0;

  constructor(
    private readonly concurrency: number,
    private readonly limits: LaneLimits = {
      perLane: concurrency,
      perSlowLane: concurrency,
      slowTotal: concurrency,
    },
  ) {
    const share = limits.ownerShare ?? 1;
    this.perOwner = Math.max(1, Math.floor(concurrency * share));
    this.slowPerOwner = Math.max(1, Math.floor(limits.slowTotal * share));
    this.waitingMax = Math.max(WAITING_MIN, limits.perLane * WAITING_PER_SLOT);
  }

  /** The due time of the job that has waited longest for a slot, as far as the table was searched; null: none waits. */
  get waitingSince(): number | null {
    let earliest = Number.POSITIVE_INFINITY;
    for (const { leftFrom } of this.owners.values()) earliest = Math.min(earliest, leftFrom ?? earliest);
    for (const { waiting, leftFrom } of this.lanes.values()) {
      earliest = Math.min(earliest, waiting[0]?.dueAt ?? earliest, leftFrom ?? earliest);
    }
    return earliest === Number.POSITIVE_INFINITY ? null : earliest;
  }

  /** Whether there is space for more due jobs. */
  get hasCapacity(): boolean {
    return this.inMemory.size < DUE_IN_MEMORY_MAX;
  }

  /** Whether a search runs for what any lane or owner left in the table. */
  get isSearching(): boolean {
    return this.searching.size > 0;
  }

  /**
   * Takes a job that the first pass over the due times has found. It stays in the table if its lane or owner has no space,
   * or has left earlier jobs there.
   * @returns whether the search that is running has to look at this job as well.
   */
  offer(job: JobPosition): boolean {
    if (this.inMemory.has(job.id)) return false;
    const owner = this.ownerOf(job.lane);
    if (owner.searched) return true;
    if (owner.leftFrom !== null || owner.inMemory >= DUE_OF_OWNER_IN_MEMORY_MAX) {
      leave(owner, job);
      return false;
    }
    return this.offerToLane(job);
  }

  /** Takes a job that a search has found, if the search was for its lane or owner. */
  offerLeft(job: JobPosition): void {
    if (this.inMemory.has(job.id)) return;
    const owner = this.owners.get(ownerName(job.lane));
    if (owner === undefined) return;
    const found = this.lanes.get(job.lane);
    const lane = found?.searched === true ? found : null;
    if (lane === null && !owner.searched) return;
    if (owner.inMemory >= DUE_OF_OWNER_IN_MEMORY_MAX) {
      // The owner's next search also covers what its lane has left from here on.
      this.endSearchOf(owner);
      leave(owner, job);
      if (lane !== null) {
        this.endSearchOf(lane);
        this.forgetIfIdle(lane);
      }
    } else if (lane === null) {
      this.offerToLane(job);
    } else if (lane.waiting.length < this.waitingMax) {
      this.add(lane, job);
    } else {
      this.endSearchOf(lane);
      leave(lane, job);
    }
  }

  /** The search is complete: its lanes and owners have nothing left in the table. */
  endSearch(): void {
    for (const searched of this.searching) {
      searched.searched = false;
      if ("waiting" in searched) this.forgetIfIdle(searched);
      else this.forgetOwnerIfIdle(searched);
    }
    this.searching.clear();
  }

  /** Gives the next job a slot, in turn by owner and lane; null when there is no job or no slot. */
  place(): Placed | null {
    while (this.running < this.concurrency) {
      const owner = this.ready.values().next().value;
      if (owner === undefined) return null;
      this.ready.delete(owner);
      if (owner.running >= this.perOwner) continue;
      const job = this.placeOf(owner);
      if (owner.ready.size > 0) this.ready.add(owner);
      if (job !== null) return job;
    }
    return null;
  }

  /**
   * Frees a job's slot. `wasSlow`: whether its lane is slow from now on; null leaves that as it is.
   * @returns the due time from which to search the table for what its lane or owner left there, or null.
   */
  release(job: Placed, wasSlow: boolean | null): number | null {
    const lane = this.laneOf(job.lane);
    const { owner } = lane;
    this.inMemory.delete(job.id);
    owner.inMemory -= 1;
    this.count(lane, job.slow, -1);
    lane.slow = wasSlow ?? lane.slow;
    this.wakeSlowLane();
    if (lane.group !== null) this.wakeGroup(lane.group, wasSlow);
    this.readyIfPossible(lane);
    if (owner.ready.size > 0) this.ready.add(owner);
    const laneFrom = lane.waiting.length <= this.waitingMax / 2 ? this.beginSearchOf(lane) : null;
    const ownerFrom = owner.inMemory <= DUE_OF_OWNER_IN_MEMORY_MAX / 2 ? this.beginSearchOf(owner) : null;
    this.forgetIfIdle(lane);
    if (laneFrom === null || ownerFrom === null) return laneFrom ?? ownerFrom;
    return Math.min(laneFrom, ownerFrom);
  }

  private offerToLane(job: JobPosition): boolean {
    const lane = this.laneOf(job.lane);
    if (lane.searched) return true;
    if (lane.leftFrom === null && lane.waiting.length < this.waitingMax) this.add(lane, job);
    else leave(lane, job);
    return false;
  }

  private add(lane: Lane, job: JobPosition): void {
    this.inMemory.add(job.id);
    lane.owner.inMemory += 1;
    lane.waiting.push(job);
    this.readyIfPossible(lane);
  }

  private placeOf(owner: Owner): Placed | null {
    const lane = owner.ready.values().next().value;
    if (lane === undefined) return null;
    owner.ready.delete(lane);
    if (lane.slow && !this.hasSlowSlot(owner)) {
      owner.waitingForSlowSlot.add(lane);
      this.waitingForSlowSlot.add(owner);
      return null;
    }
    const job = this.hasSlot(lane) ? lane.waiting.shift() : undefined;
    if (job === undefined) {
      // Another lane of its group has taken the last slot.
      this.readyIfPossible(lane);
      return null;
    }
    this.count(lane, lane.slow, 1);
    this.readyIfPossible(lane);
    return { ...job, slow: lane.slow };
  }

  private count(lane: Lane, isSlow: boolean, by: 1 | -1): void {
    lane.running += by;
    lane.owner.running += by;
    if (lane.group !== null) lane.group.running += by;
    this.running += by;
    if (!isSlow) return;
    this.slowCount += by;
    lane.owner.runningSlow += by;
  }

  private readyIfPossible(lane: Lane): void {
    if (lane.waiting.length === 0) return;
    if (this.hasSlot(lane)) {
      lane.owner.ready.add(lane);
      this.ready.add(lane.owner);
    } else if (lane.group?.hasSlot === false) lane.group.wait(lane);
  }

  private hasSlot(lane: Lane): boolean {
    const { perLane, perSlowLane } = this.limits;
    if (lane.terms === null) return lane.running < (lane.slow ? perSlowLane : perLane);
    const slots = lane.terms.slots();
    return lane.running < (lane.slow ? Math.min(perSlowLane, slots) : slots) && lane.group?.hasSlot !== false;
  }

  private wakeGroup(group: LaneGroup<Lane>, wasSlow: boolean | null): void {
    group.slow = wasSlow ?? group.slow;
    for (const lane of group.wake()) this.readyIfPossible(lane);
  }

  private hasSlowSlot(owner: Owner): boolean {
    return this.slowCount < this.limits.slowTotal && owner.runningSlow < this.slowPerOwner;
  }

  /** A slow slot is free: the owner that waited longest for one, and its longest waiting lane, may use it. */
  private wakeSlowLane(): void {
    if (this.slowCount >= this.limits.slowTotal) return;
    for (const owner of this.waitingForSlowSlot) {
      if (!this.hasSlowSlot(owner)) continue;
      this.waitingForSlowSlot.delete(owner);
      const woken = this.wakeSlowLaneOf(owner);
      // To the end of the queue: the next free slot is for another owner.
      if (owner.waitingForSlowSlot.size > 0) this.waitingForSlowSlot.add(owner);
      if (woken) return;
    }
  }

  private wakeSlowLaneOf(owner: Owner): boolean {
    for (const lane of owner.waitingForSlowSlot) {
      owner.waitingForSlowSlot.delete(lane);
      if (lane.waiting.length === 0) continue;
      this.readyIfPossible(lane);
      return true;
    }
    return false;
  }

  private beginSearchOf(queue: Lane | Owner): number | null {
    const from = queue.leftFrom;
    if (from === null) return null;
    queue.leftFrom = null;
    queue.searched = true;
    this.searching.add(queue);
    return from;
  }

  private endSearchOf(queue: Lane | Owner): void {
    queue.searched = false;
    this.searching.delete(queue);
  }

  private laneOf(name: string): Lane {
    const known = this.lanes.get(name);
    if (known !== undefined) {
      this.idleSlow.delete(name);
      return known;
    }
    const owner = this.ownerOf(name);
    owner.lanes += 1;
    const terms = this.limits.termsOf?.(name.slice(owner.name.length)) ?? null;
    const group = terms === null ? null : this.groupOf(owner.name + terms.group);
    const lane: Lane = {
      name,
      owner,
      waiting: [],
      running: 0,
      slow: false,
      leftFrom: null,
      searched: false,
      terms,
      group,
    };
    this.lanes.set(name, lane);
    return lane;
  }

  private groupOf(name: string): LaneGroup<Lane> {
    const group = this.groups.get(name) ?? new LaneGroup<Lane>(name, this.limits);
    this.groups.set(name, group);
    group.lanes += 1;
    return group;
  }

  private ownerOf(lane: string): Owner {
    const name = ownerName(lane);
    const known = this.owners.get(name);
    if (known !== undefined) return known;
    const owner: Owner = {
      name,
      lanes: 0,
      inMemory: 0,
      running: 0,
      runningSlow: 0,
      leftFrom: null,
      searched: false,
      ready: new Set(),
      waitingForSlowSlot: new Set(),
    };
    this.owners.set(name, owner);
    return owner;
  }

  private forgetIfIdle(lane: Lane): void {
    if (lane.running > 0 || lane.waiting.length > 0 || lane.leftFrom !== null || lane.searched) return;
    if (!lane.slow) {
      this.forget(lane);
      return;
    }
    this.idleSlow.add(lane.name);
    if (this.idleSlow.size <= SLOW_LANES_REMEMBERED_MAX) return;
    const oldest = this.lanes.get(this.idleSlow.values().next().value ?? "");
    if (oldest !== undefined) this.forget(oldest);
  }

  private forget(lane: Lane): void {
    this.idleSlow.delete(lane.name);
    this.lanes.delete(lane.name);
    lane.owner.ready.delete(lane);
    lane.owner.waitingForSlowSlot.delete(lane);
    lane.owner.lanes -= 1;
    const { group } = lane;
    if (group !== null) {
      group.forget(lane);
      group.lanes -= 1;
      if (group.lanes === 0) this.groups.delete(group.name);
    }
    this.forgetOwnerIfIdle(lane.owner);
  }

  private forgetOwnerIfIdle(owner: Owner): void {
    if (owner.lanes > 0 || owner.leftFrom !== null || owner.searched) return;
    this.ready.delete(owner);
    this.waitingForSlowSlot.delete(owner);
    this.owners.delete(owner.name);
  }
}

function leave(queue: Leaving, job: JobPosition): void {
  queue.leftFrom = Math.min(queue.leftFrom ?? job.dueAt, job.dueAt);
}

/** The owner in a lane's name; empty for a lane without one. */
function ownerName(lane: string): string {
  return lane.slice(0, lane.indexOf(OWNER_END) + 1);
}
