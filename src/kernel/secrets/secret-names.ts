import { LruMap } from "../limits/lru-map.ts";

/** Endings of the names of headers that contain a secret of the sender. */
const SECRET_ENDINGS =
  "authorization auth cookie credential credentials token jwt assertion session key secret password passwd".split(
    " ",
  );

/** Headers of nearly every request, which contain no secret. */
const PLAIN_NAMES: ReadonlySet<string> = new Set(
  `accept accept-encoding accept-language cache-control connection content-encoding content-length content-type date
  forwarded host keep-alive origin pragma referer te traceparent transfer-encoding user-agent via x-forwarded-for
  x-forwarded-host x-forwarded-port x-forwarded-proto x-real-ip x-request-id`.split(/\s+/),
);

/** Cached names: a limit, since senders choose names freely. The least recently used are dropped. */
export const NAMES_KNOWN_MAX = 1_000;
/** Longest name that is cached, so that the cache has at most about 100 KB. */
export const KNOWN_NAME_LENGTH_MAX = 64;

/** Whether a header may contain a secret, by its name. Cached, because senders repeat the same names. */
export class SecretNames {
  private readonly known = new LruMap<string, boolean>(NAMES_KNOWN_MAX);

  /** Number of cached names. */
  get size(): number {
    return this.known.size;
  }

  /** Whether a header with this name (lower-case) may contain a secret. */
  has(name: string): boolean {
    const known = this.known.get(name);
    if (known !== undefined) return known;
    const isSecret = !PLAIN_NAMES.has(name) && SECRET_ENDINGS.some((ending) => name.endsWith(ending));
    if (name.length > KNOWN_NAME_LENGTH_MAX) return isSecret;
    this.known.set(name, isSecret);
    return isSecret;
  }
}

/** The instance that all areas share. */
export const SECRET_NAMES = new SecretNames();
