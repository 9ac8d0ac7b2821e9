// Written by `bun codegen/main.ts` from test/golden/openapi.json. Change the schemas of the areas instead.

import { type Answers, type Api, type ListOf, Methods, type PageQuery, type QueryOf } from "../api.ts";
import type {
  AccountCreateBody,
  AccountUpdateBody,
  AlertBody,
  AmountBody,
  BucketCreateBody,
  BucketUpdateBody,
  CaptureBody,
  CatchReplayBody,
  ChainInitBody,
  ChannelCreateBody,
  ChannelPatch,
  CheckBody,
  ClockBody,
  EvaluationBody,
  EventAckBody,
  ExtendBody,
  FlagBody,
  FlagPreviewBody,
  FlagProposalBody,
  FlagProposalRejectBody,
  ForceReleaseBody,
  ForkAcceptBody,
  HoldBody,
  IncidentCreateBody,
  IncidentPatch,
  IncidentSnoozeBody,
  IncidentUpdateBody,
  KeyCreateBody,
  KeyPatchBody,
  KeyRoleBody,
  KeyRotateBody,
  KeysImportBody,
  KeysRevokeBody,
  LockExtendBody,
  LogBody,
  LoginLinkBody,
  MailTestBody,
  MaintenanceCreateBody,
  MaintenanceUpdateBody,
  MonitorCreateBody,
  MonitorUpdateBody,
  PersonCreateBody,
  PersonPatchBody,
  PlanBody,
  PortalEndpointBody,
  PortalEndpointPatch,
  PortalLinkBody,
  PortalLinksRevokeBody,
  PortalRecoverBody,
  PortalRotateBody,
  PortalTestBody,
  ProbeCreateBody,
  ProbePatch,
  ProjectCreateBody,
  ProjectUpdateBody,
  ReceiptIndexBody,
  ReceiptVerifyBody,
  RedactBody,
  RelayBody,
  RelayEndpointBody,
  RelayEndpointPatch,
  RelayEndpointSecretRotateBody,
  RelayEndpointTestBody,
  RelayEventTypeBody,
  RelayEventTypesImportBody,
  RelayMessageBody,
  RelayMessageResendBody,
  RelayMessagesBody,
  RelayPreviewBody,
  RelayRecoverBody,
  RelayResendBody,
  RelaySecretRotateBody,
  ReleaseBody,
  ResetBody,
  ScheduleBody,
  ScheduleUpdateBody,
  ServerSettingsBody,
  SignupBody,
  StatusPageCreateBody,
  StatusPageSubscribersImportBody,
  StatusPageUpdateBody,
  StorageBody,
  TlogBody,
  WitnessesBody,
} from "../generated/api.ts";
import type { ChangeOptions, RequestOptions } from "../options.ts";

/** Methods of {@link Ninefold} that send one request. */
export class NinefoldMethods extends Methods {
  /** All meters of the project: their usage and alert. */
  readonly allMeters = new AllMeters(this.api);

  /** Projects. A client works in the project of its key: create one with {@link Projects.createKey}. */
  readonly projects = new Projects(this.api);

  /** Signed webhooks: scheduled deliveries, and messages to subscribed endpoints. */
  readonly relay = new Relay(this.api);

  /** People of the account and their roles. */
  readonly people = new People(this.api);

  /** The audit log of the account, or of the project of the key. */
  readonly audit = new Audit(this.api);

  /** The operator's API and the test clock. */
  readonly admin = new Admin(this.api);

  /**
   * Authorize a customer's request. Checks key, scopes, addresses, rate limits, uses, credits and flags in
   * one transaction. Unless all of them pass, nothing is taken. The response to every well-formed request is
   * 200; `status` is the status for your response to the customer. With an `Idempotency-Key`, only allowed
   * responses are stored. With `checks`, up to 20 checks run one after another, for 1 credit each, and the
   * response is `{results}`; 402 before the first if the credits do not suffice for all. An error in one of
   * them is an error of the request: then none has an effect. Costs 1 credit.
   */
  check(body: CheckBody, options?: ChangeOptions): Answers<"check"> {
    return this.api.call("check", { body }, options);
  }

  /**
   * List tenant meters by id. Use it to find meters or to page through all of them. `available` excludes the
   * credits that open holds reserve. Meters that were never refilled or reset do not exist and are not
   * listed.
   */
  meters(query: QueryOf<"meter.list"> = {}, options: RequestOptions = {}): ListOf<"meter.list", "meters"> {
    return this.api.list("meter.list", "meters", { query }, options);
  }

  /**
   * Read this API's OpenAPI document. For generating clients and for tools: OpenAPI 3.1 of this version of
   * the server, as in the reference at `/docs`. Large; send `If-None-Match` to download it only after a
   * change.
   */
  openApi(options?: RequestOptions): Answers<"openapi.read"> {
    return this.api.call("openapi.read", {}, options);
  }

  /** Get a summary of all areas. One object per area that the key can read. Counts end at 10000. */
  overview(query: QueryOf<"overview.read"> = {}, options?: RequestOptions): Answers<"overview.read"> {
    return this.api.call("overview.read", { query }, options);
  }

  /**
   * Check that the server responds. Says that the process accepts requests, and nothing about the database:
   * use `/readyz` for load balancers and health checks.
   */
  ping(options?: RequestOptions): Answers<"ping"> {
    return this.api.call("ping", {}, options);
  }

  /**
   * Sign up. Works only where the operator has opened signup. At most 10 attempts an hour per client address
   * (IPv6: per /64 network), and 1,000 new accounts an hour over all addresses.
   */
  signup(body: SignupBody, options?: RequestOptions): Answers<"signup"> {
    return this.api.call("signup", { body }, options);
  }
}

/** Methods of {@link Account} that send one request. */
export class AccountMethods extends Methods {
  /**
   * Get the account's credit balance. The credits that pay for the requests of all projects and keys of the
   * account. The balance is always current: it includes charges that are written to the ledger later.
   */
  balance(options?: RequestOptions): Answers<"meter.own.balance"> {
    return this.api.call("meter.own.balance", {}, options);
  }

  /**
   * Deduct credits from the account balance. For charges of your own, in addition to those of requests: the
   * same balance pays for both. More than the balance is 402 and changes nothing. Recorded in the audit log.
   * For the balances of your customers use tenant meters.
   */
  deduct(amount: AmountBody["amount"], options?: ChangeOptions): Answers<"meter.own.deduct"> {
    return this.api.call("meter.own.deduct", { body: { amount } }, options);
  }

  /**
   * End all browser sessions of the account. For a suspected theft: logs everyone out of the console, the
   * caller's own session and people included. Keys continue to work; to revoke a leaked platform key, rotate
   * it.
   */
  endSessions(options?: ChangeOptions): Answers<"sessions.end"> {
    return this.api.call("sessions.end", {}, options);
  }

  /**
   * List the ledger entries of the account balance, newest first. Charges for requests are summed into one
   * entry per operation and hour.
   */
  history(query: PageQuery = {}, options: RequestOptions = {}): ListOf<"meter.own.history", "entries"> {
    return this.api.list("meter.own.history", "entries", { query }, options);
  }

  /**
   * Add credits to the account balance. Use it after a payment, or in tests. It is not limited to the tier's
   * monthly credits, and a repeated request adds the amount again unless it has an `Idempotency-Key`.
   * Recorded in the audit log.
   */
  refill(amount: AmountBody["amount"], options?: ChangeOptions): Answers<"meter.own.refill"> {
    return this.api.call("meter.own.refill", { body: { amount } }, options);
  }
}

/** The meter of one of your customers. */
export class Meter extends Methods {
  constructor(
    api: Api,
    /** `meterId` of the requests. */ readonly id: string,
  ) {
    super(api);
  }

  /**
   * Get a meter's alert. Returns the meter's own alert only: 404 if it has none, even if the alert of the
   * project applies to it. The meter's balance says which one applies.
   */
  alert(options?: RequestOptions): Answers<"meter.alert.read"> {
    return this.api.call("meter.alert.read", { params: { meterId: this.id } }, options);
  }

  /** Get a tenant meter's balance. A meter that does not exist has the balance 0; reading creates nothing. */
  balance(options?: RequestOptions): Answers<"meter.balance"> {
    return this.api.call("meter.balance", { params: { meterId: this.id } }, options);
  }

  /** Capture a hold. Deducts the amount as one ledger entry. The rest is released, unless `final` is false. */
  capture(holdId: string, body: CaptureBody = {}, options?: ChangeOptions): Answers<"meter.holds.capture"> {
    return this.api.call(
      "meter.holds.capture",
      { params: { meterId: this.id, hold_id: holdId }, body },
      options,
    );
  }

  /**
   * Deduct from a tenant meter. Atomic. A deduction above the available credits changes nothing and returns
   * 402 with the balance. Costs 1 credit.
   */
  deduct(amount: AmountBody["amount"], options?: ChangeOptions): Answers<"meter.deduct"> {
    return this.api.call("meter.deduct", { params: { meterId: this.id }, body: { amount } }, options);
  }

  /**
   * Delete a meter's alert. The alert of the project, if there is one, applies to the meter again. Without
   * an alert nothing changes and the response is the same.
   */
  deleteAlert(options?: ChangeOptions): Answers<"meter.alert.delete"> {
    return this.api.call("meter.alert.delete", { params: { meterId: this.id } }, options);
  }

  /**
   * Delete a meter's refill plan. Stops future refills; the balance and past refills stay. Without a plan
   * nothing changes and the response is the same.
   */
  deletePlan(options?: ChangeOptions): Answers<"meter.plan.delete"> {
    return this.api.call("meter.plan.delete", { params: { meterId: this.id } }, options);
  }

  /**
   * Extend a hold. For work that takes longer than expected: the hold expires `ttl_seconds` from now, which
   * can be earlier than before. A hold that is no longer open, such as an expired one, is 409.
   */
  extend(
    holdId: string,
    ttlSeconds: ExtendBody["ttl_seconds"],
    options?: ChangeOptions,
  ): Answers<"meter.holds.extend"> {
    return this.api.call(
      "meter.holds.extend",
      { params: { meterId: this.id, hold_id: holdId }, body: { ttl_seconds: ttlSeconds } },
      options,
    );
  }

  /**
   * Get a hold. Use it to learn what became of a hold after a lost response. A hold expires exactly at
   * `expires_at`, and is 404 from 7 days after it was closed.
   */
  getHold(holdId: string, options?: RequestOptions): Answers<"meter.holds.read"> {
    return this.api.call("meter.holds.read", { params: { meterId: this.id, hold_id: holdId } }, options);
  }

  /**
   * List a tenant meter's ledger entries, newest first. Every change of the balance is an entry, which never
   * changes, and the amounts add up to the balance. A hold and its release are not entries; a capture is
   * one, with its `hold_id`. A meter that does not exist has an empty history.
   */
  history(query: PageQuery = {}, options: RequestOptions = {}): ListOf<"meter.history", "entries"> {
    return this.api.list("meter.history", "entries", { params: { meterId: this.id }, query }, options);
  }

  /**
   * Create a hold on a tenant meter. A hold reduces the available credits, not the balance. Repeating the
   * request with the same `hold_id` and terms returns 200 with the current hold. Costs 1 credit.
   */
  hold(body: HoldBody, options?: ChangeOptions): Answers<"meter.holds.create"> {
    return this.api.call("meter.holds.create", { params: { meterId: this.id }, body }, options);
  }

  /**
   * List a meter's holds, newest first. Use it to find open holds that reduce the available credits. Closed
   * holds (`captured`, `released`, `expired`) are stored for 7 days.
   */
  holds(
    query: QueryOf<"meter.holds.list"> = {},
    options: RequestOptions = {},
  ): ListOf<"meter.holds.list", "holds"> {
    return this.api.list("meter.holds.list", "holds", { params: { meterId: this.id }, query }, options);
  }

  /**
   * Get a meter's refill plan. Use it to show a customer when and by how much the meter is refilled next. A
   * meter without a plan is 404.
   */
  plan(options?: RequestOptions): Answers<"meter.plan.read"> {
    return this.api.call("meter.plan.read", { params: { meterId: this.id } }, options);
  }

  /** Refill a tenant meter. The first refill or reset creates the meter. Costs 1 credit. */
  refill(amount: AmountBody["amount"], options?: ChangeOptions): Answers<"meter.refill"> {
    return this.api.call("meter.refill", { params: { meterId: this.id }, body: { amount } }, options);
  }

  /**
   * Release a hold. Makes the held credits available again when the work was not done; what was captured
   * before stays deducted. A hold that is released or expired already returns 200, and a captured one 409.
   */
  release(holdId: string, options?: ChangeOptions): Answers<"meter.holds.release"> {
    return this.api.call("meter.holds.release", { params: { meterId: this.id, hold_id: holdId } }, options);
  }

