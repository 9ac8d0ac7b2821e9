import ipaddr from "ipaddr.js";
import { StartupError } from "../errors.ts";

/** A network: its first address, and the bits that are its own. */
export type Range = ReturnType<typeof ipaddr.parseCIDR>;

/**
 * Parses `10.0.0.0/8`, `::1/128` or a single address. A range of IPv4-mapped addresses is the range of IPv4
 * addresses that it stands for. `wanted`: what its error says would be right.
 *
 * @throws StartupError
 */
export function parseRange(text: string, wanted = "an address or a range such as 10.0.0.0/8"): Range {
  const [address = "", prefix, ...rest] = text.split("/");
  const wrong = (): StartupError => new StartupError(`"${text}" is not ${wanted}.`);
  if (!isAddress(address) || rest.length > 0) throw wrong();
  const base = ipaddr.parse(address);
  const width = base.kind() === "ipv4" ? 32 : 128;
  const bits = prefix === undefined ? width : /^\d{1,3}$/.test(prefix) ? Number(prefix) : Number.NaN;
  if (!(bits <= width)) throw wrong();
  if (base instanceof ipaddr.IPv6 && base.isIPv4MappedAddress() && bits >= MAPPED_PREFIX_BITS) {
    return [base.toIPv4Address(), bits - MAPPED_PREFIX_BITS];
  }
  return [base, bits];
}

/** The length of `::ffff:0:0/96`, behind which the IPv4 address stands. */
const MAPPED_PREFIX_BITS = 96;

/** Whether an address lies in one of these ranges. */
export function isWithin(address: ipaddr.IPv4 | ipaddr.IPv6, ranges: readonly Range[]): boolean {
  return ranges.some(([base, bits]) => address.kind() === base.kind() && address.match(base, bits));
}

const LOOPBACK = ["127.0.0.0/8", "::1/128"];
let loopback: readonly Range[] | undefined;

/** Whether an address is this machine's own, that nobody else can send from. */
export function isLoopback(address: string): boolean {
  const normal = normalize(address);
  loopback ??= LOOPBACK.map((range) => parseRange(range));
  return normal !== null && isWithin(ipaddr.parse(normal), loopback);
}

/** Names of this machine in addition to its addresses; the last two are those that a server listens on for all others. */
const OWN_NAMES: ReadonlySet<string> = new Set(["localhost", "0.0.0.0", "::"]);

/** Whether the value of a `Host` header names this machine itself. */
export function isLoopbackName(host: string): boolean {
  const name = host
    .replace(/:\d{1,5}$/, "")
    .replace(/^\[(.*)\]$/, "$1")
    .toLowerCase();
  return OWN_NAMES.has(name) || isLoopback(name);
}

/**
 * The same URL with the name of this machine in place of its address, if it is one of this machine's own: browsers accept
 * passkeys at a name only.
 */
export function withLocalhost(text: string): string {
  const url = URL.parse(text);
  if (url === null || !isLoopback(url.hostname.replace(/^\[(.*)\]$/, "$1"))) return text;
  return text.replace(url.host, url.port === "" ? "localhost" : `localhost:${url.port}`);
}

/** Addresses that stand for all of a machine's, and one of them that can be called. */
const CALLED: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };

/** The URL of a server that listens so, as it is called from the same machine. */
export function urlOf({ host, port, tls }: { host: string; port: number; tls: object | null }): string {
  const called = CALLED[host] ?? host;
  return `${tls === null ? "http" : "https"}://${called.includes(":") ? `[${called}]` : called}:${port}`;
}

/** Groups of 16 bits in the network part of an IPv6 address: a /64 is the least that a customer of any provider has. */
const NETWORK_GROUPS = 4;

/**
 * What an address is counted by: IPv4 as it is, also where it is mapped into IPv6; IPv6 by its /64 network, within which
 * anyone can change the address at will.
 */
export function networkOf(address: string): string {
  // Not IPv6, as nearly none is: parsing one takes microseconds, and each body is counted.
  if (!address.includes(":") || !isAddress(address)) return address;
  const parsed = ipaddr.process(address);
  if (!(parsed instanceof ipaddr.IPv6)) return parsed.toString();
  const groups = parsed.parts.slice(0, NETWORK_GROUPS).map((part) => part.toString(16));
  return `${groups.join(":")}::/64`;
}

/** One spelling per address; IPv4-mapped IPv6 becomes IPv4. Null for what is none. */
export function normalize(text: string): string | null {
  return isAddress(text) ? ipaddr.process(text).toString() : null;
}

/** Four decimal numbers, or IPv6: not the shortened and octal forms of old, in which `10` is 0.0.0.10. */
export function isAddress(text: string): boolean {
  const { IPv4, IPv6 } = ipaddr;
  return IPv4.isValidFourPartDecimal(text) || IPv6.isValid(text);
}
