import { isAddress, isLoopbackName } from "../kernel/data/addresses.ts";
import { StartupError } from "../kernel/errors.ts";
import { isPublicAddress } from "../kernel/outbound/address.ts";

/** The cluster of a node, as it is configured. */
export interface ClusterSettings {
  /** `etcd://host:port,…`, `etcds://…` with TLS, or `postgres://…`. */
  readonly url: string;
  /** Several cells can share an engine. */
  readonly cell: string;
  readonly leaseMs: number;
  /** Where others reach this node. */
  readonly advertise: string | null;
  /** Whether an engine that replicates below SQL is trusted to do so. */
  readonly isTrusted: boolean;
  /** Additional certificate authorities (PEM) for etcd and the other nodes. */
  readonly extraCaPath: string | null;
}

/** The engine that a URL names. */
export type EngineAddress =
  | {
      readonly engine: "etcd";
      readonly endpoints: readonly string[];
      readonly user: { readonly name: string; readonly password: string } | null;
    }
  | { readonly engine: "postgres"; readonly urls: readonly string[] };

const ETCD_PORT = "2379";
const EXAMPLE =
  "commit_log must be a URL such as etcd://10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379 or postgres://user@host/db";
const SCHEMES = ["etcd", "etcds", "postgres", "postgresql"];
const CELL = /^[a-z0-9-]{1,40}$/;

/** The engine of a URL, whose hosts are separated by commas. @throws StartupError */
export function engineAddress({ url, cell }: ClusterSettings): EngineAddress {
  if (!CELL.test(cell))
    throw new StartupError("cell must be 1 to 40 lower-case letters, digits and hyphens.");
  const [scheme, afterScheme] = cut(url, "://");
  const [authority, path] = cut(afterScheme, "/");
  const at = authority.lastIndexOf("@");
  const credentials = authority.slice(0, Math.max(0, at));
  const hosts = authority
    .slice(at + 1)
    .split(",")
    .filter((host) => host !== "");
  if (!SCHEMES.includes(scheme) || hosts.length === 0) throw new StartupError(`${EXAMPLE}.`);
  if (scheme.startsWith("postgres")) {
    const before = credentials === "" ? "" : `${credentials}@`;
    return { engine: "postgres", urls: hosts.map((host) => `postgres://${before}${host}/${path}`) };
  }
  const protocol = scheme === "etcds" ? "https" : "http";
  const [name, password] = cut(credentials, ":").map(decodeURIComponent);
  return {
    engine: "etcd",
    endpoints: hosts.map((host) => `${protocol}://${hasPort(host) ? host : `${host}:${ETCD_PORT}`}`),
    user: name === "" || name === undefined ? null : { name, password: password ?? "" },
  };
}

/** Ends of names that only private networks use. */
const PRIVATE_NAMES = /(^|\.)(internal|local|lan|localdomain|home\.arpa|svc|cluster\.local)$/;

/** Whether what is sent to an advertised URL may cross a public network without encryption. */
export function isPlainAndPublic(advertise: string): boolean {
  const { protocol, hostname } = new URL(advertise);
  if (protocol !== "http:" || isLoopbackName(hostname)) return false;
  const host = hostname.replace(/^\[|\]$/g, "");
  if (isAddress(host)) return isPublicAddress(host);
  return host.includes(".") && !PRIVATE_NAMES.test(host);
}

/** What stands before and after the first occurrence of a separator; everything before it where there is none. */
function cut(text: string, separator: string): [before: string, after: string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + separator.length)];
}

/** The colons of an IPv6 address stand in brackets. */
function hasPort(host: string): boolean {
  return host.lastIndexOf(":") > host.lastIndexOf("]");
}
