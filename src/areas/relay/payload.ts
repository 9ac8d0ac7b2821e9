import { endOfString, parseNearly } from "../../json-text.ts";
import { slices } from "../../kernel/background/time-slices.ts";
import { isoTime } from "../../kernel/time/date-time.ts";

/** Numbers that `JSON.stringify` may write differently from how they were sent. */
const RISKY_NUMBER = /\d{16}|\d[eE]|\.\d/;

/** Tokens that are scanned between two checks of the time. */
const TOKENS_PER_STEP = 4_096;

const SPACE = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/**
 * The JSON text of the member `payload` of a request's body, without blanks; `{}` when it is omitted. Numbers keep their
 * digits: 12345678901234567890 must not become 12345678901234567000. Returns a promise only if it must scan the text.
 */
export function payloadText(bodyText: string, payload: object | undefined): string | Promise<string> {
  if (payload === undefined) return "{}";
  if (!RISKY_NUMBER.test(bodyText)) return JSON.stringify(payload);
  return new PayloadScan(bodyText, ["payload"]).run().then(([text = "{}"]) => text);
}

/** The same for the `payload` of each item of the member `messages`, which all have one. */
export async function messagePayloadTexts(bodyText: string, payloads: readonly object[]): Promise<string[]> {
  if (RISKY_NUMBER.test(bodyText)) return new PayloadScan(bodyText, ["messages", null, "payload"]).run();
  const texts: string[] = [];
  for (const payload of payloads) {
    if (slices.isOver) await slices.next();
    texts.push(JSON.stringify(payload));
  }
  return texts;
}

/** The value of a stored payload or body, parsed at its first use; undefined when there is none, or it is not JSON. */
export function parsedOnce(read: () => string | null): () => unknown {
  let parsed: { readonly value: unknown } | undefined;
  return () => {
    parsed ??= { value: storedValue(read()) };
    return parsed.value;
  };
}

function storedValue(text: string | null): unknown {
  if (text === null) return undefined;
  try {
    return parseNearly(text);
  } catch {
    return undefined;
  }
}

/**
 * Copies payloads out of a valid JSON text in one pass, in time slices: parsing with the source text of each number takes
 * several times as long, and cannot be interrupted.
 */
class PayloadScan {
  private position = 0;
  /** Objects and arrays around the position. */
  private level = 0;
  /** Latest name at each level of the path. */
  private readonly names: (string | null)[] = [];
  private expectsName = false;
  /** Index of the current item in the array of the path; 0 without an array. */
  private index = 0;
  private texts: string[] = [];
  /** Parts of the payload that is being copied, and where the next part starts. */
  private parts: string[] = [];
  private partStart = 0;
  private isCopying = false;

  /** `path`: names of the members that lead to a payload; null for each item of an array. */
  constructor(
    private readonly json: string,
    private readonly path: readonly (string | null)[],
  ) {}

  /** Returns the text of each payload. A name that occurs twice counts the last time, as in `JSON.parse`. */
  async run(): Promise<string[]> {
    while (this.position < this.json.length) {
      this.step();
      if (slices.isOver) await slices.next();
    }
    return this.texts;
  }

  private step(): void {
    const { json } = this;
    for (let token = 0; token < TOKENS_PER_STEP && this.position < json.length; token += 1) {
      const code = json.charCodeAt(this.position);
      if (code === QUOTE) this.takeString();
      else if (code <= SPACE) this.skipBlank();
      else if (code === OPEN_OBJECT || code === OPEN_ARRAY) this.open(code);
      else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) this.close();
      else {
        if (code === COMMA && !this.isCopying) this.next();
        this.position += 1;
      }
    }
  }

  private takeString(): void {
    const start = this.position;
    const end = endOfString(this.json, start);
    this.position = end;
    const literal = this.json.slice(start, end);
    if (this.isCopying) {
      // Escapes are written in their shortest form, as `JSON.stringify` does.
      if (!literal.includes("\\")) return;
      this.parts.push(this.json.slice(this.partStart, start), JSON.stringify(JSON.parse(literal)));
      this.partStart = end;
    } else if (this.expectsName) {
      this.names[this.level] = JSON.parse(literal) as string;
      this.expectsName = false;
    }
  }

  private skipBlank(): void {
    const start = this.position;
    while (this.json.charCodeAt(this.position) <= SPACE) this.position += 1;
    if (!this.isCopying) return;
    this.parts.push(this.json.slice(this.partStart, start));
    this.partStart = this.position;
  }

  private open(code: number): void {
    if (!this.isCopying && this.level === this.path.length && this.isOnPath(this.level)) {
      this.isCopying = true;
      this.parts = [];
      this.partStart = this.position;
    }
    this.level += 1;
    this.position += 1;
    if (this.isCopying) return;
    this.expectsName = code === OPEN_OBJECT;
    this.names[this.level] = null;
    if (this.path[this.level - 1] === null && this.isOnPath(this.level - 1)) {
      this.index = 0;
      this.texts = [];
    }
  }

  private close(): void {
    this.level -= 1;
    this.position += 1;
    if (!this.isCopying || this.level > this.path.length) return;
    this.isCopying = false;
    this.parts.push(this.json.slice(this.partStart, this.position));
    this.texts[this.index] = this.parts.join("");
  }

  /** Moves to the next member or item. */
  private next(): void {
    if (this.path[this.level - 1] === null && this.isOnPath(this.level)) this.index += 1;
    // The name of an item is null: only objects expect one.
    this.expectsName = this.names[this.level] !== null;
  }

  private isOnPath(levels: number): boolean {
    for (let at = 0; at < levels; at += 1) if (this.names[at + 1] !== this.path[at]) return false;
    return true;
  }
}

/** The body of a message's delivery: the same for every attempt. `payload` is JSON. */
export function messageBody(
  format: "envelope" | "raw",
  { event_type, created_at, payload }: { event_type: string; created_at: number; payload: string },
): string {
  if (format === "raw") return payload;
  return `{"type":${JSON.stringify(event_type)},"timestamp":"${isoTime(created_at)}","data":${payload}}`;
}
