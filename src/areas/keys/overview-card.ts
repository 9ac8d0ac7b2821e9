import type { Caller } from "../../kernel/callers/caller.ts";
import { COUNTED_MAX, countsSchema, type OverviewCard } from "../../kernel/projects/overview-card.ts";
import { DAY_MS } from "../../kernel/time/units.ts";
import type { KeyStore } from "./store.ts";

/** A key that expires within this time is counted in `ending_soon`. */
const EXPIRING_SOON_MS = 7 * DAY_MS;

/** Keys that are looked at to count those that are not revoked: some milliseconds, read from an index. */
export const KEYS_SCANNED_MAX = 100_000;

/** The keys' part of the overview: counts of the keys that the caller can see. */
export function keyCard(store: KeyStore): OverviewCard {
  return {
    area: "keys",
    schema: countsSchema(["total", "ending_soon"]),
    read: ({ account, project, projectBound }: Caller, now) => {
      const soon = now + EXPIRING_SOON_MS;
      return projectBound
        ? {
            total: store.countOfProject(project.ref, KEYS_SCANNED_MAX, COUNTED_MAX),
            ending_soon: store.expiringInProject(account.ref, now, soon, COUNTED_MAX, project.ref),
          }
        : {
            total: store.tierCountOf(account.ref),
            ending_soon: store.expiringBetween(account.ref, now, soon, COUNTED_MAX),
          };
    },
  };
}
