import type { ClusterNode, Leader } from "../commit-log.ts";

/** The longest lease that can be configured: that of a holder which does not say its own. */
const LEASE_MS_MAX = 60_000;

/** A lease as an engine stores it. */
export interface LeaseRow {
  readonly epoch: string;
  /** From {@link holderName}. */
  readonly node: string;
  /** Changes with each renewal. */
  readonly expires: string;
  readonly isReleased: boolean;
  /** Whether it has run out by the server's clock. */
  readonly isOver: boolean;
}

/** The node that has a lease, and for how long: absent in programs before this one. */
type Holder = ClusterNode & { readonly lease_ms?: number };

/** A node as the holder of a lease. */
export function holderName({ id, advertise }: ClusterNode, ttlMs: number): string {
  return JSON.stringify({ id, advertise, lease_ms: ttlMs });
}

/**
 * The lease of an engine whose clock may be set, and whose promoted server has another one: it is free for another node only when
 * that node has seen the same renewal for a whole lease by its own clock.
 */
export class ObservedLease {
  /** The lease as it was seen last, and since when (monotonic) nobody has renewed it. */
  private seen: { readonly row: LeaseRow; readonly since: number } | null = null;
  private seenAt = 0;

  constructor(private readonly monotonic: () => number) {}

  /** Notes what the engine has responded, after the response: the renewal may have come while it was on its way. Null: nobody has ever led. */
  note(row: LeaseRow | null): void {
    const { seen } = this;
    this.seenAt = this.monotonic();
    if (row === null) this.seen = null;
    else {
      const isSame = seen !== null && seen.row.epoch === row.epoch && seen.row.expires === row.expires;
      this.seen = { row, since: isSame ? seen.since : this.seenAt };
    }
  }

  /** The lease as it was seen last. */
  get row(): LeaseRow | null {
    return this.seen?.row ?? null;
  }

  /** The node that has it; null: nobody, or it has run out by the engine's clock or by this one. */
  get leader(): Leader | null {
    const { row } = this;
    if (row === null || row.isReleased || row.isOver || this.isUnrenewed) return null;
    const { id, advertise } = holderOf(row);
    return { id, advertise, epoch: Number(row.epoch) };
  }

  /** Whether this node may take it. */
  isFreeFor({ id }: ClusterNode): boolean {
    const { row } = this;
    return row === null || row.isReleased || this.isUnrenewed || holderOf(row).id === id;
  }

  /** Whether nobody has renewed it for its whole time by this machine's clock. */
  private get isUnrenewed(): boolean {
    const { seen } = this;
    return seen !== null && this.seenAt - seen.since >= (holderOf(seen.row).lease_ms ?? LEASE_MS_MAX);
  }
}

function holderOf({ node }: LeaseRow): Holder {
  return JSON.parse(node) as Holder;
}
