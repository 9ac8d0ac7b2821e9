import { ApiError, invalidField } from "../../../kernel/errors.ts";
import type { AuditChange, Tx } from "../../../kernel/storage/tx.ts";
import { isoTime } from "../../../kernel/time/date-time.ts";
import type { LowMeter, MeterBook, MeterChange } from "../book.ts";
import { nextRefill, type Plan } from "../domain.ts";
import type { DueWork } from "../holds/due.ts";
import type { MeterDeps } from "../ports.ts";
import { type AlertRow, type PlanStore, planOfRow, rowOfPlan } from "../store.ts";
import type { AlertBody, MeterAlert, MeterPlan, PlanBody } from "./schema.ts";

/** Meter reference of a project alert. */
const PROJECT = 0;

/** The meter of an alert, or the project if `meterId` is null. */
export type AlertTarget = Omit<MeterChange, "meterId"> & { readonly meterId: string | null };

/** The operations of refill plans and alerts. */
export class PlanService {
  constructor(
    private readonly store: PlanStore,
    private readonly book: MeterBook,
    private readonly due: DueWork,
    private readonly deps: MeterDeps,
  ) {}

  /**
   * Sets or replaces a meter's plan. `charge` charges the creation of a meter.
   * @throws ApiError `validation_error`; errors of `charge`.
   */
  setPlan(tx: Tx, change: MeterChange, body: PlanBody, charge: () => void): MeterPlan {
    const requested = planOf(body, tx.now);
    const meter = this.getOrCreate(tx, change, charge);
    const extras = this.book.extrasFor(tx, meter);
    const before = extras.plan === null ? null : planView(change.meterId, extras.plan);
    // An immediate refill uses the same code as a scheduled one.
    const plan = { ...requested, nextAt: body.start_now === true ? tx.now : requested.nextAt };
    this.store.setPlan(tx, { meter_ref: meter.ref, ...rowOfPlan(plan) });
    extras.setPlan(tx, plan);
    this.book.current(tx, change);
    this.due.schedule(tx, requested.nextAt);
    const after = planView(change.meterId, requested);
    tx.audit(auditChange(change.meterId, `Refill plan of meter ${change.meterId} set`, before, after));
    return after;
  }

  /** @throws ApiError `not_found`. */
  plan(projectRef: number, meterId: string): MeterPlan {
    const meter = this.book.find(projectRef, meterId);
    const row = meter === undefined ? null : this.store.plan(meter.ref);
    if (row === null) throw new ApiError("not_found", `The meter ${meterId} has no refill plan.`);
    return planView(meterId, planOfRow(row));
  }

  /** Removes a meter's plan, if it has one. */
  removePlan(tx: Tx, change: MeterChange): void {
    const { meterId } = change;
    const meter = this.book.current(tx, change);
    const plan = meter?.extras?.plan ?? null;
    if (meter === undefined || plan === null) {
      tx.audit(null);
      return;
    }
    this.store.removePlan(tx, meter.ref);
    this.book.extrasFor(tx, meter).setPlan(tx, null);
    tx.audit(auditChange(meterId, `Refill plan of meter ${meterId} deleted`, planView(meterId, plan), null));
  }

  /**
   * Sets an alert. `charge` charges the creation of a meter.
   * @throws ApiError `validation_error` for a URL that is not allowed; errors of `charge`.
   */
  setAlert(
    tx: Tx,
    place: AlertTarget,
    accountRef: number,
    { threshold, webhook_url }: AlertBody,
    charge: () => void,
  ): MeterAlert {
    const { meterId } = place;
    const meter = meterId === null ? undefined : this.getOrCreate(tx, { ...place, meterId }, charge);
    const ref = meter?.ref ?? PROJECT;
    const before = this.alertRow(place.projectRef, ref);
    this.store.setAlert(tx, place.projectRef, ref, accountRef, threshold, webhook_url);
    if (meter === undefined) this.setProjectThreshold(tx, place.projectRef, threshold);
    else this.book.extrasFor(tx, meter).setThreshold(tx, threshold);
    const after = { meter_id: meterId, threshold, webhook_url };
    tx.audit(
      auditChange(meterId, `Alert of ${describeTarget(meterId)} set`, alertView(meterId, before), after),
    );
    return after;
  }

  /** @throws ApiError `not_found`. */
  alert(projectRef: number, meterId: string | null): MeterAlert {
    const alert = alertView(meterId, this.alertRow(projectRef, this.refOf(projectRef, meterId)));
    if (alert === null) throw new ApiError("not_found", `No alert is set for ${describeTarget(meterId)}.`);
    return alert;
  }

