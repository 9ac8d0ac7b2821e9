/** The concurrency of a lane. A lane holds the jobs of one owner that go to one destination. */
export interface LaneLimits {
  /** Jobs of one lane. */
  readonly perLane: number;
  /** The same for a lane whose last job was slow. */
  readonly perSlowLane: number;
  /** Jobs of all slow lanes together: the other slots are for targets that respond. */
  readonly slowTotal: number;
  /**
   * The share of all slots, and of all slow slots, for one owner, so that the jobs of others continue however many lanes
   * an owner has; 1 when omitted.
   */
  readonly ownerShare?: number;
  /** The options of the lane to a destination; null where it has those of all lanes. */
  readonly termsOf?: (destination: string) => LaneOptions | null;
}

/** What a lane has of its own, and what it shares with others that go to the same destination. */
export interface LaneOptions {
  /** Lanes of one owner and one group share the slots of a lane without terms. */
  readonly group: string;
  /** Its own slots, as they are now. */
  slots(): number;
}

/** Lanes that share slots: what one of them leaves is for the one that has waited longest. */
export class LaneGroup<Lane> {
  /** Lanes that are in it. */
  lanes = 0;
  running = 0;
  /** Whether the last job was slow. */
  slow = false;
  private readonly waiting = new Set<Lane>();

  constructor(
    readonly name: string,
    private readonly limits: Pick<LaneLimits, "perLane" | "perSlowLane">,
  ) {}

  get hasSlot(): boolean {
    return this.free > 0;
  }

  /** A lane with a job, and slots of its own, finds none here. */
  wait(lane: Lane): void {
    this.waiting.add(lane);
  }

  /** Takes out the lanes for which there is a slot now, those that have waited longest. */
  wake(): Lane[] {
    const woken = [...this.waiting.values().take(Math.max(0, this.free))];
    for (const lane of woken) this.waiting.delete(lane);
    return woken;
  }

  forget(lane: Lane): void {
    this.waiting.delete(lane);
  }

  private get free(): number {
    return (this.slow ? this.limits.perSlowLane : this.limits.perLane) - this.running;
  }
}