  /** Set a tenant meter's balance. The balance cannot be less than the held credits. Costs 1 credit. */
  reset(balance: ResetBody["balance"], options?: ChangeOptions): Answers<"meter.reset"> {
    return this.api.call("meter.reset", { params: { meterId: this.id }, body: { balance } }, options);
  }

  /**
   * Set a meter's alert. Sends a webhook when the available credits fall below the threshold, signed and
   * retried like a monitor's alert. A meter that does not exist is created with a balance of 0, which costs
   * 1 credit.
   */
  setAlert(body: AlertBody, options?: ChangeOptions): Answers<"meter.alert.set"> {
    return this.api.call("meter.alert.set", { params: { meterId: this.id }, body }, options);
  }

  /**
   * Set a meter's refill plan. Refills at 00:00 UTC. Refills missed during a downtime are applied later:
   * once with the mode `raise`, each of them with `add`. A meter that does not exist is created with a
   * balance of 0, which costs 1 credit.
   */
  setPlan(body: PlanBody, options?: ChangeOptions): Answers<"meter.plan.set"> {
    return this.api.call("meter.plan.set", { params: { meterId: this.id }, body }, options);
  }

  /**
   * Get a tenant meter's usage by hour, day or month. Buckets are in UTC. Empty buckets are omitted.
   * Default: the last 30 days, by day; maximum: 1,000 buckets.
   */
  usage(query: QueryOf<"meter.usage"> = {}, options?: RequestOptions): Answers<"meter.usage"> {
    return this.api.call("meter.usage", { params: { meterId: this.id }, query }, options);
  }
}

/** All meters of the project: their usage and alert. */
export class AllMeters extends Methods {
  /**
   * Get the project's alert, which applies to meters without their own. A project without this alert is 404,
   * even if single meters have their own.
   */
  alert(options?: RequestOptions): Answers<"meter.alert.project.read"> {
    return this.api.call("meter.alert.project.read", {}, options);
  }

  /**
   * Delete the project's alert, which applies to meters without their own. Meters with their own alert keep
   * it; all others cause no alert from then on. Without an alert nothing changes and the response is the
   * same.
   */
  deleteAlert(options?: ChangeOptions): Answers<"meter.alert.project.delete"> {
    return this.api.call("meter.alert.project.delete", {}, options);
  }

  /**
   * Set the project's alert, which applies to meters without their own. Sends a webhook when the available
   * credits fall below the threshold, signed and retried like a monitor's alert.
   */
  setAlert(body: AlertBody, options?: ChangeOptions): Answers<"meter.alert.project.set"> {
    return this.api.call("meter.alert.project.set", { body }, options);
  }

  /**
   * Get the usage of all tenant meters by hour, day or month. Use it for reports and charts: the sum over
   * all meters of the project, in UTC buckets. Buckets without entries are omitted, and a series has at most
   * 1,000 buckets. Captures count as deducted, and refills of plans as refilled.
   */
  usage(
    query: QueryOf<"meter.usage.project"> = {},
    options?: RequestOptions,
  ): Answers<"meter.usage.project"> {
    return this.api.call("meter.usage.project", { query }, options);
  }
}

/** Projects. A client works in the project of its key: create one with {@link Projects.createKey}. */
export class Projects extends Methods {
  /**
   * Create a project. The slug is derived from the name; if it is taken, a number is appended. Not for keys
   * of one project.
   */
  create(body: ProjectCreateBody, options?: ChangeOptions): Answers<"projects.create"> {
    return this.api.call("projects.create", { body }, options);
  }

  /**
   * Create a managed key for one project. Only this response contains the secret. A key with the prefix `sm`
   * is a Bearer credential of this API and can only have scopes that your key has. A key with any other
   * prefix works with verify only and can have any scopes. A key that expires can only create keys that
   * expire no later. It works in this project only. For a project other than your key's own, the scope `*`
   * is required. Costs 1 credit.
   */
  createKey(id: string, body: KeyCreateBody, options?: ChangeOptions): Answers<"projects.keys.create"> {
    return this.api.call("projects.keys.create", { params: { id }, body }, options);
  }

  /**
   * Delete a project and everything in it. Applies immediately, including to the project's keys. The data is
   * removed in the background and cannot be restored. The default project can be deleted only if there is
   * another one, which becomes the default; a key of the account needs the scope `*` for this.
   */
  delete(id: string, options?: ChangeOptions): Answers<"projects.delete"> {
    return this.api.call("projects.delete", { params: { id } }, options);
  }

  /**
   * Get a project. A key of one project sees only that project; every other id is 404, as is a deleted
   * project.
   */
  get(id: string, options?: RequestOptions): Answers<"projects.get"> {
    return this.api.call("projects.get", { params: { id } }, options);
  }

  /** List projects, newest first. A key of one project lists only that project. */
  list(query: PageQuery = {}, options: RequestOptions = {}): ListOf<"projects.list", "projects"> {
    return this.api.list("projects.list", "projects", { query }, options);
  }

  /** Get the number of resources in a project. The numbers are at most five minutes old. */
  overview(id: string, options?: RequestOptions): Answers<"projects.overview"> {
    return this.api.call("projects.overview", { params: { id } }, options);
  }

  /**
   * Update the name, description, time zone or review of a project. Omitted fields keep their value; `null`
   * clears the description. The slug never changes.
   */
  update(id: string, body: ProjectUpdateBody, options?: ChangeOptions): Answers<"projects.update"> {
    return this.api.call("projects.update", { params: { id }, body }, options);
  }
}

/** Methods of {@link Keys} that send one request. */
export class KeysMethods extends Methods {
  /** Methods of `nf.keys.roles`. */
  readonly roles = new KeysRoles(this.api);

  /**
   * Create a managed key. Only this response contains the secret. A key with the prefix `sm` is a Bearer
   * credential of this API and can only have scopes that your key has. A key with any other prefix works
   * with verify only and can have any scopes. A key that expires can only create keys that expire no later.
   * A key of one project creates keys of that project. Costs 1 credit.
   */
  create(body: KeyCreateBody, options?: ChangeOptions): Answers<"keys.create"> {
    return this.api.call("keys.create", { body }, options);
  }

  /**
   * Get a managed key. Use it to inspect a key by its id, such as its scopes, limits, expiry and last use.
   * The secret is never returned; to check a secret use `POST /v1/keys/verify`. Costs 1 credit.
   */
  get(id: string, options?: RequestOptions): Answers<"keys.get"> {
    return this.api.call("keys.get", { params: { id } }, options);
  }

  /**
   * Import keys of another service by the hashes of their secrets. Your customers keep their secrets: `POST
   * /v1/keys/verify` accepts them from the next request. All keys are imported, or none. A hash that the
   * account already has returns its key unchanged, free of charge; each new key costs 1 credit. Imported
   * keys work with verify only. Hashes are never shown. Costs 1 credit.
   */
  import(body: KeysImportBody, options?: ChangeOptions): Answers<"keys.import"> {
    return this.api.call("keys.import", { body }, options);
  }

  /**
   * List managed keys, newest first. A key of one project lists the keys of that project. With
   * `environment`, and if keys are large, a page can have fewer keys than `limit`, or none, although
   * `has_more` is true. Costs 1 credit.
   */
  list(query: QueryOf<"keys.list"> = {}, options: RequestOptions = {}): ListOf<"keys.list", "keys"> {
    return this.api.list("keys.list", "keys", { query }, options);
  }

  /**
   * Revoke a managed key. Applies from the next request. The record is stored for 30 days. Your key must
   * have the scopes of the revoked key. Costs 1 credit.
   */
  revoke(id: string, options?: ChangeOptions): Answers<"keys.revoke"> {
    return this.api.call("keys.revoke", { params: { id } }, options);
  }

  /**
   * Revoke all keys of an owner. Revokes the keys of the owner that your key can see, at most 1000. If
   * `more` is true, send the request again. If your key lacks a scope of one of them, none is revoked. Costs
   * 1 credit.
   */
  revokeByOwner(ownerId: KeysRevokeBody["owner_id"], options?: ChangeOptions): Answers<"keys.revoke_owned"> {
    return this.api.call("keys.revoke_owned", { body: { owner_id: ownerId } }, options);
  }

  /** @deprecated Use `revokeByOwner`, which is the same. */
  revokeOwned(ownerId: KeysRevokeBody["owner_id"], options?: ChangeOptions): Answers<"keys.revoke_owned"> {
    return this.api.call("keys.revoke_owned", { body: { owner_id: ownerId } }, options);
  }

  /**
   * Rotate a managed key. Creates a copy of the key with a new id and secret. The old key works until the
   * grace period has passed, or until its own `expires_at` if that is earlier. Your key must have the scopes
   * of the key and must not expire before it. For a key of a project other than your key's own, the scope
   * `*` is required. Costs 1 credit.
   */
  rotate(id: string, body: KeyRotateBody = {}, options?: ChangeOptions): Answers<"keys.rotate"> {
    return this.api.call("keys.rotate", { params: { id }, body }, options);
  }

  /**
   * Update a managed key. Omitted fields keep their value; null clears a field. The update applies from the
   * next request. The secret does not change. Your key must have the scopes of the key before and after the
   * update, and must not expire before it. Costs 1 credit.
   */
  update(id: string, body: KeyPatchBody, options?: ChangeOptions): Answers<"keys.patch"> {
    return this.api.call("keys.patch", { params: { id }, body }, options);
  }

  /** @deprecated Use `update`, which is the same. */
  patch(id: string, body: KeyPatchBody, options?: ChangeOptions): Answers<"keys.patch"> {
    return this.api.call("keys.patch", { params: { id }, body }, options);
  }

  /**
   * Get the usage of a managed key. Counts verifications by outcome, and for a key with the prefix `sm` its
   * requests. Usage is stored for 90 days. After a crash, the last few seconds can be missing. Costs 1
   * credit.
   */
  usage(id: string, query: QueryOf<"keys.usage"> = {}, options?: RequestOptions): Answers<"keys.usage"> {
    return this.api.call("keys.usage", { params: { id }, query }, options);
  }
}

/** Methods of {@link Flags} that send one request. */
export class FlagsMethods extends Methods {
  /** Methods of `nf.flags.proposals`. */
  readonly proposals = new FlagsProposals(this.api);

  /** Methods of `nf.flags.scheduled`. */
  readonly scheduled = new FlagsScheduled(this.api);

  /**
   * Get a flag's definition. Use it to edit a flag: it has the rules, variants and the `version` for
   * `if_version` of a save. Nothing is evaluated. Archived flags are returned as well.
   */
  definition(flagKey: string, options?: RequestOptions): Answers<"gate.definition"> {
    return this.api.call("gate.definition", { params: { flagKey } }, options);
  }

  /**
   * Delete a flag. From the next request on, the flag does not exist: its switch is 404, and OFREP returns
   * `FLAG_NOT_FOUND`, so that clients use their default. Its usage is deleted too. To be able to undo it,
   * archive the flag instead.
   */
  delete(flagKey: string, options?: ChangeOptions): Answers<"gate.delete"> {
    return this.api.call("gate.delete", { params: { flagKey } }, options);
  }

  /** Get a flag's switch. Served from memory. Use OFREP to evaluate the flag's rules. Costs 1 credit. */
  evaluate(flagKey: string, options?: RequestOptions): Answers<"gate.evaluate"> {
    return this.api.call("gate.evaluate", { params: { flagKey } }, options);
  }

  /**
   * Get the number of a flag's evaluations. Counts individual evaluations and those of checks, by variant
   * and hour or day, for 30 days. Bulk evaluations and previews are not counted. After a crash, the last
   * minute can be missing.
   */
  evaluations(
    flagKey: string,
    query: QueryOf<"gate.evaluations"> = {},
    options?: RequestOptions,
  ): Answers<"gate.evaluations"> {
    return this.api.call("gate.evaluations", { params: { flagKey }, query }, options);
  }

  /**
   * Preview what a flag serves. Evaluates the stored flag, or a change of it that is not saved, for up to
   * 100 contexts. Archived and server-only flags are evaluated like others. Counts neither as an evaluation
   * nor as a use. All contexts together have the comparisons of one evaluation. Costs 1 credit.
   */
  preview(flagKey: string, body: FlagPreviewBody, options?: RequestOptions): Answers<"gate.preview"> {
    return this.api.call("gate.preview", { params: { flagKey }, body }, options);
  }

  /**
   * Evaluate a flag for a context. For OpenFeature's providers. The key can also be sent as `X-API-Key`. If
   * the response has no `value`, the caller uses its own default. Errors also have `key`, `errorCode` and
   * `errorDetails`. Costs 1 credit.
   */
  resolve(
    key: string,
    context: NonNullable<EvaluationBody["context"]>,
    options?: RequestOptions,
  ): Answers<"ofrep.evaluate"> {
    return this.api.call("ofrep.evaluate", { params: { key }, body: { context } }, options);
  }

