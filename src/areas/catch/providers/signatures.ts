import {
  createHash,
  createPublicKey,
  type KeyObject,
  timingSafeEqual,
  verify as verifyBy,
} from "node:crypto";
import { equalInConstantTime } from "../../../kernel/secrets/key-format.ts";
import { parseDateTime } from "../../../kernel/time/date-time.ts";
import type { BodyHashes } from "./body-hashes.ts";
import { bodyDigest, memberOf, type Received } from "./extracted-fields.ts";
import { sentTargets } from "./sent-targets.ts";

/** Default tolerance of a signature's timestamp, in the past and in the future. */
export const SIGNATURE_TOLERANCE_SECONDS = 5 * 60;
/** Signatures of one header that are verified with a public key: each takes 60 µs, and senders send two during a rotation. */
export const KEY_CHECKS_MAX = 4;
/** Tokens of one header that are compared: each takes two microseconds, and a header of commas would have 16,000. */
export const TOKENS_MAX = 100;
/** Fields of a form that its signature covers: senders have some dozens, and they are sorted. */
export const FORM_FIELDS_MAX = 1_000;

export const ALGORITHMS = [
  "hmac-sha256",
  "hmac-sha1",
  "hmac-sha512",
  "ed25519",
  "ecdsa-p256-sha256",
  "token",
] as const;
export const ENCODINGS = ["hex", "base64", "base64url"] as const;
export const TIMESTAMP_FORMATS = ["unix", "unix_ms", "rfc3339"] as const;
export const SECRET_ENCODINGS = ["text", "base64", "hex", "whsec"] as const;

/** A sender's signature recipe. The comments state the defaults. */
export interface Recipe {
  /** The header with one or more signatures. */
  readonly header: string;
  readonly algorithm: (typeof ALGORITHMS)[number];
  readonly encoding?: (typeof ENCODINGS)[number];
  /** Prefix of each signature. */
  readonly prefix?: string;
  /** Separator between signatures. Default: a comma. */
  readonly separator?: string;
  /** The header is a list of `k=v`, with this between them. */
  readonly pairs?: "," | ";";
  readonly signature_key?: string;
  readonly timestamp_key?: string;
  readonly timestamp_header?: string;
  /** JSON pointer of the timestamp; only in presets. */
  readonly timestamp_at?: string;
  /** Default: `unix`. */
  readonly timestamp_format?: (typeof TIMESTAMP_FORMATS)[number];
  /** Default: {@link SIGNATURE_TOLERANCE_SECONDS}; 0 disables the check. */
  readonly tolerance_seconds?: number;
  /** The signed content. */
  readonly template?: string;
  /** Default: `text`. */
  readonly secret_encoding?: (typeof SECRET_ENCODINGS)[number];
  /** Whether the sender may sign its URL with or without the port; only in presets. */
  readonly any_port?: true;
}

/** The value of a part of a template in a request; null when the request does not have it. */
type Part = (received: Received, timestamp: string) => string | Uint8Array | null;

/** A compiled recipe. */
export interface Scheme extends Recipe {
  readonly parts: readonly Part[];
  /** Separates the parts of the header. */
  readonly delimiter: string;
  /** Start of the parts that are signatures. */
  readonly signaturePrefix: string;
  /** Headers of the signature, in lower case. */
  readonly headers: readonly string[];
  /** Whether the sender signs the URL that it sends to. */
  readonly coversUrl: boolean;
  /** Whether the sender signs the URL, or its path. */
  readonly coversTarget: boolean;
}

