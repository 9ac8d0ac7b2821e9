import { assertFilter, compileFilter, type Filter } from "../../../kernel/data/filter.ts";
import { invalidField } from "../../../kernel/errors.ts";
import { readWaits } from "../../../kernel/outbound/retries.ts";
import { ANY_TARGET } from "../../../kernel/outbound/target.ts";
import { isoTimeOrNull, timestampOf } from "../../../kernel/time/date-time.ts";
import { DAY_MS } from "../../../kernel/time/units.ts";
import { knownProvider, type Provider } from "../domain.ts";
import { isPointer, isSource } from "../providers/extracted-fields.ts";
import {
  canBeVerified,
  canVerifySignatures,
  PRESETS,
  type Preset,
  withRecipe,
} from "../providers/presets.ts";
import type { BucketCreateBody } from "../schema.ts";
import {
  type BucketResponse,
  type BucketTarget,
  type Challenge,
  DEFAULT_METHODS,
  type Forward,
  type METHODS,
  PREVIOUS_DAYS_MAX,
  RESPONSE_LENGTH_MAX,
  type SettingsInput,
  type SettingsView,
  type Signature,
} from "../settings-schema.ts";

/** Stored settings of a bucket: only those that its owner has set. */
export interface StoredSettings {
  readonly verification_mode?: "mark" | "reject";
  readonly response?: BucketResponse | null;
  readonly invalid_status?: SettingsView["invalid_status"] | null;
  readonly overload_status?: SettingsView["overload_status"];
  readonly previous_signing_secret?: string | null;
  /** Epoch milliseconds. */
  readonly previous_expires_at?: number | null;
  readonly deduplicate_hours?: number;
  readonly retention_hours?: number | null;
  readonly methods?: readonly (typeof METHODS)[number][];
  readonly signature?: Signature | null;
  readonly challenge?: Challenge | null;
  readonly auto_confirm?: boolean;
  readonly forward?: Forward | null;
  readonly retry_schedule?: readonly string[] | null;
  /** Set once the bucket has had targets. */
  readonly targets?: readonly BucketTarget[];
}

/** An endpoint that receives events which pass a filter. */
export interface Target {
  readonly endpoint_id: string;
  readonly passes: Filter | null;
}

/** The settings of a bucket, with its sender's preset. */
export interface Settings {
  readonly stored: StoredSettings;
  /** Null when the sender is detected by the headers of each request. */
  readonly preset: Preset | null;
  /** Delays before the retries of a forward, in milliseconds; null for the default. */
  readonly waits: readonly number[] | null;
  /** Whether a body is a challenge; null when its value must be the only member, or without such challenges. */
  readonly isChallenge: Filter | null;
  /** Replaced with every update of the settings. */
  readonly targets: readonly Target[];
}

export interface SettingsTerms {
  readonly now: number;
  /** Public URL of the server; null when it is not configured. */
  readonly publicUrl: string | null;
  /** Limit of the tier. */
  readonly retentionHoursMax: number;
  /** Whether the project has an endpoint. */
  readonly hasEndpoint: (endpointId: string) => boolean;
}

/** Resolves stored settings. */
export function openSettings(provider: Provider | null, stored: StoredSettings): Settings {
  const preset = provider === null ? null : PRESETS[provider];
  const { signature, retry_schedule, targets, challenge } = stored;
  return {
    stored,
    isChallenge: challenge?.when ? compileFilter("challenge.when", challenge.when) : null,
    preset: preset !== null && signature ? withRecipe(preset, signature) : preset,
    waits: retry_schedule ? readWaits(retry_schedule) : null,
    targets: (targets ?? []).map(({ endpoint_id, filter = null }, at) => ({
      endpoint_id,
      passes: filter === null ? null : compileFilter(`targets.${at}.filter`, filter),
    })),
  };
}

