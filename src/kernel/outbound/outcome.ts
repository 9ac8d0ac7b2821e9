import { realTimeout } from "../time/clock.ts";
import type { Certificate } from "./certificate.ts";
import type { ResponseHeaders } from "./response-reader.ts";

/**
 * What can go wrong with a request: `invalid` URL, `blocked` address, `dns` without an address for the name, `connect`
 * without a connection, `tls` certificate or handshake, `timeout`, `reset` connection, `malformed` response (not HTTP),
 * `too-large` head or body, too many `redirects`, `local` when this machine could not open a connection, `unsupported` when it has
 * not what the request needs: then nothing is known of the target.
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
  | "local"
  | "unsupported";

/**
 * A request without a usable response. Users can see the message: it names no internal address, except that of a name server of
 * the system that fails.
 */
export class OutboundFailure extends Error {
  constructor(
    readonly kind: FailureKind,
    message: string,
  ) {
    super(message);
  }
}

/** The server does not speak the protocol with which it was contacted: maybe it speaks another one. */
export class OtherProtocol extends OutboundFailure {
  constructor(
    kind: FailureKind,
    message: string,
    /** False: the server has only closed the connection. */
    readonly isCertain: boolean,
  ) {
    super(kind, message);
  }
}

/** What became of a request. */
export type OutboundOutcome = Answered | Failed;

/** How long a request took, and whether that says anything about the target. */
export interface Measured {
  /** Whole milliseconds of real time, from the call to the last byte wanted. */
  readonly latencyMs: number;
  /** The longest stall of the event loop during the request. */
  readonly stalledMs: number;
}

/** The target responded. */
export interface Answered extends Measured {
  readonly answered: true;
  readonly status: number;
  readonly headers: ResponseHeaders;
  /** The body as it came, not decoded, up to the limit of the request; empty when the request keeps none. */
  readonly body: Uint8Array;
  readonly truncated: boolean;
  /** The address that it came from. */
  readonly address: string;
  /** Of all connections on the way, the one that ends first; null where none was requested, or none was met. */
  readonly certificate: Certificate | null;
}

/** The target did not respond, or no request was sent. */
export interface Failed extends Measured {
  readonly answered: false;
  readonly failure: OutboundFailure;
  /** Where the name led; empty when that is not known. */
  readonly addresses: readonly string[];
}

/** The end of a request's real time, which covers everything from the name's lookup to the last byte. */
export class Deadline {
  private readonly endings = new Set<(failure: OutboundFailure) => void>();
  private readonly cancelTimer: () => void;
  private failure: OutboundFailure | null = null;

  constructor(timeoutMs: number) {
    this.cancelTimer = realTimeout(timeoutMs, () => {
      this.end(new OutboundFailure("timeout", `no complete response within ${timeoutMs} ms`));
    });
  }

  /** Runs `work` until it settles or time is up. @throws OutboundFailure `timeout` */
  within<T>(work: (settle: Settle<T>) => void): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    if (this.failure !== null) {
      reject(this.failure);
      return promise;
    }
    let release = (): void => {};
    const ending = (failure: OutboundFailure): void => {
      release();
      reject(failure);
    };
    this.endings.add(ending);
    const onAbandoned = (run: () => void): void => {
      release = run;
    };
    work({ resolve, reject, onAbandoned });
    return promise.finally(() => this.endings.delete(ending));
  }

  /** Ends the timer when the request is over. */
  close(): void {
    this.cancelTimer();
    this.endings.clear();
  }

  private end(failure: OutboundFailure): void {
    this.failure = failure;
    for (const ending of this.endings) ending(failure);
    this.endings.clear();
  }
}

/** Settles a piece of work. */
export interface Settle<T> {
  resolve(value: T): void;
  reject(error: unknown): void;
  /** Registers what releases the resources of the work when time is up. */
  onAbandoned(run: () => void): void;
}
