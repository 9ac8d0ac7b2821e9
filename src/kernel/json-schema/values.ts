import { compareNumbers, type ExactNumber, isExactNumber } from "../../json-text.ts";

/** A number of a JSON text. */
export type JsonNumber = number | ExactNumber;

/** Whether a value is a number, of any length. */
export function isNumber(value: unknown): value is JsonNumber {
  return typeof value === "number" || isExactNumber(value);
}

function textOf(number: JsonNumber): string {
  return typeof number === "number" ? String(number) : number.rawJSON;
}

/** Order of two numbers: negative, 0 or positive. */
export function compared(left: JsonNumber, right: JsonNumber): number {
  if (typeof left === "number" && typeof right === "number") return left - right;
  return compareNumbers(textOf(left), textOf(right));
}

/** Whether a number has no fraction. */
export function isWhole(number: JsonNumber): boolean {
  return typeof number === "number" ? Number.isInteger(number) : decimalOf(number).exponent >= 0;
}

/** Whether a number is a multiple of another one above 0, by their decimal digits: 19.99 is one of 0.01. */
export function isMultiple(number: JsonNumber, of: JsonNumber): boolean {
  if (Number.isSafeInteger(number) && Number.isSafeInteger(of)) return Number(number) % Number(of) === 0;
  const [dividend, divisor] = [decimalOf(number), decimalOf(of)];
  if (dividend.digits === 0n) return true;
  const power = dividend.exponent - divisor.exponent;
  if (power >= 0) return (dividend.digits * powerModulo(power, divisor.digits)) % divisor.digits === 0n;
  // Without zeros at its end, it is no multiple of a power of ten.
  return false;
}

/** Ten to a power, modulo a number: powers of numbers may be written with many digits. */
function powerModulo(power: number, modulus: bigint): bigint {
  let result = 1n % modulus;
  let base = 10n % modulus;
  for (let rest = BigInt(power); rest > 0n; rest >>= 1n) {
    if ((rest & 1n) === 1n) result = (result * base) % modulus;
    base = (base * base) % modulus;
  }
  return result;
}

/** A number as `digits` times ten to the power of `exponent`, without zeros at the end of the digits. */
function decimalOf(number: JsonNumber): { digits: bigint; exponent: number } {
  const [mantissa = "", power = "0"] = textOf(number).toLowerCase().split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  const all = `${whole}${fraction}`;
  let end = all.length;
  while (end > 1 && all[end - 1] === "0") end -= 1;
  const kept = all.slice(0, end);
  const digits = BigInt(kept === "-" ? "0" : kept);
  return { digits, exponent: digits === 0n ? 0 : Number(power) - fraction.length + all.length - end };
}

/** A text that two values share if they are equal, whatever the order of members and the form of numbers. */
export function canonicalText(value: unknown): string {
  if (isExactNumber(value)) {
    const { digits, exponent } = decimalOf(value);
    return `${digits}e${exponent}`;
  }
  // -0 is 0.
  if (typeof value === "number") return String(value + 0);
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(",")}]`;
  const members = Object.entries(value).map(
    ([name, member]) => `${JSON.stringify(name)}:${canonicalText(member)}`,
  );
  return `{${members.sort().join(",")}}`;
}

/** Number of values within a value, itself included, up to a limit. */
export function sizeOf(value: unknown, limit: number): number {
  if (typeof value === "string") return 1 + Math.floor(value.length / 1_024);
  if (typeof value !== "object" || value === null || isExactNumber(value)) return 1;
  let size = 1;
  for (const member of Array.isArray(value) ? value : Object.values(value)) {
    size += sizeOf(member, limit - size);
    if (size > limit) break;
  }
  return size;
}