/** Compiles a recipe. @throws Error naming the error of its template */
export function schemeOf(recipe: Recipe): Scheme {
  const { template = "" } = recipe;
  const names = [...template.matchAll(PLACEHOLDER)].map(([, name = ""]) => name);
  // `split` includes the matches of the group.
  const parts = template
    .split(PLACEHOLDER)
    .flatMap((text, index) => (index % 2 === 1 ? partOf(text) : text === "" ? [] : literal(text)));
  if (
    recipe.algorithm === "token"
      ? template !== ""
      : names.filter((name) => name === "body" || name === "form").length !== 1
  )
    throw new Error(
      recipe.algorithm === "token"
        ? "must be omitted: with a token, the token is the signature"
        : "must contain {body} exactly once",
    );
  if (names.includes("timestamp") && !isDated(recipe))
    throw new Error("contains {timestamp}: timestamp_key or timestamp_header is required");
  const signed = names.flatMap((name) => (name.startsWith("id:") ? [name.slice("id:".length)] : []));
  const { pairs, signature_key = "", prefix = "" } = recipe;
  const headers = [
    recipe.header,
    ...(recipe.timestamp_header === undefined ? [] : [recipe.timestamp_header]),
    ...signed,
  ];
  return {
    ...recipe,
    parts,
    delimiter: pairs ?? separatorOf(recipe),
    signaturePrefix: pairs === undefined ? prefix : `${signature_key}=${prefix}`,
    header: recipe.header.toLowerCase(),
    headers: headers.map((name) => name.toLowerCase()),
    coversUrl: names.includes("url"),
    coversTarget: names.includes("url") || names.includes("path"),
  };
}

const PLACEHOLDER = /\{(body|form|timestamp|url|method|path|id:[a-zA-Z0-9-]{1,100})\}/g;

function literal(text: string): Part {
  if (/[{}]/.test(text))
    throw new Error(
      "contains an unknown placeholder: use {body} {timestamp} {id:<header>} {url} {method} {path}",
    );
  return () => text;
}

const PARTS: Readonly<Record<string, Part>> = {
  body: ({ body }) => body,
  form: (received) => formOf(received),
  timestamp: (_, timestamp) => timestamp,
  url: ({ publicUrl = null, target = "" }) => (publicUrl === null ? null : publicUrl + target),
  method: ({ method = "POST" }) => method,
  path: ({ target = "" }) => target.split("?", 1)[0] ?? "",
};

function partOf(name: string): Part {
  const header = name.startsWith("id:") ? name.slice("id:".length) : null;
  return PARTS[name] ?? (({ headers }) => headers.get(header ?? "") || null);
}

/** Verifies a request's signature with a secret. One of several signatures in its header must be valid. */
export function isSigned(scheme: Scheme, secret: string, received: Received): boolean {
  const header = received.headers.get(scheme.header);
  if (header === null) return false;
  if (scheme.algorithm === "token") return hasToken(scheme, secret, header);
  const { delimiter, signaturePrefix } = scheme;
  const list = header.split(delimiter).map((part) => part.trim());
  const timestamp = timestampOf(scheme, received, list);
  if (timestamp === null) return false;
  const signatures: string[] = [];
  // Some senders write a blank after the prefix.
  for (const part of list)
    if (part.startsWith(signaturePrefix)) signatures.push(part.slice(signaturePrefix.length).trimStart());
  const key = keyBytes(scheme, secret);
  // An empty key would let anyone sign.
  if (key.length === 0) return false;
  const isValid = (request: Received): boolean => {
    const signed = contentOf(scheme, request, timestamp);
    return signed !== null && hasSignature(scheme, key, signed, { signatures, hashes: request.hashes });
  };
  if (!scheme.coversTarget) return isValid(received);
  const request = sentForms(received, scheme.any_port === true).find(isValid);
  if (request !== undefined) received.signedTarget = request.target;
  return request !== undefined;
}

function hasSignature(
  scheme: Scheme,
  key: string | Uint8Array,
  signed: readonly (string | Uint8Array)[],
  sent: SentSignatures,
): boolean {
  const hash = HASHES[scheme.algorithm];
  return hash === undefined
    ? sent.signatures
        .slice(0, KEY_CHECKS_MAX)
        .some((signature) => isSignedByKey(scheme, key, signed, { signature, hashes: sent.hashes }))
    : hasDigest(scheme, hash, key, signed, sent);
}

/** The signatures of a request. */
interface SentSignatures {
  readonly signatures: readonly string[];
  /** Of a body that is not in memory. */
  readonly hashes: BodyHashes | undefined;
}

