import { Type } from "@sinclair/typebox";
import type { Caller } from "../../kernel/callers/caller.ts";
import { dateTime, orNull } from "../../kernel/data/schema.ts";
import { registerErrorFields } from "../../kernel/errors.ts";
import type { Api } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Tiers } from "../../kernel/limits/tiers.ts";
import type { OutboundClient } from "../../kernel/outbound/client.ts";
import type { AttemptListener, Notification } from "../../kernel/outbound/notification.ts";
import { WebhookSecrets } from "../../kernel/outbound/webhook-secrets.ts";
import { COUNTED_MAX, countsSchema, waitingSince } from "../../kernel/projects/overview-card.ts";
import type { ProjectResources } from "../../kernel/projects/resources.ts";
import { StoppedProjects } from "../../kernel/projects/stopped-projects.ts";
import type { Tx } from "../../kernel/storage/tx.ts";
import { isoTime, isoTimeOrNull } from "../../kernel/time/date-time.ts";
import { declareDeliveryCounts } from "./deliveries/counts.ts";
import { SCANNED_ROWS_MAX } from "./deliveries/listing.ts";
import { recoverRoute, relayRoutes, resendRoutes, secretRoutes } from "./deliveries/routes.ts";
import { type SigningKeys, WebhookSender } from "./deliveries/sender.ts";
import { RelayService } from "./deliveries/service.ts";
import { type RelayStore, relayStore } from "./deliveries/store.ts";
import { DEDUPLICATION_MS, RELAY_RETENTION_MS } from "./domain.ts";
import { createEndpoints, type EndpointPorts } from "./endpoints/index.ts";
import { ProjectSecrets } from "./endpoints/secrets.ts";
import { relayExport } from "./export.ts";
import type { MessageOwner } from "./messages/messages.ts";
import { createPortal } from "./portal/index.ts";
import type { PortalPorts } from "./portal/links.ts";
import { BulkResends } from "./resends/bulk-resends.ts";
import { Recoveries } from "./resends/recoveries.ts";
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

const DAY_MS = 24 * 60 * 60 * 1000;

/** Parts of the server that the area depends on. */
interface RelayPorts extends EndpointPorts {
  readonly accounts: SigningKeys & EndpointPorts["accounts"];
  readonly tiers: Tiers;
  readonly portal: PortalPorts;
}

interface ResourceParts {
  readonly store: RelayStore;
  readonly resends: ResendStore;
  readonly secrets: WebhookSecrets;
  readonly stopped: StoppedProjects;
  /** Functions that remove the rows of endpoints, messages and schedules. */
  readonly others: readonly ProjectResources["removeRows"][];
}

