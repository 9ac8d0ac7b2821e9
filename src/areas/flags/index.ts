import { Type } from "@sinclair/typebox";
import type { AuditTrail } from "../../kernel/audit/trail.ts";
import type { Caller, Charger } from "../../kernel/callers/caller.ts";
import { oneOf, orNull } from "../../kernel/data/schema.ts";
import { registerErrorFields } from "../../kernel/errors.ts";
import type { ApiArea } from "../../kernel/http/api.ts";
import type { BodyLimits } from "../../kernel/http/operation.ts";
import type { Call } from "../../kernel/http/requests/call.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { AreaExport } from "../../kernel/projects/account-export.ts";
import { COUNTED_MAX, countsSchema, type OverviewCard } from "../../kernel/projects/overview-card.ts";
import type { ProjectResources } from "../../kernel/projects/resources.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { isoTime } from "../../kernel/time/date-time.ts";
import { DAY_MS } from "../../kernel/time/units.ts";
import { EVALUATIONS_RETENTION_MS, PROPOSALS_RETENTION_MS } from "./domain.ts";
import { Context } from "./evaluation/schema.ts";
import { FlagUsage } from "./evaluation/usage.ts";
import { flagExport } from "./export.ts";
import { Ofrep, type OfrepDeps } from "./ofrep/ofrep.ts";
import { CONTEXT_BODY } from "./ofrep/rejections.ts";
import { ofrepRoutes } from "./ofrep/routes.ts";
import { OfrepStreams } from "./ofrep/streams.ts";
import type { NamedKeys } from "./ofrep/tokens.ts";
import { type Participant, Proposals } from "./proposals/proposals.ts";
import { proposalRoutes } from "./proposals/routes.ts";
import { proposalStore } from "./proposals/store.ts";
import { Review } from "./review.ts";
import { flagRoutes, SAVE } from "./routes.ts";
import { FlagSchedule } from "./scheduled/schedule.ts";
import { scheduleStore } from "./scheduled/store.ts";
import { FlagKey } from "./schema.ts";
import { FlagService } from "./service.ts";
import { flagStore } from "./store.ts";

registerErrorFields({
  version: orNull(Type.Integer(), {
    description: "With `conflict` for a flag: its current version; null if the flag does not exist.",
  }),
  key: Type.String({ description: "OFREP: key of the requested flag." }),
  errorCode: oneOf(["PARSE_ERROR", "INVALID_CONTEXT", "FLAG_NOT_FOUND", "GENERAL"], {
    description: "OFREP: error code of the protocol.",
  }),
  errorDetails: Type.String({ description: "OFREP: same text as `error.message`." }),
});

/** Interface of flags to the rest of the server. */
export interface FlagsArea extends ApiArea {
  readonly resources: ProjectResources;
  readonly exported: AreaExport;
  readonly card: OverviewCard;
  /** Evaluations for other areas. */
  readonly flags: Pick<FlagService, "outcomeOf" | "evaluator">;
  /** Schema of a flag's key. */
  readonly flagKey: typeof FlagKey;
  /** Schema of a context. */
  readonly context: typeof Context;
  /** Limits of a body with a context. */
  readonly contextBody: BodyLimits;
  /** Writes pending data at the end of the process. */
  readonly finish: () => Promise<void>;
  /** Ends all streams when the server stops. */
  readonly stopStreams: () => void;
}

/** Dependencies on other areas and on the configuration. */
export interface FlagDeps {
  readonly keys: NamedKeys;
  readonly charger: Charger;
  /** Public URL of this server; null: clients use the URL of their request. */
  readonly publicUrl: () => string | null;
  readonly trail: Pick<AuditTrail, "recordScheduled" | "actorOf">;
  readonly projects: {
    /** Id of a project. */
    readonly idOf: (projectRef: number) => string | null;
    readonly isDeleted: (projectRef: number) => boolean;
    /** Whether changes of the project's flags need the approval of somebody else. */
    readonly isReviewed: (projectRef: number) => boolean;
  };
  /** The person behind a caller, or the key: the same for all keys of a rotation, and for those that a person has created. */
  readonly identityOf: (caller: Caller) => string;
  /** Sends a notice to the endpoints of a project that subscribe to its type. */
  readonly notice: (
    tx: Tx,
    owner: { readonly accountRef: number; readonly projectRef: number },
    type: "ninefold.flag.schedule_failed",
    data: object,
  ) => void;
}

