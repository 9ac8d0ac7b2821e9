import { invalidField } from "../../../kernel/errors.ts";
import { isoTimeOrNull, timestampOf } from "../../../kernel/time/date-time.ts";
import type { Provider } from "../domain.ts";
import { isSource } from "../ingestion/extracted-fields.ts";
import { PRESETS, type Preset, withRecipe } from "../ingestion/presets.ts";
import {
  type Challenge,
  type METHODS,
  type OwnResponse,
  PREVIOUS_DAYS_MAX,
  RESPONSE_LENGTH_MAX,
  type SettingsInput,
  type SettingsView,
  type Signature,
  USUAL_METHODS,
} from "./settings-schema.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

/** What is stored of a bucket's settings: what its owner has set, and nothing else. */
export interface StoredSettings {
  readonly verification_mode?: "mark" | "reject";
  readonly response?: OwnResponse | null;
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
}

/** The settings of a bucket, with what its sender does. */
export interface Settings {
  readonly stored: StoredSettings;
  /** Null where the headers of each request show the sender. */
  readonly preset: Preset | null;
}

/** What settings depend on. */
export interface SettingsTerms {
  readonly now: number;
  /** Where senders reach this server; null where nobody said so. */
  readonly publicUrl: string | null;
  /** The tier's. */
  readonly retentionHoursMax: number;
}

/** The settings that are stored, in use. */
export function openSettings(provider: Provider | null, stored: StoredSettings): Settings {
  const preset = provider === null ? null : PRESETS[provider];
  const { signature } = stored;
  return { stored, preset: preset !== null && signature ? withRecipe(preset, signature) : preset };
}

/** Which of them a change names. */
export function settingsIn(body: SettingsInput): SettingsInput {
  const { verification_mode, response, invalid_status, overload_status, deduplicate_hours } = body;
  const { previous_signing_secret, previous_expires_at, retention_hours, methods, signature, challenge } =
    body;
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
  };
  return Object.fromEntries(Object.entries(named).filter(([, value]) => value !== undefined));
}