  /**
   * Evaluate all flags for a context. For OpenFeature's providers in browsers. With the `ETag` of an earlier
   * response in `If-None-Match`, the response is 304 while nothing has changed, at the same cost. Errors
   * also have `errorCode` and `errorDetails`. Costs 1 credit.
   */
  resolveAll(
    context: NonNullable<EvaluationBody["context"]>,
    options?: RequestOptions,
  ): Answers<"ofrep.bulk"> {
    return this.api.call("ofrep.bulk", { body: { context } }, options);
  }

  /**
   * Create or update a flag. The next request uses the change. Omitted fields stay unchanged; null restores
   * the default. A save without changes writes nothing. Costs 1 credit per started 4 KiB of changed fields,
   * as JSON, above the first 4 KiB, which are free of charge. In a project with `review`, only `enabled:
   * false` alone is saved; other changes are proposed.
   */
  save(body: FlagBody, options?: ChangeOptions): Answers<"gate.save"> {
    return this.api.call("gate.save", { body }, options);
  }
}

/** Methods of {@link Locks} that send one request. */
export class LocksMethods extends Methods {
  /**
   * Extend a lock. The lock expires `ttl` from now, even when that is earlier than before. Unlike acquire,
   * this never takes a free lock: 404 if the lock is free, 403 if another token holds it.
   */
  extend(
    key: string,
    token: LockExtendBody["token"],
    ttl: LockExtendBody["ttl"],
    options?: ChangeOptions,
  ): Answers<"latch.extend"> {
    return this.api.call("latch.extend", { params: { key }, body: { token, ttl } }, options);
  }

  /**
   * Release a lock by force. Releases the lock of a holder that hangs, without notifying the holder. The
   * lock passes to the next waiter. Resources that check fencing tokens stay protected from late writes of
   * the old holder. 409 if the lock has another holder.
   */
  forceRelease(
    key: string,
    fencingToken: ForceReleaseBody["fencing_token"],
    options?: ChangeOptions,
  ): Answers<"latch.force"> {
    return this.api.call("latch.force", { params: { key }, body: { fencing_token: fencingToken } }, options);
  }

  /**
   * Get a lock's state. Use it to see whether a lock is held, how long it has left, and how many requests
   * wait. The result may be outdated when you read it: only an acquire is reliable. A lock that nobody
   * holds, or that never existed, is `locked: false`.
   */
  get(key: string, options?: RequestOptions): Answers<"latch.status"> {
    return this.api.call("latch.status", { params: { key } }, options);
  }

  /** @deprecated Use `get`, which is the same. */
  status(key: string, options?: RequestOptions): Answers<"latch.status"> {
    return this.api.call("latch.status", { params: { key } }, options);
  }

  /**
   * List the held locks, by key. Use it to find locks that hang. A shared lock has one row per holder. Free
   * locks are not listed, and tokens are never returned.
   */
  list(query: PageQuery = {}, options: RequestOptions = {}): ListOf<"latch.list", "locks"> {
    return this.api.list("latch.list", "locks", { query }, options);
  }

  /**
   * Release a lock. The lock passes to the next waiter. 404 if the lock is free, 403 if another token holds
   * it.
   */
  release(key: string, token: ReleaseBody["token"], options?: ChangeOptions): Answers<"latch.release"> {
    return this.api.call("latch.release", { params: { key }, body: { token } }, options);
  }
}

/** Methods of {@link Monitors} that send one request. */
export class MonitorsMethods extends Methods {
  /** Incidents, opened by monitors or manually. */
  readonly incidents = new MonitorIncidents(this.api);

  /** Notification channels. */
  readonly channels = new MonitorChannels(this.api);

  /** Maintenance windows, in which alerts of their monitors are suppressed. */
  readonly maintenance = new MonitorMaintenance(this.api);

  /** Probes, which check monitors from other machines. */
  readonly probes = new MonitorProbes(this.api);

  /** Status pages, visible to anyone at the `url` of the page. */
  readonly pages = new StatusPages(this.api);

  /**
   * Create a monitor. The first check runs within 5 seconds. A heartbeat waits for its first ping. Costs 1
   * credit.
   */
  create(body: MonitorCreateBody, options?: ChangeOptions): Answers<"monitors.create"> {
    return this.api.call("monitors.create", { body }, options);
  }

  /**
   * Delete a monitor and its history. Stops its checks, resolves its open incident, and removes it from
   * status pages. The history cannot be restored: to stop the checks and keep it, set `active` to false
   * instead. Costs 1 credit.
   */
  delete(monitorId: string, options?: ChangeOptions): Answers<"monitors.delete"> {
    return this.api.call("monitors.delete", { params: { monitorId } }, options);
  }

  /**
   * Get a monitor with its current status. Reads stored results; to check the target now use `POST
   * /v1/pulse/{monitorId}/check`. `failing` is true while the last check failed, but not enough of them in a
   * row to mark the target as down. Costs 1 credit.
   */
  get(monitorId: string, options?: RequestOptions): Answers<"monitors.read"> {
    return this.api.call("monitors.read", { params: { monitorId } }, options);
  }

  /**
   * List a monitor's checks, newest first, with its uptime and outages. Checks are stored for 30 days, daily
   * counts for 400 days. Costs 1 credit.
   */
  history(
    monitorId: string,
    query: QueryOf<"monitors.history"> = {},
    options: RequestOptions = {},
  ): ListOf<"monitors.history", "checks"> {
    return this.api.list("monitors.history", "checks", { params: { monitorId }, query }, options);
  }

  /**
   * List monitors with their current status, newest first. Use it for overviews and exports. It reads stored
   * results and checks nothing. `details=true` adds uptime and hours of the last day to each monitor. Costs
   * 1 credit.
   */
  list(
    query: QueryOf<"monitors.list"> = {},
    options: RequestOptions = {},
  ): ListOf<"monitors.list", "monitors"> {
    return this.api.list("monitors.list", "monitors", { query }, options);
  }

  /** List the last pings of a heartbeat. Newest first. The last 100 pings are stored. Costs 1 credit. */
  pings(monitorId: string, options?: RequestOptions): Answers<"monitors.pings"> {
    return this.api.call("monitors.pings", { params: { monitorId } }, options);
  }

  /**
   * Create or replace the project's ping key. A heartbeat with a slug is pinged at `/ping/<ping
   * key>/<slug>`. The previous key stops working. Costs 1 credit.
   */
  renewPingKey(options?: ChangeOptions): Answers<"monitors.ping_key"> {
    return this.api.call("monitors.ping_key", {}, options);
  }

  /**
   * Update a monitor. Omitted fields stay unchanged. `active: false` stops the checks; the status stays.
   * Without the scope `*`, a `url` of another origin requires the `headers` again (else 409), and the
   * response covers the values of headers that the request does not set. Costs 1 credit.
   */
  update(monitorId: string, body: MonitorUpdateBody, options?: ChangeOptions): Answers<"monitors.update"> {
    return this.api.call("monitors.update", { params: { monitorId }, body }, options);
  }
}

/** Incidents, opened by monitors or manually. */
export class MonitorIncidents extends Methods {
  /**
   * Acknowledge an incident. Stops the repeated alerts of the incident and notifies channels once.
   * Acknowledging it again changes nothing. Costs 1 credit.
   */
  acknowledge(incidentId: string, options?: ChangeOptions): Answers<"monitors.incidents.acknowledge"> {
    return this.api.call("monitors.incidents.acknowledge", { params: { incident_id: incidentId } }, options);
  }

  /**
   * Create an incident. Monitors open and resolve their incidents automatically; this creates a manual one.
   * The states of manual monitors follow from it. With `started_at`, `resolved_at` or `updates` it is one of
   * the past, of which nobody is notified. Costs 1 credit.
   */
  create(body: IncidentCreateBody, options?: ChangeOptions): Answers<"monitors.incidents.create"> {
    return this.api.call("monitors.incidents.create", { body }, options);
  }

  /**
   * Post an incident update. `resolved` resolves a manual incident. An automatic incident is resolved by the
   * check that finds its target up. Costs 1 credit.
   */
  createUpdate(
    incidentId: string,
    body: IncidentUpdateBody,
    options?: ChangeOptions,
  ): Answers<"monitors.incidents.update"> {
    return this.api.call("monitors.incidents.update", { params: { incident_id: incidentId }, body }, options);
  }

  /** @deprecated Use `createUpdate`, which is the same. */
  say(
    incidentId: string,
    body: IncidentUpdateBody,
    options?: ChangeOptions,
  ): Answers<"monitors.incidents.update"> {
    return this.api.call("monitors.incidents.update", { params: { incident_id: incidentId }, body }, options);
  }

  /**
   * Get an incident with its updates, its timeline, and what status pages show of it. Use it to understand
   * an outage: the timeline has the checks that changed the status and the alerts that were sent, with their
   * result. Costs 1 credit.
   */
  get(incidentId: string, options?: RequestOptions): Answers<"monitors.incidents.read"> {
    return this.api.call("monitors.incidents.read", { params: { incident_id: incidentId } }, options);
  }

  /**
   * List incidents, newest first. Automatic and manual ones. Resolved incidents are stored for 400 days.
   * Updates and the timeline are only in a single incident. Costs 1 credit.
   */
  list(
    query: QueryOf<"monitors.incidents.list"> = {},
    options: RequestOptions = {},
  ): ListOf<"monitors.incidents.list", "incidents"> {
    return this.api.list("monitors.incidents.list", "incidents", { query }, options);
  }

  /**
   * Snooze an incident. Nobody is notified again of the outage of a monitor for some time: no reminders,
   * steps of escalations and repeated webhooks. If the target is still down then, its channels are notified.
   * Snoozing it again replaces the time. Costs 1 credit.
   */
  snooze(
    incidentId: string,
    body: IncidentSnoozeBody = {},
    options?: ChangeOptions,
  ): Answers<"monitors.incidents.snooze"> {
    return this.api.call("monitors.incidents.snooze", { params: { incident_id: incidentId }, body }, options);
  }

  /**
   * Update an incident. Changes its title, its impact, its visibility, and the monitors that a manual
   * incident affects. Post the progress as an update. Costs 1 credit.
   */
  update(
    incidentId: string,
    body: IncidentPatch,
    options?: ChangeOptions,
  ): Answers<"monitors.incidents.change"> {
    return this.api.call("monitors.incidents.change", { params: { incident_id: incidentId }, body }, options);
  }
}

/** Notification channels. */
export class MonitorChannels extends Methods {
  /**
   * Create a notification channel. Tier starter and higher; the kind `email` requires the tier pro. Costs 1
   * credit.
   */
  create(body: ChannelCreateBody, options?: ChangeOptions): Answers<"monitors.channels.create"> {
    return this.api.call("monitors.channels.create", { body }, options);
  }

  /**
   * Delete a notification channel. Monitors that used it notify their other channels, and nobody if it was
   * the only one: check their `channels` first. Costs 1 credit.
   */
  delete(channelId: string, options?: ChangeOptions): Answers<"monitors.channels.delete"> {
    return this.api.call("monitors.channels.delete", { params: { channel_id: channelId } }, options);
  }

  /**
   * Get a notification channel. Use it to see why alerts do not arrive: `last_error` is the reason the last
   * message failed. Secrets in `config` are returned as `[secret]`, and an update of `config` must contain
   * them again. Costs 1 credit.
   */
  get(channelId: string, options?: RequestOptions): Answers<"monitors.channels.read"> {
    return this.api.call("monitors.channels.read", { params: { channel_id: channelId } }, options);
  }

  /**
   * List notification channels, newest first. `last_error` says why the last message to a channel could not
   * be delivered. Secrets in `config` are returned as `[secret]`. Costs 1 credit.
   */
  list(query: PageQuery = {}, options: RequestOptions = {}): ListOf<"monitors.channels.list", "channels"> {
    return this.api.list("monitors.channels.list", "channels", { query }, options);
  }

  /** Send a test message to a channel. The message is sent immediately, without retries. Costs 1 credit. */
  test(channelId: string, options?: ChangeOptions): Answers<"monitors.channels.test"> {
    return this.api.call("monitors.channels.test", { params: { channel_id: channelId } }, options);
  }

  /**
   * Update a notification channel. Omitted fields stay unchanged. `config` is replaced as a whole, including
   * its secrets. Costs 1 credit.
   */
  update(
    channelId: string,
    body: ChannelPatch,
    options?: ChangeOptions,
  ): Answers<"monitors.channels.change"> {
    return this.api.call("monitors.channels.change", { params: { channel_id: channelId }, body }, options);
  }
}

/** Maintenance windows, in which alerts of their monitors are suppressed. */
export class MonitorMaintenance extends Methods {
  /**
   * Create a maintenance window. A single window from `starts_at` to `ends_at`, or recurring windows by
   * `schedule` and `duration_ms`. Failures during a window cause no alerts. Costs 1 credit.
   */
  create(body: MaintenanceCreateBody, options?: ChangeOptions): Answers<"monitors.maintenance.create"> {
    return this.api.call("monitors.maintenance.create", { body }, options);
  }

