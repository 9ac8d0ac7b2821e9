import { NinefoldError } from "./errors.ts";

/** Headers as receivers have them: `Headers`, Node's `IncomingHttpHeaders`, or a plain object. */
export type DeliveryHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

/** What may differ in {@link verifyDelivery}. */
export interface VerifyDeliveryOptions {
  /** How old (or ahead) a signature may be, in milliseconds; 300,000 unless given. */
  readonly toleranceMs?: number | undefined;
  /**
   * How old an alert of a monitor may be that a platform key verifies; 3,600,000 unless given. Such alerts carry only the
   * time at which they were queued, and come later than that when the server was down.
   */
  readonly alertToleranceMs?: number | undefined;
  /** The time, in milliseconds since the epoch; the system's unless given. */
  readonly now?: number | undefined;
}

/** A delivery whose signature holds. */
export interface Delivery {
  /** `relay`: scheduled by you. `alert`: of a monitor. `event`: forwarded or replayed by a bucket. */
  readonly kind: "relay" | "alert" | "event";
  /**
   * `webhook-id`, which is signed. Verified by a platform key it is `X-Svc-Delivery-Id`, or of a bucket's event
   * `X-Svc-Event-Id`, which are not. The same on every repeat.
   */
  readonly id: string;
  /** Of an alert: `monitor.down` or `monitor.up`. */
  readonly event: string | null;
  /** When it was signed (an alert that a platform key signs: queued), in milliseconds since the epoch. */
  readonly signedAt: number;
  /** The body. */
  readonly text: string;
  /** The body, parsed. @throws SyntaxError when it is not JSON. */
  json(): unknown;
}

/** What receivers elsewhere commonly allow. */
export const TOLERANCE_MS_DEFAULT = 5 * 60 * 1000;
/** See {@link VerifyDeliveryOptions.alertToleranceMs}. */
export const ALERT_TOLERANCE_MS_DEFAULT = 60 * 60 * 1000;

const UTF8 = new TextEncoder();

/**
 * Verifies what came as a delivery of the relay, an alert of a monitor, or a bucket's event: before anything is parsed, in
 * constant time, over the exact bytes. Without a signature that holds and is recent there is no result.
 *
 * @param body the body as it came; not parsed and written anew.
 * @param apiKey the project's secret (`whsec_…`), which signs in the form of Standard Webhooks, or the account's platform
 *   key; around a rotation, the new and the old one. With both kinds, either one's signature will do.
 * @throws NinefoldError `delivery_invalid`, for anything that is not one of your deliveries: answer it with 401.
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
  if (secrets.length === 0 || one(headers, "webhook-signature") === null)
    return verifyByPlatformKey(headers, bytes, platformKeys, options);
  const byKey = () => verifyByPlatformKey(headers, bytes, platformKeys, options);
  // A receiver that is on its way from the one to the other knows both.
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
  if (!(await isSigned(keys, claim.signature, signed))) throw invalid("its signature does not hold");
  const text = new TextDecoder().decode(bytes);
  const alert = claim.kind === "alert" ? readAlert(headers, text) : null;
  const { event, signedAt } = alert ?? { event: null, signedAt: claim.signedAt };
  const { toleranceMs = TOLERANCE_MS_DEFAULT, alertToleranceMs = ALERT_TOLERANCE_MS_DEFAULT } = options;
  assertRecent(signedAt, claim.kind === "alert" ? alertToleranceMs : toleranceMs, options);
  const idHeader = claim.kind === "event" ? "X-Svc-Event-Id" : "X-Svc-Delivery-Id";
  const id = one(headers, idHeader.toLowerCase());
  if (id === null) throw invalid(`it has no ${idHeader}`);
  return { kind: claim.kind, id, event, signedAt, text, json: () => JSON.parse(text) };
}

/** @throws NinefoldError where the time is further away than the tolerance allows. */
function assertRecent(signedAt: number, toleranceMs: number, options: VerifyDeliveryOptions): void {
  const agoMs = (options.now ?? Date.now()) - signedAt;
  // Written so that what is no number does not pass.
  if (!(Math.abs(agoMs) <= toleranceMs))
    throw invalid(`it was signed ${Math.abs(agoMs)} ms ${agoMs < 0 ? "ahead" : "ago"}`);
}

const SECRET_PREFIX = "whsec_";

function isSecret(key: string): boolean {
  return key.startsWith(SECRET_PREFIX);
}

/** Unix seconds. */
const TIMESTAMP_SECONDS = /^[0-9]{10,11}$/;

/** The form of Standard Webhooks: `v1,` and base64 over `id.timestamp.body`, by each secret that is valid. */
async function verifyStandard(
  headers: DeliveryHeaders,
  bytes: Uint8Array,
  secrets: readonly string[],
  options: VerifyDeliveryOptions,
): Promise<Delivery> {
  const [id, timestamp, given] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) => {
    const value = one(headers, name);
    if (value === null || value === "") throw invalid(`it has no ${name}`);
    return value;
  }) as [string, string, string];
  if (!TIMESTAMP_SECONDS.test(timestamp)) throw invalid("its webhook-timestamp has another form");
  const signed = joined(UTF8.encode(`${id}.${timestamp}.`), bytes);
  const expected = await Promise.all(secrets.map((secret) => standardSignature(secret, signed)));
  // Each is compared with each: their number is the sender's, so no digest is taken for one of them.
  const holds = given.split(" ").map((signature) => expected.some((right) => isSame(signature, right)));
  if (!holds.includes(true)) throw invalid("its signature does not hold");
  const signedAt = Number(timestamp) * 1000;
  assertRecent(signedAt, options.toleranceMs ?? TOLERANCE_MS_DEFAULT, options);
  const text = new TextDecoder().decode(bytes);
  const isAlert = one(headers, "x-svc-event") !== null;
  const event = isAlert ? readAlert(headers, text).event : null;
  const kind = isAlert ? "alert" : id.startsWith("evt_") ? "event" : "relay";
  return { kind, id, event, signedAt, text, json: () => JSON.parse(text) };
}