/** What becomes of settings by a change. @throws ApiError `validation_error` */
export function changedSettings(
  provider: Provider | null,
  before: StoredSettings,
  given: SettingsInput,
  terms: SettingsTerms,
): Settings {
  const { previous_expires_at, ...rest } = given;
  const stored: StoredSettings = {
    ...before,
    ...(rest as StoredSettings),
    ...previousSecret(before, given, terms.now),
  };
  assertResponse(given.response);
  assertSignature(provider, stored.signature ?? null);
  assertChallenge(provider, stored.challenge ?? null);
  const { retentionHoursMax } = terms;
  if (given.retention_hours && given.retention_hours > retentionHoursMax)
    throw invalidField(
      "retention_hours",
      `must be at most ${retentionHoursMax}, as long as your tier keeps events`,
    );
  const settings = opened(provider, stored);
  const coversUrl = settings.preset?.schemes.some((scheme) => scheme.coversUrl) === true;
  if (coversUrl && terms.publicUrl === null) {
    const field = stored.signature ? "signature" : "provider";
    throw invalidField(
      field,
      "has a signature that covers the URL, so the server needs the option --public-url first",
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

/** A secret that was replaced goes with its end. */
function previousSecret(
  before: StoredSettings,
  { previous_signing_secret: secret, previous_expires_at: end }: SettingsInput,
  now: number,
): Pick<StoredSettings, "previous_signing_secret" | "previous_expires_at"> {
  if (secret === undefined && end === undefined) return {};
  if (secret === null || end === null) {
    if (secret || end) throw invalidField("previous_expires_at", "goes with previous_signing_secret");
    return { previous_signing_secret: null, previous_expires_at: null };
  }
  const kept = secret ?? before.previous_signing_secret;
  if (!kept) throw invalidField("previous_signing_secret", "goes with previous_expires_at");
  if (end === undefined)
    throw invalidField("previous_expires_at", "is required with previous_signing_secret");
  const moment = timestampOf("previous_expires_at", end);
  if (moment <= now || moment > now + PREVIOUS_DAYS_MAX * DAY_MS)
    throw invalidField("previous_expires_at", `must be in the future, by ${PREVIOUS_DAYS_MAX} days at most`);
  return { previous_signing_secret: kept, previous_expires_at: moment };
}

function assertResponse(response: OwnResponse | null | undefined): void {
  if (Buffer.byteLength(response?.body ?? "") > RESPONSE_LENGTH_MAX)
    throw invalidField("response.body", `must be a text of at most ${RESPONSE_LENGTH_MAX} bytes`);
}

/** @throws ApiError `validation_error` where a recipe is missing, or has no place */
function assertSignature(provider: Provider | null, signature: Signature | null): void {
  if (signature === null) {
    if (provider === "custom") throw invalidField("signature", 'is required with the provider "custom"');
    return;
  }
  if (provider === null || PRESETS[provider].schemes.length > 0)
    throw invalidField("signature", 'goes with the provider "custom", or one that only has a challenge');
  for (const name of ["event_id", "event_type"] as const) {
    const source = signature[name];
    if (source !== undefined && !isSource(source))
      throw invalidField(
        `signature.${name}`,
        "must be header:name or a JSON pointer such as /data/id, of at most 8 levels",
      );
  }
  if ((signature.pairs === undefined) !== (signature.signature_key === undefined))
    throw invalidField("signature.signature_key", "goes with pairs");
  if (signature.timestamp_key !== undefined && signature.pairs === undefined)
    throw invalidField("signature.timestamp_key", "goes with pairs");
  const dates = [signature.timestamp_key, signature.timestamp_header].filter((one) => one !== undefined);
  if (dates.length > 1)
    throw invalidField("signature.timestamp_header", "is one way to say it, timestamp_key another: give one");
}

/** Whether a sender's challenge asks for a token of the bucket's: most do; hubs of WebSub need not. */
const TOKENS: Partial<Record<Provider, "required" | "optional">> = {
  meta: "required",
  strava: "required",
  websub: "optional",
};

/** @throws ApiError `validation_error` where a token is missing, or what is given has no place */
function assertChallenge(provider: Provider | null, challenge: Challenge | null): void {
  const token = provider === null ? undefined : TOKENS[provider];
  if (token === "required" && challenge?.token === undefined)
    throw invalidField(
      "challenge",
      `is required with the provider "${provider}": {"token": …}, the verify token entered there`,
    );
  if (challenge === null) return;
  const { token: given, query, as, field } = challenge;
  if (token !== undefined) {
    if ((query ?? as ?? field) !== undefined)
      throw invalidField("challenge", `of the provider "${provider}" has a token alone`);
    return;
  }
  if (provider !== null && PRESETS[provider].challenge !== null)
    throw invalidField("challenge", `of the provider "${provider}" is known: it takes none`);
  if (given !== undefined)
    throw invalidField("challenge.token", "goes with the providers meta, strava and websub");
  if (query === undefined)
    throw invalidField("challenge.query", "is required: the parameter whose value is answered");
  if (field !== undefined && as !== "json") throw invalidField("challenge.field", 'goes with as: "json"');
}

/** What a request gets whose signature does not hold: Discord tests it. */
export function invalidStatus(
  provider: Provider | null,
  { invalid_status }: StoredSettings,
): SettingsView["invalid_status"] {
  return invalid_status ?? (provider === "discord" ? 401 : 200);
}

/** The secrets that hold now: the bucket's, and for a while the one before. */
export function secretsOf(
  secret: string | null,
  { previous_signing_secret, previous_expires_at }: StoredSettings,
  now: number,
): string[] {
  const secrets = secret === null ? [] : [secret];
  if (previous_signing_secret && (previous_expires_at ?? 0) > now) secrets.push(previous_signing_secret);
  return secrets;
}

/** Settings as their bucket shows them. */
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
    methods: [...(methods ?? (USUAL_METHODS as (typeof METHODS)[number][]))],
    signature,
    challenge: challenge
      ? {
          has_token: challenge.token !== undefined,
          query: challenge.query ?? null,
          as: challenge.as ?? "text",
          field: challenge.field ?? null,
        }
      : null,
  };
}
