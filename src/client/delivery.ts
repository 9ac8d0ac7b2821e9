import { NinefoldError } from "./errors.ts";

/** Request headers: `Headers`, Node's `IncomingHttpHeaders`, or a plain object. */
export type DeliveryHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

/** Options of {@link verifyDelivery}. */
export interface VerifyDeliveryOptions {
  /** Largest difference between a signature's time and now, in milliseconds; 300,000 by default. */
  readonly toleranceMs?: number | undefined;
  /**
   * Largest age of a monitor's alert that a platform key verifies; 3,600,000 by default. Such alerts contain only
   * the time at which they were queued, and arrive later after an outage of the server.
   */
  readonly alertToleranceMs?: number | undefined;
  /** Current time in epoch milliseconds; the system's by default. */
  readonly now?: number | undefined;
}

/** A delivery with a valid signature. */
export interface Delivery {
  /** `relay`: scheduled by you. `alert`: from a monitor. `event`: forwarded or replayed by a bucket. */
  readonly kind: "relay" | "alert" | "event";
  /**
   * `webhook-id`, which is signed. With a platform key `X-Svc-Delivery-Id`, or `X-Svc-Event-Id` of a bucket's event,
   * which are not signed. The same for every retry.
   */
  readonly id: string;
  /** Event of an alert: `monitor.down` or `monitor.up`. */
  readonly event: string | null;
  /**
   * Time of the signature in epoch milliseconds; for an alert that a platform key signs, the time at which it was
   * queued.
   */
  readonly signedAt: number;
  /** The body as text. */
  readonly text: string;
  /** The parsed body. @throws SyntaxError if it is not JSON. */
  json(): unknown;
}

/** Common tolerance of webhook receivers. */
export const TOLERANCE_MS_DEFAULT = 5 * 60 * 1000;
/** See {@link VerifyDeliveryOptions.alertToleranceMs}. */
export const ALERT_TOLERANCE_MS_DEFAULT = 60 * 60 * 1000;

const UTF8 = new TextEncoder();

/**
 * Verifies a delivery of the relay, an alert of a monitor, or a bucket's event: before parsing, in constant time, over
 * the exact bytes. Rejects unless the signature is valid and recent.
 *
 * @param body the body as received, not parsed and serialized again.
 * @param apiKey the project's secret (`whsec_…`), which signs in the format of Standard Webhooks, or the account's
 *   platform key; during a rotation, the new and the old one. With both kinds, a signature of either is accepted.
 * @throws NinefoldError `delivery_invalid` for anything that is not one of your deliveries: respond with 401.
 */
export async function verifyDelivery(
  headers: DeliveryHeaders,
  body: string | Uint8Array | ArrayBuffer,
  apiKey: string | readonly string[],
  options: VerifyDeliveryOptions = {},
): Promise<Delivery> {
  const keys = readKeys(apiKey);
  const bytes = bytesOf(body);
  const secrets = keys.filter(isSecret);
  const platformKeys = keys.filter((key) => !isSecret(key));
  if (platformKeys.length === 0) return verifyStandard(headers, bytes, secrets, options);
  if (secrets.length === 0 || singleHeader(headers, "webhook-signature") === null)
    return verifyByPlatformKey(headers, bytes, platformKeys, options);
  const byKey = () => verifyByPlatformKey(headers, bytes, platformKeys, options);
  // A receiver that migrates from one format to the other has both secrets.
  return verifyStandard(headers, bytes, secrets, options).catch((refused) =>
    byKey().catch(() => {
      throw refused;
    }),
  );
}

async function verifyByPlatformKey(
  headers: DeliveryHeaders,
  bytes: Uint8Array,
  keys: readonly string[],
  options: VerifyDeliveryOptions,
): Promise<Delivery> {
  const claim = readClaim(headers);
  const signed = joined(UTF8.encode(claim.signedBefore), bytes);
  if (!(await isSigned(keys, claim.signature, signed))) throw invalid("its signature is not valid");
  const text = new TextDecoder().decode(bytes);
  const alert = claim.kind === "alert" ? readAlert(headers, text) : null;
  const { event, signedAt } = alert ?? { event: null, signedAt: claim.signedAt };
  const { toleranceMs = TOLERANCE_MS_DEFAULT, alertToleranceMs = ALERT_TOLERANCE_MS_DEFAULT } = options;
  assertRecent(signedAt, claim.kind === "alert" ? alertToleranceMs : toleranceMs, options);
  const idHeader = claim.kind === "event" ? "X-Svc-Event-Id" : "X-Svc-Delivery-Id";
  const id = singleHeader(headers, idHeader.toLowerCase());
  if (id === null) throw invalid(`the header ${idHeader} is missing`);
  return { kind: claim.kind, id, event, signedAt, text, json: () => JSON.parse(text) };
}