/** The given settings of an update. */
export function settingsIn(body: SettingsInput): SettingsInput {
  const { verification_mode, response, invalid_status, overload_status, deduplicate_hours } = body;
  const { previous_signing_secret, previous_expires_at, retention_hours, methods, signature, challenge } =
    body;
  const { retry_schedule, targets, auto_confirm, forward } = body;
  const named = {
    verification_mode,
    response,
    invalid_status,
    overload_status,
    deduplicate_hours,
    retention_hours,
    previous_signing_secret,
    previous_expires_at,
    methods,
    signature,
    challenge,
    auto_confirm,
    forward,
    retry_schedule,
    targets,
  };
  return Object.fromEntries(Object.entries(named).filter(([, value]) => value !== undefined));
}

/** Applies an update to settings. @throws ApiError `validation_error` */
export function changedSettings(
  provider: Provider | null,
  before: StoredSettings,
  changes: SettingsInput,
  terms: SettingsTerms,
): Settings {
  const { previous_expires_at, ...rest } = changes;
  const stored: StoredSettings = {
    ...before,
    ...(rest as StoredSettings),
    ...previousSecret(before, changes, terms.now),
  };
  assertResponse(changes.response);
  if (changes.retry_schedule) readWaits(changes.retry_schedule);
  assertTargets(changes.targets ?? [], terms);
  assertSignature(provider, stored.signature ?? null);
  assertChallenge(provider, stored.challenge ?? null);
  if (stored.auto_confirm === true && provider !== "sns")
    throw invalidField("auto_confirm", 'requires the provider "sns"');
  const { retentionHoursMax } = terms;
  if (changes.retention_hours && changes.retention_hours > retentionHoursMax)
    throw invalidField("retention_hours", `must be at most ${retentionHoursMax}, the retention of your tier`);
  const settings = opened(provider, stored);
  const coversUrl = settings.preset?.schemes.some((scheme) => scheme.coversUrl) === true;
  if (coversUrl && terms.publicUrl === null) {
    const field = stored.signature ? "signature" : "provider";
    throw invalidField(
      field,
      "has a signature that covers the URL: the server needs a public URL (public_url in its settings, or --public-url)",
    );
  }
  return settings;
}

function opened(provider: Provider | null, stored: StoredSettings): Settings {
  try {
    return openSettings(provider, stored);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    throw invalidField("signature.template", error.message);
  }
}

/** @throws ApiError `validation_error` for a repeated or unknown endpoint, and for an invalid filter */
function assertTargets(targets: readonly BucketTarget[], { hasEndpoint }: SettingsTerms): void {
  for (const [at, { endpoint_id, filter = null }] of targets.entries()) {
    const field = `targets.${at}.endpoint_id`;
    if (!hasEndpoint(endpoint_id))
      throw invalidField(field, "must be the ID of an endpoint of this project that has no owner_id");
    if (targets.findIndex((target) => target.endpoint_id === endpoint_id) < at)
      throw invalidField(field, "is listed twice");
    if (filter !== null) assertFilter(`targets.${at}.filter`, filter);
  }
}

/** Checks a new bucket as far as its account and its server do not matter. @throws ApiError `validation_error` */
export function checkNew(body: BucketCreateBody): void {
  const { target_url, signing_secret, previous_signing_secret: _, previous_expires_at: __, ...plain } = body;
  if (target_url) ANY_TARGET.assertUrl("target_url", target_url, { requireHttps: true });
  const settings = changedSettings(knownProvider(body.provider), {}, settingsIn(plain), ANYWHERE);
  assertSecrets(settings, { signing_secret }, body.provider);
}

/** A server without limits, and with every endpoint. */
const ANYWHERE: SettingsTerms = {
  now: 0,
  publicUrl: "https://ninefold.example",
  retentionHoursMax: Number.POSITIVE_INFINITY,
  hasEndpoint: () => true,
};

