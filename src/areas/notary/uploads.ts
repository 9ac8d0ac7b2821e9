import { type Actor, ActorRegistry } from "../../kernel/actors/registry.ts";
import type { Fields } from "../../kernel/audit/change.ts";
import { ApiError } from "../../kernel/errors.ts";
import type { CallerProject } from "../../kernel/http/access/caller.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { OutboundClient } from "../../kernel/outbound/client.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Foreseen, LogEntry } from "./chain.ts";
import { assertStorable, masked, objectKey, retryDelayMs } from "./domain.ts";
import { objectUrl, type PutOutcome, putOnce } from "./s3.ts";
import type { Receipt, ReceiptStorage, StorageBody, StorageConfigured } from "./schema.ts";
import type { NotaryService } from "./service.ts";
import type { CopyStore, NewReceiptStore, Place, ReceiptStoreRow } from "./store.ts";

/** Time for the upload that a log request itself waits for. */
export const UPLOAD_AT_ONCE_MS = 2_000;

/**
 * Uploads that log requests wait for at once, all chains together: when a storage hangs, more would only pile up
 * connections. Beyond it a receipt is buffered right away.
 */
export const UPLOADS_AT_ONCE_MAX = 256;

/** The kind of the durable job that uploads what is buffered; one job per project, and its key is the project. */
export const UPLOAD_JOB = "notary.deliver";

/** Projects whose storage is kept in memory, about 1 KB each. */
const DESTINATIONS_IN_MEMORY_MAX = 16_384;

/** A receipt that was appended, and its upload; null without a storage. */
export type Appended = { readonly receipt: Receipt; readonly upload: Upload | null };

/** A receipt that is to be copied to a store. */
export interface Upload {
  readonly projectRef: number;
  readonly chainRef: number;
  readonly sequence: number;
  readonly store: ReceiptStoreRow;
}

/** Where a copy is, as receipts show it. */
export type CopyStatus = Required<Pick<Receipt, "storage_status">> & Pick<Receipt, "storage_location">;

/** The accounts that own projects. */
export interface ProjectOwners {
  /** The reference of a project's account; null once the project has been removed. */
  accountOf(projectRef: number): number | null;
}

/** A project's storage in memory. Its rows hold the same, so it is always idle. */
interface Destination extends Actor {
  store: ReceiptStoreRow | null;
  /** Receipts that wait for their upload. While there are any, there is an upload job. */
  buffered: number;
}

/** What uploads are built on. */
interface UploadDeps extends Pick<Kernel, "vault" | "scheduler" | "ids" | "changes"> {
  readonly notary: NotaryService;
  readonly store: CopyStore;
  readonly outbound: OutboundClient;
  readonly owners: ProjectOwners;
}

/** Copies receipts to the projects' own storages. The notary keeps the receipts themselves in any case. */
export class Uploads {
  private readonly destinations = new ActorRegistry<number, Destination>(DESTINATIONS_IN_MEMORY_MAX);
  /** Uploads whose request still waits: the job leaves these alone. */
  private readonly underWay = new Set<string>();

  constructor(private readonly deps: UploadDeps) {}

  /** @throws ApiError `validation_error` when the configuration shows that nothing can be stored there, or may be. */
  assertUsable(config: StorageBody): void {
    this.deps.outbound.policy.assertUrl("endpoint", config.endpoint, { requireHttps: true });
    assertStorable({ prefix: "", ...config });
  }

  /** Puts a storage in force. What is buffered goes there at once. */
  configure(tx: Tx, project: CallerProject, config: StorageBody): StorageConfigured {
    const destination = this.destination(project.ref, tx);
    const { store: before } = destination;
    const { endpoint, bucket, region, prefix = "" } = config;
    const given: NewReceiptStore = {
      endpoint,
      bucket,
      region,
      prefix,
      access_key_id: config.accessKeyId,
      secret_access_key: this.deps.vault.seal(config.secretAccessKey, sealContext(project.ref)),
    };
    tx.audit({
      summary: `Receipts are copied to the storage bucket ${bucket}`,
      target: { type: "receipt_storage", id: project.id },
      before: before && auditedPlace(before),
      after: auditedPlace(given),
    });
    // With other keys the place is still the same: what is there stays where it is.
    if (before !== null && isSamePlace(before, given))
      this.deps.store.changeKeys(tx, { ...given, ref: before.ref });
    else this.deps.store.addStore(tx, { ...given, project_ref: project.ref, now: tx.now });
    change(tx, destination, { store: this.deps.store.storeOf(project.ref) });
    if (destination.buffered > 0) this.plan(tx, project.ref, tx.now);
    return { success: true, configured: true };
  }

