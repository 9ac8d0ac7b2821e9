import { type Actor, ActorRegistry } from "../../kernel/actors/registry.ts";
import type { Caller, CallerProject } from "../../kernel/callers/caller.ts";
import { ApiError } from "../../kernel/errors.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { OutboundClient } from "../../kernel/outbound/client.ts";
import {
  objectUrl,
  type PutOutcome,
  putOnce,
  type Replaceable,
  readStart,
  type S3Bucket,
} from "../../kernel/outbound/s3.ts";
import { laneName } from "../../kernel/scheduler/dispatcher.ts";
import { sealedText } from "../../kernel/secrets/sealed-column.ts";
import type { Fields, Tx } from "../../kernel/storage/tx.ts";
import { createNativeCrypto } from "../../verify/native.ts";
import { checkReceipt, isObject, publicKeyX } from "../../verify/receipt.ts";
import type { ChainActor, LogEntry, PredictedReceipt } from "./chain.ts";
import {
  assertValidStorage,
  DESTINATIONS_PER_PROJECT_MAX,
  masked,
  objectKey,
  retryDelayMs,
} from "./domain.ts";
import type { Receipt, ReceiptStorage, StorageBody, StorageConfigured } from "./schema.ts";
import type { NotaryService } from "./service.ts";
import type { CopyStore, NewReceiptStore, ReceiptStoreRow, StoreLocation } from "./store.ts";

const STORAGE_SECRET = sealedText("receipt-store");

/** Timeout of the upload that a log request waits for, in milliseconds. */
export const IMMEDIATE_UPLOAD_TIMEOUT_MS = 2_000;

/**
 * Concurrent uploads that log requests wait for, over all chains. It limits the connections when a storage hangs: above it,
 * a receipt is buffered immediately.
 */
export const CONCURRENT_UPLOADS_MAX = 256;

/** Bytes of a receipt with the largest log, whose text may be longer than that of the request: each character escaped. */
const COPY_BYTES_MAX = 8 * 1024 * 1024;

/** Bytes of a copy that its fields before the log fit in: about 600. */
const RECEIPT_HEAD_BYTES = 2_048;

const crypto = createNativeCrypto();

/** Problem of a storage whose credentials a restore without the master key has removed. */
const CREDENTIALS_LOST =
  "the credentials were lost in a restore: set them again with POST /v1/witness/config";

/** Kind of the durable job that uploads buffered receipts. Each project has one; its key is the project. */
export const UPLOAD_JOB = "notary.deliver";

/** Storage configurations in memory, about 1 KB each. */
const DESTINATIONS_IN_MEMORY_MAX = 16_384;

/** An appended receipt and its upload; null without a storage. */
export type Appended = {
  readonly receipt: Receipt;
  readonly upload: Upload | null;
};

/** A receipt to copy to a store. */
export interface Upload {
  readonly projectRef: number;
  readonly chainRef: number;
  readonly sequence: number;
  readonly store: ReceiptStoreRow;
}

/** Status and location of a copy, as receipts show them. */
export type CopyStatus = Required<Pick<Receipt, "storage_status">> & Pick<Receipt, "storage_location">;

/** Resolves the accounts that own projects. */
export interface ProjectOwners {
  /** Returns the reference of a project's account; null once the project has been removed. */
  accountOf(projectRef: number): number | null;
}

/** A project's storage in memory. It is always idle, because its rows hold the same data. */
interface Destination extends Actor {
  store: ReceiptStoreRow | null;
  /** Receipts pending upload. While there are any, the project has an upload job. */
  buffered: number;
}

interface UploadDeps extends Pick<Kernel, "vault" | "digests" | "scheduler" | "ids" | "changes"> {
  readonly notary: NotaryService;
  readonly store: CopyStore;
  readonly outbound: OutboundClient;
  readonly owners: ProjectOwners;
}

/** Copies receipts to the projects' storages. The notary stores all receipts, copied or not. */
export class Uploads {
  private readonly destinations = new ActorRegistry<number, Destination>(DESTINATIONS_IN_MEMORY_MAX);
  /** Uploads that a log request is waiting for. The job skips them. */
  private readonly inFlight = new Set<string>();

  constructor(private readonly deps: UploadDeps) {}

  /** @throws ApiError `validation_error` if the configuration cannot work or its address is not allowed. */
  assertUsable(config: StorageBody): void {
    this.deps.outbound.policy.assertUrl("endpoint", config.endpoint, { requireHttps: true });
    assertValidStorage({ prefix: "", ...config });
  }

