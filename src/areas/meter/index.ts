import type { ApiArea } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { COUNTED_MAX, figures, type OverviewCard } from "../../kernel/overview-card.ts";
import type { ProjectResources } from "../../kernel/project-resources.ts";
import { meterRoutes } from "./routes.ts";
import { MeterService } from "./service.ts";
import { meterStore } from "./store.ts";

/** What meters offer to the rest of the house. */
export interface MeterArea extends ApiArea {
  /** The tenant meters in projects. */
  readonly resources: ProjectResources;
  readonly card: OverviewCard;
  /** Writes every balance down. For the end of the process. */
  readonly finish: () => Promise<void>;
}

/** Builds the area: a meter for each end user or tenant of a project. */
export function createMeter(kernel: Kernel): MeterArea {
  const service = new MeterService(meterStore(kernel.db), kernel);
  return {
    parts: [
      {
        name: "Meter",
        description:
          "The account's own credit balance, and a meter for each of your end users or tenants: atomic deduct, refill and reset, with a ledger of every change.",
      },
    ],
    alsoCalled: { meter: ["usage", "credits"], deduct: ["consume"], refill: ["add", "top-up"] },
    routes: (api) => meterRoutes(api, service),
    resources: {
      name: "meters",
      count: (projectRef) => service.count(projectRef),
      removeRows: (tx, projectRef, rowsMax) => service.removeRows(tx, projectRef, rowsMax),
    },
    card: {
      area: "meter",
      schema: figures(["balance", "meters"]),
      read: ({ account, project }) => ({
        balance: account.balance,
        meters: service.countTo(project.ref, COUNTED_MAX),
      }),
    },
    finish: () => service.finish(),
  };
}
