// Properties of a JSON text that its parsed value does not have. Nothing here needs the server or the runtime: the portable verifier uses
// it as well.

/**
 * Levels of objects and arrays: half of what Python's reader takes (1,000), the least of the common ones. Nobody's data is
 * deeper, and deep data is slow to walk and to write: `JSON.stringify` takes seconds for some ten thousand levels.
 */
export const JSON_LEVELS_MAX = 500;

/**
 * Values of one text: objects, arrays, texts, numbers, `true`, `false` and `null`, at every level; names are none. Whatever
 * walks a parsed text once takes a few milliseconds for that many. No text of 100,000 characters has more.
 */
export const JSON_VALUES_MAX = 50_000;

/** Of what a JSON text has more than it may. */
export type JsonExcess = "levels" | "values";

/** Something in a JSON text that a parser would lose or change without a word. */
export interface Inexactness {
  /** Names and indexes from the outside in. */
  readonly path: readonly (string | number)[];
  /** What is wrong, as the end of a sentence about the value at `path`. */
  readonly problem: string;
}

/** Parts and characters of a path that a message shows: names are the sender's, and may be long. */
const PATH_PARTS_SHOWN = 8;
const PATH_LENGTH_SHOWN = 100;

/** A path as messages show it: `log.items.0.price`. */
export function pathText(path: Inexactness["path"]): string {
  const text = path.slice(0, PATH_PARTS_SHOWN).join(".");
  const isWhole = path.length <= PATH_PARTS_SHOWN && text.length <= PATH_LENGTH_SHOWN;
  return isWhole ? text : `${text.slice(0, PATH_LENGTH_SHOWN)}…`;
}

/** An object or array around the place of the scan. */
interface Container {
  /** Names seen so far; null in an array. */
  readonly names: Set<string> | null;
  /** The member that the scan is at. */
  at: string | number;
  expectsName: boolean;
}

const SPACE = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const POINT = 0x2e;
const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const COLON = 0x3a;
const LETTER_F = 0x66;
const LETTER_N = 0x6e;
const LETTER_T = 0x74;
/** Every decimal number of so many digits, with an exponent in this range, is exact in a double. */
const EXACT_DIGITS = 15;
const EXACT_EXPONENT = 290;
/** No double is written with more digits. */
const DOUBLE_DIGITS = 17;

/**
 * Scans a JSON text from a position: visits each string and number as a whole, and every other character but blanks by itself,
 * until a visit returns true, or for so many visits. Returns the position to continue from.
 */
function scanTokens(
  json: string,
  visit: (code: number, start: number, end: number) => boolean,
  from = 0,
  visitsMax = Number.POSITIVE_INFINITY,
): number {
  let visits = 0;
  for (let at = from; at < json.length; at += 1) {
    if (visits >= visitsMax) return at;
    const code = json.charCodeAt(at);
    if (code <= SPACE) continue;
    const start = at;
    if (code === QUOTE) at = endOfString(json, at) - 1;
    else if (startsNumber(code)) at = endOfNumber(json, at) - 1;
    visits += 1;
    if (visit(code, start, at + 1)) return at + 1;
  }
  return json.length;
}

/** A name, its colon, the five letters of `false`, and a comma. */
const VISITS_PER_VALUE_MAX = 8;

/**
 * Of what a JSON text has too much, before it is parsed: levels of objects and arrays, or values. Null when it has neither.
 * One pass at most, and none for most texts. For a text that is not JSON the result means nothing.
 */
export function findExcess(
  json: string,
  levelsMax: number,
  valuesMax: number = JSON_VALUES_MAX,
): JsonExcess | null {
  // Every level takes two characters, and so does every value with the comma that follows.
  if (json.length <= 2 * levelsMax) return null;
  if (json.length <= 2 * valuesMax && !hasMoreBrackets(json, levelsMax)) return null;
  let level = 0;
  // The first value of each container is counted at its bracket, every other one at the comma before it.
  let values = 1;
  let visits = 0;
  let previous = 0;
  let excess: JsonExcess | null = null;
  scanTokens(json, (code) => {
    visits += 1;
    if (code === OPEN_ARRAY || code === OPEN_OBJECT) {
      level += 1;
      values += 1;
    } else if (code === CLOSE_ARRAY || code === CLOSE_OBJECT) {
      level -= 1;
      if (previous === OPEN_ARRAY || previous === OPEN_OBJECT) values -= 1;
    } else {
      if (code === COMMA) values += 1;
      // An empty container may still follow a bracket: only what stands behind it proves a value.
      if (values > valuesMax) excess = "values";
    }
    if (level > levelsMax) excess = "levels";
    // What is not JSON is not scanned to its end.
    else if (visits > VISITS_PER_VALUE_MAX * valuesMax) excess = "values";
    previous = code;
    return excess !== null;
  });
  return excess ?? (values > valuesMax ? "values" : null);
}

