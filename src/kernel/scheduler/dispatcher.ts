/** How many jobs of one lane may run. */
export interface LaneLimits {
  /** Jobs of one lane under way at once. */
  readonly perLane: number;
  /** The same for a lane whose last job was slow. */
  readonly perSlowLane: number;
  /** Jobs of all slow lanes together under way at once: the rest of the places is for those that answer. */
  readonly slowTotal: number;
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
/** Slow lanes that are remembered while they have nothing to do. */
export const SLOW_LANES_REMEMBERED_MAX = 10_000;
/** Jobs of a lane that wait in memory for a place, as a multiple of its places. */
const WAITING_PER_PLACE = 2;
/** Least jobs of a lane that wait in memory. */
const WAITING_MIN = 4;

interface Lane {
  readonly name: string;
  readonly waiting: DueJob[];
  running: number;
  slow: boolean;
  /** Due time from which on jobs of this lane are in the table and not here, since there was no room; null: none. */
  leftFrom: number | null;
  /** Whether a search for what was left is on its way. */
  searched: boolean;
}

/**
 * Gives due jobs their places: so many of a kind at once, and so many of a lane. It keeps a bounded number of each
 * lane's jobs; the rest stays in the table, and the lane remembers from which due time on it has to be searched
 * again. So a lane with a million overdue jobs costs no more memory than one with ten.
 */
export class Dispatcher {
  private readonly concurrency: number;
  private readonly limits: LaneLimits;
  private readonly waitingMax: number;
  private readonly lanes = new Map<string, Lane>();
  private readonly inMemory = new Set<number>();
  private readonly ready = new Set<Lane>();
  private readonly waitingForSlowPlace = new Set<Lane>();
  private readonly idleSlow = new Set<string>();
  private readonly searching = new Set<Lane>();
  private runningCount = 0;
  private slowCount = 0;

  constructor(concurrency: number, limits?: LaneLimits) {
    this.concurrency = concurrency;
    this.limits = limits ?? { perLane: concurrency, perSlowLane: concurrency, slowTotal: concurrency };
    this.waitingMax = Math.max(WAITING_MIN, this.limits.perLane * WAITING_PER_PLACE);
  }

  /** Jobs under way. */
  get running(): number {
    return this.runningCount;
  }

  /** Whether there is room for more due jobs at all. */
  get hasRoom(): boolean {
    return this.inMemory.size < DUE_IN_MEMORY_MAX;
  }

  /** Whether any lane has room again for what it left in the table. */
  get isSearching(): boolean {
    return this.searching.size > 0;
  }

  /**
   * Takes in a job found by the first pass over the due times, unless its lane has left earlier ones in the table or
   * has no room: then it stays there.
   * @returns whether a search that is on its way has to come by this job as well.
   */
  offer(job: DueJob): boolean {
    if (this.inMemory.has(job.id)) return false;
    const lane = this.laneOf(job.lane);
    if (lane.searched) return true;
    if (lane.leftFrom === null && lane.waiting.length < this.waitingMax) this.add(lane, job);
    else lane.leftFrom = Math.min(lane.leftFrom ?? job.dueAt, job.dueAt);
    return false;
  }

  /** Takes in a job found by a search for what lanes have left; one of another lane is passed over. */
  offerLeft(job: DueJob): void {
    const lane = this.lanes.get(job.lane);
    if (lane === undefined || !lane.searched || this.inMemory.has(job.id)) return;
    if (lane.waiting.length < this.waitingMax) {
      this.add(lane, job);
      return;
    }
    lane.searched = false;
    lane.leftFrom = job.dueAt;
    this.searching.delete(lane);
  }

  /** The search has come to the end: nothing is left in the table of the lanes that it was for. */
  endSearch(): void {
    for (const lane of this.searching) {
      lane.searched = false;
      this.forgetIfIdle(lane);
    }
    this.searching.clear();
  }

  /** Gives the next job a place, lane by lane in turn; null when there is no job or no place. */
  place(): Placed | null {
    while (this.runningCount < this.concurrency) {
      const lane = this.ready.values().next().value;
      if (lane === undefined) return null;
      this.ready.delete(lane);
      if (lane.slow && this.slowCount >= this.limits.slowTotal) {
        this.waitingForSlowPlace.add(lane);
        continue;
      }
      const job = this.hasPlace(lane) ? lane.waiting.shift() : undefined;
      if (job === undefined) continue;
      lane.running += 1;
      this.runningCount += 1;
      if (lane.slow) this.slowCount += 1;
      this.readyIfPossible(lane);
      return { ...job, slow: lane.slow };
    }
    return null;
  }

  /**
   * A job's place is free again. `wasSlow`: whether its lane is a slow one from now on; null leaves that as it is.
   * @returns the due time from which on the table is to be searched for what the lane left there, or null.
   */
  release(job: Placed, wasSlow: boolean | null): number | null {
    const lane = this.laneOf(job.lane);
    this.inMemory.delete(job.id);
    lane.running -= 1;
    this.runningCount -= 1;
    if (job.slow) this.slowCount -= 1;
    lane.slow = wasSlow ?? lane.slow;
    this.wakeSlowLane();
    this.readyIfPossible(lane);
    const from = lane.leftFrom;
    if (from !== null && lane.waiting.length <= this.waitingMax / 2) {
      lane.leftFrom = null;
      lane.searched = true;
      this.searching.add(lane);
      return from;
    }
    this.forgetIfIdle(lane);
    return null;
  }

  private add(lane: Lane, job: DueJob): void {
    this.inMemory.add(job.id);
    lane.waiting.push(job);
    this.readyIfPossible(lane);
  }

  private readyIfPossible(lane: Lane): void {
    if (lane.waiting.length > 0 && this.hasPlace(lane)) this.ready.add(lane);
  }

  private hasPlace(lane: Lane): boolean {
    return lane.running < (lane.slow ? this.limits.perSlowLane : this.limits.perLane);
  }

  /** One slow place is free: the lane that has waited longest for one may ask again. */
  private wakeSlowLane(): void {
    if (this.slowCount >= this.limits.slowTotal) return;
    for (const lane of this.waitingForSlowPlace) {
      this.waitingForSlowPlace.delete(lane);
      if (lane.waiting.length === 0) continue;
      this.readyIfPossible(lane);
      return;
    }
  }

  private laneOf(name: string): Lane {
    const known = this.lanes.get(name);
    if (known !== undefined) {
      this.idleSlow.delete(name);
      return known;
    }
    const lane: Lane = { name, waiting: [], running: 0, slow: false, leftFrom: null, searched: false };
    this.lanes.set(name, lane);
    return lane;
  }

  private forgetIfIdle(lane: Lane): void {
    if (lane.running > 0 || lane.waiting.length > 0 || lane.leftFrom !== null || lane.searched) return;
    if (!lane.slow) {
      this.lanes.delete(lane.name);
      return;
    }
    this.idleSlow.add(lane.name);
    if (this.idleSlow.size <= SLOW_LANES_REMEMBERED_MAX) return;
    const oldest = this.idleSlow.values().next().value;
    if (oldest === undefined) return;
    this.idleSlow.delete(oldest);
    this.lanes.delete(oldest);
  }
}
