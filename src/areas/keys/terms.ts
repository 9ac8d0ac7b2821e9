import { AddressRanges, isRange } from "../../kernel/data/address-ranges.ts";
import { serializeMetadata } from "../../kernel/data/schema.ts";
import { invalidField } from "../../kernel/errors.ts";
import { managedView } from "../../kernel/resources/managed.ts";
import { isoTime, isoTimeOrNull, timestampOf } from "../../kernel/time/date-time.ts";
import { type AllowanceRow, type UsesTerms, usesView } from "./allowance.ts";
import { assertScopesKnown, BEARER_PREFIX, hasPassed } from "./domain.ts";
import { parseHash } from "./imported-digest.ts";
import type { ImportedKey, KeyCreateBody, KeyPatchBody, Ratelimit } from "./schema.ts";
import type { NewKeyRow } from "./store.ts";

/** The columns of a key that a creation sets. */
export type KeyTerms = Pick<
  NewKeyRow,
  | "prefix"
  | "name"
  | "scopes"
  | "environment"
  | "metadata"
  | "expires_at"
  | "owner_id"
  | "meter_id"
  | "enabled"
  | "ratelimits"
  | "allowed_ips"
  | "permissions"
  | "roles"
  | "managed_by"
>;

/** The columns that an update can change. */
type UpdatableTerms = Omit<KeyTerms, "prefix" | "managed_by">;

/** Columns of omitted fields. */
const DEFAULTS = {
  environment: null,
  metadata: null,
  expires_at: null,
  owner_id: null,
  meter_id: null,
  enabled: 1,
  ratelimits: null,
  allowed_ips: null,
  permissions: null,
  roles: null,
} as const;

/** A body as columns, and its `uses`, which have a table of their own. */
export interface ParsedTerms<Columns> {
  readonly columns: Columns;
  /** Null: unlimited. Undefined: omitted. */
  readonly uses: UsesTerms | null | undefined;
}

/** Checks a creation's body beyond its schema. @throws ApiError `validation_error` */
export function createdTerms(
  body: KeyCreateBody,
  now: number,
  known: ReadonlySet<string>,
): ParsedTerms<KeyTerms> {
  const { prefix, name, scopes } = body;
  const columns = {
    ...DEFAULTS,
    prefix,
    name,
    scopes: JSON.stringify(scopes),
    managed_by: body.managed_by ?? null,
    ...columnsOf(body, now),
  };
  assertConsistent(columns, body.uses, known);
  return { columns, uses: body.uses };
}

/** A key to import. */
export interface ImportedTerms extends ParsedTerms<KeyTerms> {
  /** SHA-256 of its secret, hex. */
  readonly hash: string;
}

/** Checks a key of an import beyond its schema. @throws ApiError `validation_error` */
export function importedTerms(
  { hash, hash_algorithm, prefix, scopes, ...terms }: ImportedKey,
  now: number,
  known: ReadonlySet<string>,
): ImportedTerms {
  if (prefix === BEARER_PREFIX)
    throw invalidField(
      "prefix",
      `must not be ${BEARER_PREFIX}: an imported key is no credential of this API`,
    );
  const created = createdTerms({ ...terms, prefix: prefix ?? "", scopes: scopes ?? [] }, now, known);
  return { ...created, hash: parseHash(hash, hash_algorithm ?? null) };
}

/** Checks an update's body beyond its schema, apart from the key that it changes. @throws ApiError `validation_error` */
export function updatedTerms(body: KeyPatchBody, now: number): ParsedTerms<Partial<UpdatableTerms>> {
  return { columns: columnsOf(body, now), uses: body.uses };
}

