import { Type } from "@sinclair/typebox";
import type { CallerAccount, Charger } from "../../kernel/callers/caller.ts";
import { registerErrorFields } from "../../kernel/errors.ts";
import type { Api } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Tiers } from "../../kernel/limits/tiers.ts";
import type { Outbox } from "../../kernel/mail/outbox.ts";
import type { OutboundClient } from "../../kernel/outbound/client.ts";
import type { AttemptListener, Notification } from "../../kernel/outbound/notification.ts";
import { WebhookSecrets } from "../../kernel/outbound/webhook-secrets.ts";
import { COUNTED_MAX } from "../../kernel/projects/overview-card.ts";
import type { ProjectResources } from "../../kernel/projects/resources.ts";
import { StoppedProjects } from "../../kernel/projects/stopped-projects.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { HOUR_MS } from "../../kernel/time/units.ts";
import { Callbacks } from "./deliveries/callbacks.ts";
import { deliveriesCard } from "./deliveries/card.ts";
import { DeliveryIds } from "./deliveries/ids.ts";
import { ProjectSecrets } from "./deliveries/project-secrets.ts";
import { relayRoutes, secretRoutes } from "./deliveries/routes.ts";
import { WebhookSender } from "./deliveries/sender.ts";
import { RelayService } from "./deliveries/service.ts";
import { declareDeliveryCounts, InFlight } from "./deliveries/status.ts";
import { type DeliveryOwner, type RelayStore, relayStore } from "./deliveries/store.ts";
import { type SigningKeys, UrlDestination } from "./deliveries/url-destination.ts";
import { DEDUPLICATE_HOURS_MAX, RELAY_RETENTION_MS } from "./domain.ts";
import { EndpointDispatch } from "./endpoints/dispatch.ts";
import { Endpoints } from "./endpoints/endpoints.ts";
import { RegisteredSource } from "./endpoints/event-source.ts";
import { EventDeliveries } from "./endpoints/events.ts";
import { EndpointHealth } from "./endpoints/health.ts";
import { EndpointOrder } from "./endpoints/order.ts";
import { orderStore } from "./endpoints/order-store.ts";
import { EndpointQueue } from "./endpoints/queue.ts";
import { EndpointRegistry } from "./endpoints/registry.ts";
import { EndpointRemoval } from "./endpoints/removal.ts";
import { endpointRoutes } from "./endpoints/routes.ts";
import { endpointStore } from "./endpoints/store.ts";
import { EventTypes } from "./event-types/event-types.ts";
import { eventTypeRoutes } from "./event-types/routes.ts";
import { eventTypeStore } from "./event-types/store.ts";
import { relayExport } from "./export.ts";
import { FanOut } from "./messages/fan-out.ts";
import { MessageResends } from "./messages/message-resends.ts";
import { Messages } from "./messages/messages.ts";
import { MessageRequests } from "./messages/requests.ts";
import { messageRoutes } from "./messages/routes.ts";
import { messageStore } from "./messages/store.ts";
import { createPortal } from "./portal/index.ts";
import type { LinkDeps } from "./portal/links.ts";
import { BulkResends } from "./resends/bulk-resends.ts";
import { Recoveries } from "./resends/recoveries.ts";
import { recoverRoute, resendRoutes } from "./resends/routes.ts";
import { RunningResends } from "./resends/runs.ts";
import { type ResendStore, resendStore } from "./resends/store.ts";
import { scheduleRoutes } from "./schedules/routes.ts";
import { ScheduleRuns } from "./schedules/runs.ts";
import { Schedules } from "./schedules/schedules.ts";
import { scheduleStore } from "./schedules/store.ts";

registerErrorFields({
  endpoint_id: Type.String({
    description: "With `endpoint_name_taken`: ID of the endpoint that has the name.",
  }),
  schedule_id: Type.String({
    description: "With `schedule_name_taken`: ID of the schedule that has the name.",
  }),
});

/** Messages in one slice of the purge: each may have a thousand deliveries to check. */
const MESSAGES_PURGED_MAX = 50;

/** Parts of the server that the area depends on. */
interface RelayDeps {
  readonly accounts: SigningKeys & { account(accountRef: number): CallerAccount };
  readonly charger: Charger;
  readonly tiers: Tiers;
  readonly outbox: Outbox;
  readonly emailOf: (accountRef: number) => string | null;
  readonly settings: { readonly breakerFailures: number; readonly payloadRetentionMs: number };
  readonly portal: LinkDeps;
}

