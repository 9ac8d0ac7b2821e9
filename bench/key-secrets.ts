import { checksum } from "../src/kernel/secrets/key-format.ts";

/** The prefix of the measured keys. */
export const PREFIX = "acme_live";
/** Creation time of the first key in epoch milliseconds. Each following one is a millisecond later. */
export const FIRST_CREATED_AT = Date.UTC(2026, 0, 1);

/** The secret of a key by its number: well-formed, and predictable for the load generator. */
export function secretOf(number: number): string {
  const body = `${PREFIX}_${String(number).padStart(43, "0")}`;
  return `${body}_${checksum(body)}`;
}