  /** Delete a maintenance window. An open window ends immediately. Costs 1 credit. */
  delete(maintenanceId: string, options?: ChangeOptions): Answers<"monitors.maintenance.delete"> {
    return this.api.call(
      "monitors.maintenance.delete",
      { params: { maintenance_id: maintenanceId } },
      options,
    );
  }

  /**
   * Get a maintenance entry. `status` follows the clock. For recurring windows, the times are those of the
   * current or the next window. Costs 1 credit.
   */
  get(maintenanceId: string, options?: RequestOptions): Answers<"monitors.maintenance.read"> {
    return this.api.call("monitors.maintenance.read", { params: { maintenance_id: maintenanceId } }, options);
  }

  /**
   * List maintenance, newest first. Includes past windows, at most 100 in a project. `status` selects those
   * in progress, for example. Costs 1 credit.
   */
  list(
    query: QueryOf<"monitors.maintenance.list"> = {},
    options: RequestOptions = {},
  ): ListOf<"monitors.maintenance.list", "maintenance"> {
    return this.api.list("monitors.maintenance.list", "maintenance", { query }, options);
  }

  /**
   * Update a maintenance window. Omitted fields stay unchanged. A single window cannot become recurring, or
   * the reverse. Costs 1 credit.
   */
  update(
    maintenanceId: string,
    body: MaintenanceUpdateBody,
    options?: ChangeOptions,
  ): Answers<"monitors.maintenance.update"> {
    return this.api.call(
      "monitors.maintenance.update",
      { params: { maintenance_id: maintenanceId }, body },
      options,
    );
  }
}

/** Probes, which check monitors from other machines. */
export class MonitorProbes extends Methods {
  /**
   * Create a probe. The response has the token with which `ninefold probe` calls the server. It is shown
   * once. Tier starter and higher. Costs 1 credit.
   */
  create(body: ProbeCreateBody, options?: ChangeOptions): Answers<"monitors.probes.create"> {
    return this.api.call("monitors.probes.create", { body }, options);
  }

  /**
   * Delete a probe. Its token stops working immediately. It leaves the `probes` of its monitors; the only
   * probe of a monitor cannot be deleted. Costs 1 credit.
   */
  delete(probeId: string, options?: ChangeOptions): Answers<"monitors.probes.delete"> {
    return this.api.call("monitors.probes.delete", { params: { probe_id: probeId } }, options);
  }

  /**
   * Get a probe. Shows when the probe was last seen, and whether it is online. The token is not returned: it
   * is shown once, when the probe is created. Costs 1 credit.
   */
  get(probeId: string, options?: RequestOptions): Answers<"monitors.probes.read"> {
    return this.api.call("monitors.probes.read", { params: { probe_id: probeId } }, options);
  }

  /**
   * List probes, newest first. Use it to see which probes are online. The tokens are not returned. The
   * server itself, `local`, is not listed. Costs 1 credit.
   */
  list(query: PageQuery = {}, options: RequestOptions = {}): ListOf<"monitors.probes.list", "probes"> {
    return this.api.list("monitors.probes.list", "probes", { query }, options);
  }

  /**
   * Update a probe. Only the `location`, which people read, can be changed. The name is fixed, because
   * monitors refer to it: create another probe instead. Costs 1 credit.
   */
  update(probeId: string, body: ProbePatch, options?: ChangeOptions): Answers<"monitors.probes.update"> {
    return this.api.call("monitors.probes.update", { params: { probe_id: probeId }, body }, options);
  }
}

/** Status pages, visible to anyone at the `url` of the page. */
export class StatusPages extends Methods {
  /** Methods of `nf.monitors.pages.subscribers`. */
  readonly subscribers = new MonitorsPagesSubscribers(this.api);

  /**
   * Create a public status page. The page is public at `/status/{slug}` immediately, unless `published` is
   * false. The slug is unique on the server, not only in your project. Visitors are free of charge. Costs 1
   * credit.
   */
  create(body: StatusPageCreateBody, options?: ChangeOptions): Answers<"monitors.pages.create"> {
    return this.api.call("monitors.pages.create", { body }, options);
  }

  /**
   * Delete a status page. The public address is 404 immediately, and all subscribers are deleted. The
   * monitors and incidents stay. To hide a page for some time, set `published` to false. Costs 1 credit.
   */
  delete(pageId: string, options?: ChangeOptions): Answers<"monitors.pages.delete"> {
    return this.api.call("monitors.pages.delete", { params: { page_id: pageId } }, options);
  }

  /**
   * Get a status page's settings. For editing the page. What visitors see is at `/status/{slug}` and, as
   * JSON, at `/status/{slug}.json`. Monitors that were deleted are not in `groups`. Costs 1 credit.
   */
  get(pageId: string, options?: RequestOptions): Answers<"monitors.pages.read"> {
    return this.api.call("monitors.pages.read", { params: { page_id: pageId } }, options);
  }

  /**
   * List status pages, newest first. Published and unpublished pages, without their `groups` and `logo`: a
   * single page has them. Costs 1 credit.
   */
  list(query: PageQuery = {}, options: RequestOptions = {}): ListOf<"monitors.pages.list", "pages"> {
    return this.api.list("monitors.pages.list", "pages", { query }, options);
  }

  /**
   * Update a status page. Omitted fields stay unchanged. `published: false` hides the page without deleting
   * it. Costs 1 credit.
   */
  update(
    pageId: string,
    body: StatusPageUpdateBody,
    options?: ChangeOptions,
  ): Answers<"monitors.pages.update"> {
    return this.api.call("monitors.pages.update", { params: { page_id: pageId }, body }, options);
  }
}

/** Signed webhooks: scheduled deliveries, and messages to subscribed endpoints. */
export class Relay extends Methods {
  /** Webhook endpoints. */
  readonly endpoints = new RelayEndpoints(this.api);

  /** Types of messages, with their schemas. */
  readonly eventTypes = new RelayEventTypes(this.api);

  /** Messages to all subscribed endpoints. */
  readonly messages = new RelayMessages(this.api);

  /** Links by which your customers manage their own endpoints. */
  readonly portal = new RelayPortal(this.api);

  /** Recurring webhooks, by cron expression. */
  readonly schedules = new RelaySchedules(this.api);

  /**
   * Get the body that a delivery sends. Stored until the delivery succeeds or is cancelled; of failed
   * deliveries for 7 days. To endpoints, as long as the message or event. Bodies of notifications to chat
   * and on-call services are not returned, since they may contain secrets.
   */
  body(relayId: string, options?: RequestOptions): Answers<"relay.body"> {
    return this.api.call("relay.body", { params: { relay_id: relayId } }, options);
  }

  /**
   * Cancel a delivery before its first attempt. Only while its status is `scheduled`: after the first
   * attempt the response is 409, although retries may follow. Cancelling again returns 200. The credit is
   * not refunded, and no callback is sent.
   */
  cancel(relayId: string, options?: ChangeOptions): Answers<"relay.cancel"> {
    return this.api.call("relay.cancel", { params: { relay_id: relayId } }, options);
  }

  /**
   * Get a delivery with its attempts. Use it to find out why a webhook did not arrive: `attempt_log` has
   * request, response and error of each attempt. Values that may be secret are `[secret]`. Deleted 7 days
   * after the delivery is finished.
   */
  get(relayId: string, options?: RequestOptions): Answers<"relay.read"> {
    return this.api.call("relay.read", { params: { relay_id: relayId } }, options);
  }

  /**
   * Get the progress of a bulk resend. `skipped` counts matches that were not sent, such as those that
   * another request had resent. A resend without credits has the status `cancelled` with an `error`. Stored
   * for 7 days.
   */
  getResend(resendId: string, options?: RequestOptions): Answers<"relay.resends.read"> {
    return this.api.call("relay.resends.read", { params: { resend_id: resendId } }, options);
  }

  /** @deprecated Use `getResend`, which is the same. */
  resendProgress(resendId: string, options?: RequestOptions): Answers<"relay.resends.read"> {
    return this.api.call("relay.resends.read", { params: { resend_id: resendId } }, options);
  }

  /**
   * List deliveries, newest first. Alerts and callbacks are deliveries too; `filter` separates them.
   * `status=failed` lists those without retries left. A filtered page may be short or empty and still have a
   * `cursor`: continue until there is none.
   */
  list(query: QueryOf<"relay.list"> = {}, options: RequestOptions = {}): ListOf<"relay.list", "deliveries"> {
    return this.api.list("relay.list", "deliveries", { query }, options);
  }

  /**
   * Resend a failed delivery. Sends the delivery immediately, under the same ids and with all its retries.
   * The numbers of its attempts continue. Costs 1 credit.
   */
  resend(relayId: string, options?: ChangeOptions): Answers<"relay.resend"> {
    return this.api.call("relay.resend", { params: { relay_id: relayId } }, options);
  }

  /**
   * Reveal the project's signing secret. Returns the secret that receivers verify deliveries with, by any
   * Standard Webhooks library. It is created on first use.
   */
  revealSecret(options?: ChangeOptions): Answers<"relay.secret.reveal"> {
    return this.api.call("relay.secret.reveal", {}, options);
  }

  /** @deprecated Use `revealSecret`, which is the same. */
  secret(options?: ChangeOptions): Answers<"relay.secret.reveal"> {
    return this.api.call("relay.secret.reveal", {}, options);
  }

  /**
   * Rotate the project's signing secret. For `grace_hours`, deliveries are also signed with the old secret.
   * At most three secrets are valid. Costs 1 credit.
   */
  rotateSecret(body: RelaySecretRotateBody = {}, options?: ChangeOptions): Answers<"relay.secret.rotate"> {
    return this.api.call("relay.secret.rotate", { body }, options);
  }

  /**
   * Schedule a signed webhook. Sends the payload to `target_url` after `delay`, or at the time `at`, at
   * least once. `X-Svc-Delivery-Id` and `webhook-id` are the same in every attempt. Costs 1 credit.
   */
  schedule(body: RelayBody, options?: ChangeOptions): Answers<"relay.schedule"> {
    return this.api.call("relay.schedule", { body }, options);
  }

  /**
   * Resend many failed deliveries. Requires `since`, `endpoint_id` or `relay_ids`. Each delivery costs 1
   * credit when it is sent.
   */
  startResend(body: RelayResendBody, options?: ChangeOptions): Answers<"relay.resends.start"> {
    return this.api.call("relay.resends.start", { body }, options);
  }

  /** @deprecated Use `startResend`, which is the same. */
  resendFailed(body: RelayResendBody, options?: ChangeOptions): Answers<"relay.resends.start"> {
    return this.api.call("relay.resends.start", { body }, options);
  }

  /** Count deliveries by status and over time. Counts the newest 10,000 deliveries of each status. */
  stats(query: QueryOf<"relay.stats"> = {}, options?: RequestOptions): Answers<"relay.stats"> {
    return this.api.call("relay.stats", { query }, options);
  }

  /**
   * Stop a bulk resend. Deliveries that were resent already are still attempted and charged; the others stay
   * failed. Stopping a resend that has ended changes nothing.
   */
  stopResend(resendId: string, options?: ChangeOptions): Answers<"relay.resends.stop"> {
    return this.api.call("relay.resends.stop", { params: { resend_id: resendId } }, options);
  }
}

/** Webhook endpoints. */
export class RelayEndpoints extends Methods {
  /**
   * Create an endpoint for messages. Only this response contains the endpoint's signing secret. With a
   * `signature` of `ed25519`, `public_key` replaces it.
   */
  create(body: RelayEndpointBody, options?: ChangeOptions): Answers<"relay.endpoints.create"> {
    return this.api.call("relay.endpoints.create", { body }, options);
  }

  /**
   * Delete an endpoint. Cancels its pending deliveries. An endpoint that is a target of a bucket cannot be
   * deleted: change the bucket first.
   */
  delete(endpointId: string, options?: ChangeOptions): Answers<"relay.endpoints.delete"> {
    return this.api.call("relay.endpoints.delete", { params: { endpoint_id: endpointId } }, options);
  }

  /**
   * Get an endpoint with its health and counts. Use it to see why a customer receives nothing: `health` says
   * whether the circuit breaker is open or the endpoint is disabled, and why. The signing secret is not
   * returned.
   */
  get(endpointId: string, options?: RequestOptions): Answers<"relay.endpoints.read"> {
    return this.api.call("relay.endpoints.read", { params: { endpoint_id: endpointId } }, options);
  }

  /**
   * List endpoints, newest first. Lists your own endpoints and those of all customers: `owner_id` selects
   * one customer. `state` finds disabled endpoints, which receive no messages.
   */
  list(
    query: QueryOf<"relay.endpoints.list"> = {},
    options: RequestOptions = {},
  ): ListOf<"relay.endpoints.list", "endpoints"> {
    return this.api.list("relay.endpoints.list", "endpoints", { query }, options);
  }

