import { createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";
import { hmacSha256 } from "../hmac.ts";
import type { RequestHeaders } from "./headers.ts";
import { isPieces } from "./piece-body.ts";
import { type StreamedBody, signingKeyIn, signingSecret, standardHeaders, updateWith } from "./signing.ts";

/** How webhooks can be signed: by Standard Webhooks, with or without a private key, or as the receiver knows it from another sender. */
export const SIGNATURE_SCHEMES = [
  "standard",
  "hmac-sha256-hex",
  "hmac-sha256-base64",
  "stripe",
  "ed25519",
] as const;
export type SignatureScheme = (typeof SIGNATURE_SCHEMES)[number];

/** How the webhooks of one owner are signed. */
export interface Signature {
  readonly scheme: SignatureScheme;
  /** Header of the signature; required except for `standard` and `ed25519`, which have `webhook-signature`. */
  readonly header?: string;
  /** Text before the signature; only for `hmac-*`. */
  readonly prefix?: string;
  /** Header of the time in epoch seconds, which is then signed as well; only for `hmac-*`. */
  readonly timestamp_header?: string;
  /** Which secret signs after a rotation; only for `hmac-*`, whose receivers read one signature. */
  readonly grace?: "new" | "old";
}

/** The signature of an owner without a setting. */
export const STANDARD: Signature = { scheme: "standard" };

/** Shortest and longest secret whose text is the key. */
export const TEXT_SECRET_LENGTH_MIN = 8;
export const TEXT_SECRET_LENGTH_MAX = 256;
const TEXT_SECRET = /^[\x20-\x7e]+$/;

/** What begins the text of a private and of a public key (Standard Webhooks). */
const PRIVATE_PREFIX = "whsk_";
const PUBLIC_PREFIX = "whpk_";
/** Bytes of an Ed25519 key. */
const ED25519_BYTES = 32;
/** What stands before the key in the PKCS #8 form of an Ed25519 private key (RFC 8410). */
const PKCS8_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");
/** What stands before the key in the SPKI form of its public key. */
const SPKI_PREFIX_BYTES = 12;

/** An Ed25519 key, opened. */
interface PrivateKey {
  readonly key: KeyObject;
  /** `whpk_` and the base64 of the public key. */
  readonly publicText: string;
}

/** The text of a secret, and the keys that it holds. */
export interface SecretKeys {
  readonly text: string;
  /** Null where the text is not `whsec_` and a key. */
  readonly shared: Uint8Array | null;
  /** Null where the text is not `whsk_` and a key. */
  readonly private: PrivateKey | null;
}

/** A request that is signed. */
export interface Signed {
  /** Without a dot. */
  readonly id: string;
  /** Start of the attempt, in epoch milliseconds. */
  readonly nowMs: number;
  /** Not in pieces for `ed25519`, which needs it whole. */
  readonly body: StreamedBody;
}

interface SchemeRules {
  /** What a secret must be, as the end of a sentence about it. */
  readonly expected: string;
  fits(keys: SecretKeys): boolean;
  /** The text of a new secret. `random`: 32 bytes. */
  generated(random: Uint8Array): string;
  /** The headers of a request. `keys`: of valid secrets that fit, the newest first, at least one. */
  headers(keys: readonly SecretKeys[], signed: Signed, signature: Signature): Promise<RequestHeaders>;
}

/** Secrets whose text is the key, as other senders have them. */
const TEXT_RULES: Omit<SchemeRules, "headers"> = {
  expected: `must be ${TEXT_SECRET_LENGTH_MIN} to ${TEXT_SECRET_LENGTH_MAX} printable ASCII characters, and must not start with ${PRIVATE_PREFIX}`,
  fits: ({ text }) =>
    text.length >= TEXT_SECRET_LENGTH_MIN &&
    text.length <= TEXT_SECRET_LENGTH_MAX &&
    TEXT_SECRET.test(text) &&
    !text.startsWith(PRIVATE_PREFIX),
  generated: signingSecret,
};

/** The rules of each scheme. */
export const SCHEME_RULES: Readonly<Record<SignatureScheme, SchemeRules>> = {
  standard: {
    expected: "must be whsec_ and the base64 of 24 to 64 bytes",
    fits: ({ shared }) => shared !== null,
    generated: signingSecret,
    headers: (keys, { id, nowMs, body }) =>
      standardHeaders(
        keys.flatMap(({ shared }) => shared ?? []),
        id,
        nowMs,
        body,
      ),
  },
  "hmac-sha256-hex": { ...TEXT_RULES, headers: hmacHeaders("hex") },
  "hmac-sha256-base64": { ...TEXT_RULES, headers: hmacHeaders("base64") },
  stripe: {
    ...TEXT_RULES,
    headers: async (keys, { id, nowMs, body }, { header = "" }) => {
      const seconds = secondsOf(nowMs);
      const hmacs = keys.map(({ text }) => hmacSha256(text).update(`${seconds}.`));
      await updateWith(body, hmacs);
      const signatures = hmacs.map((hmac) => `v1=${hmac.digest("hex")}`);
      return { ...idHeaders(id, seconds), [header]: [`t=${seconds}`, ...signatures].join(",") };
    },
  },
  ed25519: {
    expected: `must be ${PRIVATE_PREFIX} and the base64 of ${ED25519_BYTES} bytes`,
    fits: (keys) => keys.private !== null,
    generated: (random) => PRIVATE_PREFIX + Buffer.from(random).toString("base64"),
    headers: async (keys, { id, nowMs, body }) => {
      if (isPieces(body)) throw new Error("Ed25519 signs no body in pieces");
      const seconds = secondsOf(nowMs);
      const content = Buffer.concat([Buffer.from(`${id}.${seconds}.`), Buffer.from(body)]);
      const signatures = keys
        .flatMap((pair) => pair.private ?? [])
        .map(({ key }) => `v1a,${sign(null, content, key).toString("base64")}`);
      return { ...idHeaders(id, seconds), "webhook-signature": signatures.join(" ") };
    },
  },
};

/** The headers of a request by a signature. `keys`: of the valid secrets, the newest first, which fits. */
export function signatureHeaders(
  signature: Signature,
  keys: readonly SecretKeys[],
  signed: Signed,
): Promise<RequestHeaders> {
  const { fits, headers } = SCHEME_RULES[signature.scheme];
  return headers(keys.filter(fits), signed, signature);
}

/** Opens the text of a secret. */
export function secretKeys(text: string): SecretKeys {
  return { text, shared: signingKeyIn(text), private: privateKeyIn(text) };
}

function hmacHeaders(encoding: "hex" | "base64"): SchemeRules["headers"] {
  return async (keys, { id, nowMs, body }, { header = "", prefix = "", timestamp_header, grace }) => {
    const seconds = secondsOf(nowMs);
    const { text } = (grace === "old" ? keys.at(-1) : keys[0]) ?? { text: "" };
    const hmac = hmacSha256(text);
    if (timestamp_header !== undefined) hmac.update(`${seconds}.`);
    await updateWith(body, [hmac]);
    return {
      ...idHeaders(id, seconds),
      ...(timestamp_header === undefined ? {} : { [timestamp_header]: String(seconds) }),
      [header]: prefix + hmac.digest(encoding),
    };
  };
}

function idHeaders(id: string, seconds: number): RequestHeaders {
  return { "webhook-id": id, "webhook-timestamp": String(seconds) };
}

function secondsOf(nowMs: number): number {
  return Math.floor(nowMs / 1_000);
}

/** The key in a text; null where it is not `whsk_` and the canonical base64 of a key. */
function privateKeyIn(text: string): PrivateKey | null {
  if (!text.startsWith(PRIVATE_PREFIX) || text.length > TEXT_SECRET_LENGTH_MAX) return null;
  const bytes = Buffer.from(text.slice(PRIVATE_PREFIX.length), "base64");
  // Decoding passes over what is no base64: one spelling per key is right.
  if (bytes.length !== ED25519_BYTES || PRIVATE_PREFIX + bytes.toString("base64") !== text) return null;
  const key = createPrivateKey({
    key: Buffer.concat([PKCS8_PREFIX, bytes]),
    format: "der",
    type: "pkcs8",
  });
  const spki = createPublicKey(key).export({ format: "der", type: "spki" });
  return { key, publicText: PUBLIC_PREFIX + spki.subarray(SPKI_PREFIX_BYTES).toString("base64") };
}
