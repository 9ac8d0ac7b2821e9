import "./errors.ts";
import type { ApiArea } from "../../kernel/http/api.ts";
import type { Charger } from "../../kernel/http/caller.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { OutboundClient } from "../../kernel/outbound/client.ts";
import type { ProjectActivity } from "../../kernel/project-activity.ts";
import type { ProjectResources } from "../../kernel/project-resources.ts";
import type { Tiers } from "../../kernel/tiers.ts";
import { Buckets } from "./buckets.ts";
import { EventStore } from "./event-store.ts";
import { createForward, Forwarder } from "./forwarder.ts";
import { EventSequence } from "./ids.ts";
import { Ingestion } from "./ingestion.ts";
import type { BucketAccounts } from "./ports.ts";
import { Removal } from "./removal.ts";
import { catchRoutes } from "./routes.ts";
import { BucketService, EventService } from "./service.ts";
import { BucketStore } from "./store.ts";

/** What buckets offer to the rest of the server. */
export interface CatchArea extends ApiArea {
  /** The buckets of a project. */
  readonly resources: ProjectResources;
  /** Takes up what was to be forwarded when the last process ended. To be called before the scheduler starts. */
  readonly resume: () => Promise<void>;
  /** Ends background removal after the slice under way. To be called before the scheduler stops. */
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
  const forward = createForward({ outbound, accounts, clock, vault });
  const removal = new Removal({ store, events, buckets, accounts, tiers, scheduler, writer, clock });
  const forwarder = new Forwarder({ store, buckets, events, sequence, forward, scheduler, writer, metrics });
  const ingestion = new Ingestion({
    ...{ buckets, events, sequence, removal, forwarder },
    ...{ accounts, charger, activity, tiers, writer, clock, vault, metrics },
  });
  const targets = outbound.policy;
  const service = new BucketService({ store, buckets, forwarder, removal, targets, tiers });
  const services = { service, events: new EventService(buckets, events, vault), ingestion };
  return {
    parts: [
      {
        name: "Catch",
        description:
          "Buckets that receive webhooks of others, keep them, verify their signatures, forward and replay them.",
      },
    ],
    routes: (api) => catchRoutes(api, { ...services, removal, forward, buckets }),
    resources: removal.resources(),
    resume: () => forwarder.resume(),
    stop: () => removal.stop(),
  };
}
