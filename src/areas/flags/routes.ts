import { Elysia } from "elysia";
import type { Actor } from "../../kernel/audit/actor.ts";
import type { Charger } from "../../kernel/callers/caller.ts";
import { UsageQuery } from "../../kernel/data/usage.ts";
import type { Api } from "../../kernel/http/api.ts";
import { largeBody } from "../../kernel/http/operation.ts";
import { exactMember } from "../../kernel/http/requests/body.ts";
import type { Call } from "../../kernel/http/requests/call.ts";
import type { FileFacts } from "../../kernel/http/resource-facts.ts";
import { reply } from "../../kernel/http/responses/response.ts";
import { listReply } from "../../kernel/http/responses/sliced-list.ts";
import { assertDefinitionHeld, withDefaults } from "./definitions/definition.ts";
import { changedSettings } from "./definitions/settings.ts";
import { assertBoolean, assertKeyAllowed } from "./domain.ts";
import type { Review } from "./review.ts";
import { assertSchedulable, pendingAt } from "./scheduled/scheduled.ts";
import { CHECKED } from "./scheduled/schema.ts";
import {
  FlagBody,
  FlagConfig,
  FlagConfigQuery,
  FlagDefinition,
  FlagDeleted,
  FlagEvaluation,
  FlagEvaluations,
  FlagKeys,
  FlagKeysQuery,
  FlagParams,
  FlagPreview,
  FlagPreviewBody,
  FlagSaved,
  ScheduledParams,
} from "./schema.ts";
import type { FlagService } from "./service.ts";

/** On for a quarter of the paying customers. */
const EXAMPLE = {
  flag_key: "new-checkout",
  enabled: true,
  description: "The checkout of 2030",
  rules: [
    {
      name: "Paying customers",
      when: [{ attribute: "plan", op: "in", values: ["pro", "scale"] }],
      serve: {
        split: [
          { variant: "on", weight: 25 },
          { variant: "off", weight: 75 },
        ],
      },
    },
  ],
  default: { variant: "off" },
  tags: ["team:checkout"],
};

/** How flags stand in a configuration file. */
const FLAG_FILE: FileFacts = {
  section: "flags",
  name: "flag_key",
  listPath: "/v1/gate/config?full=true&archived=true",
  isSave: true,
  omitted: ["if_version"],
  defaults: { ...withDefaults({}), archived: false, scheduled: [] },
  current: { scheduled: pendingAt },
  proposals: "/v1/gate/:name/proposals",
  check(body: FlagBody) {
    assertKeyAllowed(body.flag_key);
    assertBoolean(body.enabled);
    assertSchedulable(body.scheduled, changedSettings(null, body));
  },
};

/** Large lists are charged before they are read. */
const PAID = {};
/** Operation that large saves are charged for. */
export const SAVE = "gate.save";

/** Declares the routes of feature flags. */
export function flagRoutes(api: Api, flags: FlagService, deps: FlagRouteDeps) {
  return [changeRoutes(api, flags, deps), scheduleRoute(api, flags, deps), readRoutes(api, flags)];
}

/** What the routes need of other areas. */
export interface FlagRouteDeps {
  readonly charger: Charger;
  /** Who sends a request, for what is done later. */
  readonly actorOf: (call: Call) => Actor;
  readonly review: Review;
}

function changeRoutes(api: Api, flags: FlagService, { charger, actorOf, review }: FlagRouteDeps) {
  return new Elysia({ tags: ["Flags"] })
    .post(
      "/v1/gate",
      api.endpoint(
        {
          name: SAVE,
          audit: "yes",
          access: "gate:write",
          summary: "Create or update a flag",
          description:
            "The next request uses the change. Omitted fields stay unchanged; null restores the default. A save without changes writes nothing. Costs 1 credit per started 4 KiB of changed fields, as JSON, above the first 4 KiB, which are free of charge. In a project with `review`, only `enabled: false` alone is saved; other changes are proposed.",
          errors: ["gate.rule_invalid", "review_required", "insufficient_balance"],
          example: EXAMPLE,
          file: FLAG_FILE,
          bodyLimits: largeBody(),
          body: FlagBody,
          response: { 201: FlagSaved },
        },
        ({ call, body }) => {
          assertKeyAllowed(body.flag_key);
          assertBoolean(body.enabled);
          assertDefinitionHeld(call.bodyText, CHECKED);
          const { account, project } = call.caller;
          return call.perform((tx) => {
            const charge = (credits: number) => charger.charge(tx, account, SAVE, credits);
            const by = { by: actorOf(call), accountRef: account.ref };
            const audit = review.auditOf(tx, project.ref, body);
            return reply(201, flags.save(tx, project.ref, body, { charge, by, audit }));
          });
        },
      ),
    )
    .delete(
      "/v1/gate/:flagKey",
      api.endpoint(
        {
          name: "gate.delete",
          audit: "yes",
          access: "gate:write",
          summary: "Delete a flag",
          description:
            "From the next request on, the flag does not exist: its switch is 404, and OFREP returns `FLAG_NOT_FOUND`, so that clients use their default. Its usage is deleted too. To be able to undo it, archive the flag instead.",
          errors: ["flag_not_found", "review_required"],
          params: FlagParams,
          response: FlagDeleted,
        },
        ({ call, params }) => {
          const { ref } = call.caller.project;
          return call.perform((tx) => {
            review.assertUnneeded(ref);
            return flags.delete(tx, ref, params.flagKey);
          });
        },
      ),
    );
}

