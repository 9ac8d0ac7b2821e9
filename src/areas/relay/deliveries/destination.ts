import type { AttemptStep, WebhookRequest } from "../../../kernel/outbound/delivery.ts";
import type { AttemptResult } from "../../../kernel/outbound/retries.ts";
import type { LaneOptions } from "../../../kernel/scheduler/lane-groups.ts";
import type { JobOutcome } from "../../../kernel/scheduler/scheduler.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import type { AttemptRow, RelayDelivery, RelayRequest } from "./store.ts";

/** The payload of a delivery job that needs more than the delivery's reference. */
export interface DeliveryJob {
  readonly ref: number;
  /** The endpoint, if this delivery is the probe of its open breaker. */
  readonly probe?: number;
  /** Whether it has a token of the endpoint's rate. */
  readonly paced?: true;
  /**
   * The delivery's `scheduled_for` when the job was created for later. A resend changes it and creates a job of its own: a
   * job with another time does nothing. The name is stored.
   */
  readonly begun?: number;
}

/** The request of an attempt. Headers that the user's may override are added to it. */
export interface DeliveryRequest
  extends Pick<
    WebhookRequest,
    "url" | "below" | "requireHttps" | "custom" | "headers" | "body" | "timeoutMs"
  > {
  /** Default: the delivery's. */
  readonly method?: string;
  readonly storesResponse: boolean;
  /** Bytes of the response's body that are read; default: those that are stored. */
  readonly readBytesMax?: number;
}

/** What becomes of a due delivery: it is sent, or its job ends in another way. */
export type Admission = Admitted | { readonly kind: "render"; readonly render: () => Promise<Admitted> };

/** The same, once the body is made. */
export type Admitted =
  | { readonly kind: "send"; readonly request: DeliveryRequest }
  | { readonly kind: "unsent"; readonly outcome: JobOutcome };

/** A kind of destination, which decides when its deliveries are sent, what is sent, and what follows. */
export interface Destination {
  /** @throws Error without content that is stored as long as its deliveries */
  admit(relay: RelayRequest, job: DeliveryJob): Admission;
  /** Makes an attempt, and tracks whether the destination responds. */
  trackAttempt(relay: RelayRequest, attempt: () => Promise<JobOutcome>): Promise<JobOutcome>;
  /** What follows attempt number `number`, from 1, counted since the last resend. */
  next(
    relay: RelayRequest,
    job: DeliveryJob,
    number: number,
    result: AttemptResult,
  ): AttemptStep<DeliveryJob>;
  /** Called in the unit of work that postpones an attempt that this server had no capacity for. */
  postponed(tx: Tx, relay: RelayRequest): void;
  /** Called in the unit of work that records an attempt. */
  record(tx: Tx, relay: RelayRequest, job: DeliveryJob, row: AttemptRow, step: AttemptStep): void;
  /** Called in the unit of work that cancels a delivery. */
  cancelled(tx: Tx, relay: RelayRequest): void;
  /** The body that the next attempt sends; null when it is not stored any more, and when it must not be shown. */
  body(relay: RelayRequest): Promise<Uint8Array | null>;
  /** Credits that sending it again costs. */
  creditsOf(relay: RelayDelivery): number;
  /** Whether a finished delivery can be sent again. */
  canRestart(relay: RelayDelivery): boolean;
  /** Restarts a finished delivery, due now. `key`: by {@link EndpointDestination.orderKeys}. Returns whether it is finished and can be sent. */
  restart(tx: Tx, ref: number, key: string | null): boolean;
}

/** Order keys by reference of a delivery or message; null for no order. */
export type OrderKeys = ReadonlyMap<number, string | null>;

/** Endpoints, whose jobs have lanes with limits of their own, and probes. */
export interface EndpointDestination extends Destination {
  /** The order keys of deliveries that are read from their payload or body, by reference. Called before they are restarted: it takes long. */
  orderKeys(refs: readonly number[]): Promise<OrderKeys>;
  laneTerms(destination: string): LaneOptions | null;
  /** The outcome of a job whose delivery was finished before its attempt: if it was a probe, another one replaces it. */
  abandoned(job: DeliveryJob): JobOutcome;
}

export interface Destinations {
  /** The URLs of scheduled requests and of notifications. */
  readonly urls: Destination;
  readonly endpoints: EndpointDestination;
}

/** The destination of a delivery. */
export function destinationOf(
  { urls, endpoints }: Destinations,
  { endpointRef }: Pick<RelayDelivery, "endpointRef">,
): Destination {
  return endpointRef === null ? urls : endpoints;
}
