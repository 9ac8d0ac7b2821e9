import type { OutboundClient } from "../../../kernel/outbound/client.ts";
import { OutboundFailure } from "../../../kernel/outbound/outcome.ts";
import type { PingStatistics } from "../../../kernel/outbound/ping.ts";
import { type IcmpResult, lossPercent } from "../icmp-result.ts";
import type { CheckedTarget, TargetKind, TargetOutcome } from "./target.ts";

export const ICMP: TargetKind = {
  // Only IPv6 addresses have colons.
  urlOf: ({ host }) => `icmp://${host?.includes(":") ? `[${host}]` : host}`,
  check: checkHost,
  // A host that responds to packets need not have a port that accepts connections.
  probeUrlOf: () => null,
};

/** Sends packets to a host, and compares their loss with what is allowed. */
async function checkHost(
  outbound: OutboundClient,
  { account, settings }: CheckedTarget,
): Promise<TargetOutcome> {
  const { host, packets, max_loss_percent: lossMax, timeout: timeoutMs } = settings;
  const outcome = await outbound.ping({ account, host: host ?? "", packets, timeoutMs });
  if (!outcome.answered) return outcome;
  const { address, latencyMs: tookMs, stalledMs } = outcome;
  const icmp = resultOf(outcome);
  const { sent, received, avg_ms } = icmp;
  if (received === 0) {
    const failure = new OutboundFailure(
      "timeout",
      `no response to ${sent} ${sent === 1 ? "packet" : "packets"}`,
    );
    return { answered: false, failure, addresses: [address], latencyMs: tookMs, stalledMs, icmp };
  }
  const lost = sent - received;
  const isLossy = 100 * lost > lossMax * sent;
  const error = isLossy ? `loss: ${lost} of ${sent} packets, more than ${lossMax} %` : null;
  const latencyMs = Math.round(avg_ms ?? tookMs);
  return { answered: true, address, status: null, certificate: null, error, latencyMs, stalledMs, icmp };
}

function resultOf({ sent, received, times }: PingStatistics): IcmpResult {
  const loss_percent = lossPercent(sent, received);
  const { min: min_ms = null, avg: avg_ms = null, max: max_ms = null } = times ?? {};
  return { sent, received, loss_percent, min_ms, avg_ms, max_ms };
}
