import { Type } from "@sinclair/typebox";
import { orNull } from "../../kernel/data/schema.ts";
import { registerErrorFields } from "../../kernel/errors.ts";
import type { ApiArea } from "../../kernel/http/api.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { AreaExport } from "../../kernel/projects/account-export.ts";
import { countsSchema, type OverviewCard, waitingSince } from "../../kernel/projects/overview-card.ts";
import type { ProjectResources } from "../../kernel/projects/resources.ts";
import { DAY_MS } from "../../kernel/time/units.ts";
import { Buckets, type CatchDeps } from "./buckets/buckets.ts";
import { Removal } from "./buckets/removal.ts";
import { EventSequence } from "./event-ids.ts";
import { EventService } from "./events/events.ts";
import { catchExport } from "./export.ts";
import { FailureNotices } from "./forwarding/failure-notices.ts";
import { Forwarder } from "./forwarding/forwarder.ts";
import { ForwardJobs } from "./forwarding/jobs.ts";
import { Targets } from "./forwarding/targets.ts";
import { Confirmations } from "./ingestion/confirmations.ts";
import { Ingestion } from "./ingestion/ingestion.ts";
import { Pieces } from "./large/pieces.ts";
import { pieceStore } from "./large/store.ts";
import { pullRoutes } from "./pull/routes.ts";
import { EventStream } from "./pull/stream.ts";
import { Replays } from "./replays/replays.ts";
import { replayRoutes } from "./replays/routes.ts";
import { replayStore } from "./replays/store.ts";
import { catchRoutes } from "./routes.ts";
import { bucketStore, eventStore } from "./store.ts";

registerErrorFields({
  bucket_id: Type.String({
    description:
      "With `bucket_name_taken`: ID of the bucket that has the name. With `endpoint_in_use`: ID of a bucket that delivers to the endpoint.",
  }),
});

interface CatchArea extends ApiArea {
  readonly card: OverviewCard;
  readonly resources: ProjectResources;
  readonly exported: AreaExport;
  /** Resumes forwarding after a restart. Call it before the scheduler starts. */
  readonly resume: () => Promise<void>;
  /** Responds to the requests that wait for events, because the server stops. */
  readonly endStreams: () => void;
  /** Stops background removal after the current slice. Call it before the scheduler stops. */
  readonly stop: () => void;
}

/** What the area needs of others, and the deliveries of its events to endpoints. */
interface AreaDeps extends CatchDeps {
  readonly endpoints: CatchDeps["endpoints"] & {
    /** Registers the area as the source of the events that are delivered. */
    register(
      source: Pick<
        Targets,
        | "has"
        | "content"
        | "methodOf"
        | "creditsOf"
        | "changed"
        | "bucketsOf"
        | "forwardsSecretTo"
        | "loopThrough"
      >,
    ): void;
  };
}

/** Retention of finished bulk replays. */
export const REPLAY_RETENTION_MS = 7 * DAY_MS;

/** Buckets with failed events in the overview. */
const FAILING_SHOWN_MAX = 5;

/** Builds the area: buckets that receive, store and forward webhooks. */
export function createCatch(kernel: Kernel, deps: AreaDeps): CatchArea {
  const events = eventStore(kernel.db);
  const sequence = new EventSequence(events.highestSequence());
  const replays = replayStore(kernel.db);
  const large = new Pieces({ ...kernel, pieces: pieceStore(kernel.db) });
  const shared = { ...kernel, ...deps, store: bucketStore(kernel.db), events, replays, sequence, large };
  const jobs = new ForwardJobs(shared);
  const buckets = new Buckets(shared, jobs);
  const removal = new Removal(shared, buckets);
  const failures = new FailureNotices(shared.notices);
  const targets = new Targets(shared, buckets, failures);
  deps.endpoints.register(targets);
  const forwarder = new Forwarder(shared, buckets, jobs, targets, failures);
  const service = new EventService(shared, buckets, removal, targets);
  const stream = new EventStream(shared, buckets, service);
  const bulk = new Replays(shared, buckets, service);
  kernel.housekeeping.addPurge({
    name: "catch.purge",
    rowsMax: 250,
    remove: (tx, rowsMax) => replays.removeOld(tx, tx.now - REPLAY_RETENTION_MS, rowsMax),
  });
  const confirmations = new Confirmations(shared, buckets, service);
  const services = {
    buckets,
    removal,
    events: service,
    confirmations,
    ingestion: new Ingestion(shared, buckets, removal, forwarder, targets, confirmations),
  };
  return {
    parts: [
      {
        name: "Catch",
        description:
          "Buckets that receive inbound webhooks, verify their signatures, store, forward and replay them.",
      },
    ],
    alsoCalled: { catch: ["inbox", "hooks"] },
    routes: (api) => [
      ...catchRoutes(api, services),
      pullRoutes(api, { stream, events: service }),
      replayRoutes(api, bulk),
    ],
    exported: catchExport(kernel),
    resources: removal.resources(),
    card: {
      area: "catch",
      schema: countsSchema(["pending", "failed", "failed_24h", "delivered"], {
        pending_since: waitingSince(
          "Time of receipt of the oldest event that a live bucket has not delivered.",
        ),
        failing: Type.Optional(
          Type.Array(
            Type.Object({
              bucket_id: Type.String({ examples: ["brave-otter-314159"] }),
              name: orNull(Type.String({ examples: ["stripe-in"] })),
              failed: Type.Integer({ description: "Number of failed events." }),
            }),
            { description: "Buckets with the most failed events. With `details`." },
          ),
        ),
      }),
      read: ({ project }, now) => buckets.figures(project.ref, now),
      details: ({ project }) => ({ failing: buckets.failing(project.ref, FAILING_SHOWN_MAX) }),
    },
    resume: async () => {
      await forwarder.resume();
      kernel.clock.track(large.removeOrphans());
    },
    endStreams: () => stream.stop(),
    stop: () => {
      removal.stop();
      large.stop();
    },
  };
}
