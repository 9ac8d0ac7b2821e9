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
      const { query: name = "", as = "text", field = name } = stored.challenge ?? {};
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
