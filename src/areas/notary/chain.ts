import { createPrivateKey, createPublicKey, hash, type KeyObject, randomBytes, sign } from "node:crypto";
import { InexactnessScan, pathText } from "../../json-text.ts";
import type { Actor } from "../../kernel/actors/registry.ts";
import { slices } from "../../kernel/background/time-slices.ts";
import { invalidField } from "../../kernel/errors.ts";
import { isKnownAsWritten, TOKENS_PER_STEP } from "../../kernel/http/requests/inexactness.ts";

/** Bytes of an Ed25519 seed, from which the private key is derived. */
export const SEED_BYTES = 32;

/** Bytes of the digest in a chain id. */
const CHAIN_ID_BYTES = 24;

/** The bytes before the seed in the PKCS #8 form of an Ed25519 key (RFC 8410, section 7). */
const PKCS8_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");

/** A chain in memory: its head and its private key. It is always idle, because its rows hold the same data. */
export interface ChainActor extends Actor {
  readonly ref: number;
  readonly projectRef: number;
  readonly chainId: string;
  /** Origin of its checkpoints, without the suffix of an epoch. */
  readonly origin: string;
  /** Number of restores that its checkpoints have to be distinguished by. */
  epoch: number;
  /** The first receipts that may lack leaves; 0 once the tree is complete. */
  backlog: number;
  /** What a restore has noted; null once it is declared in the chain. */
  restored: string | null;
  /** Where others have seen a longer history; null if nobody has. */
  fork: string | null;
  /** Fields of logs whose values are indexed, as JSON Pointers. */
  indexed: readonly string[];
  /** Days after which the text of a log is deleted; 0: never. */
  retainDays: number;
  /** Whether a checkpoint is scheduled. */
  checkpointDue: boolean;
  /** Earliest time of the next submission to the witnesses, in epoch milliseconds. */
  submitAfter: number;
  /** `x` of the public key. */
  readonly publicX: string;
  /** Null if a restore without the master key has removed it: the chain has ended. */
  readonly privateKey: KeyObject | null;
  /** Last position; 0 for an empty chain. */
  sequence: number;
  /** Last chain hash; zeros for an empty chain. */
  hash: Uint8Array;
  /** Last predicted receipt; null after a wrong prediction. */
  predicted: PredictedReceipt | null;
}

/** Prediction of a receipt, before its unit of work runs. */
export interface PredictedReceipt {
  readonly chain: ChainActor;
  /** Chain hash of the previous receipt. Compared by identity to detect another position. */
  readonly prevHash: Uint8Array;
  readonly sequence: number;
  readonly hash: Uint8Array;
  /** Null until it is computed. */
  signature: Uint8Array | null;
}

/** Derives the private key from a seed. */
export function privateKeyOf(seed: Uint8Array): KeyObject {
  const key = Buffer.concat([PKCS8_PREFIX, seed]);
  return createPrivateKey({ key, format: "der", type: "pkcs8" });
}

/** Returns the `x` of a private key's public key, base64url. */
export function publicXOf(privateKey: KeyObject): string {
  return String(createPublicKey(privateKey).export({ format: "jwk" }).x);
}

/** Signs a raw chain hash with Ed25519. Returns 64 bytes. */
export function signHash(privateKey: KeyObject, chainHash: Uint8Array): Uint8Array {
  return sign(null, chainHash, privateKey);
}

/** Returns the public id of a project's chain: `wc_` and the start of a digest over account and project. */
export function chainIdOf(userId: string, projectId: string): string {
  const digest = hash("sha256", `${userId}:${projectId}`, "buffer");
  return `wc_${digest.subarray(0, CHAIN_ID_BYTES).toString("base64url")}`;
}

/** A log whose serialized text is equivalent to the request's, or only its hash. */
export interface LogEntry {
  /** Null if only the hash was sent. */
  readonly log: Readonly<Record<string, unknown>> | null;
  /** `JSON.stringify(log)`: the text that is hashed, stored and returned; empty if only the hash was sent. */
  readonly text: string;
  /** Note that was sent with the hash. */
  readonly note?: string | undefined;
  /** Raw SHA-256 of the text's UTF-8. */
  readonly contentHash: Uint8Array;
}

/** Bytes of a salt, more than anyone can guess: 22 characters base64url. */
const SALT_BYTES = 16;

/** Member of a log that makes its hash unpredictable. */
const SALT = "$salt";

/** What a request logs. */
interface LogRequest {
  readonly log?: Record<string, unknown>;
  readonly content_hash?: string;
  readonly note?: string;
  readonly salt?: boolean;
}

/**
 * Reads the log, or its hash, from a request body, and adds the salt to the log in it. Except for that, the signed text must be
 * equivalent to the text that was sent.
 *
 * @throws ApiError `validation_error` for a number that JSON parsers cannot represent exactly, a duplicate name in an
 *   object, and fields that contradict each other.
 */
export function readLogEntry(body: LogRequest, bodyText: string): LogEntry {
  const steps = logEntrySteps(body, bodyText);
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** The same in {@link slices}, for a large body. */
export async function readLargeLogEntry(body: LogRequest, bodyText: string): Promise<LogEntry> {
  const steps = logEntrySteps(body, bodyText);
  for (;;) {
    if (slices.isOver) await slices.next();
    const { done, value } = steps.next();
    if (done === true) return value;
    // A long step follows, which gets a slice of its own.
    if (value === "long") await slices.next();
  }
}

/** Steps of a few milliseconds at most, even for the largest log. */
function* logEntrySteps(body: LogRequest, bodyText: string): Generator<"short" | "long", LogEntry> {
  const { content_hash, note, salt = false } = body;
  if (body.log === undefined) {
    if (content_hash === undefined) throw invalidField("log", "is required, unless content_hash is given");
    if (salt) throw invalidField("salt", "needs a log: the server cannot salt a hash");
    return {
      log: null,
      text: "",
      note,
      contentHash: Buffer.from(content_hash, "hex"),
    };
  }
  if (content_hash !== undefined) throw invalidField("content_hash", "must not be given with log");
  if (note !== undefined) throw invalidField("note", "is for content_hash only: write it into the log");
  if (!isKnownAsWritten(bodyText, body)) {
    const scan = new InexactnessScan(bodyText, "log");
    while (!scan.advance(TOKENS_PER_STEP)) yield "short";
    const { found } = scan;
    if (found !== null) throw invalidField(pathText(found.path), found.problem);
  }
  yield "long";
  if (salt) addSalt(body.log);
  const { log } = body;
  const text = JSON.stringify(log);
  yield "long";
  return { log, text, contentHash: contentHashOf(text) };
}

/** Changes the log itself: a copy of an object with ten thousands of members takes longer than a turn of the event loop may. */
function addSalt(log: Record<string, unknown>): void {
  if (Object.hasOwn(log, SALT)) throw invalidField("salt", `the log already has a member ${SALT}`);
  log[SALT] = randomBytes(SALT_BYTES).toString("base64url");
}

/** Returns the raw SHA-256 of a log's text. */
export function contentHashOf(logText: string): Uint8Array {
  return hash("sha256", logText, "buffer");
}
