/** How many jobs of one lane may run. */
export interface LaneLimits {
  /** Jobs of one lane under way at once. */
  readonly perLane: number;
  /** The same for a lane whose last job was slow. */
  readonly perSlowLane: number;
  /** Jobs of all slow lanes together under way at once: the rest of the places is for those that answer. */
  readonly slowTotal: number;
  /**
   * The share of all places, and of all slow places, that the lanes of one owner may take: however many places an
   * owner names, the jobs of others go on. All of them when left out.
   */
  readonly ownerShare?: number;
}

/** Separates the owner from the place in a lane's name. */
const OWNER_END = "/";

/** The name of a lane: jobs of this owner (an account's reference) that go to this place, such as a host. */
export function laneName(owner: number, place: string): string {
  return `${owner}${OWNER_END}${place}`;
}

/** A job that is known to be due. */
export interface DueJob {
  readonly id: number;
  readonly dueAt: number;
  readonly lane: string;
}

/** A job that has been given a place. */
export interface Placed extends DueJob {
  /** Whether its lane was a slow one at the time. */
  readonly slow: boolean;
}

/** Due jobs kept in memory for one kind, about a hundred bytes each. Beyond it the search for due jobs pauses. */
export const DUE_IN_MEMORY_MAX = 50_000;
/** The same for one owner; beyond it the owner's jobs stay in the table until half of them have run. */
export const DUE_OF_OWNER_IN_MEMORY_MAX = 10_000;
/** Slow lanes that are remembered while they have nothing to do. */
export const SLOW_LANES_REMEMBERED_MAX = 10_000;
/** Jobs of a lane that wait in memory for a place, as a multiple of its places. */
const WAITING_PER_PLACE = 2;
/** Least jobs of a lane that wait in memory. */
const WAITING_MIN = 4;

/** What can leave jobs in the table for want of room, and has them searched for later. */
interface Leaving {
  /** Due time from which on jobs are in the table and not here, since there was no room; null: none. */
  leftFrom: number | null;
  /** Whether a search for what was left is on its way. */
  searched: boolean;
}

interface Owner extends Leaving {
  readonly name: string;
  /** Lanes that are not forgotten. */
  lanes: number;
  inMemory: number;
  running: number;
  runningSlow: number;
  /** Lanes with a job and a place for it. */
  readonly ready: Set<Lane>;
  readonly waitingForSlowPlace: Set<Lane>;
}

interface Lane extends Leaving {
  readonly name: string;
  readonly owner: Owner;
  readonly waiting: DueJob[];
  running: number;
  slow: boolean;
}

/**
 * Gives due jobs their places: so many of a kind at once, so many of a lane, and so many of an owner; owners take
 * turns, and an owner's lanes take turns. It keeps a bounded number of each lane's and each owner's jobs; the rest
 * stays in the table, and lane or owner remembers from which due time on it has to be searched again. So a lane with
 * a million overdue jobs costs no more memory than one with ten, and so does an owner with a million lanes.
 */
export class Dispatcher {
  private readonly limits: LaneLimits;
  private readonly perOwner: number;
  private readonly slowPerOwner: number;
  private readonly waitingMax: number;
  private readonly owners = new Map<string, Owner>();
  private readonly lanes = new Map<string, Lane>();
  private readonly inMemory = new Set<number>();
  private readonly ready = new Set<Owner>();
  private readonly waitingForSlowPlace = new Set<Owner>();
  private readonly idleSlow = new Set<string>();
  private readonly searching = new Set<Lane | Owner>();
  private runningCount = 0;
  private slowCount = 0;

  constructor(
    private readonly concurrency: number,
    limits?: LaneLimits,
  ) {
    this.limits = limits ?? { perLane: concurrency, perSlowLane: concurrency, slowTotal: concurrency };
    const share = this.limits.ownerShare ?? 1;
    this.perOwner = Math.max(1, Math.floor(concurrency * share));
    this.slowPerOwner = Math.max(1, Math.floor(this.limits.slowTotal * share));
    this.waitingMax = Math.max(WAITING_MIN, this.limits.perLane * WAITING_PER_PLACE);
  }

  /** Jobs under way. */
  get running(): number {
    return this.runningCount;
  }

