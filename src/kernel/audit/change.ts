import type { AuditChange, Fields } from "../storage/tx.ts";

/** A change of something that was there before; null when no field differs. */
export function changed(change: AuditChange): AuditChange | null {
  const { before, after } = change;
  return before !== null && after !== null && Object.keys(difference(before, after)).length === 0
    ? null
    : change;
}

/** The fields of `one` that differ from those of `other`; a field that only `other` has is null. */
export function difference(one: Fields, other: Fields): Fields {
  const names = Object.keys({ ...one, ...other });
  const differing = names.filter((name) => !Bun.deepEquals(one[name] ?? null, other[name] ?? null));
  return Object.fromEntries(differing.map((name) => [name, one[name] ?? null]));
}