/** Builds the area: deliveries, endpoints, messages, schedules, and notifications of other areas. */
export function createRelay(kernel: Kernel, outbound: OutboundClient, ports: RelayPorts) {
  const store = relayStore(kernel.db);
  const resends = resendStore(kernel.db);
  const secrets = new WebhookSecrets(kernel, "relay_project_secrets");
  const stopped = new StoppedProjects(kernel.db, "relay_stopped_projects");
  const counts = declareDeliveryCounts(kernel.metrics);
  const { policy } = outbound;
  const endpoints = createEndpoints(kernel, ports, {
    store,
    counts,
    policy,
    isInFlight: (ref) => sender.isInFlight(ref),
    stopped,
    newIds: (count) => service.newIds(count),
    idOf: (uuid, ref) => service.idOf(uuid, ref),
    recoveryOf: (caller, endpointRef) => recoveries.runningOf(caller, endpointRef),
  });
  const { messages, dispatch, refs, events } = endpoints;
  const sender = new WebhookSender({
    ...kernel,
    ...ports,
    store,
    stopped,
    outbound,
    counts,
    secrets,
    dispatch,
  });
  const service = new RelayService({
    ...kernel,
    ...ports,
    store,
    resends,
    sender,
    policy,
    counts,
    messages,
    dispatch,
    refs,
    messageRows: endpoints.messageRows,
  });
  const bulk = new BulkResends({ ...kernel, ...ports, resends, service, stopped, refs });
  const recoveries = new Recoveries({
    ...kernel,
    ...ports,
    resends,
    service,
    messages: endpoints.messages,
    messageRows: endpoints.messageRows,
    endpoints: endpoints.endpoints,
    registry: endpoints.registry,
    stopped,
  });
  const portal = createPortal(kernel, ports.portal, {
    ...endpoints,
    relays: service,
    resends: bulk,
    recoveries,
  });
  const scheduleRows = scheduleStore(kernel.db);
  const runs = new ScheduleRuns({ ...kernel, ...ports, schedules: scheduleRows, service, messages, stopped });
  const schedules = new Schedules({ ...kernel, ...ports, schedules: scheduleRows, runs, policy });
  kernel.housekeeping.addPurge({
    name: "relay.purge",
    rowsMax: 250,
    remove: (tx, rowsMax) =>
      Math.max(
        store.remove(tx, store.finishedBefore(tx.now - RELAY_RETENTION_MS, rowsMax)),
        resends.removeOld(tx, tx.now - RELAY_RETENTION_MS, rowsMax),
        resends.removeOldDeduplication(tx, tx.now - DEDUPLICATION_MS, rowsMax),
        endpoints.purge(tx, rowsMax),
      ),
  });
  const resources = resourcesOf({
    store,
    resends,
    secrets,
    stopped,
    others: [
      endpoints.removeRows,
      portal.removeRows,
      (tx, projectRef, rowsMax) => schedules.removeRows(tx, projectRef, rowsMax),
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
      ...endpoints.routes(api),
      ...portal.routes(api),
    ],
    /** Finds the callers of portal links. */
    portalAuthenticator: portal.authenticator,
    /** The projects' secrets, for deliveries of other areas. */
    secrets,
    /** Queues a notification in the unit of work that causes it. */
    notify: (tx: Tx, notification: Notification) => service.notify(tx, notification),
    /** Sends a notice to the endpoints of a project that subscribe to its type. */
    notice: (tx: Tx, owner: MessageOwner, type: "ninefold.catch.failed", data: object) =>
      messages.notice(tx, owner, type, data),
    /** Deliveries of inbound events to endpoints. */
    events,
    /** Cancels a pending notification. */
    withdraw: (tx: Tx, relayId: string) => service.withdraw(tx, relayId),
    onAttempt: (listener: AttemptListener) => sender.onAttempt(listener),
    /** Sends a notification immediately, without storing it. */
    trial: (notification: Notification) => service.sendOnce(notification),
    resources,
    exported: relayExport({
      ...kernel,
      projectSecret: (...stored) => secrets.openStored(...stored),
      endpointSecret: endpoints.openSecret,
    }),
    card: cardOf(store),
  };
}

/** Targets with failed deliveries in the overview. */
const FAILING_SHOWN_MAX = 5;
/** Newest failed deliveries that are counted by target: some milliseconds. */
const FAILED_SCANNED_MAX = 1_000;

const FailingTarget = Type.Object({
  endpoint_id: orNull(Type.String(), {
    description: "Null for deliveries to a URL without an endpoint.",
    examples: ["ep_01a2090d451f7564be27e33f1f8170f9"],
  }),
  name: orNull(Type.String(), { description: "Name of the endpoint.", examples: ["billing"] }),
  target_url: Type.String({ examples: ["https://example.com/hook"] }),
  failed: Type.Integer({ description: "Failed deliveries in the last 24 hours, of the newest 1,000." }),
  since: dateTime({ description: "Time of the first of them." }),
  response_status: orNull(Type.Integer(), {
    description: "HTTP status of the last one; null without a response.",
  }),
  error: orNull(Type.String(), {
    description: "Error of the last one.",
    examples: ["the target responded with 503"],
  }),
});

/** The card of deliveries in the overview. */
function cardOf(store: RelayStore) {
  return {
    area: "relay",
    schema: countsSchema(["scheduled", "failed"], {
      retrying_since: waitingSince("Due time of the oldest delivery that is being retried."),
      failing: Type.Optional(
        Type.Array(FailingTarget, {
          description: "Targets with the most failed deliveries in the last 24 hours. With `details`.",
        }),
      ),
    }),
    read: ({ project: { ref } }: Caller, now: number) => ({
      scheduled: store.scheduledTo(ref, COUNTED_MAX),
      failed: store.failedSince(ref, COUNTED_MAX, now - DAY_MS),
      retrying_since: isoTimeOrNull(store.retryingSince(ref, SCANNED_ROWS_MAX) || null),
    }),
    details: ({ project: { ref } }: Caller, now: number) => ({
      failing: store
        .failingTargets(ref, FAILED_SCANNED_MAX, now - DAY_MS, FAILING_SHOWN_MAX)
        .map(({ since, ...target }) => ({ ...target, since: isoTime(since) })),
    }),
  } as const;
}

function resourcesOf({ store, resends, secrets, stopped, others }: ResourceParts): ProjectResources {
  return {
    name: "relays",
    count: (projectRef) => store.waiting(projectRef, COUNTED_MAX),
    projectDeleted: (tx, projectRef) => stopped.stop(tx, projectRef),
    removeRows(tx, projectRef, rowsMax) {
      let removed = store.remove(tx, store.someOfProject(projectRef, rowsMax));
      for (const remove of [resends.removeOfOwner, resends.removeDeduplicationOf, ...others])
        removed += remove(tx, projectRef, rowsMax - removed);
      if (removed === rowsMax) return removed;
      secrets.forget(tx, projectRef);
      stopped.forget(tx, projectRef);
      return removed;
    },
  };
}
