import { type Static, Type } from "@sinclair/typebox";
import { named, oneOf, orNull } from "../../../kernel/data/schema.ts";
import { INACTIVITY_SECONDS } from "./domain.ts";

const Key = Type.String({ examples: ["new-checkout"] });

/** Path of a flag. A key that no flag can have is one that is not there. */
export const OfrepParams = Type.Object({ key: Key });

/** What flags are evaluated for; null for nothing. */
export const Context = orNull(
  Type.Object(
    { targetingKey: Type.Optional(Type.String({ description: "Whom the flag is evaluated for." })) },
    { additionalProperties: true },
  ),
  {
    errorMessage: "must be an object, and its targetingKey a text",
    description: "What is known of whom the flags are evaluated for: any JSON, at most 8 levels.",
  },
);

/** Body of an evaluation. */
export const OfrepBody = named("EvaluationBody", {
  context: Type.Optional(Context),
});

/** What a flag is for a context. */
export const Evaluation = named("Evaluation", {
  key: Key,
  value: Type.Optional(
    Type.Unknown({ description: "Left out where the caller's own default counts.", examples: [true] }),
  ),
  variant: Type.Optional(Type.String({ examples: ["on"] })),
  reason: oneOf(["STATIC", "DEFAULT", "TARGETING_MATCH", "SPLIT", "DISABLED"], {}),
  metadata: Type.Record(Type.String(), Type.Union([Type.String(), Type.Number(), Type.Boolean()]), {
    examples: [{}],
  }),
});
export type Evaluation = Static<typeof Evaluation>;

const EventStream = named("FlagEventStream", {
  type: Type.Literal("sse"),
  url: Type.Optional(Type.String({ description: "With `public_url`: where the stream is.", examples: [] })),
  endpoint: Type.Optional(
    Type.Object({ requestUri: Type.String({ examples: ["/ofrep/v1/events?token=…"] }) }),
  ),
  inactivityDelaySec: Type.Integer({ examples: [INACTIVITY_SECONDS] }),
});

/** What all flags are for a context. */
export const Evaluations = named("Evaluations", {
  flags: Type.Array(Evaluation),
  eventStreams: Type.Optional(
    Type.Array(EventStream, {
      description: "Where to hear that something has changed. Not for browser sessions.",
    }),
  ),
});
export type Evaluations = Static<typeof Evaluations>;

/** Query of the stream. */
export const OfrepEventsQuery = Type.Object({
  token: Type.Optional(Type.String({ description: "As `eventStreams` has it." })),
  lastEventId: Type.Optional(
    Type.String({ description: "As the header `Last-Event-ID`, which goes before." }),
  ),
});
