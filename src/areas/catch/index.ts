import { Type } from "@sinclair/typebox";
import { registerErrorFields } from "../../kernel/errors.ts";
import type { ApiArea } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { countsSchema, type OverviewCard, waitingSince } from "../../kernel/projects/overview-card.ts";
import type { ProjectResources } from "../../kernel/projects/resources.ts";
import { Buckets, type CatchPorts } from "./buckets/buckets.ts";
import { Removal } from "./buckets/removal.ts";
import { EventService } from "./events/events.ts";
import { Forwarder } from "./forwarding/forwarder.ts";
import { replayStore } from "./forwarding/replay-store.ts";
import { Replays } from "./forwarding/replays.ts";
import { EventSequence } from "./ids.ts";
import { Ingestion } from "./ingestion/ingestion.ts";
import { pullRoutes } from "./pull/routes.ts";
import { EventStream } from "./pull/stream.ts";
import { catchRoutes } from "./routes.ts";
import { bucketStore, eventStore } from "./store.ts";

registerErrorFields({
  bucket_id: Type.String({ description: "With `bucket_name_taken`: the bucket that has the name." }),
});

/** What buckets offer to the rest of the server. */
interface CatchArea extends ApiArea {
  readonly card: OverviewCard;
  /** The buckets of a project. */
  readonly resources: ProjectResources;
  /** Takes up what was to be forwarded when the last process ended. To be called before the scheduler starts. */
  readonly resume: () => Promise<void>;
  /** Answers the requests that wait for events: the server stops. */
  readonly endStreams: () => void;
  /** Ends background removal after the slice under way. To be called before the scheduler stops. */
  readonly stop: () => void;
}

/** How long it can be read what became of a replay of many. */
export const REPLAYS_KEPT_MS = 7 * 86_400_000;

/** Builds the area: buckets that take in webhooks, keep them, send them on. */
export function createCatch(kernel: Kernel, ports: CatchPorts): CatchArea {
  const events = eventStore(kernel.db);
  const sequence = new EventSequence(events.highestSequence());
  const replays = replayStore(kernel.db);
  const deps = { ...kernel, ...ports, store: bucketStore(kernel.db), events, replays, sequence };
  const buckets = new Buckets(deps);
  const removal = new Removal(deps, buckets);
  const forwarder = new Forwarder(deps, buckets);
  const service = new EventService(deps, buckets, removal);
  const stream = new EventStream(deps, buckets, service);
  const bulk = new Replays(deps, buckets, service);
  kernel.housekeeping.addPurge({
    name: "catch.purge",
    rowsMax: 250,
    remove: (tx, rowsMax) => replays.removeOld(tx, tx.now - REPLAYS_KEPT_MS, rowsMax),
  });
  const services = {
    buckets,
    removal,
    events: service,
    ingestion: new Ingestion(deps, buckets, removal, forwarder),
  };
  return {
    parts: [
      {
        name: "Catch",
        description:
          "Buckets that receive webhooks of others, keep them, verify their signatures, forward and replay them.",
      },
    ],
    alsoCalled: { catch: ["inbox", "hooks"] },
    routes: (api) => [
      ...catchRoutes(api, services),
      ...pullRoutes(api, { stream, replays: bulk, events: service }),
    ],
    resources: removal.resources(),
    card: {
      area: "catch",
      schema: countsSchema(["pending", "failed", "failed_24h", "delivered"], {
        pending_since: waitingSince("When the oldest event came in that a live bucket has not sent on."),
      }),
      read: ({ project }, now) => buckets.figures(project.ref, now),
    },
    resume: () => forwarder.resume(),
    endStreams: () => stream.stop(),
    stop: () => removal.stop(),
  };
}
