import { Type } from "@sinclair/typebox";
import { oneOf, orNull } from "../../kernel/data/schema.ts";
import { registerErrorFields } from "../../kernel/errors.ts";
import type { Charger } from "../../kernel/http/access/caller.ts";
import type { ApiArea } from "../../kernel/http/api.ts";
import type { BodyLimits } from "../../kernel/http/requests/body.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { countsSchema, type OverviewCard } from "../../kernel/projects/overview-card.ts";
import type { ProjectResources } from "../../kernel/projects/resources.ts";
import { FlagUses } from "./evaluation/usage.ts";
import { Ofrep, type OfrepDeps } from "./ofrep/ofrep.ts";
import { CONTEXT_BODY } from "./ofrep/rejections.ts";
import { ofrepRoutes } from "./ofrep/routes.ts";
import { Context } from "./ofrep/schema.ts";
import { OfrepStreams } from "./ofrep/streams.ts";
import type { NamedKeys } from "./ofrep/tokens.ts";
import { flagRoutes } from "./routes.ts";
import { FlagKey } from "./schema.ts";
import { FlagService } from "./service.ts";
import { flagStore } from "./store.ts";

registerErrorFields({
  version: orNull(Type.Integer(), {
    description: "With `conflict` of a flag: its current version; null where there is no such flag.",
  }),
  key: Type.String({ description: "Of OFREP: the key of the flag that was asked for." }),
  errorCode: oneOf(["PARSE_ERROR", "INVALID_CONTEXT", "FLAG_NOT_FOUND", "GENERAL"], {
    description: "Of OFREP: the error as the protocol names it.",
  }),
  errorDetails: Type.String({ description: "Of OFREP: the same as `error.message`." }),
});

/** What flags offer to the rest of the house. */
export interface FlagsArea extends ApiArea {
  readonly resources: ProjectResources;
  readonly card: OverviewCard;
  /** Evaluations, for those who do it together with other things. */
  readonly flags: Pick<FlagService, "outcomeOf" | "outcomesOf">;
  /** The schema of a flag's key. */
  readonly flagKey: typeof FlagKey;
  /** The schema of a context, and the limits of a body that has one. */
  readonly context: typeof Context;
  readonly contextBody: BodyLimits;
  /** Writes what is noted in memory. */
  readonly finish: () => Promise<void>;
  /** Ends all streams: the server stops. */
  readonly stopStreams: () => void;
}

/** What flags need of other areas and of the configuration. */
export interface FlagPorts {
  readonly keys: NamedKeys;
  readonly charger: Charger;
  /** Where clients reach this server; null: where they have asked. */
  readonly publicUrl: string | null;
}

/** Builds the area: feature flags, per project. */
export function createFlags(kernel: Kernel, { keys, charger, publicUrl }: FlagPorts): FlagsArea {
  const store = flagStore(kernel.db);
  const uses = new FlagUses(store, kernel);
  const flags = new FlagService(store, uses);
  const streams = new OfrepStreams({ ...kernel, flags, keys });
  const refund: OfrepDeps["refund"] = (account, { name, cost }) =>
    kernel.writer.submit((tx) => charger.refund(tx, account, name, cost));
  const ofrep = new Ofrep({ ...kernel, flags, streams, refund, publicUrl });
  return {
    flags,
    flagKey: FlagKey,
    context: Context,
    contextBody: CONTEXT_BODY,
    finish: () => uses.finish(),
    stopStreams: () => streams.stop(),
    resources: {
      name: "flags",
      count: (projectRef) => store.count(projectRef),
      removeRows: (tx, projectRef, rowsMax) => flags.removeRows(tx, projectRef, rowsMax),
    },
    card: {
      area: "gate",
      schema: countsSchema(["total", "on"]),
      read: ({ project }) => store.figures(project.ref) ?? { total: 0, on: 0 },
    },
    parts: [
      { name: "Flags", description: "Feature flags of a project, evaluated from memory." },
      {
        name: "OpenFeature",
        description:
          "Flags for OpenFeature's SDKs, by its remote evaluation protocol (OFREP), and told of as they change.",
      },
    ],
    alsoCalled: { gate: ["flags", "features", "feature-flags", "toggles"] },
    routes: (api) => [...flagRoutes(api, flags, charger), ...ofrepRoutes(api, ofrep, streams)],
  };
}
