/** The name of the server among those that check a monitor. */
export const LOCAL = "local";

/** A period, epoch milliseconds. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** The life of a process, from its start to its kill. */
export interface Life extends Span {
  /** When the server was ready, or the probe had its list of monitors; null if it was killed before. */
  readonly readyAt: number | null;
}

/** A time in which the target of a monitor was down. */
export interface Outage extends Span {
  /** Whether it lasted long enough for everyone to notice: it must cause alerts. A short one may. */
  readonly isLong: boolean;
}

/** A monitor, and what became of it. */
export interface WatchedMonitor {
  readonly id: string;
  /** Names of probes, and {@link LOCAL}. */
  readonly checkers: readonly string[];
  /** Whether its target sees every check, also those of an outage. */
  readonly seesAll: boolean;
  readonly outages: readonly Outage[];
  /** Times of the checks that its target saw. */
  readonly seen: readonly number[];
  /** Times of the checks in its history, by checker. */
  readonly history: ReadonlyMap<string, readonly number[]>;
}

/** An alert as the webhook received it. */
export interface ReceivedAlert {
  /** The same for every attempt. */
  readonly id: string;
  readonly event: string;
  /** Id of the monitor, or the name of the probe. */
  readonly about: string;
  readonly at: number;
}

/** All that a run has recorded, for its judge. */
export interface RunRecord extends Span {
  readonly intervalMs: number;
  /** Time that a check may come later than its interval. */
  readonly slackMs: number;
  /** Time with a server in reach that a probe has for sending a result, before a kill may lose it. */
  readonly sendMs: number;
  readonly monitors: readonly WatchedMonitor[];
  /** Lives of the server and of the probes, by name. */
  readonly lives: ReadonlyMap<string, readonly Life[]>;
  /** Times in which a probe could not reach the server because of its link, by name. */
  readonly cuts: ReadonlyMap<string, readonly Span[]>;
  readonly alerts: readonly ReceivedAlert[];
}