interface ResourceDeps {
  readonly store: RelayStore;
  readonly resends: ResendStore;
  readonly secrets: WebhookSecrets;
  readonly stopped: StoppedProjects;
  /** Functions that remove the rows of endpoints, messages and schedules. */
  readonly others: readonly ProjectResources["removeRows"][];
}

/**
 * Builds what sends deliveries to URLs and endpoints. Notices about endpoints are messages: messages are built before the
 * health of endpoints, which sends notices.
 */
function createSending(kernel: Kernel, outbound: OutboundClient, deps: RelayDeps) {
  const store = relayStore(kernel.db);
  const messageRows = messageStore(kernel.db);
  const endpointRows = endpointStore(kernel.db);
  const endpointSecrets = new WebhookSecrets(kernel, "relay_endpoint_secrets");
  const secrets = new WebhookSecrets(kernel, "relay_project_secrets");
  const stopped = new StoppedProjects(kernel.db, "relay_stopped_projects");
  const counts = declareDeliveryCounts(kernel.metrics);
  const relayIds = new DeliveryIds(kernel, store.highestRef());
  const inFlight = new InFlight();
  const source = new RegisteredSource();
  const common = {
    ...kernel,
    ...deps,
    ...deps.settings,
    outbound,
    store,
    stopped,
    counts,
    relayIds,
    inFlight,
    source,
  };
  const registry = new EndpointRegistry({ ...kernel, store: endpointRows });
  const queue = new EndpointQueue({ ...kernel, endpoints: endpointRows, registry });
  const orders = orderStore(kernel.db);
  const order = new EndpointOrder({ ...kernel, orders, registry, queue });
  const ofEndpoints = {
    ...common,
    order,
    endpoints: endpointRows,
    messages: messageRows,
    secrets: endpointSecrets,
    registry,
    queue,
  };
  const fanOut = new FanOut(ofEndpoints);
  const types = eventTypeStore(kernel.db);
  const eventTypes = new EventTypes({ ...deps, types });
  const messages = new Messages({ ...ofEndpoints, fanOut, eventTypes });
  const health = new EndpointHealth({
    ...ofEndpoints,
    notice: (tx, about, type, data) => messages.notice(tx, about.row, type, data, about),
  });
  const dispatch = new EndpointDispatch({ ...ofEndpoints, health });
  const urls = new UrlDestination({ ...common, secrets });
  const callbacks = new Callbacks({ ...common, urls });
  new WebhookSender({ ...common, urls, endpoints: dispatch, callbacks });
  return {
    store,
    messageRows,
    endpointRows,
    endpointSecrets,
    secrets,
    stopped,
    counts,
    relayIds,
    inFlight,
    source,
    registry,
    queue,
    orders,
    order,
    fanOut,
    eventTypes,
    messages,
    dispatch,
    urls,
  };
}