  /**
   * Preview the body that an endpoint receives. Makes the body of a message by the endpoint's `template`, or
   * by one to try, and sends nothing. Give `event_type` and `payload`, or the `message_id` of a stored
   * message.
   */
  preview(
    endpointId: string,
    body: RelayPreviewBody,
    options?: ChangeOptions,
  ): Answers<"relay.endpoints.preview"> {
    return this.api.call("relay.endpoints.preview", { params: { endpoint_id: endpointId }, body }, options);
  }

  /**
   * Send an endpoint the messages that it missed. Sends every message of a time that matches the endpoint
   * now and was never delivered to it: it was disabled, created later, or the delivery failed. Oldest first,
   * each once, for 1 credit when it is sent. Progress and stop: `/v1/relay/resends/{resend_id}`.
   */
  recover(
    endpointId: string,
    body: RelayRecoverBody,
    options?: ChangeOptions,
  ): Answers<"relay.endpoints.recover"> {
    return this.api.call("relay.endpoints.recover", { params: { endpoint_id: endpointId }, body }, options);
  }

  /**
   * Rotate an endpoint's signing secret. For `grace_hours`, messages are also signed with the old secret; by
   * `hmac-*`, only with the one that `signature.grace` selects. Costs 1 credit.
   */
  rotateSecret(
    endpointId: string,
    body: RelayEndpointSecretRotateBody = {},
    options?: ChangeOptions,
  ): Answers<"relay.endpoints.secret.rotate"> {
    return this.api.call(
      "relay.endpoints.secret.rotate",
      { params: { endpoint_id: endpointId }, body },
      options,
    );
  }

  /**
   * Send a test event to an endpoint. Sends the event regardless of the endpoint's types and filter. Without
   * a `payload`, the example of the event type is sent. Costs 1 credit.
   */
  test(
    endpointId: string,
    body: RelayEndpointTestBody = {},
    options?: ChangeOptions,
  ): Answers<"relay.endpoints.test"> {
    return this.api.call("relay.endpoints.test", { params: { endpoint_id: endpointId }, body }, options);
  }

  /**
   * Update an endpoint. Omitted fields keep their values. `state: live` also enables a disabled endpoint and
   * closes its breaker. Without the scope `*`, a `url` of another origin requires the `headers` again (else
   * 409).
   */
  update(
    endpointId: string,
    body: RelayEndpointPatch,
    options?: ChangeOptions,
  ): Answers<"relay.endpoints.change"> {
    return this.api.call("relay.endpoints.change", { params: { endpoint_id: endpointId }, body }, options);
  }
}

/** Types of messages, with their schemas. */
export class RelayEventTypes extends Methods {
  /**
   * Archive an event type. Its messages are sent as before, and not checked any more; the portal does not
   * show it. A `PUT` brings it back. The types that were archived first are removed when there are more than
   * the tier allows.
   */
  delete(name: string, options?: ChangeOptions): Answers<"relay.event_types.delete"> {
    return this.api.call("relay.event_types.delete", { params: { name } }, options);
  }

  /**
   * Get an event type. Also returns an archived one. `invalid_24h` shows whether its messages fit the
   * schema.
   */
  get(name: string, options?: RequestOptions): Answers<"relay.event_types.read"> {
    return this.api.call("relay.event_types.read", { params: { name } }, options);
  }

  /**
   * Import event types from an OpenAPI document. Takes description, schema and example of each webhook from
   * the JSON body of its `post`. References are resolved within the document. `enforce` and archived types
   * stay as they are. What cannot be imported is listed with a reason.
   */
  import(body: RelayEventTypesImportBody, options?: ChangeOptions): Answers<"relay.event_types.import"> {
    return this.api.call("relay.event_types.import", { body }, options);
  }

  /**
   * List event types, newest first. Use it for a catalogue of your messages. A page with long schemas may
   * have fewer items than `limit`, and still a `cursor`.
   */
  list(
    query: QueryOf<"relay.event_types.list"> = {},
    options: RequestOptions = {},
  ): ListOf<"relay.event_types.list", "event_types"> {
    return this.api.list("relay.event_types.list", "event_types", { query }, options);
  }

  /**
   * Create or replace an event type. Describes the messages with this `event_type`: for your customers in
   * the portal, and with a `schema` that their payloads are checked by. Omitted fields get their defaults.
   * An archived type comes back.
   */
  save(name: string, body: RelayEventTypeBody, options?: ChangeOptions): Answers<"relay.event_types.save"> {
    return this.api.call("relay.event_types.save", { params: { name }, body }, options);
  }
}

/** Messages to all subscribed endpoints. */
export class RelayMessages extends Methods {
  /**
   * Get a message with its deliveries. Shows which endpoints the message went to, and how each delivery
   * ended. The payload is null once its retention has passed, 7 days by default.
   */
  get(messageId: string, options?: RequestOptions): Answers<"relay.messages.read"> {
    return this.api.call("relay.messages.read", { params: { message_id: messageId } }, options);
  }

  /**
   * List messages, newest first. Use it to find the `message_id` of a message to resend. Lists have no
   * payloads and no deliveries: a single message has them.
   */
  list(
    query: QueryOf<"relay.messages.list"> = {},
    options: RequestOptions = {},
  ): ListOf<"relay.messages.list", "messages"> {
    return this.api.list("relay.messages.list", "messages", { query }, options);
  }

  /**
   * Resend a message to endpoints where it failed. Costs 1 credit for each delivery. With `endpoint_id`,
   * sends to that endpoint, whether the delivery failed or not, and also if it has none because the endpoint
   * was disabled, did not match, or was created later.
   */
  resend(
    messageId: string,
    body: RelayMessageResendBody = {},
    options?: ChangeOptions,
  ): Answers<"relay.messages.resend"> {
    return this.api.call("relay.messages.resend", { params: { message_id: messageId }, body }, options);
  }

  /**
   * Send a message to the matching endpoints. Costs 1 credit, and 1 for each delivery. Either all deliveries
   * are scheduled, or none.
   */
  send(body: RelayMessageBody, options?: ChangeOptions): Answers<"relay.messages.send"> {
    return this.api.call("relay.messages.send", { body }, options);
  }

  /**
   * Send up to 100 messages. Equivalent to single requests, but either all messages are sent, or none. Costs
   * their sum. Costs 1 credit.
   */
  sendBatch(
    messages: RelayMessagesBody["messages"],
    options?: ChangeOptions,
  ): Answers<"relay.messages.batch"> {
    return this.api.call("relay.messages.batch", { body: { messages } }, options);
  }

  /** @deprecated Use `sendBatch`, which is the same. */
  sendMany(
    messages: RelayMessagesBody["messages"],
    options?: ChangeOptions,
  ): Answers<"relay.messages.batch"> {
    return this.api.call("relay.messages.batch", { body: { messages } }, options);
  }
}

/** Links by which your customers manage their own endpoints. */
export class RelayPortal extends Methods {
  /** The endpoints of a customer, for a client whose key is the token of a portal link. */
  readonly endpoints = new PortalEndpoints(this.api);

  /** The event types that a portal link offers. */
  readonly eventTypes = new PortalEventTypes(this.api);

  /** The deliveries of a customer, for a client whose key is the token of a portal link. */
  readonly deliveries = new PortalDeliveries(this.api);

  /**
   * Create a portal link for a customer. With the link, a customer manages the endpoints with its
   * `owner_id`: it adds up to 20, tests them, and sees their secrets and deliveries. Your key must have the
   * scopes `relay:read` and `relay:write`. The link gives no other rights, and works as long as your key
   * does. A customer has at most 100 links: a new one revokes the oldest. Costs 1 credit.
   */
  create(body: PortalLinkBody, options?: ChangeOptions): Answers<"relay.portal.create"> {
    return this.api.call("relay.portal.create", { body }, options);
  }

  /**
   * Get the portal link of this request. The first request of a page of your own: shows which customer the
   * token is for, and when it expires. 401 means that the customer needs a new link.
   */
  get(options?: RequestOptions): Answers<"relay.portal.read"> {
    return this.api.call("relay.portal.read", {}, options);
  }

  /**
   * Get the progress of a recovery that the customer started. Only recoveries that were started with the
   * links of this customer; every other id is 404.
   */
  getResend(resendId: string, options?: RequestOptions): Answers<"relay.portal.resends.read"> {
    return this.api.call("relay.portal.resends.read", { params: { resend_id: resendId } }, options);
  }

  /** @deprecated Use `getResend`, which is the same. */
  resendProgress(resendId: string, options?: RequestOptions): Answers<"relay.portal.resends.read"> {
    return this.api.call("relay.portal.resends.read", { params: { resend_id: resendId } }, options);
  }

  /** Revoke the portal links of a customer. Applies from the next request of the page. */
  revoke(body: PortalLinksRevokeBody, options?: ChangeOptions): Answers<"relay.portal.revoke"> {
    return this.api.call("relay.portal.revoke", { body }, options);
  }

  /**
   * Stop a recovery that the customer started. What was sent stays sent and charged to the account. Stopping
   * a recovery that has ended changes nothing.
   */
  stopResend(resendId: string, options?: RequestOptions): Answers<"relay.portal.resends.stop"> {
    return this.api.call("relay.portal.resends.stop", { params: { resend_id: resendId } }, options);
  }
}

/** The endpoints of a customer, for a client whose key is the token of a portal link. */
export class PortalEndpoints extends Methods {
  /** The signing secret of an endpoint, for a client whose key is the token of a portal link. */
  readonly secret = new PortalSecret(this.api);

  /**
   * Add an endpoint of the customer. This response contains the signing secret. A customer can have 20
   * endpoints, including those that the account created and those deleted in the last 24 hours. No e-mail is
   * sent to the account when it is disabled.
   */
  create(body: PortalEndpointBody, options?: RequestOptions): Answers<"relay.portal.endpoints.create"> {
    return this.api.call("relay.portal.endpoints.create", { body }, options);
  }

  /** Delete an endpoint of the customer. Cancels its pending deliveries. */
  delete(endpointId: string, options?: RequestOptions): Answers<"relay.portal.endpoints.delete"> {
    return this.api.call("relay.portal.endpoints.delete", { params: { endpoint_id: endpointId } }, options);
  }

  /**
   * Get an endpoint of the customer with its health and counts. Shows the customer whether its endpoint is
   * healthy, paused or disabled, and why. An endpoint of another customer is 404.
   */
  get(endpointId: string, options?: RequestOptions): Answers<"relay.portal.endpoints.read"> {
    return this.api.call("relay.portal.endpoints.read", { params: { endpoint_id: endpointId } }, options);
  }

  /**
   * List the customer's endpoints, newest first. Includes endpoints that the account created for the
   * customer. Headers, filters, names and metadata, which only the account sets, are not returned.
   */
  list(
    query: PageQuery = {},
    options: RequestOptions = {},
  ): ListOf<"relay.portal.endpoints.list", "endpoints"> {
    return this.api.list("relay.portal.endpoints.list", "endpoints", { query }, options);
  }

  /**
   * Send an endpoint of the customer the messages that it missed. Sends every message of a time that matches
   * the endpoint now and was never delivered to it: it was disabled, created later, or the delivery failed.
   * Oldest first, each once, for 1 credit of the account when it is sent. An endpoint has one recovery per
   * hour, of at most 1,000 messages. Progress and stop: `/v1/relay/portal/resends/{resend_id}`.
   */
  recover(
    endpointId: string,
    body: PortalRecoverBody,
    options?: RequestOptions,
  ): Answers<"relay.portal.endpoints.recover"> {
    return this.api.call(
      "relay.portal.endpoints.recover",
      { params: { endpoint_id: endpointId }, body },
      options,
    );
  }

  /**
   * Send a test event to an endpoint of the customer. The account pays for it, and it counts towards the 20
   * requests with costs that a customer has per minute. The event is sent regardless of the endpoint's
   * types; a disabled endpoint is 409. Costs 1 credit.
   */
  test(
    endpointId: string,
    body: PortalTestBody = {},
    options?: RequestOptions,
  ): Answers<"relay.portal.endpoints.test"> {
    return this.api.call(
      "relay.portal.endpoints.test",
      { params: { endpoint_id: endpointId }, body },
      options,
    );
  }

  /**
   * Update an endpoint of the customer. Omitted fields keep their values. `state: live` also enables a
   * disabled endpoint. The URL of an endpoint with headers of the account can only be changed within its
   * origin (else 409).
   */
  update(
    endpointId: string,
    body: PortalEndpointPatch,
    options?: RequestOptions,
  ): Answers<"relay.portal.endpoints.change"> {
    return this.api.call(
      "relay.portal.endpoints.change",
      { params: { endpoint_id: endpointId }, body },
      options,
    );
  }
}

