import { DAY_MS } from "../../kernel/time/units.ts";

/** Days before expiry at which channels are notified, once each. */
const NOTIFICATION_DAYS = [30, 14, 7, 1] as const;

/** The registration of a domain name as the last check saw it. */
export interface Registration {
  /** End of the registration, epoch milliseconds. */
  readonly expiresAt: number;
  /** The last notification: expiry of its registration, and the number of days before it. Null: there was none. */
  readonly told: { readonly expiresAt: number; readonly days: number } | null;
}

/** Whole days until a registration ends; negative after that. */
export function daysUntil({ expiresAt }: Pick<Registration, "expiresAt">, now: number): number {
  return Math.floor((expiresAt - now) / DAY_MS);
}

/**
 * The registration after a check, with the notification that is due, if any: once at 30, 14, 7 and 1 days before expiry, and
 * again after a renewal. What has expired is an outage, and no notification.
 */
export function updatedRegistration(
  before: Registration | null,
  expiresAt: number,
  { at, manual }: { readonly at: number; readonly manual: boolean },
): Registration {
  const told = before?.told ?? null;
  const left = daysUntil({ expiresAt }, at);
  const due = NOTIFICATION_DAYS.filter((days) => left <= days);
  if (manual || left < 0 || due.length === 0) return { expiresAt, told };
  const days = Math.min(...due);
  const isTold = told !== null && expiresAt <= told.expiresAt && told.days <= days;
  return { expiresAt, told: isTold ? told : { expiresAt, days } };
}
