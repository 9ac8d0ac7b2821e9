import type { Caller } from "../../kernel/callers/caller.ts";
import { withFieldPrefix } from "../../kernel/errors.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { type CheckCode, type Denial, statusOf } from "./domain.ts";
import type {
  CheckDeps,
  EvaluateFlags,
  FlagOutcome,
  HoldTerms,
  KeyEvaluation,
  KeyUsage,
  MeterBalances,
} from "./ports.ts";
import type { CheckFlag, CheckMeter, CheckResult } from "./schema.ts";

/** Credits that a request costs, deducted or held. Without a meter id, the key determines the meter. */
export interface Charge extends Omit<HoldTerms, "meter_id"> {
  readonly kind: "deduct" | "hold";
  readonly meter_id?: string | undefined;
}

/** A charge with its meter. */
type Payment = Charge & HoldTerms;

export interface CheckRequest<KeyRequest> {
  readonly key: KeyRequest;
  readonly charge: Charge | null;
  /** Flag keys. */
  readonly flags: readonly string[];
  readonly context: Readonly<Record<string, unknown>>;
}

export interface CheckCaller {
  readonly caller: Caller;
  readonly requestId: string;
}

/** Format of meter ids. An owner's id may be longer or have other characters. */
const METER_ID = /^[a-zA-Z0-9_-]{1,64}$/;

/** Authorizes requests. It evaluates everything first, and then takes all or nothing. */
export class CheckService<KeyRequest> {
  constructor(private readonly deps: CheckDeps<KeyRequest>) {}

  /** Whether a check may write to the database. Its result must then be durable before it is returned. */
  mayWrite(caller: Caller, { key, charge }: CheckRequest<KeyRequest>): boolean {
    return charge !== null || this.deps.keys.consumesUses(caller, key);
  }

  /**
   * Runs a check within one unit of work.
   * @throws ApiError `validation_error` for limits that the key does not have, or a context that is too expensive to
   *   evaluate; `conflict` and `forbidden` for a hold that cannot be created regardless of the balance.
   */
  check(tx: Tx, checkCaller: CheckCaller, request: CheckRequest<KeyRequest>): CheckResult {
    return this.checkWith(tx, checkCaller, request, this.deps.flags.evaluator());
  }

  /**
   * Runs several checks within one unit of work, each with the effects of those before it. Each takes all or nothing.
   * @throws ApiError errors of {@link check}, which name the check: then none has an effect.
   */
  checkAll(tx: Tx, checkCaller: CheckCaller, requests: readonly CheckRequest<KeyRequest>[]): CheckResult[] {
    const evaluate = this.deps.flags.evaluator();
    return requests.map((request, index) =>
      withFieldPrefix(`checks.${index}.`, () => this.checkWith(tx, checkCaller, request, evaluate)),
    );
  }

  private checkWith(
    tx: Tx,
    checkCaller: CheckCaller,
    request: CheckRequest<KeyRequest>,
    evaluate: EvaluateFlags,
  ): CheckResult {
    const { caller } = checkCaller;
    const key = this.deps.keys.examine(tx, caller, request.key);
    const flags = () => flagsOf(tx, caller, request, key, evaluate);
    const payment = request.charge && paymentOf(request.charge, key);
    const findRepeatedHold = this.findRepeatedHold(tx, caller, payment, key);
    if (findRepeatedHold !== null)
      return resultOf("ok", key, withoutExceeded(key.verdict), findRepeatedHold, flags());
    if (key.error !== null) return denied(tx, key, key.error);
    if (request.charge === null) return takeAndAllow(tx, key, null, flags());
    if (payment === null) return denied(tx, key, "no_meter");
    const state = this.deps.meters.available(tx, caller.project.ref, payment.meter_id) ?? EMPTY_METER;
    if (state.available < payment.amount) {
      return denied(tx, key, "insufficient_balance", meterOf(payment, state));
    }
    const outcomes = flags();
    const meter = this.pay(tx, checkCaller, payment, state);
    return takeAndAllow(tx, key, meter, outcomes);
  }

  /** Returns the meter of an allowed request that is repeated with the same hold; null for any other request. */
  private findRepeatedHold(
    tx: Tx,
    { project }: Caller,
    payment: Payment | null,
    { error }: KeyEvaluation,
  ): CheckMeter | null {
    // The first request may have taken the last token or use. The repeated one takes none.
    if (payment?.kind !== "hold" || !(error === null || SPENT_DENIALS.has(error))) return null;
    const hold = this.deps.meters.findOpenHold(tx, project.ref, payment);
    return hold && meterOf(payment, hold, 0, hold.hold_id);
  }

