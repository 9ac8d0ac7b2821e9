import { isIPv6 } from "node:net";
import { invalidField } from "../errors.ts";
import { LruMap } from "../limits/lru-map.ts";
import { type AllowedAddresses, allowedAddresses, isPublicAddress, wordFor } from "./address.ts";

/** Longest URL that is taken: what servers and proxies accept everywhere. */
export const URL_LENGTH_MAX = 2_048;

/** Parsed URLs kept in memory: every delivery and every check uses the same ones again. */
export const TARGETS_REMEMBERED_MAX = 4_096;
/** Longer URLs are parsed each time, so that those in memory take a few mebibytes at most. */
export const REMEMBERED_URL_LENGTH_MAX = 512;

/** The option that permits other addresses than public ones. */
const PERMITTING_OPTION = "--allow-private-targets";

/** Where a request goes, by a URL that has been checked. */
export interface Target {
  readonly url: URL;
  readonly secure: boolean;
  /** Name or address, without brackets and without a trailing dot. */
  readonly host: string;
  /** Whether the host is an address. */
  readonly isAddress: boolean;
  readonly port: number;
}

/** Why a URL or an address is rejected. `isBlocked`: it is well-formed, but leads to an address that is not allowed. */
export interface Refusal {
  readonly refused: string;
  readonly isBlocked: boolean;
}

/** What a request demands of its target. */
export interface TargetRules {
  /** Only HTTPS; plain HTTP is for addresses that the operator permits. */
  readonly requireHttps?: boolean;
  /** The operator has named the host: its addresses may be private, and only then plain HTTP will do. */
  readonly ofOperator?: boolean;
}

