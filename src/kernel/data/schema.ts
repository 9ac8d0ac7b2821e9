// The field builders of all schemas: requests, responses and configuration files. Each makes its own error message.

import {
  FormatRegistry,
  Kind,
  type SchemaOptions,
  type Static,
  type TInteger,
  type TLiteral,
  type TNull,
  type TNumber,
  type TObject,
  type TOptional,
  type TProperties,
  type TSchema,
  type TString,
  type TUnion,
  Type,
  TypeRegistry,
} from "@sinclair/typebox";
import { invalidField } from "../errors.ts";
import { isOneLine } from "../one-line.ts";
import { parseDateTime, TIMESTAMP_EXPECTED } from "../time/date-time.ts";
import { DAY_MS, HOUR_MS } from "../time/units.ts";
import { durationText, msOfText, STORED_DURATION } from "./duration-text.ts";

/** An object by the name that the API's description and the client give it. */
export function named<Properties extends TProperties>(
  $id: string,
  properties: Properties,
  options: SchemaOptions = {},
): TObject<Properties> {
  return Type.Object(properties, { $id, ...options });
}

type Patch<Properties extends TProperties, Fixed extends keyof Properties> = TObject<{
  [Name in Exclude<keyof Properties, Fixed>]: TOptional<Properties[Name]>;
}>;

/** The body of a change: the fields of the body of the creation, each optional and without a default. `fixed`: cannot change. */
export function patchOf<Properties extends TProperties, Fixed extends keyof Properties & string = never>(
  $id: string,
  { properties }: TObject<Properties>,
  fixed: readonly Fixed[] = [],
): Patch<Properties, Fixed> {
  const changing = Object.entries<TSchema>(properties).filter(([name]) => !fixed.includes(name as Fixed));
  const optionals = changing.map(([name, { default: _, ...schema }]) => [
    name,
    Type.Optional(schema as TSchema),
  ]);
  return named($id, Object.fromEntries(optionals)) as never;
}

/** One of some texts or numbers, as a type as well. */
export function oneOf<const Values extends readonly (string | number)[]>(
  values: Values,
  options: SchemaOptions = {},
): TUnion<{ -readonly [Index in keyof Values]: TLiteral<Values[Index]> }> {
  return Type.Union(
    values.map((value) => Type.Literal(value)),
    { errorMessage: `must be one of ${values.join(", ")}`, ...options },
  ) as never;
}

/** The same, or null. */
export function orNull<Schema extends TSchema>(
  schema: Schema,
  options: SchemaOptions = {},
): TUnion<[Schema, TNull]> {
  return Type.Union([schema, Type.Null()], options);
}

/** The schemas of a value that may be null. */
export function notNull(schema: TSchema): TSchema[] {
  const members: TSchema[] = schema["anyOf"] ?? [schema];
  return members.filter(({ type }) => type !== "null");
}

/** Extension of a schema: the section of a configuration file that the text refers to. */
const REFERENCE = "x-resource";

/** Marks a text as the id of a resource, by the section of a configuration file: there its name stands in place of the id. */
export function refersTo(section: string) {
  return { [REFERENCE]: section };
}

/** The section that a text refers to; null for none. */
export function referenceIn(schema: TSchema): string | null {
  const section: unknown = schema[REFERENCE];
  return typeof section === "string" ? section : null;
}

/** Extension of a schema: when the text is a secret. */
const SECRET_IF = "x-secret-if";

/** Marks a text as a secret while another field has one of some values; `writeOnly` marks one that always is. */
export function secretOf(field: string, values: readonly string[]) {
  return { [SECRET_IF]: { field, values } };
}

/** Whether a text is a secret, given the fields next to it. */
export function isSecret(schema: TSchema, beside: Readonly<Record<string, unknown>>): boolean {
  if (schema["writeOnly"] === true) return true;
  const condition: { field: string; values: readonly unknown[] } | undefined = schema[SECRET_IF];
  if (condition?.values.includes(beside[condition.field]) === true) return true;
  return schema["anyOf"] !== undefined && notNull(schema).some((member) => isSecret(member, beside));
}

/** A field that can be omitted, and null: both mean the same. */
export function optional<Schema extends TSchema>(schema: Schema, options: SchemaOptions = {}) {
  return Type.Optional(orNull(schema, options));
}

/** A field of a change that null resets; omitted, it stays as it is. */
export function clearable<Schema extends TSchema>(schema: Schema) {
  return optional(schema, { errorMessage: `${String(schema["errorMessage"])}, or null` });
}

