import { hash } from "node:crypto";
import { AwsV4Signer } from "aws4fetch";
import { withoutTrailing } from "../../kernel/log.ts";
import { attempt } from "../../kernel/outbound/attempt.ts";
import type { OutboundClient, OutboundRequest } from "../../kernel/outbound/client.ts";
import type { OutboundOutcome } from "../../kernel/outbound/outcome.ts";
import { isSuccess, WEBHOOK_RULE } from "../../kernel/outbound/retries.ts";
import { monotonicMs } from "../../kernel/time/clock.ts";

type Client = Pick<OutboundClient, "send">;

/** A bucket on an S3-compatible server, with its credentials. */
export interface S3Bucket {
  /** Reference of the owner's account; null when the account is deleted. */
  readonly account: number | null;
  readonly endpoint: string;
  readonly bucket: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** Outcome of a PUT: stored, in conflict with an existing object, or the storage is unavailable. */
export type PutOutcome =
  | { readonly kind: "stored" }
  | { readonly kind: "conflict"; readonly problem: string }
  | { readonly kind: "unavailable"; readonly problem: string };

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
 * the same bytes counts as stored: an earlier attempt succeeded and its response was lost.
 */
export async function putOnce(
  client: Client,
  bucket: S3Bucket,
  key: string,
  body: Uint8Array,
  timeoutMs: number,
): Promise<PutOutcome> {
  const startedAt = monotonicMs();
  const headers = { "content-type": "application/json", "if-none-match": "*" };
  const limits = { timeoutMs, bodyBytesMax: ERROR_BYTES_MAX };
  const outcome = await send(client, bucket, key, { method: "PUT", headers, body, ...limits });
  if (outcome.answered && isSuccess(WEBHOOK_RULE, outcome.status)) return { kind: "stored" };
  if (!outcome.answered || outcome.status !== 412)
    return { kind: "unavailable", problem: problemOf(outcome) };
  const existing = await send(client, bucket, key, {
    method: "GET",
    headers: {},
    body: null,
    timeoutMs: Math.max(1, timeoutMs - (monotonicMs() - startedAt)),
    bodyBytesMax: Math.max(body.length + 1, ERROR_BYTES_MAX),
  });
  if (!existing.answered || existing.status !== 200) {
    const problem = `${key} already exists and could not be read for comparison: ${problemOf(existing)}`;
    return { kind: "conflict", problem };
  }
  if (Buffer.compare(existing.body, body) === 0) return { kind: "stored" };
  return { kind: "conflict", problem: `${key} already exists with different content` };
}

async function send(
  client: Client,
  { account, region, accessKeyId, secretAccessKey, ...bucket }: S3Bucket,
  key: string,
  request: Pick<OutboundRequest, "method" | "body" | "timeoutMs" | "bodyBytesMax"> & {
    headers: Record<string, string>;
  },
): Promise<OutboundOutcome> {
  const { method, body } = request;
  const url = objectUrl(bucket, key);
  // The signature has the machine's date, even in tests: the storage compares it with its own clock.
  const signed = await new AwsV4Signer({
    method,
    url,
    headers: { ...request.headers, "x-amz-content-sha256": hash("sha256", body ?? "", "hex") },
    service: "s3",
    region,
    accessKeyId,
    secretAccessKey,
  }).sign();
  return attempt(client, {
    ...request,
    account,
    url,
    headers: Object.fromEntries(signed.headers),
    requireHttps: true,
  });
}

function problemOf(outcome: OutboundOutcome): string {
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