/**
 * Bytes that are signed while a URL is compared in the forms in which it may have been sent: hashing them takes some milliseconds.
 * Bodies of senders that sign the URL have a few kilobytes.
 */
export const SENT_FORMS_BYTES_MAX = 1024 * 1024;

/** A request with the URLs that its sender may have signed, the most likely first. */
function sentForms(received: Received, anyPort: boolean): Received[] {
  const { publicUrl = null, target = "", body, hashes } = received;
  const urls = anyPort && publicUrl !== null ? withAnyPort(publicUrl) : [publicUrl];
  const most = hashes === undefined ? Math.max(1, Math.floor(SENT_FORMS_BYTES_MAX / (body.length + 1))) : 1;
  return sentTargets(target)
    .flatMap((sent) => urls.map((url) => ({ ...received, target: sent, publicUrl: url })))
    .slice(0, most);
}

const ORIGIN = /^(https?):\/\/(\[[^\]/]+\]|[^/:[]+)(:\d{1,5})?/;

/** A URL as configured, without its port, and with the port of its scheme if it has none. */
function withAnyPort(url: string): string[] {
  const [origin = "", scheme = "", host = "", port] = ORIGIN.exec(url) ?? [];
  if (origin === "") return [url];
  const rest = url.slice(origin.length);
  const other = port === undefined ? `${host}:${scheme === "https" ? 443 : 80}` : host;
  return [url, `${scheme}://${other}${rest}`];
}

const HASHES: Partial<Record<Recipe["algorithm"], "sha1" | "sha256" | "sha512">> = {
  "hmac-sha1": "sha1",
  "hmac-sha256": "sha256",
  "hmac-sha512": "sha512",
};

function separatorOf({ separator, prefix = "" }: Recipe): string {
  // A comma in the prefix does not separate signatures.
  return separator ?? (prefix.includes(",") ? "\n" : ",");
}

function isDated({ timestamp_key, timestamp_header, timestamp_at }: Recipe): boolean {
  return (timestamp_key ?? timestamp_header ?? timestamp_at) !== undefined;
}

/** The timestamp of a signature as sent; empty when the recipe has none; null when it is missing or outside the tolerance. */
function timestampOf(scheme: Scheme, received: Received, list: readonly string[]): string | null {
  const {
    timestamp_key,
    timestamp_header,
    timestamp_at,
    tolerance_seconds = SIGNATURE_TOLERANCE_SECONDS,
  } = scheme;
  if (!isDated(scheme)) return "";
  let text: string | null | undefined;
  if (timestamp_key !== undefined) {
    const prefix = `${timestamp_key}=`;
    text = list.findLast((part) => part.startsWith(prefix))?.slice(prefix.length);
  } else if (timestamp_header !== undefined) text = received.headers.get(timestamp_header);
  else text = String(memberOf(received, timestamp_at ?? ""));
  if (!text) return null;
  if (tolerance_seconds === 0) return text;
  const seconds = secondsOf(text, scheme.timestamp_format ?? "unix");
  if (seconds === null) return null;
  const age = Math.floor(received.receivedAt / 1000) - seconds;
  return Math.abs(age) <= tolerance_seconds ? text : null;
}

/** Unix seconds and milliseconds in the formats of senders. */
const UNIX_SECONDS = /^\d{1,12}$/;
const UNIX_MS = /^\d{1,15}$/;

/** Epoch seconds of a timestamp of a sender; null for another text. */
export function secondsOf(text: string, format: (typeof TIMESTAMP_FORMATS)[number]): number | null {
  if (format === "unix") return UNIX_SECONDS.test(text) ? Number(text) : null;
  const ms = format === "rfc3339" ? parseDateTime(text) : UNIX_MS.test(text) ? Number(text) : null;
  return ms === null ? null : Math.floor(ms / 1000);
}

/**
 * The content that a signature covers, in as few pieces as possible, since each is a call of the runtime; null when the request
 * lacks a part of it.
 */
