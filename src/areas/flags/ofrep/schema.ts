import { type Static, Type } from "@sinclair/typebox";
import { named, oneOf } from "../../../kernel/data/schema.ts";
import { REASONS } from "../evaluation/evaluation.ts";
import { Context } from "../evaluation/schema.ts";
import { INACTIVITY_SECONDS } from "./domain.ts";

const Key = Type.String({ examples: ["new-checkout"] });

/** Path of a flag. Any key is accepted; invalid ones are not found. */
export const OfrepParams = Type.Object({ key: Key });

/** Body of an evaluation. */
export const OfrepBody = named("EvaluationBody", {
  context: Type.Optional(Context),
});

export const Evaluation = named("Evaluation", {
  key: Key,
  value: Type.Optional(
    Type.Unknown({
      description: "Value of the flag; omitted if the caller uses its own default.",
      examples: [true],
    }),
  ),
  variant: Type.Optional(Type.String({ examples: ["on"] })),
  reason: oneOf(REASONS, {}),
  metadata: Type.Record(Type.String(), Type.Union([Type.String(), Type.Number(), Type.Boolean()]), {
    examples: [{}],
  }),
});
export type Evaluation = Static<typeof Evaluation>;

const EventStream = named("FlagEventStream", {
  type: Type.Literal("sse"),
  url: Type.Optional(
    Type.String({ description: "URL of the stream, if `public_url` is configured.", examples: [] }),
  ),
  endpoint: Type.Optional(
    Type.Object({ requestUri: Type.String({ examples: ["/ofrep/v1/events?token=…"] }) }),
  ),
  inactivityDelaySec: Type.Integer({ examples: [INACTIVITY_SECONDS] }),
});

export const Evaluations = named("Evaluations", {
  flags: Type.Array(Evaluation),
  eventStreams: Type.Optional(
    Type.Array(EventStream, {
      description: "Streams that notify of changes. Omitted for browser sessions.",
    }),
  ),
});
export type Evaluations = Static<typeof Evaluations>;

export const OfrepEventsQuery = Type.Object({
  token: Type.Optional(Type.String({ description: "Token from `eventStreams` of a bulk evaluation." })),
  lastEventId: Type.Optional(
    Type.String({ description: "Alternative to the header `Last-Event-ID`, which takes precedence." }),
  ),
});
