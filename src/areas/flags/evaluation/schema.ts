import { Type } from "@sinclair/typebox";
import { orNull } from "../../../kernel/data/schema.ts";

/** Levels of objects and arrays in a context, including itself. Conditions do not reach deeper. */
export const CONTEXT_LEVELS_MAX = 8;

/** Evaluation context in a request. */
export const Context = orNull(
  Type.Object(
    {
      targetingKey: Type.Optional(
        orNull(Type.String(), { description: "Id of the subject, such as a user; null like none." }),
      ),
    },
    { additionalProperties: true },
  ),
  {
    errorMessage: "must be an object, with a string as targetingKey",
    description: `Evaluation context, such as attributes of a user: any JSON object with at most ${CONTEXT_LEVELS_MAX} levels.`,
  },
);
