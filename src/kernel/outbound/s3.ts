import { hash } from "node:crypto";
import { AwsV4Signer } from "aws4fetch";
import { withoutTrailing } from "../log.ts";
import { monotonicMs } from "../time/clock.ts";
import { sendAttempt } from "./attempt.ts";
import type { OutboundClient } from "./client.ts";
import type { OutboundOutcome } from "./outcome.ts";
import { isSuccess, WEBHOOK_RULE } from "./retries.ts";

/** What sends the requests. */
export type S3Client = Pick<OutboundClient, "send">;

/** A bucket on an S3-compatible server, with its credentials. */
export interface S3Bucket {
  /** Reference of the owner's account; null when the account is deleted. */
  readonly account: number | null;
  readonly endpoint: string;
  readonly bucket: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Whether the endpoint may be without TLS, as the operator's own storage may be. */
  readonly allowsHttp?: boolean;
}

/** A request to an object, or with an empty key to the bucket itself. */
export interface S3Request {
  readonly method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  readonly key: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  readonly timeoutMs: number;
  /** Most bytes of the response's body that are read; without it those of an error. */
  readonly bodyBytesMax?: number;
}

/** Outcome of a PUT: stored, in conflict with an existing object, or the storage is unavailable. */
export type PutOutcome =
  | { readonly kind: "stored" }
  | { readonly kind: "conflict"; readonly problem: string }
  | { readonly kind: "unavailable"; readonly problem: string };

/** Which existing object a PUT may replace. */
export interface Replaceable {
  /** Bytes that the existing object begins with. */
  readonly start: Uint8Array;
  /** Most bytes of it that are read. */
  readonly bytesMax: number;
}

/** Bytes of an error document that are read. The code is near its beginning. */
const ERROR_BYTES_MAX = 4_096;

/** Delimiters of an error document's code. Text in any other form is not shown. */
const [BEFORE_CODE, AFTER_CODE] = ["<Code>", "</Code>"];
const ERROR_CODE = /^[A-Za-z0-9]{1,64}$/;

/** Returns the URL of an object, path style. Bucket and key contain only characters that need no escaping. */
export function objectUrl({ endpoint, bucket }: Pick<S3Bucket, "endpoint" | "bucket">, key: string): string {
  return `${withoutTrailing(endpoint, "/")}/${bucket}/${key}`;
}

/**
 * Stores an object with AWS Signature V4 through the guarded client, unless the object exists. An existing object with
 * the same bytes counts as stored: an earlier attempt succeeded and its response was lost. One that `replaceable` describes is
 * replaced.
 */
export async function putOnce(
  client: S3Client,
  bucket: S3Bucket,
  key: string,
  body: Uint8Array,
  timeoutMs: number,
  type = "application/json",
  replaceable: Replaceable | null = null,
): Promise<PutOutcome> {
  const startedAt = monotonicMs();
  const remainingMs = () => Math.max(1, timeoutMs - (monotonicMs() - startedAt));
  const headers = { "content-type": type, "if-none-match": "*" };
  const outcome = await sendToBucket(client, bucket, { method: "PUT", key, headers, body, timeoutMs });
  if (outcome.answered && isSuccess(WEBHOOK_RULE, outcome.status)) return { kind: "stored" };
  if (!outcome.answered || outcome.status !== 412)
    return { kind: "unavailable", problem: storageProblem(outcome) };
  const existing = await sendToBucket(client, bucket, {
    method: "GET",
    key,
    timeoutMs: remainingMs(),
    bodyBytesMax: Math.max(body.length + 1, ERROR_BYTES_MAX, replaceable?.bytesMax ?? 0),
  });
  if (!existing.answered || existing.status !== 200) {
    const problem = `${key} already exists and could not be read for comparison: ${storageProblem(existing)}`;
    return { kind: "conflict", problem };
  }
  if (Buffer.compare(existing.body, body) === 0) return { kind: "stored" };
  if (replaceable === null || !startsWith(existing.body, replaceable.start))
    return {
      kind: "conflict",
      problem: `${key} already exists with different content`,
    };
  const replaced = await sendToBucket(client, bucket, {
    method: "PUT",
    key,
    headers: { "content-type": type },
    body,
    timeoutMs: remainingMs(),
  });
  return replaced.answered && isSuccess(WEBHOOK_RULE, replaced.status)
    ? { kind: "stored" }
    : { kind: "unavailable", problem: storageProblem(replaced) };
}

function startsWith(bytes: Uint8Array, start: Uint8Array): boolean {
  return Buffer.compare(bytes.subarray(0, start.length), start) === 0;
}

/**
 * The first bytes of an object; false if there is none, null if the storage does not say. A storage that does not show its list
 * returns 403 for an object that does not exist.
 */
