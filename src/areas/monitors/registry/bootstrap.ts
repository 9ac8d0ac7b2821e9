/** Bytes of a bootstrap file that are read: that of IANA has 40,000. Of twice as much, some files take more than a turn to parse. */
export const BOOTSTRAP_BYTES_MAX = 256 * 1024;
/** Suffixes of a bootstrap file: ten times those of today. */
export const SUFFIXES_MAX = 15_000;
/** Longest name, and longest URL of a server. */
const TEXT_LENGTH_MAX = 253;

/** URLs of RDAP servers, which end with a slash, by the suffix of the names that they serve. */
export type RdapServers = ReadonlyMap<string, string>;

/**
 * Reads a bootstrap file (RFC 9224).
 * @throws Error if it is none
 */
export function readBootstrap(text: string): RdapServers {
  if (Buffer.byteLength(text) > BOOTSTRAP_BYTES_MAX)
    throw new Error(`it has more than ${BOOTSTRAP_BYTES_MAX / 1_024} KiB`);
  return serversIn(JSON.parse(text));
}

/** The same for its parsed JSON. @throws Error if it is none */
export function serversIn(file: unknown): RdapServers {
  const { services } = (file ?? {}) as { readonly services?: unknown };
  if (!Array.isArray(services)) throw new Error("it has no services (RFC 9224)");
  const servers = new Map<string, string>();
  for (const service of services) {
    if (!Array.isArray(service)) continue;
    const url = serverOf(textsOf(service[1]));
    if (url === null) continue;
    for (const suffix of textsOf(service[0])) {
      servers.set(suffix.toLowerCase(), url);
      if (servers.size > SUFFIXES_MAX) throw new Error(`it has more than ${SUFFIXES_MAX} suffixes`);
    }
  }
  return servers;
}

/** The server of a name: that of its longest suffix (RFC 9224, section 4). Null: none is known. */
export function serverFor(servers: RdapServers, name: string): string | null {
  const labels = name.split(".");
  for (let first = 0; first < labels.length; first += 1) {
    const url = servers.get(labels.slice(first).join("."));
    if (url !== undefined) return url;
  }
  return null;
}

/** Those with HTTPS come first (RFC 9224, section 3). */
function serverOf(urls: readonly string[]): string | null {
  const url = urls.find((text) => /^https:\/\//i.test(text)) ?? urls.find((text) => /^http:\/\//i.test(text));
  if (url === undefined) return null;
  return url.endsWith("/") ? url : `${url}/`;
}

function textsOf(value: unknown): readonly string[] {
  if (!Array.isArray(value)) return [];
  return value.filter((item): item is string => typeof item === "string" && item.length <= TEXT_LENGTH_MAX);
}