function contentOf({ parts }: Scheme, received: Received, timestamp: string): (string | Uint8Array)[] | null {
  const content: (string | Uint8Array)[] = [];
  let text = "";
  for (const part of parts) {
    const value = part(received, timestamp);
    if (value === null) return null;
    if (typeof value === "string") {
      text += value;
      continue;
    }
    if (text !== "") content.push(text);
    content.push(value);
    text = "";
  }
  if (text !== "") content.push(text);
  return content;
}

/**
 * The content that Twilio signs in addition to the URL: the sorted fields of a form, each name followed by its values. Other
 * bodies are not signed; the query contains their digest.
 */
function formOf(received: Received): string | null {
  // The forms of one request share it.
  received.form ??= { text: readForm(received) };
  return received.form.text;
}

function readForm(received: Received): string | null {
  const { headers, body, hashes, target = "" } = received;
  const digest = new URLSearchParams(target.split("?").slice(1).join("?")).get("bodySHA256");
  if (digest !== null) return equalInConstantTime(digest, bodyDigest(received)) ? "" : null;
  if (hashes !== undefined) return null;
  if (body.length === 0) return "";
  if (headers.get("content-type")?.toLowerCase().startsWith("application/x-www-form-urlencoded") !== true)
    return null;
  const fields = new Map<string, Set<string>>();
  const text = Buffer.from(body.buffer, body.byteOffset, body.length).toString("utf8");
  if (hasMoreThan(text, "&", FORM_FIELDS_MAX - 1)) return null;
  for (const [name, value] of new URLSearchParams(text)) {
    const values = fields.get(name) ?? new Set();
    fields.set(name, values.add(value));
  }
  const names = [...fields.keys()].sort();
  return names
    .map((name) =>
      [...(fields.get(name) ?? [])]
        .sort()
        .map((value) => name + value)
        .join(""),
    )
    .join("");
}

function hasMoreThan(text: string, part: string, most: number): boolean {
  let count = 0;
  for (let at = text.indexOf(part); at >= 0 && count <= most; at = text.indexOf(part, at + 1)) count += 1;
  return count > most;
}

const HEX = /^(?:[0-9a-f]{2})+$/i;
const BASE64 = /^[a-z0-9+/_-]+={0,2}$/i;

/** Prefixes of a secret of Standard Webhooks; `v1,` is how Supabase shows it. */
const WHSEC = /^(?:v1,)?whsec_/;
/** Keys of Standard Webhooks' asymmetric signatures, which are not verified. */
const ASYMMETRIC = /^wh[ps]k_/;
const PEM = "-----BEGIN ";

/** Decodes a key; empty for an invalid encoding: the decoder would ignore invalid characters and return a weak key. */
function keyBytes({ secret_encoding = "text", algorithm }: Recipe, secret: string): string | Uint8Array {
  if (secret_encoding === "text") return secret;
  if (HASHES[algorithm] === undefined && secret.trimStart().startsWith(PEM)) return secret;
  // A copied key may contain line breaks.
  const written = secret.replace(/\s/g, "");
  if (secret_encoding === "hex") return Buffer.from(HEX.test(written) ? written : "", "hex");
  const base64 = secret_encoding === "whsec" ? written.replace(WHSEC, "") : written;
  return Buffer.from(BASE64.test(base64) ? base64 : "", "base64");
}

/** Whether a signature can be valid with a secret: a key that cannot be decoded, or is none, verifies nothing. */
export function canVerify(scheme: Recipe, secret: string): boolean {
  // The value of a header has no blanks at its ends, and no control characters within.
  if (scheme.algorithm === "token")
    return isHeaderValue(secret) && !secret.includes(scheme.separator ?? "\n");
  if (scheme.secret_encoding === "whsec" && ASYMMETRIC.test(secret.trim())) return false;
  const key = keyBytes(scheme, secret);
  if (key.length === 0) return false;
  // No bytes have a base64 text of this length: it is cut off, or none.
  const isBase64 = scheme.secret_encoding === "whsec" || scheme.secret_encoding === "base64";
  if (isBase64 && key !== secret && secret.replace(WHSEC, "").replace(/[\s=]/g, "").length % 4 === 1)
    return false;
  if (HASHES[scheme.algorithm] !== undefined) return true;
  try {
    const { asymmetricKeyType, asymmetricKeyDetails } = publicKey(key);
    return scheme.algorithm === "ed25519"
      ? asymmetricKeyType === "ed25519"
      : asymmetricKeyType === "ec" && asymmetricKeyDetails?.namedCurve === "prime256v1";
  } catch {
    return false;
  }
}

