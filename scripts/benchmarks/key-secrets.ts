import { checksum } from "../../src/kernel/secrets/key-format.ts";

/** The prefix of the keys to measure with. */
export const PREFIX = "acme_live";
/** When the first of them was made, epoch milliseconds; each following one a millisecond later. */
export const FIRST_CREATED_AT = Date.UTC(2026, 0, 1);

/** The secret of a key by its number: well-formed, and known to whoever measures. */
export function secretOf(number: number): string {
  const body = `${PREFIX}_${String(number).padStart(43, "0")}`;
  return `${body}_${checksum(body)}`;
}
