import { Type } from "@sinclair/typebox";
import type { Caller } from "../../../kernel/callers/caller.ts";
import { dateTime, orNull } from "../../../kernel/data/schema.ts";
import { COUNTED_MAX, countsSchema, waitingSince } from "../../../kernel/projects/overview-card.ts";
import { isoTime, isoTimeOrNull } from "../../../kernel/time/date-time.ts";
import { DAY_MS } from "../../../kernel/time/units.ts";
import { shownCallbackUrl } from "./callback-urls.ts";
import { SCANNED_ROWS_MAX } from "./listing.ts";
import type { RelayStore } from "./store.ts";

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
export function deliveriesCard(store: RelayStore) {
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
        .map(({ since, isCallback, target_url, ...target }) => ({
          ...target,
          target_url: isCallback === 1 ? shownCallbackUrl(target_url) : target_url,
          since: isoTime(since),
        })),
    }),
  } as const;
}