function isHeaderValue(text: string): boolean {
  return text === text.trim() && !CONTROL.test(text);
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a header's value cannot have.
const CONTROL = /[\x00-\x08\x0a-\x1f\x7f]/;

function hasDigest(
  { encoding = "hex" }: Recipe,
  hash: "sha1" | "sha256" | "sha512",
  key: string | Uint8Array,
  signed: readonly (string | Uint8Array)[],
  { signatures, hashes }: SentSignatures,
): boolean {
  if (hashes !== undefined) {
    const digest = hashes.hmac(hash, key, signed);
    return digest !== null && isAmong(signatures, digest.toString(encoding), encoding);
  }
  // Updating part by part is a microsecond faster than the runtime's other form.
  const hasher = new Bun.CryptoHasher(hash, key);
  for (const part of signed) hasher.update(part);
  return isAmong(signatures, hasher.digest(encoding), encoding);
}

function isAmong(
  signatures: readonly string[],
  digest: string,
  encoding: (typeof ENCODINGS)[number],
): boolean {
  const expected = plainDigest(digest, encoding);
  return signatures.some((signature) => equalInConstantTime(plainDigest(signature, encoding), expected));
}

/** A digest as it is compared: senders differ in the case of hexadecimal digits, and in the padding of base64url. */
function plainDigest(text: string, encoding: (typeof ENCODINGS)[number]): string {
  if (encoding === "hex") return text.toLowerCase();
  return encoding === "base64url" ? text.replace(/={1,2}$/, "") : text;
}

/** DER prefix (SPKI) of the 32 bytes of an Ed25519 public key. */
const ED25519_SPKI = Buffer.from("302a300506032b6570032100", "hex");
const ED25519_KEY_BYTES = 32;

function isSignedByKey(
  { algorithm, encoding = "hex" }: Recipe,
  key: string | Uint8Array,
  signed: readonly (string | Uint8Array)[],
  { signature, hashes }: { readonly signature: string; readonly hashes: BodyHashes | undefined },
): boolean {
  const hash = algorithm === "ed25519" ? null : "sha256";
  try {
    // Ed25519 hashes its content twice, and needs it whole.
    if (hashes !== undefined)
      return hash !== null && hashes.isSignedBy(publicKey(key), signed, Buffer.from(signature, encoding));
    const content = Buffer.concat(signed.map((part) => Buffer.from(part)));
    return verifyBy(hash, content, publicKey(key), Buffer.from(signature, encoding));
  } catch {
    return false;
  }
}

/** Parses a public key: PEM, DER, or the 32 bytes of an Ed25519 key. @throws Error */
function publicKey(key: string | Uint8Array): KeyObject {
  if (typeof key === "string") return createPublicKey(key);
  const bare = key.length === ED25519_KEY_BYTES;
  return createPublicKey({
    key: Buffer.concat(bare ? [ED25519_SPKI, key] : [key]),
    format: "der",
    type: "spki",
  });
}

/** Compares digests, because the length is secret as well. */
function hasToken({ prefix = "", separator }: Recipe, secret: string, header: string): boolean {
  const digest = (token: string | Uint8Array) => createHash("sha256").update(token).digest();
  const expected = digest(prefix + secret);
  const tokens = separator === undefined ? [header] : header.split(separator, TOKENS_MAX);
  return tokens.some((part) => {
    const token = part.trim();
    // The runtime reads each byte of a header as a character: a token beyond ASCII was sent as UTF-8.
    return (
      timingSafeEqual(digest(token), expected) ||
      timingSafeEqual(digest(Buffer.from(token, "latin1")), expected)
    );
  });
}
