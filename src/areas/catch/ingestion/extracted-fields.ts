import { isNestedDeeper, JSON_LEVELS_MAX } from "../../../json-text.ts";

/** Longest id or type that is kept of what a sender says of its event: theirs have up to 100 characters. */
export const FACT_LENGTH_MAX = 200;
/** Levels that a JSON pointer may go down: senders put what names an event near the top. */
const POINTER_LEVELS_MAX = 8;

/** A request, as far as signatures and facts are read from it. */
export interface Received {
  readonly headers: Headers;
  readonly body: Uint8Array;
  /** Epoch milliseconds. */
  readonly receivedAt: number;
  readonly method?: string;
  /** Path and raw query, as they came. */
  readonly target?: string;
  /** What stands before the target where senders reach this server; null where nobody said so. */
  readonly publicUrl?: string | null;
  /** The parsed body, once something has asked for it. */
  json?: { readonly value: unknown };
}

/** The body as JSON; undefined where it is none. */
function jsonOf(received: Received): unknown {
  received.json ??= { value: parsed(received.body) };
  return received.json.value;
}

function parsed(body: Uint8Array): unknown {
  const text = Buffer.from(body.buffer, body.byteOffset, body.length).toString("utf8");
  if (isNestedDeeper(text, JSON_LEVELS_MAX)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Where something is said of an event: `header:name` or a JSON pointer into the body; `digest`: the body's SHA-256. */
export type Source = string;

/** Reads what a request says of its event; null where it says nothing that can be kept. */
export type Fact = (received: Received) => string | null;

/** The first of some sources that says something. */
export function firstOf(sources: readonly Source[]): Fact {
  const facts = sources.map(factAt);
  return (received) => {
    for (const fact of facts) {
      const found = kept(fact(received));
      if (found !== null) return found;
    }
    return null;
  };
}

/** What two sources say, joined by a dot. */
export function joinOf(first: Source, second: Source): Fact {
  const [one, other] = [factAt(first), factAt(second)];
  return (received) => {
    const [before, after] = [one(received), other(received)];
    return before === null ? null : kept(after === null ? before : `${before}.${after}`);
  };
}

/** Whether callers may name a source so. */
export function isSource(text: string): boolean {
  if (text.startsWith(HEADER)) return HEADER_NAME.test(text.slice(HEADER.length));
  return POINTER.test(text) && text.split("/").length - 1 <= POINTER_LEVELS_MAX;
}

/** The header that a source reads, in lower case; null for any other. */
export function headerOf(source: Source): string | null {
  return source.startsWith(HEADER) ? source.slice(HEADER.length).toLowerCase() : null;
}

const HEADER = "header:";
const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/;
const POINTER = /^(?:\/(?:[^~/]|~[01])*)+$/;

function factAt(source: Source): Fact {
  const header = headerOf(source);
  if (header !== null) return ({ headers }) => headers.get(header);
  if (source === "digest") return ({ body }) => Bun.CryptoHasher.hash("sha256", body, "hex");
  const members = pointerMembers(source);
  return (received) => scalarText(valueAt(jsonOf(received), members));
}

/** The value at a JSON pointer of the body; undefined where there is none. */
export function memberOf(received: Received, pointer: Source): unknown {
  return valueAt(jsonOf(received), pointerMembers(pointer));
}

function pointerMembers(pointer: Source): readonly string[] {
  const members = pointer.split("/").slice(1);
  return members.map((member) => member.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function valueAt(value: unknown, members: readonly string[]): unknown {
  let found = value;
  for (const member of members) {
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, member)) return undefined;
    found = (found as Record<string, unknown>)[member];
  }
  return found;
}

function scalarText(value: unknown): string | null {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : null;
}

/** A lone surrogate would come back from the file as another character. */
function kept(text: string | null): string | null {
  if (text === null || text === "" || text.length > FACT_LENGTH_MAX) return null;
  return text.toWellFormed();
}
