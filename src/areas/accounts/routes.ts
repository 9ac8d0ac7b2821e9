import { Elysia } from "elysia";
import { networkOf } from "../../kernel/data/addresses.ts";
import { AmountBody, HISTORY_LIMIT, LedgerPage } from "../../kernel/data/ledger.ts";
import { ApiError } from "../../kernel/errors.ts";
import { AttemptLimiter } from "../../kernel/http/access/guard.ts";
import type { Api } from "../../kernel/http/api.ts";
import { pageQuery } from "../../kernel/http/requests/pagination.ts";
import { reply } from "../../kernel/http/responses/response.ts";
import { textStream } from "../../kernel/http/responses/text-stream.ts";
import type { Clock, ManualClock } from "../../kernel/time/clock.ts";
import { assertSignupOpen, SIGNUP_WINDOW_MS, SIGNUPS_PER_WINDOW, type SignupMode } from "./domain.ts";
import type { AccountLedger } from "./ledger.ts";
import {
  Account,
  AccountBalance,
  AccountCreateBody,
  AccountCreated,
  AccountDeleted,
  AccountPage,
  AccountParams,
  AccountUpdateBody,
  ClockAdvanced,
  ClockBody,
  PlatformKeyRotateBody,
  ResetPlatformKey,
  RotatedPlatformKey,
  SignedUp,
  SignupBody,
} from "./schema.ts";
import type { AccountService } from "./service.ts";

/** Declares signup, the operator's endpoints, the rotation of the platform key, and the account's balance. */
export function accountRoutes(
  api: Api,
  service: AccountService,
  ledger: AccountLedger,
  settings: { signup: SignupMode; clock: Clock; testClock: ManualClock | null },
) {
  return [
    ...(settings.testClock === null ? [] : [clockRoute(api, settings.testClock)]),
    signupRoute(api, service, settings.signup, settings.clock),
    adminRoutes(api, service),
    balanceRoutes(api, ledger),
    new Elysia({ tags: ["Keys"] }).post(
      "/v1/keys/rotate",
      api.endpoint(
        {
          name: "keys.platform.rotate",
          role: "owner",
          stepUp: true,
          audit: "yes",
          access: "keys:write",
          cost: 1,
          accountOnly: true,
          grantsEverything: true,
          secret: true,
          changesProject: false,
          summary: "Rotate the platform key",
          description:
            "Returns a new key, which has all scopes and does not expire: your key must have the scope `*` and must not expire. The old key continues to work during the grace period, but can no longer change keys. Both keys use the same balance. At most once an hour.",
          errors: ["rate_limit_exceeded"],
          example: { grace_hours: 24 },
          body: PlatformKeyRotateBody,
          response: RotatedPlatformKey,
        },
        ({ call, body }) =>
          call.perform((tx) => service.rotateKey(tx, call.caller.account.ref, body.grace_hours)),
      ),
    ),
  ];
}

function signupRoute(api: Api, service: AccountService, mode: SignupMode, clock: Clock) {
  const attempts = new AttemptLimiter(clock, SIGNUPS_PER_WINDOW, SIGNUP_WINDOW_MS);
  return new Elysia({ tags: ["Signup"] }).post(
    "/v1/signup",
    api.open(
      {
        name: "signup",
        audit: "yes",
        secret: true,
        summary: "Sign up",
        description:
          "Works only where the operator has opened signup. At most 10 attempts an hour per client address (IPv6: per /64 network), and 1,000 new accounts an hour over all addresses.",
        errors: ["forbidden", "conflict", "rate_limit_exceeded", "service_unavailable"],
        example: { email: "ada@example.com", tier: "free" },
        admit: (clientAddress: string) => {
          assertSignupOpen(mode);
          const waitSeconds = attempts.take(networkOf(clientAddress));
          if (waitSeconds === 0) return;
          const message = `Too many signups from this address. Retry in ${waitSeconds} s.`;
          throw new ApiError("rate_limit_exceeded", message, { retryAfterSeconds: waitSeconds });
        },
        body: SignupBody,
        response: { 201: SignedUp },
      },
      async ({ call, body }) => reply(201, await service.signUp(body, call)),
    ),
  );
}

