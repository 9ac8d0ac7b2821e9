/** Longest time between an evaluation and the stream that it leads to. */
export const OPENS_WITHIN_MS = 10_000;
/** Projects whose versions are remembered: those that are evaluated just now. */
export const VERSIONS_MAX = 10_000;

/** What was handed out of a project lately. */
interface HandedOut {
  version: number;
  seenAt: number;
  /** The version before, and until when somebody may be about to open a stream with it. */
  before: number;
  beforeUntil: number;
}

/**
 * Which version of its flags a client knows that opens a stream: it has evaluated just before, and what has changed in
 * between it would not hear of.
 */
export class HandedOutVersions {
  private readonly projects = new Map<string, HandedOut>();

  constructor(private readonly now: () => number) {}

  /** Notes what an evaluation is of. `name`: the project, and what of it is seen. */
  note(name: string, version: number): void {
    const now = this.now();
    const known = this.projects.get(name);
    if (known === undefined) {
      const [oldest] = this.projects.keys();
      if (oldest !== undefined && this.projects.size >= VERSIONS_MAX) this.projects.delete(oldest);
      this.projects.set(name, { version, seenAt: now, before: version, beforeUntil: now });
    } else if (known.version === version) known.seenAt = now;
    else {
      const { version: before, seenAt } = known;
      Object.assign(known, { version, seenAt: now, before, beforeUntil: seenAt + OPENS_WITHIN_MS });
    }
  }

  /** What somebody knows who opens a stream while `current` is the version. */
  known(name: string, current: number): number {
    const now = this.now();
    const { version, seenAt, before, beforeUntil } = this.projects.get(name) ?? NOTHING;
    if (version !== current) return now < seenAt + OPENS_WITHIN_MS ? version : current;
    return now < beforeUntil ? before : current;
  }
}

const NOTHING: HandedOut = {
  version: 0,
  seenAt: Number.NEGATIVE_INFINITY,
  before: 0,
  beforeUntil: Number.NEGATIVE_INFINITY,
};
