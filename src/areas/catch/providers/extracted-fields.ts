import type { KeyObject } from "node:crypto";
import { isExactNumber, isNestedDeeper, JSON_LEVELS_MAX, parseJson } from "../../../json-text.ts";
import { textOf } from "../../../kernel/data/content.ts";
import { MISSING, memberAt, pointerNames } from "../../../kernel/data/json-pointer.ts";
import type { BodyHashes } from "./body-hashes.ts";

/** Longest id or type of an event that is stored: those of known senders have up to 100 characters. */
export const FIELD_LENGTH_MAX = 200;
/** Maximum levels of a JSON pointer: ids and types are near the top. */
const POINTER_LEVELS_MAX = 8;

/** A request with the properties that signatures, ids and types are read from. */
export interface Received {
  readonly headers: Headers;
  readonly body: Uint8Array;
  /** Of a body that is not in memory: `body` is empty then, and `json` is set. */
  readonly hashes?: BodyHashes;
  /** The body without its content coding, from which ids and types are read; null if it cannot be decoded. Default: the body. */
  readonly decoded?: Uint8Array | null;
  /** Epoch milliseconds. */
  readonly receivedAt: number;
  readonly method?: string;
  /** Path and raw query. */
  readonly target?: string;
  /** Public URL of the server, which precedes the target; null when it is not configured. */
  readonly publicUrl?: string | null;
  /** The parsed body, cached. */
  json?: { readonly value: unknown };
  /** The signed text of a form, cached. */
  form?: { readonly text: string | null };
  /** The target that a valid signature covers: how the request was sent. */
  signedTarget?: string | undefined;
  /** The token of a valid signature that covers nothing else: it may be used for one body only. */
  token?: string;
  /** Key of the certificate that the signature names, if it is the sender's. */
  certificateKey?: KeyObject | null;
}

/** SHA-256 of the body, in hexadecimal digits. */
export function bodyDigest({ body, hashes }: Pick<Received, "body" | "hashes">): string {
  return hashes === undefined
    ? Bun.CryptoHasher.hash("sha256", body, "hex")
    : hashes.bodyDigest.toString("hex");
}

/** The body as JSON; undefined when it is not JSON. */
function jsonOf(received: Received): unknown {
  received.json ??= { value: parsed(received) };
  return received.json.value;
}

function parsed({ body, decoded = body, headers }: Received): unknown {
  const text = decoded === null ? null : textOf(decoded, headers.get("content-type"));
  if (text === null || isNestedDeeper(text, JSON_LEVELS_MAX)) return undefined;
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** Location of an event's id or type: `header:name`, a JSON pointer into the body, or `digest` for the body's SHA-256. */
export type Source = string;

/** Reads an event's id or type from a request; null when there is none that can be stored. */
export type FieldReader = (received: Received) => string | null;

/** Reads the first source that has a value. */
export function firstOf(sources: readonly Source[]): FieldReader {
  const readers = sources.map(readerOf);
  return (received) => {
    for (const read of readers) {
      const found = storable(read(received));
      if (found !== null) return found;
    }
    return null;
  };
}

/** Reads two sources and joins their values by a dot. */
export function joinOf(first: Source, second: Source): FieldReader {
  const [readFirst, readSecond] = [readerOf(first), readerOf(second)];
  return (received) => {
    const [before, after] = [readFirst(received), readSecond(received)];
    return before === null ? null : storable(after === null ? before : `${before}.${after}`);
  };
}

/** Reads the only element of a list in the body, or null when there are several: one id would stand for all of them. */
export function ofSingle(pointer: Source, read: FieldReader): FieldReader {
  return (received) => {
    const list = memberOf(received, pointer);
    return Array.isArray(list) && list.length !== 1 ? null : read(received);
  };
}

/** Whether a caller's source is valid. */
export function isSource(text: string): boolean {
  if (text.startsWith(HEADER)) return HEADER_NAME.test(text.slice(HEADER.length));
  return isPointer(text);
}

/** Whether a text is a JSON pointer into a body. */
export function isPointer(text: string): boolean {
  return POINTER.test(text) && text.split("/").length - 1 <= POINTER_LEVELS_MAX;
}

/** The header that a source reads, in lower case; null for any other. */
export function headerOf(source: Source): string | null {
  return source.startsWith(HEADER) ? source.slice(HEADER.length).toLowerCase() : null;
}

const HEADER = "header:";
const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/;
const POINTER = /^(?:\/(?:[^~/]|~[01])*)+$/;

function readerOf(source: Source): FieldReader {
  const header = headerOf(source);
  if (header !== null) return ({ headers }) => headers.get(header);
  if (source === "digest") return bodyDigest;
  const members = pointerNames(source);
  return (received) => scalarText(memberAt(jsonOf(received), members));
}

/** The value at a JSON pointer of the body, `""` for the whole body; undefined when there is none. */
export function memberOf(received: Received, pointer: Source): unknown {
  const found = memberAt(jsonOf(received), pointerNames(pointer));
  return found === MISSING ? undefined : found;
}

/** The text of the scalar at a JSON pointer of the body; empty when there is none. */
export function textAt(received: Received, pointer: Source): string {
  return scalarText(memberOf(received, pointer)) ?? "";
}

function scalarText(value: unknown): string | null {
  if (typeof value === "string") return value;
  if (isExactNumber(value)) return value.rawJSON;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : null;
}

/** A lone surrogate would be read from the database as another character. */
function storable(text: string | null): string | null {
  if (text === null || text === "" || text.length > FIELD_LENGTH_MAX) return null;
  return text.toWellFormed();
}
