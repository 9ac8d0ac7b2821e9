import type { ContentHeaders } from "../../kernel/data/content.ts";
import { SECRET_NAMES } from "../../kernel/secrets/secret-names.ts";
import type { Vault } from "../../kernel/secrets/vault.ts";

/** Headers by lower-case name. */
export type EventHeaders = Readonly<Record<string, string>>;

/** Holds the sealed part of the headers. No header can have such a name. */
const SEALED = ":sealed";

/**
 * The headers of a request as they are stored: JSON. Repeated ones are joined, as they arrive. The values of those that
 * may contain a secret are sealed; their names keep their positions.
 */
export function storedHeaders(received: Headers, vault: Vault, bucketId: string): string {
  const all: Record<string, unknown> = received.toJSON();
  // Only cookies are a list.
  const cookies = all["set-cookie"];
  if (cookies !== undefined) all["set-cookie"] = String(cookies);
  let secret: Record<string, unknown> | null = null;
  for (const name in all) {
    if (!SECRET_NAMES.has(name)) continue;
    secret ??= {};
    secret[name] = all[name];
    all[name] = null;
  }
  if (secret === null) return JSON.stringify(all);
  const sealed = vault.seal(JSON.stringify(secret), contextOf(bucketId));
  return JSON.stringify({ ...all, [SEALED]: Buffer.from(sealed).toString("base64") });
}

/** Stored headers, with sealed values unsealed. */
export function readHeaders(stored: string, vault: Vault, bucketId: string): EventHeaders {
  const { [SEALED]: sealed, ...all } = JSON.parse(stored) as Record<string, string>;
  if (sealed === undefined) return all;
  const secret = JSON.parse(vault.open(Buffer.from(sealed, "base64"), contextOf(bucketId))) as EventHeaders;
  return { ...all, ...secret };
}

/** How the body of an event was sent, by its stored headers. */
export function contentHeadersOf(stored: string): ContentHeaders {
  const { "content-encoding": encoding = null, "content-type": type = null } = JSON.parse(stored) as Partial<
    Record<string, string>
  >;
  return { encoding, type };
}

/** Stored headers without those whose values are sealed. */
export function withoutSealed(stored: string): string {
  const { [SEALED]: _, ...all } = JSON.parse(stored) as Record<string, string | null>;
  return JSON.stringify(Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null)));
}

/** Stored headers as lines of `name: value`, without sealed values. */
export function plainHeaders(stored: string): string {
  const { [SEALED]: _, ...all } = JSON.parse(stored) as Record<string, string | null>;
  return Object.entries(all)
    .map(([name, value]) => `${name}: ${value ?? ""}`)
    .join("\n");
}

function contextOf(bucketId: string): string {
  return `catch-headers:${bucketId}`;
}
