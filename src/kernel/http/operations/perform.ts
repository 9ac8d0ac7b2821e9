import type { AuditedRequest, AuditTrail, OperationAudit } from "../../audit/trail.ts";
import { assertStillValid, type CallerAccount, type Charger } from "../../callers/caller.ts";
import { ApiError, isUnavailable } from "../../errors.ts";
import { isUnlimited } from "../../limits/tiers.ts";
import type { ProjectActivity } from "../../projects/activity.ts";
import type { Changes } from "../../projects/changes.ts";
import { type Affected, ANYONE, type Tx } from "../../storage/tx.ts";
import type { Writer } from "../../storage/writer.ts";
import { assertMayChangeKeys, type Operation } from "../operation.ts";
import { shownTo } from "../responses/hidden-urls.ts";
import { isStored, type RenderedResponse, renderError, renderResult } from "../responses/response.ts";
import { type IdempotencyStore, type IdempotentRequest, isStorable } from "./idempotency.ts";
import type { OpenClaims } from "./open-claims.ts";

/** What a unit of work needs to know of the request that it serves. */
export interface Performer extends AuditedRequest {
  readonly operation: Operation;
  readonly idempotency: IdempotentRequest | null;
}

/** Work that must talk to the network between two units of work. */
export interface AcrossNetwork<Claim, Result, T extends object> {
  /** First unit, with the charge: takes what the work needs. */
  readonly claim: (tx: Tx) => Claim;
  /** Credits that the work costs in addition to its operation, known by the claim; they share the fate of the operation's. */
  readonly surcharge?: (claim: Claim) => number;
  /** Between the units. An ApiError that it throws counts as the outcome. */
  readonly outside: (claim: Claim) => Promise<Result>;
  /**
   * The response that is valid as soon as the claim is committed, for work whose effect remains whatever the network
   * says. It is stored under the `Idempotency-Key` with the claim, and replaced by the outcome's: after a crash in
   * between a repeat gets it, and an outcome that cannot be recorded returns it.
   */
  readonly interim?: (claim: Claim) => T;
  /** Second unit: records the outcome. `refund` gives the charge back. */
  readonly settle: (tx: Tx, claim: Claim, result: Result, refund: () => void) => T;
}

/** A failure whose charge and stored response are committed; the caller gets the error. */
class StoredFailure {
  constructor(
    readonly error: unknown,
    /** Whether the request has been paid for all the same. */
    readonly charged: boolean,
  ) {}
}

/** Statuses that are paid when the work itself finds them: it was done. Others undo the charge. */
const KEEPS_CHARGE: ReadonlySet<number> = new Set([403, 404, 408, 409]);
/** How the codes end of what is over a limit of a tier or a project, which costs nothing. */
const LIMIT_CODE = "_limit_exceeded";

/** Runs charge, work and stored response in one unit of work. */
export class Performing {
  /** `activity` is notified of every change that a request makes in its caller's project. */
  constructor(
    private readonly writer: Writer,
    private readonly charger: Charger,
    private readonly responses: IdempotencyStore,
    private readonly open: OpenClaims,
    private readonly activity: ProjectActivity | null = null,
    private readonly trail: AuditTrail | null = null,
    private readonly changes: Changes | null = null,
  ) {}

  /**
   * Replays a stored response, or charges the operation's credits, runs `work` and stores the response: all in one
   * unit. What `work` returns is the response.
   *
   * A 403, 404, 408 or 409 thrown by the work keeps the charge and undoes the work; anything else, and the limits of a
   * tier, undo both. By its second argument the work says that it has changed nothing and costs nothing.
   *
   * @throws ReplayedResponse for a repeat under an `Idempotency-Key`.
   * @throws ApiError what the work threw, `insufficient_balance`, `conflict`, `service_unavailable`.
   */
  perform<T extends object>(performer: Performer, work: (tx: Tx, waiveCharge: () => void) => T): Promise<T> {
    const { idempotency, caller, operation } = performer;
    const audit = this.auditOf(performer);
    const submitted = this.submit((tx) => {
      tx.affects = affectedBy(performer);
      tx.auditor = audit;
      this.admit(tx, performer, operation.cost === 0);
      let charged = true;
      const waiveCharge = () => {
        if (operation.cost > 0) this.charger.refund(tx, caller.account, operation.name, operation.cost);
        charged = false;
      };
      const paidWork = () => this.chargeAndWork(tx, performer, (unit) => work(unit, waiveCharge), audit);
      if (idempotency === null) return paidWork();
      const outcome = storable(tx, paidWork);
      this.remember(tx, performer, outcome, { charged, changedNothing: !charged });
      return outcome;
    });
    return submitted.then(unwrap);
  }

