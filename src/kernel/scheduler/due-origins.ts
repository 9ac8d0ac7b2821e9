/** Times that the wall clock was set which are told apart. Before them a clock that is set every second counts as set once. */
export const ERAS_MAX = 100;

/** The jobs from an id on that were made while the wall clock had been moved by so much since the start. */
interface Era {
  readonly firstId: number;
  readonly moved: number;
}

/**
 * Remembers how far the wall clock had been moved when each job's due time was written. Nothing, as long as nobody sets
 * the clock; then an entry for each time that somebody did, and one for each job whose due time was written anew since.
 */
export class DueOrigins {
  private eras: Era[] = [];
  private readonly rewritten = new Map<number, number>();
  private movedBy = 0;

  /** How far the wall clock has been moved. */
  get moved(): number {
    return this.movedBy;
  }

  /** Whether it was ever moved: as long as it was not, nothing need be told. */
  get tells(): boolean {
    return this.eras.length > 0;
  }

  /** The wall clock has been set: jobs from this id on are made in another era. */
  begin(firstId: number, moved: number): void {
    this.movedBy = moved;
    this.eras.push({ firstId, moved });
    if (this.eras.length > ERAS_MAX) this.eras.shift();
  }

  /** The due time of a job that was there before was written when the clock was moved by so much. */
  rewrote(id: number, moved: number): void {
    this.rewritten.set(id, moved);
  }

  /** A job is gone. */
  forget(id: number): void {
    this.rewritten.delete(id);
  }

  /** By how much less the wall clock is moved now than when a job's due time was written; 0 when it is not less. */
  setBackSince(id: number): number {
    const origin = this.rewritten.get(id) ?? this.eras.findLast(({ firstId }) => id >= firstId)?.moved ?? 0;
    return Math.max(0, origin - this.movedBy);
  }
}
