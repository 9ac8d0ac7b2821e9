import { hmacSha256 } from "../hmac.ts";
import type { RequestHeaders } from "./headers.ts";
import { isPieces, type PieceBody, updateInSlices } from "./piece-body.ts";

/** A body as it is sent, byte for byte. */
export type SignedBody = Uint8Array | string;
/** The same, or a body that is read piece by piece. */
export type StreamedBody = SignedBody | PieceBody;

/** Feeds a body to hashers. */
export async function updateWith(
  body: StreamedBody,
  hashers: readonly Pick<Bun.CryptoHasher, "update">[],
): Promise<void> {
  if (isPieces(body)) return updateInSlices(hashers, body);
  for (const hasher of hashers) hasher.update(body);
}

/** `X-Svc-Signature` of a scheduled delivery: over the timestamp's digits and the body. */
export function relaySignature(key: string, timestampMs: number, body: SignedBody): string {
  return `sha256=${hmacSha256(key).update(String(timestampMs)).update(body).digest("hex")}`;
}

/** `X-Svc-Signature` of a monitor's notification: over the body alone. */
export function notificationSignature(key: string, body: SignedBody): string {
  return `sha256=${hmacSha256(key).update(body).digest("hex")}`;
}

/** `X-Svc-Signature` of a forwarded or replayed event: `t=<timestamp>,v1=<hex>` over `<timestamp>.<body>`. */
export async function replaySignature(key: string, timestamp: string, body: StreamedBody): Promise<string> {
  const hmac = hmacSha256(key).update(`${timestamp}.`);
  await updateWith(body, [hmac]);
  return `t=${timestamp},v1=${hmac.digest("hex")}`;
}

/** What begins the text of a signing secret (Standard Webhooks). */
const SECRET_PREFIX = "whsec_";
/** Shortest and longest signing key, in bytes (Standard Webhooks). */
export const SIGNING_KEY_BYTES_MIN = 24;
export const SIGNING_KEY_BYTES_MAX = 64;
/** The text of the longest key. */
export const SIGNING_SECRET_LENGTH_MAX = SECRET_PREFIX.length + 4 * Math.ceil(SIGNING_KEY_BYTES_MAX / 3);

/** The text of a signing key. */
export function signingSecret(key: Uint8Array): string {
  return SECRET_PREFIX + Buffer.from(key).toString("base64");
}

/** The key in the text of a signing secret; null where that is `whsec_` with anything but the canonical base64 of a key. */
export function signingKeyIn(secret: string): Uint8Array | null {
  if (secret.length > SIGNING_SECRET_LENGTH_MAX || !secret.startsWith(SECRET_PREFIX)) return null;
  const key = new Uint8Array(Buffer.from(secret.slice(SECRET_PREFIX.length), "base64"));
  if (key.length < SIGNING_KEY_BYTES_MIN || key.length > SIGNING_KEY_BYTES_MAX) return null;
  // Decoding passes over what is no base64: one spelling per key is right.
  return signingSecret(key) === secret ? key : null;
}

/**
 * The headers of Standard Webhooks: a signature over `id.timestamp.body` by each key, the newest first. `id` has no dot,
 * so that nothing can be moved from one part to another.
 */
export async function standardHeaders(
  keys: readonly Uint8Array[],
  id: string,
  nowMs: number,
  body: StreamedBody,
): Promise<RequestHeaders> {
  const seconds = Math.floor(nowMs / 1000);
  const hmacs = keys.map((key) => hmacSha256(key).update(`${id}.${seconds}.`));
  await updateWith(body, hmacs);
  const signatures = hmacs.map((hmac) => `v1,${hmac.digest("base64")}`);
  return {
    "webhook-id": id,
    "webhook-timestamp": String(seconds),
    "webhook-signature": signatures.join(" "),
  };
}
