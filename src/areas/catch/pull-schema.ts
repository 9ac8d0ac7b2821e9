import { type Static, Type } from "@sinclair/typebox";
import { PAGE_LIMIT_MAX } from "../../kernel/http/pagination.ts";
import { named, oneOf, text } from "../../kernel/schema.ts";
import { ACK_RESULTS, VERIFICATIONS } from "./domain.ts";
import { CaughtEvent, EVENT_ID, ID_LENGTH_MAX, ProviderName } from "./schema.ts";

/** Events of a stream that are handed out at once, unless asked otherwise. */
export const STREAM_LIMIT = 20;
/** Longest wait for an event: shorter than the minute after which proxies cut a silent request off. */
export const WAIT_MS_MAX = 55_000;
/** The wait unless given. */
export const WAIT_MS = 25_000;
/** Longest reason that an acknowledgement gives. */
export const ACK_ERROR_LENGTH_MAX = 500;
/** Longest time that an acknowledgement says that it took: a day. */
export const ACK_DURATION_MS_MAX = 86_400_000;

/** Query of a stream. */
export const StreamQuery = named("EventStreamQuery", {
  after: Type.String({
    maxLength: ID_LENGTH_MAX,
    errorMessage: "must be an event's id, now or beginning",
    description:
      "Events behind this one: an id, `beginning` for all, `now` for those to come. Then the `cursor` of the last answer.",
    examples: [EVENT_ID],
  }),
  wait_ms: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: WAIT_MS_MAX,
      default: WAIT_MS,
      errorMessage: `must be an integer from 0 to ${WAIT_MS_MAX}`,
      description: "How long to wait for an event when there is none.",
      // Who tries an example does not want to wait.
      examples: [0],
    }),
  ),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: PAGE_LIMIT_MAX,
      default: STREAM_LIMIT,
      errorMessage: `must be an integer from 1 to ${PAGE_LIMIT_MAX}`,
      description: "How many events to return at most.",
    }),
  ),
  provider: Type.Optional(ProviderName),
  verification: Type.Optional(oneOf(VERIFICATIONS)),
});
export type StreamQuery = Static<typeof StreamQuery>;

/** Events of a stream, oldest first. */
export const StreamPage = named("EventStreamPage", {
  events: Type.Array(CaughtEvent),
  cursor: Type.String({
    description: "Where the next request goes on: an event's id, or `beginning`.",
    examples: [EVENT_ID],
  }),
});
export type StreamPage = Static<typeof StreamPage>;

/** What became of an event that was fetched. */
export const EventAckBody = named("EventAckBody", {
  result: oneOf(ACK_RESULTS),
  response_status: Type.Optional(
    Type.Integer({
      minimum: 100,
      maximum: 599,
      errorMessage: "must be an integer from 100 to 599",
      description: "What it was answered with.",
      examples: [200],
    }),
  ),
  error: Type.Optional(
    text({ min: 1, max: ACK_ERROR_LENGTH_MAX, description: "Why it failed.", examples: ["no answer"] }),
  ),
  duration_ms: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: ACK_DURATION_MS_MAX,
      errorMessage: `must be an integer from 0 to ${ACK_DURATION_MS_MAX}`,
      examples: [31],
    }),
  ),
});
export type EventAckBody = Static<typeof EventAckBody>;
