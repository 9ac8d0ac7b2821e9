import ipaddr from "ipaddr.js";
import { isPublicAddress } from "../../../kernel/outbound/address.ts";
import type { FailureKind, OutboundOutcome } from "../../../kernel/outbound/outcome.ts";
import type { ConnectivitySign } from "../domain.ts";
import type { MonitorRow } from "../store.ts";

/** Accounts of which hosts are remembered: with {@link HOSTS_PER_ACCOUNT_MAX}, hosts that one look passes over in 2 ms. */
export const ACCOUNTS_MAX = 500;
/** Hosts of one account that are remembered: more of them prove nothing more, and take no space from other accounts. */
export const HOSTS_PER_ACCOUNT_MAX = 10;
/** Hosts of one network that are probed: what connects that network may have failed, and not the server. */
const PROBED_PER_NETWORK_MAX = 2;
/** Bits of an address that name its network. */
const NETWORK_BITS = { ipv4: 24, ipv6: 48 } as const;
/** Labels at the end of a name without a known address that stand for its network. */
const NETWORK_LABELS = 2;

/** Failures that a server without connectivity sees. */
const CONNECTIVITY_FAILURES: ReadonlySet<FailureKind> = new Set(["dns", "connect", "timeout", "reset"]);

/** A monitored host as its last check found it. */
export interface MonitoredHost {
  readonly url: string;
  readonly account: number;
  readonly isPublic: boolean;
  /** Its network (a /24, or a /48 of IPv6), as far as its address is known. */
  readonly network: string;
  /** Whether the last check got an HTTP response. */
  readonly proved: boolean;
  /** Epoch milliseconds of the end of the last check. */
  readonly at: number;
  readonly intervalMs: number;
}

/** Remembers how the last checks of monitored hosts ended, separately for each account: no account changes what another one has seen. */
export class ConnectivityHosts {
  private readonly accounts = new Map<number, Map<string, MonitoredHost>>();

  /** Notes the outcome of a check that ended `at`. Returns what it says of connectivity; null for a private target, about which it says nothing. */
  saw(monitor: MonitorRow, outcome: OutboundOutcome, at: number): ConnectivitySign | null {
    const { accountRef: account, settings } = monitor;
    const { host, hostname } = new URL(settings.url);
    const known = this.accounts.get(account)?.get(host);
    const addresses = outcome.answered ? [outcome.address] : outcome.addresses;
    const isPublic = addresses.length === 0 ? (known?.isPublic ?? true) : addresses.every(isPublicAddress);
    const sign = isPublic ? signOf(outcome) : null;
    if (sign === "open") return sign;
    const network = networkOf(addresses[0]) ?? known?.network ?? zoneOf(hostname);
    const proved = sign === "proved";
    const { url, interval: intervalMs } = settings;
    this.remember(host, { url, account, isPublic, network, proved, at, intervalMs });
    return sign;
  }

  /** All public hosts, by account; of each account, and among the accounts, the most recently checked last. */
  get publicHosts(): MonitoredHost[] {
    return [...this.accounts.values()].flatMap((hosts) =>
      [...hosts.values()].filter(({ isPublic }) => isPublic),
    );
  }

  private remember(host: string, seen: MonitoredHost): void {
    const hosts = this.accounts.get(seen.account) ?? new Map<string, MonitoredHost>();
    // The least recently checked stand first, and are forgotten first.
    hosts.delete(host);
    hosts.set(host, seen);
    dropFirst(hosts, HOSTS_PER_ACCOUNT_MAX);
    this.accounts.delete(seen.account);
    this.accounts.set(seen.account, hosts);
    dropFirst(this.accounts, ACCOUNTS_MAX);
  }
}

/**
 * Hosts in the order in which they are probed: the accounts take turns, so that none of them decides alone, and few are
 * of one network. The most recently checked of each account come first.
 */
export function interleaved(hosts: readonly MonitoredHost[]): MonitoredHost[] {
  const queues = [...Map.groupBy(hosts, ({ account }) => account).values()].reverse();
  const networks = new Map<string, number>();
  const taken: MonitoredHost[] = [];
  while (queues.some((queue) => queue.length > 0)) {
    for (const queue of queues) {
      const host = queue.pop();
      if (host === undefined) continue;
      const count = networks.get(host.network) ?? 0;
      if (count >= PROBED_PER_NETWORK_MAX) continue;
      networks.set(host.network, count + 1);
      taken.push(host);
    }
  }
  return taken;
}

function signOf(outcome: OutboundOutcome): ConnectivitySign {
  if (outcome.answered) return "proved";
  return CONNECTIVITY_FAILURES.has(outcome.failure.kind) ? "failed" : "open";
}

function networkOf(address: string | undefined): string | null {
  if (address === undefined || !ipaddr.isValid(address)) return null;
  const parsed = ipaddr.process(address);
  const kind = parsed.kind();
  const bytes = parsed.toByteArray().slice(0, NETWORK_BITS[kind] / 8);
  return `${kind} ${bytes.join(".")}`;
}

/** Names of one domain count as one network while none of their addresses is known: anyone can invent more of them. */
function zoneOf(hostname: string): string {
  return hostname.split(".").slice(-NETWORK_LABELS).join(".");
}

function dropFirst<Key>(map: Map<Key, unknown>, sizeMax: number): void {
  const first = map.size > sizeMax ? map.keys().next() : null;
  if (first !== null && first.done !== true) map.delete(first.value);
}