/** @throws NinefoldError if the time is outside the tolerance. */
function assertRecent(signedAt: number, toleranceMs: number, options: VerifyDeliveryOptions): void {
  const agoMs = (options.now ?? Date.now()) - signedAt;
  // Written so that NaN is rejected.
  if (!(Math.abs(agoMs) <= toleranceMs))
    throw invalid(`it was signed ${Math.abs(agoMs)} ms ${agoMs < 0 ? "in the future" : "ago"}`);
}

const SECRET_PREFIX = "whsec_";

function isSecret(key: string): boolean {
  return key.startsWith(SECRET_PREFIX);
}

/** Unix seconds. */
const TIMESTAMP_SECONDS = /^[0-9]{10,11}$/;

/** The format of Standard Webhooks: `v1,` and base64 over `id.timestamp.body`, one signature per valid secret. */
async function verifyStandard(
  headers: DeliveryHeaders,
  bytes: Uint8Array,
  secrets: readonly string[],
  options: VerifyDeliveryOptions,
): Promise<Delivery> {
  const [id, timestamp, signatures] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) => {
    const value = singleHeader(headers, name);
    if (value === null || value === "") throw invalid(`the header ${name} is missing`);
    return value;
  }) as [string, string, string];
  if (!TIMESTAMP_SECONDS.test(timestamp)) throw invalid("its webhook-timestamp is malformed");
  const signed = joined(UTF8.encode(`${id}.${timestamp}.`), bytes);
  const expected = await Promise.all(secrets.map((secret) => standardSignature(secret, signed)));
  // The sender chooses the number of signatures, so no HMAC is computed per signature: each is compared with each.
  const holds = signatures.split(" ").map((signature) => expected.some((right) => isSame(signature, right)));
  if (!holds.includes(true)) throw invalid("its signature is not valid");
  const signedAt = Number(timestamp) * 1000;
  assertRecent(signedAt, options.toleranceMs ?? TOLERANCE_MS_DEFAULT, options);
  const text = new TextDecoder().decode(bytes);
  const isAlert = singleHeader(headers, "x-svc-event") !== null;
  const event = isAlert ? readAlert(headers, text).event : null;
  const kind = isAlert ? "alert" : id.startsWith("evt_") ? "event" : "relay";
  return { kind, id, event, signedAt, text, json: () => JSON.parse(text) };
}

async function standardSignature(secret: string, signed: Uint8Array<ArrayBuffer>): Promise<string> {
  const key = await importKey(unbase64(secret.slice(SECRET_PREFIX.length)), "sign");
  const digest = new Uint8Array(await cryptography().sign("HMAC", key, signed));
  return `v1,${btoa(String.fromCharCode(...digest))}`;
}

/** Takes a time that depends on the lengths only. */
function isSame(actual: string, expected: string): boolean {
  if (actual.length !== expected.length) return false;
  let difference = 0;
  for (let at = 0; at < expected.length; at += 1)
    difference |= actual.charCodeAt(at) ^ expected.charCodeAt(at);
  return difference === 0;
}

/** @throws TypeError for a malformed secret. */
function unbase64(text: string): Uint8Array<ArrayBuffer> {
  try {
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    if (bytes.length > 0) return bytes;
  } catch {
    // Rejected below.
  }
  throw new TypeError("a secret must be whsec_ followed by base64, as shown by the server");
}

/** The signed headers of a delivery. */
interface Claim {
  readonly kind: Delivery["kind"];
  readonly signature: Uint8Array<ArrayBuffer>;
  /** The signed part before the body. */
  readonly signedBefore: string;
  readonly signedAt: number;
}

const EVENT_SIGNATURE = /^t=([0-9]{10,11}),v1=([0-9a-f]{64})$/;
const SIGNATURE = /^sha256=([0-9a-f]{64})$/;
/**
 * A fixed length, so that no digit can move between timestamp and body. Longer than the timestamp of an event, which
 * is followed by a dot, so that neither can be passed off as the other.
 */
const TIMESTAMP_MS = /^[0-9]{13}$/;

