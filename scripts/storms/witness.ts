/** A lock as its client knows it. */
export interface Grant {
  readonly client: number;
  readonly key: string;
  readonly token: string;
  readonly fencingToken: number;
  /** Epoch milliseconds, as the server said. */
  readonly expiresAt: number;
  /** The server numbers requests in the order in which it takes them (UUIDv7). */
  readonly requestId: string;
}

/** What has been seen of one lock. */
interface Seen {
  /** Who holds it: answered, and not yet about to release. */
  holder: Grant | null;
  highestFencing: number;
  lastRequestId: string;
  lastReleased: Grant | null;
}

/** Milliseconds, the first 48 bits of a UUIDv7. Within one of them the order of ids is not certain. */
const MILLISECOND_CHARACTERS = "01a1fbfe-d650".length;

/** Sees what every client sees, and notes whatever locks must never do. */
export class Witness {
  readonly problems: string[] = [];
  grants = 0;
  private readonly now: () => number;
  private readonly keys = new Map<string, Seen>();

  constructor(now: () => number = () => Date.now()) {
    this.now = now;
  }

  /** A client was answered that it holds a lock. */
  granted(grant: Grant): void {
    this.grants += 1;
    const seen = this.seen(grant.key);
    const { holder } = seen;
    if (holder !== null && this.now() < holder.expiresAt) {
      this.note(`${grant.key}: client ${grant.client} got it while client ${holder.client} held it`);
    }
    if (grant.fencingToken <= seen.highestFencing) {
      this.note(`${grant.key}: fencing token ${grant.fencingToken} after ${seen.highestFencing}`);
    }
    const sameMillisecond =
      grant.requestId.slice(0, MILLISECOND_CHARACTERS) ===
      seen.lastRequestId.slice(0, MILLISECOND_CHARACTERS);
    if (grant.requestId < seen.lastRequestId && !sameMillisecond) {
      this.note(`${grant.key}: request ${grant.requestId} was overtaken by ${seen.lastRequestId}`);
    }
    seen.holder = grant;
    seen.highestFencing = Math.max(seen.highestFencing, grant.fencingToken);
    seen.lastRequestId = grant.requestId;
  }

  /** A holder was answered that its lease is longer now. */
  refreshed(before: Grant, after: Grant): void {
    if (after.fencingToken !== before.fencingToken) {
      this.note(`${after.key}: refreshed from fencing token ${before.fencingToken} to ${after.fencingToken}`);
    }
    const seen = this.seen(after.key);
    if (seen.holder === before) seen.holder = after;
  }

  /** A holder is about to send its release: from here on the next one may have the lock. */
  releasing(grant: Grant): void {
    const seen = this.seen(grant.key);
    if (seen.holder === grant) seen.holder = null;
  }

  /** A release was answered with 200. */
  released(grant: Grant): void {
    this.seen(grant.key).lastReleased = grant;
  }

  /** The server was ended: it numbers requests anew, and a clock that was set in between is no inversion. */
  newLife(): void {
    for (const seen of this.keys.values()) seen.lastRequestId = "";
  }

  /** The holders whose lease lasts so much longer. */
  holders(atLeastMs: number): Grant[] {
    return [...this.keys.values()]
      .map(({ holder }) => holder)
      .filter((holder) => holder !== null)
      .filter(({ expiresAt }) => expiresAt > this.now() + atLeastMs);
  }

  /** The last release of every lock that was acknowledged. */
  releases(): Grant[] {
    return [...this.keys.values()].map(({ lastReleased }) => lastReleased).filter((grant) => grant !== null);
  }

  note(problem: string): void {
    this.problems.push(problem);
  }

  private seen(key: string): Seen {
    const known = this.keys.get(key);
    if (known !== undefined) return known;
    const fresh: Seen = { holder: null, highestFencing: 0, lastRequestId: "", lastReleased: null };
    this.keys.set(key, fresh);
    return fresh;
  }
}

/**
 * What the locks protect, checking fencing tokens as a storage service would: a write with a token below the highest
 * one that it has seen comes from a holder whose lease has ended.
 */
export class Resource {
  refused = 0;
  private readonly highest = new Map<string, number>();

  /** Whether the write was taken. */
  write(key: string, fencingToken: number): boolean {
    if (fencingToken < (this.highest.get(key) ?? 0)) {
      this.refused += 1;
      return false;
    }
    this.highest.set(key, fencingToken);
    return true;
  }
}
