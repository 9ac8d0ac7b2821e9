/** Height of a bar by its state: a worse state is taller, so that an outage stands out without its colour. */
export const STATE_HEIGHTS = { good: 0.7, warn: 0.85, bad: 1, none: 0.2 } as const;

/** A bar: its height, at most 1, and its state. */
export interface Bar {
  readonly height: number;
  /** Height of the part that failed. */
  readonly badHeight?: number;
  readonly tone: "good" | "warn" | "bad" | "idle" | "none";
  readonly title: string;
}