  /** The configuration in force, its secrets masked. @throws ApiError `not_found` without one. */
  view(projectRef: number): ReceiptStorage {
    const { store, buffered } = this.destination(projectRef);
    if (store === null) {
      throw new ApiError(
        "not_found",
        "No storage is configured. Configure one with POST /v1/witness/config.",
      );
    }
    const { endpoint, bucket, region, prefix, access_key_id, last_error } = store;
    return { endpoint, bucket, region, prefix, accessKeyId: masked(access_key_id), buffered, last_error };
  }

  /** Receipts whose copies have not been delivered. */
  buffered(projectRef: number): number {
    return this.destination(projectRef).buffered;
  }

  /** When the oldest of them was made, epoch milliseconds; null when there is none. */
  bufferedSince(projectRef: number): number | null {
    const chain = this.deps.notary.chain(projectRef);
    if (chain === undefined || this.buffered(projectRef) === 0) return null;
    return this.deps.store.bufferedSince({ chainRef: chain.ref }) || null;
  }

  isConfigured(projectRef: number): boolean {
    return this.destination(projectRef).store !== null;
  }

  /**
   * Appends a receipt and, where a storage is configured, buffers its copy. The first one that is buffered starts
   * the upload job, so that a crash from here on delays a copy and loses none.
   *
   * @throws ApiError `conflict` before init.
   */
  append(tx: Tx, projectRef: number, entry: LogEntry, foreseen: Foreseen | null): Appended {
    const { chain, receipt } = this.deps.notary.append(tx, projectRef, entry, foreseen);
    const destination = this.destination(projectRef, tx);
    const { store } = destination;
    if (store === null) return { receipt, upload: null };
    this.deps.store.buffer(tx, chain.ref, chain.sequence);
    if (destination.buffered === 0)
      this.plan(tx, projectRef, tx.now + retryDelayMs(1, this.deps.ids.fraction()));
    change(tx, destination, { buffered: destination.buffered + 1 });
    return { receipt, upload: { projectRef, chainRef: chain.ref, sequence: chain.sequence, store } };
  }

  /** The upload that a log request waits for. */
  async uploadAtOnce({ receipt, upload }: Appended): Promise<PutOutcome> {
    if (upload === null || this.underWay.size >= UPLOADS_AT_ONCE_MAX) {
      return { kind: "unavailable", problem: "too many deliveries were under way" };
    }
    const key = uploadKey(upload);
    this.underWay.add(key);
    try {
      return await this.upload(upload, receipt, UPLOAD_AT_ONCE_MS);
    } finally {
      this.underWay.delete(key);
    }
  }

  /** Whether a log request is uploading this receipt itself. */
  isUnderWay(upload: Upload): boolean {
    return this.underWay.has(uploadKey(upload));
  }

  /** Tries once to copy a receipt. */
  upload({ projectRef, sequence, store }: Upload, receipt: Receipt, timeoutMs: number): Promise<PutOutcome> {
    const { endpoint, bucket: name, region, access_key_id: accessKeyId } = store;
    const secretAccessKey = this.deps.vault.open(store.secret_access_key, sealContext(projectRef));
    const account = this.deps.owners.accountOf(projectRef);
    const bucket = { account, endpoint, bucket: name, region, accessKeyId, secretAccessKey };
    const body = Buffer.from(JSON.stringify(receipt));
    return putOnce(this.deps.outbound, bucket, objectKey(store.prefix, sequence), body, timeoutMs);
  }

  /** Records what became of an upload. Returns where its receipt's copy is now. */
  record(tx: Tx, upload: Upload, outcome: PutOutcome): CopyStatus {
    const { projectRef, chainRef, sequence, store } = upload;
    const destination = this.destination(projectRef, tx);
    this.deps.changes.inProject(tx, projectRef, "witness", String(sequence));
    if (outcome.kind !== "stored") {
      // The error of a store that has been replaced meanwhile no longer matters.
      if (destination.store?.ref === store.ref) this.setError(tx, destination, outcome.problem);
      return { storage_status: "buffered" };
    }
    if (this.deps.store.setDelivered(tx, store.ref, chainRef, sequence) > 0)
      change(tx, destination, { buffered: destination.buffered - 1 });
    if (destination.buffered === 0) this.setError(tx, destination, null);
    return { storage_status: "delivered", storage_location: locationOf(store, sequence) };
  }