  /**
   * Sets a project's storage. Buffered receipts are copied to it immediately.
   *
   * @throws ApiError `forbidden` for a new destination when the project has the maximum.
   */
  configure(tx: Tx, project: CallerProject, config: StorageBody): StorageConfigured {
    const destination = this.destination(project.ref, tx);
    const { store: before } = destination;
    const { endpoint, bucket, region, prefix = "" } = config;
    const wanted: NewReceiptStore = {
      endpoint,
      bucket,
      region,
      prefix,
      access_key_id: config.accessKeyId,
      secret_access_key: STORAGE_SECRET.seal(this.deps.vault, project.ref, config.secretAccessKey),
    };
    tx.audit({
      summary: `Receipts are copied to the storage bucket ${bucket}`,
      target: { type: "receipt_storage", id: project.id },
      before: before && auditFields(before),
      after: auditFields(wanted),
    });
    if (before !== null && isSameDestination(before, wanted)) {
      this.deps.store.updateCredentials(tx, { ...wanted, ref: before.ref });
    } else {
      assertDestinationCount(this.deps.store.countStores(project.ref));
      this.deps.store.addStore(tx, { ...wanted, project_ref: project.ref, now: tx.now });
    }
    change(tx, destination, { store: this.deps.store.storeOf(project.ref) });
    if (destination.buffered > 0) this.scheduleUpload(tx, project.ref, tx.now);
    return { success: true, configured: true };
  }

  /** Returns the current configuration with masked credentials. @throws ApiError `not_found` without one. */
  view(caller: Caller): ReceiptStorage {
    const { id, ref: projectRef } = caller.project;
    const { store, buffered } = this.destination(projectRef);
    if (store === null) {
      throw new ApiError(
        "not_found",
        "No storage is configured. Configure one with POST /v1/witness/config.",
      );
    }
    const { endpoint, bucket, region, prefix, access_key_id, secret_access_key, last_error } = store;
    const secrets = {
      accessKeyId: access_key_id,
      secretAccessKey: STORAGE_SECRET.openOrNull(this.deps.vault, projectRef, secret_access_key),
    };
    return {
      endpoint,
      bucket,
      region,
      prefix,
      accessKeyId: masked(access_key_id),
      buffered,
      last_error,
      ...this.deps.digests.of(caller, "witness", id, secrets),
    };
  }

  /** Number of receipts that have not been copied to the storage. */
  buffered(projectRef: number): number {
    return this.destination(projectRef).buffered;
  }

  /** Creation time of the oldest buffered receipt, epoch milliseconds; null when there is none. */
  bufferedSince(projectRef: number): number | null {
    const chain = this.deps.notary.chain(projectRef);
    if (chain === undefined || this.buffered(projectRef) === 0) return null;
    return this.deps.store.bufferedSince({ chainRef: chain.ref }) || null;
  }

  isConfigured(projectRef: number): boolean {
    return this.destination(projectRef).store !== null;
  }

  /**
   * Appends a receipt and, if a storage is configured, buffers its copy. The first buffered receipt starts the upload job,
   * so that a crash delays copies and loses none.
   *
   * @throws ApiError `conflict` before init.
   */
  append(tx: Tx, projectRef: number, entry: LogEntry, predicted: PredictedReceipt | null): Appended {
    const { chain, receipt } = this.deps.notary.append(tx, projectRef, entry, predicted);
    const destination = this.destination(projectRef, tx);
    const { store } = destination;
    if (store === null) return { receipt, upload: null };
    this.deps.store.buffer(tx, chain.ref, chain.sequence);
    if (destination.buffered === 0)
      this.scheduleUpload(tx, projectRef, tx.now + retryDelayMs(1, this.deps.ids.fraction()));
    change(tx, destination, { buffered: destination.buffered + 1 });
    return { receipt, upload: { projectRef, chainRef: chain.ref, sequence: chain.sequence, store } };
  }

  /** Runs the upload that a log request waits for. */
  async uploadImmediately({ receipt, upload }: Appended): Promise<PutOutcome> {
    if (upload === null || this.inFlight.size >= CONCURRENT_UPLOADS_MAX) {
      return { kind: "unavailable", problem: "too many uploads were in flight" };
    }
    const key = uploadKey(upload);
    this.inFlight.add(key);
    try {
      return await this.upload(upload, receipt, IMMEDIATE_UPLOAD_TIMEOUT_MS);
    } finally {
      this.inFlight.delete(key);
    }
  }

  /** Whether a log request is uploading this receipt. */
  isInFlight(upload: Upload): boolean {
    return this.inFlight.has(uploadKey(upload));
  }