/** Whether a JSON text has more than `levelsMax` levels of objects and arrays. For a text that is not JSON the result means nothing. */
export function isNestedDeeper(json: string, levelsMax: number): boolean {
  return findExcess(json, levelsMax, Number.POSITIVE_INFINITY) === "levels";
}

/** Whether a text has more opening brackets than `most`: no text has more levels than those. */
function hasMoreBrackets(json: string, most: number): boolean {
  const objects = countUpTo(most + 1, json, "{");
  return objects + countUpTo(most + 1 - objects, json, "[") > most;
}

function countUpTo(most: number, text: string, character: string): number {
  let found = 0;
  for (let at = text.indexOf(character); at >= 0 && found < most; at = text.indexOf(character, at + 1))
    found += 1;
  return found;
}

/** Whether a value has more than `levelsMax` levels of objects and arrays. It is walked no deeper than that. */
export function isValueDeeper(value: unknown, levelsMax: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levelsMax === 0) return true;
  return Object.values(value).some((member) => isValueDeeper(member, levelsMax - 1));
}

/**
 * Finds the first place where a text says something that its parsed value does not: a name that occurs twice in one
 * object, or a number that a double cannot hold. Null when what was parsed is exactly what was written. `value` is what
 * `JSON.parse` made of the text, whose levels have been counted. `member` is the only one of the outermost object that
 * counts; without it, all of them.
 */
export function findInexactness(json: string, value: unknown, member?: string): Inexactness | null {
  if (isAsWritten(json, value)) return null;
  const scan = new InexactnessScan(json, member);
  scan.advance();
  return scan.found;
}

/** Whether a text is what `JSON.stringify` writes, as most are: comparing costs a tenth of a scan. */
export function isAsWritten(json: string, value: unknown): boolean {
  return JSON.stringify(value) === json;
}

/** The scan of {@link findInexactness}, in steps. */
export class InexactnessScan {
  found: Inexactness | null = null;
  private at = 0;
  private readonly open: Container[] = [];

  constructor(
    private readonly json: string,
    private readonly member?: string,
  ) {}

  /** Scans at most so many further tokens. Returns whether the scan is complete. */
  advance(tokensMax?: number): boolean {
    const { json } = this;
    this.at = scanTokens(json, (code, start, end) => this.visit(code, start, end), this.at, tokensMax);
    return this.found !== null || this.at >= json.length;
  }

  private visit(code: number, start: number, end: number): boolean {
    const { json, open } = this;
    const inside = open[open.length - 1];
    let problem: string | null = null;
    if (code === QUOTE) {
      if (inside?.expectsName === true) problem = enterMember(inside, json.slice(start, end));
    } else if (startsNumber(code)) {
      problem = isShort(json, start, end) ? null : inexactNumber(json.slice(start, end));
    } else if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      open.push(container(code));
    } else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) {
      open.pop();
    } else if (code === COMMA && inside !== undefined) {
      nextMember(inside);
    }
    if (problem === null || (this.member !== undefined && open[0]?.at !== this.member)) return false;
    this.found = { path: open.map((container) => container.at), problem };
    return true;
  }
}

/** A member that is searched for, and the ones below it. */
class SoughtMember {
  readonly below = new Map<string, SoughtMember>();
  /** Members below that have a text, or contain one that has. */
  private readonly found = new Set<SoughtMember>();
  isWanted = false;
  text: string | null = null;

  constructor(private readonly parent: SoughtMember | null = null) {}

  at(name: string): SoughtMember {
    const known = this.below.get(name);
    if (known !== undefined) return known;
    const member = new SoughtMember(this);
    this.below.set(name, member);
    return member;
  }