  /** A receipt, with where its copy is. */
  withStatus(projectRef: number, receipt: Receipt): Receipt {
    const chain = this.isConfigured(projectRef) ? this.deps.notary.chain(projectRef) : undefined;
    if (chain === undefined) return receipt;
    const sequence = Number(receipt.sequence_id);
    const copy = this.deps.store.copy(chain.ref, sequence);
    if (copy === null) return receipt;
    if (copy.endpoint === null) return { ...receipt, storage_status: "buffered" };
    return { ...receipt, storage_status: "delivered", storage_location: locationOf(copy, sequence) };
  }

  /** Receipts that wait for their upload. */
  bufferedOf(projectRef: number): number {
    return this.destination(projectRef).buffered;
  }

  /** The next receipts of a project that are to be uploaded, after a position. */
  due(projectRef: number, after: number, limit: number): Upload[] {
    const chain = this.deps.notary.chain(projectRef);
    const { store } = this.destination(projectRef);
    if (chain === undefined || store === null) return [];
    const { ref: chainRef } = chain;
    return this.deps.store
      .buffered(chainRef, after, limit)
      .map(({ sequence }) => ({ projectRef, chainRef, sequence, store }));
  }

  /** A deleted project's uploads stop at once. */
  stop(tx: Tx, projectRef: number): void {
    this.deps.scheduler.cancel(tx, UPLOAD_JOB, String(projectRef));
  }

  /** Removes at most `rowsMax` rows of a project: its receipts, their copies, its chain, its stores. Returns how many. */
  remove(tx: Tx, projectRef: number, rowsMax: number): number {
    // Should this be taken back, it is read again.
    this.destinations.drop(projectRef);
    const chain = this.deps.notary.chain(projectRef, tx);
    let removed = chain === undefined ? 0 : this.deps.store.removeCopies(tx, chain.ref, rowsMax);
    if (removed < rowsMax) removed += this.deps.notary.remove(tx, projectRef, rowsMax - removed);
    if (removed < rowsMax) removed += this.deps.store.removeStores(tx, projectRef, rowsMax - removed);
    return removed;
  }

  private plan(tx: Tx, projectRef: number, dueAt: number): void {
    this.deps.scheduler.enqueue(tx, UPLOAD_JOB, String(projectRef), dueAt, { after: 0, failures: 0 });
  }

  private setError(tx: Tx, destination: Destination, last_error: string | null): void {
    const { store } = destination;
    if (store === null || store.last_error === last_error) return;
    this.deps.store.setLastError(tx, last_error, store.ref);
    change(tx, destination, { store: { ...store, last_error } });
  }

  private destination(projectRef: number, tx?: Tx): Destination {
    return this.destinations.get(projectRef, () => {
      // What a unit of work reads may have been written by its own batch, which may fail to commit.
      tx?.onRollback(() => this.destinations.drop(projectRef));
      const chain = this.deps.notary.chain(projectRef, tx);
      const buffered = chain === undefined ? 0 : this.deps.store.bufferedCount(chain.ref);
      return { recent: false, idle: true, store: this.deps.store.storeOf(projectRef), buffered };
    });
  }
}

/** Changes a destination in memory, until the unit of work is taken back. */
function change(tx: Tx, destination: Destination, to: Partial<Destination>): void {
  const { store, buffered } = destination;
  tx.onRollback(() => Object.assign(destination, { store, buffered }));
  Object.assign(destination, to);
}

function locationOf(store: Place, sequence: number): string {
  return objectUrl(store, objectKey(store.prefix, sequence));
}

function isSamePlace(one: Place, other: Place): boolean {
  return one.endpoint === other.endpoint && one.bucket === other.bucket && one.prefix === other.prefix;
}

/** A storage as the audit log is told of it, which takes out the secret. */
function auditedPlace({ endpoint, bucket, region, prefix, ...keys }: NewReceiptStore): Fields {
  const { access_key_id, secret_access_key: secretAccessKey } = keys;
  return { endpoint, bucket, region, prefix, accessKeyId: masked(access_key_id), secretAccessKey };
}

function uploadKey({ chainRef, sequence }: Upload): string {
  return `${chainRef}:${sequence}`;
}

function sealContext(projectRef: number): string {
  return `receipt-store:${projectRef}`;
}
