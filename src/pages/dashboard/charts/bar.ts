/** A bar: its height, at most 1, and its state. */
export interface Bar {
  readonly height: number;
  /** Height of the part that failed. */
  readonly badHeight?: number;
  readonly tone: "good" | "warn" | "bad" | "idle" | "none";
  readonly title: string;
}
