import { isIPv6 } from "node:net";
import type { MonitorRow } from "../store.ts";
import type { TargetKind, TargetOutcome, TargetParts } from "./target.ts";

export const TCP: TargetKind = {
  urlOf: ({ host, port }) => `tcp://${host !== null && isIPv6(host) ? `[${host}]` : host}:${port}`,
  check: checkPort,
  probeUrlOf: (url) => url.replace(/^tcp:/, "http:"),
};

/** Connects to a port, and searches the keyword in what the server sends first. */
async function checkPort({ outbound }: TargetParts, monitor: MonitorRow): Promise<TargetOutcome> {
  const { host, port, keyword, timeout: timeoutMs } = monitor.settings;
  const outcome = await outbound.connectTo({
    account: monitor.accountRef,
    host: host ?? "",
    port: port ?? 0,
    expected: keyword,
    timeoutMs,
  });
  if (!outcome.answered) return outcome;
  const error = outcome.found ? null : "keyword: not found in what the server sent first";
  return { ...outcome, status: null, certificate: null, error };
}
