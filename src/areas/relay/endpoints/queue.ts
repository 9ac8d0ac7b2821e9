import type { Kernel } from "../../../kernel/kernel.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import type { DeliveryJob } from "../deliveries/destination.ts";
import { DELIVER } from "../domain.ts";
import { PACE_AHEAD_MS } from "./breaker.ts";
import { type Endpoint, type EndpointRegistry, mustPark } from "./registry.ts";
import { CLOSED, DISABLED, type EndpointStore, LIVE, OPEN, PROBING } from "./store.ts";

/** Job that ends the pending deliveries of a disabled or deleted endpoint. */
export const END = "relay.endpoint.end";
/** Job that sends the parked deliveries of an endpoint, in the order in which they were accepted. */
const RELEASE = "relay.endpoint.release";
/** Job of an endpoint with an open breaker: sends its oldest parked delivery as a probe. */
const PROBE = "relay.endpoint.probe";
const CONCURRENT_JOBS = 4;
/** Deliveries in one unit of work of `END` or `RELEASE`: a millisecond or two. */
export const SLICE = 200;

/**
 * The pending deliveries of endpoints. A due delivery is parked while its endpoint accepts none: it is stored in
 * `relay_parked` without a job, and sent in the order of acceptance when the endpoint accepts deliveries again.
 */
export class EndpointQueue {
  constructor(
    private readonly deps: Pick<Kernel, "scheduler"> & {
      readonly endpoints: EndpointStore;
      readonly registry: EndpointRegistry;
    },
  ) {
    const { scheduler } = deps;
    scheduler.register(PROBE, {
      concurrency: CONCURRENT_JOBS,
      run: async ({ key }) => ({ record: (tx) => this.sendProbe(tx, Number(key)) }),
    });
    scheduler.register(RELEASE, {
      concurrency: CONCURRENT_JOBS,
      run: async ({ key }) => ({ record: (tx) => this.release(tx, Number(key)) }),
    });
  }

  /** Creates the job of a delivery, or parks it behind those that are parked already. */
  enqueue(tx: Tx, endpoint: Endpoint, ref: number, dueAt: number): void {
    if (dueAt <= tx.now && mustPark(endpoint)) this.park(tx, endpoint, ref);
    else {
      const job = dueAt <= tx.now ? ref : ({ ref, begun: dueAt } satisfies DeliveryJob);
      this.deps.scheduler.enqueueAnonymous(tx, DELIVER, dueAt, job, endpoint.lane);
    }
  }

  /** The same for an endpoint that may be deleted: then the job ends the delivery. */
  enqueueFor(tx: Tx, endpoint: Endpoint | null, ref: number, dueAt: number): void {
    if (endpoint === null) this.deps.scheduler.enqueueAnonymous(tx, DELIVER, tx.now, ref);
    else this.enqueue(tx, endpoint, ref, dueAt);
  }

  /** Parks a delivery, unless its endpoint accepts deliveries again, or was disabled, in the meantime. */
  parkUnlessReady(tx: Tx, endpointRef: number, ref: number, { probe }: DeliveryJob): void {
    if (probe !== undefined) this.replaceProbe(tx, endpointRef);
    const endpoint = this.deps.registry.get(endpointRef);
    const isDisabled = endpoint?.health.state === DISABLED;
    this.enqueueFor(tx, isDisabled ? null : endpoint, ref, tx.now);
  }

  /** Parks a delivery that gets no token of its endpoint's rate soon: parked deliveries are sent at that rate. */
  parkForRate(tx: Tx, endpointRef: number, ref: number, job: DeliveryJob): void {
    const endpoint = this.deps.registry.get(endpointRef);
    if (endpoint === null || mustPark(endpoint)) {
      this.parkUnlessReady(tx, endpointRef, ref, job);
      return;
    }
    this.park(tx, endpoint, ref);
    this.releaseAt(tx, endpointRef, tx.now + PACE_AHEAD_MS);
  }

  /** Blocks the other deliveries of an ordered endpoint until the retry of this one. */
  block(tx: Tx, endpoint: Endpoint, ref: number): void {
    this.deps.registry.setHealth(tx, endpoint, { retrying_ref: ref });
  }