  /** When the job was due that has waited longest for a place, as far as jobs have been looked for; null: none waits. */
  get waitingSince(): number | null {
    let earliest = Number.POSITIVE_INFINITY;
    for (const { leftFrom } of this.owners.values()) earliest = Math.min(earliest, leftFrom ?? earliest);
    for (const { waiting, leftFrom } of this.lanes.values()) {
      earliest = Math.min(earliest, waiting[0]?.dueAt ?? earliest, leftFrom ?? earliest);
    }
    return earliest === Number.POSITIVE_INFINITY ? null : earliest;
  }

  /** Whether there is room for more due jobs at all. */
  get hasRoom(): boolean {
    return this.inMemory.size < DUE_IN_MEMORY_MAX;
  }

  /** Whether any lane or owner has room again for what it left in the table. */
  get isSearching(): boolean {
    return this.searching.size > 0;
  }

  /**
   * Takes in a job found by the first pass over the due times, unless its lane or owner has left earlier ones in the
   * table or has no room: then it stays there.
   * @returns whether a search that is on its way has to come by this job as well.
   */
  offer(job: DueJob): boolean {
    if (this.inMemory.has(job.id)) return false;
    const owner = this.ownerOf(job.lane);
    if (owner.searched) return true;
    if (owner.leftFrom !== null || owner.inMemory >= DUE_OF_OWNER_IN_MEMORY_MAX) {
      leave(owner, job);
      return false;
    }
    return this.offerToLane(job);
  }

