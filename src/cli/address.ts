import { isIPv6 } from "node:net";
import type { Config } from "../config.ts";

/** Addresses that stand for all of a machine's, and one of them that can be called. */
const CALLED: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };

/** The URL of the server with this configuration, as it is called from the same machine. */
export function urlOf({ host, port, tls }: Pick<Config, "host" | "port" | "tls">): string {
  const called = CALLED[host] ?? host;
  return `${tls === null ? "http" : "https"}://${isIPv6(called) ? `[${called}]` : called}:${port}`;
}