function balanceRoutes(api: Api, ledger: AccountLedger) {
  return new Elysia({ prefix: "/v1/meter", tags: ["Meter"] })
    .get(
      "/balance",
      api.endpoint(
        {
          name: "meter.own.balance",
          ofAccount: true,
          access: "meter:read",
          summary: "Get the account's credit balance",
          description:
            "The credits that pay for the requests of all projects and keys of the account. The balance is always current: it includes charges that are written to the ledger later.",
          response: AccountBalance,
        },
        ({ call }) => ledger.balance(call.caller.account),
      ),
    )
    .get(
      "/history",
      api.endpoint(
        {
          name: "meter.own.history",
          ofAccount: true,
          access: "meter:read",
          summary: "List the ledger entries of the account balance, newest first",
          description: "Charges for requests are summed into one entry per operation and hour.",
          query: pageQuery(HISTORY_LIMIT),
          response: LedgerPage,
        },
        ({ call, query: { limit = HISTORY_LIMIT, cursor } }) =>
          ledger.history(call.caller.account, limit, cursor),
      ),
    )
    .post(
      "/deduct",
      api.endpoint(
        {
          name: "meter.own.deduct",
          role: "admin",
          audit: "yes",
          access: "meter:write",
          accountOnly: true,
          changesProject: false,
          summary: "Deduct credits from the account balance",
          description:
            "For charges of your own, in addition to those of requests: the same balance pays for both. More than the balance is 402 and changes nothing. Recorded in the audit log. For the balances of your customers use tenant meters.",
          errors: ["insufficient_balance", "invalid_request"],
          example: { amount: 5 },
          body: AmountBody,
          response: AccountBalance,
        },
        ({ call, body }) => call.perform((tx) => ledger.deduct(tx, call, body.amount)),
      ),
    )
    .post(
      "/refill",
      api.endpoint(
        {
          name: "meter.own.refill",
          role: "admin",
          audit: "yes",
          access: "meter:write",
          accountOnly: true,
          changesProject: false,
          summary: "Add credits to the account balance",
          description:
            "Use it after a payment, or in tests. It is not limited to the tier's monthly credits, and a repeated request adds the amount again unless it has an `Idempotency-Key`. Recorded in the audit log.",
          errors: ["invalid_request"],
          example: { amount: 100 },
          body: AmountBody,
          response: AccountBalance,
        },
        ({ call, body }) => call.perform((tx) => ledger.refill(tx, call, body.amount)),
      ),
    );
}

/** Media type of an export: JSON lines. */
const EXPORT_TYPE = "application/x-ndjson";

const OPERATOR = { access: "operator", audit: "yes" } as const;