  /** Removes an alert, if there is one. */
  removeAlert(tx: Tx, { projectRef, meterId }: AlertTarget): void {
    const ref = this.refOf(projectRef, meterId);
    const before = alertView(meterId, this.alertRow(projectRef, ref));
    if (ref === null || before === null) {
      tx.audit(null);
      return;
    }
    this.store.removeAlert(tx, projectRef, ref);
    const meter = meterId === null ? undefined : this.book.find(projectRef, meterId);
    if (meter === undefined) this.setProjectThreshold(tx, projectRef, undefined);
    else this.book.extrasFor(tx, meter).setThreshold(tx, null);
    tx.audit(auditChange(meterId, `Alert of ${describeTarget(meterId)} deleted`, before, null));
  }

  /** Queues the alert of a meter with low credits. */
  low(
    tx: Tx,
    { projectRef, meterId: meter_id, requestId: request_id, ref, balance, available }: LowMeter,
  ): void {
    const alert = this.store.alert(projectRef, ref) ?? this.store.alert(projectRef, PROJECT);
    if (alert === null) return;
    const { account_ref: accountRef, threshold, webhook_url: url } = alert;
    const event = "meter.low";
    this.deps.alerts.notifyWebhook(tx, {
      accountRef,
      projectRef,
      event,
      url,
      title: meter_id,
      text: `${available} available, below ${threshold}`,
      facts: { event, meter_id, threshold, balance, available, at: isoTime(tx.now), request_id },
    });
  }

  /** Removes the alert of a deleted project. */
  forget(tx: Tx, projectRef: number): void {
    this.store.removeAlert(tx, projectRef, PROJECT);
    this.setProjectThreshold(tx, projectRef, undefined);
  }

  /** Called before anything is written. @throws ApiError `validation_error`. */
  assertAlert({ webhook_url }: AlertBody): void {
    // Alerts contain customer data, so that https is required.
    this.deps.policy.assertUrl("webhook_url", webhook_url, { requireHttps: true });
  }

  /** Meters are stored permanently, so that creating one here costs as much as with a refill. */
  private getOrCreate(tx: Tx, change: MeterChange, charge: () => void) {
    if (this.book.find(change.projectRef, change.meterId) === undefined) charge();
    return this.book.getOrCreate(tx, change);
  }

  /** Returns null for a meter that does not exist. */
  private refOf(projectRef: number, meterId: string | null): number | null {
    return meterId === null ? PROJECT : (this.book.find(projectRef, meterId)?.ref ?? null);
  }

  private alertRow(projectRef: number, ref: number | null): AlertRow | null {
    return ref === null ? null : this.store.alert(projectRef, ref);
  }

  private setProjectThreshold(tx: Tx, projectRef: number, threshold: number | undefined): void {
    const { thresholds } = this.book;
    const before = thresholds.get(projectRef);
    put(thresholds, projectRef, threshold);
    tx.onRollback(() => put(thresholds, projectRef, before));
  }
}

function put(thresholds: Map<number, number>, projectRef: number, threshold: number | undefined): void {
  if (threshold === undefined) thresholds.delete(projectRef);
  else thresholds.set(projectRef, threshold);
}

/** Creates a plan from a body. @throws ApiError `validation_error` for contradicting fields. */
function planOf(body: PlanBody, now: number): Plan {
  const { amount, every, mode = "raise", day, carry_max: carryMax } = body;
  if (every === "day" && day !== undefined)
    throw invalidField("day", "is only allowed with every week or month");
  if (every === "week" && (day ?? 1) > 7)
    throw invalidField("day", "must be an integer from 1 (Monday) to 7");
  if (mode === "raise" && carryMax !== undefined) {
    throw invalidField("carry_max", "is only allowed with the mode add");
  }
  const terms = { amount, every, mode, day: every === "day" ? null : (day ?? 1), carryMax: carryMax ?? null };
  return { ...terms, nextAt: nextRefill(terms, now) };
}

function planView(meter_id: string, { carryMax, nextAt, ...plan }: Plan): MeterPlan {
  return { meter_id, ...plan, carry_max: carryMax, next_at: isoTime(nextAt) };
}

function alertView(meter_id: string | null, row: AlertRow | null): MeterAlert | null {
  return row === null ? null : { meter_id, threshold: row.threshold, webhook_url: row.webhook_url };
}

function describeTarget(meterId: string | null): string {
  return meterId === null ? "the project's meters" : `meter ${meterId}`;
}

function auditChange(
  meterId: string | null,
  summary: string,
  before: object | null,
  after: object | null,
): AuditChange {
  const target = { type: "meter", id: meterId ?? "*" };
  return { summary, target, before: before && { ...before }, after: after && { ...after } };
}
