import {
  OutboundClient,
  type OutboundOverrides,
  type OutboundRequest,
} from "../../../src/kernel/outbound/client.ts";
import type { Answered, FailureKind, OutboundOutcome } from "../../../src/kernel/outbound/outcome.ts";

/** What tests permit: their own servers. */
export const LOOPBACK = ["127.0.0.0/8", "::1"];

/** Objects that a test opened, to be closed after it. */
export class Opened {
  private readonly list: { stop(): unknown }[] = [];

  add<T extends { stop(): unknown }>(one: T): T {
    this.list.push(one);
    return one;
  }

  /** A client that is closed after the test. */
  client(allowed: readonly string[] = LOOPBACK, overrides: OutboundOverrides = {}): OutboundClient {
    const outbound = new OutboundClient(allowed, overrides);
    this.list.push({ stop: () => outbound.close() });
    return outbound;
  }

  close(): void {
    for (const one of this.list.splice(0)) one.stop();
  }
}

/** A GET with a long timeout and a small maximum body, with the test's changes. */
export function get(url: string, more: Partial<OutboundRequest> = {}): OutboundRequest {
  return {
    account: 1,
    method: "GET",
    url,
    headers: {},
    body: null,
    timeoutMs: 30_000,
    bodyBytesMax: 65_536,
    keepsBody: true,
    longerBody: "truncate",
    redirectsMax: 0,
    reuseConnection: true,
    ...more,
  };
}

/** The response. @throws the failure if there is none. */
export function answeredWith(outcome: OutboundOutcome): Answered {
  if (!outcome.answered) throw outcome.failure;
  return outcome;
}

/** The text of a response's body. */
export function textOf(outcome: OutboundOutcome): string {
  return Buffer.from(answeredWith(outcome).body).toString("latin1");
}

/** The failure. @throws Error if there was none. */
export function failureOf(outcome: OutboundOutcome): FailureKind {
  if (outcome.answered) throw new Error(`answered ${outcome.status}`);
  return outcome.failure.kind;
}
