import type { Certificate } from "../../../kernel/outbound/certificate.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

/** Days before its end at which a certificate is told of, besides the one that the monitor's owner chose. */
const NOTIFICATION_DAYS = [7, 3, 1] as const;

/** The certificate that the last check met. */
export interface StoredCertificate extends Certificate {
  /** The last notice: up to which end, and at how many days before it. Null: there was none. */
  readonly told: { readonly notAfter: number; readonly days: number } | null;
}

/** Whole days until a certificate ends; negative once it has ended. */
export function daysLeft({ notAfter }: Certificate, now: number): number {
  return Math.floor((notAfter - now) / DAY_MS);
}

/**
 * A certificate that a check has met, with the notice that is sent of it now, if one is: once at `expiryDays`, 7, 3 and 1
 * days, and anew once a certificate ends later than the one told of. `expiryDays` 0: never.
 */
export function updatedCertificate(
  before: StoredCertificate | null,
  met: Certificate,
  { at, manual }: { readonly at: number; readonly manual: boolean },
  expiryDays: number,
): StoredCertificate {
  const told = before?.told ?? null;
  const left = daysLeft(met, at);
  const due = [expiryDays, ...NOTIFICATION_DAYS].filter((days) => left <= days && days <= expiryDays);
  if (manual || expiryDays === 0 || due.length === 0) return { ...met, told };
  const days = Math.min(...due);
  // Several servers behind one name may show several certificates in turn: that is not news at every check.
  if (told !== null && met.notAfter <= told.notAfter && told.days <= days) return { ...met, told };
  return { ...met, told: { notAfter: Math.max(met.notAfter, told?.notAfter ?? 0), days } };
}
