import { Type } from "@sinclair/typebox";
import type { Charger } from "../../kernel/callers/caller.ts";
import { oneOf, orNull } from "../../kernel/data/schema.ts";
import { registerErrorFields } from "../../kernel/errors.ts";
import type { ApiArea } from "../../kernel/http/api.ts";
import type { BodyLimits } from "../../kernel/http/operation.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { AreaExport } from "../../kernel/projects/account-export.ts";
import { COUNTED_MAX, countsSchema, type OverviewCard } from "../../kernel/projects/overview-card.ts";
import type { ProjectResources } from "../../kernel/projects/resources.ts";
import { Context } from "./evaluation/schema.ts";
import { FlagUsage } from "./evaluation/usage.ts";
import { flagExport } from "./export.ts";
import { Ofrep, type OfrepDeps } from "./ofrep/ofrep.ts";
import { CONTEXT_BODY } from "./ofrep/rejections.ts";
import { ofrepRoutes } from "./ofrep/routes.ts";
import { OfrepStreams } from "./ofrep/streams.ts";
import type { NamedKeys } from "./ofrep/tokens.ts";
import { flagRoutes } from "./routes.ts";
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
}

/** Creates the area: feature flags of projects. */
export function createFlags(kernel: Kernel, { keys, charger, publicUrl }: FlagDeps): FlagsArea {
  const store = flagStore(kernel.db);
  const usage = new FlagUsage(store, kernel);
  const flags = new FlagService(store, usage);
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
      removeRows: (tx, projectRef, rowsMax) => flags.removeRows(tx, projectRef, rowsMax),
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
    routes: (api) => [...flagRoutes(api, flags, charger), ...ofrepRoutes(api, ofrep, streams)],
  };
}
