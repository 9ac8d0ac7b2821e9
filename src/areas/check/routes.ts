import { Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { invalidField, withFieldPrefix } from "../../kernel/errors.ts";
import type { Api } from "../../kernel/http/api.ts";
import { exactMember } from "../../kernel/http/requests/body.ts";
import type { Call } from "../../kernel/http/requests/call.ts";
import { reply, unstored } from "../../kernel/http/responses/response.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { DENIALS } from "./domain.ts";
import type { CheckDeps } from "./ports.ts";
import { checkRequestOf, clientRejection, headersOf, proxyQuery } from "./proxy.ts";
import {
  type CheckItem,
  type CheckResult,
  checkBody,
  checkResult,
  checkResults,
  checksOf,
} from "./schema.ts";
import type { Charge, CheckRequest, CheckService } from "./service.ts";

/** Properties of both operations. Meters report which project has changed. */
const CHECK = { access: "check:write", cost: 1, changesProject: false } as const;

/** Operation that every check is charged for. */
const CHECK_NAME = "check";

/** Declares the routes of the check. */
export function checkRoutes<KeyRequest>(
  api: Api,
  deps: CheckDeps<KeyRequest>,
  service: CheckService<KeyRequest>,
) {
  const result = checkResult(deps.keys.facts);
  return [callRoute(api, deps, service, result), proxyRoute(api, deps, service, result)];
}

function callRoute<KeyRequest>(
  api: Api,
  deps: CheckDeps<KeyRequest>,
  service: CheckService<KeyRequest>,
  response: ReturnType<typeof checkResult>,
) {
  return new Elysia({ tags: ["Check"] }).post(
    "/v1/check",
    api.endpoint(
      {
        ...CHECK,
        name: CHECK_NAME,
        bodyLimits: deps.flags.contextBody,
        summary: "Authorize a customer's request",
        description:
          "Checks key, scopes, addresses, rate limits, uses, credits and flags in one transaction. Unless all of them pass, nothing is taken. The response to every well-formed request is 200; `status` is the status for your response to the customer. With an `Idempotency-Key`, only allowed responses are stored. With `checks`, up to 20 checks run one after another, for 1 credit each, and the response is `{results}`; 402 before the first if the credits do not suffice for all. An error in one of them is an error of the request: then none has an effect.",
        example: {
          secret: "acme_live_zyxw",
          meta: { ip: "203.0.113.7" },
          require: ["orders:read"],
          deduct: { amount: 5 },
          flags: ["new-checkout"],
        },
        body: checkBody(deps),
        response: Type.Union([response, checkResults(response)]),
      },
      ({ call, body }) => {
        const { list, isList } = checksOf(body);
        if (isList) {
          const exact = exactMember("checks", body, call.bodyText) ?? [];
          const requests = list.map((item, index) =>
            withFieldPrefix(`checks.${index}.`, () => requestOf(deps, item, exact[index]?.context)),
          );
          return runChecks(call, service, requests, (tx) =>
            deps.charger.charge(tx, call.caller.account, CHECK_NAME, list.length - 1),
          );
        }
        const context = exactMember("context", body, call.bodyText);
        const [request] = list.map((item) => requestOf(deps, item, context));
        if (request === undefined) throw new Error("a request has at least one check");
        return runCheck(call, service, request, (result) =>
          // A stored denial would be returned for a day after its cause is gone.
          result.allowed ? result : unstored(result),
        );
      },
    ),
  );
}

/** Runs a check in one unit of work, which is durable if the check may write. */
function runCheck<KeyRequest, Result extends object>(
  call: Call,
  service: CheckService<KeyRequest>,
  request: CheckRequest<KeyRequest>,
  toResponse: (result: CheckResult) => Result,
): Result | Promise<Result> {
  const run = (tx: Tx) => toResponse(service.check(tx, call, request));
  return service.mayWrite(call.caller, request) ? call.perform(run) : call.read(run);
}

/** Runs several checks in one unit of work. A list of denials is not stored under an `Idempotency-Key`. */
function runChecks<KeyRequest>(
  call: Call,
  service: CheckService<KeyRequest>,
  requests: readonly CheckRequest<KeyRequest>[],
  chargeOthers: (tx: Tx) => void,
) {
  const run = (tx: Tx) => {
    if (requests.length > 1) chargeOthers(tx);
    const body = { results: service.checkAll(tx, call, requests) };
    return body.results.some(({ allowed }) => allowed) ? body : unstored(body);
  };
  const mayWrite = requests.some((request) => service.mayWrite(call.caller, request));
  return mayWrite ? call.perform(run) : call.read(run);
}

/** @throws ApiError `validation_error` */
function requestOf<KeyRequest>(
  deps: CheckDeps<KeyRequest>,
  check: CheckItem,
  context: CheckItem["context"],
): CheckRequest<KeyRequest> {
  return {
    key: deps.keys.requestOf(check),
    charge: chargeOf(check),
    flags: check.flags ?? [],
    context: context ?? {},
  };
}

/** @throws ApiError `validation_error` */
function chargeOf({ deduct, hold }: CheckItem): Charge | null {
  if (deduct && hold) throw invalidField("hold", "cannot be combined with deduct");
  if (deduct) return { kind: "deduct", ...deduct };
  return hold ? { kind: "hold", ...hold } : null;
}

function proxyRoute<KeyRequest>(
  api: Api,
  deps: CheckDeps<KeyRequest>,
  service: CheckService<KeyRequest>,
  response: ReturnType<typeof checkResult>,
) {
  return new Elysia({ tags: ["Check"] }).get(
    "/v1/check/http",
    api.endpoint(
      {
        ...CHECK,
        name: "check.http",
        forProxies: true,
        summary: "Authorize a request for a reverse proxy",
        description:
          "The proxy sends its own key in `X-Ninefold-Key` and the client's key unchanged. The response is 200, or the rejection for the client. An error that the client did not cause is logged and returned as 503, which denies the request. All responses except 503 have the headers `X-Check-Code`, `X-Check-Status`, `X-Key-Id`, `X-Key-Owner`, `X-Key-Environment`, `X-Key-Scopes`, `X-Meter-Available` and `X-Flags`; an empty value is `-`. An `Idempotency-Key` has no effect, because the client can choose it.",
        errors: DENIALS,
        query: proxyQuery(deps),
        response,
      },
      async ({ call, query }) => {
        const request = checkRequestOf(deps, call, query);
        const result = await runCheck(call, service, request, (value) => value);
        if (!result.allowed) throw clientRejection(result, query.deny, call.requestId);
        return reply(200, result, headersOf(result));
      },
    ),
  );
}