/** The signing secret of an endpoint, for a client whose key is the token of a portal link. */
export class PortalSecret extends Methods {
  /**
   * Reveal the signing secret of an endpoint. For a customer that has lost the secret or sets up another
   * receiver. The secret does not change. Recorded in the audit log with the customer as the actor.
   */
  reveal(endpointId: string, options?: RequestOptions): Answers<"relay.portal.endpoints.secret.reveal"> {
    return this.api.call(
      "relay.portal.endpoints.secret.reveal",
      { params: { endpoint_id: endpointId } },
      options,
    );
  }

  /**
   * Rotate the signing secret of an endpoint. For `grace_hours`, messages are also signed with the old
   * secret. Costs 1 credit.
   */
  rotate(
    endpointId: string,
    body: PortalRotateBody = {},
    options?: RequestOptions,
  ): Answers<"relay.portal.endpoints.secret.rotate"> {
    return this.api.call(
      "relay.portal.endpoints.secret.rotate",
      { params: { endpoint_id: endpointId }, body },
      options,
    );
  }
}

/** The event types that a portal link offers. */
export class PortalEventTypes extends Methods {
  /**
   * List the event types that the link offers, newest first. Only types that the link names in
   * `event_types`, wildcards included, and that the account describes. A page with long schemas may have
   * fewer items than `limit`, and still a `cursor`.
   */
  list(
    query: PageQuery = {},
    options: RequestOptions = {},
  ): ListOf<"relay.portal.event_types.list", "event_types"> {
    return this.api.list("relay.portal.event_types.list", "event_types", { query }, options);
  }
}

/** The deliveries of a customer, for a client whose key is the token of a portal link. */
export class PortalDeliveries extends Methods {
  /**
   * Get the body that a delivery of the customer sends. The signature covers exactly these bytes. Stored as
   * long as the payload and the endpoint of the delivery.
   */
  body(relayId: string, options?: RequestOptions): Answers<"relay.portal.deliveries.body"> {
    return this.api.call("relay.portal.deliveries.body", { params: { relay_id: relayId } }, options);
  }

  /**
   * Get a delivery of the customer with its payload and attempts. Shows the customer each attempt with the
   * start of its own response, up to 4 KiB. `payload` is null once it is deleted.
   */
  get(relayId: string, options?: RequestOptions): Answers<"relay.portal.deliveries.read"> {
    return this.api.call("relay.portal.deliveries.read", { params: { relay_id: relayId } }, options);
  }

  /**
   * List the customer's deliveries, newest first. Only deliveries of messages to this customer, including
   * those to endpoints that it has deleted. Finished deliveries are listed for 7 days.
   */
  list(
    query: QueryOf<"relay.portal.deliveries.list"> = {},
    options: RequestOptions = {},
  ): ListOf<"relay.portal.deliveries.list", "deliveries"> {
    return this.api.list("relay.portal.deliveries.list", "deliveries", { query }, options);
  }

  /**
   * Resend a delivery of the customer. Sends a delivered or failed delivery immediately, under the same ids
   * and with all its retries. Costs 1 credit.
   */
  resend(relayId: string, options?: RequestOptions): Answers<"relay.portal.deliveries.resend"> {
    return this.api.call("relay.portal.deliveries.resend", { params: { relay_id: relayId } }, options);
  }
}

/** Recurring webhooks, by cron expression. */
export class RelaySchedules extends Methods {
  /**
   * Create a schedule that sends a webhook at the times of a cron expression. Each run sends a delivery and
   * costs 1 credit. With `event_type` it sends a message, which costs 1 more credit for each endpoint.
   */
  create(body: ScheduleBody, options?: ChangeOptions): Answers<"relay.schedules.create"> {
    return this.api.call("relay.schedules.create", { body }, options);
  }

  /** Delete a schedule. Deliveries of earlier runs are not affected. */
  delete(scheduleId: string, options?: ChangeOptions): Answers<"relay.schedules.delete"> {
    return this.api.call("relay.schedules.delete", { params: { schedule_id: scheduleId } }, options);
  }

  /**
   * Get a schedule with its next runs. Use it to check a cron expression and a time zone: `next_runs` has
   * the next five times. The runs themselves are deliveries with this `schedule_id`.
   */
  get(scheduleId: string, options?: RequestOptions): Answers<"relay.schedules.read"> {
    return this.api.call("relay.schedules.read", { params: { schedule_id: scheduleId } }, options);
  }

  /**
   * List schedules, newest first. Lists omit `payload` and `next_runs`. To find a schedule by its name, use
   * `name`: the list then has one item or none.
   */
  list(
    query: QueryOf<"relay.schedules.list"> = {},
    options: RequestOptions = {},
  ): ListOf<"relay.schedules.list", "schedules"> {
    return this.api.list("relay.schedules.list", "schedules", { query }, options);
  }

  /**
   * Run a schedule now, in addition to its times. For tests, and to make up for a missed run. Also works
   * while the schedule is paused; the next time does not change. With `event_type` it costs 1 more credit
   * for each endpoint. Costs 1 credit.
   */
  run(scheduleId: string, options?: ChangeOptions): Answers<"relay.schedules.run"> {
    return this.api.call("relay.schedules.run", { params: { schedule_id: scheduleId } }, options);
  }

  /**
   * Update a schedule. Omitted fields keep their values. `state: paused` stops the runs. Without the scope
   * `*`, a `target_url` of another origin requires the `headers` again (else 409).
   */
  update(
    scheduleId: string,
    body: ScheduleUpdateBody,
    options?: ChangeOptions,
  ): Answers<"relay.schedules.update"> {
    return this.api.call("relay.schedules.update", { params: { schedule_id: scheduleId }, body }, options);
  }
}

/** Methods of {@link Catch} that send one request. */
export class CatchMethods extends Methods {
  /** Replays of many events. */
  readonly replays = new Replays(this.api);
}

/** Methods of {@link Buckets} that send one request. */
export class BucketsMethods extends Methods {
  /**
   * Create a bucket. A new bucket is paused unless `state` is `live`: it stores events and forwards none
   * until its state is `live`.
   */
  create(body: BucketCreateBody, options?: ChangeOptions): Answers<"catch.buckets.create"> {
    return this.api.call("catch.buckets.create", { body }, options);
  }

  /**
   * Delete a bucket and all its events. Requests of the provider are `ignored` from then on, with 200, so
   * that it does not report errors. Pending events are not forwarded. The events are removed in the
   * background and cannot be restored.
   */
  delete(bucketId: string, options?: ChangeOptions): Answers<"catch.buckets.delete"> {
    return this.api.call("catch.buckets.delete", { params: { bucket_id: bucketId } }, options);
  }

  /**
   * Get a bucket. Use it to see whether events wait (`events`), and to copy the `ingest_url` for the
   * provider. Its host is the host of your request, unless the server has a public URL. Secrets are not
   * returned.
   */
  get(bucketId: string, options?: RequestOptions): Answers<"catch.buckets.get"> {
    return this.api.call("catch.buckets.get", { params: { bucket_id: bucketId } }, options);
  }

  /**
   * Update a bucket. Omitted fields keep their values. `state: live` forwards pending events in the order of
   * receipt. If events contain the `signing_secret` itself (as from GitLab), a key without `catch:read` must
   * send it with a `target_url` of another origin or a new target (else 409).
   */
  update(bucketId: string, body: BucketUpdateBody, options?: ChangeOptions): Answers<"catch.buckets.update"> {
    return this.api.call("catch.buckets.update", { params: { bucket_id: bucketId }, body }, options);
  }
}

/** Methods of {@link Events} that send one request. */
export class EventsMethods extends Methods {
  /**
   * Acknowledge a fetched event. Requires a bucket with `delivery: pull`. Repeats change nothing; `failed`
   * can still become `delivered`.
   */
  acknowledge(
    bucketId: string,
    eventId: string,
    body: EventAckBody,
    options?: ChangeOptions,
  ): Answers<"catch.events.ack"> {
    return this.api.call(
      "catch.events.ack",
      { params: { bucket_id: bucketId, event_id: eventId }, body },
      options,
    );
  }

  /**
   * Confirm the subscription to a topic of Amazon SNS. Requests the `SubscribeURL` of an event of the type
   * `SubscriptionConfirmation` whose signature is valid. Free of charge unless it is confirmed. Costs 1
   * credit.
   */
  confirm(bucketId: string, eventId: string, options?: ChangeOptions): Answers<"catch.events.confirm"> {
    return this.api.call(
      "catch.events.confirm",
      { params: { bucket_id: bucketId, event_id: eventId } },
      options,
    );
  }

  /**
   * Get an event with its payload and headers. Use it to see what the provider sent and how the forwarding
   * went. `payload` is parsed for reading; `payload_base64` has the exact bytes. Headers that may be secret
   * are decrypted for this response. Costs 1 credit.
   */
  get(bucketId: string, eventId: string, options?: RequestOptions): Answers<"catch.events.get"> {
    return this.api.call("catch.events.get", { params: { bucket_id: bucketId, event_id: eventId } }, options);
  }

  /**
   * List a bucket's events, newest first. With `q`, `event_type` or `verification` a page ends after 5000
   * events or 200 ms, even if it is not full, and has `partial`. Continue with its `cursor`. Costs 1 credit.
   */
  list(
    bucketId: string,
    query: QueryOf<"catch.events.list"> = {},
    options: RequestOptions = {},
  ): ListOf<"catch.events.list", "events"> {
    return this.api.list("catch.events.list", "events", { params: { bucket_id: bucketId }, query }, options);
  }

  /**
   * Replay an event to the target. Costs 1 credit if the target responds with 2xx; otherwise free of charge.
   * In a bucket with `targets` it queues new deliveries, for 1 credit each, and returns 202.
   */
  replay(bucketId: string, eventId: string, options?: ChangeOptions): Answers<"catch.events.replay"> {
    return this.api.call(
      "catch.events.replay",
      { params: { bucket_id: bucketId, event_id: eventId } },
      options,
    );
  }

  /**
   * Fetch a bucket's events in order, or wait for the next one. Returns immediately if there are events
   * after `after`; otherwise when the next one arrives, or after `wait_ms` without events. Continue with the
   * `cursor` of the response. A response without events is free of charge. Costs 1 credit.
   */
  stream(
    bucketId: string,
    query: QueryOf<"catch.stream">,
    options?: RequestOptions,
  ): Answers<"catch.stream"> {
    return this.api.call("catch.stream", { params: { bucket_id: bucketId }, query }, options);
  }
}

/** Replays of many events. */
export class Replays extends Methods {
  /**
   * Get the progress of a bulk replay. Poll it until `status` is no longer `running`. Replayed events are
   * attempted after they are queued, so their own status may change later. Stored for 7 days.
   */
  get(bucketId: string, replayId: string, options?: RequestOptions): Answers<"catch.replays.get"> {
    return this.api.call(
      "catch.replays.get",
      { params: { bucket_id: bucketId, replay_id: replayId } },
      options,
    );
  }

  /**
   * Replay many events to the target. Replays events in the order of receipt. Each event that the target
   * accepts costs 1 credit.
   */
  start(bucketId: string, body: CatchReplayBody, options?: ChangeOptions): Answers<"catch.replays.start"> {
    return this.api.call("catch.replays.start", { params: { bucket_id: bucketId }, body }, options);
  }

  /** Stop a bulk replay. Events that are already queued are still sent. */
  stop(bucketId: string, replayId: string, options?: ChangeOptions): Answers<"catch.replays.stop"> {
    return this.api.call(
      "catch.replays.stop",
      { params: { bucket_id: bucketId, replay_id: replayId } },
      options,
    );
  }
}

/** Methods of {@link Notary} that send one request. */
export class NotaryMethods extends Methods {
  /** The server as a witness for chains of others. */
  readonly peer = new WitnessPeer(this.api);

  /** The witnesses of the chain of the project. */
  readonly witnesses = new ChainWitnesses(this.api);

  /** The storage that receipts are copied to. */
  readonly storage = new Storage(this.api);

  /** Methods of `nf.notary.index`. */
  readonly index = new NotaryIndex(this.api);

  /**
   * Continue a chain although others have seen a longer history. When the storage or a witness has more
   * receipts than the server, as after a restore, nothing is signed. Accepts the fork; those positions are
   * reused. Checkpoints get another origin, and a receipt declares the fork in the chain. The operator can
   * do it for any chain.
   */
  acceptFork(chainId: ForkAcceptBody["chain_id"], options?: ChangeOptions): Answers<"witness.accept_fork"> {
    return this.api.call("witness.accept_fork", { body: { chain_id: chainId } }, options);
  }

