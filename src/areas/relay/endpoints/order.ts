import { createHash } from "node:crypto";
import { isExactNumber } from "../../../json-text.ts";
import { slices } from "../../../kernel/background/time-slices.ts";
import { memberAt, pointerSteps } from "../../../kernel/data/json-pointer.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { HEAD, HELD, LATER, type OrderRow, type OrderStore, PASSED } from "./order-store.ts";
import type { EndpointQueue } from "./queue.ts";
import { type Endpoint, type EndpointRegistry, isEnabled, isOrdered } from "./registry.ts";
import { ORDER_KEY_LENGTH_MAX } from "./schema.ts";

/** Job that ends the time for which a delivery holds the others of its key. */
const WAIT = "relay.order.wait";
const CONCURRENT_JOBS = 4;

/** A delivery whose order is kept. */
interface Accepted {
  readonly ref: number;
  /** Epoch milliseconds. */
  readonly dueAt: number;
  /** Null for a delivery without an order. */
  readonly key: string | null;
}

/**
 * The order of deliveries by key: those of one endpoint and key are sent one after another. A held delivery has no job. The first
 * one, the head, holds the others until it is finished, or until `order_wait_ms` after its first attempt.
 */
export class EndpointOrder {
  constructor(
    private readonly deps: Pick<Kernel, "scheduler"> & {
      readonly orders: OrderStore;
      readonly registry: EndpointRegistry;
      readonly queue: EndpointQueue;
    },
  ) {
    deps.scheduler.register(WAIT, {
      concurrency: CONCURRENT_JOBS,
      run: async ({ key }) => ({ record: (tx) => this.pass(tx, Number(key)) }),
    });
  }

  /** Creates the job of a delivery to an endpoint, which is null if it is deleted or disabled, or holds the delivery behind those of its key. */
  accept(tx: Tx, endpoint: Endpoint | null, { ref, dueAt, key }: Accepted): void {
    const { orders, queue } = this.deps;
    // An endpoint that receives one at a time is ordered anyway.
    if (endpoint === null || key === null || isOrdered(endpoint)) {
      queue.enqueueFor(tx, endpoint, ref, dueAt);
      return;
    }
    const row = { endpointRef: endpoint.row.ref, order_key: key, ref };
    if (dueAt <= tx.now) this.append(tx, endpoint, row);
    else {
      // It takes its place when it is due.
      orders.insert(tx, { ...row, state: LATER });
      queue.enqueue(tx, endpoint, ref, dueAt);
    }
  }

  /** Whether a delivery that was created for later must take its place now, by {@link takePlace}. */
  isLater(ref: number): boolean {
    return this.deps.orders.find(ref)?.state === LATER;
  }

  /** Appends a delivery that was created for later to those of its key. */
  takePlace(tx: Tx, ref: number): void {
    const row = this.deps.orders.find(ref);
    if (row?.state !== LATER) return;
    this.deps.orders.remove(tx, ref);
    const endpoint = this.deps.registry.get(row.endpointRef);
    if (endpoint === null) this.deps.queue.enqueueFor(tx, null, ref, tx.now);
    else this.append(tx, endpoint, row);
  }

  /** Called after a failed attempt that will be retried: after the first one, the time begins for which it holds the others. */
  retried(tx: Tx, { row: { ref: endpointRef }, terms }: Endpoint, ref: number, startedAt: number): void {
    const row = this.deps.orders.find(ref);
    if (row?.state !== HEAD || row.endpointRef !== endpointRef) return;
    const at = Math.max(tx.now, startedAt + terms.order_wait_ms);
    this.deps.scheduler.enqueue(tx, WAIT, String(ref), at, null);
  }

  /** Called when a delivery is finished: the next one of its key is sent. */
  finished(tx: Tx, ref: number): void {
    const { orders, scheduler } = this.deps;
    const row = orders.find(ref);
    if (row === null) return;
    orders.remove(tx, ref);
    if (row.state !== HEAD) return;
    scheduler.cancel(tx, WAIT, String(ref));
    this.sendNext(tx, row);
  }

  private append(tx: Tx, endpoint: Endpoint, row: Pick<OrderRow, "endpointRef" | "order_key" | "ref">): void {
    const { orders, queue } = this.deps;
    const { endpointRef, order_key, ref } = row;
    const isHeld = orders.isHeld(endpointRef, order_key) === 1;
    orders.insert(tx, { endpointRef, order_key, ref, state: isHeld ? HELD : HEAD });
    if (!isHeld) queue.enqueue(tx, endpoint, ref, tx.now);
  }

  private pass(tx: Tx, ref: number): void {
    const row = this.deps.orders.find(ref);
    if (row?.state !== HEAD) return;
    this.deps.orders.setState(tx, PASSED, row.position);
    this.sendNext(tx, row);
  }

  private sendNext(tx: Tx, { endpointRef, order_key }: OrderRow): void {
    const { orders, registry, queue } = this.deps;
    const next = orders.nextHeld(endpointRef, order_key);
    if (next === null) return;
    orders.setState(tx, HEAD, next.position);
    const endpoint = registry.get(endpointRef);
    queue.enqueueFor(tx, isEnabled(endpoint) ? endpoint : null, next.ref, tx.now);
  }
}

/** What the order key of a delivery is read from. */
interface Keyed {
  /** The key that its message was sent with. */
  readonly explicit: string | null;
  /**
   * The payload or body, parsed; undefined when it is not stored any more, or is not JSON. Parsing a large one takes long: the
   * deliveries of one message or event share it, and where there may be many, it is parsed before their unit of work.
   */
  readonly value: () => unknown;
}

/** Whether the order key of a delivery to an endpoint is read from its payload or body. */
export function readsOrderKey({ terms: { order_by } }: Endpoint, explicit: string | null): boolean {
  return explicit === null && order_by !== null;
}

/** The order key of a delivery: the message's, or the text or number at `order_by`; null without an order. */
export function orderKeyOf({ terms: { order_by } }: Endpoint, { explicit, value }: Keyed): string | null {
  if (explicit !== null) return explicit;
  const steps = order_by === null ? null : pointerSteps(order_by);
  return steps === null ? null : keyText(memberAt(value(), steps));
}

/** The same, before a unit of work: parsing a large payload takes long, and has a slice of the event loop of its own. */
export async function readOrderKey(endpoint: Endpoint, keyed: Keyed): Promise<string | null> {
  if (readsOrderKey(endpoint, keyed.explicit)) {
    await slices.next();
    keyed.value();
    await slices.next();
  }
  return orderKeyOf(endpoint, keyed);
}

function keyText(value: unknown): string | null {
  if (typeof value === "number") return String(value);
  if (isExactNumber(value)) return shortened(value.rawJSON);
  return typeof value === "string" ? shortened(value) : null;
}

/** A long text is compared by its hash. */
function shortened(text: string): string {
  return text.length <= ORDER_KEY_LENGTH_MAX ? text : createHash("sha256").update(text).digest("hex");
}