  keep(text: string): void {
    this.text = text;
    for (let at: SoughtMember = this; at.parent !== null && !at.parent.found.has(at); at = at.parent)
      at.parent.found.add(at);
  }

  /** Forgets what was found: of members with the same name, the last one counts. */
  clear(): void {
    this.text = null;
    for (const member of this.found) member.clear();
    this.found.clear();
  }
}

/** An object or array around the position. */
interface ScannedContainer extends Container {
  expectsValue: boolean;
  readonly sought: SoughtMember | null;
  readonly start: number;
}

/**
 * Copies the texts of some members out of a valid JSON text, in one pass that can be divided: numbers keep their digits, and nothing
 * is parsed but names.
 */
export class MemberScan {
  private at = 0;
  private readonly root = new SoughtMember();
  private readonly open: ScannedContainer[] = [];
  private hasBegun = false;

  /** `paths`: the names and indexes that lead to a member. */
  constructor(
    private readonly json: string,
    paths: readonly (readonly string[])[],
  ) {
    for (const path of paths) this.memberAt(path).isWanted = true;
  }

  /** Scans at most so many further tokens. Returns whether the scan is complete. */
  advance(tokensMax?: number): boolean {
    const { json } = this;
    this.at = scanTokens(json, (code, start, end) => this.visit(code, start, end), this.at, tokensMax);
    return this.at >= json.length;
  }

  /** The text at one of the paths; null if there is no such member. */
  textAt(path: readonly string[]): string | null {
    return this.memberAt(path).text;
  }

  private memberAt(path: readonly string[]): SoughtMember {
    return path.reduce((member, name) => member.at(name), this.root);
  }

  private visit(code: number, start: number, end: number): boolean {
    const { open } = this;
    const inside = open[open.length - 1];
    if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) {
      open.pop();
      if (inside?.sought?.isWanted === true) inside.sought.keep(this.json.slice(inside.start, end));
    } else if (inside?.expectsName === true && code === QUOTE) {
      inside.at = nameOf(this.json.slice(start, end));
      inside.expectsName = false;
    } else if (code === COLON && inside !== undefined) inside.expectsValue = true;
    else if (code === COMMA && inside !== undefined) {
      nextMember(inside);
      inside.expectsValue = typeof inside.at === "number";
    } else if (inside === undefined ? !this.hasBegun : inside.expectsValue)
      this.begin(inside, code, start, end);
    return false;
  }

  private begin(inside: ScannedContainer | undefined, code: number, start: number, end: number): void {
    if (inside === undefined) this.hasBegun = true;
    else inside.expectsValue = false;
    const sought = inside === undefined ? this.root : (inside.sought?.below.get(String(inside.at)) ?? null);
    sought?.clear();
    if (code === OPEN_OBJECT || code === OPEN_ARRAY)
      this.open.push({ ...container(code), expectsValue: code === OPEN_ARRAY, sought, start });
    else if (sought?.isWanted === true)
      sought.keep(this.json.slice(start, this.endOfValue(code, start, end)));
  }

  /** Letters of `true`, `false` and `null` are visited one by one. */
  private endOfValue(code: number, start: number, end: number): number {
    if (code === LETTER_F) return start + "false".length;
    return code === LETTER_T || code === LETTER_N ? start + "true".length : end;
  }
}

