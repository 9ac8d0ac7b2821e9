import { allowedAddresses } from "./address.ts";
import { OutboundClient } from "./client.ts";
import { Connector } from "./connection.ts";
import { type HoldUps, watchForHoldUps } from "./hold-ups.ts";
import { createSystemResolver, type Resolver } from "./resolver.ts";
import { TargetPolicy } from "./target.ts";

/** What tests put in the place of the real network's parts. */
export interface OutboundSeams {
  readonly resolver?: Resolver;
  /** PEM of the only certificate authorities that are believed. */
  readonly certificateAuthorities?: string;
  readonly holdUps?: HoldUps;
  /** Certificates of servers on this very machine are taken as they are: they are for the name that others use. */
  readonly trustLoopback?: boolean;
}

/**
 * Builds the guarded client. `allowPrivateTargets` are the addresses that the operator permits besides public ones;
 * `onPulse` is told how late the event loop is: see {@link watchForHoldUps}.
 * @throws StartupError when an entry of it is neither an address, a range, nor `all`.
 */
export function createOutbound(
  allowPrivateTargets: readonly string[],
  seams: OutboundSeams = {},
  onPulse?: (lateMs: number) => void,
): OutboundClient {
  return new OutboundClient({
    policy: new TargetPolicy(allowedAddresses(allowPrivateTargets)),
    resolver: seams.resolver ?? createSystemResolver(),
    connector: new Connector(seams.certificateAuthorities, seams.trustLoopback),
    holdUps: seams.holdUps ?? watchForHoldUps(onPulse),
  });
}
