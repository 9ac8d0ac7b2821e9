/** A message that was accepted, in the order of acceptance. */
export interface AcceptedMessage {
  readonly id: string;
  readonly key: string;
}

/** A request that the receiver got. Times are those of one monotonic clock, in milliseconds. */
export interface Arrival {
  readonly id: string;
  readonly at: number;
  /** Whether the receiver rejected it. */
  readonly isRejected: boolean;
}

/** A kill of the server, until it was ready again. */
export interface Kill {
  readonly at: number;
  /** When the next process was started: what arrived before was sent before the kill. */
  readonly startedAt: number;
  readonly readyAt: number;
}

/** A recovery as the server reports it at its end, and the number of messages of its time. */
export interface RecordedRun {
  readonly messages: number;
  readonly status: string;
  readonly matched: number;
  readonly resent: number;
  readonly skipped: number;
}

/** A delivery as the server reports it at the end. */
export interface RecordedDelivery {
  readonly messageId: string;
  readonly status: string;
  readonly attempts: number;
  /** Start of the first attempt by the server's clock, of a key that fails. */
  readonly firstAttemptAt?: number;
}

/** What happened to one endpoint. */
export interface EndpointRecord {
  readonly messages: readonly AcceptedMessage[];
  readonly arrivals: readonly Arrival[];
  readonly runs: readonly RecordedRun[];
  readonly deliveries: readonly RecordedDelivery[];
}

/** What is the same for all endpoints. */
export interface RecoverTerms {
  /** Keys whose messages the receiver rejects. */
  readonly failingKeys: ReadonlySet<string>;
  /** Attempts of a delivery that is always rejected. */
  readonly attemptsMax: number;
  readonly orderWaitMs: number;
  /** Concurrent attempts, and messages that a recovery sends per second. */
  readonly concurrency: number;
  readonly perSecond: number;
}