/** A number token with so many digits, or an exponent, that a double may not hold it. Texts may look like one, and are only scanned. */
const RISKY_NUMBER = /[\s:,[-](?:[\d.]{16}|[\d.]{1,15}[eE])/;

/**
 * A number whose digits a double does not hold, as {@link parseJson} returns it: `JSON.stringify` writes the text that was sent.
 */
export interface ExactNumber {
  /** The number as it was sent. */
  readonly rawJSON: string;
}

declare global {
  // The language has these, the type definitions do not.
  interface JSON {
    rawJSON(text: string): ExactNumber;
    isRawJSON(value: unknown): boolean;
  }
}

/** Whether a value is a number that a double does not hold. */
export function isExactNumber(value: unknown): value is ExactNumber {
  return JSON.isRawJSON(value);
}

/** Whether a JSON text may have numbers that a double does not hold. Most texts without such numbers are known by that. */
export function mayHaveExactNumbers(json: string): boolean {
  // A text that is a number alone has nothing before it.
  return RISKY_NUMBER.test(json) || startsNumber(json.charCodeAt(0));
}

/** Exact numbers of one text: a megabyte of ids has 50,000, and each takes half a microsecond. */
export const EXACT_NUMBERS_MAX = 10_000;
/** Characters of a number in such a text: nobody's are longer, and a megabyte of digits takes a millisecond at each comparison. */
export const EXACT_DIGITS_MAX = 1_000;

/**
 * Parses a JSON text without loss of digits: a number that a double does not hold is an {@link ExactNumber}.
 * Only texts with such numbers take longer than `JSON.parse`, and only for them the limits of levels and values are checked.
 *
 * @throws SyntaxError when the text is not JSON; RangeError when it has more than {@link EXACT_NUMBERS_MAX} exact numbers, any
 *   among more than {@link JSON_VALUES_MAX} values or {@link JSON_LEVELS_MAX} levels, or a number of more than
 *   {@link EXACT_DIGITS_MAX} characters
 */
export function parseJson(json: string): unknown {
  if (!mayHaveExactNumbers(json)) return JSON.parse(json);
  if (findExcess(json, JSON_LEVELS_MAX) !== null) throw new RangeError(TOO_MANY_NUMBERS);
  return withDigits(json, JSON.parse(json));
}

/** The same, but of a text with too many exact numbers, the nearest doubles. @throws SyntaxError */
export function parseNearly(json: string): unknown {
  try {
    return parseJson(json);
  } catch (error) {
    if (error instanceof RangeError) return JSON.parse(json);
    throw error;
  }
}

/**
 * The same for a text that has been parsed: `value`, which is what `JSON.parse` made of it, unless the text may have numbers that a
 * double does not hold. @throws RangeError as {@link parseJson}
 */
export function withExactNumbers<T>(value: T, json: string): T {
  return mayHaveExactNumbers(json) ? (parseJson(json) as T) : value;
}

/** The path of the first {@link ExactNumber} in a value; null if there is none. */
export function findExactNumber(value: unknown): Inexactness["path"] | null {
  if (typeof value !== "object" || value === null) return null;
  if (isExactNumber(value)) return [];
  for (const [name, member] of Object.entries(value)) {
    const path = findExactNumber(member);
    if (path !== null) return [name, ...path];
  }
  return null;
}

const TOO_MANY_NUMBERS = "The text has too many numbers, or one with too many digits.";

/** What `JSON.parse` made of a container, while its text is scanned; null where a later member of the same name has replaced it. */
type Parsed = Record<string | number, unknown> | null;

/** Puts the numbers that a double does not hold into a parsed value. A reviver with source texts takes four times as long. */
function withDigits(json: string, value: unknown): unknown {
  let exact = 0;
  const root: Record<string, unknown> = { value };
  const outside: Container = { names: null, at: "value", expectsName: false };
  const open: { readonly parsed: Parsed; readonly text: Container }[] = [{ parsed: root, text: outside }];
  scanTokens(json, (code, start, end) => {
    const inside = open[open.length - 1];
    if (inside === undefined) return true;
    const { parsed, text } = inside;
    if (code === QUOTE) {
      if (text.expectsName) {
        text.at = nameOf(json.slice(start, end));
        text.expectsName = false;
      }
    } else if (startsNumber(code)) {
      const isTooLong = end - start > EXACT_DIGITS_MAX;
      if (!isTooLong && parsed !== null && keepNumber(parsed, text.at, json, start, end)) exact += 1;
      if (isTooLong || exact > EXACT_NUMBERS_MAX) throw new RangeError(TOO_MANY_NUMBERS);
    } else if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      open.push({ parsed: childOf(parsed, text.at, code), text: container(code) });
    } else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) {
      open.pop();
    } else if (code === COMMA) {
      nextMember(text);
    }
    return false;
  });
  return root["value"];
}

function childOf(parsed: Parsed, at: string | number, code: number): Parsed {
  if (parsed === null || !Object.hasOwn(parsed, at)) return null;
  const child = parsed[at];
  const isParsed = typeof child === "object" && child !== null && !JSON.isRawJSON(child);
  return isParsed && Array.isArray(child) === (code === OPEN_ARRAY) ? (child as Parsed) : null;
}

