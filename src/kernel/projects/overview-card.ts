import { type TObject, type TSchema, Type } from "@sinclair/typebox";
import { orNull } from "../data/schema.ts";
import type { Caller } from "../http/access/caller.ts";

/** Rows that are counted at most for an overview: more are as good as that many, and nobody waits for their counting. */
export const COUNTED_MAX = 10_000;

/** What an area shows of itself at a glance. */
export interface OverviewCard {
  /** As its scopes call it. */
  readonly area: string;
  readonly schema: TObject;
  /** Who sees it, where that is not who may read the area. */
  readonly mayRead?: (caller: Caller) => boolean;
  /** The figures of the caller's project, or account; a few milliseconds at most. */
  read(caller: Caller, now: number): object;
}

/** The latest entries of a list, for whom may read them. */
export interface RecentList {
  readonly area: string;
  readonly item: TSchema;
  read(caller: Caller, itemsMax: number): readonly object[];
}

/** The schema of a card: its whole numbers by their names, and what else it has. */
export function countsSchema(names: readonly string[], more: Record<string, TSchema> = {}): TObject {
  const numbers = names.map((name) => [name, Type.Integer({ examples: [3] })]);
  return Type.Object({ ...Object.fromEntries(numbers), ...more });
}

/** The schema of the moment since when something waits; null while nothing does. */
export function waitingSince(description: string): TSchema {
  return orNull(Type.String({ format: "date-time" }), { description });
}
