import { type Actor, ActorRegistry } from "../../kernel/actors/registry.ts";
import { ApiError } from "../../kernel/errors.ts";
import type { CallerProject } from "../../kernel/http/caller.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { TargetPolicy } from "../../kernel/outbound/target.ts";
import type { Scheduler } from "../../kernel/scheduler/scheduler.ts";
import type { Vault } from "../../kernel/secrets/vault.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import type { Receipt } from "../../verify/receipt.ts";
import { assertStorable, masked, objectKey, retryDelayMs } from "./domain.ts";
import type { LogEntry } from "./log-entry.ts";
import type { ProjectOwners } from "./ports.ts";
import { objectUrl, type PutOutcome, type S3Client } from "./s3.ts";
import type { NotaryService } from "./service.ts";
import type { CopyStore, NewReceiptStore, ReceiptStoreRow } from "./store-copies.ts";

/** Time for the delivery that a log request itself waits for; a later one is made in the background. */
export const DELIVER_AT_ONCE_MS = 2_000;

/**
 * Deliveries that log requests wait for at once, all chains together: when a storage hangs, more would only pile up
 * connections. Beyond it a receipt is buffered right away.
 */
export const DELIVERIES_AT_ONCE_MAX = 256;

/** The kind of the durable job that delivers what is buffered; one job per project, and its key is the project. */
export const DELIVERY_JOB = "notary.deliver";

/** Projects whose storage is kept in memory, about 1 KB each. */
const DESTINATIONS_IN_MEMORY_MAX = 16_384;

/** A storage configuration as it is handed in. */
export interface StorageConfig {
  readonly endpoint: string;
  readonly bucket: string;
  readonly region: string;
  readonly prefix?: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** A receipt that was appended, and the delivery that it is due. */
export interface Appended {
  readonly receipt: Receipt;
  /** Null without a storage. */
  readonly delivery: Delivery | null;
}

/** A receipt that is to be copied to a store. */
export interface Delivery {
  readonly projectRef: number;
  readonly chainRef: number;
  readonly sequence: number;
  readonly store: ReceiptStoreRow;
}

/** Where a copy stands, as receipts show it. */
export interface CopyStatus {
  readonly storage_status: "delivered" | "buffered";
  readonly storage_location?: string;
}

/** A project's storage in memory. */
class DestinationActor implements Actor {
  recent = false;
  readonly idle = true;

  constructor(
    public store: ReceiptStoreRow | null,
    /** Receipts that wait for their delivery. While there are any, there is a delivery job. */
    public buffered: number,
  ) {}
}

/** Copies of receipts in the projects' own storages. The receipts themselves are the notary's, in any case. */
export class ReceiptCopies {
  private readonly notary: NotaryService;
  private readonly store: CopyStore;
  private readonly vault: Vault;
  private readonly scheduler: Scheduler;
  private readonly ids: Ids;
  private readonly client: S3Client;
  private readonly policy: TargetPolicy;
  private readonly owners: ProjectOwners;
  private readonly destinations = new ActorRegistry<number, DestinationActor>(DESTINATIONS_IN_MEMORY_MAX);
  /** Deliveries whose request still waits: the job leaves these alone. */
  private readonly underWay = new Set<string>();

  constructor(deps: {
    notary: NotaryService;
    store: CopyStore;
    vault: Vault;
    scheduler: Scheduler;
    ids: Ids;
    client: S3Client;
    policy: TargetPolicy;
    owners: ProjectOwners;
  }) {
    this.notary = deps.notary;
    this.store = deps.store;
    this.vault = deps.vault;
    this.scheduler = deps.scheduler;
    this.ids = deps.ids;
    this.client = deps.client;
    this.policy = deps.policy;
    this.owners = deps.owners;
  }

  /** @throws ApiError `validation_error` when the configuration shows that nothing may or can be stored there. */
  assertUsable(config: StorageConfig): void {
    this.policy.assertUrl("endpoint", config.endpoint, { requireHttps: true });
    assertStorable({ endpoint: config.endpoint, bucket: config.bucket, prefix: config.prefix ?? "" });
  }

