import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { oneOf, orNull } from "../../kernel/data/schema.ts";

const TYPES = ["http", "heartbeat", "tcp", "dns"] as const;

export const MonitorType = oneOf(TYPES, {
  errorMessage: `must be one of ${TYPES.join(", ")}`,
  description:
    "`http` requests a URL, `tcp` connects to a port, `dns` looks up records, `heartbeat` waits for pings. Default `http`; fixed after creation.",
});
export type MonitorType = Static<typeof MonitorType>;

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
