import { partUp, type UptimeCounts } from "../../kernel/data/uptime.ts";
import { type ErrorMeaning, registerErrors } from "../../kernel/errors.ts";

const codes = registerErrors({
  page_slug_taken: [
    409,
    "This slug is not available.",
    "Use another slug. The page may belong to another account.",
  ],
  page_limit_exceeded: [
    403,
    "The account has the maximum number of status pages of its tier.",
    "Delete pages that are not used, or request another tier from the operator.",
  ],
});

declare module "../../kernel/errors.ts" {
  interface ErrorCodes extends Record<keyof typeof codes, ErrorMeaning> {}
}

/** Percentage of the time that was up, rounded down to two decimals so that only 100 % reads as 100; null without checks. */
export function uptimeOf(rows: readonly UptimeCounts[]): number | null {
  const { up, of } = partUp(rows);
  // Multiplies before dividing: the quotient 0.69 is slightly less than 0.69 in binary and would become 68.99.
  return of === 0 ? null : Math.floor((up * 10_000) / of) / 100;
}
