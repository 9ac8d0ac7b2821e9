import { type TSchema, Type } from "@sinclair/typebox";
import { orNull } from "../../kernel/data/schema.ts";

const MINUTE_MS = 60_000;

/** An integer with its limits in its error. */
export const integer = (minimum: number, maximum: number, description: string) =>
  Type.Integer({
    minimum,
    maximum,
    errorMessage: `must be an integer from ${minimum} to ${maximum}`,
    description,
  });

/** The same for a duration: the error names the unit. */
export const milliseconds = (minimum: number, maximum: number, description: string) => ({
  ...integer(minimum, maximum, description),
  errorMessage: `must be an integer from ${minimum} to ${maximum}, in milliseconds: ${MINUTE_MS} is a minute`,
});

export const flag = (description: string) =>
  Type.Boolean({ errorMessage: "must be true or false", description });

/** An optional field that null clears. */
export const clearable = <T extends TSchema>(schema: T) =>
  Type.Optional(orNull(schema, { errorMessage: `${String(schema["errorMessage"])}, or null` }));