  /** Makes one attempt to copy a receipt. */
  upload({ projectRef, sequence, store }: Upload, receipt: Receipt, timeoutMs: number): Promise<PutOutcome> {
    const bucket = this.bucketOf(projectRef, store);
    if (bucket === null) return Promise.resolve({ kind: "unavailable", problem: CREDENTIALS_LOST });
    const body = Buffer.from(JSON.stringify(receipt));
    const key = objectKey(store.prefix, sequence);
    return putOnce(
      this.deps.outbound,
      bucket,
      key,
      body,
      timeoutMs,
      "application/json",
      replaceableBy(receipt),
    );
  }

  /**
   * Whether a project's storage has a receipt that follows the chain's last one, with the chain's signature: any other object of
   * that name proves nothing. Null if the storage does not say; false without a storage.
   */
  async hasNextReceipt(projectRef: number, chain: ChainActor): Promise<boolean | null> {
    const { store } = this.destination(projectRef);
    if (store === null) return false;
    const bucket = this.bucketOf(projectRef, store);
    if (bucket === null) return null;
    const sequence = chain.sequence + 1;
    const start = await readStart(
      this.deps.outbound,
      bucket,
      objectKey(store.prefix, sequence),
      RECEIPT_HEAD_BYTES,
      IMMEDIATE_UPLOAD_TIMEOUT_MS,
    );
    return start && isReceiptOf(chain, sequence, start);
  }

  /** A storage with its credentials; null if a restore has removed them. */
  private bucketOf(projectRef: number, store: ReceiptStoreRow): S3Bucket | null {
    const { endpoint, bucket, region, access_key_id: accessKeyId } = store;
    const secretAccessKey = STORAGE_SECRET.openOrNull(this.deps.vault, projectRef, store.secret_access_key);
    if (secretAccessKey === null) return null;
    const account = this.deps.owners.accountOf(projectRef);
    return { account, endpoint, bucket, region, accessKeyId, secretAccessKey };
  }

  /**
   * Buffers the copy of a receipt whose text was deleted again: the upload replaces it. A copy in an earlier destination is not
   * changed.
   */
  replaceCopy(tx: Tx, projectRef: number, chain: ChainActor, sequence: number): void {
    const destination = this.destination(projectRef, tx);
    const { store } = destination;
    if (store === null || this.deps.store.bufferAgain(tx, chain.ref, sequence, store.ref) === 0) return;
    if (destination.buffered === 0) this.scheduleUpload(tx, projectRef, tx.now);
    change(tx, destination, { buffered: destination.buffered + 1 });
  }

  /** Records the outcome of an upload of a receipt. Returns the status of the copy. */
  record(tx: Tx, upload: Upload, outcome: PutOutcome, uploaded: Receipt): CopyStatus {
    const { projectRef, chainRef, sequence, store } = upload;
    const destination = this.destination(projectRef, tx);
    this.deps.changes.inProject(tx, projectRef, "witness", String(sequence));
    if (outcome.kind !== "stored") {
      // The error of a store that was replaced meanwhile is irrelevant.
      if (destination.store?.ref === store.ref) this.setError(tx, destination, outcome.problem);
      return { storage_status: "buffered" };
    }
    // Its text was deleted during the upload: the copy still has it.
    if (uploaded.redacted_at === undefined && this.deps.notary.isRedacted(chainRef, sequence))
      return { storage_status: "buffered" };
    if (this.deps.store.setDelivered(tx, store.ref, chainRef, sequence) > 0)
      change(tx, destination, { buffered: destination.buffered - 1 });
    if (destination.buffered === 0) this.setError(tx, destination, null);
    return { storage_status: "delivered", storage_location: locationOf(store, sequence) };
  }

  /** Adds the status of its copy to a receipt. */
  withStatus(projectRef: number, receipt: Receipt): Receipt {
    const chain = this.isConfigured(projectRef) ? this.deps.notary.chain(projectRef) : undefined;
    if (chain === undefined) return receipt;
    const sequence = Number(receipt.sequence_id);
    const copy = this.deps.store.copy(chain.ref, sequence);
    if (copy === null) return receipt;
    if (copy.endpoint === null) return { ...receipt, storage_status: "buffered" };
    return { ...receipt, storage_status: "delivered", storage_location: locationOf(copy, sequence) };
  }

  /** Returns the next buffered receipts of a project after a position. */
  due(projectRef: number, after: number, limit: number): Upload[] {
    const chain = this.deps.notary.chain(projectRef);
    const { store } = this.destination(projectRef);
    if (chain === undefined || store === null) return [];
    const { ref: chainRef } = chain;
    return this.deps.store
      .buffered(chainRef, after, limit)
      .map(({ sequence }) => ({ projectRef, chainRef, sequence, store }));
  }

  /** Cancels a deleted project's uploads. */
  stop(tx: Tx, projectRef: number): void {
    this.deps.scheduler.cancel(tx, UPLOAD_JOB, String(projectRef));
  }

