import type { ResponseHeaders } from "./response-reader.ts";

/**
 * What can go wrong with a request:
 * `invalid` the URL, `blocked` it leads where nothing may go, `dns` its name has no address, `connect` no connection,
 * `tls` the certificate or the handshake, `timeout` not complete in time, `reset` the connection ended in the middle,
 * `malformed` the answer is not HTTP/1, `too-large` its head, or its body where a part of it is of no use,
 * `redirects` too many of them, `local` this machine could not open a connection: nothing is known of the target.
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

/** A request that got no usable answer. The message is fit for users: it names no address of ours. */
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
