import { type TSchema, Type } from "@sinclair/typebox";
import { duration } from "../../kernel/data/duration.ts";
import { orNull } from "../../kernel/data/schema.ts";

/** An integer with its limits in its error. */
export const integer = (minimum: number, maximum: number, description: string) =>
  Type.Integer({
    minimum,
    maximum,
    errorMessage: `must be an integer from ${minimum} to ${maximum}`,
    description,
  });

/** A duration in milliseconds. */
export const milliseconds = (min: number, max: number, description: string) =>
  duration({ unit: "ms", min, max, description });

export const flag = (description: string) =>
  Type.Boolean({ errorMessage: "must be true or false", description });

/** An optional field that null clears. */
export const clearable = <T extends TSchema>(schema: T) =>
  Type.Optional(orNull(schema, { errorMessage: `${String(schema["errorMessage"])}, or null` }));
