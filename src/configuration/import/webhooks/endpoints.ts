import { EVENT_TYPES_MAX, PER_SECOND_TO_ENDPOINT_MAX } from "../../../areas/relay/endpoints/schema.ts";
import { SECRET_NAMES } from "../../../kernel/secrets/secret-names.ts";
import { Secret } from "../draft.ts";
import type { SourceObject } from "../source.ts";

/** Limits of `timeout_ms` of an endpoint. */
const TIMEOUT_MS_MIN = 1_000;
const TIMEOUT_MS_MAX = 30_000;

/** A secret that an endpoint accepts whatever its signature: the form of a secret that the source does not contain. */
export const SECRET_FORM = `whsec_${Buffer.alloc(24).toString("base64")}`;

/** The value of `Authorization` for a name and a password. */
export function basicAuthorization(name: string, password: string): string {
  return `Basic ${Buffer.from(`${name}:${password}`).toString("base64")}`;
}

/** The `headers` of an endpoint with one that contains a secret. */
export function secretHeader(name: string, value: string | null): Readonly<Record<string, Secret>> {
  return { [name]: value === null ? Secret.unknown("a") : new Secret(value) };
}

/** The value of a header: as it is, or as a secret where its name says that it may be one. */
export function headerValue(name: string, value: string): Secret | string {
  return SECRET_NAMES.has(name.toLowerCase()) ? new Secret(value) : value;
}

/** A timeout within the limits, noted at `field` if it was not. */
export function timeoutOf(source: SourceObject, field: string, ms: number): number {
  const limited = Math.min(Math.max(ms, TIMEOUT_MS_MIN), TIMEOUT_MS_MAX);
  if (limited < ms) source.noteChange(field, `lowered to ${limited / 1_000} s`);
  if (limited > ms) source.noteChange(field, `raised to ${limited / 1_000} s`);
  return limited;
}

/** Attempts per second, at least 1, noted at `field` if the rate was lower or no whole number. */
export function perSecondOf(source: SourceObject, field: string, count: number, seconds: number): number {
  const rate = count / seconds;
  const limited = Math.min(Math.max(Math.floor(rate), 1), PER_SECOND_TO_ENDPOINT_MAX);
  if (limited !== rate) source.noteChange(field, `is ${limited} per second`);
  return limited;
}

/** Types that an endpoint receives, null for all. */
export function eventTypesOf(source: SourceObject, field: string): readonly string[] | null {
  const types = source.texts(field);
  if (types.length === 0 || types.includes("*")) return null;
  return source.limited(field, types, EVENT_TYPES_MAX);
}