/** Builds the area: deliveries, endpoints, messages, schedules, and notifications of other areas. */
export function createRelay(kernel: Kernel, outbound: OutboundClient, deps: RelayDeps) {
  const sending = createSending(kernel, outbound, deps);
  const { store, messageRows, endpointRows, endpointSecrets, secrets, stopped } = sending;
  const { messages, dispatch, urls, eventTypes } = sending;
  const { policy } = outbound;
  const resends = resendStore(kernel.db);
  const running = new RunningResends(resends);
  const common = { ...kernel, ...deps, ...deps.settings, ...sending, policy, resends, running };
  const ofEndpoints = { ...common, endpoints: endpointRows, secrets: endpointSecrets };
  const removal = new EndpointRemoval(ofEndpoints);
  const endpoints = new Endpoints({
    ...ofEndpoints,
    removal,
    exampleOf: (projectRef, type) => eventTypes.exampleOf(projectRef, type),
    recoveryOf: (caller, endpointRef) => running.recoveryOf(caller, endpointRef),
  });
  const events = new EventDeliveries(ofEndpoints);
  const requests = new MessageRequests({ ...common, rows: messageRows });
  const messageResends = new MessageResends(common);
  // References for filters of deliveries; 0 for those that do not exist.
  const refs = {
    endpoint: (projectRef: number, id: string) => endpoints.refOf(projectRef, id),
    message: (projectRef: number, id: string) => messageRows.findById(projectRef, id)?.ref ?? 0,
  };
  const service = new RelayService({ ...common, endpoints: dispatch, refs });
  const bulk = new BulkResends({ ...common, service, refs });
  const recoveries = new Recoveries({ ...common, service, endpoints });
  kernel.housekeeping.addPurge({
    name: "relay.messages.purge",
    rowsMax: MESSAGES_PURGED_MAX,
    remove: (tx, rowsMax) => messages.purge(tx, rowsMax),
  });
  const portal = createPortal(kernel, deps.portal, {
    endpoints,
    messageRows,
    dispatch,
    relays: service,
    resends: bulk,
    recoveries,
    eventTypes,
  });
  const scheduleRows = scheduleStore(kernel.db);
  const runs = new ScheduleRuns({ ...common, schedules: scheduleRows, service });
  const schedules = new Schedules({ ...common, schedules: scheduleRows, runs });
  kernel.housekeeping.addPurge({
    name: "relay.purge",
    rowsMax: 250,
    remove: (tx, rowsMax) =>
      Math.max(
        store.remove(tx, store.finishedBefore(tx.now - RELAY_RETENTION_MS, rowsMax)),
        resends.removeOld(tx, tx.now - RELAY_RETENTION_MS, rowsMax),
        store.removeOldDeduplication(tx, tx.now - DEDUPLICATE_HOURS_MAX * HOUR_MS, rowsMax),
        removal.purge(tx, rowsMax),
        eventTypes.purge(tx, rowsMax),
      ),
  });
  const resources = resourcesOf({
    store,
    resends,
    secrets,
    stopped,
    others: [
      (tx, projectRef, rowsMax) => messages.removeRows(tx, projectRef, rowsMax),
      (tx, projectRef, rowsMax) => removal.removeRows(tx, projectRef, rowsMax),
      portal.removeRows,
      (tx, projectRef, rowsMax) => schedules.removeRows(tx, projectRef, rowsMax),
      (tx, projectRef, rowsMax) => eventTypes.removeRows(tx, projectRef, rowsMax),
    ],
  });
  return {
    parts: [
      {
        name: "Relay",
        description:
          "Scheduled and fanned-out webhooks: signed, delivered at least once, with a log of every attempt.",
      },
      {
        name: "Portal",
        description: "Links by which your customers manage their own webhook endpoints.",
      },
    ],
    alsoCalled: { relay: ["webhooks", "deliveries", "schedule", "cron"] },
    routes: (api: Api) => [
      relayRoutes(api, service),
      resendRoutes(api, service, bulk),
      recoverRoute(api, recoveries),
      ...scheduleRoutes(api, schedules),
      secretRoutes(api, new ProjectSecrets(secrets)),
      endpointRoutes(api, endpoints),
      eventTypeRoutes(api, eventTypes),
      messageRoutes(api, messages, requests, messageResends),
      ...portal.routes(api),
    ],
    /** Finds the callers of portal links. */
    portalAuthenticator: portal.authenticator,
    /** The projects' secrets, for deliveries of other areas. */
    secrets,
    /** Queues a notification in the unit of work that causes it. */
    notify: (tx: Tx, notification: Notification) => service.notify(tx, notification),
    /** Sends a notice to the endpoints of a project that subscribe to its type. */
    notice: (
      tx: Tx,
      owner: DeliveryOwner,
      type: "ninefold.catch.failed" | "ninefold.flag.schedule_failed",
      data: object,
    ) => messages.notice(tx, owner, type, data),
    /** Deliveries of inbound events to endpoints. */
    events,
    /** Cancels a pending notification. */
    withdraw: (tx: Tx, relayId: string) => service.withdraw(tx, relayId),
    onAttempt: (listener: AttemptListener) => urls.onAttempt(listener),
    /** Sends a notification immediately, without storing it. */
    trial: (notification: Notification) => urls.sendOnce(notification),
    resources,
    exported: relayExport({
      ...kernel,
      projectSecret: (...stored) => secrets.openStored(...stored),
      endpointSecret: (...stored) => endpointSecrets.openStored(...stored),
    }),
    card: deliveriesCard(store),
  };
}

function resourcesOf({ store, resends, secrets, stopped, others }: ResourceDeps): ProjectResources {
  return {
    name: "relays",
    count: (projectRef) => store.waiting(projectRef, COUNTED_MAX),
    projectDeleted: (tx, projectRef) => stopped.stop(tx, projectRef),
    removeRows(tx, projectRef, rowsMax) {
      let removed = store.remove(tx, store.someOfProject(projectRef, rowsMax));
      for (const remove of [resends.removeOfOwner, store.removeDeduplicationOf, ...others])
        removed += remove(tx, projectRef, rowsMax - removed);
      if (removed === rowsMax) return removed;
      secrets.forget(tx, projectRef);
      stopped.forget(tx, projectRef);
      return removed;
    },
  };
}
