import type { Clock } from "../clock.ts";
import type { Ids } from "../ids.ts";
import type { Logger } from "../log.ts";
import type { Vault } from "../secrets/vault.ts";
import type { ClientAddress } from "./addresses.ts";
import type { RenderedAnswer } from "./answer.ts";
import type { Cors } from "./cors.ts";
import type { Guard } from "./guard.ts";
import type { Performing } from "./perform.ts";

/** What the HTTP side needs. */
export interface HttpDeps {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Logger;
  readonly guard: Guard;
  readonly performing: Performing;
  readonly cors: Cors;
  readonly clientAddress: ClientAddress;
  /** Seals cursors. */
  readonly vault: Vault;
}

/** A request on its way: its id, and the headers that its answer gets whatever becomes of it. */
export interface Exchange {
  readonly request: Request;
  readonly requestId: string;
  /** The address at the other end of the socket. */
  socketAddress(): string | null;
  headers: Record<string, string> | null;
}

/**
 * An endpoint, ready to answer. What needs no waiting is answered at once, without a promise: that is a third of
 * the cost of a read. Refusals are thrown, or reject.
 */
export interface Endpoint {
  answer(exchange: Exchange, params: Record<string, string>): RenderedAnswer | Promise<RenderedAnswer>;
}

/** The path of an absolute URL, as it was sent. */
export function pathOf(url: string): string {
  const target = targetOf(url);
  const query = target.indexOf("?");
  return query < 0 ? target : target.slice(0, query);
}

/** Path and query of an absolute URL, as they were sent. */
export function targetOf(url: string): string {
  // With a Host that makes no URL, the server hands out the target alone.
  if (url.startsWith("/")) return url;
  const authority = url.indexOf("://") + 3;
  const slash = url.indexOf("/", authority);
  return slash < 0 ? "/" : url.slice(slash);
}
