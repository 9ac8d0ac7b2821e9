import { largeBody } from "../../kernel/http/body.ts";
import type { Http } from "../../kernel/http/http.ts";
import { assertBoolean, assertKeyAllowed } from "./domain.ts";
import {
  FlagBody,
  FlagConfig,
  FlagDeleted,
  FlagEvaluation,
  FlagKeys,
  FlagParams,
  FlagSaved,
} from "./schema.ts";
import type { FlagService } from "./service.ts";

/** Declares the endpoints of feature flags. */
export function flagRoutes(http: Http, flags: FlagService): void {
  changeRoutes(http, flags);
  readRoutes(http, flags);
}

function changeRoutes(http: Http, flags: FlagService): void {
  http.route(
    "POST",
    "/v1/gate",
    {
      operation: "gate.save",
      summary: "Create or change a flag",
      description: "The next request sees it.",
      status: 201,
      body: FlagBody,
      bodyBounds: largeBody(),
      answers: { 201: FlagSaved },
      errors: ["gate.rule_invalid"],
      example: { flag_key: "new-checkout", enabled: true, description: "The checkout of 2030" },
    },
    (call) => {
      const { flag_key, enabled, description } = call.body;
      assertKeyAllowed(flag_key);
      assertBoolean(enabled);
      return call.perform((tx) => flags.save(tx, call.caller.project.ref, flag_key, enabled, description));
    },
  );
  http.route(
    "DELETE",
    "/v1/gate/:flagKey",
    {
      operation: "gate.delete",
      summary: "Delete a flag",
      params: FlagParams,
      answers: { 200: FlagDeleted },
      errors: ["flag_not_found"],
    },
    (call) => call.perform((tx) => flags.delete(tx, call.caller.project.ref, call.params.flagKey)),
  );
}

function readRoutes(http: Http, flags: FlagService): void {
  http.route(
    "GET",
    "/v1/gate",
    {
      operation: "gate.list",
      summary: "List the keys of all flags, newest first",
      answers: { 200: FlagKeys },
    },
    (call) => flags.keys(call.caller.project.ref),
  );
  http.route(
    "GET",
    "/v1/gate/config",
    {
      operation: "gate.config",
      summary: "Read all flags, newest first",
      answers: { 200: FlagConfig },
    },
    (call) => call.perform(() => flags.config(call.caller.project.ref)),
  );
  http.route(
    "GET",
    "/v1/gate/:flagKey",
    {
      operation: "gate.evaluate",
      summary: "Evaluate a flag",
      description: "Served from memory.",
      params: FlagParams,
      answers: { 200: FlagEvaluation },
      errors: ["gate.feature_not_found", "gate.evaluation_failed"],
    },
    (call) => call.perform(() => flags.evaluate(call.caller.project.ref, call.params.flagKey)),
  );
}