/** Limits and notes of a list. `of`: what its items are, in the plural. */
interface ListOptions extends SchemaOptions {
  readonly min?: number;
  readonly max: number;
  readonly of?: string;
}

/** A list of `min` (default 0) to `max` items. */
export function listOf<Schema extends TSchema>(items: Schema, { min = 0, max, of, ...notes }: ListOptions) {
  const limits = min === 0 ? `at most ${max}` : `${min} to ${max}`;
  return Type.Array(items, {
    ...(min === 0 ? {} : { minItems: min }),
    maxItems: max,
    errorMessage: `must be a list of ${limits}${of === undefined ? "" : ` ${of}`}`,
    ...notes,
  });
}

/** A boolean of a request. */
export function flag(notes: SchemaOptions = {}) {
  return Type.Boolean({ errorMessage: "must be true or false", ...notes });
}

/** Limits and notes of an integer. */
interface IntegerOptions extends SchemaOptions {
  readonly min: number;
  readonly max: number;
}

/** An integer from `min` to `max`. */
export function integer({ min, max, ...notes }: IntegerOptions) {
  return Type.Integer({
    minimum: min,
    maximum: max,
    errorMessage: `must be an integer from ${min} to ${max}`,
    ...notes,
  });
}

/** A UUID of a response. */
export function uuid(notes: SchemaOptions = {}) {
  return Type.String({ format: "uuid", ...notes });
}

/** Longest id that is looked up: ours are shorter. */
const ID_LENGTH_MAX = 64;

/** The path parameter of a resource: `channel_id`. */
export function idParams<const Name extends string>(type: Name) {
  const id = Type.String({ maxLength: ID_LENGTH_MAX });
  return Type.Object({ [`${type}_id`]: id } as Record<`${Name}_id`, typeof id>);
}

const KIND = "Characters";

/** The characters that {@link name} accepts: no control characters, and none that ends a line. */
const ONE_LINE = "^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]*$";

/** Longest name. */
export const NAME_LENGTH_MAX = 100;

/** A text's schema, with its limits as JSON Schema means them. */
interface CharactersSchema extends TSchema {
  readonly minLength: number;
  readonly maxLength: number;
  readonly pattern?: string;
}

TypeRegistry.Set<CharactersSchema>(KIND, ({ minLength, maxLength, pattern }, value) => {
  if (typeof value !== "string" || value.length < minLength) return false;
  if (pattern === ONE_LINE && !isOneLine(value)) return false;
  // A lone surrogate is no character: it would come back from the file as another one.
  if (!value.isWellFormed()) return false;
  if (value.length <= maxLength) return true;
  return value.length <= 2 * maxLength && [...value].length <= maxLength;
});

/** The formats that texts of requests can have. Elysia, which has some of the same names, keeps those that exist. */
export const INPUT_FORMATS = {
  "date-time": (text: string) => parseDateTime(text) !== null,
} as const;
for (const [format, fits] of Object.entries(INPUT_FORMATS)) FormatRegistry.Set(format, fits);

/** Notes of a text. */
interface TextNotes {
  readonly description?: string;
  readonly examples?: readonly string[];
}

/** Limits and notes of a free text. */
interface TextOptions extends TextNotes {
  readonly min: number;
  readonly max: number;
}

/**
 * Free text of `min` to `max` characters: Unicode characters, as people and JSON Schema count them, where
 * TypeBox's own strings count UTF-16 units and so half an emoji.
 */
export function text({ min, max, ...more }: TextOptions) {
  const least = min === 0 ? `at most ${max}` : `${min} to ${max}`;
  return Type.Unsafe<string>({
    [Kind]: KIND,
    type: "string",
    minLength: min,
    maxLength: max,
    errorMessage: `must be a text of ${least} characters`,
    ...more,
  });
}

/** A name that users give to what they make: one line, since it stands in subjects of e-mails and in lists. */
export function name({
  max = NAME_LENGTH_MAX,
  examples = ["shop"],
  ...notes
}: TextNotes & { readonly max?: number }) {
  return Type.Unsafe<string>({
    ...text({ min: 1, max, ...notes, examples }),
    pattern: ONE_LINE,
    errorMessage: `must be a text of 1 to ${max} characters on one line`,
  });
}

/** A time of a response, as RFC 3339. */
export function dateTime(notes: SchemaOptions = {}) {
  return Type.String({ format: "date-time", ...notes });
}

/** Longest text that is read as a time: longer than any RFC 3339 date-time. */
export const DATE_TIME_LENGTH_MAX = 64;

