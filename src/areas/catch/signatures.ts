import { hmacSha256 } from "../../kernel/secrets/hmac.ts";
import { equalInConstantTime } from "../../kernel/secrets/key-format.ts";
import { PROVIDERS, type Provider, type Verification } from "./domain.ts";

/** How old a dated signature may be, and how far ahead of our clock. */
export const SIGNATURE_TOLERANCE_SECONDS = 5 * 60;

/** Unix seconds as the providers write them. */
const UNIX_SECONDS = /^\d{1,12}$/;

/** What signatures cover of a request. */
export interface Received {
  readonly headers: Headers;
  readonly body: Uint8Array;
  /** Epoch milliseconds. */
  readonly receivedAt: number;
}

/** How a provider signs, and what it says in headers of its own. */
interface Scheme {
  /** The request headers that it signs with; all of them must be there. */
  readonly signedWith: readonly string[];
  /**
   * What its own headers begin with. They go along with the event: some receivers check them again, and some providers
   * name the kind of event in them alone.
   */
  readonly prefixes: readonly string[];
  readonly isSigned: (secret: string, received: Received) => boolean;
}

const SCHEMES: Readonly<Record<Provider, Scheme>> = {
  stripe: { signedWith: ["stripe-signature"], prefixes: ["stripe-"], isSigned: isSignedByStripe },
  github: {
    signedWith: ["x-hub-signature-256"],
    prefixes: ["x-github-", "x-hub-"],
    isSigned: isSignedByGithub,
  },
  shopify: { signedWith: ["x-shopify-hmac-sha256"], prefixes: ["x-shopify-"], isSigned: isSignedByShopify },
  svix: {
    signedWith: ["svix-signature", "svix-id", "svix-timestamp"],
    prefixes: ["svix-"],
    isSigned: isSignedBySvix,
  },
};

/** The provider that the headers show, or null. */
export function detectProvider(headers: Headers): Provider | null {
  return PROVIDERS.find((name) => SCHEMES[name].signedWith.every((header) => headers.has(header))) ?? null;
}

/** Whether a header (lower-case) goes along with the events of a provider. */
export function isProvidersOwn(provider: Provider, header: string): boolean {
  return SCHEMES[provider].prefixes.some((prefix) => header.startsWith(prefix));
}

/**
 * Checks a request's signature. Without a provider or a secret there is nothing to check; with both, a missing
 * signature is as invalid as a wrong one. Of several signatures in a header, one has to be right.
 */
export function verify(provider: Provider | null, secret: string | null, received: Received): Verification {
  if (provider === null || secret === null) return "none";
  return SCHEMES[provider].isSigned(secret, received) ? "valid" : "invalid";
}

/** `stripe-signature: t=<seconds>,v1=<hex>,v1=<hex>,…` over `<t>.<body>`. */
function isSignedByStripe(secret: string, { headers, body, receivedAt }: Received): boolean {
  const parts = listed(headers, "stripe-signature");
  const timestamp = parts.findLast((part) => part.startsWith("t="))?.slice("t=".length) ?? "";
  if (!isRecent(timestamp, receivedAt)) return false;
  const expected = hmacSha256(secret).update(`${timestamp}.`).update(body).digest("hex");
  return oneIs(`v1=${expected}`, parts);
}

/** `x-hub-signature-256: sha256=<hex>` over the body. */
function isSignedByGithub(secret: string, { headers, body }: Received): boolean {
  const expected = `sha256=${hmacSha256(secret).update(body).digest("hex")}`;
  return oneIs(expected, listed(headers, "x-hub-signature-256"));
}

/** `x-shopify-hmac-sha256: <base64>` over the body. */
function isSignedByShopify(secret: string, { headers, body }: Received): boolean {
  const expected = hmacSha256(secret).update(body).digest("base64");
  return oneIs(expected, listed(headers, "x-shopify-hmac-sha256"));
}

/** `svix-signature: v1,<base64> v1,<base64> …` over `<svix-id>.<svix-timestamp>.<body>`; the secret is base64. */
function isSignedBySvix(secret: string, { headers, body, receivedAt }: Received): boolean {
  const id = headers.get("svix-id") ?? "";
  const timestamp = headers.get("svix-timestamp") ?? "";
  if (id === "" || !isRecent(timestamp, receivedAt)) return false;
  const key = Buffer.from(secret.startsWith("whsec_") ? secret.slice("whsec_".length) : secret, "base64");
  // A secret without any base64 would be an empty key, with which anybody can sign.
  if (key.length === 0) return false;
  const expected = hmacSha256(key).update(`${id}.${timestamp}.`).update(body).digest("base64");
  return oneIs(`v1,${expected}`, (headers.get("svix-signature") ?? "").split(" "));
}

function oneIs(expected: string, given: readonly string[]): boolean {
  return given.some((signature) => equalInConstantTime(signature, expected));
}

function isRecent(timestamp: string, receivedAt: number): boolean {
  if (!UNIX_SECONDS.test(timestamp)) return false;
  const ageSeconds = Math.floor(receivedAt / 1000) - Number(timestamp);
  return Math.abs(ageSeconds) <= SIGNATURE_TOLERANCE_SECONDS;
}

/** The values of a header: when it came more than once, they arrive joined by commas. */
function listed(headers: Headers, name: string): string[] {
  return (headers.get(name) ?? "").split(",").map((value) => value.trim());
}
