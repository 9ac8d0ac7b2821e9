import { invalidField } from "../../kernel/errors.ts";

/** Levels of a payload: deeper ones are nobody's data, and walking them is a matter of the stack's size. */
export const PAYLOAD_LEVELS_MAX = 500;
/** The level of `payload` itself: the body around it is the first. */
const LEVELS_AROUND = 1;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING_BRACKET = 0x5b;
const CLOSING_BRACKET = 0x5d;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;

/** Texts of numbers that may not come out of JSON.parse as they went in. */
const RISKY_NUMBER = /\d{16}|\d[eE]|\.\d/;

type Reviver = (this: unknown, key: string, value: unknown, context: { source?: string }) => unknown;
interface RawJson {
  parse(text: string, reviver: Reviver): unknown;
  rawJSON(text: string): unknown;
}

/**
 * The JSON text of the member `payload` of a request, compact. Numbers keep the digits that they were sent with: what
 * passes through here is somebody else's, and 12345678901234567890 is not 12345678901234567000.
 *
 * @throws ApiError `validation_error` when the body is nested too deeply.
 */
export function payloadText(bodyText: string, payload: object): string {
  if (isDeeper(bodyText, PAYLOAD_LEVELS_MAX + LEVELS_AROUND)) {
    throw invalidField("payload", `must not be nested more than ${PAYLOAD_LEVELS_MAX} levels deep`);
  }
  if (!RISKY_NUMBER.test(bodyText)) return JSON.stringify(payload);
  const json = JSON as unknown as RawJson;
  const exact = json.parse(bodyText, (_key, value, { source }) =>
    typeof value === "number" && source !== undefined && String(value) !== source
      ? json.rawJSON(source)
      : value,
  ) as { payload: object };
  return JSON.stringify(exact.payload);
}

/** Whether a JSON text has more levels of objects and arrays than so many. */
function isDeeper(text: string, levelsMax: number): boolean {
  // Each level needs two characters: short texts, which is nearly all, need no look.
  if (text.length <= 2 * levelsMax) return false;
  let level = 0;
  let inText = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (inText) {
      if (code === BACKSLASH) at += 1;
      else if (code === QUOTE) inText = false;
    } else if (code === QUOTE) {
      inText = true;
    } else if (code === OPENING_BRACKET || code === OPENING_BRACE) {
      level += 1;
      if (level > levelsMax) return true;
    } else if (code === CLOSING_BRACKET || code === CLOSING_BRACE) {
      level -= 1;
    }
  }
  return false;
}
