import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { isWithin, parseRange, type Range } from "../data/addresses.ts";

/** Addresses that the operator permits in addition to public ones. */
export interface AllowedAddresses {
  /** Whether any are listed. */
  readonly any: boolean;
  /** Whether this is one of them. */
  includes(address: string): boolean;
}

/** What the words of the operator's list permit: ranges by the names that ipaddr.js has for them. The narrowest stands first. */
const WORDS = {
  loopback: ["loopback"],
  private: ["loopback", "private", "uniqueLocal"],
} as const;
type Word = keyof typeof WORDS;
const WORD_NAMES = Object.keys(WORDS) as Word[];

/**
 * Where clouds hand their machines credentials, at addresses that look private (Amazon, Google, Oracle). No word
 * permits them: to reach them they have to be listed.
 */
const METADATA = ["fd00:ec2::/32", "fd20:ce::254", "fd00:c1::a9fe:a9fe"];
/** The same, parsed on use: a start would take two milliseconds longer. */
let metadata: readonly Range[] | null = null;

const WANTED = "loopback, private, all, an address, or a range such as 10.0.0.0/8";

/**
 * Reads the operator's list: ranges, single addresses, `loopback`, `private` (with loopback), or `all`.
 * @throws StartupError when an entry is none of these.
 */
export function allowedAddresses(entries: readonly string[]): AllowedAddresses {
  const words = WORD_NAMES.filter((word) => entries.includes(word));
  const all = entries.includes("all");
  const ranges = entries
    .filter((entry) => entry !== "all" && !WORD_NAMES.some((word) => word === entry))
    .map((entry) => parseRange(entry, WANTED));
  return {
    any: entries.length > 0,
    includes(address) {
      if (all) return true;
      const parsed = parseAddress(address);
      if (parsed === null) return false;
      return words.some((word) => isMeant(parsed, word)) || isWithin(parsed, ranges);
    },
  };
}

/** The narrowest word of the operator's list that permits all of these addresses; null when none does. */
export function wordFor(addresses: readonly string[]): Word | null {
  const parsed = addresses.map(parseAddress);
  const permits = (word: Word): boolean =>
    parsed.every((address) => address !== null && isMeant(address, word));
  return WORD_NAMES.find(permits) ?? null;
}

function isMeant(address: ipaddr.IPv4 | ipaddr.IPv6, word: Word): boolean {
  const ranges: readonly string[] = WORDS[word];
  metadata ??= METADATA.map((range) => parseRange(range));
  return ranges.includes(address.range()) && !isWithin(address, metadata);
}

/** Global unicast, RFC 4291: everything else in IPv6 is local, reserved, or IPv4 in disguise. */
const GLOBAL_UNICAST = "2000::/3";
/** The well-known NAT64 prefix, RFC 6052: how IPv6-only networks reach the IPv4 address in the last 32 bits. */
const NAT64 = "64:ff9b::/96";
/** Both, parsed on use. */
let special: { readonly unicast: readonly Range[]; readonly nat64: readonly Range[] } | null = null;
/** Interface identifiers of ISATAP (RFC 5214), which carry an IPv4 address: `0000:5efe` and `0200:5efe`. */
const ISATAP_HIGH: readonly number[] = [0x0000, 0x0200];
const ISATAP_LOW = 0x5efe;

/** The address of a large cloud's host agent, which looks public. */
const HOST_AGENT = "168.63.129.16";

/**
 * Whether an address belongs to the public Internet. Only what is known to be public does: not loopback, private,
 * link-local, shared, multicast, reserved and documentation ranges, nor the IPv6 forms of such an IPv4 address, nor
 * what leads through a tunnel (6to4, Teredo).
 */
export function isPublicAddress(address: string): boolean {
  const parsed = parseAddress(address);
  if (parsed === null) return false;
  const { IPv4 } = ipaddr;
  if (parsed instanceof IPv4) return isPublicIPv4(parsed);
  special ??= { unicast: [parseRange(GLOBAL_UNICAST)], nat64: [parseRange(NAT64)] };
  if (isWithin(parsed, special.nat64)) return isPublicIPv4(new IPv4(parsed.toByteArray().slice(12)));
  if (!isWithin(parsed, special.unicast) || parsed.range() !== "unicast") return false;
  return !(ISATAP_HIGH.includes(parsed.parts[4] ?? 0) && parsed.parts[5] === ISATAP_LOW);
}

function isPublicIPv4(address: ipaddr.IPv4): boolean {
  return address.range() === "unicast" && address.toString() !== HOST_AGENT;
}

const COMPATIBLE = /^::\d+\.\d+\.\d+\.\d+$/;

/** Reads an address, IPv4-mapped IPv6 as the IPv4 address that it stands for. Null for any other text. */
function parseAddress(text: string): ipaddr.IPv4 | ipaddr.IPv6 | null {
  // A zone index names an interface of this machine; ipaddr.js alone would also accept the old short forms.
  if (isIP(text) === 0 || text.includes("%")) return null;
  // IPv4-compatible addresses are dead (RFC 4291, section 2.5.5.1); ipaddr.js would read this spelling as IPv4-mapped.
  if (COMPATIBLE.test(text)) return null;
  return ipaddr.process(text);
}
