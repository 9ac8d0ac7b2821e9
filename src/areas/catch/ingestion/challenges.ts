import { ApiError } from "../../../kernel/errors.ts";
import { type Reply, reply } from "../../../kernel/http/responses/response.ts";
import { equalInConstantTime } from "../../../kernel/secrets/key-format.ts";
import type { BucketActor } from "../buckets/buckets.ts";
import { memberOf, type Received } from "./extracted-fields.ts";

/** What may be answered as it came: anything else could be a page on our own origin. */
const ECHOED = /^[A-Za-z0-9_.~-]{1,512}$/;
/** What is signed for a sender: short, and nothing that could be a message of anybody's. */
const SIGNED = /^[A-Za-z0-9_-]{1,128}$/;
/** Microsoft's tokens are sentences: printable characters without those that markup is made of. */
const SENTENCE = /^[\x20-\x7e]{1,1024}$/;
const MARKUP = /[<>&"'`]/;

const TEXT = { "content-type": "text/plain" };

/** An answer to a challenge, which has no form in common with others. */
export type Answered = Reply<200, never>;

function answered(body: string | object, headers?: Readonly<Record<string, string>>): Answered {
  return reply(200, body as never, headers);
}

/**
 * The answer to what a sender asks by the query before it sends anything; null for every other request.
 * @throws ApiError `forbidden` for a verify token that is not the bucket's
 */
export function answerToQuery(bucket: BucketActor, method: string, query: string): Answered | null {
  const { preset, stored } = bucket.settings;
  const kind = preset?.challenge ?? null;
  if (kind === null && !stored.challenge) return null;
  const asked = new URLSearchParams(query);
  if (kind === "graph")
    return method === "GET" || method === "POST" ? sentence(asked.get("validationToken")) : null;
  if (method !== "GET") return null;
  switch (kind) {
    case "hub":
    case "hub-json":
      return answerOfHub(asked, stored.challenge?.token, kind === "hub-json");
    case "crc":
      return signedToken(asked.get("crc_token"), bucket.signing_secret);
    case "dropbox":
      return echo(asked.get("challenge"));
    case null: {
      const { query: name = "", as = "text", field = name } = stored.challenge ?? {};
      const value = asked.get(name);
      return as === "text" ? echo(value) : echo(value, field);
    }
    default:
      return null;
  }
}

/** Meta's subscriptions, and those of WebSub, which they are made of. */
function answerOfHub(asked: URLSearchParams, token: string | undefined, asJson: boolean): Answered | null {
  const challenge = asked.get("hub.challenge");
  if (asked.get("hub.mode") !== "subscribe" || challenge === null) return null;
  if (token !== undefined && !equalInConstantTime(asked.get("hub.verify_token") ?? "", token))
    throw new ApiError("forbidden", "hub.verify_token is not the token of this bucket.");
  return asJson ? echo(challenge, "hub.challenge") : echo(challenge);
}

function echo(value: string | null, field?: string): Answered | null {
  if (value === null || !ECHOED.test(value)) return null;
  return field === undefined ? answered(value, TEXT) : answered({ [field]: value });
}

function sentence(token: string | null): Answered | null {
  return token !== null && SENTENCE.test(token) && !MARKUP.test(token) ? answered(token, TEXT) : null;
}

function signedToken(token: string | null, secret: string | null): Answered | null {
  if (token === null || secret === null || !SIGNED.test(token)) return null;
  const signature = new Bun.CryptoHasher("sha256", secret).update(token).digest("base64");
  return answered({ response_token: `sha256=${signature}` });
}

/** The answer to what a sender asks in a body, once its signature holds; null for every other request. */
export function answerToBody(bucket: BucketActor, received: Received): Answered | null {
  const member = (pointer: string): string => String(memberOf(received, pointer));
  switch (bucket.settings.preset?.challenge) {
    case "slack":
      return member("/type") === "url_verification" ? echo(member("/challenge"), "challenge") : null;
    case "discord":
      return memberOf(received, "/type") === 1 ? answered({ type: 1 }) : null;
    case "zoom":
      return member("/event") === "endpoint.url_validation"
        ? encrypted(member("/payload/plainToken"), bucket.signing_secret)
        : null;
    default:
      return null;
  }
}

function encrypted(plainToken: string, secret: string | null): Answered | null {
  if (secret === null || !SIGNED.test(plainToken)) return null;
  const encryptedToken = new Bun.CryptoHasher("sha256", secret).update(plainToken).digest("hex");
  return answered({ plainToken, encryptedToken });
}