/** A time of a request, as RFC 3339. */
export function givenDateTime(notes: SchemaOptions = {}) {
  return Type.String({
    maxLength: DATE_TIME_LENGTH_MAX,
    format: "date-time",
    errorMessage: TIMESTAMP_EXPECTED,
    ...notes,
  });
}

/** The end of the year 9999. */
const EPOCH_MS_MAX = 253_402_300_799_999;

/** A time of a request, in epoch milliseconds. */
export function givenEpochMs(description: string) {
  return Type.Integer({
    minimum: 0,
    maximum: EPOCH_MS_MAX,
    errorMessage: "must be a time in epoch milliseconds, such as 1795232116928",
    description,
    examples: [1_795_232_116_928],
  });
}

/** Longest name of a time zone: the longest of the IANA database has half of it. */
const TIME_ZONE_LENGTH_MAX = 64;
/** Extension of a schema: the text names a time zone. */
const TIME_ZONE = "x-time-zone";

/** The IANA name of a time zone. Requests and configuration files can name the field `tz`, `timezone` or `time_zone`. */
export function timeZone(notes: TextNotes) {
  return Type.Unsafe<string>({
    ...text({ min: 1, max: TIME_ZONE_LENGTH_MAX, ...notes }),
    errorMessage: 'must be the IANA name of a time zone, such as "Europe/Berlin"',
    [TIME_ZONE]: true,
  });
}

/** Whether a schema is one that {@link timeZone} made. */
export function isTimeZone(schema: { readonly [name: string]: unknown }): boolean {
  return schema[TIME_ZONE] === true;
}

/** Units of the numbers that fields with a duration accept. */
const UNITS = {
  ms: { ms: 1, noun: "milliseconds", suffix: "ms" },
  seconds: { ms: 1_000, noun: "seconds", suffix: "s" },
  minutes: { ms: 60_000, noun: "minutes", suffix: "m" },
  hours: { ms: HOUR_MS, noun: "hours", suffix: "h" },
  days: { ms: DAY_MS, noun: "days", suffix: "d" },
} as const;

/** Unit of a field with a duration. */
export type DurationUnit = keyof typeof UNITS;

/** Extension of a schema: the unit of its numbers, or `text` where durations are stored as texts. */
const DURATION = "x-duration";

/** Limits and notes of a field with a duration, its limits in its unit. */
export interface DurationOptions {
  readonly unit: DurationUnit;
  readonly min: number;
  /** Omitted where another rule limits it. */
  readonly max?: number;
  readonly description?: string;
  readonly default?: number;
  readonly examples?: readonly number[];
  /** Replaces the message about the limits, where not all between them are valid. */
  readonly errorMessage?: string;
}

/**
 * A duration as a whole number of a unit; requests and configuration files can also have a text such as `90s`, which
 * handlers read as that number.
 */
export function duration(options: DurationOptions): TInteger {
  return Type.Integer(durationOptions("an integer", options));
}

/** The same, with fractions of the unit: `90m` is 1.5 hours. */
export function fractionalDuration(options: DurationOptions): TNumber {
  return Type.Number(durationOptions("a number", options));
}

function durationOptions(noun: string, { unit, min, max, examples, ...more }: DurationOptions) {
  const { ms, noun: units, suffix } = UNITS[unit];
  const limits = max === undefined ? `of at least ${min}` : `from ${min} to ${max}`;
  const example = durationText(Math.max(min, 1) * ms, suffix === "ms" ? "d" : suffix);
  return {
    minimum: min,
    ...(max === undefined ? {} : { maximum: max }),
    errorMessage: `must be ${noun} ${limits} (${units}), or a text such as "${example}"`,
    [DURATION]: unit,
    ...(examples === undefined ? {} : { examples: [...examples] }),
    ...more,
  };
}

/** A text such as `90s`, or a number of milliseconds, which handlers read as such a text. */
export function textDuration(options: {
  readonly errorMessage: string;
  readonly description?: string;
  readonly examples?: readonly string[];
}): TString {
  const { examples, ...more } = options;
  return Type.String({
    pattern: STORED_DURATION.source,
    [DURATION]: "text",
    ...(examples === undefined ? {} : { examples: [...examples] }),
    ...more,
  });
}

/** The unit of a schema that {@link duration} made, `text` for one that {@link textDuration} made; null for others. */
export function durationUnitOf(schema: { readonly [name: string]: unknown }): DurationUnit | "text" | null {
  const unit = schema[DURATION];
  return typeof unit === "string" ? (unit as DurationUnit | "text") : null;
}

