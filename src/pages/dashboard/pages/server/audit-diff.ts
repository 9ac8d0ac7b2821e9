import { diffLines, diffWordsWithSpace } from "diff";

/** The changed fields of one side of an entry; null for none. */
export type Side = Readonly<Record<string, unknown>> | null;

/** A piece of a value that stayed, was removed or was added. */
export interface Part {
  readonly value: string;
  readonly removed: boolean;
  readonly added: boolean;
}

/** A field that differs, with the pieces of its values; that of an object inside is named by its path. */
export interface FieldChange {
  readonly name: string;
  readonly parts: readonly Part[];
}

/** Values that differ in more places are shown one after the other: comparing them takes quadratic time. */
const LIMIT = { maxEditLength: 200 };

/** The fields that differ between two sides. Ids of `names` are replaced by their names. */
export function changedFields(
  before: Side,
  after: Side,
  names: ReadonlyMap<string, string> = new Map(),
): FieldChange[] {
  return fieldsOf(named(before, names), named(after, names), "");
}

function named(side: Side, names: ReadonlyMap<string, string>): object {
  const text = JSON.stringify(side ?? {}, (_, value) => names.get(value) ?? value);
  return JSON.parse(text) as object;
}

function fieldsOf(before: object, after: object, path: string): FieldChange[] {
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  return keys.flatMap((key) => {
    const [old, now]: readonly unknown[] = [Reflect.get(before, key), Reflect.get(after, key)];
    const name = path + key;
    if (isFields(old) && isFields(now)) return fieldsOf(old, now, `${name}.`);
    // A field without a value is one that is absent.
    const isSame = JSON.stringify(old ?? null) === JSON.stringify(now ?? null);
    return isSame ? [] : { name, parts: partsOf(old, now) };
  });
}

function isFields(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function partsOf(old: unknown, now: unknown): readonly Part[] {
  if (typeof old === "string" && typeof now === "string")
    return diffWordsWithSpace(old, now, LIMIT) ?? whole(old, now);
  if (Array.isArray(old) && Array.isArray(now))
    return diffLines(textOf(old), textOf(now), LIMIT) ?? whole(old, now);
  return whole(old, now);
}

function whole(old: unknown, now: unknown): Part[] {
  return [
    ...(old === undefined
      ? []
      : [{ value: textOf(old) || JSON.stringify(old), removed: true, added: false }]),
    ...(now === undefined
      ? []
      : [{ value: textOf(now) || JSON.stringify(now), removed: false, added: true }]),
  ];
}

/** A value as text; a list with a line for each of its items. */
function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (!Array.isArray(value)) return JSON.stringify(value, null, 2);
  return value.map((item) => `${textOf(item)}\n`).join("");
}
