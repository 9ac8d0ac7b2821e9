import type { Tx } from "../storage/tx.ts";
import type { RequestHeaders } from "./headers.ts";

/** A notification that an area sends to its users. */
export interface Notification {
  readonly accountRef: number;
  readonly projectRef: number;
  readonly event: string;
  /** The monitor that it is about; null for none. */
  readonly monitor_id: string | null;
  /** URL as responses show it. */
  readonly target_url: string;
  readonly body: string;
  /** Real destination: an unsigned request with these headers. Without it, a signed request goes to `target_url`. */
  readonly destination?: Destination;
  /** Delays before retries; four attempts within 21 s by default. */
  readonly retry_schedule?: readonly string[];
}

/** Real URL and headers of a notification with a secret URL. */
export interface Destination {
  readonly url: string;
  readonly headers: RequestHeaders;
}

/** Result of a notification that was sent once. */
export interface TrialResult {
  /** Response status; null without a response. */
  readonly status: number | null;
  /** Error; null if it was delivered. */
  readonly error: string | null;
}

/** Called in the unit of work that records an attempt. `error`: null if the notification was delivered. */
export type AttemptListener = (tx: Tx, id: string, error: string | null) => void;

/** Delivers notifications, signed and retried. */
export interface Notifier {
  /** Queues a notification in the unit of work that causes it. Returns its id. */
  notify(tx: Tx, notification: Notification): string;
  /** Cancels a pending notification. Returns whether it was still pending. */
  withdraw(tx: Tx, id: string): boolean;
  /** Registers a listener to the attempts of all notifications. */
  onAttempt(listener: AttemptListener): void;
  /** Sends a notification immediately, without retries, and stores nothing. */
  trial(notification: Notification): Promise<TrialResult>;
}