  /** Puts a storage in force. What is buffered goes there, at once. */
  configure(tx: Tx, project: CallerProject, config: StorageConfig): void {
    const destination = this.destination(project.ref, tx);
    const { store: before } = destination;
    const given: NewReceiptStore = {
      endpoint: config.endpoint,
      bucket: config.bucket,
      region: config.region,
      prefix: config.prefix ?? "",
      access_key_id: config.accessKeyId,
      secret_access_key: this.vault.seal(config.secretAccessKey, sealContext(project.ref)),
    };
    // Other keys to the same place are no other place: what lies there stays where it is.
    if (before !== null && isSamePlace(before, given)) this.store.changeKeys(tx, before.ref, given);
    else this.store.addStore(tx, project.ref, given);
    tx.onRollback(() => {
      destination.store = before;
    });
    destination.store = this.store.storeOf(project.ref);
    if (destination.buffered > 0) this.plan(tx, project.ref, tx.now);
  }

  /** The configuration in force, its secrets masked. @throws ApiError `not_found` when there is none. */
  view(projectRef: number): object {
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

  isConfigured(projectRef: number): boolean {
    return this.destination(projectRef).store !== null;
  }

  /**
   * Appends a receipt and, where a storage is configured, buffers its copy. The first one that is buffered brings the
   * delivery job into being, so that a crash at any moment from here on delays a copy and loses none.
   *
   * @throws ApiError `conflict` before init.
   */
  append(tx: Tx, projectRef: number, entry: LogEntry): Appended {
    const { chain, receipt } = this.notary.append(tx, projectRef, entry);
    const destination = this.destination(projectRef, tx);
    const { store } = destination;
    if (store === null) return { receipt, delivery: null };
    this.store.buffer(tx, chain.ref, chain.sequence);
    if (destination.buffered === 0) this.plan(tx, projectRef, tx.now + retryDelayMs(1, this.ids.fraction()));
    countBuffered(tx, destination, 1);
    return { receipt, delivery: { projectRef, chainRef: chain.ref, sequence: chain.sequence, store } };
  }

  /** The delivery that a log request waits for. */
  async deliverAtOnce({ receipt, delivery }: Appended): Promise<PutOutcome> {
    if (delivery === null || this.underWay.size >= DELIVERIES_AT_ONCE_MAX) {
      return { kind: "unavailable", problem: "too many deliveries were under way" };
    }
    const key = deliveryKey(delivery);
    this.underWay.add(key);
    try {
      return await this.deliver(delivery, receipt, DELIVER_AT_ONCE_MS);
    } finally {
      this.underWay.delete(key);
    }
  }

  /** Whether a log request is just delivering this receipt itself. */
  isUnderWay(delivery: Delivery): boolean {
    return this.underWay.has(deliveryKey(delivery));
  }

  /** Tries once to copy a receipt. */
  deliver(
    { projectRef, sequence, store }: Delivery,
    receipt: Receipt,
    timeoutMs: number,
  ): Promise<PutOutcome> {
    const bucket = {
      account: this.owners.accountOf(projectRef),
      endpoint: store.endpoint,
      bucket: store.bucket,
      region: store.region,
      accessKeyId: store.access_key_id,
      secretAccessKey: this.vault.open(store.secret_access_key, sealContext(projectRef)),
    };
    const body = Buffer.from(JSON.stringify(receipt));
    return this.client.putOnce(bucket, objectKey(store.prefix, sequence), body, timeoutMs);
  }

  /** Records what became of a delivery, and returns where its receipt stands now. */
  record(tx: Tx, delivery: Delivery, outcome: PutOutcome): CopyStatus {
    const { projectRef, chainRef, sequence, store } = delivery;
    const destination = this.destination(projectRef, tx);
    if (outcome.kind !== "stored") {
      // A store that has been replaced meanwhile has nothing more to report.
      if (destination.store?.ref === store.ref) this.setError(tx, destination, outcome.problem);
      return { storage_status: "buffered" };
    }
    if (this.store.setDelivered(tx, chainRef, sequence, store.ref)) countBuffered(tx, destination, -1);
    if (destination.buffered === 0) this.setError(tx, destination, null);
    return { storage_status: "delivered", storage_location: locationOf(store, sequence) };
  }

  /** A receipt with where its copy stands, as it is shown. */
  withStatus(projectRef: number, receipt: Receipt): Receipt & Partial<CopyStatus> {
    const chain = this.isConfigured(projectRef) ? this.notary.chain(projectRef) : undefined;
    if (chain === undefined) return receipt;
    const sequence = Number(receipt.sequence_id);
    const copy = this.store.copy(chain.ref, sequence);
    if (copy === null) return receipt;
    const { endpoint, bucket, prefix } = copy;
    if (endpoint === null || bucket === null || prefix === null)
      return { ...receipt, storage_status: "buffered" };
    const storage_location = locationOf({ endpoint, bucket, prefix }, sequence);
    return { ...receipt, storage_status: "delivered", storage_location };
  }

  /** Receipts that wait for their delivery. */
  bufferedOf(projectRef: number): number {
    return this.destination(projectRef).buffered;
  }

  /** The next receipts of a project that are to be delivered, after a position. */
  due(projectRef: number, after: number, limit: number): Delivery[] {
    const chain = this.notary.chain(projectRef);
    const { store } = this.destination(projectRef);
    if (chain === undefined || store === null) return [];
    const { ref: chainRef } = chain;
    return this.store
      .buffered(chainRef, after, limit)
      .map((sequence) => ({ projectRef, chainRef, sequence, store }));
  }

  /** A deleted project's deliveries stop at once. */
  stop(tx: Tx, projectRef: number): void {
    this.scheduler.cancel(tx, DELIVERY_JOB, String(projectRef));
  }

  /** Removes at most `rowsMax` rows of a project: its receipts, their copies, its chain, its stores. Returns how many. */
  remove(tx: Tx, projectRef: number, rowsMax: number): number {
    // Also when this is taken back: then it is read again.
    this.destinations.drop(projectRef);
    const chain = this.notary.chain(projectRef, tx);
    let removed = chain === undefined ? 0 : this.store.removeCopies(tx, chain.ref, rowsMax);
    if (removed < rowsMax) removed += this.notary.remove(tx, projectRef, rowsMax - removed);
    if (removed < rowsMax) removed += this.store.removeStores(tx, projectRef, rowsMax - removed);
    return removed;
  }

  private plan(tx: Tx, projectRef: number, dueAt: number): void {
    this.scheduler.enqueue(tx, DELIVERY_JOB, String(projectRef), dueAt, { after: 0, failures: 0 });
  }

  private setError(tx: Tx, destination: DestinationActor, error: string | null): void {
    const { store } = destination;
    if (store === null || store.last_error === error) return;
    this.store.setLastError(tx, store.ref, error);
    tx.onRollback(() => {
      destination.store = store;
    });
    destination.store = { ...store, last_error: error };
  }

  private destination(projectRef: number, tx?: Tx): DestinationActor {
    return this.destinations.get(projectRef, () => {
      // Read inside a unit of work, it may hold what that unit's batch wrote and does not commit after all.
      tx?.onRollback(() => this.destinations.drop(projectRef));
      const chain = this.notary.chain(projectRef, tx);
      const buffered = chain === undefined ? 0 : this.store.bufferedCount(chain.ref);
      return new DestinationActor(this.store.storeOf(projectRef), buffered);
    });
  }
}

function countBuffered(tx: Tx, destination: DestinationActor, by: 1 | -1): void {
  destination.buffered += by;
  tx.onRollback(() => {
    destination.buffered -= by;
  });
}

function locationOf(
  store: Pick<ReceiptStoreRow, "endpoint" | "bucket" | "prefix">,
  sequence: number,
): string {
  return objectUrl(store, objectKey(store.prefix, sequence));
}

function isSamePlace(one: ReceiptStoreRow, other: NewReceiptStore): boolean {
  return one.endpoint === other.endpoint && one.bucket === other.bucket && one.prefix === other.prefix;
}

function deliveryKey({ chainRef, sequence }: Delivery): string {
  return `${chainRef}:${sequence}`;
}

function sealContext(projectRef: number): string {
  return `receipt-store:${projectRef}`;
}