  /**
   * The same for work that changes nothing. It does not wait for the disk: the charge is taken in memory, and written with
   * the next batch. Under an `Idempotency-Key`, and while the disk fails, it is a unit of work like any other.
   *
   * @throws ApiError as {@link perform}.
   */
  read<T extends object>(performer: Performer, work: (tx: Tx) => T): T | Promise<T> {
    const { writer } = this;
    const isFree = performer.operation.cost === 0;
    if (performer.idempotency !== null || !(isFree || writer.takesInMemory))
      return this.perform(performer, work);
    const done = writer.runInMemory((tx) => {
      assertStillValid(performer.caller);
      return this.chargeAndWork(tx, performer, work);
    });
    return unwrap(done);
  }

  /** The same for work across the network: see {@link AcrossNetwork}. In between, the `Idempotency-Key` counts as running. */
  async performAcross<C, R, T extends object>(
    performer: Performer,
    phases: AcrossNetwork<C, R, T>,
  ): Promise<T> {
    const audit = this.auditOf(performer);
    const claimed = await this.claim(performer, phases, audit);
    try {
      const result = await outcomeOf(phases.outside(claimed.value));
      const settled = this.submit((tx) => {
        tx.affects = affectedBy(performer);
        tx.auditor = audit;
        return this.settle(tx, performer, claimed, (refund) => {
          const value = phases.settle(tx, claimed.value, unwrap(result), refund);
          audit?.assertAudited();
          return value;
        });
      });
      return unwrap(await settled.catch((error) => interimResponse(phases, claimed.value, error)));
    } finally {
      claimed.release();
    }
  }

  /** Refunds the requests that a killed server charged without recording their outcome. */
  async refundAbandoned(accountOf: (accountRef: number) => CallerAccount): Promise<void> {
    const takeSome = (tx: Tx): number => {
      const claims = this.open.takeAbandoned(tx);
      for (const { account_ref, operation, cost } of claims) {
        this.charger.refund(tx, accountOf(account_ref), operation, cost);
      }
      return claims.length;
    };
    while ((await this.writer.submit(takeSome)) > 0);
  }

  /** The first unit. The key is checked before the charge: a repeat, or a conflict over the key, costs nothing. */
  private async claim<C, R, T extends object>(
    performer: Performer,
    phases: AcrossNetwork<C, R, T>,
    audit: OperationAudit | null,
  ) {
    const { idempotency, caller } = performer;
    // Lets the `Idempotency-Key` go.
    let release = () => {};
    // The charge among those that have no outcome yet; null when it is not there.
    let openId: number | null = null;
    let claimed: C | StoredFailure;
    let cost = performer.operation.cost;
    // A conflict over the key itself is not stored: the first request may yet end in something that is not kept.
    let checked = false;
    try {
      claimed = await this.submit<C>((tx) => {
        tx.affects = affectedBy(performer);
        tx.auditor = audit;
        // Some are refunded later, when it is too late to reject them.
        this.admit(tx, performer, true);
        checked = true;
        const value = this.chargeAndWork(tx, performer, (unit) => {
          const claim = phases.claim(unit);
          const surcharge = phases.surcharge?.(claim) ?? 0;
          if (surcharge > 0) this.charger.charge(unit, caller.account, performer.operation.name, surcharge);
          cost = performer.operation.cost + surcharge;
          return claim;
        });
        // A rejection that keeps the charge is stored with it: a crash in between would charge the repeat again.
        if (value instanceof StoredFailure) this.remember(tx, performer, value);
        else if (idempotency !== null) {
          if (phases.interim === undefined) openId = this.openClaim(tx, performer, cost);
          else this.remember(tx, performer, phases.interim(value));
          release = this.responses.hold(caller, idempotency);
          tx.onRollback(release);
        }
        return value;
      });
    } catch (error) {
      release();
      if (checked && error instanceof ApiError) {
        await this.storeResponse(performer, renderError(error, performer.requestId));
      }
      throw error;
    }
    return { value: unwrap(claimed), openId, cost, release };
  }

  /** With an interim response the request counts as completed: its charge remains. */
  private openClaim(tx: Tx, { operation, caller: { account } }: Performer, cost: number): number | null {
    return cost === 0 || isUnlimited(account.tier) ? null : this.open.open(tx, account, operation.name, cost);
  }

  /** Stores the response of a request that had no unit of work, or was rejected before it. @throws ReplayedResponse for a repeat. */
  async storeResponse(performer: Performer, response: RenderedResponse): Promise<void> {
    const { idempotency, caller } = performer;
    if (idempotency === null || !isStorable(response.status)) return;
    await this.writer.submit((tx) => {
      tx.affects = affectedBy(performer);
      this.responses.check(tx, caller, idempotency);
      this.responses.storeIfSpace(tx, caller, idempotency, response);
    });
  }

  private submit<T>(work: (tx: Tx) => T | StoredFailure): Promise<T | StoredFailure> {
    // The compiler cannot see that a generic value is no promise; the writer checks it when it runs.
    return this.writer.submit<T | StoredFailure>(work as never);
  }

  /** Passes a request that is not a repeat. `mayBeFree`: it is free of charge, or may be refunded. */
  private admit(tx: Tx, { idempotency, caller }: Performer, mayBeFree: boolean): void {
    assertStillValid(caller);
    if (idempotency === null) return;
    this.responses.check(tx, caller, idempotency);
    if (mayBeFree) this.responses.assertFreeSpace(tx, caller);
  }

