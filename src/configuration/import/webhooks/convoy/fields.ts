import { type SourceObject, shown } from "../../source.ts";

/** Fields of all objects that are state. */
export const STATE = ["uid", "project_id", "group_id", "created_at", "updated_at", "deleted_at"];

/** Seconds, as a number or as earlier versions wrote them: `10s`. A text that is no duration is noted, and 0. */
export function seconds(source: SourceObject, field: string): number {
  const value = source.any(field);
  if (typeof value !== "string") return source.number(field) ?? 0;
  const [, amount, unit] = /^(\d{1,6})(s|m|h)?$/.exec(value) ?? [];
  if (amount === undefined) source.note(field, `${shown(value)} is no duration`);
  return Number(amount ?? 0) * (unit === "m" ? 60 : unit === "h" ? 3_600 : 1);
}
