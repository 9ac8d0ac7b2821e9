import type { AuditChange, Fields } from "../storage/tx.ts";

/** A change of something that was there before; null when no field differs. */
export function changed(change: AuditChange): AuditChange | null {
  const { before, after } = change;
  return before !== null && after !== null && Object.keys(difference(before, after)).length === 0
    ? null
    : change;
}

/** The fields of `changed` that differ from those of `original`; a field that only `original` has is null. */
export function difference(changed: Fields, original: Fields): Fields {
  const names = Object.keys({ ...changed, ...original });
  const differing = names.filter((name) => !Bun.deepEquals(changed[name] ?? null, original[name] ?? null));
  return Object.fromEntries(differing.map((name) => [name, changed[name] ?? null]));
}
