import { type Static, type TOptional, type TSchema, Type } from "@sinclair/typebox";
import { partOf } from "../../../kernel/data/schema.ts";
import { hasSecrets, type RequestHeaders, withSecretsCovered } from "../../../kernel/outbound/headers.ts";
import { type SealedColumn, sealedJson } from "../../../kernel/secrets/sealed-column.ts";
import type { Vault } from "../../../kernel/secrets/vault.ts";
import { withoutReservedHeaders } from "../deliveries/reserved-headers.ts";
import { CustomHeaders } from "../deliveries/schema.ts";

/**
 * A setting of an endpoint that holds secrets which its requests carry. Its name is that of the field and of the column. From
 * it follow the schemas, storage, responses, exports, audit entries, digests, and that it does not move to another origin.
 */
interface SecretSetting<Requested extends TSchema, Shown extends TSchema, Value extends object> {
  /** Schema in requests. */
  readonly requested: Requested;
  /** Schema in responses. */
  readonly shown: Shown;
  /** Value of an endpoint without it: no members, since nothing is stored of it. */
  readonly initial: Value;
  readonly column: SealedColumn<Value>;
  /** Checks a requested value. @throws ApiError `validation_error` */
  read(requested: Static<Requested>): Value;
  /** The value as it is shown: secrets are covered. */
  cover(value: Value): Static<Shown>;
  hasSecrets(value: Value): boolean;
  /** Headers that requests have because of it. */
  requestHeaders(value: Value): RequestHeaders;
}

function secretSetting<Requested extends TSchema, Shown extends TSchema, Value extends object>(
  setting: SecretSetting<Requested, Shown, Value>,
) {
  return setting;
}

/** All secret settings of an endpoint, by field. */
const SECRET_SETTINGS = {
  headers: secretSetting({
    requested: CustomHeaders,
    shown: Type.Record(Type.String(), Type.String(), {
      description: "Headers of every request, with `[secret]` in place of values that may be secret.",
      examples: [{ "X-Source": "[secret]" }],
    }),
    initial: {},
    column: sealedJson<RequestHeaders>("endpoint-headers"),
    read: withoutReservedHeaders,
    cover: (headers) => ({ ...withSecretsCovered(headers) }),
    hasSecrets,
    requestHeaders: (headers) => headers,
  }),
};

type Settings = typeof SECRET_SETTINGS;
type Field = keyof Settings;
/** The same, each with the values of any. */
const SETTINGS: Readonly<Record<Field, SecretSetting<TSchema, TSchema, object>>> = SECRET_SETTINGS;

/** Values of the secret settings of an endpoint. */
export type SecretValues = { readonly [Name in Field]: Settings[Name]["initial"] };
/** The same as they are stored. */
export type SealedValues = { readonly [Name in Field]: Uint8Array | null };
type RequestedValues = { readonly [Name in Field]?: Static<Settings[Name]["requested"]> | undefined };

/** Names of the secret settings: of their fields and columns. */
export const SECRET_FIELDS = Object.keys(SECRET_SETTINGS) as Field[];

/** The members that a request has for them. */
export const REQUESTED_SECRETS = mapped<{ readonly [Name in Field]: TOptional<Settings[Name]["requested"]> }>(
  (field) => Type.Optional(SETTINGS[field].requested),
);
/** The members of a response. */
export const SHOWN_SECRETS = partOf(SECRET_SETTINGS, "shown");
/** Their values without the settings. */
export const INITIAL_SECRETS: SecretValues = partOf(SECRET_SETTINGS, "initial");

/** The secret settings in a request, checked. @throws ApiError `validation_error` */
export function readSecrets(values: RequestedValues): Partial<SecretValues> {
  const fields = SECRET_FIELDS.filter((field) => values[field] !== undefined);
  return Object.fromEntries(fields.map((field) => [field, SETTINGS[field].read(values[field])]));
}

/** The values of an endpoint as they are stored. */
export function sealSecrets(
  vault: Pick<Vault, "seal">,
  endpointId: string,
  values: SecretValues,
): SealedValues {
  return mapped<SealedValues>((field) => SETTINGS[field].column.sealOrNull(vault, endpointId, values[field]));
}

/** The values of a stored endpoint. */
export function openSecrets(
  vault: Pick<Vault, "open">,
  endpointId: string,
  sealed: SealedValues,
): SecretValues {
  return mapped<SecretValues>(
    (field) => SETTINGS[field].column.openOrNull(vault, endpointId, sealed[field]) ?? SETTINGS[field].initial,
  );
}

/** A stored endpoint without them. */
export function withoutSealed<Row extends SealedValues>(row: Row): Omit<Row, Field> {
  const others = Object.entries(row).filter(([name]) => !(name in SETTINGS));
  return Object.fromEntries(others) as Omit<Row, Field>;
}

/** The values as responses show them. */
export function coverSecrets(values: SecretValues) {
  return mapped<{ readonly [Name in Field]: Static<Settings[Name]["shown"]> }>((field) =>
    SETTINGS[field].cover(values[field]),
  );
}

/** The stored value of one of them as an export shows it. */
export function coverSealed(
  vault: Pick<Vault, "open">,
  field: Field,
  endpointId: string,
  sealed: Uint8Array,
) {
  const { column, cover } = SETTINGS[field];
  return cover(column.open(vault, endpointId, sealed));
}

/** What an audit entry says of requested values: the secrets themselves cannot be compared. */
export function secretChanges(values: Partial<SecretValues>): Readonly<Record<string, true>> {
  const changed = SECRET_FIELDS.filter((field) => values[field] !== undefined);
  return Object.fromEntries(changed.map((field) => [`${field}_changed`, true]));
}

/** Fields whose stored secrets a change keeps. */
export function keptSecrets(stored: SecretValues, changes: Partial<SecretValues>): Field[] {
  return SECRET_FIELDS.filter(
    (field) => changes[field] === undefined && SETTINGS[field].hasSecrets(stored[field]),
  );
}

/** Headers that the requests of an endpoint carry because of its secret settings. */
export function secretHeaders(values: SecretValues): RequestHeaders {
  return Object.assign({}, ...SECRET_FIELDS.map((field) => SETTINGS[field].requestHeaders(values[field])));
}

function mapped<Result extends Readonly<Record<Field, unknown>>>(
  toMember: (field: Field) => unknown,
): Result {
  return Object.fromEntries(SECRET_FIELDS.map((field) => [field, toMember(field)])) as Result;
}