function scheduleRoute(api: Api, flags: FlagService, { review }: FlagRouteDeps) {
  return new Elysia({ tags: ["Flags"] }).delete(
    "/v1/gate/:flagKey/scheduled/:id",
    api.endpoint(
      {
        name: "gate.scheduled.cancel",
        audit: "yes",
        access: "gate:write",
        summary: "Cancel a scheduled change of a flag",
        description: "Also removes a change that failed.",
        errors: ["flag_not_found", "not_found", "review_required"],
        params: ScheduledParams,
        response: FlagSaved,
      },
      ({ call, params: { flagKey, id } }) => {
        const { ref } = call.caller.project;
        return call.perform((tx) => {
          review.assertUnneeded(ref);
          return flags.cancelScheduled(tx, ref, flagKey, id);
        });
      },
    ),
  );
}

function readRoutes(api: Api, flags: FlagService) {
  return new Elysia({ tags: ["Flags"] })
    .get(
      "/v1/gate",
      api.endpoint(
        {
          name: "gate.list",
          access: "gate:read",
          summary: "List the keys of all flags, newest first",
          description:
            "Use it when the names are enough, as for completion: it is free of charge, and all names come in one response without pages. Archived flags are omitted. `GET /v1/gate/config` has the settings.",
          query: FlagKeysQuery,
          response: { 200: FlagKeys },
        },
        ({ call, query: { stale } }) => {
          const { ref } = call.caller.project;
          return listReply(call, "flags", stale ? flags.staleKeys(ref, call.receivedAt) : flags.keys(ref));
        },
      ),
    )
    .get(
      "/v1/gate/config",
      api.endpoint(
        {
          name: "gate.config",
          access: "gate:read",
          cost: 1,
          summary: "List all flags, newest first",
          description: "Archived flags are omitted by default.",
          query: FlagConfigQuery,
          response: { 200: FlagConfig },
        },
        async ({ call, query }) => {
          await call.read(() => PAID);
          return listReply(call, "flags", flags.config(call.caller.project.ref, query, call.receivedAt));
        },
      ),
    )
    .get(
      "/v1/gate/:flagKey",
      api.endpoint(
        {
          name: "gate.evaluate",
          access: "gate:read",
          cost: 1,
          summary: "Get a flag's switch",
          description: "Served from memory. Use OFREP to evaluate the flag's rules.",
          errors: ["gate.feature_not_found", "gate.evaluation_failed"],
          params: FlagParams,
          response: FlagEvaluation,
        },
        ({ call, params }) =>
          call.read((tx) => flags.evaluate(call.caller.project.ref, params.flagKey, tx.now)),
      ),
    )
    .get(
      "/v1/gate/:flagKey/definition",
      api.endpoint(
        {
          name: "gate.definition",
          access: "gate:read",
          summary: "Get a flag's definition",
          description:
            "Use it to edit a flag: it has the rules, variants and the `version` for `if_version` of a save. Nothing is evaluated. Archived flags are returned as well.",
          errors: ["gate.feature_not_found"],
          params: FlagParams,
          response: FlagDefinition,
        },
        ({ call, params }) => flags.definition(call.caller.project.ref, params.flagKey, call.receivedAt),
      ),
    )
    .get(
      "/v1/gate/:flagKey/evaluations",
      api.endpoint(
        {
          name: "gate.evaluations",
          access: "gate:read",
          summary: "Get the number of a flag's evaluations",
          description:
            "Counts individual evaluations and those of checks, by variant and hour or day, for 30 days. Bulk evaluations and previews are not counted. After a crash, the last minute can be missing.",
          errors: ["gate.feature_not_found"],
          params: FlagParams,
          query: UsageQuery,
          response: FlagEvaluations,
        },
        ({ call, params, query }) =>
          flags.evaluations(call.caller.project.ref, params.flagKey, call.receivedAt, query),
      ),
    )
    .post(
      "/v1/gate/:flagKey/preview",
      api.endpoint(
        {
          name: "gate.preview",
          access: "gate:read",
          cost: 1,
          idempotent: false,
          summary: "Preview what a flag serves",
          description:
            "Evaluates the stored flag, or a change of it that is not saved, for up to 100 contexts. Archived and server-only flags are evaluated like others. Counts neither as an evaluation nor as a use. All contexts together have the comparisons of one evaluation.",
          errors: ["gate.feature_not_found", "gate.rule_invalid"],
          example: { contexts: [{ targetingKey: "user-1", plan: "pro" }, { plan: "free" }] },
          bodyLimits: largeBody(),
          params: FlagParams,
          body: FlagPreviewBody,
          response: FlagPreview,
        },
        ({ call, params, body }) => {
          assertDefinitionHeld(call.bodyText, ["definition"]);
          const contexts = exactMember("contexts", body, call.bodyText);
          const { ref } = call.caller.project;
          return call.read((tx) => flags.preview(ref, params.flagKey, { ...body, contexts }, tx.now));
        },
      ),
    );
}
