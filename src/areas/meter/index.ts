import { Type } from "@sinclair/typebox";
import { oneOf } from "../../kernel/data/schema.ts";
import { registerErrorFields } from "../../kernel/errors.ts";
import type { ApiArea } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { COUNTED_MAX, countsSchema, type OverviewCard } from "../../kernel/projects/overview-card.ts";
import type { ProjectResources } from "../../kernel/projects/resources.ts";
import { StoppedProjects } from "../../kernel/projects/stopped-projects.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { DueWork } from "./holds/due.ts";
import { HOLDS_KEPT_MS, type HoldMade, HoldService } from "./holds/holds.ts";
import { HoldBody, type MeterHold, PositiveAmount } from "./holds/schema.ts";
import { TermsService } from "./plans/plans.ts";
import type { MeterPorts } from "./ports.ts";
import { meterRoutes } from "./routes.ts";
import { MeterParams } from "./schema.ts";
import { MeterService } from "./service.ts";
import { meterStore } from "./store.ts";
import { UsageReader } from "./usage/reader.ts";
import { UsageService } from "./usage/usage.ts";

registerErrorFields({
  status: oneOf(["captured", "released", "expired"], {
    description: "With `conflict` of a hold that is no longer open: what became of it.",
  }),
  held: Type.Integer({ description: "With `conflict` of a reset: credits in open holds." }),
});

/** What is available of a meter. */
export interface MeterFigures {
  readonly balance: number;
  /** The balance without what is held. */
  readonly available: number;
}

/** A hold that is asked for. */
export type HoldTerms = Pick<HoldBody, "amount" | "ttl_seconds" | "hold_id"> & { readonly meter_id: string };

const { ttl_seconds, hold_id } = HoldBody.properties;
const FIELDS = { amount: PositiveAmount, meter_id: MeterParams.properties.meterId, ttl_seconds, hold_id };

/** Meters within a unit of work of somebody else: what it takes is taken with all else that the unit does, or not at all. */
export interface MetersInUnit {
  /** Null for a meter that does not exist. What is over has ended then, and what is due was refilled. */
  available(tx: Tx, projectRef: number, meterId: string): MeterFigures | null;
  /** @throws ApiError `insufficient_balance`, `invalid_request`. */
  deduct(tx: Tx, projectRef: number, meterId: string, amount: number, requestId: string): MeterFigures;
  /**
   * The open hold that was made with the same terms: asked for again, {@link hold} would take nothing.
   * @throws ApiError `conflict` where it was made with other terms, or has ended.
   */
  findOpenHold(tx: Tx, projectRef: number, terms: HoldTerms): MeterHold | null;
  /** The schemas of what is asked for. */
  readonly fields: typeof FIELDS;
  /** @throws ApiError `insufficient_balance`; `conflict`; `forbidden` past the bound of open holds. */
  hold(tx: Tx, projectRef: number, terms: HoldTerms, requestId: string): HoldMade;
}

/** What meters offer to the rest of the house. */
export interface MeterArea extends ApiArea {
  /** The tenant meters in projects. */
  readonly resources: ProjectResources;
  readonly card: OverviewCard;
  readonly inUnit: MetersInUnit;
  /** Begins the work in the background. */
  readonly start: () => void;
  /** Writes every balance down. For the end of the process. */
  readonly finish: () => Promise<void>;
}

/** Builds the area: a meter for each end user or tenant of a project. */
export function createMeter(kernel: Kernel, ports: MeterPorts): MeterArea {
  const store = meterStore(kernel.db);
  const service = new MeterService(store, kernel);
  const stopped = new StoppedProjects(kernel.db, "meter_stopped_projects");
  const due = new DueWork(store, service.book, stopped, ports.projects, kernel);
  const holds = new HoldService(store.holds, service, due, kernel);
  const terms = new TermsService(store.terms, service.book, due, ports);
  const reader = new UsageReader(store.usage, kernel);
  const usage = new UsageService(store.usage, reader, service.book, kernel);
  service.book.listeners = { low: (tx, meter) => terms.low(tx, meter), flushed: () => reader.changed() };
  kernel.housekeeping.addPurge({
    name: "meter.holds.purge",
    rowsMax: 250,
    remove: (tx, rowsMax) => store.holds.removeEnded(tx, tx.now - HOLDS_KEPT_MS, rowsMax),
  });
  return {
    parts: [
      {
        name: "Meter",
        description:
          "The account's own credit balance, and a meter for each of your end users or tenants: atomic deduct, refill and reset, holds, recurring refills, alerts, with a ledger of every change.",
      },
    ],
    alsoCalled: {
      meter: ["usage", "credits"],
      deduct: ["consume"],
      refill: ["add", "top-up"],
      holds: ["reserve", "reservations"],
      plan: ["grants", "recurring"],
    },
    routes: (api) => meterRoutes(api, { meters: service, holds, terms, usage, charger: ports.charger }),
    resources: resourcesOf(service, terms, stopped),
    card: {
      area: "meter",
      schema: countsSchema(["balance", "monthly_credits", "meters"]),
      read: ({ account, project }) => ({
        balance: account.balance,
        monthly_credits: ports.tiers[account.tier].monthlyCredits,
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

function resourcesOf(service: MeterService, terms: TermsService, stopped: StoppedProjects): ProjectResources {
  return {
    name: "meters",
    count: (projectRef) => service.count(projectRef),
    projectDeleted(tx, projectRef) {
      stopped.stop(tx, projectRef);
      terms.forget(tx, projectRef);
    },
    removeRows(tx, projectRef, rowsMax) {
      const removed = service.removeRows(tx, projectRef, rowsMax);
      if (removed < rowsMax) stopped.forget(tx, projectRef);
      return removed;
    },
  };
}

function inUnit(service: MeterService, holds: HoldService): MetersInUnit {
  const limitsOf = (tx: Tx, projectRef: number, meterId: string): MeterFigures | null => {
    const meter = service.book.current(tx, { projectRef, meterId });
    if (meter === undefined) return null;
    const { balance, available } = service.stateOf(meter, meterId, tx.now);
    return { balance, available };
  };
  const bodyOf = ({ meter_id, ...body }: HoldTerms): HoldBody => body;
  return {
    fields: FIELDS,
    available: limitsOf,
    deduct(tx, projectRef, meterId, amount, requestId) {
      const { balance } = service.deduct(tx, { projectRef, meterId, requestId }, amount);
      return limitsOf(tx, projectRef, meterId) ?? { balance, available: balance };
    },
    findOpenHold: (tx, projectRef, terms) =>
      holds.knownOpen(tx, { projectRef, meterId: terms.meter_id, requestId: "" }, bodyOf(terms)),
    hold: (tx, projectRef, terms, requestId) =>
      holds.create(tx, { projectRef, meterId: terms.meter_id, requestId }, bodyOf(terms)),
  };
}
