import type { Fields } from "./change.ts";

/** What stands in the place of a secret, whether there was one or not. */
export const SECRET = "[secret]";
/** Longest JSON that is kept of each side of a change, in bytes. */
export const SIDE_BYTES_MAX = 8 * 1024;
/** The same of a side that is kept whole: the largest definition, and what stands beside it. */
export const WHOLE_SIDE_BYTES_MAX = 72 * 1024;
/** What is kept of a text in a side that is too long, in UTF-16 units: enough to know it again. */
export const TEXT_KEPT = 256;

/** Fields whose values are never kept, in lower case. */
const SECRET_NAMES: ReadonlySet<string> = new Set([
  ...["secret", "signing_secret", "previous_signing_secret", "token", "password", "authorization"],
  ...["api_key", "private_key", "secretaccesskey"],
]);
const SCHEME = /^[a-z][a-z0-9+.-]{0,19}:\/\//i;

/** One side of a change as it is kept. */
export interface KeptSide {
  /** JSON. */
  readonly text: string;
  readonly truncated: boolean;
}

/** Takes the secrets out of fields, and bounds what is left of them. */
export function keptSide(fields: Fields, bytesMax = SIDE_BYTES_MAX): KeptSide {
  const plain = plainFields(fields);
  const whole = JSON.stringify(plain);
  if (Buffer.byteLength(whole) <= bytesMax) return { text: whole, truncated: false };
  const kept: Record<string, unknown> = {};
  // The braces.
  let bytes = 2;
  for (const [name, value] of Object.entries(plain)) {
    const short = shortened(value);
    // Name, colon and comma included.
    const size = Buffer.byteLength(JSON.stringify({ [name]: short }));
    if (bytes + size > bytesMax) continue;
    bytes += size;
    kept[name] = short;
  }
  return { text: JSON.stringify(kept), truncated: true };
}

function plainFields(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, plainValue(name, value)]));
}

function plainValue(name: string, value: unknown): unknown {
  const known = name.toLowerCase();
  if (SECRET_NAMES.has(known)) return SECRET;
  if (typeof value === "string") return plainUrl(value);
  if (Array.isArray(value)) return value.map((one) => plainValue("", one));
  if (typeof value !== "object" || value === null) return value;
  // Values of headers are kept encrypted elsewhere.
  if (known === "headers") return Object.fromEntries(Object.keys(value).map((header) => [header, SECRET]));
  return plainFields(value as Fields);
}

/** A URL without its credentials, query and fragment; any other text as it is. */
function plainUrl(text: string): string {
  const scheme = SCHEME.exec(text)?.[0];
  if (scheme === undefined) return text;
  const rest = text.slice(scheme.length);
  const query = rest.search(/[?#]/);
  const shown = query < 0 ? rest : rest.slice(0, query);
  const slash = shown.search(/[/\\]/);
  const authority = slash < 0 ? shown : shown.slice(0, slash);
  return scheme + authority.slice(authority.lastIndexOf("@") + 1) + shown.slice(authority.length);
}

function shortened(value: unknown): unknown {
  if (typeof value === "string" && value.length > TEXT_KEPT) {
    return `${value.slice(0, TEXT_KEPT).toWellFormed()}…`;
  }
  return value;
}