async function standardSignature(secret: string, signed: Uint8Array<ArrayBuffer>): Promise<string> {
  const key = await importKey(unbase64(secret.slice(SECRET_PREFIX.length)), "sign");
  const digest = new Uint8Array(await cryptography().sign("HMAC", key, signed));
  return `v1,${btoa(String.fromCharCode(...digest))}`;
}

/** In a time that depends on the lengths alone. */
function isSame(given: string, right: string): boolean {
  if (given.length !== right.length) return false;
  let difference = 0;
  for (let at = 0; at < right.length; at += 1) difference |= given.charCodeAt(at) ^ right.charCodeAt(at);
  return difference === 0;
}

/** @throws TypeError for a secret that is none. */
function unbase64(text: string): Uint8Array<ArrayBuffer> {
  try {
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    if (bytes.length > 0) return bytes;
  } catch {
    // Refused below.
  }
  throw new TypeError("a secret must be whsec_ and base64, as the server gave it");
}

/** What a delivery says of itself. */
interface Claim {
  readonly kind: Delivery["kind"];
  readonly signature: Uint8Array<ArrayBuffer>;
  /** What is signed before the body. */
  readonly signedBefore: string;
  readonly signedAt: number;
}

const EVENT_SIGNATURE = /^t=([0-9]{10,11}),v1=([0-9a-f]{64})$/;
const SIGNATURE = /^sha256=([0-9a-f]{64})$/;
/**
 * Of one length, so that no digit can be moved from the timestamp to the body, or back. Longer than an event's, which a
 * dot follows: so that neither can be handed in as the other, whatever their bodies are.
 */
const TIMESTAMP_MS = /^[0-9]{13}$/;

/** The three forms are told apart by what they are signed over, so that none can be handed in as another. */
function readClaim(headers: DeliveryHeaders): Claim {
  const given = one(headers, "x-svc-signature");
  if (given === null) throw invalid("it has no X-Svc-Signature");
  const [, seconds, eventHex] = EVENT_SIGNATURE.exec(given) ?? [];
  if (seconds !== undefined && eventHex !== undefined) {
    const signedAt = Number(seconds) * 1000;
    return { kind: "event", signature: unhex(eventHex), signedBefore: `${seconds}.`, signedAt };
  }
  const [, hex] = SIGNATURE.exec(given) ?? [];
  if (hex === undefined) throw invalid("its X-Svc-Signature has another form");
  const signature = unhex(hex);
  const timestamp = one(headers, "x-svc-timestamp");
  if (timestamp === null) return { kind: "alert", signature, signedBefore: "", signedAt: Number.NaN };
  if (!TIMESTAMP_MS.test(timestamp)) throw invalid("its X-Svc-Timestamp has another form");
  return { kind: "relay", signature, signedBefore: timestamp, signedAt: Number(timestamp) };
}

/** An alert says itself what it is and when. */
function readAlert(headers: DeliveryHeaders, text: string): { event: string; signedAt: number } {
  let body: { event?: unknown; timestamp?: unknown } | null = null;
  try {
    body = JSON.parse(text);
  } catch {
    // Refused below.
  }
  const event = body?.event;
  if (typeof event !== "string" || typeof body?.timestamp !== "number")
    throw invalid("it is no alert of a monitor");
  if (one(headers, "x-svc-event") !== event) throw invalid("its X-Svc-Event is not what the body says");
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

/** @throws TypeError where there is none. */
function cryptography(): SubtleCrypto {
  const { subtle } = globalThis.crypto ?? {};
  if (subtle !== undefined) return subtle;
  throw new TypeError("there is no WebCrypto here: it needs Node 20, Bun, or a page that came over https");
}

/** A key that is missing must not become one that everybody knows. @throws TypeError */
function readKeys(apiKey: string | readonly string[]): readonly string[] {
  const keys = typeof apiKey === "string" ? [apiKey] : apiKey;
  const isKey = (key: unknown): boolean => typeof key === "string" && key !== "";
  if (Array.isArray(keys) && keys.length > 0 && keys.every(isKey)) return keys;
  throw new TypeError("apiKey must be the account's platform key, or a list of keys, none of them empty");
}

/** The value of a header that stands once; null otherwise. */
function one(headers: DeliveryHeaders, name: string): string | null {
  if (isHeaders(headers)) return headers.get(name) ?? null;
  const values = Object.entries(headers)
    .filter(([key, value]) => key.toLowerCase() === name && value !== undefined)
    .flatMap(([, value]) => value);
  return values.length === 1 ? (values[0] ?? null) : null;
}

function isHeaders(headers: DeliveryHeaders): headers is { get(name: string): string | null } {
  return typeof headers.get === "function";
}

/** @throws TypeError for a body that was parsed already, whose bytes nobody knows any more. */
function bytesOf(body: string | Uint8Array | ArrayBuffer): Uint8Array {
  if (typeof body === "string") return UTF8.encode(body);
  // By its name: test runners make one of their own, of which ours says that it is none.
  if (Object.prototype.toString.call(body) === "[object ArrayBuffer]")
    return new Uint8Array(body as ArrayBuffer);
  if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
  throw new TypeError("body must be the text or the bytes as they came: read it before anything parses it");
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
  return new NinefoldError(`This is not a delivery to be trusted: ${why}.`, { code: "delivery_invalid" });
}
