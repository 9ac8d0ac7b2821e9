import { TARGETS_MAX } from "../../../../areas/catch/domain.ts";
import { type Draft, Secret } from "../../draft.ts";
import { SourceObject, shown } from "../../source.ts";
import { basicRecipe, hmacRecipe, type Recipe, responseOf, tokenRecipe } from "../buckets.ts";
import { type Connection, STATE } from "./connections.ts";

/** Types of sources that are providers of buckets. */
const PROVIDERS: Readonly<Record<string, string>> = {
  ADYEN: "adyen",
  DISCORD: "discord",
  FACEBOOK: "meta",
  GITHUB: "github",
  GITLAB: "gitlab",
  INTERCOM: "intercom",
  LINEAR: "linear",
  MAILGUN: "mailgun",
  MICROSOFT_GRAPH: "microsoft-graph",
  OPENAI: "openai",
  PADDLE: "paddle",
  PAYPAL: "paypal",
  POLAR: "polar",
  RESEND: "resend",
  SENDGRID: "sendgrid",
  SHOPIFY: "shopify",
  SLACK: "slack",
  SQUARE: "square",
  STRAVA: "strava",
  STRIPE: "stripe",
  SVIX: "svix",
  TWILIO: "twilio",
  TYPEFORM: "typeform",
  WHATSAPP: "meta",
  ZENDESK: "zendesk",
  ZOOM: "zoom",
};
/** Providers that do not sign by themselves, with what their buckets need: Hookdeck accepts any verify token. */
const UNSIGNED: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  meta: { challenge: { token: Secret.unknown("a") } },
  strava: { challenge: { token: Secret.unknown("a") } },
  "microsoft-graph": {},
};
/** The signature of Meta, by the secret of the app. */
const META_SIGNATURE = {
  header: "X-Hub-Signature-256",
  algorithm: "hmac-sha256",
  prefix: "sha256=",
  template: "{body}",
};
/** Members of `auth` that are the secret of a provider. */
const SECRETS = ["webhook_secret_key", "api_key", "public_key", "webhook_id"];
/** Types whose authentication is described by `auth_type`. */
const GENERIC: ReadonlySet<string> = new Set(["HTTP", "WEBHOOK"]);
const RESPONSE_TYPES: Readonly<Record<string, string>> = {
  json: "application/json",
  text: "text/plain",
  xml: "application/xml",
};

/** Adds the bucket of a source, with the endpoints of its connections as targets. @throws StartupError */
export function sourceOf(draft: Draft, value: unknown, connections: readonly Connection[]): void {
  const source = new SourceObject(draft, "source", value);
  const name = source.text("name") ?? source.text("id") ?? "source";
  source.label = `source ${shown(name)}`;
  const type = source.text("type") ?? "HTTP";
  if (type === "PUBLISH_API" || type === "MANAGED" || type === "HOOKDECK_OUTPOST") {
    source.noteLoss("type", `${type} has no counterpart: send messages to endpoints in its place`);
    return;
  }
  const config = new SourceObject(draft, source.label, source.any("config") ?? {}, "source");
  const verification = verificationOf(config, type);
  const response = config.any("custom_response");
  const methods = config.texts("allowed_http_methods");
  const targets = connections.flatMap(({ target }) => (target === null ? [] : [target]));
  if (targets.length === 0)
    source.noteChange(
      "delivery",
      "is pull: it has no connection, and its events are stored until they are fetched",
    );
  const isDisabled = source.text("disabled_at") !== null;
  if (!verification.isWhole)
    source.noteChange("state", "is paused: events are stored, and forwarded when you set it to live");
  const values = {
    ...verification.values,
    state: isDisabled || !verification.isWhole ? "paused" : "live",
    methods: methods.length === 0 ? null : methods,
    response:
      response === null
        ? null
        : responseOf(
            new SourceObject(draft, `${source.label}: custom_response`, response, "source"),
            RESPONSE_TYPES,
          ),
    ...(targets.length === 0
      ? { delivery: "pull" }
      : {
          targets: source.limited("connections", targets, TARGETS_MAX),
          forward: forwardOf(source, connections),
        }),
  };
  config.ignore("auth", "auth_type");
  config.rest();
  source.ignore(...STATE, "url", "authenticated");
  source.noteChange("url", "is new: enter the ingest_url that apply prints at the sender");
  const description = source.text("description");
  if (description !== null) source.note("description", "not carried over");
  source.rest();
  draft.add({ section: "buckets", name, subject: source, values });
}

/** What is forwarded to all targets: a bucket has one setting. */
function forwardOf(source: SourceObject, connections: readonly Connection[]): unknown {
  const wanted = connections.map(({ forward }) => forward);
  const different = new Set(wanted.map((forward) => JSON.stringify(forward)));
  if (different.size > 1)
    source.note(
      "connections",
      "their destinations forward methods and paths differently: all do as the first",
    );
  return wanted[0];
}

interface Verification {
  readonly values: Readonly<Record<string, unknown>>;
  /** Whether it verifies all that the source verified. */
  readonly isWhole: boolean;
}

function verificationOf(config: SourceObject, type: string): Verification {
  const kind = config.text("auth_type") ?? (GENERIC.has(type) ? null : type);
  const value = config.any("auth");
  if (kind === null) return { values: {}, isWhole: true };
  const auth = new SourceObject(config.draft, config.label, value ?? {}, "source");
  const provider = PROVIDERS[kind];
  if (provider !== undefined) return verificationBy(provider, auth);
  if (value === null) {
    if (!GENERIC.has(type)) return { values: {}, isWhole: true };
    config.note("auth", "is not in the file: request it with include=config.auth");
    return { values: {}, isWhole: false };
  }
  const recipe = recipeOf(config, kind, auth);
  if (recipe === null) return { values: {}, isWhole: false };
  return { values: { provider: "custom", ...recipe, verification_mode: "reject" }, isWhole: true };
}

function verificationBy(provider: string, auth: SourceObject): Verification {
  const secret = SECRETS.map((name) => auth.text(name)).find((text) => text !== null);
  const unsigned = UNSIGNED[provider];
  if (unsigned !== undefined && (secret === undefined || provider !== "meta"))
    return { values: { provider, ...unsigned }, isWhole: true };
  if (secret === undefined) {
    auth.note(
      "auth",
      "has no secret: request it with include=config.auth, or set signing_secret of the bucket",
    );
    return { values: { provider }, isWhole: false };
  }
  return {
    values: {
      provider,
      ...unsigned,
      signature: provider === "meta" ? META_SIGNATURE : null,
      signing_secret: new Secret(secret),
      verification_mode: "reject",
    },
    isWhole: true,
  };
}

function recipeOf(config: SourceObject, kind: string, auth: SourceObject): Recipe | null {
  if (kind === "BASIC_AUTH") return basicRecipe(auth.text("username"), auth.text("password"));
  if (kind === "API_KEY") return tokenRecipe(auth.text("header_key"), auth.text("api_key"));
  if (kind === "HMAC")
    return hmacRecipe(config, "auth", {
      header: auth.text("header_key"),
      hash: auth.text("algorithm"),
      encoding: auth.text("encoding"),
      secret: auth.text("webhook_secret_key"),
    });
  config.note("auth", `${shown(kind)} has no preset: nothing is verified until the bucket has a recipe`);
  return null;
}
