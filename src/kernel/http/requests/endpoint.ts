import type { Ids } from "../../ids.ts";
import type { Logger } from "../../log.ts";
import type { OperationRequests, RequestMetrics } from "../../metrics/request-metrics.ts";
import type { Vault } from "../../secrets/vault.ts";
import type { Writer } from "../../storage/writer.ts";
import type { ThrottledWarning } from "../../throttled-warning.ts";
import type { Clock } from "../../time/clock.ts";
import type { Guard } from "../access/guard.ts";
import type { Listener, Peers } from "../access/peers.ts";
import type { Operation } from "../operation.ts";
import type { Performing } from "../operations/perform.ts";
import type { OutgoingBodies } from "../responses/outgoing-bodies.ts";
import type { Cors } from "../responses/response.ts";
import type { BodiesInProgress } from "./bodies-in-progress.ts";
import type { SealedCursors } from "./pagination.ts";
import type { InputChecks } from "./validate.ts";

/** The dependencies of the HTTP side. */
export interface HttpDeps {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Logger;
  readonly guard: Guard;
  readonly performing: Performing;
  /** What a response must wait for that may show data of an account: see the writer. */
  readonly confirmationFor: Writer["confirmationFor"];
  readonly cors: Cors;
  readonly peers: Peers;
  /** Aborted when the server starts to stop. */
  readonly stopping: AbortSignal;
  /** The bodies that are being received. */
  readonly bodies: BodiesInProgress;
  /** The large responses that are being made and sent. */
  readonly outgoing: OutgoingBodies;
  /** Seals cursors. */
  readonly vault: Vault;
  readonly requests: RequestMetrics;
  /** Errors of a proxy's own key, which its clients cannot fix. */
  readonly proxyErrors: ThrottledWarning;
  /** The server that carries the requests; null for those that come over no socket. */
  readonly server: () => ListeningServer | null;
}

/** The listening server, as far as calls use it. */
export interface ListeningServer extends Listener {
  /** Requests in progress, until the last byte of the response is sent. */
  readonly pendingRequests: number;
  stop(closeActiveConnections?: boolean): Promise<void> | void;
  timeout(request: Request, seconds: number): void;
}

/** The part of a call that is the same for every request of its route. */
export interface Endpoint {
  /** The path with its parameters by name, for the log; null where no route matches. */
  readonly route: string | null;
  readonly operation: Operation;
  readonly checks: InputChecks;
  /** Seals the cursors of a list; null without cursors, or with open ones. */
  readonly cursors: SealedCursors | null;
  readonly requests: OperationRequests;
  readonly deps: HttpDeps;
}