/**
 * Replaces a number that was parsed if a double does not hold it; returns whether it did. Of members with the same name the last
 * one counts: only a number with the parsed value is replaced.
 */
function keepNumber(
  parsed: NonNullable<Parsed>,
  at: string | number,
  json: string,
  start: number,
  end: number,
): boolean {
  const before = parsed[at];
  if (typeof before === "number" && isShort(json, start, end)) return false;
  if ((typeof before !== "number" && !isExactNumber(before)) || !Object.hasOwn(parsed, at)) return false;
  const source = json.slice(start, end);
  const carried = Number(source);
  if (Number(typeof before === "number" ? before : before.rawJSON) !== carried) return false;
  const isExact = !isCarried(source) && !isPrintedDouble(source);
  parsed[at] = isExact ? JSON.rawJSON(source) : carried;
  return isExact;
}

/** Order of two numbers by their texts, of any length: negative, 0 or positive. */
export function compareNumbers(left: string, right: string): number {
  const [a, b] = [readDecimal(left), readDecimal(right)];
  const [signA, signB] = [signOf(a), signOf(b)];
  if (signA !== signB) return signA - signB;
  const power = a.digits.length + a.exponent - (b.digits.length + b.exponent);
  // Neither has zeros at its ends: with the same power, the order of the digits is that of texts.
  const magnitude = power !== 0 ? power : a.digits < b.digits ? -1 : a.digits > b.digits ? 1 : 0;
  return magnitude === 0 ? 0 : signA * magnitude;
}

function signOf({ digits, isNegative }: Decimal): number {
  if (digits === "") return 0;
  return isNegative ? -1 : 1;
}

function container(code: number): Container {
  if (code === OPEN_ARRAY) return { names: null, at: 0, expectsName: false };
  return { names: new Set(), at: "", expectsName: true };
}

function nextMember(inside: Container): void {
  if (typeof inside.at === "number") inside.at += 1;
  else inside.expectsName = true;
}

function nameOf(literal: string): string {
  return literal.includes("\\") ? String(JSON.parse(literal)) : literal.slice(1, -1);
}

function enterMember(inside: Container, literal: string): string | null {
  const name = nameOf(literal);
  inside.at = name;
  inside.expectsName = false;
  if (inside.names?.has(name) === true) return "stands twice in one object";
  inside.names?.add(name);
  return null;
}

/** The position after the closing quote of the string that begins at `start`; without one, the text's end. */
export function endOfString(json: string, start: number): number {
  let end = json.indexOf('"', start + 1);
  while (end > 0 && isEscaped(json, end)) end = json.indexOf('"', end + 1);
  return end < 0 ? json.length : end + 1;
}

function isEscaped(json: string, quote: number): boolean {
  let backslashes = 0;
  while (json.charCodeAt(quote - 1 - backslashes) === BACKSLASH) backslashes += 1;
  return backslashes % 2 === 1;
}

function isDigit(code: number): boolean {
  return code >= DIGIT_0 && code <= DIGIT_9;
}

function startsNumber(code: number): boolean {
  return isDigit(code) || code === MINUS;
}

function endOfNumber(json: string, start: number): number {
  let end = start + 1;
  while (isNumberPart(json.charCodeAt(end))) end += 1;
  return end;
}

/** Digits, `.`, `e`, `E`, `+`, `-`. */
function isNumberPart(code: number): boolean {
  return isDigit(code) || code === POINT || code === 0x65 || code === 0x45 || code === 0x2b || code === MINUS;
}

/**
 * Whether a number has so few digits, and so small a power, that it is exact by that alone. Nothing is allocated: a body may have
 * tens of thousands of numbers.
 */
