import { type Static, Type } from "@sinclair/typebox";
import { duration, integer, named, oneOf } from "../../../kernel/data/schema.ts";
import { PAGE_LIMIT_MAX } from "../../../kernel/http/requests/pagination.ts";
import { VERIFICATIONS } from "../domain.ts";
import { CaughtEvent, EVENT_ID, ID_LENGTH_MAX, OfType, ProviderName } from "../schema.ts";

/** Default `limit` of a stream. */
export const STREAM_LIMIT = 20;
/** Longest `wait_ms`: proxies commonly close idle requests after a minute. */
export const WAIT_MS_MAX = 55_000;
/** Default `wait_ms`. */
export const WAIT_MS = 25_000;

/** Query of a stream. */
export const StreamQuery = named("EventStreamQuery", {
  after: Type.String({
    maxLength: ID_LENGTH_MAX,
    errorMessage: "must be an event's id, now or beginning",
    description:
      "Position after which events are returned: an event's id, `beginning`, or `now` for new events. Then the `cursor` of the last response.",
    examples: [EVENT_ID],
  }),
  wait_ms: Type.Optional(
    duration({
      unit: "ms",
      min: 0,
      max: WAIT_MS_MAX,
      default: WAIT_MS,
      description: "Longest wait for an event, in milliseconds, when there is none.",
      // Examples must respond immediately.
      examples: [0],
    }),
  ),
  limit: Type.Optional(
    integer({
      min: 1,
      max: PAGE_LIMIT_MAX,
      default: STREAM_LIMIT,
      description: "Maximum number of events to return.",
    }),
  ),
  provider: Type.Optional(ProviderName),
  event_type: Type.Optional(OfType),
  verification: Type.Optional(oneOf(VERIFICATIONS)),
});
export type StreamQuery = Static<typeof StreamQuery>;

/** Events of a stream, oldest first. */
export const StreamPage = named("EventStreamPage", {
  events: Type.Array(CaughtEvent),
  cursor: Type.String({
    description: "Position for the next request: an event's id, or `beginning`.",
    examples: [EVENT_ID],
  }),
});
export type StreamPage = Static<typeof StreamPage>;
