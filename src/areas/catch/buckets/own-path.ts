import { isLoopbackName } from "../../../kernel/data/addresses.ts";

/** The public paths of a bucket. */
const PUBLIC_PATH = /^\/v1\/(?:in\/([^/]+)(?:\/|$)|catch\/([^/]+)$)/;

/** The id in a URL of a bucket of this server; null for other URLs. `ownUrls`: starts of this server's URLs. */
export function bucketIdIn(url: string, ownUrls: readonly string[]): string | null {
  const target = URL.parse(url);
  if (target === null) return null;
  for (const ownUrl of ownUrls) {
    const { host, port, hostname, pathname } = new URL(ownUrl);
    const bothLoopback = port === target.port && isLoopbackName(hostname) && isLoopbackName(target.hostname);
    const prefix = pathname === "/" ? "" : pathname;
    if ((host !== target.host && !bothLoopback) || !target.pathname.startsWith(prefix)) continue;
    const [, id, older = id] = PUBLIC_PATH.exec(target.pathname.slice(prefix.length)) ?? [];
    if (older !== undefined) return older;
  }
  return null;
}
