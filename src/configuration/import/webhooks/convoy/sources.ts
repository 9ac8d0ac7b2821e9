import { TARGETS_MAX } from "../../../../areas/catch/domain.ts";
import { type Draft, Secret } from "../../draft.ts";
import { SourceObject, shown } from "../../source.ts";
import { basicRecipe, hmacRecipe, type Recipe, responseOf, tokenRecipe } from "../buckets.ts";
import { type Endpoint, targetOf } from "./endpoints.ts";
import { STATE } from "./fields.ts";
import type { Subscription } from "./subscriptions.ts";

/** Providers of sources, by their names in Convoy. */
const PROVIDERS: Readonly<Record<string, string>> = { github: "github", shopify: "shopify", twitter: "x" };
/** Time for which a repeated id is found, where the source of Convoy had ids. */
const DEDUPLICATE_HOURS = 24;

/** Adds the bucket of a source, with the endpoints of its subscriptions as targets. @throws StartupError */
export function sourceOf(
  draft: Draft,
  value: unknown,
  subscriptions: readonly Subscription[],
  endpoints: ReadonlyMap<string, Endpoint>,
): void {
  const source = new SourceObject(draft, "source", value);
  const id = source.text("uid");
  const name = source.text("name") ?? id ?? "source";
  source.label = `source ${shown(name)}`;
  const type = source.text("type") ?? "http";
  if (type !== "http") {
    source.noteLoss("type", `${shown(type)} is not supported`);
    return;
  }
  const verification = verificationOf(source);
  const functions = ["body_function", "header_function"].filter((field) => source.text(field) !== null);
  for (const field of functions) source.note(field, "not carried over: no code is run");
  const targets = subscriptions
    .filter(({ sourceId }) => sourceId !== null && sourceId === id)
    .flatMap((subscription) => targetOf(subscription, endpoints));
  if (targets.length === 0)
    source.noteChange(
      "delivery",
      "is pull: no subscription takes its events, they are stored until they are fetched",
    );
  const isHeld = functions.length > 0 || !verification.isWhole;
  if (isHeld)
    source.noteChange("state", "is paused: events are stored, and forwarded when you set it to live");
  const headers = source.texts("forward_headers");
  const response = source.any("custom_response");
  source.ignore(...STATE, "mask_id", "url", "pub_sub", "provider_config");
  source.noteChange("url", "is new: enter the ingest_url that apply prints at the sender");
  const values = {
    ...verification.values,
    state: source.flag("is_disabled") || isHeld ? "paused" : "live",
    response:
      response === null
        ? null
        : responseOf(new SourceObject(draft, `${source.label}: custom_response`, response, "source")),
    forward: headers.length === 0 ? null : { headers: source.limited("forward_headers", headers, 20) },
    ...(targets.length === 0
      ? { delivery: "pull" }
      : { targets: source.limited("subscriptions", targets, TARGETS_MAX) }),
  };
  source.rest();
  draft.add({ section: "buckets", name, subject: source, values });
}

/** The provider or the recipe of a bucket. `isWhole`: whether it verifies all that the source verified. */
function verificationOf(source: SourceObject): {
  values: Readonly<Record<string, unknown>>;
  isWhole: boolean;
} {
  const { draft } = source;
  const value = source.any("verifier");
  const verifier = new SourceObject(draft, `${source.label}: verifier`, value ?? {}, "source");
  const type = verifier.text("type") ?? "noop";
  const provider = PROVIDERS[source.text("provider") ?? ""];
  const part = (name: string) => new SourceObject(draft, verifier.label, verifier.any(name) ?? {}, "source");
  const [keys, typeAt] = [source.texts("idempotency_keys"), source.text("event_type_location")];
  if (provider !== undefined) {
    if (keys.length > 0) source.note("idempotency_keys", "the ids of the provider are used");
    const secret = part("hmac").text("secret");
    return {
      values: {
        provider,
        signing_secret: secret === null ? null : new Secret(secret),
        verification_mode: "reject",
      },
      isWhole: true,
    };
  }
  const recipe = recipeOf(source, type, part);
  if (recipe === null) {
    if (keys.length > 0) source.note("idempotency_keys", "only buckets that verify signatures can have them");
    if (typeAt !== null)
      source.note("event_type_location", "only buckets that verify signatures can have it");
    return { values: {}, isWhole: type === "noop" };
  }
  const id = keys.length === 1 ? locationOf(keys[0] ?? "") : null;
  if (keys.length > 0 && id === null)
    source.note("idempotency_keys", "only a single header or member is supported");
  const eventType = typeAt === null ? null : locationOf(typeAt);
  if (id !== null) source.noteChange("idempotency_keys", `are remembered for ${DEDUPLICATE_HOURS} hours`);
  return {
    values: {
      provider: "custom",
      signing_secret: recipe.signing_secret,
      signature: {
        ...recipe.signature,
        ...(id === null ? {} : { event_id: id }),
        ...(eventType === null ? {} : { event_type: eventType }),
      },
      deduplicate_hours: id === null ? null : DEDUPLICATE_HOURS,
      verification_mode: "reject",
    },
    isWhole: true,
  };
}

/** Null where nothing is verified, which is noted if the source verified something. */
function recipeOf(source: SourceObject, type: string, part: (name: string) => SourceObject): Recipe | null {
  if (type === "noop") return null;
  if (type === "basic_auth") {
    const basic = part("basic_auth");
    return basicRecipe(basic.text("username"), basic.text("password"));
  }
  if (type === "api_key") {
    const key = part("api_key");
    return tokenRecipe(key.text("header_name"), key.text("header_value"));
  }
  if (type !== "hmac") {
    source.note("verifier", `${shown(type)} is not supported: nothing is verified`);
    return null;
  }
  const hmac = part("hmac");
  return hmacRecipe(source, "verifier", {
    header: hmac.text("header"),
    hash: hmac.text("hash"),
    encoding: hmac.text("encoding"),
    secret: hmac.text("secret"),
  });
}

/** `request.header.X-Event` or `request.body.data.id` as a recipe has it; null for anything else. */
function locationOf(text: string): string | null {
  const [, part, path] = /^(?:request|req)\.(header|body)\.(.+)$/i.exec(text) ?? [];
  if (part === undefined || path === undefined) return null;
  return part.toLowerCase() === "header" ? `header:${path}` : `/${path.split(".").join("/")}`;
}
