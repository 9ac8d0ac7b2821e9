import { isExactNumber } from "../../json-text.ts";
import type { Fields } from "../storage/tx.ts";

/** What stands in the place of a secret, whether there was one or not. */
export const SECRET = "[secret]";
/** How much of each side of a change is stored. */
export interface SideLimit {
  /** Longest JSON of a side, in bytes. */
  readonly bytesMax: number;
  /** What is stored of a text in a side that is too long, in UTF-16 units: enough to recognize it. */
  readonly textMax: number;
}

/** Longest JSON that is stored of each side of a change, in bytes. */
export const SIDE_BYTES_MAX = 8 * 1024;
/** The limit of a side. */
export const SIDE: SideLimit = { bytesMax: SIDE_BYTES_MAX, textMax: 256 };
/** The limit of a side of a definition: the largest definition, and the fields next to it. */
export const DEFINITION_SIDE: SideLimit = { ...SIDE, bytesMax: 72 * 1024 };
/** The limit of a side when the account has used up its budget for the day: enough for a switch or a number. */
export const REDUCED_SIDE: SideLimit = { bytesMax: 256, textMax: 32 };

/** Fields whose values are never kept, in lower case. */
const SECRET_NAMES: ReadonlySet<string> = new Set([
  ...["secret", "signing_secret", "previous_signing_secret", "token", "password", "authorization"],
  ...["api_key", "private_key", "secretaccesskey"],
]);
const SCHEME = /^[a-z][a-z0-9+.-]{0,19}:\/\//i;

/** One side of a change as it is stored. */
export interface StoredSide {
  /** JSON. */
  readonly text: string;
  readonly truncated: boolean;
}

/** Removes the secrets from fields, and limits the size of the rest: fields above it are omitted. */
export function storedSide(fields: Fields, { bytesMax, textMax }: SideLimit = SIDE): StoredSide {
  const plain = plainFields(fields);
  const whole = JSON.stringify(plain);
  if (Buffer.byteLength(whole) <= bytesMax) return { text: whole, truncated: false };
  const kept: Record<string, unknown> = {};
  // The braces.
  let bytes = 2;
  for (const [name, value] of Object.entries(plain)) {
    const short = shortened(value, textMax);
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
  if (Array.isArray(value)) return value.map((item) => plainValue("", item));
  if (typeof value !== "object" || value === null || isExactNumber(value)) return value;
  // Values of headers are stored encrypted elsewhere.
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

function shortened(value: unknown, textMax: number): unknown {
  if (typeof value === "string" && value.length > textMax) {
    return `${value.slice(0, textMax).toWellFormed()}…`;
  }
  return value;
}
