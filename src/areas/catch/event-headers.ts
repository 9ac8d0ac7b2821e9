import type { Vault } from "../../kernel/secrets/vault.ts";

/** Headers by lower-case name. */
export type EventHeaders = Readonly<Record<string, string>>;

/** Holds the sealed part of the headers. No header can have such a name. */
const SEALED = ":sealed";

/** How the names of headers end that carry a secret of the sender's. A false alarm does no harm: the owner reads it all the same. */
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

/** Names that are remembered at once. Strangers make up names: those of the providers come back after each time that all go. */
export const NAMES_KNOWN_MAX = 1_000;
/** Longest name that is remembered, so that all of them are some 100 KB. */
export const KNOWN_NAME_LENGTH_MAX = 64;

/** Whether a header may carry a secret, by its name; senders use the same names over and over. */
export class SecretNames {
  private readonly known = new Map<string, boolean>();

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
    if (this.known.size >= NAMES_KNOWN_MAX) this.known.clear();
    this.known.set(name, isSecret);
    return isSecret;
  }
}

const SECRET_NAMES = new SecretNames();

/**
 * The headers of a request as they are stored: JSON. Repeated ones are joined, as they arrive. The values of those that
 * may carry a secret are sealed; their names stay where they stood.
 */
export function storedHeaders(received: Headers, vault: Vault, bucketId: string): string {
  const all: Record<string, unknown> = received.toJSON();
  // Cookies alone come as a list.
  const cookies = all["set-cookie"];
  if (cookies !== undefined) all["set-cookie"] = String(cookies);
  const names = Object.keys(all).filter((name) => SECRET_NAMES.has(name));
  if (names.length === 0) return JSON.stringify(all);
  const secret = Object.fromEntries(names.map((name) => [name, all[name]]));
  for (const name of names) all[name] = null;
  const sealed = vault.seal(JSON.stringify(secret), contextOf(bucketId));
  return JSON.stringify({ ...all, [SEALED]: Buffer.from(sealed).toString("base64") });
}

/** The headers that were stored, with what is sealed opened. */
export function readHeaders(stored: string, vault: Vault, bucketId: string): EventHeaders {
  const { [SEALED]: sealed, ...all } = JSON.parse(stored) as Record<string, string>;
  if (sealed === undefined) return all;
  const secret = JSON.parse(vault.open(Buffer.from(sealed, "base64"), contextOf(bucketId))) as EventHeaders;
  return { ...all, ...secret };
}

/** The headers that were stored as lines of `name: value`; of what is sealed only the names. */
export function plainHeaders(stored: string): string {
  const { [SEALED]: _, ...all } = JSON.parse(stored) as Record<string, string | null>;
  return Object.entries(all)
    .map(([name, value]) => `${name}: ${value ?? ""}`)
    .join("\n");
}

function contextOf(bucketId: string): string {
  return `catch-headers:${bucketId}`;
}
