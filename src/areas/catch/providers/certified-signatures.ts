import { verify as verifyBy } from "node:crypto";
import type { OwnSignature } from "./body-signatures.ts";
import type { CertificateSource } from "./certificates.ts";
import { memberOf, type Received, textAt } from "./extracted-fields.ts";

/** Headers of a signature of PayPal. */
const PAYPAL_HEADERS = {
  id: "paypal-transmission-id",
  time: "paypal-transmission-time",
  signature: "paypal-transmission-sig",
  url: "paypal-cert-url",
  algorithm: "paypal-auth-algo",
} as const;

/** PayPal signs the id and the time of a request, the id of the webhook (the secret) and the CRC-32 of the body. */
export const PAYPAL: OwnSignature = {
  toleranceSeconds: 0,
  certificate: {
    provider: "paypal",
    hosts: /^api(-m)?(\.sandbox)?\.paypal\.com$/,
    path: /^\//,
    names: ["messageverificationcerts.paypal.com", "messageverificationcerts.sandbox.paypal.com"],
    urlOf: ({ headers }) => headers.get(PAYPAL_HEADERS.url),
  },
  isSigned(secret, received) {
    const { headers, body, hashes } = received;
    if (headers.get(PAYPAL_HEADERS.algorithm)?.toLowerCase() !== "sha256withrsa") return false;
    const [id, time] = [headers.get(PAYPAL_HEADERS.id), headers.get(PAYPAL_HEADERS.time)];
    if (!id || !time) return false;
    const signed = `${id}|${time}|${secret}|${hashes?.bodyCrc ?? Bun.hash.crc32(body)}`;
    return isSignedByKey(received, "sha256", signed, headers.get(PAYPAL_HEADERS.signature));
  },
};

/** Values that Amazon SNS signs, by the type of the message, in this order; those that are missing are left out. */
const SNS_NOTIFICATION = ["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"];
const SNS_CONFIRMATION = ["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"];
/** Types of messages about a subscription. */
export const SNS_SUBSCRIPTION = "SubscriptionConfirmation";
const SNS_SIGNED: Readonly<Record<string, readonly string[]>> = {
  Notification: SNS_NOTIFICATION,
  [SNS_SUBSCRIPTION]: SNS_CONFIRMATION,
  UnsubscribeConfirmation: SNS_CONFIRMATION,
};
/** Hashes by the version of a signature. */
const SNS_HASHES: Readonly<Record<string, string>> = { 1: "sha1", 2: "sha256" };

/** The certificates of Amazon SNS, at whose hosts subscriptions are confirmed, too. */
export const SNS_SOURCE: CertificateSource = {
  provider: "sns",
  hosts: /^sns\.[a-z0-9-]{1,40}\.amazonaws\.com(\.cn)?$/,
  path: /^\/SimpleNotificationService-[A-Za-z0-9-]{1,100}\.pem$/,
  names: ["sns.amazonaws.com"],
};

/** The URL that confirms a subscription; empty when the body has none. */
export function snsSubscribeUrl(body: Uint8Array): string {
  return textAt({ headers: new Headers(), body, receivedAt: 0 }, "/SubscribeURL");
}

/** Amazon SNS signs values of the body. The secret is the ARN of the topic, which must be the one that is signed. */
export const SNS: OwnSignature = {
  toleranceSeconds: 0,
  certificate: {
    ...SNS_SOURCE,
    urlOf: (received) => textAt(received, "/SigningCertURL"),
  },
  isSigned(secret, received) {
    const hash = SNS_HASHES[textAt(received, "/SignatureVersion")];
    const names = SNS_SIGNED[textAt(received, "/Type")];
    if (hash === undefined || names === undefined || textAt(received, "/TopicArn") !== secret.trim())
      return false;
    const values = names.map((name) => [name, memberOf(received, `/${name}`)] as const);
    const signed = values
      .filter(([, value]) => typeof value === "string")
      .map(([name, value]) => `${name}\n${value}\n`)
      .join("");
    return isSignedByKey(received, hash, signed, textAt(received, "/Signature"));
  },
};

/** Whether a signature in base64 is that of the sender's certificate, by RSA. */
function isSignedByKey(
  { certificateKey = null }: Received,
  hash: string,
  signed: string,
  signature: string | null,
): boolean {
  if (certificateKey?.asymmetricKeyType !== "rsa" || !signature) return false;
  try {
    return verifyBy(hash, Buffer.from(signed, "utf8"), certificateKey, Buffer.from(signature, "base64"));
  } catch {
    return false;
  }
}
