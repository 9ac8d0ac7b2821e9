import { compareNumbers, isExactNumber } from "../../json-text.ts";
import { invalidField } from "../errors.ts";
import { MISSING, memberAt, pointerSteps } from "./json-pointer.ts";

/** Largest filter, as JSON: it is evaluated for every message. */
export const FILTER_BYTES_MAX = 4 * 1024;
/** Levels of objects and arrays, the filter itself included. */
export const FILTER_DEPTH_MAX = 8;
/** Comparisons in one filter. */
export const FILTER_CONDITIONS_MAX = 50;

/** Whether a JSON value is one that a filter lets pass. */
export type Filter = (value: unknown) => boolean;

type Scalar = string | number | boolean | null;
type Fields = Readonly<Record<string, unknown>>;

/** Where a filter is compiled, and what it has used up so far. */
interface Place {
  readonly path: string;
  readonly depth: number;
  readonly used: { conditions: number };
}

/**
 * Makes the test that a filter describes: an object of member names, or JSON pointers, with a value to be equal to, an
 * object to descend into, or operators. `field` is what messages call it.
 *
 * @throws ApiError `validation_error` that names the place of a fault.
 */
export function compileFilter(field: string, filter: unknown): Filter {
  if (Buffer.byteLength(JSON.stringify(filter)) > FILTER_BYTES_MAX)
    throw invalidField(field, `must be at most ${FILTER_BYTES_MAX} bytes of JSON`);
  return all(filter, { path: field, depth: 1, used: { conditions: 0 } });
}

/**
 * Checks a filter before it is stored. A number of which the request's reader may have lost digits is rejected: it would be
 * compared as another one.
 *
 * @throws ApiError `validation_error` as {@link compileFilter}, and for such a number
 */
export function assertFilter(field: string, filter: unknown): void {
  compileFilter(field, filter);
  assertDigits(field, filter);
}

function assertDigits(path: string, value: unknown): void {
  if (typeof value === "number" && (Number.isInteger(value) || !Number.isFinite(value))) {
    if (Number.isSafeInteger(value)) return;
    throw invalidField(path, "is a number with more digits than JSON readers keep: send it as a text");
  }
  if (typeof value !== "object" || value === null) return;
  for (const [name, member] of Object.entries(value)) assertDigits(`${path}.${name}`, member);
}

/** Every member of an object holds. */
function all(value: unknown, place: Place): Filter {
  const { path } = place;
  if (!isFields(value)) throw invalidField(path, "must be an object");
  if (place.depth > FILTER_DEPTH_MAX)
    throw invalidField(path, `is nested deeper than ${FILTER_DEPTH_MAX} levels`);
  const parts = Object.entries(value).map(([name, wanted]) => part(name, wanted, inside(place, name)));
  return (value) => parts.every((holds) => holds(value));
}

function part(name: string, wanted: unknown, place: Place): Filter {
  if (name === "$not") {
    const holds = all(wanted, place);
    return (value) => !holds(value);
  }
  if (name === "$or" || name === "$and") {
    const holds = listed(wanted, place).map((alternative, at) => all(alternative, inside(place, String(at))));
    return name === "$or"
      ? (value) => holds.some((matches) => matches(value))
      : (value) => holds.every((matches) => matches(value));
  }
  if (name.startsWith("$")) throw invalidField(place.path, "is not an operator that is allowed here");
  const steps = name.startsWith("/") ? stepsOf(name, place) : [name];
  const holds = memberTest(wanted, place);
  return (value) => holds(memberAt(value, steps));
}

/** What a member has to be. */
function memberTest(wanted: unknown, place: Place): Filter {
  if (isScalar(wanted)) return comparison("$eq", wanted, place);
  if (!isFields(wanted)) throw invalidField(place.path, "must be a scalar, an object or operators");
  const names = Object.keys(wanted);
  const isOperators = names.some((name) => Object.hasOwn(OPERATORS, name));
  if (!isOperators) {
    const holds = all(wanted, place);
    return (value) => isFields(value) && holds(value);
  }
  if (place.depth > FILTER_DEPTH_MAX)
    throw invalidField(place.path, `is nested deeper than ${FILTER_DEPTH_MAX} levels`);
  const tests = names.map((name) => comparison(name, wanted[name], inside(place, name)));
  return (value) => tests.every((holds) => holds(value));
}

function comparison(operator: string, wanted: unknown, place: Place): Filter {
  place.used.conditions += 1;
  if (place.used.conditions > FILTER_CONDITIONS_MAX)
    throw invalidField(place.path, `is condition ${FILTER_CONDITIONS_MAX + 1}: that is one too many`);
  const make = Object.hasOwn(OPERATORS, operator) ? OPERATORS[operator] : undefined;
  if (make === undefined) throw invalidField(place.path, "is not an operator that is allowed here");
  return make(wanted, place);
}