/** Proposals purged in one unit of work: a few milliseconds. */
const PROPOSALS_PURGED = 100;
/** Days of flags purged in one unit of work: a few milliseconds. */
const EVALUATIONS_PURGED = 500;

/** The day of a time, counted from 1970. */
function dayOf(at: number): number {
  return Math.floor(at / DAY_MS);
}

/** Creates the area: feature flags of projects. */
export function createFlags(kernel: Kernel, deps: FlagDeps): FlagsArea {
  const { keys, charger, publicUrl } = deps;
  const store = flagStore(kernel.db);
  const { trail, projects, notice, identityOf } = deps;
  const usage = new FlagUsage(store, kernel);
  const schedule = new FlagSchedule(scheduleStore(kernel.db), kernel);
  const proposed = proposalStore(kernel.db);
  const flags = new FlagService(store, usage, schedule, kernel.ids, proposed.outdate);
  const proposals = new Proposals(proposed, flags, kernel.ids);
  const review = new Review(projects.isReviewed, (...flag) => flags.exists(...flag));
  const participantOf = (call: Call): Participant => {
    const { caller } = call;
    return {
      projectRef: caller.project.ref,
      accountRef: caller.account.ref,
      identity: identityOf(caller),
      actor: trail.actorOf(call),
    };
  };
  kernel.housekeeping.addPurge({
    name: "gate.proposals.purge",
    rowsMax: PROPOSALS_PURGED,
    remove: (tx, rowsMax) => proposed.purge(tx, tx.now - PROPOSALS_RETENTION_MS, rowsMax),
  });
  const { isDeleted, idOf } = projects;
  schedule.start((tx, flagRef, change) => {
    const { id, at, by, accountRef } = change;
    const applied = flags.applyScheduled(tx, flagRef, change, (projectRef, entry) =>
      trail.recordScheduled(tx, SAVE, accountRef, { id, by }, { ...entry, projectId: idOf(projectRef) }),
    );
    if (applied === null) return;
    const { projectRef, flag_key, problem } = applied;
    kernel.changes.inProject(tx, projectRef, "gate", flag_key);
    if (problem === null || isDeleted(projectRef)) return;
    const data = { flag_key, id, at: isoTime(at), error: problem };
    notice(tx, { accountRef, projectRef }, "ninefold.flag.schedule_failed", data);
  });
  kernel.housekeeping.addPurge({
    name: "gate.evaluations.purge",
    rowsMax: EVALUATIONS_PURGED,
    remove: (tx, rowsMax) => store.purgeEvaluations(tx, dayOf(tx.now - EVALUATIONS_RETENTION_MS), rowsMax),
  });
  const streams = new OfrepStreams({ ...kernel, flags, keys });
  const refund: OfrepDeps["refund"] = (account, { name, cost }) =>
    kernel.writer.submit((tx) => {
      tx.affects = account.ref;
      charger.refund(tx, account, name, cost);
    });
  const ofrep = new Ofrep({ ...kernel, flags, streams, refund, publicUrl });
  return {
    flags,
    exported: flagExport,
    flagKey: FlagKey,
    context: Context,
    contextBody: CONTEXT_BODY,
    finish: () => usage.finish(),
    stopStreams: () => streams.stop(),
    resources: {
      name: "flags",
      count: (projectRef) => Math.min(store.count(projectRef), COUNTED_MAX),
      removeRows(tx, projectRef, rowsMax) {
        const removed = proposed.removeOfProject(tx, projectRef, rowsMax);
        return removed + (removed < rowsMax ? flags.removeRows(tx, projectRef, rowsMax - removed) : 0);
      },
    },
    card: {
      area: "gate",
      schema: countsSchema(["total", "on"]),
      read: ({ project }) => store.figures(project.ref, COUNTED_MAX) ?? { total: 0, on: 0 },
    },
    parts: [
      { name: "Flags", description: "Feature flags of a project, evaluated in memory." },
      {
        name: "OpenFeature",
        description:
          "Flags for OpenFeature's SDKs through its remote evaluation protocol (OFREP), with notifications of changes.",
      },
    ],
    alsoCalled: { gate: ["flags", "features", "feature-flags", "toggles"] },
    routes: (api) => [
      ...flagRoutes(api, flags, { charger, actorOf: (call) => trail.actorOf(call), review }),
      ...proposalRoutes(api, { proposals, charger, participantOf, flagKey: FlagKey }),
      ...ofrepRoutes(api, ofrep, streams),
    ],
  };
}
