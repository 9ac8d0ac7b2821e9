import { invalidField } from "../../kernel/errors.ts";
import { AddressRanges, isRange } from "../../kernel/http/access/address-ranges.ts";
import { isoTime, isoTimeOrNull, momentOf } from "../../kernel/time/date-time.ts";
import { type AllowanceRow, type UsesTerms, usesView } from "./allowance.ts";
import { assertScopesKnown, BEARER_PREFIX, hasCome, METADATA_LENGTH_MAX } from "./domain.ts";
import type { KeyCreateBody, KeyPatchBody, Ratelimit } from "./schema.ts";
import type { NewKeyRow } from "./store.ts";

/** What can be said of a key, as its columns. */
export type KeyTerms = Pick<
  NewKeyRow,
  | ("prefix" | "name" | "scopes" | "environment" | "metadata" | "expires_at")
  | ("owner_id" | "meter_id" | "enabled" | "ratelimits" | "allowed_ips")
>;

/** What can be changed. */
type Columns = Omit<KeyTerms, "prefix">;

/** A key of which nothing has been said. */
const NOTHING_SAID = {
  environment: null,
  metadata: null,
  expires_at: null,
  owner_id: null,
  meter_id: null,
  enabled: 1,
  ratelimits: null,
  allowed_ips: null,
} as const;

/** What a body says of a key: its columns, and its uses where it says something of them. */
export interface SaidTerms<Said> {
  readonly columns: Said;
  /** Null: without limit. Undefined: not said. */
  readonly uses: UsesTerms | null | undefined;
}

/** Checks a creation's body beyond its schema. @throws ApiError `validation_error` */
export function createdTerms(
  body: KeyCreateBody,
  now: number,
  known: ReadonlySet<string>,
): SaidTerms<KeyTerms> {
  const { prefix, name, scopes } = body;
  const columns = {
    ...NOTHING_SAID,
    prefix,
    name,
    scopes: JSON.stringify(scopes),
    ...columnsOf(body, now),
  };
  assertTogether(columns, body.uses, known);
  return { columns, uses: body.uses };
}

/** Checks a change's body, as far as the key that it is for plays no part. @throws ApiError `validation_error` */
export function changedTerms(body: KeyPatchBody, now: number): SaidTerms<Partial<Columns>> {
  return { columns: columnsOf(body, now), uses: body.uses };
}

/** What was said, as columns; what is null goes back to what it is unless said otherwise. */
function columnsOf(body: KeyPatchBody, now: number): Partial<Columns> {
  const { name, scopes, environment, metadata, expires_at, owner_id, meter_id, enabled } = body;
  const { ratelimits, allowed_ips } = body;
  return {
    ...(name === undefined ? {} : { name }),
    ...(scopes === undefined ? {} : { scopes: JSON.stringify(scopes) }),
    ...(environment === undefined ? {} : { environment }),
    ...(metadata === undefined ? {} : { metadata: metadata && metadataText(metadata) }),
    ...(expires_at === undefined ? {} : { expires_at: expires_at === null ? null : endOf(expires_at, now) }),
    ...(owner_id === undefined ? {} : { owner_id }),
    ...(meter_id === undefined ? {} : { meter_id }),
    ...(enabled === undefined ? {} : { enabled: enabled === false ? 0 : 1 }),
    ...(ratelimits === undefined ? {} : { ratelimits: limitsText(ratelimits ?? []) }),
    ...(allowed_ips === undefined ? {} : { allowed_ips: packedOf(allowed_ips ?? []) }),
  };
}

function metadataText(metadata: Record<string, string>): string {
  // A name with a line break escapes the schema's pattern for names, and its value with it.
  if (!Object.values(metadata).every((value) => typeof value === "string"))
    throw invalidField("metadata", "must be an object of texts");
  const text = JSON.stringify(metadata);
  if (text.length <= METADATA_LENGTH_MAX) return text;
  throw invalidField("metadata", `must have at most ${METADATA_LENGTH_MAX} characters as JSON`);
}

function endOf(text: string, now: number): number {
  const moment = momentOf("expires_at", text);
  if (hasCome(moment, now)) throw invalidField("expires_at", "must be in the future");
  return moment;
}

/** Limits as they are stored, every field said; null for none. */
function limitsText(given: NonNullable<KeyCreateBody["ratelimits"]>): string | null {
  if (given.length === 0) return null;
  const names = new Set(given.map(({ name }) => name));
  if (names.size < given.length) throw invalidField("ratelimits", "must have a name of its own each");
  const limits = given.map(
    ({ name, limit, duration_ms, auto = true, shared = "key" }): Ratelimit => ({
      name,
      limit,
      duration_ms,
      auto,
      shared,
    }),
  );
  return JSON.stringify(limits);
}

/** The limits that {@link limitsText} stored. */
export function limitsIn(stored: string | null): readonly Ratelimit[] {
  return stored === null ? [] : (JSON.parse(stored) as Ratelimit[]);
}

function packedOf(texts: readonly string[]): Uint8Array | null {
  if (texts.length === 0) return null;
  const wrong = texts.find((text) => !isRange(text));
  if (wrong === undefined) return AddressRanges.parse(texts).packed;
  throw invalidField("allowed_ips", `has "${wrong}", which is not an address or a range such as 10.0.0.0/8`);
}

/** What the fields of a key ask of each other. @throws ApiError `validation_error` */
export function assertTogether(
  { prefix, scopes, owner_id, meter_id, ratelimits }: KeyTerms,
  uses: UsesTerms | null | undefined,
  known: ReadonlySet<string>,
): void {
  assertScopesKnown(prefix, JSON.parse(scopes) as string[], known);
  if (prefix === BEARER_PREFIX) {
    const theirs = { meter_id, ratelimits, uses: uses ?? null };
    for (const [field, value] of Object.entries(theirs)) {
      if (value !== null) {
        throw invalidField(
          field,
          `is for keys that verify is asked about: not for the prefix ${BEARER_PREFIX}`,
        );
      }
    }
  }
  if (owner_id === null && limitsIn(ratelimits).some(({ shared }) => shared === "owner"))
    throw invalidField("ratelimits", "that are shared by owner take an owner_id");
  if (uses?.refill?.every === "day" && uses.refill.day !== undefined)
    throw invalidField("uses", "refilled every day take no day of the month");
}

/** What every answer about a key says of it. */
export function termsView(
  row: KeyTerms & Pick<NewKeyRow, "project_id" | "created_at">,
  allowance: AllowanceRow | null,
  now: number,
) {
  const { prefix, name, environment, metadata, owner_id, meter_id, allowed_ips } = row;
  return {
    prefix,
    name,
    scopes: JSON.parse(row.scopes) as string[],
    ...(environment === null ? {} : { environment }),
    ...(metadata === null ? {} : { metadata: JSON.parse(metadata) as Record<string, string> }),
    project_id: row.project_id,
    created_at: isoTime(row.created_at),
    expires_at: isoTimeOrNull(row.expires_at),
    owner_id,
    meter_id,
    enabled: row.enabled !== 0,
    ratelimits: [...limitsIn(row.ratelimits)],
    uses: allowance && usesView(allowance, now),
    allowed_ips: allowed_ips === null ? [] : AddressRanges.of(allowed_ips).texts,
  };
}
