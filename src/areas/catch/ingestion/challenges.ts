import { pointerNames } from "../../../kernel/data/json-pointer.ts";
import { ApiError } from "../../../kernel/errors.ts";
import { type AdditionalReply, additionalReply } from "../../../kernel/http/responses/response.ts";
import { equalInConstantTime } from "../../../kernel/secrets/key-format.ts";
import type { BucketActor } from "../buckets/buckets.ts";
import { memberOf, type Received } from "../providers/extracted-fields.ts";

/** Values that may be echoed: other characters could form a page on this origin. */
const ECHOED = /^[A-Za-z0-9_.~-]{1,512}$/;
/** Values that are signed for a sender: short, and no valid message of another protocol. */
const SIGNED = /^[A-Za-z0-9_-]{1,128}$/;
/** Microsoft's tokens are sentences: printable characters without those of markup. */
const SENTENCE = /^[\x20-\x7e]{1,1024}$/;
const MARKUP = /[<>&"'`]/;

const TEXT = { "content-type": "text/plain" };

/**
 * The response to a sender's challenge in the query; null for other requests.
 * @throws ApiError `forbidden` for a verify token that is not the bucket's
 */
export function respondToQuery(bucket: BucketActor, method: string, query: string): AdditionalReply | null {
  const { preset, stored } = bucket.settings;
  const kind = preset?.challenge ?? null;
  if (kind === null && !stored.challenge) return null;
  const parameters = new URLSearchParams(query);
  if (kind === "graph")
    return method === "GET" || method === "POST" ? sentence(parameters.get("validationToken")) : null;
  if (method !== "GET") return null;
  switch (kind) {
    case "hub":
    case "hub-json":
      return hubResponse(parameters, stored.challenge?.token, kind === "hub-json");
    case "crc":
      return signedToken(parameters.get("crc_token"), bucket.signing_secret);
    case "dropbox":
      return echo(parameters.get("challenge"));
    case null: {
      const { query: name, as = "text", field = name } = stored.challenge ?? {};
      if (name === undefined) return null;
      const value = parameters.get(name);
      return as === "text" ? echo(value) : echo(value, field);
    }
    default:
      return null;
  }
}

/** Challenges of WebSub and of Meta's subscriptions, which are based on it. */
function hubResponse(
  parameters: URLSearchParams,
  token: string | undefined,
  asJson: boolean,
): AdditionalReply | null {
  const challenge = parameters.get("hub.challenge");
  if (parameters.get("hub.mode") !== "subscribe" || challenge === null) return null;
  if (token !== undefined && !equalInConstantTime(parameters.get("hub.verify_token") ?? "", token))
    throw new ApiError("forbidden", "hub.verify_token is not the token of this bucket.");
  return asJson ? echo(challenge, "hub.challenge") : echo(challenge);
}

function echo(value: string | null, field?: string): AdditionalReply | null {
  if (value === null || !ECHOED.test(value)) return null;
  return field === undefined ? additionalReply(200, value, TEXT) : additionalReply(200, { [field]: value });
}

function sentence(token: string | null): AdditionalReply | null {
  return token !== null && SENTENCE.test(token) && !MARKUP.test(token)
    ? additionalReply(200, token, TEXT)
    : null;
}

function signedToken(token: string | null, secret: string | null): AdditionalReply | null {
  if (token === null || secret === null || !SIGNED.test(token)) return null;
  const signature = new Bun.CryptoHasher("sha256", secret).update(token).digest("base64");
  return additionalReply(200, { response_token: `sha256=${signature}` });
}

/** A name of a host or an origin, as a sender of CloudEvents states it. */
const ORIGIN = /^[A-Za-z0-9.:/_-]{1,253}$/;

/**
 * The response to the handshake of CloudEvents, in which a sender requests permission to send; null for other requests, and for
 * origins that the bucket does not list. `perMinute`: requests that the bucket accepts within a minute; null for no limit.
 */
export function respondToOrigin(
  { settings }: BucketActor,
  headers: Headers,
  perMinute: number | null,
): AdditionalReply | null {
  const origins = settings.stored.challenge?.origins ?? [];
  const origin = headers.get("webhook-request-origin") ?? "";
  if (!ORIGIN.test(origin)) return null;
  const isAllowed = origins.some(
    (allowed) => allowed === "*" || allowed.toLowerCase() === origin.toLowerCase(),
  );
  if (!isAllowed) return null;
  return additionalReply(200, "", {
    allow: "POST",
    "webhook-allowed-origin": origin,
    "webhook-allowed-rate": perMinute === null ? "*" : String(perMinute),
  });
}

/** Largest body that is searched for a challenge without a signature: those of senders have some hundred bytes. */
export const CHALLENGE_BYTES_MAX = 64 * 1024;

/** The response to a sender's challenge in the body of a POST, whose signature does not matter; null for other requests. */
export function respondUnverified(bucket: BucketActor, received: Received): AdditionalReply | null {
  const { preset, stored, isChallenge } = bucket.settings;
  const { pointer, as = "text", field } = stored.challenge ?? {};
  if (received.body.length > CHALLENGE_BYTES_MAX) return null;
  if (preset?.challenge === "event-grid") return eventGridResponse(received);
  if (pointer === undefined) return null;
  const value = memberOf(received, pointer);
  const isMatch = isChallenge === null ? isAlone(received, pointer) : isChallenge(memberOf(received, ""));
  if (typeof value !== "string" || !isMatch) return null;
  return as === "text" ? echo(value) : echo(value, field ?? pointerNames(pointer).at(-1) ?? "");
}

/** Whether a body has no other members than those along a pointer. */
function isAlone(received: Received, pointer: string): boolean {
  let parent = memberOf(received, "");
  return pointerNames(pointer).every((name) => {
    if (typeof parent !== "object" || parent === null || Object.keys(parent).length !== 1) return false;
    parent = (parent as Readonly<Record<string, unknown>>)[name];
    return true;
  });
}

const EVENT_GRID_VALIDATION = "Microsoft.EventGrid.SubscriptionValidationEvent";

/** Event Grid's own schema: the handshake is an event, alone in its list. */
function eventGridResponse(received: Received): AdditionalReply | null {
  const event = Array.isArray(memberOf(received, "")) ? "/0" : "";
  if (memberOf(received, `${event}/eventType`) !== EVENT_GRID_VALIDATION) return null;
  const code = memberOf(received, `${event}/data/validationCode`);
  return typeof code === "string" ? echo(code, "validationResponse") : null;
}

/** The response to a sender's challenge in a body with a valid signature; null for other requests. */
export function respondToBody(bucket: BucketActor, received: Received): AdditionalReply | null {
  const member = (pointer: string): string => String(memberOf(received, pointer));
  switch (bucket.settings.preset?.challenge) {
    case "slack":
      return member("/type") === "url_verification" ? echo(member("/challenge"), "challenge") : null;
    case "discord":
      return discordResponse(received);
    case "zoom":
      return member("/event") === "endpoint.url_validation"
        ? encrypted(member("/payload/plainToken"), bucket.signing_secret)
        : null;
    default:
      return null;
  }
}

/** Pings of Interactions have the type 1; those of Webhook Events have 0, and each of their events has 1. */
function discordResponse(received: Received): AdditionalReply | null {
  const isPing = memberOf(received, "/event") === undefined;
  const type = memberOf(received, "/type");
  if (isPing && type === 1) return additionalReply(200, { type: 1 });
  // The runtime sends no body with this status.
  return isPing && type === 0 ? additionalReply(204, "") : null;
}

function encrypted(plainToken: string, secret: string | null): AdditionalReply | null {
  if (secret === null || !SIGNED.test(plainToken)) return null;
  const encryptedToken = new Bun.CryptoHasher("sha256", secret).update(plainToken).digest("hex");
  return additionalReply(200, { plainToken, encryptedToken });
}
