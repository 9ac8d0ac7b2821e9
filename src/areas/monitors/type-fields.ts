import { type Static, Type } from "@sinclair/typebox";
import { invalidField } from "../../kernel/errors.ts";
import { compileValidator } from "../../kernel/http/requests/validate.ts";
import { type MonitorCreateBody, MonitorUpdateBody } from "./schema.ts";
import { MONITOR_TYPES, type MonitorType } from "./types.ts";

/** By type: checks that the fields are given that a new monitor must have. */
const REQUIRED = new Map(
  Object.entries(MONITOR_TYPES).map(([type, { required }]) => {
    const schema = Type.Required(Type.Pick(MonitorUpdateBody, [...required], { additionalProperties: true }));
    return [type, compileValidator(schema)];
  }),
);

/** Fields of a request that creates or updates a monitor. */
export type GivenMonitor = MonitorUpdateBody & GivenAddresses;
/** Addresses of a heartbeat that a creation brings along. */
export type GivenAddresses = Pick<Static<typeof MonitorCreateBody>, "ping_id" | "push_token">;

/** Separates the settings of heartbeats from those of every monitor. */
export function splitGiven(body: GivenMonitor) {
  const { type, slug, period_ms, schedule, tz, grace_ms, start_grace_ms, max_runs_per_period, ...others } =
    body;
  const { ping_id, push_token, ...common } = others;
  const addresses: GivenAddresses = { ...(ping_id && { ping_id }), ...(push_token && { push_token }) };
  return {
    type,
    timing: { slug, period_ms, schedule, tz, grace_ms, start_grace_ms, max_runs_per_period },
    addresses,
    common,
  };
}

/** Settings of a heartbeat in a request. */
export type GivenTiming = ReturnType<typeof splitGiven>["timing"];

/** @throws ApiError `validation_error` naming a required field of a new monitor that is missing. */
export function assertRequired(type: MonitorType, body: GivenMonitor): void {
  REQUIRED.get(type)?.(body);
}

/** @throws ApiError `validation_error` for a type other than the monitor's, and for fields of another type. */
export function assertOfType(type: MonitorType, body: GivenMonitor): void {
  if (body.type !== undefined && body.type !== type)
    throw invalidField("type", `is ${type} and cannot be changed. Create another monitor`);
  for (const { fields, noun } of Object.values(MONITOR_TYPES)) {
    const field = fields.find(
      (name) => body[name] !== undefined && !MONITOR_TYPES[type].fields.includes(name),
    );
    if (field !== undefined)
      throw invalidField(
        field,
        `is a field of ${noun}, and the \`type\` of this monitor is ${type}. Omit it.`,
      );
  }
}