  /** Takes in a job found by a search for what lanes and owners have left; one of another is passed over. */
  offerLeft(job: DueJob): void {
    if (this.inMemory.has(job.id)) return;
    const owner = this.owners.get(ownerName(job.lane));
    if (owner === undefined) return;
    const found = this.lanes.get(job.lane);
    const lane = found?.searched === true ? found : null;
    if (lane === null && !owner.searched) return;
    if (owner.inMemory >= DUE_OF_OWNER_IN_MEMORY_MAX) {
      // The owner's next search comes by what its lane has left from here on as well.
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

  /** The search has come to the end: nothing is left in the table of the lanes and owners that it was for. */
  endSearch(): void {
    for (const one of this.searching) {
      one.searched = false;
      if ("waiting" in one) this.forgetIfIdle(one);
      else this.forgetOwnerIfIdle(one);
    }
    this.searching.clear();
  }

  /** Gives the next job a place, owner by owner and lane by lane in turn; null when there is no job or no place. */
  place(): Placed | null {
    while (this.runningCount < this.concurrency) {
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
   * A job's place is free again. `wasSlow`: whether its lane is a slow one from now on; null leaves that as it is.
   * @returns the due time from which on the table is to be searched for what its lane or owner left there, or null.
   */
  release(job: Placed, wasSlow: boolean | null): number | null {
    const lane = this.laneOf(job.lane);
    const { owner } = lane;
    this.inMemory.delete(job.id);
    owner.inMemory -= 1;
    lane.running -= 1;
    owner.running -= 1;
    this.runningCount -= 1;
    if (job.slow) {
      this.slowCount -= 1;
      owner.runningSlow -= 1;
    }
    lane.slow = wasSlow ?? lane.slow;
    this.wakeSlowLane();
    this.readyIfPossible(lane);
    if (owner.ready.size > 0) this.ready.add(owner);
    const laneFrom = lane.waiting.length <= this.waitingMax / 2 ? this.beginSearchOf(lane) : null;
    const ownerFrom = owner.inMemory <= DUE_OF_OWNER_IN_MEMORY_MAX / 2 ? this.beginSearchOf(owner) : null;
    this.forgetIfIdle(lane);
    if (laneFrom === null || ownerFrom === null) return laneFrom ?? ownerFrom;
    return Math.min(laneFrom, ownerFrom);
  }

  private offerToLane(job: DueJob): boolean {
    const lane = this.laneOf(job.lane);
    if (lane.searched) return true;
    if (lane.leftFrom === null && lane.waiting.length < this.waitingMax) this.add(lane, job);
    else leave(lane, job);
    return false;
  }

  private add(lane: Lane, job: DueJob): void {
    this.inMemory.add(job.id);
    lane.owner.inMemory += 1;
    lane.waiting.push(job);
    this.readyIfPossible(lane);
  }

  private placeOf(owner: Owner): Placed | null {
    const lane = owner.ready.values().next().value;
    if (lane === undefined) return null;
    owner.ready.delete(lane);
    if (lane.slow && !this.hasSlowPlace(owner)) {
      owner.waitingForSlowPlace.add(lane);
      this.waitingForSlowPlace.add(owner);
      return null;
    }
    const job = this.hasPlace(lane) ? lane.waiting.shift() : undefined;
    if (job === undefined) return null;
    lane.running += 1;
    owner.running += 1;
    this.runningCount += 1;
    if (lane.slow) {
      this.slowCount += 1;
      owner.runningSlow += 1;
    }
    this.readyIfPossible(lane);
    return { ...job, slow: lane.slow };
  }

  private readyIfPossible(lane: Lane): void {
    if (lane.waiting.length === 0 || !this.hasPlace(lane)) return;
    lane.owner.ready.add(lane);
    this.ready.add(lane.owner);
  }

  private hasPlace(lane: Lane): boolean {
    return lane.running < (lane.slow ? this.limits.perSlowLane : this.limits.perLane);
  }

  private hasSlowPlace(owner: Owner): boolean {
    return this.slowCount < this.limits.slowTotal && owner.runningSlow < this.slowPerOwner;
  }

  /** One slow place is free: the owner, and of it the lane, that has waited longest for one may ask again. */
  private wakeSlowLane(): void {
    if (this.slowCount >= this.limits.slowTotal) return;
    for (const owner of this.waitingForSlowPlace) {
      if (!this.hasSlowPlace(owner)) continue;
      this.waitingForSlowPlace.delete(owner);
      const woken = this.wakeSlowLaneOf(owner);
      // To the end of the row: the next free place is another owner's.
      if (owner.waitingForSlowPlace.size > 0) this.waitingForSlowPlace.add(owner);
      if (woken) return;
    }
  }

  private wakeSlowLaneOf(owner: Owner): boolean {
    for (const lane of owner.waitingForSlowPlace) {
      owner.waitingForSlowPlace.delete(lane);
      if (lane.waiting.length === 0) continue;
      this.readyIfPossible(lane);
      return true;
    }
    return false;
  }

  private beginSearchOf(one: Lane | Owner): number | null {
    const from = one.leftFrom;
    if (from === null) return null;
    one.leftFrom = null;
    one.searched = true;
    this.searching.add(one);
    return from;
  }

  private endSearchOf(one: Lane | Owner): void {
    one.searched = false;
    this.searching.delete(one);
  }

  private laneOf(name: string): Lane {
    const known = this.lanes.get(name);
    if (known !== undefined) {
      this.idleSlow.delete(name);
      return known;
    }
    const owner = this.ownerOf(name);
    owner.lanes += 1;
    const lane: Lane = { name, owner, waiting: [], running: 0, slow: false, leftFrom: null, searched: false };
    this.lanes.set(name, lane);
    return lane;
  }

  private ownerOf(lane: string): Owner {
    const name = ownerName(lane);
    const known = this.owners.get(name);
    if (known !== undefined) return known;
    const owner: Owner = {
      ...{ name, lanes: 0, inMemory: 0, running: 0, runningSlow: 0, leftFrom: null, searched: false },
      ready: new Set(),
      waitingForSlowPlace: new Set(),
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
    lane.owner.waitingForSlowPlace.delete(lane);
    lane.owner.lanes -= 1;
    this.forgetOwnerIfIdle(lane.owner);
  }

  private forgetOwnerIfIdle(owner: Owner): void {
    if (owner.lanes > 0 || owner.leftFrom !== null || owner.searched) return;
    this.ready.delete(owner);
    this.waitingForSlowPlace.delete(owner);
    this.owners.delete(owner.name);
  }
}

function leave(one: Leaving, job: DueJob): void {
  one.leftFrom = Math.min(one.leftFrom ?? job.dueAt, job.dueAt);
}

/** What a lane's name says of its owner; a lane without one belongs to nobody in particular. */
function ownerName(lane: string): string {
  return lane.slice(0, lane.indexOf(OWNER_END) + 1);
}