  /** Removes at most `rowsMax` rows of a project: receipts, copies, chain and stores. Returns the number of rows removed. */
  remove(tx: Tx, projectRef: number, rowsMax: number): number {
    // If this is rolled back, the destination is read again.
    this.destinations.drop(projectRef);
    const chain = this.deps.notary.chain(projectRef, tx);
    let removed = chain === undefined ? 0 : this.deps.store.removeCopies(tx, chain.ref, rowsMax);
    if (removed < rowsMax) removed += this.deps.notary.remove(tx, projectRef, rowsMax - removed);
    if (removed < rowsMax) removed += this.deps.store.removeStores(tx, projectRef, rowsMax - removed);
    return removed;
  }

  private scheduleUpload(tx: Tx, projectRef: number, dueAt: number): void {
    const account = this.deps.owners.accountOf(projectRef);
    // In a lane of its account, so that it waits while that is suspended.
    const lane = account === null ? "" : laneName(account, "receipts");
    this.deps.scheduler.enqueue(tx, UPLOAD_JOB, String(projectRef), dueAt, { after: 0, failures: 0 }, lane);
  }

  private setError(tx: Tx, destination: Destination, last_error: string | null): void {
    const { store } = destination;
    if (store === null || store.last_error === last_error) return;
    this.deps.store.setLastError(tx, last_error, store.ref);
    change(tx, destination, { store: { ...store, last_error } });
  }

  private destination(projectRef: number, tx?: Tx): Destination {
    return this.destinations.get(projectRef, () => {
      // The row may have been written by the current batch, which may fail to commit.
      tx?.onRollback(() => this.destinations.drop(projectRef));
      const chain = this.deps.notary.chain(projectRef, tx);
      const buffered = chain === undefined ? 0 : this.deps.store.bufferedCount(chain.ref);
      return { recent: false, idle: true, store: this.deps.store.storeOf(projectRef), buffered };
    });
  }
}

/** Changes a destination in memory. A rollback of the unit of work undoes it. */
function change(tx: Tx, destination: Destination, to: Partial<Destination>): void {
  const { store, buffered } = destination;
  tx.onRollback(() => Object.assign(destination, { store, buffered }));
  Object.assign(destination, to);
}

/** @throws ApiError `forbidden` at the maximum. */
function assertDestinationCount(count: number): void {
  if (count < DESTINATIONS_PER_PROJECT_MAX) return;
  throw new ApiError(
    "forbidden",
    `The project has had ${DESTINATIONS_PER_PROJECT_MAX} copy destinations, the maximum. You can still change the credentials of the current one; to copy to another destination, use another project.`,
  );
}

function locationOf(store: StoreLocation, sequence: number): string {
  return objectUrl(store, objectKey(store.prefix, sequence));
}

function isSameDestination(left: StoreLocation, right: StoreLocation): boolean {
  return left.endpoint === right.endpoint && left.bucket === right.bucket && left.prefix === right.prefix;
}

/** Returns a storage's fields for the audit log, which masks the secret. */
function auditFields({ endpoint, bucket, region, prefix, ...keys }: NewReceiptStore): Fields {
  const { access_key_id, secret_access_key: secretAccessKey } = keys;
  return {
    endpoint,
    bucket,
    region,
    prefix,
    accessKeyId: masked(access_key_id),
    secretAccessKey,
  };
}

/** Whether the start of a copy is that of a receipt of a chain. */
function isReceiptOf({ publicX }: ChainActor, sequence: number, start: Uint8Array): boolean {
  const text = Buffer.from(start).toString("utf8");
  // The fields before the log; see replaceableBy.
  const end = text.indexOf("}") + 1;
  const fields: unknown = parsedOrNull(`${text.slice(0, end)}}`);
  if (
    !isObject(fields) ||
    fields.sequence_id !== String(sequence) ||
    publicKeyX(fields.public_key) !== publicX
  )
    return false;
  const { signature_valid, chain_link_valid } = checkReceipt(fields, crypto);
  return signature_valid.length === 0 && chain_link_valid.length === 0;
}

function parsedOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The copy of a receipt from before its text was deleted, which begins with the same fields; null if it was not. */
function replaceableBy({ log: _, note: __, redacted_at, ...fields }: Receipt): Replaceable | null {
  if (redacted_at === undefined) return null;
  return {
    start: Buffer.from(`${JSON.stringify(fields).slice(0, -1)},`),
    bytesMax: COPY_BYTES_MAX,
  };
}

function uploadKey({ chainRef, sequence }: Upload): string {
  return `${chainRef}:${sequence}`;
}