/** The given fields as columns; null resets a field to its default. */
function columnsOf(body: KeyPatchBody, now: number): Partial<UpdatableTerms> {
  const { name, scopes, environment, metadata, expires_at, owner_id, meter_id, enabled } = body;
  const { ratelimits, allowed_ips, permissions, roles } = body;
  return {
    ...(name === undefined ? {} : { name }),
    ...(scopes === undefined ? {} : { scopes: JSON.stringify(scopes) }),
    ...(environment === undefined ? {} : { environment }),
    ...(metadata === undefined ? {} : { metadata: metadata && serializeMetadata(metadata) }),
    ...(expires_at === undefined
      ? {}
      : { expires_at: expires_at === null ? null : parseExpiry(expires_at, now) }),
    ...(owner_id === undefined ? {} : { owner_id }),
    ...(meter_id === undefined ? {} : { meter_id }),
    ...(enabled === undefined ? {} : { enabled: enabled === false ? 0 : 1 }),
    ...(ratelimits === undefined ? {} : { ratelimits: serializeLimits(ratelimits ?? []) }),
    ...(allowed_ips === undefined ? {} : { allowed_ips: packAddresses(allowed_ips ?? []) }),
    ...(permissions === undefined ? {} : { permissions: serializeTexts(permissions ?? []) }),
    ...(roles === undefined ? {} : { roles: serializeTexts(roles ?? []) }),
  };
}

function parseExpiry(text: string, now: number): number {
  const expiresAt = timestampOf("expires_at", text);
  if (hasPassed(expiresAt, now)) throw invalidField("expires_at", "must be in the future");
  return expiresAt;
}

/** Limits as they are stored, with every field; null for none. */
function serializeLimits(requested: NonNullable<KeyCreateBody["ratelimits"]>): string | null {
  if (requested.length === 0) return null;
  const names = new Set(requested.map(({ name }) => name));
  if (names.size < requested.length) throw invalidField("ratelimits", "must each have a different name");
  const limits = requested.map(
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

/** Parses what {@link serializeLimits} returns. */
export function parseLimits(stored: string | null): readonly Ratelimit[] {
  return stored === null ? [] : (JSON.parse(stored) as Ratelimit[]);
}

/** Texts as they are stored, each once; null for none. */
function serializeTexts(texts: readonly string[]): string | null {
  return texts.length === 0 ? null : JSON.stringify([...new Set(texts)]);
}

/** Parses what {@link serializeTexts} returns. */
export function parseTexts(stored: string | null): string[] {
  return stored === null ? [] : (JSON.parse(stored) as string[]);
}

function packAddresses(texts: readonly string[]): Uint8Array | null {
  if (texts.length === 0) return null;
  const wrong = texts.find((text) => !isRange(text));
  if (wrong === undefined) return AddressRanges.parse(texts).packed;
  throw invalidField(
    "allowed_ips",
    `contains "${wrong}", which is not an address or a range such as 10.0.0.0/8`,
  );
}

/** Checks the fields of a key against each other. @throws ApiError `validation_error` */
export function assertConsistent(
  { prefix, scopes, owner_id, meter_id, ratelimits, permissions, roles }: KeyTerms,
  uses: UsesTerms | null | undefined,
  known: ReadonlySet<string>,
): void {
  assertScopesKnown(prefix, JSON.parse(scopes) as string[], known);
  if (prefix === BEARER_PREFIX) {
    const verifyOnly = { meter_id, ratelimits, uses: uses ?? null, permissions, roles };
    for (const [field, value] of Object.entries(verifyOnly)) {
      if (value !== null) {
        throw invalidField(
          field,
          `is not allowed for a key with the prefix ${BEARER_PREFIX}: it applies to verification only`,
        );
      }
    }
  }
  if (owner_id === null && parseLimits(ratelimits).some(({ shared }) => shared === "owner"))
    throw invalidField("ratelimits", "with shared: owner require an owner_id");
  if (uses?.refill?.every === "day" && uses.refill.day !== undefined)
    throw invalidField("uses", "must not have refill.day with every: day");
}

/** The fields that every response about a key contains. */
export function termsView(
  row: KeyTerms & Pick<NewKeyRow, "project_id" | "created_at" | "created_by">,
  allowance: AllowanceRow | null,
  now: number,
) {
  const { name, environment, metadata, owner_id, meter_id, allowed_ips } = row;
  return {
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
    ratelimits: [...parseLimits(row.ratelimits)],
    uses: allowance && usesView(allowance, now),
    allowed_ips: allowed_ips === null ? [] : AddressRanges.of(allowed_ips).texts,
    permissions: parseTexts(row.permissions),
    roles: parseTexts(row.roles),
    created_by: row.created_by,
    ...managedView(row.managed_by),
  };
}
