import { equalInConstantTime } from "../../../kernel/secrets/key-format.ts";
import type { CertificateSource } from "./certificates.ts";
import { memberOf, type Received, textAt } from "./extracted-fields.ts";
import { FORM_FIELDS_MAX, secondsOf } from "./signatures.ts";

/** A signature of one sender, which no recipe describes. */
export interface OwnSignature {
  /** Tolerance of the signature's timestamp; 0 for any age, or when it has none. */
  readonly toleranceSeconds: number;
  /** The certificate that it is made with, whose URL is in the request; without one, the secret signs. */
  readonly certificate?: CertificateSource & { urlOf(received: Received): string | null };
  /** Verifies a request with a secret. */
  isSigned(secret: string, received: Received): boolean;
}

/** Items of one webhook of Adyen, which sends at most six: each is hashed. */
export const ADYEN_ITEMS_MAX = 100;

/** Values of an item that Adyen signs, in this order. */
const ADYEN_SIGNED = [
  "pspReference",
  "originalReference",
  "merchantAccountCode",
  "merchantReference",
  "amount/value",
  "amount/currency",
  "eventCode",
  "success",
] as const;

/** Each item of an Adyen webhook has a signature over some of its values: all of them must be valid. */
export const ADYEN_ITEMS: OwnSignature = {
  toleranceSeconds: 0,
  isSigned(secret, received) {
    const items = memberOf(received, "/notificationItems");
    if (!Array.isArray(items) || items.length === 0 || items.length > ADYEN_ITEMS_MAX) return false;
    const key = Buffer.from(secret.replace(/\s/g, ""), "hex");
    if (key.length === 0) return false;
    return items.every((_, index) => {
      const item = `/notificationItems/${index}/NotificationRequestItem`;
      const signed = ADYEN_SIGNED.map((name) => textAt(received, `${item}/${name}`)).join(":");
      const expected = new Bun.CryptoHasher("sha256", key).update(signed).digest("base64");
      return equalInConstantTime(textAt(received, `${item}/additionalData/hmacSignature`), expected);
    });
  },
};

/** Tolerance of Mailgun's timestamps: it repeats a webhook for eight hours. */
export const MAILGUN_TOLERANCE_SECONDS = 8 * 3_600;
/** Longest value of Mailgun's signature: the signature itself has 64 characters. */
const MAILGUN_VALUE_LENGTH_MAX = 200;
const MAILGUN_FIELDS = ["timestamp", "token", "signature"] as const;

/** The values of Mailgun's signature, by name. */
type MailgunFields = Partial<Record<string, string>>;

/** Mailgun signs a time and a token that it uses once, and not the body. */
export const MAILGUN: OwnSignature = {
  toleranceSeconds: MAILGUN_TOLERANCE_SECONDS,
  isSigned(secret, received) {
    const { timestamp = "", token = "", signature = "" } = mailgunFields(received);
    const seconds = secondsOf(timestamp, "unix");
    if (seconds === null || token === "" || secret === "") return false;
    const age = Math.floor(received.receivedAt / 1000) - seconds;
    if (this.toleranceSeconds > 0 && Math.abs(age) > this.toleranceSeconds) return false;
    const expected = new Bun.CryptoHasher("sha256", secret).update(timestamp + token).digest("hex");
    if (!equalInConstantTime(signature.toLowerCase(), expected)) return false;
    received.token = token;
    return true;
  },
};

/** The values of a signature in JSON, in a form, or in the parts of a form. */
function mailgunFields(received: Received): MailgunFields {
  const { headers, body, decoded = body } = received;
  const type = headers.get("content-type") ?? "";
  const essence = type.split(";", 1)[0]?.trim().toLowerCase();
  if (decoded === null) return {};
  if (essence === "multipart/form-data") return partsOf(decoded, type);
  if (essence !== "application/x-www-form-urlencoded")
    return Object.fromEntries(MAILGUN_FIELDS.map((name) => [name, textAt(received, `/signature/${name}`)]));
  const text = Buffer.from(decoded.buffer, decoded.byteOffset, decoded.length).toString("latin1");
  return formFields(text);
}

/** The values of a form: without those of other fields, which may be large. */
function formFields(text: string): MailgunFields {
  const fields: MailgunFields = {};
  let start = 0;
  for (let count = 0; count < FORM_FIELDS_MAX && start < text.length; count += 1) {
    const mark = text.indexOf("&", start);
    const end = mark < 0 ? text.length : mark;
    for (const name of MAILGUN_FIELDS)
      if (text.startsWith(`${name}=`, start) && end - start <= MAILGUN_VALUE_LENGTH_MAX)
        fields[name] ??= new URLSearchParams(text.slice(start, end)).get(name) ?? "";
    start = end + 1;
  }
  return fields;
}

/** The value of a parameter of a header, such as the `boundary` of a content type; undefined without it. */
function parameterOf(header: string, name: string): string | undefined {
  const [, ...parameters] = header.split(";");
  const start = `${name}=`;
  const found = parameters.map((text) => text.trim()).find((text) => text.toLowerCase().startsWith(start));
  return found?.slice(start.length).replaceAll('"', "");
}

const DISPOSITION = "content-disposition:";

/** The name of a part, by its headers. */
function nameOf(headers: string): string | undefined {
  const lines = headers.split("\r\n");
  const disposition = lines.find((line) => line.toLowerCase().startsWith(DISPOSITION)) ?? "";
  const name = parameterOf(disposition, "name");
  return MAILGUN_FIELDS.find((field) => field === name);
}

/** Longest boundary (RFC 2046, section 5.1.1). */
const BOUNDARY_LENGTH_MAX = 70;
/** Bytes of a part's headers that are searched for its name. */
const PART_HEADERS_MAX = 1_024;

/** The values of the parts of a form, in one pass over its boundaries. */
function partsOf(body: Uint8Array, type: string): MailgunFields {
  const boundary = parameterOf(type, "boundary");
  if (!boundary || boundary.length > BOUNDARY_LENGTH_MAX) return {};
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length);
  const delimiter = Buffer.from(`\r\n--${boundary}`, "latin1");
  const fields: MailgunFields = {};
  // The first boundary may be at the start, without a line break before it.
  const isFirst = bytes.subarray(0, delimiter.length - 2).equals(delimiter.subarray(2));
  let at = isFirst ? -2 : bytes.indexOf(delimiter);
  if (at === -1) return {};
  for (let count = 0; count < FORM_FIELDS_MAX; count += 1) {
    const start = at + delimiter.length;
    const end = bytes.indexOf(delimiter, start);
    if (end < 0) break;
    const head = bytes.subarray(start, Math.min(end, start + PART_HEADERS_MAX)).toString("latin1");
    const blank = head.indexOf("\r\n\r\n");
    const name = blank < 0 ? undefined : nameOf(head.slice(0, blank));
    const from = start + blank + "\r\n\r\n".length;
    if (name !== undefined && end - from <= MAILGUN_VALUE_LENGTH_MAX)
      fields[name] ??= bytes.subarray(from, end).toString("latin1");
    at = end;
  }
  return fields;
}