/** The three formats sign different inputs, so that none can be passed off as another. */
function readClaim(headers: DeliveryHeaders): Claim {
  const header = singleHeader(headers, "x-svc-signature");
  if (header === null) throw invalid("the header X-Svc-Signature is missing");
  const [, seconds, eventHex] = EVENT_SIGNATURE.exec(header) ?? [];
  if (seconds !== undefined && eventHex !== undefined) {
    const signedAt = Number(seconds) * 1000;
    return { kind: "event", signature: unhex(eventHex), signedBefore: `${seconds}.`, signedAt };
  }
  const [, hex] = SIGNATURE.exec(header) ?? [];
  if (hex === undefined) throw invalid("its X-Svc-Signature is malformed");
  const signature = unhex(hex);
  const timestamp = singleHeader(headers, "x-svc-timestamp");
  if (timestamp === null) return { kind: "alert", signature, signedBefore: "", signedAt: Number.NaN };
  if (!TIMESTAMP_MS.test(timestamp)) throw invalid("its X-Svc-Timestamp is malformed");
  return { kind: "relay", signature, signedBefore: timestamp, signedAt: Number(timestamp) };
}

/** Event and time of an alert are part of its body. */
function readAlert(headers: DeliveryHeaders, text: string): { event: string; signedAt: number } {
  let body: { event?: unknown; timestamp?: unknown } | null = null;
  try {
    body = JSON.parse(text);
  } catch {
    // Rejected below.
  }
  const event = body?.event;
  if (typeof event !== "string" || typeof body?.timestamp !== "number")
    throw invalid("it is not an alert of a monitor");
  if (singleHeader(headers, "x-svc-event") !== event) throw invalid("its X-Svc-Event differs from the body");
  return { event, signedAt: body.timestamp * 1000 };
}

async function isSigned(
  keys: readonly string[],
  signature: Uint8Array<ArrayBuffer>,
  signed: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  const verdicts = await Promise.all(
    keys.map(async (key) => {
      const secret = await importKey(UTF8.encode(key), "verify");
      return cryptography().verify("HMAC", secret, signature, signed);
    }),
  );
  return verdicts.includes(true);
}

function importKey(bytes: Uint8Array<ArrayBuffer>, usage: "sign" | "verify"): Promise<CryptoKey> {
  return cryptography().importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, [usage]);
}

/** @throws TypeError if WebCrypto is not available. */
function cryptography(): SubtleCrypto {
  const { subtle } = globalThis.crypto ?? {};
  if (subtle !== undefined) return subtle;
  throw new TypeError("WebCrypto is not available: use Node 20, Bun, or a page served over https");
}

/** An undefined key must not become a constant that anyone can guess. @throws TypeError */
function readKeys(apiKey: string | readonly string[]): readonly string[] {
  const keys = typeof apiKey === "string" ? [apiKey] : apiKey;
  const isKey = (key: unknown): boolean => typeof key === "string" && key !== "";
  if (Array.isArray(keys) && keys.length > 0 && keys.every(isKey)) return keys;
  throw new TypeError("apiKey must be the account's platform key, or a list of keys, none of them empty");
}

/** The value of a header that occurs once; null otherwise. */
function singleHeader(headers: DeliveryHeaders, name: string): string | null {
  if (isHeaders(headers)) return headers.get(name) ?? null;
  const values = Object.entries(headers)
    .filter(([key, value]) => key.toLowerCase() === name && value !== undefined)
    .flatMap(([, value]) => value);
  return values.length === 1 ? (values[0] ?? null) : null;
}

function isHeaders(headers: DeliveryHeaders): headers is { get(name: string): string | null } {
  return typeof headers.get === "function";
}

/** @throws TypeError for a parsed body, whose exact bytes are lost. */
function bytesOf(body: string | Uint8Array | ArrayBuffer): Uint8Array {
  if (typeof body === "string") return UTF8.encode(body);
  // Checked by name: test runners replace ArrayBuffer, and `instanceof` fails for theirs.
  if (Object.prototype.toString.call(body) === "[object ArrayBuffer]")
    return new Uint8Array(body as ArrayBuffer);
  if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
  throw new TypeError("body must be the text or bytes as received: read it before it is parsed");
}

function joined(before: Uint8Array, body: Uint8Array): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(before.length + body.length);
  all.set(before);
  all.set(body, before.length);
  return all;
}

function unhex(hex: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length: hex.length / 2 }, (_, at) =>
    Number.parseInt(hex.slice(2 * at, 2 * at + 2), 16),
  );
}

function invalid(why: string): NinefoldError {
  return new NinefoldError(`The delivery is not valid: ${why}.`, { code: "delivery_invalid" });
}
