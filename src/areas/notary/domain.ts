import { invalidField } from "../../kernel/errors.ts";

/** Longest prefix of object names: with the rest it stays far below the 1,024 bytes that S3 allows. */
export const PREFIX_LENGTH_MAX = 512;

/** First and longest pause before buffered receipts are tried again: each is twice as long as the one before. */
const RETRY_FIRST_MS = 5_000;
const RETRY_LONGEST_MS = 5 * 60 * 1000;
/** How far a pause is moved at random, so that many chains do not come back at the same moment. */
const JITTER = 0.1;

/** The name of the object that a receipt is copied to. */
export function objectKey(prefix: string, sequence: number): string {
  const folder = prefix === "" || prefix.endsWith("/") ? prefix : `${prefix}/`;
  return `${folder}witness/receipts/${sequence}.json`;
}

/**
 * Checks what a schema cannot say of a storage configuration.
 * @throws ApiError `validation_error`
 */
export function assertStorable(config: { endpoint: string; bucket: string; prefix: string }): void {
  const { search, hash } = new URL(config.endpoint);
  if (search !== "" || hash !== "" || config.endpoint.includes("?") || config.endpoint.includes("#")) {
    throw invalidField("endpoint", "must not have a query or a fragment");
  }
  if (config.bucket.includes("..")) throw invalidField("bucket", "must not have two dots beside each other");
  const folders = config.prefix.replace(/\/$/, "").split("/");
  const isPath = config.prefix === "" || folders.every((folder) => !["", ".", ".."].includes(folder));
  if (!isPath)
    throw invalidField("prefix", "must be folder names with a slash between them, such as logs/2026");
}

/** A credential's name as it is shown: enough to tell two of them apart. */
export function masked(accessKeyId: string): string {
  return `${accessKeyId.slice(0, 4)}...${accessKeyId.slice(-4)}`;
}

/** The pause after so many failures in a row (1 for the first). `fraction` is a random number in [0, 1). */
export function retryDelayMs(failures: number, fraction: number): number {
  const pause = Math.min(RETRY_LONGEST_MS, RETRY_FIRST_MS * 2 ** Math.min(failures - 1, 30));
  return Math.round(pause * (1 - JITTER + 2 * JITTER * fraction));
}