  private auditOf(performer: Performer): OperationAudit | null {
    return performer.operation.audit === "no" ? null : (this.trail?.of(performer) ?? null);
  }

  /** `audit`: null where the operation is not audited, or has a second unit to say what it changes. */
  private chargeAndWork<T>(
    tx: Tx,
    performer: Performer,
    work: (tx: Tx) => T,
    audit: OperationAudit | null = null,
  ): T | StoredFailure {
    const { name, cost, changesProject } = performer.operation;
    // After the stored response: a client that lost the response of a rotation gets it with the rotated key.
    assertMayChangeKeys(performer.caller, performer.operation);
    if (cost > 0) this.charger.charge(tx, performer.caller.account, name, cost);
    try {
      const result = cost > 0 ? tx.savepoint(() => work(tx)) : work(tx);
      audit?.assertAudited();
      if (changesProject) this.noteChange(tx, performer);
      return result;
    } catch (error) {
      if (cost > 0 && error instanceof ApiError && keepsCharge(error)) return new StoredFailure(error, true);
      throw error;
    }
  }

  private noteChange(tx: Tx, { operation, caller: { project } }: Performer): void {
    this.activity?.changed(tx, project.ref);
    // Audited changes have been reported with their id.
    if (operation.audit === "no") this.changes?.inProject(tx, project.ref, operation.area ?? "");
  }

  private settle<T extends object>(
    tx: Tx,
    performer: Performer,
    { openId, cost }: { readonly openId: number | null; readonly cost: number },
    work: (refund: () => void) => T,
  ): T | StoredFailure {
    let charged = true;
    const refund = () => {
      this.charger.refund(tx, performer.caller.account, performer.operation.name, cost);
      charged = false;
    };
    if (openId !== null) this.open.close(tx, openId);
    let outcome: T | StoredFailure;
    try {
      outcome = tx.savepoint(() => work(refund));
    } catch (error) {
      charged = true;
      if (!(error instanceof ApiError && keepsCharge(error))) refund();
      outcome = new StoredFailure(error, charged);
    }
    this.remember(tx, performer, outcome, { charged });
    return outcome;
  }

  /**
   * Stores the outcome of a request under its `Idempotency-Key`. A free rejection may stay unstored, and so may
   * a free request that changed nothing.
   */
  private remember(
    tx: Tx,
    performer: Performer,
    outcome: object,
    { charged = true, changedNothing = false }: { charged?: boolean; changedNothing?: boolean } = {},
  ): void {
    const { idempotency, caller, requestId, operation } = performer;
    if (idempotency === null || !isStored(outcome)) return;
    const failure = outcome instanceof StoredFailure ? outcome : null;
    if (failure !== null && !(failure.error instanceof ApiError)) return;
    const response =
      failure === null
        ? renderResult(shownTo(caller, outcome))
        : renderError(failure.error as ApiError, requestId);
    if (!isStorable(response.status)) return;
    if (changedNothing || failure?.charged === false)
      this.responses.storeIfSpace(tx, caller, idempotency, response);
    else this.responses.store(tx, caller, idempotency, response, charged && operation.cost > 0);
  }
}

/** Turns a rejection to be stored into a committed failure; everything else is rolled back. */
function storable<T extends object>(tx: Tx, run: () => T | StoredFailure): T | StoredFailure {
  try {
    return tx.savepoint(run);
  } catch (error) {
    if (error instanceof ApiError && isStorable(error.status)) return new StoredFailure(error, false);
    throw error;
  }
}

function keepsCharge({ status, code }: ApiError): boolean {
  return KEEPS_CHARGE.has(status) && !code.endsWith(LIMIT_CODE);
}

function unwrap<T>(outcome: T | StoredFailure): T {
  if (outcome instanceof StoredFailure) throw outcome.error;
  return outcome;
}

/** The database could not be written any more after the claim: what the claim did stands. */
function interimResponse<C, R, T extends object>(
  phases: AcrossNetwork<C, R, T>,
  claim: C,
  error: unknown,
): T {
  if (!(error instanceof ApiError)) throw error;
  if (phases.interim !== undefined) return phases.interim(claim);
  if (!isUnavailable(error)) throw error;
  throw new ApiError(
    "service_unavailable",
    "The request was carried out and charged, but its result could not be stored. " +
      "Check its effect before you retry.",
    // No Retry-After, and a mark for programs: unlike after other 503s, a repeat would do it again.
    { extras: { carried_out: true } },
  );
}

async function outcomeOf<R>(work: Promise<R>): Promise<R | StoredFailure> {
  try {
    return await work;
  } catch (error) {
    return new StoredFailure(error, true);
  }
}

/** Whose data an operation changes: the operator's operations change other accounts. */
function affectedBy({ operation, caller }: Performer): Affected {
  return operation.access === "operator" ? ANYONE : caller.account.ref;
}
