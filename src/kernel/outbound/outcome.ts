import type { ResponseHeaders } from "./response-reader.ts";

/**
 * What can go wrong with a request: `invalid` URL, `blocked` address, `dns` without an address for the name, `connect`
 * without a connection, `tls` certificate or handshake, `timeout`, `reset` connection, `malformed` answer (not HTTP/1),
 * `too-large` head or body, too many `redirects`, `local` when this machine could not open a connection: then nothing
 * is known of the target.
 */
export type FailureKind =
  | "invalid"
  | "blocked"
  | "dns"
  | "connect"
  | "tls"
  | "timeout"
  | "reset"
  | "malformed"
  | "too-large"
  | "redirects"
  | "local";

/** A request without a usable answer. Users can see the message: it names no address of ours. */
export class OutboundFailure extends Error {
  constructor(
    readonly kind: FailureKind,
    message: string,
  ) {
    super(message);
  }
}

/** What became of a request. */
export type OutboundOutcome = Answered | Failed;

/** How long a request took, and whether that says anything about the target. */
interface Measured {
  /** Whole milliseconds of real time, from the call to the last byte wanted. */
  readonly latencyMs: number;
  /** The longest stall of the event loop during the request. */
  readonly stalledMs: number;
}

/** The target answered. */
export interface Answered extends Measured {
  readonly answered: true;
  readonly status: number;
  readonly headers: ResponseHeaders;
  /** The body as it came, not decoded, up to the limit of the request; empty when the request keeps none. */
  readonly body: Uint8Array;
  readonly truncated: boolean;
}

/** The target did not answer, or was not asked. */
export interface Failed extends Measured {
  readonly answered: false;
  readonly failure: OutboundFailure;
}
