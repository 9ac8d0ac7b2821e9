/** The contents of the kept folder with pending forwards. */
export interface KeptForwards {
  /** Time of the clock at the kill, in epoch milliseconds. */
  readonly at: number;
  readonly operatorKey: string;
  /** Key of the account with the buckets. */
  readonly key: string;
  /** The bulk replay that was running. */
  readonly replayId: string;
  /** Number of requests that the bucket `replaying` had sent. */
  readonly replayed: number;
  /** Ids by name. */
  readonly buckets: Readonly<Record<string, string>>;
  readonly events: Readonly<Record<string, string>>;
  /** Events as the earlier version showed them, by name. */
  readonly views: Readonly<Record<string, unknown>>;
}
