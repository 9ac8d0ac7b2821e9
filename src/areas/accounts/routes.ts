import type { Clock, ManualClock } from "../../kernel/clock.ts";
import { ApiError } from "../../kernel/errors.ts";
import { networkOf } from "../../kernel/http/addresses.ts";
import { AttemptLimiter } from "../../kernel/http/attempts.ts";
import type { Http } from "../../kernel/http/http.ts";
import { pageQuery } from "../../kernel/http/pagination.ts";
import { assertSignupOpen, SIGNUP_WINDOW_MS, SIGNUPS_PER_WINDOW, type SignupMode } from "./domain.ts";
import {
  Account,
  AccountCreateBody,
  AccountCreated,
  AccountPage,
  AccountParams,
  AccountUpdateBody,
  ClockAnswer,
  ClockBody,
  KeyRotationBody,
  ResetKey,
  RotatedKey,
  SignupAnswer,
  SignupBody,
} from "./schema.ts";
import type { AccountService } from "./service.ts";

/** Declares signup, key rotation and the operator API. */
export function accountRoutes(
  http: Http,
  service: AccountService,
  settings: { signup: SignupMode; clock: Clock; testClock: ManualClock | null },
): void {
  signupRoute(http, service, settings.signup, settings.clock);
  adminRoutes(http, service);
  if (settings.testClock !== null) clockRoute(http, settings.testClock);
  http.route(
    "POST",
    "/v1/keys/rotate",
    {
      operation: "keys.platform.rotate",
      summary: "Rotate the platform key",
      description:
        "Returns a new key, which has every scope and no end: the caller's key needs `*` and must not end. The old one serves requests for the grace period, but changes no keys any more; both draw on the same balance. At most once an hour.",
      body: KeyRotationBody,
      answers: { 200: RotatedKey },
      errors: ["rate_limit_exceeded"],
      example: { grace_hours: 24 },
    },
    (call) => call.perform((tx) => service.rotateKey(tx, call.caller.account.ref, call.body.grace_hours)),
  );
}

function signupRoute(http: Http, service: AccountService, mode: SignupMode, clock: Clock): void {
  const attempts = new AttemptLimiter(clock, SIGNUPS_PER_WINDOW, SIGNUP_WINDOW_MS);
  http.publicRoute(
    "POST",
    "/v1/signup",
    {
      operation: "signup",
      summary: "Sign up",
      description:
        "Only where the operator has opened signup. At most 10 attempts an hour per client address, for IPv6 per /64 network.",
      status: 201,
      body: SignupBody,
      answers: { 201: SignupAnswer },
      errors: ["forbidden", "conflict", "rate_limit_exceeded", "service_unavailable"],
      example: { email: "ada@example.com", tier: "free" },
      admit: (clientAddress) => {
        assertSignupOpen(mode);
        const waitSeconds = attempts.take(networkOf(clientAddress));
        if (waitSeconds > 0) {
          throw new ApiError("rate_limit_exceeded", "Too many signups from this address. Try again later.", {
            retryAfterSeconds: waitSeconds,
          });
        }
      },
    },
    (call) => service.signUp(call.body.email, call.body.tier),
  );
}

function adminRoutes(http: Http, service: AccountService): void {
  http.route(
    "POST",
    "/v1/admin/accounts",
    {
      operation: "admin.accounts.create",
      summary: "Create an account",
      status: 201,
      body: AccountCreateBody,
      answers: { 201: AccountCreated },
      errors: ["conflict"],
      example: { email: "grace@example.com", tier: "scale", balance: 5000 },
    },
    (call) =>
      call.perform((tx) => {
        const { account, key } = service.create(tx, call.body);
        const { userId, email, tier, balance } = account;
        return { user_id: userId, api_key: key, email, tier, balance };
      }),
  );
  http.route(
    "GET",
    "/v1/admin/accounts",
    {
      operation: "admin.accounts.list",
      summary: "List accounts, newest first",
      query: pageQuery(50),
      answers: { 200: AccountPage },
    },
    (call) => service.list(call.query.limit ?? 50, call.query.cursor),
  );
  http.route(
    "PATCH",
    "/v1/admin/accounts/:user_id",
    {
      operation: "admin.accounts.update",
      summary: "Change tier, balance or suspension of an account",
      description: "What is left out stays. Every change works for the very next request.",
      params: AccountParams,
      body: AccountUpdateBody,
      answers: { 200: Account },
      errors: ["not_found", "invalid_request"],
      example: { tier: "pro" },
    },
    (call) =>
      call.perform((tx) => service.change(tx, call.params.user_id, call.body, call.caller, call.requestId)),
  );
  http.route(
    "POST",
    "/v1/admin/accounts/:user_id/reset-key",
    {
      operation: "keys.platform.reset",
      summary: "End all platform keys of an account and make a new one",
      description:
        "For a key that has leaked or is lost. Works for the very next request, keys in their grace included; managed keys stay. The new key can be rotated at once.",
      params: AccountParams,
      answers: { 200: ResetKey },
      errors: ["not_found"],
    },
    (call) => call.perform((tx) => service.resetKey(tx, call.params.user_id)),
  );
}

function clockRoute(http: Http, clock: ManualClock): void {
  http.route(
    "POST",
    "/v1/admin/clock",
    {
      operation: "admin.clock.advance",
      summary: "Advance the test clock",
      description: "Answers once everything that fell due has been run, in the order of its due times.",
      body: ClockBody,
      answers: { 200: ClockAnswer },
      example: { advance_ms: 60_000 },
    },
    // Across two units of work, as what it waits for has units of its own; a repeat under one key moves nothing.
    (call) =>
      call.performAcross({
        claim: () => null,
        outside: () => clock.advance(call.body.advance_ms),
        settle: (_tx, _claim, now) => ({ now }),
      }),
  );
}
