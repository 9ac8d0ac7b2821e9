/** Room at the beginning: what most heads and many bodies need. */
const FIRST_ROOM = 1_024;

/**
 * Bytes that come piece by piece, in one buffer that doubles: however small the pieces are, each byte is copied a few
 * times at most, and none of them costs an object of its own.
 */
export class GrowingBytes {
  private room = Buffer.alloc(0);
  private used = 0;

  get length(): number {
    return this.used;
  }

  /** All of them. They hold until the next change. */
  get bytes(): Buffer {
    return this.room.subarray(0, this.used);
  }

  /** Adds a copy of `more` at the end. */
  append(more: Buffer): void {
    if (more.length === 0) return;
    const length = this.used + more.length;
    if (length > this.room.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(length, 2 * this.room.length, FIRST_ROOM));
      this.room.copy(larger, 0, 0, this.used);
      this.room = larger;
    }
    more.copy(this.room, this.used);
    this.used = length;
  }

  /** Takes the first `count` away. */
  dropFirst(count: number): void {
    if (count > 0) this.room.copy(this.room, 0, count, this.used);
    this.used -= count;
  }
}