/** Operators on a member. A missing one satisfies `$exists: false`, `$ne` and `$nin` alone. */
const OPERATORS: Readonly<Record<string, (wanted: unknown, place: Place) => Filter>> = {
  $eq: (wanted, place) => equals(scalar(wanted, place)),
  $ne: (wanted, place) => negated(equals(scalar(wanted, place))),
  $in: (wanted, place) => isAmong(wanted, place),
  $nin: (wanted, place) => negated(isAmong(wanted, place)),
  $gt: (wanted, place) => ordered(wanted, place, (order) => order > 0),
  $gte: (wanted, place) => ordered(wanted, place, (order) => order >= 0),
  $lt: (wanted, place) => ordered(wanted, place, (order) => order < 0),
  $lte: (wanted, place) => ordered(wanted, place, (order) => order <= 0),
  $exists: (wanted, { path }) => {
    if (typeof wanted !== "boolean") throw invalidField(path, "must be true or false");
    return (value) => (value !== MISSING) === wanted;
  },
  $startsWith: (wanted, place) => textTest(wanted, place, (value, part) => value.startsWith(part)),
  $endsWith: (wanted, place) => textTest(wanted, place, (value, part) => value.endsWith(part)),
};

function negated(holds: Filter): Filter {
  return (value) => !holds(value);
}

/** An array is equal to what it contains, and a number with more digits than a double holds to the text of its digits. */
function equals(wanted: Scalar): Filter {
  return (value) =>
    value === wanted ||
    (Array.isArray(value) ? contains(value, wanted) : isExactNumber(value) && value.rawJSON === wanted);
}

/** An element of an array as it is compared: see {@link equals}. */
function comparable(value: unknown): unknown {
  return isExactNumber(value) ? value.rawJSON : value;
}

/** Elements of an array that are looked through each time: to make a set of so few takes longer. */
const FEW_ELEMENTS = 16;
/** What longer arrays contain, as long as they are in use: a thousand filters with fifty comparisons each may look at one. */
const CONTENTS = new WeakMap<readonly unknown[], ReadonlySet<unknown>>();

function contains(array: readonly unknown[], wanted: unknown): boolean {
  if (array.length <= FEW_ELEMENTS) return array.some((element) => comparable(element) === wanted);
  let contents = CONTENTS.get(array);
  if (contents === undefined) {
    contents = new Set(array.map(comparable));
    CONTENTS.set(array, contents);
  }
  return contents.has(wanted);
}

function isAmong(wanted: unknown, place: Place): Filter {
  const list = listed(wanted, place).map((element, at) => scalar(element, inside(place, String(at))));
  const among = new Set<unknown>(list);
  return (value) => {
    if (!Array.isArray(value)) return among.has(comparable(value));
    return value.length <= FEW_ELEMENTS
      ? value.some((element) => among.has(comparable(element)))
      : list.some((element) => contains(value, element));
  };
}

/** Numbers are compared with numbers, texts with texts; nothing else has an order. Exact numbers also with texts of digits. */
function ordered(wanted: unknown, { path }: Place, holds: (order: number) => boolean): Filter {
  if (typeof wanted !== "number" && typeof wanted !== "string")
    throw invalidField(path, "must be a number or a text");
  return (value) => {
    if (isExactNumber(value)) {
      const other = numberText(wanted);
      return other !== null && holds(compareNumbers(value.rawJSON, other));
    }
    if (typeof value !== typeof wanted) return false;
    const [left, right] = [value as typeof wanted, wanted];
    return holds(left < right ? -1 : left > right ? 1 : 0);
  };
}

/** The text of a number, or a text that is one; null for others. */
function numberText(wanted: number | string): string | null {
  if (typeof wanted === "number") return String(wanted);
  return NUMBER.test(wanted) ? wanted : null;
}

const NUMBER = /^-?\d{1,400}(?:\.\d{1,400})?$/;

function textTest(wanted: unknown, { path }: Place, holds: (value: string, part: string) => boolean): Filter {
  if (typeof wanted !== "string") throw invalidField(path, "must be a text");
  return (value) => typeof value === "string" && holds(value, wanted);
}

/** The names in a JSON pointer. */
function stepsOf(pointer: string, { path }: Place): string[] {
  const steps = pointerSteps(pointer);
  if (steps === null) throw invalidField(path, "is not a JSON pointer: ~ must be followed by 0 or 1");
  return steps;
}

function listed(value: unknown, { path, depth }: Place): readonly unknown[] {
  if (!Array.isArray(value) || value.length === 0) throw invalidField(path, "must be a list, not empty");
  if (depth > FILTER_DEPTH_MAX) throw invalidField(path, `is nested deeper than ${FILTER_DEPTH_MAX} levels`);
  return value;
}

function scalar(value: unknown, { path }: Place): Scalar {
  if (isScalar(value)) return value;
  throw invalidField(path, "must be a text, a number, true, false or null");
}

function inside({ path, depth, used }: Place, name: string): Place {
  return { path: `${path}.${name}`, depth: depth + 1, used };
}

function isScalar(value: unknown): value is Scalar {
  return value === null || ["string", "number", "boolean"].includes(typeof value);
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isExactNumber(value);
}
