import type { Caller } from "../../kernel/http/access/caller.ts";
import { COUNTED_MAX, figures, type OverviewCard } from "../../kernel/projects/overview-card.ts";
import type { KeyStore } from "./store.ts";

/** A key that ends within this time is worth a look. */
const ENDING_SOON_MS = 7 * 24 * 60 * 60 * 1000;

/** What keys show of themselves at a glance: those that the caller sees. */
export function keyCard(store: KeyStore): OverviewCard {
  return {
    area: "keys",
    schema: figures(["total", "ending_soon"]),
    read: ({ account, project, projectBound }: Caller, now) => {
      const soon = now + ENDING_SOON_MS;
      return projectBound
        ? {
            total: store.countOfProject(project.ref),
            ending_soon: store.endingInProject(project.ref, now, soon),
          }
        : {
            total: store.kept(account.ref),
            ending_soon: store.endingBetween(account.ref, now, soon, COUNTED_MAX),
          };
    },
  };
}
