/** A granted lock as its client sees it. */
export interface Grant {
  readonly client: number;
  readonly key: string;
  readonly token: string;
  readonly fencingToken: number;
  /** Epoch milliseconds, from the response. */
  readonly expiresAt: number;
  /** UUIDv7: increases in the order in which the server accepts requests. */
  readonly requestId: string;
}

/** Last known state of a lock. */
interface LockState {
  /** The acknowledged holder that has not started its release. */
  holder: Grant | null;
  highestFencing: number;
  lastRequestId: string;
  lastReleased: Grant | null;
}

/** Length of the timestamp of a UUIDv7, in milliseconds. Ids of the same millisecond have no reliable order. */
const MILLISECOND_CHARACTERS = "01a1fbfe-d650".length;

/** Collects what all clients see and records violations of the guarantees of locks. */
export class Witness {
  readonly problems: string[] = [];
  grants = 0;
  private readonly now: () => number;
  private readonly keys = new Map<string, LockState>();

  constructor(now: () => number = () => Date.now()) {
    this.now = now;
  }

  /** Records a grant. */
  granted(grant: Grant): void {
    this.grants += 1;
    const state = this.stateOf(grant.key);
    const { holder } = state;
    if (holder !== null && this.now() < holder.expiresAt) {
      this.note(`${grant.key}: client ${grant.client} acquired it while client ${holder.client} held it`);
    }
    if (grant.fencingToken <= state.highestFencing) {
      this.note(`${grant.key}: fencing token ${grant.fencingToken} after ${state.highestFencing}`);
    }
    const sameMillisecond =
      grant.requestId.slice(0, MILLISECOND_CHARACTERS) ===
      state.lastRequestId.slice(0, MILLISECOND_CHARACTERS);
    if (grant.requestId < state.lastRequestId && !sameMillisecond) {
      this.note(`${grant.key}: request ${grant.requestId} was overtaken by ${state.lastRequestId}`);
    }
    state.holder = grant;
    state.highestFencing = Math.max(state.highestFencing, grant.fencingToken);
    state.lastRequestId = grant.requestId;
  }

  /** Records an extended lease. */
  refreshed(before: Grant, after: Grant): void {
    if (after.fencingToken !== before.fencingToken) {
      this.note(`${after.key}: refreshed from fencing token ${before.fencingToken} to ${after.fencingToken}`);
    }
    const state = this.stateOf(after.key);
    if (state.holder === before) state.holder = after;
  }

  /** A holder is about to send its release: from now on another client may hold the lock. */
  releasing(grant: Grant): void {
    const state = this.stateOf(grant.key);
    if (state.holder === grant) state.holder = null;
  }

  /** Records an acknowledged release. */
  released(grant: Grant): void {
    this.stateOf(grant.key).lastReleased = grant;
  }

  /** The server was restarted. Its request ids may start lower if the clock was changed. */
  restarted(): void {
    for (const state of this.keys.values()) state.lastRequestId = "";
  }

  /** Holders whose lease lasts at least so much longer. */
  holders(atLeastMs: number): Grant[] {
    return [...this.keys.values()]
      .map(({ holder }) => holder)
      .filter((holder) => holder !== null)
      .filter(({ expiresAt }) => expiresAt > this.now() + atLeastMs);
  }

  /** The last acknowledged release of each lock. */
  releases(): Grant[] {
    return [...this.keys.values()].map(({ lastReleased }) => lastReleased).filter((grant) => grant !== null);
  }

  note(problem: string): void {
    this.problems.push(problem);
  }

  private stateOf(key: string): LockState {
    const known = this.keys.get(key);
    if (known !== undefined) return known;
    const fresh: LockState = { holder: null, highestFencing: 0, lastRequestId: "", lastReleased: null };
    this.keys.set(key, fresh);
    return fresh;
  }
}

/**
 * The resource that the locks protect. Like a storage service it checks fencing tokens: a write with a token below the
 * highest one so far comes from a holder with an expired lease.
 */
export class Resource {
  rejected = 0;
  private readonly highest = new Map<string, number>();

  /** Returns whether the write was accepted. */
  write(key: string, fencingToken: number): boolean {
    if (fencingToken < (this.highest.get(key) ?? 0)) {
      this.rejected += 1;
      return false;
    }
    this.highest.set(key, fencingToken);
    return true;
  }
}
