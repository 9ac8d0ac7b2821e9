import type { Database } from "../../../kernel/storage/database.ts";
import type { Plan } from "../domain.ts";
import { PERIODS, PLAN_MODES } from "./schema.ts";

/** A row of `meter_plans`, without its meter. */
export type PlanRow = {
  readonly amount: number;
  readonly every: number;
  readonly mode: number;
  readonly day: number | null;
  readonly carry_max: number | null;
  readonly next_at: number;
};

/** A row of `meter_alerts`, without its meter. */
export interface AlertRow {
  readonly account_ref: number;
  readonly threshold: number;
  readonly webhook_url: string;
}

export type PlanStore = ReturnType<typeof planStore>;

/** All SQL of refill plans and alerts. */
export function planStore(db: Database) {
  return {
    plan: db.one<PlanRow, [meterRef: number]>(
      "SELECT amount, every, mode, day, carry_max, next_at FROM meter_plans WHERE meter_ref = ?",
    ),
    setPlan: db.change<[row: PlanRow & { readonly meter_ref: number }]>(
      "INSERT OR REPLACE INTO meter_plans (meter_ref, amount, every, mode, day, carry_max, next_at) VALUES ($meter_ref, $amount, $every, $mode, $day, $carry_max, $next_at)",
    ),
    postponePlan: db.change<[nextAt: number, meterRef: number]>(
      "UPDATE meter_plans SET next_at = ? WHERE meter_ref = ?",
    ),
    removePlan: db.change<[meterRef: number]>("DELETE FROM meter_plans WHERE meter_ref = ?"),
    /** Meters with due plans. */
    plansDue: db.all<{ readonly meter_ref: number }, [now: number, limit: number]>(
      "SELECT meter_ref FROM meter_plans WHERE next_at <= ? LIMIT ?",
    ),
    /** Due time of the first plan; 0 if there is none. */
    firstPlan: db.number("SELECT min(next_at) AS n FROM meter_plans"),
    /** `meterRef` 0 is the project's alert. */
    alert: db.one<AlertRow, [projectRef: number, meterRef: number]>(
      "SELECT account_ref, threshold, webhook_url FROM meter_alerts WHERE project_ref = ? AND meter_ref = ?",
    ),
    projectAlerts: db.all<{ readonly project_ref: number; readonly threshold: number }>(
      "SELECT project_ref, threshold FROM meter_alerts WHERE meter_ref = 0",
    ),
    setAlert: db.change<
      [projectRef: number, meterRef: number, accountRef: number, threshold: number, webhookUrl: string]
    >(
      "INSERT OR REPLACE INTO meter_alerts (project_ref, meter_ref, account_ref, threshold, webhook_url) VALUES (?, ?, ?, ?, ?)",
    ),
    removeAlert: db.change<[projectRef: number, meterRef: number]>(
      "DELETE FROM meter_alerts WHERE project_ref = ? AND meter_ref = ?",
    ),
  };
}

/** Converts a row to a plan. */
export function planOfRow({ every, mode, carry_max: carryMax, next_at: nextAt, ...row }: PlanRow): Plan {
  const period = PERIODS[every - 1] ?? "month";
  return { ...row, every: period, mode: PLAN_MODES[mode - 1] ?? "raise", carryMax, nextAt };
}

/** Converts a plan to a row. */
export function rowOfPlan({ every, mode, carryMax: carry_max, nextAt: next_at, ...plan }: Plan): PlanRow {
  const numbers = { every: PERIODS.indexOf(every) + 1, mode: PLAN_MODES.indexOf(mode) + 1 };
  return { ...plan, ...numbers, carry_max, next_at };
}