  /**
   * Prove that the chain only grew between two sizes. Use it to prove that nothing was removed, changed or
   * reordered since a checkpoint that you stored: `from` is its size. Without `to` the proof leads to the
   * newest checkpoint. A size that the chain does not have is 400.
   */
  consistencyProof(
    query: QueryOf<"witness.proofs.consistency">,
    options?: RequestOptions,
  ): Answers<"witness.proofs.consistency"> {
    return this.api.call("witness.proofs.consistency", { query }, options);
  }

  /**
   * Prove that a receipt is in the chain. Use it to prove to an auditor that a receipt is part of the chain
   * that a checkpoint covers, without all other receipts. Without `size` the proof is for the newest
   * checkpoint; a receipt that none covers yet is 409 with `Retry-After: 1`.
   */
  inclusionProof(
    query: QueryOf<"witness.proofs.inclusion">,
    options?: RequestOptions,
  ): Answers<"witness.proofs.inclusion"> {
    return this.api.call("witness.proofs.inclusion", { query }, options);
  }

  /**
   * Create the project's chain and its key pair. A project has one chain. If it exists, nothing changes and
   * the response is 200 with `success: false`. Costs 1 credit.
   */
  init(body: ChainInitBody = {}, options?: ChangeOptions): Answers<"witness.init"> {
    return this.api.call("witness.init", { body }, options);
  }

  /**
   * Log an entry and append its signed receipt to the chain. The content hash is computed over
   * `JSON.stringify(log)`, the text that the response contains as `log`. With `content_hash` instead of
   * `log`, the server never receives the text. A number that JSON parsers cannot represent exactly and a
   * duplicate name in an object are rejected with 400. With a storage configured, 200 means that the copy
   * has been delivered; 202 with the header `X-Witness-Status: buffered` means that its delivery is pending.
   * Costs 1 credit.
   */
  log(log: NonNullable<LogBody["log"]>, options?: ChangeOptions): Answers<"witness.log"> {
    return this.api.call("witness.log", { body: { log } }, options);
  }

  /**
   * Get a chain's public key. Needs no key, so that recipients of a receipt can verify it without trusting
   * its sender. The key of a chain never changes, so it can be cached.
   */
  publicKey(chainId: string, options?: RequestOptions): Answers<"witness.pubkey"> {
    return this.api.call("witness.pubkey", { params: { chainId } }, options);
  }

  /**
   * Publish the chain as a transparency log, or stop that. Anyone can then read the newest checkpoint, and
   * the hashes and timestamps of all receipts, but no logs. A log with few possible values can be guessed
   * from its hash.
   */
  publish(body: TlogBody, options?: ChangeOptions): Answers<"witness.tlog.set"> {
    return this.api.call("witness.tlog.set", { body }, options);
  }

  /**
   * Verify a receipt against the project's chain. All three checks always run. The response to an invalid
   * receipt, including a malformed one, is 200 with `valid: false`.
   */
  verify(receipt: ReceiptVerifyBody["receipt"], options?: ChangeOptions): Answers<"witness.verify"> {
    return this.api.call("witness.verify", { body: { receipt } }, options);
  }
}

/** Methods of {@link Receipts} that send one request. */
export class ReceiptsMethods extends Methods {
  /**
   * Get a receipt. The number is the position in the chain, from 1 without gaps. After a redaction the
   * receipt has `redacted_at` in place of `log`, and still verifies.
   */
  get(sequenceId: string | number, options?: RequestOptions): Answers<"witness.receipts.read"> {
    return this.api.call("witness.receipts.read", { params: { sequence_id: String(sequenceId) } }, options);
  }

  /**
   * List the project's receipts, newest first. With `field` and `value`, only receipts whose log has this
   * value: the field must have been indexed when they were logged. A page also ends when its logs exceed 256
   * KiB.
   */
  list(
    query: QueryOf<"witness.receipts.list"> = {},
    options: RequestOptions = {},
  ): ListOf<"witness.receipts.list", "receipts"> {
    return this.api.list("witness.receipts.list", "receipts", { query }, options);
  }

  /**
   * Delete the text of a receipt's log. Deletes the log, or the note of a receipt with only a hash, and its
   * indexed values. Hashes, signature and checkpoints stay, and the chain is verified as before. A receipt
   * `{"ninefold":"redacted","sequence_id":…,"reason":…}` logs it. The copy in the configured storage is
   * replaced; backups keep the text. Costs 1 credit.
   */
  redact(
    sequenceId: string | number,
    body: RedactBody,
    options?: ChangeOptions,
  ): Answers<"witness.receipts.redact"> {
    return this.api.call(
      "witness.receipts.redact",
      { params: { sequence_id: String(sequenceId) }, body },
      options,
    );
  }
}

/** The server as a witness for chains of others. */
export class WitnessPeer extends Methods {
  /**
   * Get the verifier key of this server as a witness. For the operator of a log that this server should
   * cosign: `vkey` verifies its cosignatures. 404 unless the server has a `notary.witness_name`.
   */
  get(options?: RequestOptions): Answers<"witness.peer.read"> {
    return this.api.call("witness.peer.read", {}, options);
  }
}

/** The witnesses of the chain of the project. */
export class ChainWitnesses extends Methods {
  /**
   * List the witnesses of the chain with what they have cosigned. Use it to see whether witnesses follow the
   * chain: `cosigned_size` is the size of the last checkpoint that each has cosigned, and `last_error` why
   * the last submission failed.
   */
  get(options?: RequestOptions): Answers<"witness.witnesses.read"> {
    return this.api.call("witness.witnesses.read", {}, options);
  }

  /**
   * Set the witnesses of the chain. Replaces the list. Each new checkpoint is sent to the witnesses, at most
   * once a minute (c2sp.org/tlog-witness). A witness cosigns it only if it continues the checkpoint that it
   * cosigned before. The cosignatures are part of the checkpoint.
   */
  set(body: WitnessesBody, options?: ChangeOptions): Answers<"witness.witnesses.set"> {
    return this.api.call("witness.witnesses.set", { body }, options);
  }
}

/** The storage that receipts are copied to. */
export class Storage extends Methods {
  /**
   * Get the storage configuration with masked credentials. Use it to check where receipts are copied, and
   * why copies fail. Returns only the ends of the credentials. 404 without a storage.
   */
  get(options?: RequestOptions): Answers<"witness.config.read"> {
    return this.api.call("witness.config.read", {}, options);
  }

  /**
   * Set the storage that receipts are copied to. The storage is an S3-compatible server at a public https
   * URL. New receipts and those still buffered are copied to `{prefix}/witness/receipts/{sequence_id}.json`.
   * A project can have 100 destinations over time: a destination is a combination of endpoint, bucket and
   * prefix, and each change from one to another counts.
   */
  set(body: StorageBody, options?: ChangeOptions): Answers<"witness.config.set"> {
    return this.api.call("witness.config.set", { body }, options);
  }

  /** @deprecated Use `set`, which is the same. */
  configure(body: StorageBody, options?: ChangeOptions): Answers<"witness.config.set"> {
    return this.api.call("witness.config.set", { body }, options);
  }
}

/** People of the account and their roles. */
export class People extends Methods {
  /** Identities of people at OpenID Connect providers. */
  readonly identities = new PeopleIdentities(this.api);

  /** Invitations of people. */
  readonly invitation = new PeopleInvitation(this.api);

  /** Browser sessions of people. */
  readonly sessions = new PeopleSessions(this.api);

  /**
   * Invite a person. The invitation is sent by e-mail, or returned as `invitation_url` if the server sends
   * none. At most 20 invitations a day for an account, and 3 for an address.
   */
  create(body: PersonCreateBody, options?: ChangeOptions): Answers<"people.create"> {
    return this.api.call("people.create", { body }, options);
  }

  /**
   * Delete a person. Ends their sessions. Keys that they created continue to work, unless `revoke_keys` is
   * true.
   */
  delete(
    personId: string,
    query: QueryOf<"people.delete"> = {},
    options?: ChangeOptions,
  ): Answers<"people.delete"> {
    return this.api.call("people.delete", { params: { person_id: personId }, query }, options);
  }

  /**
   * Get a person. Also of people who are disabled or have not yet accepted their invitation (`status`). A
   * deleted person is 404, although the audit log still names them.
   */
  get(personId: string, options?: RequestOptions): Answers<"people.read"> {
    return this.api.call("people.read", { params: { person_id: personId } }, options);
  }

  /**
   * List people, newest first. Disabled and invited people are included: `status` and `role` select. `POST
   * /v1/people` invites.
   */
  list(query: QueryOf<"people.list"> = {}, options: RequestOptions = {}): ListOf<"people.list", "people"> {
    return this.api.list("people.list", "people", { query }, options);
  }

  /** List roles and what each may do. The least role of each operation, in the order of their names. */
  roles(options?: RequestOptions): Answers<"people.roles"> {
    return this.api.call("people.roles", {}, options);
  }

  /**
   * Change a person. A change takes effect with the next request of the person and ends their open streams.
   * Nobody changes a person above them, or their own role. The last active owner stays one. Keys that the
   * person has created continue to work, and a warning lists them, unless `revoke_keys` is true.
   */
  update(
    personId: string,
    query: QueryOf<"people.update"> = {},
    body: PersonPatchBody,
    options?: ChangeOptions,
  ): Answers<"people.update"> {
    return this.api.call("people.update", { params: { person_id: personId }, query, body }, options);
  }
}

/** Identities of people at OpenID Connect providers. */
export class PeopleIdentities extends Methods {
  /**
   * Remove an identity of a person. The next login with the person's address at that provider links another
   * identity.
   */
  delete(personId: string, identityId: string, options?: ChangeOptions): Answers<"people.identities.delete"> {
    return this.api.call(
      "people.identities.delete",
      { params: { person_id: personId, identity_id: identityId } },
      options,
    );
  }
}

/** Invitations of people. */
export class PeopleInvitation extends Methods {
  /**
   * Create a new invitation. Replaces the previous one. For a person who has lost their passkey, too: its
   * use removes their other passkeys and ends their sessions. The link of an active person is returned to
   * owners only; others can have it sent by e-mail.
   */
  create(personId: string, options?: ChangeOptions): Answers<"people.invitation.create"> {
    return this.api.call("people.invitation.create", { params: { person_id: personId } }, options);
  }
}

/** Browser sessions of people. */
export class PeopleSessions extends Methods {
  /**
   * End all sessions of a person. For a lost laptop or a stolen cookie: the person must log in again
   * everywhere. Keys that they created continue to work, and their passkeys stay. 403 for a person with a
   * higher role than yours.
   */
  end(personId: string, options?: ChangeOptions): Answers<"people.sessions.end"> {
    return this.api.call("people.sessions.end", { params: { person_id: personId } }, options);
  }
}

/** The audit log of the account, or of the project of the key. */
export class Audit extends Methods {
  /** Download the audit log, oldest first. At most 1,000,000 entries; one export at a time per account. */
  export(query: QueryOf<"audit.export"> = {}, options?: RequestOptions): Answers<"audit.export"> {
    return this.api.call("audit.export", { query }, options);
  }

  /**
   * Get an audit log entry. Use it to link to an entry. Entries of other accounts are 404. A key of one
   * project, or without the scope `*`, cannot read entries of other projects either.
   */
  get(sequence: string | number, options?: RequestOptions): Answers<"audit.read"> {
    return this.api.call("audit.read", { params: { sequence: String(sequence) } }, options);
  }

  /**
   * List audit log entries, newest first. A key of one project lists the changes in that project. Each entry
   * was stored in the transaction of its change. A page ends after 5,000 scanned entries, even if few of
   * them match the filters, and after 256 KiB of `before` and `after`: continue with its `cursor`.
   */
  list(query: QueryOf<"audit.list"> = {}, options: RequestOptions = {}): ListOf<"audit.list", "entries"> {
    return this.api.list("audit.list", "entries", { query }, options);
  }
}

/** The operator's API and the test clock. */
export class Admin extends Methods {
  /** All accounts, for the operator. */
  readonly accounts = new AdminAccounts(this.api);

  /** The audit log of all accounts and of the server, for the operator. */
  readonly audit = new AdminAudit(this.api);

  /** The server's backups, for the operator. */
  readonly backups = new AdminBackups(this.api);

  /** Settings of the server in its database, for the operator. */
  readonly settings = new AdminSettings(this.api);

  /** Advance the test clock. Returns after all work that became due has run, in the order of its due times. */
  advanceClock(advanceMs: ClockBody["advance_ms"], options?: ChangeOptions): Answers<"admin.clock.advance"> {
    return this.api.call("admin.clock.advance", { body: { advance_ms: advanceMs } }, options);
  }

  /**
   * Get the time of the test clock. Also while the clock is being advanced, for example in the receiver of a
   * webhook.
   */
  clock(options?: RequestOptions): Answers<"admin.clock.read"> {
    return this.api.call("admin.clock.read", {}, options);
  }

  /** Create a login link. The link opens one session of the calling key or person, once. */
  createLoginLink(body: LoginLinkBody = {}, options?: ChangeOptions): Answers<"admin.login_links.create"> {
    return this.api.call("admin.login_links.create", { body }, options);
  }

