import type { WebhookSecrets } from "../../../kernel/outbound/webhook-secrets.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import { RELAY_RETENTION_MS } from "../domain.ts";
import type { OrderStore } from "./order-store.ts";
import type { EndpointQueue } from "./queue.ts";
import type { EndpointRegistry } from "./registry.ts";
import type { EndpointStore } from "./store.ts";

/** Removes all that is stored of endpoints. */
export class EndpointRemoval {
  constructor(
    private readonly deps: {
      readonly endpoints: EndpointStore;
      readonly orders: OrderStore;
      readonly registry: EndpointRegistry;
      readonly secrets: WebhookSecrets;
      readonly queue: EndpointQueue;
    },
  ) {}

  /** Removes an endpoint without deliveries. */
  remove(tx: Tx, endpointRef: number): void {
    const { secrets, queue, endpoints } = this.deps;
    secrets.forget(tx, endpointRef);
    queue.cancelProbe(tx, endpointRef);
    endpoints.remove(tx, endpointRef);
  }

  /** Removes deleted endpoints without deliveries. @returns the number of rows. */
  purge(tx: Tx, rowsMax: number): number {
    const gone = this.deps.endpoints.deletedBefore(tx.now - RELAY_RETENTION_MS, rowsMax);
    for (const { ref } of gone) this.remove(tx, ref);
    return gone.length;
  }

  /** Removes at most `rowsMax` rows of a deleted project. @returns the number of rows. */
  removeRows(tx: Tx, projectRef: number, rowsMax: number): number {
    const { endpoints, orders, registry } = this.deps;
    let removed = 0;
    for (const { ref } of endpoints.someOfProject(projectRef, rowsMax)) {
      removed += endpoints.removeParked(tx, ref, rowsMax - removed);
      removed += orders.removeOfEndpoint(tx, ref, rowsMax - removed);
      if (removed >= rowsMax) break;
      this.remove(tx, ref);
      removed += 1;
    }
    registry.drop(projectRef);
    return removed;
  }
}