  /** `state`: the meter before the payment. */
  private pay(
    tx: Tx,
    { caller: { project }, requestId }: CheckCaller,
    payment: Payment,
    state: MeterBalances,
  ): CheckMeter {
    const { meters } = this.deps;
    const { kind, meter_id, amount } = payment;
    if (kind === "deduct") {
      const balance = meters.deduct(tx, project.ref, meter_id, amount, requestId);
      // A deduction leaves what is held unchanged.
      const held = state.balance - state.available;
      return meterOf(payment, { balance, available: balance - held }, amount);
    }
    const { hold } = meters.hold(tx, project.ref, payment, requestId);
    return meterOf(payment, hold, 0, hold.hold_id);
  }
}

function flagsOf<KeyRequest>(
  tx: Tx,
  { project }: Caller,
  { flags, context }: CheckRequest<KeyRequest>,
  { facts }: KeyEvaluation,
  evaluate: EvaluateFlags,
): Record<string, CheckFlag> {
  if (flags.length === 0) return {};
  const { key_id: id, owner_id, environment, metadata } = facts;
  const evaluationContext = {
    ...context,
    // SDKs send null for a subject that is not set.
    targetingKey: context["targetingKey"] ?? owner_id ?? id,
    key: { id, owner_id, environment, metadata },
  };
  const outcomes = evaluate(project.ref, flags, evaluationContext, tx.now);
  const evaluated: Record<string, CheckFlag> = {};
  // Flag keys begin with a letter or a digit, so that none is `__proto__`.
  flags.forEach((flagKey, index) => {
    evaluated[flagKey] = flagOf(outcomes[index]);
  });
  return evaluated;
}

function flagOf(outcome: FlagOutcome | undefined): CheckFlag {
  if (outcome === undefined) return { error: "FLAG_NOT_FOUND" };
  const { value, variant, reason } = outcome;
  return variant === undefined ? { reason } : { value, variant, reason };
}

const EMPTY_METER: MeterBalances = { balance: 0, available: 0 };

/** Denials that an earlier request with the same hold may have caused. */
const SPENT_DENIALS: ReadonlySet<Denial> = new Set<Denial>(["rate_limited", "usage_exceeded"]);

function paymentOf(charge: Charge, { facts: { meter_id, owner_id } }: KeyEvaluation): Payment | null {
  const ownersMeter = owner_id !== null && METER_ID.test(owner_id) ? owner_id : null;
  const meterId = charge.meter_id ?? meter_id ?? ownersMeter;
  return meterId === null ? null : { ...charge, meter_id: meterId };
}

function meterOf(
  { meter_id }: Payment,
  { balance, available }: MeterBalances,
  deducted = 0,
  hold_id: string | null = null,
): CheckMeter {
  return { meter_id, balance, available, deducted, hold_id };
}

/** Returns the usage without exceeded limits, for a request that takes nothing. */
function withoutExceeded({ uses_remaining, ratelimits }: KeyUsage): KeyUsage {
  return {
    uses_remaining,
    ratelimits: ratelimits?.map((state) => ({ ...state, exceeded: false })) ?? null,
    retry_after_seconds: null,
  };
}

function takeAndAllow(
  tx: Tx,
  key: KeyEvaluation,
  meter: CheckMeter | null,
  flags: Record<string, CheckFlag>,
): CheckResult {
  return resultOf("ok", key, key.take(tx), meter, flags);
}

function denied(tx: Tx, key: KeyEvaluation, code: Denial, meter: CheckMeter | null = null): CheckResult {
  if (code === "no_meter" || code === "insufficient_balance") key.reject(tx, code);
  else key.reject(tx);
  return resultOf(code, key, key.verdict, meter, null);
}

/** Returns a result with its fields in the order of the schema. */
function resultOf(
  code: CheckCode,
  { facts }: KeyEvaluation,
  { uses_remaining, ratelimits, retry_after_seconds }: KeyUsage,
  meter: CheckMeter | null,
  flags: Record<string, CheckFlag> | null,
): CheckResult {
  const { key_id, owner_id, project_id, name, environment, scopes, metadata } = facts;
  return {
    allowed: code === "ok",
    code,
    status: statusOf(code),
    retry_after_seconds,
    key_id,
    owner_id,
    project_id,
    name,
    environment,
    scopes,
    metadata,
    uses_remaining,
    ratelimits,
    meter,
    flags,
  };
}
