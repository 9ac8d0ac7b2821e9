import type { Certificate } from "../../kernel/outbound/certificate.ts";
import { DAY_MS } from "../../kernel/time/units.ts";

/** Days before expiry at which channels are notified, in addition to the `tls_expiry_days` of the monitor. */
const NOTIFICATION_DAYS = [7, 3, 1] as const;

/** The certificate that the last check saw, as it is stored. */
export interface StoredCertificate extends Certificate {
  /** The last notification: expiry of its certificate, and the number of days before it. Null: there was none. */
  readonly told: { readonly notAfter: number; readonly days: number } | null;
}

/** Whole days until a certificate expires; negative after that. */
export function daysLeft({ notAfter }: Certificate, now: number): number {
  return Math.floor((notAfter - now) / DAY_MS);
}

/**
 * The certificate after a check saw one, with the notification that is due, if any: once at `expiryDays`, 7, 3 and 1 days
 * before expiry, and again for a certificate that expires later. `expiryDays` 0: never.
 */
export function updatedCertificate(
  before: StoredCertificate | null,
  seen: Certificate,
  { at, manual }: { readonly at: number; readonly manual: boolean },
  expiryDays: number,
): StoredCertificate {
  const told = before?.told ?? null;
  const left = daysLeft(seen, at);
  const due = [expiryDays, ...NOTIFICATION_DAYS].filter((days) => left <= days && days <= expiryDays);
  if (manual || expiryDays === 0 || due.length === 0) return { ...seen, told };
  const days = Math.min(...due);
  // Servers behind one name can present different certificates in turn: that must not notify at every check.
  if (told !== null && seen.notAfter <= told.notAfter && told.days <= days) return { ...seen, told };
  return { ...seen, told: { notAfter: Math.max(seen.notAfter, told?.notAfter ?? 0), days } };
}
