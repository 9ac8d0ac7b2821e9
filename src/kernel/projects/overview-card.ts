import { type TObject, type TSchema, Type } from "@sinclair/typebox";
import type { Caller } from "../callers/caller.ts";
import { dateTime, orNull } from "../data/schema.ts";

/** Maximum that an overview counts to, so that counting stays fast. */
export const COUNTED_MAX = 10_000;

/** The summary of an area in the overview. */
export interface OverviewCard {
  /** Name of the area, as in its scopes. */
  readonly area: string;
  readonly schema: TObject;
  /** Who may see it, if not everyone with the read scope of the area. */
  readonly mayRead?: (caller: Caller) => boolean;
  /** The numbers of the caller's project or account. Takes a few milliseconds at most. */
  read(caller: Caller, now: number): object;
  /** What needs attention, for a person: further fields of the card. Takes a few milliseconds at most. */
  details?(caller: Caller, now: number): object;
}

/** The latest entries of a list, for whom may read them. */
export interface RecentList {
  readonly area: string;
  readonly item: TSchema;
  read(caller: Caller, itemsMax: number): readonly object[];
}

/** The schema of a card: its counts by name, and other fields. */
export function countsSchema(names: readonly string[], more: Record<string, TSchema> = {}): TObject {
  const numbers = names.map((name) => [name, Type.Integer({ examples: [3] })]);
  return Type.Object({ ...Object.fromEntries(numbers), ...more });
}

/** The schema of the time of the oldest pending item; null if none is pending. */
export function waitingSince(description: string): TSchema {
  return orNull(dateTime(), { description });
}