/** A previous secret and its expiry belong together. */
function previousSecret(
  before: StoredSettings,
  { previous_signing_secret: secret, previous_expires_at: end }: SettingsInput,
  now: number,
): Pick<StoredSettings, "previous_signing_secret" | "previous_expires_at"> {
  if (secret === undefined && end === undefined) return {};
  if (secret === null || end === null) {
    if (secret || end) throw invalidField("previous_expires_at", "requires previous_signing_secret");
    return { previous_signing_secret: null, previous_expires_at: null };
  }
  const previous = secret ?? before.previous_signing_secret;
  if (!previous) throw invalidField("previous_signing_secret", "requires previous_expires_at");
  if (end === undefined)
    throw invalidField("previous_expires_at", "is required with previous_signing_secret");
  const expiresAt = timestampOf("previous_expires_at", end);
  if (expiresAt <= now || expiresAt > now + PREVIOUS_DAYS_MAX * DAY_MS)
    throw invalidField("previous_expires_at", `must be in the future, by ${PREVIOUS_DAYS_MAX} days at most`);
  return { previous_signing_secret: previous, previous_expires_at: expiresAt };
}

/** Secrets of a bucket that a request sets; undefined for those that it does not. */
export interface GivenSecrets {
  readonly signing_secret?: string | null | undefined;
  readonly previous_signing_secret?: string | null | undefined;
}

/**
 * Checks secrets that a request sets. `sender`: the provider as the request names it; undefined in an update.
 *
 * @throws ApiError `validation_error` for a secret with which no signature can be valid
 */
export function assertSecrets(
  { preset, stored }: Settings,
  secrets: GivenSecrets,
  sender: string | null | undefined,
): void {
  for (const [field, secret] of Object.entries(secrets)) {
    if (typeof secret !== "string" || canBeVerified(preset, secret, sender === "polar")) continue;
    const form = stored.signature
      ? `the secret_encoding ${stored.signature.secret_encoding ?? "text"} and the algorithm of its signature`
      : "its provider";
    throw invalidField(
      field,
      `is not a secret of ${form}: no signature can be valid with it. Copy the whole secret from the sender`,
    );
  }
}

function assertResponse(response: BucketResponse | null | undefined): void {
  if (Buffer.byteLength(response?.body ?? "") > RESPONSE_LENGTH_MAX)
    throw invalidField("response.body", `must be a string of at most ${RESPONSE_LENGTH_MAX} bytes`);
}

/** @throws ApiError `validation_error` when a recipe is missing, or not allowed */
function assertSignature(provider: Provider | null, signature: Signature | null): void {
  if (signature === null) {
    if (provider === "custom") throw invalidField("signature", 'is required with the provider "custom"');
    return;
  }
  if (provider === null || canVerifySignatures(PRESETS[provider]))
    throw invalidField("signature", 'requires the provider "custom", or one that only has a challenge');
  for (const name of ["event_id", "event_type"] as const) {
    const source = signature[name];
    if (source !== undefined && !isSource(source))
      throw invalidField(
        `signature.${name}`,
        "must be header:name or a JSON pointer such as /data/id, of at most 8 levels",
      );
  }
  if ((signature.pairs === undefined) !== (signature.signature_key === undefined))
    throw invalidField("signature.signature_key", "requires pairs");
  if (signature.timestamp_key !== undefined && signature.pairs === undefined)
    throw invalidField("signature.timestamp_key", "requires pairs");
  const dates = [signature.timestamp_key, signature.timestamp_header].filter((name) => name !== undefined);
  if (dates.length > 1)
    throw invalidField(
      "signature.timestamp_header",
      "cannot be combined with timestamp_key: omit one of them",
    );
}

/** Providers with a verify token in their challenges; WebSub hubs may omit it. */
const TOKENS: Partial<Record<Provider, "required" | "optional">> = {
  meta: "required",
  strava: "required",
  websub: "optional",
};

