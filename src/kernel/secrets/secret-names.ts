import { LruMap } from "../limits/lru-map.ts";

/** How the names of headers end that carry a secret of the sender's. */
const SECRET_ENDINGS =
  "authorization auth cookie credential credentials token jwt assertion session key secret password passwd".split(
    " ",
  );

/** What nearly every request has: not worth a closer look. */
const PLAIN_NAMES: ReadonlySet<string> = new Set(
  `accept accept-encoding accept-language cache-control connection content-encoding content-length content-type date
  forwarded host keep-alive origin pragma referer te traceparent transfer-encoding user-agent via x-forwarded-for
  x-forwarded-host x-forwarded-port x-forwarded-proto x-real-ip x-request-id`.split(/\s+/),
);

/** Names that are remembered. Strangers make up names; those in use stay. */
export const NAMES_KNOWN_MAX = 1_000;
/** Longest name that is remembered, so that all of them are some 100 KB. */
export const KNOWN_NAME_LENGTH_MAX = 64;

/** Whether a header may carry a secret, by its name; senders use the same names over and over. */
export class SecretNames {
  private readonly known = new LruMap<string, boolean>(NAMES_KNOWN_MAX);

  /** How many names are remembered. */
  get size(): number {
    return this.known.size;
  }

  /** Whether a header of this name (lower-case) may carry a secret. */
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
