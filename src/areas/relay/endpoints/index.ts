import type { Caller, CallerAccount, Charger } from "../../../kernel/callers/caller.ts";
import type { Api } from "../../../kernel/http/api.ts";
import type { Kernel } from "../../../kernel/kernel.ts";
import type { Tiers } from "../../../kernel/limits/tiers.ts";
import type { Outbox } from "../../../kernel/mail/outbox.ts";
import type { TargetPolicy } from "../../../kernel/outbound/target.ts";
import { WebhookSecrets } from "../../../kernel/outbound/webhook-secrets.ts";
import type { StoppedProjects } from "../../../kernel/projects/stopped-projects.ts";
import type { Tx } from "../../../kernel/storage/tx.ts";
import type { DeliveryCounts } from "../deliveries/counts.ts";
import type { RelayStore } from "../deliveries/store.ts";
import { RELAY_RETENTION_MS } from "../domain.ts";
import { FanOut } from "../messages/fan-out.ts";
import { MessageResends } from "../messages/message-resends.ts";
import { Messages } from "../messages/messages.ts";
import { MessageRequests } from "../messages/requests.ts";
import { messageRoutes } from "../messages/routes.ts";
import { messageStore } from "../messages/store.ts";
import { EndpointDispatch } from "./dispatch.ts";
import { Endpoints } from "./endpoints.ts";
import type { EventSource } from "./event-source.ts";
import { EventDeliveries } from "./events.ts";
import { EndpointHealth } from "./health.ts";
import { EndpointRegistry } from "./registry.ts";
import { endpointRoutes } from "./routes.ts";
import { endpointStore } from "./store.ts";

/** Parts of the server that endpoints depend on. */
export interface EndpointPorts {
  readonly charger: Charger;
  readonly accounts: { account(accountRef: number): CallerAccount };
  readonly tiers: Tiers;
  readonly outbox: Outbox;
  readonly emailOf: (accountRef: number) => string | null;
  readonly settings: { readonly breakerFailures: number; readonly payloadRetentionMs: number };
  /** Receives the events that are delivered to endpoints. */
  readonly source: EventSource;
}

/** Parts of the area that endpoints depend on. */
interface AreaParts {
  readonly store: RelayStore;
  readonly counts: DeliveryCounts;
  readonly policy: TargetPolicy;
  readonly isInFlight: (ref: number) => boolean;
  readonly stopped: StoppedProjects;
  /** Reserves references of new deliveries. */
  readonly newIds: (count: number) => { first: number; uuid: string };
  /** The id of a delivery, by its reference. */
  readonly idOf: (uuid: string, ref: number) => string;
  /** The id of the resend that recovers an endpoint, if the caller may read it; null without one. */
  readonly recoveryOf: (caller: Caller, endpointRef: number) => string | null;
}

/** Messages in one slice of the purge: each may have a thousand deliveries to check. */
const MESSAGES_PURGED_MAX = 50;

/** Builds endpoints and messages. */
export function createEndpoints(kernel: Kernel, ports: EndpointPorts, parts: AreaParts) {
  const { settings } = ports;
  const rows = endpointStore(kernel.db);
  const messageRows = messageStore(kernel.db);
  const registry = new EndpointRegistry({ ...kernel, store: rows });
  const secrets = new WebhookSecrets(kernel, "relay_endpoint_secrets");
  const stateChanged = (tx: Tx, endpointRef: number): void => dispatch.stateChanged(tx, endpointRef);
  const common = { ...kernel, ...ports, ...settings, ...parts, registry, secrets };
  const health = new EndpointHealth({
    ...common,
    endpoints: rows,
    stateChanged,
    notice: (tx, about, type, data) => messages.notice(tx, about.row, type, data, about),
  });
  const dispatch = new EndpointDispatch({ ...common, endpoints: rows, messages: messageRows, health });
  const events = new EventDeliveries({ ...common, dispatch });
  const fanOut = new FanOut({ ...common, endpoints: rows, messages: messageRows, dispatch });
  const messages = new Messages({ ...common, messages: messageRows, dispatch, fanOut });
  const requests = new MessageRequests({ ...common, messages, rows: messageRows, fanOut });
  const resends = new MessageResends({ ...common, messages });
  const removeRow = (tx: Tx, endpointRef: number): void => {
    secrets.forget(tx, endpointRef);
    health.forget(tx, endpointRef);
    rows.remove(tx, endpointRef);
  };
  const endpoints = new Endpoints({ ...common, endpoints: rows, messages, stateChanged, removeRow });
  kernel.housekeeping.addPurge({
    name: "relay.messages.purge",
    rowsMax: MESSAGES_PURGED_MAX,
    remove: (tx, rowsMax) => messages.purge(tx, rowsMax),
  });
  return {
    /** Opens a stored signing secret. */
    openSecret: (ownerRef: number, number: number, sealed: Uint8Array) =>
      secrets.openStored(ownerRef, number, sealed),
    dispatch,
    events,
    messages,
    messageRows,
    registry,
    endpoints,
    routes: (api: Api) =>
      [endpointRoutes(api, endpoints), messageRoutes(api, messages, requests, resends)] as const,
    /** References for filters of deliveries; 0 for those that do not exist. */
    refs: {
      endpoint: (projectRef: number, id: string) => endpoints.refOf(projectRef, id),
      message: (projectRef: number, id: string) => messageRows.findById(projectRef, id)?.ref ?? 0,
    },
    /** Removes deleted endpoints without deliveries. @returns the number of rows. */
    purge(tx: Tx, rowsMax: number): number {
      const gone = rows.deletedBefore(tx.now - RELAY_RETENTION_MS, rowsMax);
      for (const { ref } of gone) removeRow(tx, ref);
      return gone.length;
    },
    /** Removes at most `rowsMax` rows of a deleted project. @returns the number of rows. */
    removeRows(tx: Tx, projectRef: number, rowsMax: number): number {
      let removed = 0;
      for (const { ref } of messageRows.someOfProject(projectRef, rowsMax))
        removed += messageRows.remove(tx, ref);
      for (const { ref } of rows.someOfProject(projectRef, rowsMax - removed)) {
        const parked = rows.removeParked(tx, ref, rowsMax - removed);
        removed += parked;
        if (removed >= rowsMax) break;
        removeRow(tx, ref);
        removed += 1;
      }
      registry.drop(projectRef);
      return removed;
    },
  };
}