/** @throws ApiError `validation_error` when a token is missing, or a field is not allowed */
function assertChallenge(provider: Provider | null, challenge: Challenge | null): void {
  const token = provider === null ? undefined : TOKENS[provider];
  if (token === "required" && challenge?.token === undefined)
    throw invalidField(
      "challenge",
      `is required with the provider "${provider}": set {"token": …} to the verify token that you entered there`,
    );
  if (challenge === null) return;
  const { token: verifyToken, as, field, query, pointer, when, origins } = challenge;
  const ways = [query, pointer, origins].filter((way) => way !== undefined).length;
  if (token !== undefined) {
    // Views, and so files that are exported, have the default of `as`.
    if (ways > 0 || (field ?? when) !== undefined || (as ?? "text") !== "text")
      throw invalidField("challenge", `of the provider "${provider}" allows only the field token`);
    return;
  }
  const isBuiltIn = provider !== null && PRESETS[provider].challenge !== null;
  if (isBuiltIn && (origins === undefined || ways > 1))
    throw invalidField("challenge", `of the provider "${provider}" is built in: omit this field`);
  if (verifyToken !== undefined)
    throw invalidField("challenge.token", "requires the provider meta, strava or websub");
  if (ways === 0)
    throw invalidField(
      "challenge.query",
      "is required: the query parameter with the value to return, unless pointer or origins is set",
    );
  if (ways > 1)
    throw invalidField("challenge", "must have only one of query, pointer and origins: omit the others");
  if (field !== undefined && (as !== "json" || origins !== undefined))
    throw invalidField("challenge.field", 'requires as: "json", and query or pointer');
  if (pointer !== undefined && !isPointer(pointer))
    throw invalidField("challenge.pointer", "must be a JSON pointer such as /challenge, of at most 8 levels");
  if (when === undefined) return;
  if (pointer === undefined) throw invalidField("challenge.when", "requires pointer");
  assertFilter("challenge.when", when);
}

/** Status of responses to invalid signatures. Discord tests it. */
export function invalidStatus(
  provider: Provider | null,
  { invalid_status }: StoredSettings,
): SettingsView["invalid_status"] {
  return invalid_status ?? (provider === "discord" ? 401 : 200);
}

/** The valid secrets: the bucket's, and the previous one until it expires. */
export function secretsOf(
  secret: string | null,
  { previous_signing_secret, previous_expires_at }: StoredSettings,
  now: number,
): string[] {
  const secrets = secret === null ? [] : [secret];
  if (previous_signing_secret && (previous_expires_at ?? 0) > now) secrets.push(previous_signing_secret);
  return secrets;
}

/** Settings as the API shows them. */
export function settingsView(provider: Provider | null, { stored }: Settings): SettingsView {
  const { challenge, signature = null, response = null, methods } = stored;
  return {
    verification_mode: stored.verification_mode ?? "mark",
    response,
    invalid_status: invalidStatus(provider, stored),
    overload_status: stored.overload_status ?? 200,
    previous_expires_at: isoTimeOrNull(stored.previous_expires_at ?? null),
    deduplicate_hours: stored.deduplicate_hours ?? 0,
    retention_hours: stored.retention_hours ?? null,
    methods: [...(methods ?? (DEFAULT_METHODS as (typeof METHODS)[number][]))],
    signature,
    challenge: challenge
      ? {
          has_token: challenge.token !== undefined,
          query: challenge.query ?? null,
          as: challenge.as ?? "text",
          field: challenge.field ?? null,
          ...(challenge.pointer !== undefined && { pointer: challenge.pointer }),
          ...(challenge.when !== undefined && { when: challenge.when }),
          ...(challenge.origins !== undefined && { origins: [...challenge.origins] }),
        }
      : null,
    auto_confirm: stored.auto_confirm ?? false,
    forward: stored.forward ?? null,
    targets: [...(stored.targets ?? [])],
    retry_schedule: stored.retry_schedule ? [...stored.retry_schedule] : null,
  };
}
