import type { Caller } from "../../kernel/http/access/caller.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { type Denial, statusOf } from "./domain.ts";
import type { CheckPorts, ExaminedKey, HoldTerms, KeyVerdict, MeterFigures } from "./ports.ts";
import type { CheckAnswer, CheckFlag, CheckMeter } from "./schema.ts";

/** Credits that a request costs: taken at once, or held. Without a meter, the key says which. */
export interface Claim extends Omit<HoldTerms, "meter_id"> {
  readonly kind: "deduct" | "hold";
  readonly meter_id?: string | undefined;
}

/** The same with the meter that pays. */
type Payment = Claim & HoldTerms;

/** What a check is to find out, and to take. */
export interface Question<Asked> {
  readonly key: Asked;
  readonly claim: Claim | null;
  /** Keys of flags. */
  readonly flags: readonly string[];
  readonly context: Readonly<Record<string, unknown>>;
}

/** Who asks. */
export interface Asker {
  readonly caller: Caller;
  readonly requestId: string;
}

/** Ids that a meter can have: an owner's may be longer, or have other characters. */
const METER_ID = /^[a-zA-Z0-9_-]{1,64}$/;

/** Lets requests in, or not: everything is looked at first, and then all is taken or nothing. */
export class CheckService<Asked> {
  constructor(private readonly ports: CheckPorts<Asked>) {}

  /** Whether a check may take what is written to the disk: it is told once it is there. */
  mayWrite(caller: Caller, { key, claim }: Question<Asked>): boolean {
    return claim !== null || this.ports.keys.takesUses(caller, key);
  }

  /**
   * Judges within one unit of work.
   * @throws ApiError `validation_error` for limits that the key does not have, or a context that takes too long;
   *   `conflict`, `forbidden` for a hold that cannot be made whatever the balance.
   */
  check(tx: Tx, asker: Asker, question: Question<Asked>): CheckAnswer {
    const { caller } = asker;
    const key = this.ports.keys.examine(tx, caller, question.key);
    const flags = () => this.flagsOf(tx, caller, question, key);
    const payment = question.claim && paymentOf(question.claim, key);
    const repeated = this.repeated(tx, caller, payment, key);
    if (repeated !== null) return allowed(untouched(key.verdict), repeated, flags());
    if (key.error !== null) return denied(tx, key, key.error);
    if (question.claim === null) return taken(tx, key, null, flags());
    if (payment === null) return denied(tx, key, "no_meter");
    const found = this.ports.meters.available(tx, caller.project.ref, payment.meter_id) ?? NOTHING;
    if (found.available < payment.amount) {
      return denied(tx, key, "insufficient_balance", meterOf(payment, found));
    }
    const outcomes = flags();
    const meter = this.pay(tx, asker, payment);
    return taken(tx, key, meter, outcomes);
  }

  /** The meter of a request that was let in with a hold before, and is sent again; null for any other. */
  private repeated(
    tx: Tx,
    { project }: Caller,
    payment: Payment | null,
    { error }: ExaminedKey,
  ): CheckMeter | null {
    // The first one may have taken the last token or use: this one takes none.
    if (payment?.kind !== "hold" || !(error === null || IS_SPENT.has(error))) return null;
    const hold = this.ports.meters.knownHold(tx, project.ref, payment);
    return hold && meterOf(payment, hold, 0, hold.hold_id);
  }

  private pay(tx: Tx, { caller: { project }, requestId }: Asker, payment: Payment): CheckMeter {
    const { meters } = this.ports;
    const { kind, meter_id, amount } = payment;
    if (kind === "deduct") {
      return meterOf(payment, meters.deduct(tx, project.ref, meter_id, amount, requestId), amount);
    }
    const { hold } = meters.hold(tx, project.ref, payment, requestId);
    return meterOf(payment, hold, 0, hold.hold_id);
  }

  private flagsOf(
    tx: Tx,
    { project }: Caller,
    { flags, context }: Question<Asked>,
    { facts }: ExaminedKey,
  ): Record<string, CheckFlag> {
    if (flags.length === 0) return {};
    const { key_id: id, owner_id, environment, metadata } = facts;
    const about = {
      targetingKey: owner_id ?? id,
      ...context,
      key: { id, owner_id, environment, metadata },
    };
    const outcomes = this.ports.flags.outcomesOf(project.ref, flags, about, tx.now);
    // `fromEntries` makes own members, whatever the keys are.
    return Object.fromEntries(
      flags.map((flagKey, index): [string, CheckFlag] => {
        const outcome = outcomes[index];
        if (outcome === undefined) return [flagKey, { error: "FLAG_NOT_FOUND" }];
        const { value, variant, reason } = outcome;
        return [flagKey, variant === undefined ? { reason } : { value, variant, reason }];
      }),
    );
  }
}

const NOTHING: MeterFigures = { balance: 0, available: 0 };

/** Denials for what a request before this one may have taken. */
const IS_SPENT: ReadonlySet<Denial> = new Set<Denial>(["rate_limited", "usage_exceeded"]);

function paymentOf(claim: Claim, { facts: { meter_id, owner_id } }: ExaminedKey): Payment | null {
  const ownersMeter = owner_id !== null && METER_ID.test(owner_id) ? owner_id : null;
  const meterId = claim.meter_id ?? meter_id ?? ownersMeter;
  return meterId === null ? null : { ...claim, meter_id: meterId };
}

function meterOf(
  { meter_id }: Payment,
  { balance, available }: MeterFigures,
  deducted = 0,
  hold_id: string | null = null,
): CheckMeter {
  return { meter_id, balance, available, deducted, hold_id };
}

/** A key from which nothing is taken. */
function untouched(verdict: KeyVerdict): KeyVerdict {
  const ratelimits = verdict.ratelimits?.map((state) => ({ ...state, exceeded: false })) ?? null;
  return { ...verdict, ratelimits, retry_after_seconds: null };
}

function taken(
  tx: Tx,
  key: ExaminedKey,
  meter: CheckMeter | null,
  flags: Record<string, CheckFlag>,
): CheckAnswer {
  return allowed(key.take(tx), meter, flags);
}

function allowed(
  verdict: KeyVerdict,
  meter: CheckMeter | null,
  flags: Record<string, CheckFlag>,
): CheckAnswer {
  return { allowed: true, code: "ok", status: 200, ...factsOf(verdict), meter, flags };
}

function denied(tx: Tx, key: ExaminedKey, code: Denial, meter: CheckMeter | null = null): CheckAnswer {
  if (code === "no_meter" || code === "insufficient_balance") key.refuse(tx, code);
  else key.refuse(tx);
  return { allowed: false, code, status: statusOf(code), ...factsOf(key.verdict), meter, flags: null };
}

/** What is told of the key, in the order of the description. */
function factsOf(verdict: KeyVerdict) {
  const { retry_after_seconds, key_id, owner_id, project_id, name, environment } = verdict;
  const { scopes, metadata, uses_remaining, ratelimits } = verdict;
  return {
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
  };
}
