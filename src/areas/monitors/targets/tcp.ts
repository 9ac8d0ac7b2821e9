import type { OutboundClient } from "../../../kernel/outbound/client.ts";
import type { CheckedTarget, TargetKind, TargetOutcome } from "./target.ts";

export const TCP: TargetKind = {
  // Only IPv6 addresses have colons.
  urlOf: ({ host, port }) => `tcp://${host?.includes(":") ? `[${host}]` : host}:${port}`,
  check: checkPort,
  probeUrlOf: (url) => url.replace(/^tcp:/, "http:"),
};

/** Connects to a port, and searches the keyword in what the server sends first. */
async function checkPort(
  outbound: OutboundClient,
  { account, settings }: CheckedTarget,
): Promise<TargetOutcome> {
  const { host, port, keyword, tls, timeout: timeoutMs } = settings;
  const outcome = await outbound.connectTo({
    account,
    host: host ?? "",
    port: port ?? 0,
    tls,
    expected: keyword,
    timeoutMs,
  });
  if (!outcome.answered) return outcome;
  const error = outcome.found ? null : "keyword: not found in what the server sent first";
  return { ...outcome, status: null, error };
}
