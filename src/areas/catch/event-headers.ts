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

/** Whether a header of this name (lower-case) may carry a secret. */
export function isSecretHeader(name: string): boolean {
  return !PLAIN_NAMES.has(name) && SECRET_ENDINGS.some((ending) => name.endsWith(ending));
}

/**
 * The headers of a request as they are stored: JSON. Repeated ones are joined, as they arrive. The values of those that
 * may carry a secret are sealed; their names stay where they stood.
 */
export function storedHeaders(received: Headers, vault: Vault, bucketId: string): string {
  const all: Record<string, unknown> = received.toJSON();
  // Cookies alone come as a list.
  const cookies = all["set-cookie"];
  if (cookies !== undefined) all["set-cookie"] = String(cookies);
  const names = Object.keys(all).filter(isSecretHeader);
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

function contextOf(bucketId: string): string {
  return `catch-headers:${bucketId}`;
}
