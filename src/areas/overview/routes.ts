import { type TObject, Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { type Caller, hasScope } from "../../kernel/callers/caller.ts";
import { named } from "../../kernel/data/schema.ts";
import type { Api } from "../../kernel/http/api.ts";
import { COUNTED_MAX, type OverviewCard, type RecentList } from "../../kernel/projects/overview-card.ts";
import type { Clock } from "../../kernel/time/clock.ts";

/** Number of audit entries in an overview. */
const RECENT_MAX = 10;

/** The parts of an overview. */
export interface OverviewDeps {
  readonly cards: readonly OverviewCard[];
  readonly recent: RecentList;
  /** The number of open incidents in the caller's project, and the area that counts them. */
  readonly incidents: { readonly area: string; readonly open: (caller: Caller) => number };
}

/** Declares the overview. */
export function overviewRoutes(api: Api, deps: OverviewDeps, clock: Clock) {
  return new Elysia({ tags: ["Overview"] }).get(
    "/v1/overview",
    api.endpoint(
      {
        name: "overview.read",
        access: "any",
        summary: "Get a summary of all areas",
        description: `One object per area that the key can read. Counts end at ${COUNTED_MAX}.`,
        query: OverviewQuery,
        response: overviewSchema(deps),
      },
      ({ call, query }) => overviewOf(deps, call.caller, clock.now(), query.details === true),
    ),
  );
}

const OverviewQuery = Type.Object(
  {
    details: Type.Optional(
      Type.Boolean({
        description:
          "Whether to add what needs attention: open incidents, the monitors with the lowest uptime, and where deliveries and events fail.",
      }),
    ),
  },
  { $id: "OverviewQuery" },
);

function overviewOf(
  { cards, recent, incidents }: OverviewDeps,
  caller: Caller,
  now: number,
  isDetailed: boolean,
) {
  const mayRead = (area: string) => hasScope(caller, `${area}:read`);
  return {
    ...Object.fromEntries(
      cards
        .filter((card) => card.mayRead?.(caller) ?? mayRead(card.area))
        .map((card) => [
          card.area,
          { ...card.read(caller, now), ...(isDetailed ? card.details?.(caller, now) : {}) },
        ]),
    ),
    at: now,
    incidents_open: mayRead(incidents.area) ? incidents.open(caller) : 0,
    recent: mayRead(recent.area) ? [...recent.read(caller, RECENT_MAX)] : [],
  };
}

function overviewSchema({ cards, recent }: OverviewDeps): TObject {
  const areas = Object.fromEntries(cards.map(({ area, schema }) => [area, Type.Optional(schema)]));
  return named("Overview", {
    ...areas,
    at: Type.Integer({ description: "Time of the server, in epoch milliseconds." }),
    incidents_open: Type.Integer({ description: "Number of open incidents of the project.", examples: [0] }),
    recent: Type.Array(recent.item, { description: "Latest entries of the audit log." }),
  });
}
