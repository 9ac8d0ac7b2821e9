import ipaddr from "ipaddr.js";
import { isPublicAddress } from "../../../kernel/outbound/address.ts";
import type { Failed, FailureKind } from "../../../kernel/outbound/outcome.ts";
import type { ConnectivitySign } from "../domain.ts";
import type { MonitorRow } from "../store.ts";
import { targetOf } from "../targets/targets.ts";

/** Accounts with remembered hosts: with {@link HOSTS_PER_ACCOUNT_MAX} each, all hosts are read in 2 ms. */
export const ACCOUNTS_MAX = 500;
/** Remembered hosts of one account: more prove nothing more, and must not take the space of other accounts. */
export const HOSTS_PER_ACCOUNT_MAX = 10;
/** Probed hosts of one network: the network may be unreachable instead of the server being offline. */
const PROBED_PER_NETWORK_MAX = 2;
/** Length of the network prefix of an address. */
const NETWORK_BITS = { ipv4: 24, ipv6: 48 } as const;
/** Labels at the end of a host name that identify its network while its address is not known. */
const NETWORK_LABELS = 2;

/** Failures that occur when the server is offline. */
const CONNECTIVITY_FAILURES: ReadonlySet<FailureKind> = new Set(["dns", "connect", "timeout", "reset"]);

/** Whether a check reached its target, and where it is; null if something else responded for it. */
export type ReachOutcome = Failed | { readonly answered: true; readonly address: string | null };

/** A monitored host after its last check. */
export interface MonitoredHost {
  /** With the scheme of HTTP, which a probe does not speak: it only connects. */
  readonly url: string;
  readonly account: number;
  readonly isPublic: boolean;
  /** Its network: the /24, or the /48 of IPv6, of its address if known; otherwise the domain. */
  readonly network: string;
  /** Whether the last check got a response. */
  readonly proved: boolean;
  /** Epoch milliseconds of the end of the last check. */
  readonly at: number;
  readonly intervalMs: number;
}

/** The outcomes of the last checks of monitored hosts, separate for each account: accounts do not influence each other. */
export class ConnectivityHosts {
  private readonly accounts = new Map<number, Map<string, MonitoredHost>>();

  /** Records the outcome of a check that ended `at`. Returns what it shows about connectivity; null for a private target: nothing. */
  recordOutcome(monitor: MonitorRow, outcome: ReachOutcome, at: number): ConnectivitySign | null {
    const { accountRef: account, settings } = monitor;
    const url = targetOf(settings.type).probeUrlOf(settings.url);
    if (url === null) {
      if (outcome.answered) return "open";
      const isPrivate = outcome.addresses.length > 0 && !outcome.addresses.every(isPublicAddress);
      return isPrivate ? null : signOf(outcome);
    }
    const { host, hostname } = new URL(url);
    const known = this.accounts.get(account)?.get(host);
    const addresses = outcome.answered ? [outcome.address ?? []].flat() : outcome.addresses;
    const isPublic = addresses.length === 0 ? (known?.isPublic ?? true) : addresses.every(isPublicAddress);
    const sign = isPublic ? signOf(outcome) : null;
    if (sign === "open") return sign;
    const network = networkOf(addresses[0]) ?? known?.network ?? domainOf(hostname);
    const proved = sign === "proved";
    const { interval: intervalMs } = settings;
    this.remember(host, { url, account, isPublic, network, proved, at, intervalMs });
    return sign;
  }

  /** All public hosts, grouped by account. The most recently checked account and host come last. */
  get publicHosts(): MonitoredHost[] {
    return [...this.accounts.values()].flatMap((hosts) =>
      [...hosts.values()].filter(({ isPublic }) => isPublic),
    );
  }

  private remember(key: string, host: MonitoredHost): void {
    const hosts = this.accounts.get(host.account) ?? new Map<string, MonitoredHost>();
    // In the order of their last checks: the oldest are dropped first.
    hosts.delete(key);
    hosts.set(key, host);
    dropFirst(hosts, HOSTS_PER_ACCOUNT_MAX);
    this.accounts.delete(host.account);
    this.accounts.set(host.account, hosts);
    dropFirst(this.accounts, ACCOUNTS_MAX);
  }
}

/**
 * Hosts in the order in which they are probed: accounts alternate, so that no account decides alone, and few hosts belong
 * to one network. The most recently checked hosts of each account come first.
 */
export function interleaved(hosts: readonly MonitoredHost[]): MonitoredHost[] {
  const queues = [...Map.groupBy(hosts, ({ account }) => account).values()].reverse();
  const networks = new Map<string, number>();
  const ordered: MonitoredHost[] = [];
  while (queues.some((queue) => queue.length > 0)) {
    for (const queue of queues) {
      const host = queue.pop();
      if (host === undefined) continue;
      const count = networks.get(host.network) ?? 0;
      if (count >= PROBED_PER_NETWORK_MAX) continue;
      networks.set(host.network, count + 1);
      ordered.push(host);
    }
  }
  return ordered;
}

function signOf(outcome: ReachOutcome): ConnectivitySign {
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

/** Host names of one domain count as one network while their addresses are unknown: anyone can invent more names. */
function domainOf(hostname: string): string {
  return hostname.split(".").slice(-NETWORK_LABELS).join(".");
}

function dropFirst<Key>(map: Map<Key, unknown>, sizeMax: number): void {
  const first = map.size > sizeMax ? map.keys().next() : null;
  if (first !== null && first.done !== true) map.delete(first.value);
}
