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
   * How old an alert of a monitor may be; 3,600,000 unless given. Alerts carry only the time at which they were queued, and
   * come later than that when the server was down.
   */
  readonly alertToleranceMs?: number | undefined;
  /** The time, in milliseconds since the epoch; the system's unless given. */
  readonly now?: number | undefined;
}

/** A delivery whose signature holds. */
export interface Delivery {
  /** `relay`: scheduled by you. `alert`: of a monitor. `event`: forwarded or replayed by a bucket. */
  readonly kind: "relay" | "alert" | "event";
  /** `X-Svc-Delivery-Id`, or of a bucket's event `X-Svc-Event-Id`: the same on every repeat. Not signed. */
  readonly id: string;
  /** Of an alert: `monitor.down` or `monitor.up`. */
  readonly event: string | null;
  /** When it was signed (an alert: queued), in milliseconds since the epoch. */
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
 * @param apiKey the account's platform key; around a rotation, the new and the old one.
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
  const claim = readClaim(headers, bytes);
  const signed = joined(UTF8.encode(claim.signedBefore), bytes);
  if (!(await isSigned(keys, claim.signature, signed))) throw invalid("its signature does not hold");
  const text = new TextDecoder().decode(bytes);
  const alert = claim.kind === "alert" ? readAlert(headers, text) : null;
  const { event, signedAt } = alert ?? { event: null, signedAt: claim.signedAt };
  const { toleranceMs = TOLERANCE_MS_DEFAULT, alertToleranceMs = ALERT_TOLERANCE_MS_DEFAULT } = options;
  const agoMs = (options.now ?? Date.now()) - signedAt;
  // Written so that what is no number does not pass.
  if (!(Math.abs(agoMs) <= (claim.kind === "alert" ? alertToleranceMs : toleranceMs)))
    throw invalid(`it was signed ${Math.abs(agoMs)} ms ${agoMs < 0 ? "ahead" : "ago"}`);
  const idHeader = claim.kind === "event" ? "X-Svc-Event-Id" : "X-Svc-Delivery-Id";
  const id = one(headers, idHeader.toLowerCase());
  if (id === null) throw invalid(`it has no ${idHeader}`);
  return { kind: claim.kind, id, event, signedAt, text, json: () => JSON.parse(text) };
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
/** Of one length, so that no digit can be moved from the timestamp to the body, or back. */
const TIMESTAMP_MS = /^[0-9]{13}$/;

/** The three forms are told apart by what they are signed over, so that none can be handed in as another. */
function readClaim(headers: DeliveryHeaders, body: Uint8Array): Claim {
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
  if (body.length > 0 && body[0] !== OPENING_BRACE) throw invalid("its body is no JSON object");
  return { kind: "relay", signature, signedBefore: timestamp, signedAt: Number(timestamp) };
}

/** `{`, with which the body of every scheduled delivery begins. */
const OPENING_BRACE = 0x7b;

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
  const { subtle } = globalThis.crypto ?? {};
  if (subtle === undefined)
    throw new TypeError("there is no WebCrypto here: it needs Node 20, Bun, or a page that came over https");
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const verdicts = await Promise.all(
    keys.map(async (key) => {
      const secret = await subtle.importKey("raw", UTF8.encode(key), algorithm, false, ["verify"]);
      return subtle.verify("HMAC", secret, signature, signed);
    }),
  );
  return verdicts.includes(true);
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
