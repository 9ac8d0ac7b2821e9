import { type ErrorMeaning, invalidField, registerErrors } from "../../kernel/errors.ts";
import { backoffMs, varied } from "../../kernel/outbound/retries.ts";

const codes = registerErrors({
  "notary.fork_detected": [
    503,
    "Others have seen a longer history of this chain. Nothing is signed until the fork is accepted.",
    "The operator compares the history of the witness or storage with the chain. If the loss is known, as after a restore, run `ninefold notary accept-fork` ([notary](api/notary.md#after-a-restore)).",
  ],
  "notary.inconsistent": [
    422,
    "The proof does not show that the checkpoint continues the one that was cosigned last.",
    "Send a proof from the size that was cosigned last to the new checkpoint; the response has that size.",
  ],
});

declare module "../../kernel/errors.ts" {
  interface ErrorCodes extends Record<keyof typeof codes, ErrorMeaning> {}
}

/** Maximum characters of an object prefix. The complete object name stays far below the 1,024 bytes that S3 allows. */
export const PREFIX_LENGTH_MAX = 512;

/**
 * Copy destinations of one project over time. Each is a stored row, because receipts show where their copies are; a
 * configuration changes rarely, and this limits the rows that free requests can create.
 */
export const DESTINATIONS_PER_PROJECT_MAX = 100;

/** Fields of a chain that are indexed: each is a row per receipt. */
export const INDEX_FIELDS_MAX = 5;

/** Characters of an indexed field's path. */
export const POINTER_LENGTH_MAX = 200;

/** Characters of an indexed value; longer ones are not indexed. Names, ids and addresses are shorter. */
export const VALUE_LENGTH_MAX = 512;

/** First and longest delay before buffered receipts are retried. Each delay is twice the one before. */
const RETRY_FIRST_MS = 5_000;
const RETRY_LONGEST_MS = 5 * 60 * 1000;

/** Returns the name of the object that a receipt is copied to. */
export function objectKey(prefix: string, sequence: number): string {
  const folder = prefix === "" || prefix.endsWith("/") ? prefix : `${prefix}/`;
  return `${folder}witness/receipts/${sequence}.json`;
}

/**
 * Validates the parts of a storage configuration that the schema cannot express.
 * @throws ApiError `validation_error`
 */
export function assertValidStorage(config: { endpoint: string; bucket: string; prefix: string }): void {
  const { search, hash } = new URL(config.endpoint);
  if (search !== "" || hash !== "" || config.endpoint.includes("?") || config.endpoint.includes("#")) {
    throw invalidField("endpoint", "must not have a query or a fragment");
  }
  if (config.bucket.includes("..")) throw invalidField("bucket", "must not have two consecutive dots");
  const folders = config.prefix.replace(/\/$/, "").split("/");
  const isPath = config.prefix === "" || folders.every((folder) => !["", ".", ".."].includes(folder));
  if (!isPath) throw invalidField("prefix", "must be folder names separated by slashes, such as logs/2026");
}

/** Masks an access key id. The first and the last four characters distinguish it from other ids. */
export function masked(accessKeyId: string): string {
  return `${accessKeyId.slice(0, 4)}...${accessKeyId.slice(-4)}`;
}

/** Delay in milliseconds after the given number of consecutive failures, from 1. `fraction` is random, in [0, 1). */
export function retryDelayMs(failures: number, fraction: number): number {
  return Math.round(varied(backoffMs(failures, RETRY_FIRST_MS, RETRY_LONGEST_MS), fraction));
}
