import { Type } from "@sinclair/typebox";
import { oneOf } from "../../kernel/data/schema.ts";
import { registerErrorFields } from "../../kernel/errors.ts";
import type { ApiArea } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { AreaExport } from "../../kernel/projects/account-export.ts";
import { COUNTED_MAX, countsSchema, type OverviewCard } from "../../kernel/projects/overview-card.ts";
import type { ProjectResources } from "../../kernel/projects/resources.ts";
import { StoppedProjects } from "../../kernel/projects/stopped-projects.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { meterExport } from "./export.ts";
import { DueWork } from "./holds/due.ts";
import { HOLD_RETENTION_MS, type HoldResult, HoldService } from "./holds/holds.ts";
import { HoldBody, type MeterHold, PositiveAmount } from "./holds/schema.ts";
import { PlanService } from "./plans/plans.ts";
import type { MeterDeps } from "./ports.ts";
import { meterRoutes } from "./routes.ts";
import { MeterParams } from "./schema.ts";
import { MeterService } from "./service.ts";
import { type MeterRow, meterStore } from "./store.ts";
import { UsageReader } from "./usage/reader.ts";
import { UsageService } from "./usage/usage.ts";

registerErrorFields({
  status: oneOf(["captured", "released", "expired"], {
    description: "With `conflict` for a hold that is no longer open: its status.",
  }),
  held: Type.Integer({ description: "With `conflict` for a reset: credits in open holds." }),
});

/** Balances of a meter, in credits. */
export interface MeterBalances {
  readonly balance: number;
  /** Balance minus open holds. */
  readonly available: number;
}

/** Terms of a requested hold. */
export type HoldTerms = Pick<HoldBody, "amount" | "ttl_seconds" | "hold_id"> & { readonly meter_id: string };

const { ttl_seconds, hold_id } = HoldBody.properties;
const FIELDS = { amount: PositiveAmount, meter_id: MeterParams.properties.meterId, ttl_seconds, hold_id };

/** Operations of meters for units of work of other areas, which succeed or fail with the unit. */
export interface MetersInUnit {
  /** Returns the balances after due refills and expiries; null for a meter that does not exist. */
  available(tx: Tx, projectRef: number, meterId: string): MeterBalances | null;
  /** Returns the new balance. @throws ApiError `insufficient_balance`, `invalid_request`. */
  deduct(tx: Tx, projectRef: number, meterId: string, amount: number, requestId: string): number;
  /**
   * Returns the open hold with the same terms, for which {@link hold} would take nothing.
   * @throws ApiError `conflict` if the hold has other terms or is no longer open.
   */
  findOpenHold(tx: Tx, projectRef: number, terms: HoldTerms): MeterHold | null;
  /** Schemas of the terms. */
  readonly fields: typeof FIELDS;
  /** @throws ApiError `insufficient_balance`; `conflict`; `forbidden` at the limit of open holds. */
  hold(tx: Tx, projectRef: number, terms: HoldTerms, requestId: string): HoldResult;
}

/** Interface of meters to the rest of the server. */
export interface MeterArea extends ApiArea {
  /** Tenant meters of projects. */
  readonly resources: ProjectResources;
  readonly exported: AreaExport;
  readonly card: OverviewCard;
  readonly inUnit: MetersInUnit;
  /** Starts background work. */
  readonly start: () => void;
  /** Writes all balances at the end of the process. */
  readonly finish: () => Promise<void>;
}

/** Creates the area: a meter for each end user or tenant of a project. */
export function createMeter(kernel: Kernel, deps: MeterDeps): MeterArea {
  const store = meterStore(kernel.db);
  const service = new MeterService(store, kernel);
  const stopped = new StoppedProjects(kernel.db, "meter_stopped_projects");
  const due = new DueWork(store, service.book, stopped, deps.projects, kernel);
  const holds = new HoldService(store.holds, service, due, kernel);
  const plans = new PlanService(store.plans, service.book, due, deps);
  const reader = new UsageReader(store.usage, kernel, service.book.recent);
  const usage = new UsageService(store.usage, reader, service.book, kernel);
  service.book.listeners = { low: (tx, meter) => plans.low(tx, meter), flushed: () => reader.changed() };
  kernel.housekeeping.addPurge({
    name: "meter.holds.purge",
    rowsMax: 250,
    remove: (tx, rowsMax) => store.holds.removeEnded(tx, tx.now - HOLD_RETENTION_MS, rowsMax),
  });
  return {
    parts: [
      {
        name: "Meter",
        description:
          "The account balance, and a meter for each of your end users or tenants: atomic deduct, refill and reset, holds, recurring refills and alerts, with a ledger of every change.",
      },
    ],
    alsoCalled: {
      meter: ["usage", "credits"],
      deduct: ["consume"],
      refill: ["add", "top-up"],
      holds: ["reserve", "reservations"],
      plan: ["grants", "recurring"],
    },
    routes: (api) => meterRoutes(api, { meters: service, holds, plans, usage, charger: deps.charger }),
    exported: meterExport((row) => service.book.stored(row as unknown as MeterRow)),
    resources: resourcesOf(service, plans, stopped),
    card: {
      area: "meter",
      schema: countsSchema(["balance", "monthly_credits", "meters"]),
      read: ({ account, project }) => ({
        balance: account.balance,
        monthly_credits: deps.tiers[account.tier].monthlyCredits,
        meters: service.countTo(project.ref, COUNTED_MAX),
      }),
    },
    inUnit: inUnit(service, holds),
    start: () => reader.changed(),
    finish: async () => {
      await reader.stop();
      await service.finish();
    },
  };
}

function resourcesOf(service: MeterService, plans: PlanService, stopped: StoppedProjects): ProjectResources {
  return {
    name: "meters",
    count: (projectRef) => service.countTo(projectRef, COUNTED_MAX),
    projectDeleted(tx, projectRef) {
      stopped.stop(tx, projectRef);
      plans.forget(tx, projectRef);
    },
    removeRows(tx, projectRef, rowsMax) {
      const removed = service.removeRows(tx, projectRef, rowsMax);
      if (removed < rowsMax) stopped.forget(tx, projectRef);
      return removed;
    },
  };
}

function inUnit(service: MeterService, holds: HoldService): MetersInUnit {
  const limitsOf = (tx: Tx, projectRef: number, meterId: string): MeterBalances | null => {
    const meter = service.book.current(tx, { projectRef, meterId });
    if (meter === undefined) return null;
    const { balance, available } = service.stateOf(meter, meterId, tx.now);
    return { balance, available };
  };
  const bodyOf = ({ meter_id, ...body }: HoldTerms): HoldBody => body;
  return {
    fields: FIELDS,
    available: limitsOf,
    deduct: (tx, projectRef, meterId, amount, requestId) =>
      service.deduct(tx, { projectRef, meterId, requestId }, amount).balance,
    findOpenHold: (tx, projectRef, terms) =>
      holds.findOpen(tx, { projectRef, meterId: terms.meter_id, requestId: "" }, bodyOf(terms)),
    hold: (tx, projectRef, terms, requestId) =>
      holds.create(tx, { projectRef, meterId: terms.meter_id, requestId }, bodyOf(terms)),
  };
}
