import { LruMap } from "../../../kernel/limits/lru-map.ts";

/** Longest time between an evaluation and the opening of its stream, in milliseconds. */
export const OPEN_WITHIN_MS = 10_000;
/** Projects with a stored version: those with recent evaluations. */
export const VERSIONS_MAX = 10_000;

/** Versions that recent evaluations of a project have returned. */
interface RecentVersion {
  version: number;
  seenAt: number;
  /** Previous version, and the time until which a client may open a stream with it. */
  before: number;
  beforeUntil: number;
}

/**
 * Determines the version that a client knows when it opens a stream. The client has evaluated shortly before; without this,
 * it would miss changes between the evaluation and the stream.
 */
export class RecentVersions {
  private readonly projects = new LruMap<string, RecentVersion>(VERSIONS_MAX);

  constructor(private readonly now: () => number) {}

  /** Records the version of an evaluation. `name` identifies the flags that the caller can see. */
  note(name: string, version: number): void {
    const now = this.now();
    const known = this.projects.get(name);
    if (known === undefined)
      this.projects.set(name, { version, seenAt: now, before: version, beforeUntil: now });
    else if (known.version === version) known.seenAt = now;
    else {
      const { version: before, seenAt } = known;
      Object.assign(known, { version, seenAt: now, before, beforeUntil: seenAt + OPEN_WITHIN_MS });
    }
  }

  /** Returns the version known to a client that opens a stream at the version `current`. */
  known(name: string, current: number): number {
    const now = this.now();
    const { version, seenAt, before, beforeUntil } = this.projects.get(name) ?? NO_VERSION;
    if (version !== current) return now < seenAt + OPEN_WITHIN_MS ? version : current;
    return now < beforeUntil ? before : current;
  }
}

const NO_VERSION: RecentVersion = {
  version: 0,
  seenAt: Number.NEGATIVE_INFINITY,
  before: 0,
  beforeUntil: Number.NEGATIVE_INFINITY,
};