/** A value of a request in the form that the schema of its field checks. What is no duration stays as it is. */
export function readDuration(value: unknown, unit: DurationUnit | "text"): unknown {
  if (unit === "text") return isWholeSeconds(value) ? durationText(value) : value;
  if (typeof value !== "string") return value;
  const ms = msOfText(value);
  return Number.isNaN(ms) ? value : ms / UNITS[unit].ms;
}

/** Texts have no unit below a second: `5` of a caller who means five seconds is rejected. */
function isWholeSeconds(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value % 1_000 === 0;
}

/** Longest `retry_schedule`. */
export const RETRIES_MAX = 20;

/** Its form is checked with the limits, by `readWaits`. */
const { pattern: _, ...Wait } = textDuration({
  errorMessage: 'must be a text such as "5s", "5m" or "2h", or whole seconds in milliseconds such as 5000',
});

/** The schema of a `retry_schedule`. Check its delays with `readWaits`. `fallback`: a sentence about its default. */
export function retrySchedule(fallback: string) {
  return Type.Array(Wait, {
    maxItems: RETRIES_MAX,
    errorMessage: `must be a list of at most ${RETRIES_MAX} waits such as 5s, 5m or 2h`,
    description: `Delay before each retry, such as \`5m\`: at most \`24h\` each and \`7d\` in total; \`[]\` for no retries. ${fallback}`,
    examples: [["5s", "5m", "2h"]],
  });
}

/** Longest id of an owner, in characters: fits customer ids and e-mail addresses. */
export const OWNER_ID_LENGTH_MAX = 255;
/** Longest metadata, in characters of JSON: enough for tags and ids. Every page of a list reads it. */
export const METADATA_LENGTH_MAX = 16_384;

/** Id of a customer of the account, chosen by the account. */
export const OwnerId = Type.String({
  pattern: `^[A-Za-z0-9_.:@-]{1,${OWNER_ID_LENGTH_MAX}}$`,
  errorMessage: `must be 1 to ${OWNER_ID_LENGTH_MAX} letters, digits or characters of _.:@-`,
  examples: ["acme"],
});

/** Texts by name, as responses have them. */
export const Metadata = Type.Record(Type.String(), Type.String());

/** Optional metadata of a body; check it with {@link serializeMetadata}. */
export const GivenMetadata = Type.Optional(
  orNull(Metadata, {
    errorMessage: "must be an object of texts",
    description: `Your own data: strings by name, at most ${METADATA_LENGTH_MAX} characters as JSON.`,
    examples: [{ customer: "42" }],
  }),
);

/** Metadata as it is stored. @throws ApiError `validation_error` */
export function serializeMetadata(metadata: Readonly<Record<string, string>>): string {
  // The schema's pattern for names does not match a name with a line break, so it does not check that value.
  if (!Object.values(metadata).every((value) => typeof value === "string"))
    throw invalidField("metadata", "must be an object of texts");
  const text = JSON.stringify(metadata);
  if (text.length <= METADATA_LENGTH_MAX) return text;
  throw invalidField("metadata", `must have at most ${METADATA_LENGTH_MAX} characters as JSON`);
}

/** The fields next to the items of a page when there are more. */
export const NextCursor = Type.Optional(
  Type.String({
    description: "Pass it as `cursor` to get the next page. Absent on the last one.",
    examples: ["eyJhIjo0Mn0"],
  }),
);

/** A setting: its schema in requests and in responses, and its default. */
interface Setting {
  readonly requested: TSchema;
  readonly shown: TSchema;
  readonly initial: unknown;
}

/** Declares a setting. `initial`: its value where a new thing is created without it. */
export function setting<Requested extends TSchema, Shown extends TSchema>(
  requested: Requested,
  shown: Shown,
  initial: Static<Shown>,
) {
  return { requested, shown, initial };
}

/** One part of each setting: the schemas of a body or of a response, or the defaults. */
export function partOf<const Settings extends Readonly<Record<string, Setting>>, Part extends keyof Setting>(
  settings: Settings,
  part: Part,
) {
  const parts = Object.entries(settings).map(([field, declared]) => [field, declared[part]]);
  return Object.fromEntries(parts) as { [Field in keyof Settings]: Settings[Field][Part] };
}

/** Some members of an object, such as of the properties of a schema and of its values; without those that are omitted. */
export function fieldsOf<T extends object, const Name extends keyof T>(
  of: T,
  names: readonly Name[],
): Pick<T, Name> {
  const members = names.filter((name) => of[name] !== undefined).map((name) => [name, of[name]]);
  return Object.fromEntries(members) as Pick<T, Name>;
}