  /**
   * Get the measurements of the last hours. Returns what the server measured of itself, and when it was not
   * healthy. One row per minute is stored for seven days.
   */
  history(
    query: QueryOf<"admin.history.read"> = {},
    options?: RequestOptions,
  ): Answers<"admin.history.read"> {
    return this.api.call("admin.history.read", { query }, options);
  }

  /** List the server's options. Returns each option with its value and source, like `ninefold config print`. */
  options(options?: RequestOptions): Answers<"admin.options.list"> {
    return this.api.call("admin.options.list", {}, options);
  }

  /**
   * Get the status of the server. Use it for dashboards and support requests: sizes, free disk space, mail,
   * jobs and load of this node. For health checks use `/readyz`, and for monitoring `/metrics`.
   */
  status(options?: RequestOptions): Answers<"admin.status.read"> {
    return this.api.call("admin.status.read", {}, options);
  }
}

/** All accounts, for the operator. */
export class AdminAccounts extends Methods {
  /**
   * Create an account. Only this response contains the account's platform key; nothing is sent by e-mail.
   * `balance` defaults to the monthly credits of the tier. An address that another account has, in any case,
   * is 409.
   */
  create(body: AccountCreateBody, options?: ChangeOptions): Answers<"admin.accounts.create"> {
    return this.api.call("admin.accounts.create", { body }, options);
  }

  /**
   * Delete an account with everything in it. Keys and sessions of the account, its public pages and
   * everything that runs for it end before the response. A background job then removes its data, which a
   * restart continues. The operator's account and the caller's own cannot be deleted (409).
   */
  delete(userId: string, options?: ChangeOptions): Answers<"admin.accounts.delete"> {
    return this.api.call("admin.accounts.delete", { params: { user_id: userId } }, options);
  }

  /**
   * Export everything of an account. JSON lines: a header (`type` `export`), one record per line with its
   * `type`, and a line with the `type` `end` and the number of records. An export without it is incomplete.
   * Changes during the export may be missing.
   */
  export(userId: string, options?: RequestOptions): Answers<"admin.accounts.export"> {
    return this.api.call("admin.accounts.export", { params: { user_id: userId } }, options);
  }

  /**
   * List accounts, newest first. Includes suspended accounts and the operator's own. Keys are not returned:
   * `reset-key` creates a new one if an account has lost its key.
   */
  list(query: PageQuery = {}, options: RequestOptions = {}): ListOf<"admin.accounts.list", "accounts"> {
    return this.api.list("admin.accounts.list", "accounts", { query }, options);
  }

  /**
   * Revoke all platform keys of an account and create a new one. For a leaked or lost key. Applies from the
   * next request, including to keys in their grace period. Managed keys are not affected. The new key can be
   * rotated immediately.
   */
  resetKey(userId: string, options?: ChangeOptions): Answers<"keys.platform.reset"> {
    return this.api.call("keys.platform.reset", { params: { user_id: userId } }, options);
  }

  /**
   * Update the e-mail address, tier, balance or suspension of an account. Omitted fields keep their value.
   * The update applies from the next request.
   */
  update(userId: string, body: AccountUpdateBody, options?: ChangeOptions): Answers<"admin.accounts.update"> {
    return this.api.call("admin.accounts.update", { params: { user_id: userId }, body }, options);
  }
}

/** The audit log of all accounts and of the server, for the operator. */
export class AdminAudit extends Methods {
  /**
   * Download the audit log of all accounts, oldest first. At most 1,000,000 entries; one export at a time
   * per account.
   */
  export(query: QueryOf<"admin.audit.export"> = {}, options?: RequestOptions): Answers<"admin.audit.export"> {
    return this.api.call("admin.audit.export", { query }, options);
  }

  /**
   * Get an audit log entry of any account. Finds entries of all accounts and of the server itself by their
   * number. The entries of a deleted account are removed, so they are 404.
   */
  get(sequence: string | number, options?: RequestOptions): Answers<"admin.audit.read"> {
    return this.api.call("admin.audit.read", { params: { sequence: String(sequence) } }, options);
  }

  /**
   * List audit log entries of all accounts, newest first. Includes entries of the server itself. Each entry
   * was stored in the transaction of its change. A page ends after 5,000 scanned entries, even if few of
   * them match the filters, and after 256 KiB of `before` and `after`: continue with its `cursor`.
   */
  list(
    query: QueryOf<"admin.audit.list"> = {},
    options: RequestOptions = {},
  ): ListOf<"admin.audit.list", "entries"> {
    return this.api.list("admin.audit.list", "entries", { query }, options);
  }
}

/** The server's backups, for the operator. */
export class AdminBackups extends Methods {
  /**
   * Create a backup now. Returns as soon as the backup job is stored. The backup runs in a separate process;
   * the list of backups shows its state. It counts toward `backup_keep`.
   */
  create(options?: ChangeOptions): Answers<"admin.backups.create"> {
    return this.api.call("admin.backups.create", {}, options);
  }

  /**
   * List backups, newest first. Use it to check that backups are made: `failure` says why the last one
   * failed, and `plan.overdue` whether two scheduled times passed without one. Only files in the backup
   * folder count; without a folder `plan` is null.
   */
  list(query: PageQuery = {}, options: RequestOptions = {}): ListOf<"admin.backups.list", "backups"> {
    return this.api.list("admin.backups.list", "backups", { query }, options);
  }
}

/** Settings of the server in its database, for the operator. */
export class AdminSettings extends Methods {
  /**
   * Get the settings of the server. Returns the options that can be stored in the database, each with its
   * value and source. What a flag, an environment variable or the configuration file sets wins, and cannot
   * be changed here.
   */
  get(options?: RequestOptions): Answers<"admin.settings.read"> {
    return this.api.call("admin.settings.read", {}, options);
  }

  /** Send a test e-mail. Sends an e-mail once, immediately, and returns what the mail server responded. */
  testMail(to: MailTestBody["to"], options?: ChangeOptions): Answers<"admin.settings.test_mail"> {
    return this.api.call("admin.settings.test_mail", { body: { to } }, options);
  }

  /**
   * Change settings of the server. Stores settings in the database, secrets sealed with the master key; null
   * removes a setting. Settings whose `effect` is `now` are effective immediately, others after a restart.
   * All of the request is stored, or nothing.
   */
  update(body: ServerSettingsBody, options?: ChangeOptions): Answers<"admin.settings.update"> {
    return this.api.call("admin.settings.update", { body }, options);
  }
}

/** Methods of `nf.flags.proposals`. */
export class FlagsProposals extends Methods {
  /**
   * Approve a proposal, which applies the change. By somebody other than the proposer: another person, or
   * another key that the same person has not created. A key and those that it was rotated to are one.
   */
  approve(flagKey: string, proposalId: string, options?: ChangeOptions): Answers<"gate.proposals.approve"> {
    return this.api.call("gate.proposals.approve", { params: { flagKey, proposal_id: proposalId } }, options);
  }

  /**
   * Propose a change of a flag. Fields of a save, or `delete`. The flag need not exist. The change is
   * checked now, and applied when somebody else approves it. A change in another way makes the proposal
   * `outdated`. An equal open proposal of the same proposer is returned instead of a second one. A project
   * can have 100 open proposals; the newest 1,000 are stored for a year. Costs credits as a save does; the
   * approval is free of charge.
   */
  create(flagKey: string, body: FlagProposalBody, options?: ChangeOptions): Answers<"gate.proposals.create"> {
    return this.api.call("gate.proposals.create", { params: { flagKey }, body }, options);
  }

  /**
   * Get a proposal. Shows the fields that change, who proposed and who decided. A proposal becomes
   * `outdated` as soon as its flag changes.
   */
  get(flagKey: string, proposalId: string, options?: RequestOptions): Answers<"gate.proposals.read"> {
    return this.api.call("gate.proposals.read", { params: { flagKey, proposal_id: proposalId } }, options);
  }

  /**
   * List proposals of all flags, newest first. Those that wait for a decision have the status `open`; the
   * decided ones stay for a year, up to 1,000 in all. `before` and `after` have the fields that change. A
   * page also ends when its changes exceed 256 KiB.
   */
  list(
    query: QueryOf<"gate.proposals.list"> = {},
    options: RequestOptions = {},
  ): ListOf<"gate.proposals.list", "proposals"> {
    return this.api.list("gate.proposals.list", "proposals", { query }, options);
  }

  /** List proposals of a flag, newest first. Also of a flag that does not exist. */
  listOfFlag(
    flagKey: string,
    query: QueryOf<"gate.proposals.list_of_flag"> = {},
    options: RequestOptions = {},
  ): ListOf<"gate.proposals.list_of_flag", "proposals"> {
    return this.api.list("gate.proposals.list_of_flag", "proposals", { params: { flagKey }, query }, options);
  }

  /**
   * Reject a proposal. The flag does not change. Anyone who may write flags can reject, the proposer
   * included.
   */
  reject(
    flagKey: string,
    proposalId: string,
    body: FlagProposalRejectBody,
    options?: ChangeOptions,
  ): Answers<"gate.proposals.reject"> {
    return this.api.call(
      "gate.proposals.reject",
      { params: { flagKey, proposal_id: proposalId }, body },
      options,
    );
  }

  /** Withdraw a proposal. Closes it without a decision; the flag does not change. */
  withdraw(flagKey: string, proposalId: string, options?: ChangeOptions): Answers<"gate.proposals.withdraw"> {
    return this.api.call(
      "gate.proposals.withdraw",
      { params: { flagKey, proposal_id: proposalId } },
      options,
    );
  }
}

/** Methods of `nf.flags.scheduled`. */
export class FlagsScheduled extends Methods {
  /** Cancel a scheduled change of a flag. Also removes a change that failed. */
  cancel(flagKey: string, id: string, options?: ChangeOptions): Answers<"gate.scheduled.cancel"> {
    return this.api.call("gate.scheduled.cancel", { params: { flagKey, id } }, options);
  }
}

/** Methods of `nf.keys.roles`. */
export class KeysRoles extends Methods {
  /**
   * Delete a role. Only a role that no key has; keys that are revoked or expired do not count. Remove it
   * from the keys first.
   */
  delete(name: string, options?: ChangeOptions): Answers<"keys.roles.delete"> {
    return this.api.call("keys.roles.delete", { params: { name } }, options);
  }

  /** Get a role. Shows the permissions of one role, such as before you change them. */
  get(name: string, options?: RequestOptions): Answers<"keys.roles.read"> {
    return this.api.call("keys.roles.read", { params: { name } }, options);
  }

  /**
   * List roles, newest first. Use it to see which permissions keys have by their roles. A page with long
   * permissions may have fewer items than `limit`, and still a `cursor`.
   */
  list(query: PageQuery = {}, options: RequestOptions = {}): ListOf<"keys.roles.list", "roles"> {
    return this.api.list("keys.roles.list", "roles", { query }, options);
  }

  /**
   * Create or replace a role. A role is a named set of permissions for the keys that you issue to your
   * customers. Keys of the project, and in the default project also keys of the account, have it by its name
   * in `roles`. A change applies from the next request of every key that has the role.
   */
  save(name: string, body: KeyRoleBody, options?: ChangeOptions): Answers<"keys.roles.save"> {
    return this.api.call("keys.roles.save", { params: { name }, body }, options);
  }
}

/** Methods of `nf.monitors.pages.subscribers`. */
export class MonitorsPagesSubscribers extends Methods {
  /**
   * Import confirmed subscribers of another status page. Only for addresses whose owners have confirmed
   * elsewhere that they want e-mails about incidents: they are not asked again, get no e-mail now, and can
   * unsubscribe by the link in each. At most 200 in a request. Costs 1 credit.
   */
  import(
    pageId: string,
    body: StatusPageSubscribersImportBody,
    options?: ChangeOptions,
  ): Answers<"monitors.pages.subscribers.import"> {
    return this.api.call("monitors.pages.subscribers.import", { params: { page_id: pageId }, body }, options);
  }
}

/** Methods of `nf.notary.index`. */
export class NotaryIndex extends Methods {
  /**
   * Get the indexed fields and the retention of logs. Says by which fields receipts can be found with
   * `field` and `value`, and after how many days the texts of logs are deleted (0: never). A project without
   * a chain has the defaults.
   */
  get(options?: RequestOptions): Answers<"witness.index.read"> {
    return this.api.call("witness.index.read", {}, options);
  }

  /**
   * Set which values of logs are indexed, and how long logs are stored. Fields that are omitted stay as they
   * are. An index covers receipts that are logged from then on. `retain_days` deletes the texts of older
   * logs, like a redaction, but without a receipt for each.
   */
  set(body: ReceiptIndexBody, options?: ChangeOptions): Answers<"witness.index.set"> {
    return this.api.call("witness.index.set", { body }, options);
  }
}