const SCHEME = /^https?:\/\//i;
/** Spaces and control characters, which URL parsers drop without a word. */
const UNPRINTABLE = /[^\x21-\x7e\u00a1-\uffff]/;
/** Longest name that DNS allows (RFC 1035, section 2.3.4). */
const HOST_LENGTH_MAX = 253;
/** A host without the characters that end it in a URL. */
const HOST = /^[^\s:/?#@\\[\]]+$/;
const NO_HOST = "must be the name or the address of a host, such as db.example.com";
/** A host is checked without regard to its port. */
const ANY_PORT = 80;
const EMPTY_LABEL = /^\.|\.\./;
const IPV4 = /^\d+\.\d+\.\d+\.\d+$/;
/** What `localhost` resolves to (RFC 6761), without a lookup. */
const LOOPBACK_ADDRESSES = ["127.0.0.1", "::1"];

/** Where hosts may be that the operator has named. */
const OWN_NETWORK = allowedAddresses(["private"]);

/** Decides where the server may send requests. */
export class TargetPolicy {
  private readonly remembered = new LruMap<string, Target>(TARGETS_REMEMBERED_MAX);

  /** `runsIn`: the process whose option permits other addresses. */
  constructor(
    private readonly allowed: AllowedAddresses,
    private readonly runsIn: "server" | "probe" = "server",
  ) {}

  /** Parses a URL and checks what it shows. Names are checked when they have been resolved. */
  examine(text: string, rules: TargetRules = {}): Target | Refusal {
    const target = this.read(text);
    if ("refused" in target) return target;
    const known = knownAddresses(target);
    if (known !== null) return this.rejectionOf(target, known, rules) ?? target;
    if (!target.secure && rules.requireHttps === true && !this.allowed.any) return malformed(HTTPS_ONLY);
    return target;
  }

  private read(text: string): Target | Refusal {
    const known = this.remembered.get(text);
    if (known !== undefined) return known;
    const target = readTarget(text);
    if ("refused" in target || text.length > REMEMBERED_URL_LENGTH_MAX) return target;
    this.remembered.set(text, target);
    return target;
  }

  /** The same for a port of a host, which is a name or an address. */
  examineHost(host: string, port: number): Target | Refusal {
    const isLiteral = isIPv6(host);
    if (!isLiteral && (host.length > HOST_LENGTH_MAX || !HOST.test(host))) return malformed(NO_HOST);
    const target = this.examine(`http://${isLiteral ? `[${host}]` : host}:${port}`);
    return "refused" in target && !target.isBlocked ? malformed(NO_HOST) : target;
  }

  /** Checks the addresses of a target's name. Null when all of them are allowed. */
  rejectionOf(target: Target, addresses: readonly string[], rules: TargetRules): Refusal | null {
    const { ofOperator = false, requireHttps = ofOperator } = rules;
    const isAllowed = (address: string) =>
      this.allowed.includes(address) || (ofOperator && OWN_NETWORK.includes(address));
    const others = addresses.filter((address) => !isAllowed(address));
    if (others.length === 0) return null;
    // First what stands in the way of HTTPS, too.
    const inner = others.filter((address) => !isPublicAddress(address));
    if (inner.length > 0) return blocked(inner, this.runsIn);
    return !target.secure && requireHttps ? malformed(HTTPS_ONLY) : null;
  }

  /**
   * Checks a URL that a user gives.
   * @throws ApiError `validation_error` naming `field`, when the URL shows that nothing may be sent there.
   */
  assertUrl(field: string, text: string, rules: TargetRules = {}): Target {
    const target = this.examine(text, rules);
    if ("refused" in target) throw invalidField(field, target.refused);
    return target;
  }

  /** The same for a host. @throws ApiError `validation_error` naming `field`. */
  assertHost(field: string, host: string): Target {
    const target = this.examineHost(host, ANY_PORT);
    if ("refused" in target) throw invalidField(field, target.refused);
    return target;
  }
}

/** Rejects only what no server sends to, whatever its operator permits: for files, which are checked before a server reads them. */
export const ANY_TARGET: Pick<TargetPolicy, "assertUrl" | "assertHost"> = new TargetPolicy({
  any: true,
  includes: () => true,
});

function readTarget(text: string): Target | Refusal {
  if (text.length > URL_LENGTH_MAX) return malformed(`must have at most ${URL_LENGTH_MAX} characters`);
  const url = SCHEME.test(text) && !UNPRINTABLE.test(text) ? URL.parse(text) : null;
  if (url === null) return malformed("must be an http or https URL such as https://example.com/path");
  if (url.username !== "" || url.password !== "") {
    return malformed("must not contain a user name or password: send credentials in a header");
  }
  // A parsed address is in brackets or has four decimal numbers, however it was written.
  const isIPv6 = url.hostname.startsWith("[");
  const host = isIPv6 ? url.hostname.slice(1, -1) : url.hostname.replace(/\.$/, "");
  if (host === "" || EMPTY_LABEL.test(host)) return malformed("must name a host");
  const secure = url.protocol === "https:";
  const port = url.port === "" ? (secure ? 443 : 80) : Number(url.port);
  if (port === 0) return malformed("must have a port from 1 to 65535");
  return { url, secure, host, isAddress: isIPv6 || IPV4.test(host), port };
}

/** The addresses of a target whose name need not be resolved; null for others. */
export function knownAddresses(target: Target): readonly string[] | null {
  if (target.isAddress) return [target.host];
  const isLoopback = target.host === "localhost" || target.host.endsWith(".localhost");
  return isLoopback ? LOOPBACK_ADDRESSES : null;
}

function malformed(refused: string): Refusal {
  return { refused, isBlocked: false };
}

const HTTPS_ONLY = `must be an https URL: for plain HTTP within your own network, start the server with ${PERMITTING_OPTION} private`;

/** Says how the operator permits such addresses, but not the addresses themselves: those of a name may be private. */
function blocked(addresses: readonly string[], runsIn: string): Refusal {
  const word = wordFor(addresses);
  const [which, value] = word === null ? ["such", "and their range"] : [word, word];
  const refused = `must have a public address. To allow ${which} addresses, start the ${runsIn} with ${PERMITTING_OPTION} ${value}`;
  return { refused, isBlocked: true };
}