function adminRoutes(api: Api, service: AccountService) {
  return new Elysia({ prefix: "/v1/admin/accounts", tags: ["Operator"] })
    .post(
      "",
      api.endpoint(
        {
          name: "admin.accounts.create",
          stepUp: true,
          ...OPERATOR,
          grantsEverything: true,
          changesKeys: true,
          secret: true,
          summary: "Create an account",
          description:
            "Only this response contains the account's platform key; nothing is sent by e-mail. `balance` defaults to the monthly credits of the tier. An address that another account has, in any case, is 409.",
          errors: ["conflict"],
          example: { email: "grace@example.com", tier: "scale", balance: 5000 },
          body: AccountCreateBody,
          response: { 201: AccountCreated },
        },
        ({ call, body }) =>
          call.perform((tx) => {
            const { account, key } = service.create(tx, body);
            const { userId, email, tier, balance } = account;
            return reply(201, { user_id: userId, api_key: key, email, tier, balance });
          }),
      ),
    )
    .get(
      "",
      api.endpoint(
        {
          name: "admin.accounts.list",
          access: "operator",
          summary: "List accounts, newest first",
          description:
            "Includes suspended accounts and the operator's own. Keys are not returned: `reset-key` creates a new one if an account has lost its key.",
          query: pageQuery(50),
          response: AccountPage,
        },
        ({ query }) => service.list(query.limit ?? 50, query.cursor),
      ),
    )
    .patch(
      "/:user_id",
      api.endpoint(
        {
          name: "admin.accounts.update",
          stepUp: true,
          ...OPERATOR,
          summary: "Update the e-mail address, tier, balance or suspension of an account",
          description: "Omitted fields keep their value. The update applies from the next request.",
          errors: ["not_found", "conflict", "invalid_request"],
          example: { tier: "pro" },
          params: AccountParams,
          body: AccountUpdateBody,
          response: Account,
        },
        ({ call, params, body }) =>
          call.perform((tx) => service.update(tx, params.user_id, body, call.caller, call.requestId)),
      ),
    )
    .get(
      "/:user_id/export",
      api.endpoint(
        {
          name: "admin.accounts.export",
          stepUp: true,
          ...OPERATOR,
          responseTypes: [EXPORT_TYPE],
          summary: "Export everything of an account",
          description:
            "JSON lines: a header (`type` `export`), one record per line with its `type`, and a line with the `type` `end` and the number of records. An export without it is incomplete. Changes during the export may be missing.",
          errors: ["not_found"],
          params: AccountParams,
        },
        async ({ call, params }) => {
          const source = await call.perform((tx) => service.export(tx, params.user_id));
          return reply(200, textStream(call, source), {
            "content-type": EXPORT_TYPE,
            "content-disposition": `attachment; filename="${params.user_id}.jsonl"`,
          });
        },
      ),
    )
    .delete(
      "/:user_id",
      api.endpoint(
        {
          name: "admin.accounts.delete",
          stepUp: true,
          ...OPERATOR,
          changesKeys: true,
          summary: "Delete an account with everything in it",
          description:
            "Keys and sessions of the account, its public pages and everything that runs for it end before the response. A background job then removes its data, which a restart continues. The operator's account and the caller's own cannot be deleted (409).",
          errors: ["not_found", "conflict"],
          params: AccountParams,
          response: { 202: AccountDeleted },
        },
        ({ call, params }) =>
          call.perform((tx) => reply(202, service.delete(tx, params.user_id, call.caller))),
      ),
    )
    .post(
      "/:user_id/reset-key",
      api.endpoint(
        {
          name: "keys.platform.reset",
          stepUp: true,
          ...OPERATOR,
          grantsEverything: true,
          changesKeys: true,
          secret: true,
          summary: "Revoke all platform keys of an account and create a new one",
          description:
            "For a leaked or lost key. Applies from the next request, including to keys in their grace period. Managed keys are not affected. The new key can be rotated immediately.",
          errors: ["not_found"],
          params: AccountParams,
          response: ResetPlatformKey,
        },
        ({ call, params }) => call.perform((tx) => service.resetKey(tx, params.user_id)),
      ),
    );
}

function clockRoute(api: Api, clock: ManualClock) {
  return new Elysia({ tags: ["Operator"] })
    .get(
      "/v1/admin/clock",
      api.endpoint(
        {
          name: "admin.clock.read",
          access: "operator",
          summary: "Get the time of the test clock",
          description: "Also while the clock is being advanced, for example in the receiver of a webhook.",
          response: ClockAdvanced,
        },
        ({ call }) => call.read(() => ({ now: clock.now() })),
      ),
    )
    .post(
      "/v1/admin/clock",
      // Two units of work, since the due work that it waits for has units too. A repeat under an Idempotency-Key changes nothing.
      api.endpoint(
        {
          name: "admin.clock.advance",
          audit: "yes",
          access: "operator",
          summary: "Advance the test clock",
          description: "Returns after all work that became due has run, in the order of its due times.",
          example: { advance_ms: 60_000 },
          body: ClockBody,
          response: ClockAdvanced,
        },
        ({ call, body }) =>
          call.performAcross({
            claim: (tx) => {
              const { advance_ms } = body;
              const target = { type: "clock", id: "test" };
              const summary = `Test clock advanced by ${advance_ms} ms`;
              tx.audit({ summary, target, before: null, after: { advance_ms } });
              return null;
            },
            outside: () => clock.advance(body.advance_ms),
            settle: (_tx, _claim, now) => ({ now }),
          }),
      ),
    );
}