function isShort(json: string, start: number, end: number): boolean {
  // Digits from the first one that is not zero: zeros count once another digit follows them.
  let digits = 0;
  let zeros = 0;
  let at = start;
  for (; at < end; at += 1) {
    const code = json.charCodeAt(at);
    if (code === DIGIT_0) zeros += digits > 0 ? 1 : 0;
    else if (isDigit(code)) {
      digits += zeros + 1;
      zeros = 0;
    } else if (code !== POINT && code !== MINUS) break;
  }
  let power = 0;
  for (at += 1; at < end && power <= EXACT_EXPONENT; at += 1) {
    const code = json.charCodeAt(at);
    if (isDigit(code)) power = 10 * power + code - DIGIT_0;
  }
  // The point moves the power by less than the length.
  return digits <= EXACT_DIGITS && power + end - start <= EXACT_EXPONENT;
}

/** What is wrong with a number that a double does not hold, as the end of a sentence about it. */
export const EXACT_NUMBER_PROBLEM = "is a number that JSON readers cannot carry exactly: send it as a string";

function inexactNumber(source: string): string | null {
  return isCarried(source) ? null : EXACT_NUMBER_PROBLEM;
}

/**
 * A number is carried when the double that it becomes is written with the same decimal value: `1.0`, `1e2` and `-0`
 * are (as `1`, `100` and `0`), `12345678901234567890` and `1e400` are not.
 */
function isCarried(source: string): boolean {
  const sent = readDecimal(source);
  if (sent.digits.length <= EXACT_DIGITS && Math.abs(sent.exponent) <= EXACT_EXPONENT) return true;
  const carried = sent.digits.length > DOUBLE_DIGITS ? Number.NaN : Number(source);
  return Number.isFinite(carried) && isSameDecimal(sent, readDecimal(String(carried)));
}

/** Whether a double holds a decimal number, however it is written. Signs and zeros in front do not matter. */
export function isHeldByDouble(decimal: string): boolean {
  const source = decimal.startsWith("+") ? decimal.slice(1) : decimal;
  return isCarried(source) || isPrintedDouble(source);
}

/** Characters of a fraction with the digits of a double: a sign, a zero and a point, zeros, the digits, and an exponent. */
const PRINTED_LENGTH_MAX = 30;

/** Whether a fraction is a double in the 17 digits with which some languages write it, although fewer would do: 0.10000000000000001. */
function isPrintedDouble(source: string): boolean {
  if (source.length > PRINTED_LENGTH_MAX || !source.includes(".")) return false;
  const sent = readDecimal(source);
  if (sent.digits.length > DOUBLE_DIGITS || sent.exponent >= 0) return false;
  return isSameDecimal(sent, readDecimal(Number(source).toPrecision(DOUBLE_DIGITS)));
}

/** The value of a number as its text says it: `digits` times ten to the power of `exponent`. */
interface Decimal {
  readonly isNegative: boolean;
  /** Without zeros at either end; empty for zero. */
  readonly digits: string;
  readonly exponent: number;
}

const ZERO: Decimal = { isNegative: false, digits: "", exponent: 0 };

/** Reads a number by index: a body may have tens of thousands of them, and an expression takes several times as long. */
function readDecimal(number: string): Decimal {
  const isNegative = number.charCodeAt(0) === MINUS;
  let first = isNegative ? 1 : 0;
  let mantissaEnd = first;
  let point = -1;
  for (; mantissaEnd < number.length; mantissaEnd += 1) {
    const code = number.charCodeAt(mantissaEnd);
    if (code === POINT) point = mantissaEnd;
    else if (!isDigit(code)) break;
  }
  const power = mantissaEnd < number.length ? Number(number.slice(mantissaEnd + 1)) : 0;
  if (point < 0) point = mantissaEnd;
  while (first < mantissaEnd && isZeroOrPoint(number.charCodeAt(first))) first += 1;
  if (first === mantissaEnd) return ZERO;
  let end = mantissaEnd;
  while (isZeroOrPoint(number.charCodeAt(end - 1))) end -= 1;
  const hasPointWithin = first < point && point < end;
  return {
    isNegative,
    digits: hasPointWithin
      ? number.slice(first, point) + number.slice(point + 1, end)
      : number.slice(first, end),
    exponent: end <= point ? power + point - end : power - (end - 1 - point),
  };
}

function isZeroOrPoint(code: number): boolean {
  return code === DIGIT_0 || code === POINT;
}

function isSameDecimal(left: Decimal, right: Decimal): boolean {
  return (
    left.exponent === right.exponent && left.isNegative === right.isNegative && left.digits === right.digits
  );
}