export async function readStart(
  client: S3Client,
  bucket: S3Bucket,
  key: string,
  bytes: number,
  timeoutMs: number,
): Promise<Uint8Array | false | null> {
  const headers = { range: `bytes=0-${bytes - 1}` };
  const request: S3Request = { method: "GET", key, headers, timeoutMs, bodyBytesMax: bytes };
  const outcome = await sendToBucket(client, bucket, request);
  if (!outcome.answered) return null;
  // An empty object has no range.
  if (outcome.status === 404 || outcome.status === 403 || outcome.status === 416) return false;
  return isSuccess(WEBHOOK_RULE, outcome.status) ? outcome.body : null;
}

/** Sends one request with AWS Signature V4 through the guarded client. Redirects are not followed. */
export async function sendToBucket(
  client: S3Client,
  { account, region, accessKeyId, secretAccessKey, allowsHttp = false, ...bucket }: S3Bucket,
  request: S3Request,
): Promise<OutboundOutcome> {
  const { method, body, key, query = {}, timeoutMs } = request;
  const search = new URLSearchParams(query).toString();
  const url = `${objectUrl(bucket, key)}${search === "" ? "" : `?${search}`}`;
  // Stores with retention locks demand a checksum of every upload; all understand this one.
  const checksum = body === undefined ? {} : { "content-md5": hash("md5", body, "base64") };
  // The signature has the machine's date, even in tests: the storage compares it with its own clock.
  const signed = await new AwsV4Signer({
    method,
    url,
    headers: { ...request.headers, ...checksum, "x-amz-content-sha256": hash("sha256", body ?? "", "hex") },
    service: "s3",
    region,
    accessKeyId,
    secretAccessKey,
  }).sign();
  return sendAttempt(client, {
    account,
    method,
    url,
    body: body ?? null,
    timeoutMs,
    bodyBytesMax: request.bodyBytesMax ?? ERROR_BYTES_MAX,
    headers: Object.fromEntries(signed.headers),
    requireHttps: !allowsHttp,
  });
}

/** An object in a list. */
export interface ListedObject {
  readonly key: string;
  readonly bytes: number;
}

/** A page of a list of objects. */
export interface ListPage {
  readonly objects: readonly ListedObject[];
  /** What the next page is requested with; null on the last one. */
  readonly next: string | null;
}

/**
 * Reads a page of a list (`ListObjectsV2`). `IsTruncated` says whether more follows: an empty or left-over token does not.
 *
 * @throws Error for a text that is no whole list, and for a page that is followed by more but does not say how to get it.
 */
export function readListPage(xml: string): ListPage {
  if (!xml.includes("<ListBucketResult") || !xml.includes("</ListBucketResult>"))
    throw new Error("the storage returned no list of objects");
  const objects = xml
    .split("<Contents>")
    .slice(1)
    .map((item) => {
      const [key, bytes] = [element(item, "Key"), Number(element(item, "Size") ?? Number.NaN)];
      if (key === null || !Number.isSafeInteger(bytes)) throw new Error("the storage's list is malformed");
      return { key, bytes };
    });
  const [isTruncated, token] = [element(xml, "IsTruncated")?.trim(), element(xml, "NextContinuationToken")];
  // A store without the element has more exactly if it has a token.
  if (isTruncated === "false" || (isTruncated === undefined && !token)) return { objects, next: null };
  if (!token)
    throw new Error("the storage's list is not whole: more objects follow, but it has no token for them");
  return { objects, next: token };
}

/** Entities of XML that keys and tokens can contain. */
const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };
const ENTITY = /&(?:#(\d{1,7})|#x([0-9a-fA-F]{1,6})|(amp|lt|gt|quot|apos));/g;

/** The text of the first element with a name; null without one. */
export function element(xml: string, name: string): string | null {
  const start = xml.indexOf(`<${name}>`);
  if (start < 0) return null;
  const from = start + name.length + 2;
  const end = xml.indexOf("</", from);
  if (end < 0) return null;
  return xml
    .slice(from, end)
    .replace(ENTITY, (_, decimal?: string, hex?: string, known?: string) =>
      known === undefined
        ? String.fromCodePoint(
            Math.min(0x10ffff, decimal === undefined ? Number(`0x${hex}`) : Number(decimal)),
          )
        : (ENTITIES[known] ?? ""),
    );
}

/** Why a request failed, for the operator or the owner of the storage. */
export function storageProblem(outcome: OutboundOutcome): string {
  if (!outcome.answered) return `no response from the storage: ${outcome.failure.message}`;
  const { status, body } = outcome;
  const code = errorCode(Buffer.from(body).toString("utf8"));
  const response = `the storage returned ${status}${code === null ? "" : ` ${code}`}`;
  return status >= 300 && status < 400
    ? `${response}: redirects are not followed; check endpoint and region`
    : response;
}

function errorCode(document: string): string | null {
  const at = document.indexOf(BEFORE_CODE);
  if (at < 0) return null;
  const begin = at + BEFORE_CODE.length;
  const code = document.slice(begin, document.indexOf(AFTER_CODE, begin));
  return ERROR_CODE.test(code) ? code : null;
}
