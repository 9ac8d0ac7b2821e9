import "./errors.ts";
import type { ApiArea } from "../../kernel/http/api.ts";
import type { Charger } from "../../kernel/http/caller.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { OutboundClient } from "../../kernel/outbound/client.ts";
import type { ProjectActivity } from "../../kernel/project-activity.ts";
import type { ProjectResources } from "../../kernel/project-resources.ts";
import type { Tiers } from "../../kernel/tiers.ts";
import { BucketService } from "./bucket-service.ts";
import { Buckets } from "./buckets.ts";
import { declareWebhookCounts } from "./counts.ts";
import { Delivery } from "./delivery.ts";
import { EventSequence } from "./event-id.ts";
import { EventService } from "./event-service.ts";
import { EventStore } from "./event-store.ts";
import { Forwarder } from "./forwarder.ts";
import { Ingestion } from "./ingestion.ts";
import type { BucketAccounts } from "./ports.ts";
import { Removal } from "./removal.ts";
import { bucketResources } from "./resources.ts";
import { catchRoutes } from "./routes.ts";
import { BucketStore } from "./store.ts";

/** What buckets offer to the rest of the house. */
export interface CatchArea extends ApiArea {
  /** The buckets of a project, for whoever keeps projects. */
  readonly resources: ProjectResources;
  /** Takes up what was to be forwarded when the last process ended. Before the scheduler starts. */
  readonly resume: () => Promise<void>;
  /** Ends background removal after the slice under way. Before the scheduler stops. */
  readonly stop: () => void;
}

/** Builds the area: buckets that take in webhooks, keep them, send them on. */
export function createCatch(
  kernel: Kernel,
  settings: { tiers: Tiers },
  ports: {
    accounts: BucketAccounts;
    charger: Charger;
    activity: ProjectActivity;
    outbound: OutboundClient;
  },
): CatchArea {
  const { db, writer, clock, ids, vault, scheduler, metrics } = kernel;
  const { tiers } = settings;
  const { accounts, charger, activity, outbound } = ports;
  const store = new BucketStore(db);
  const events = new EventStore(db);
  const sequence = new EventSequence(events.highestSequence());
  const buckets = new Buckets({ store, vault, ids, writer });
  const counts = declareWebhookCounts(metrics);
  const delivery = new Delivery({ outbound, accounts, clock, vault });
  const removal = new Removal({ store, events, buckets, accounts, tiers, scheduler, writer, clock });
  const forwarder = new Forwarder({ store, buckets, events, sequence, delivery, scheduler, writer, counts });
  const services = {
    buckets: new BucketService({ store, buckets, forwarder, removal, targets: outbound.policy, tiers }),
    events: new EventService({ buckets, events, vault }),
    ingestion: new Ingestion({
      ...{ buckets, events, sequence, removal, forwarder },
      ...{ accounts, charger, activity, tiers, writer, clock, vault, counts },
    }),
  };
  return {
    parts: [
      {
        name: "Catch",
        description:
          "Buckets that receive webhooks of others, keep them, verify their signatures, forward and replay them.",
      },
    ],
    routes: (api) => catchRoutes(api, { ...services, removal, delivery, owned: buckets }),
    resources: bucketResources({ store, buckets, removal }),
    resume: () => forwarder.resume(),
    stop: () => removal.stop(),
  };
}
