import type { AuditChange } from "../../../kernel/audit/change.ts";
import { ApiError } from "../../../kernel/errors.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { isoTime } from "../../../kernel/time/date-time.ts";
import type { LowMeter, MeterBook, MeterChange } from "../book.ts";
import { type Plan, planOf } from "../domain.ts";
import type { DueWork } from "../holds/due.ts";
import type { MeterPorts } from "../ports.ts";
import type { AlertBody, MeterAlert, MeterPlan, PlanBody } from "./schema.ts";
import { type AlertRow, planOfRow, rowOfPlan, type TermsStore } from "./store.ts";

/** What stands for a meter in the alert of a whole project. */
const PROJECT = 0;

/** Whose alert is changed. `meterId` null: the project's. */
export type AlertPlace = Omit<MeterChange, "meterId"> & { readonly meterId: string | null };

/** The use cases of what is set for meters: refills that recur, and alerts when little is left. */
export class TermsService {
  constructor(
    private readonly store: TermsStore,
    private readonly book: MeterBook,
    private readonly due: DueWork,
    private readonly ports: MeterPorts,
  ) {}

  /**
   * Sets a meter's plan, in place of the one that it has. `pay` takes what a meter costs that is created for it.
   * @throws ApiError `validation_error`; what `pay` throws.
   */
  setPlan(tx: Tx, change: MeterChange, body: PlanBody, pay: () => void): MeterPlan {
    const asked = planOf(body, tx.now);
    const meter = this.begun(tx, change, pay);
    const extras = this.book.extrasFor(tx, meter);
    const before = extras.plan === null ? null : planView(change.meterId, extras.plan);
    // What is due now is made by the same code as what falls due later.
    const plan = { ...asked, nextAt: body.start_now === true ? tx.now : asked.nextAt };
    this.store.setPlan(tx, { meter_ref: meter.ref, ...rowOfPlan(plan) });
    extras.setPlan(tx, plan);
    this.book.current(tx, change);
    this.due.plan(tx, asked.nextAt);
    const after = planView(change.meterId, asked);
    tx.audit(audited(change.meterId, `Refill plan of meter ${change.meterId} set`, before, after));
    return after;
  }

  /** @throws ApiError `not_found`. */
  plan(projectRef: number, meterId: string): MeterPlan {
    const meter = this.book.find(projectRef, meterId);
    const row = meter === undefined ? null : this.store.plan(meter.ref);
    if (row === null) throw new ApiError("not_found", `The meter ${meterId} has no refill plan.`);
    return planView(meterId, planOfRow(row));
  }

  /** Takes a meter's plan away, if it has one. */
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
    tx.audit(audited(meterId, `Refill plan of meter ${meterId} taken away`, planView(meterId, plan), null));
  }

  /**
   * Sets an alert. `pay` takes what a meter costs that is created for it.
   * @throws ApiError `validation_error` for an address that is not permitted; what `pay` throws.
   */
  setAlert(
    tx: Tx,
    place: AlertPlace,
    accountRef: number,
    { threshold, webhook_url }: AlertBody,
    pay: () => void,
  ): MeterAlert {
    const { meterId } = place;
    const meter = meterId === null ? undefined : this.begun(tx, { ...place, meterId }, pay);
    const ref = meter?.ref ?? PROJECT;
    const before = this.alertRow(place.projectRef, ref);
    this.store.setAlert(tx, place.projectRef, ref, accountRef, threshold, webhook_url);
    if (meter === undefined) this.keepDefault(tx, place.projectRef, threshold);
    else this.book.extrasFor(tx, meter).setThreshold(tx, threshold);
    const after = { meter_id: meterId, threshold, webhook_url };
    tx.audit(audited(meterId, `Alert of ${called(meterId)} set`, alertView(meterId, before), after));
    return after;
  }

  /** @throws ApiError `not_found`. */
  alert(projectRef: number, meterId: string | null): MeterAlert {
    const alert = alertView(meterId, this.alertRow(projectRef, this.refOf(projectRef, meterId)));
    if (alert === null) throw new ApiError("not_found", `There is no alert of ${called(meterId)}.`);
    return alert;
  }

  /** Takes an alert away, if there is one. */
  removeAlert(tx: Tx, { projectRef, meterId }: AlertPlace): void {
    const ref = this.refOf(projectRef, meterId);
    const before = alertView(meterId, this.alertRow(projectRef, ref));
    if (ref === null || before === null) {
      tx.audit(null);
      return;
    }
    this.store.removeAlert(tx, projectRef, ref);
    const meter = meterId === null ? undefined : this.book.find(projectRef, meterId);
    if (meter === undefined) this.keepDefault(tx, projectRef, undefined);
    else this.book.extrasFor(tx, meter).setThreshold(tx, null);
    tx.audit(audited(meterId, `Alert of ${called(meterId)} taken away`, before, null));
  }

  /** Queues the notice that a meter is low. */
  low(
    tx: Tx,
    { projectRef, meterId: meter_id, requestId: request_id, ref, balance, available }: LowMeter,
  ): void {
    const alert = this.store.alert(projectRef, ref) ?? this.store.alert(projectRef, PROJECT);
    if (alert === null) return;
    const { account_ref: accountRef, threshold, webhook_url: target_url } = alert;
    const event = "meter.low";
    const said = { event, meter_id, threshold, balance, available, at: isoTime(tx.now), request_id };
    const body = JSON.stringify(said);
    this.ports.notifier.notify(tx, { accountRef, projectRef, event, monitor_id: null, target_url, body });
  }

  /** The project is being deleted: nothing in it is low any more. */
  forget(tx: Tx, projectRef: number): void {
    this.store.removeAlert(tx, projectRef, PROJECT);
    this.keepDefault(tx, projectRef, undefined);
  }

  /** Comes before anything is written. @throws ApiError `validation_error`. */
  assertAlert({ webhook_url }: AlertBody): void {
    // A notice says who is short of what.
    this.ports.policy.assertUrl("webhook_url", webhook_url, { requireHttps: true });
  }

  /** A meter is stored forever: one that is created here costs as much as one that is created by a refill. */
  private begun(tx: Tx, change: MeterChange, pay: () => void) {
    if (this.book.find(change.projectRef, change.meterId) === undefined) pay();
    return this.book.begun(tx, change);
  }

  /** Null for a meter that does not exist. */
  private refOf(projectRef: number, meterId: string | null): number | null {
    return meterId === null ? PROJECT : (this.book.find(projectRef, meterId)?.ref ?? null);
  }

  private alertRow(projectRef: number, ref: number | null): AlertRow | null {
    return ref === null ? null : this.store.alert(projectRef, ref);
  }

  private keepDefault(tx: Tx, projectRef: number, threshold: number | undefined): void {
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

function planView(meter_id: string, { carryMax, nextAt, ...plan }: Plan): MeterPlan {
  return { meter_id, ...plan, carry_max: carryMax, next_at: isoTime(nextAt) };
}

function alertView(meter_id: string | null, row: AlertRow | null): MeterAlert | null {
  return row === null ? null : { meter_id, threshold: row.threshold, webhook_url: row.webhook_url };
}

function called(meterId: string | null): string {
  return meterId === null ? "the project's meters" : `meter ${meterId}`;
}

function audited(
  meterId: string | null,
  summary: string,
  before: object | null,
  after: object | null,
): AuditChange {
  const target = { type: "meter", id: meterId ?? "*" };
  return { summary, target, before: before && { ...before }, after: after && { ...after } };
}