  /** Ends the block: the delivery is finished, or parked with the others. */
  unblock(tx: Tx, endpoint: Endpoint, ref: number): void {
    if (endpoint.health.retrying_ref !== ref) return;
    this.deps.registry.setHealth(tx, endpoint, { retrying_ref: null });
    this.stateChanged(tx, endpoint.row.ref);
  }

  /** Starts the job that sends or ends the pending deliveries of an endpoint, according to its state. */
  stateChanged(tx: Tx, endpointRef: number): void {
    const endpoint = this.deps.registry.get(endpointRef);
    const isEnded = endpoint === null || endpoint.health.state === DISABLED;
    if (isEnded) this.deps.scheduler.enqueue(tx, END, String(endpointRef), tx.now, 0);
    else if (endpoint.health.holds === 1) this.releaseAt(tx, endpointRef, tx.now);
  }

  /** Sends the oldest parked delivery of an endpoint with an open breaker at this time, as a probe. */
  probeAt(tx: Tx, endpoint: Endpoint, time: number): void {
    this.deps.registry.setHealth(tx, endpoint, { next_probe_at: time });
    this.deps.scheduler.enqueue(tx, PROBE, String(endpoint.row.ref), time, null);
  }

  cancelProbe(tx: Tx, endpointRef: number): void {
    this.deps.scheduler.cancel(tx, PROBE, String(endpointRef));
  }

  /** The delivery chosen as the probe was finished without an attempt: another one replaces it. */
  replaceProbe(tx: Tx, endpointRef: number): void {
    const endpoint = this.deps.registry.get(endpointRef);
    if (endpoint?.health.breaker !== PROBING) return;
    this.deps.registry.setHealth(tx, endpoint, { breaker: OPEN });
    if (endpoint.health.state === LIVE) this.probeAt(tx, endpoint, tx.now);
  }

  /** Parks a due delivery, without a job, until the endpoint accepts deliveries again. */
  private park(tx: Tx, endpoint: Endpoint, ref: number): void {
    const { endpoints, registry } = this.deps;
    endpoints.park(tx, endpoint.row.ref, ref);
    if (endpoint.health.holds === 0) registry.setHealth(tx, endpoint, { holds: 1 });
    this.unblock(tx, endpoint, ref);
    // A probe is due, but no delivery was available for it.
    const { breaker, next_probe_at, state } = endpoint.health;
    if (state === LIVE && breaker === OPEN && next_probe_at === null) this.probeAt(tx, endpoint, tx.now);
  }

  private releaseAt(tx: Tx, endpointRef: number, time: number): void {
    this.deps.scheduler.enqueue(tx, RELEASE, String(endpointRef), time, null);
  }

  private release(tx: Tx, endpointRef: number): void {
    const { registry, endpoints, scheduler } = this.deps;
    const endpoint = registry.get(endpointRef);
    if (endpoint === null || !acceptsAll(endpoint)) return;
    const { max_per_second: rate } = endpoint.terms;
    const most = Math.min(SLICE, rate ?? SLICE);
    const parked = endpoints.unpark(tx, endpointRef, most);
    for (const { ref } of parked) scheduler.enqueueAnonymous(tx, DELIVER, tx.now, ref, endpoint.lane);
    const pauseMs = rate === null ? 0 : Math.ceil((most * 1_000) / rate);
    if (parked.length < most) registry.setHealth(tx, endpoint, { holds: 0 });
    else this.releaseAt(tx, endpointRef, tx.now + pauseMs);
  }

  private sendProbe(tx: Tx, endpointRef: number): void {
    const { registry, endpoints, scheduler } = this.deps;
    const endpoint = registry.get(endpointRef);
    if (endpoint === null || endpoint.health.state !== LIVE || endpoint.health.breaker !== OPEN) return;
    const [oldest] = endpoints.unpark(tx, endpointRef, 1);
    if (oldest === undefined) {
      registry.setHealth(tx, endpoint, { next_probe_at: null, holds: 0 });
      return;
    }
    registry.setHealth(tx, endpoint, { breaker: PROBING, next_probe_at: null });
    const job = { ref: oldest.ref, probe: endpointRef } satisfies DeliveryJob;
    scheduler.enqueueAnonymous(tx, DELIVER, tx.now, job, endpoint.lane);
  }
}

/** Whether an endpoint accepts all due deliveries. */
function acceptsAll({ health: { state, breaker, retrying_ref } }: Endpoint): boolean {
  return state === LIVE && breaker === CLOSED && retrying_ref === null;
}
