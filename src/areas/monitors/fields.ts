import { type TSchema, Type } from "@sinclair/typebox";
import { orNull } from "../../kernel/data/schema.ts";

const MINUTE_MS = 60_000;

/** A whole number with its bounds in its error. */
export const integer = (minimum: number, maximum: number, description: string) =>
  Type.Integer({
    minimum,
    maximum,
    errorMessage: `must be an integer from ${minimum} to ${maximum}`,
    description,
  });

/** The same for a time, whose unit many mistake. */
export const milliseconds = (minimum: number, maximum: number, description: string) => ({
  ...integer(minimum, maximum, description),
  errorMessage: `must be an integer from ${minimum} to ${maximum}, in milliseconds: ${MINUTE_MS} is a minute`,
});

/** True or false. */
export const flag = (description: string) =>
  Type.Boolean({ errorMessage: "must be true or false", description });

/** For settings that a change can remove. */
export const clearable = <T extends TSchema>(schema: T) =>
  Type.Optional(orNull(schema, { errorMessage: `${String(schema["errorMessage"])}, or null` }));
