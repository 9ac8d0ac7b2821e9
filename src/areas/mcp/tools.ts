import { type TObject, Type } from "@sinclair/typebox";
import { type Caller, hasScope, type Scope } from "../../kernel/callers/caller.ts";
import { echoed } from "../../kernel/errors.ts";
import type { DeclaredRoute } from "../../kernel/http/api.ts";
import type { ContainedInput } from "../../kernel/http/contained.ts";
import { type Json, publicSchema } from "../../kernel/http/document/openapi.ts";

/** Tools that read, by name, each with its operation. */
export const READING_TOOLS = {
  overview: "overview.read",
  projects_list: "projects.list",
  projects_get: "projects.get",
  projects_overview: "projects.overview",
  flags_list: "gate.list",
  flags_get: "gate.definition",
  flags_evaluate: "gate.evaluate",
  flags_evaluations: "gate.evaluations",
  flags_preview: "gate.preview",
  flags_proposals_list: "gate.proposals.list",
  flags_proposals_list_of_flag: "gate.proposals.list_of_flag",
  flags_proposals_get: "gate.proposals.read",
  meters_list: "meter.list",
  meters_balance: "meter.balance",
  meters_history: "meter.history",
  meters_usage: "meter.usage",
  meters_usage_of_project: "meter.usage.project",
  meters_plan: "meter.plan.read",
  meters_alert: "meter.alert.read",
  meters_alert_of_project: "meter.alert.project.read",
  meters_holds_list: "meter.holds.list",
  meters_holds_get: "meter.holds.read",
  account_balance: "meter.own.balance",
  account_history: "meter.own.history",
  monitors_list: "monitors.list",
  monitors_get: "monitors.read",
  monitors_history: "monitors.history",
  monitors_pings: "monitors.pings",
  incidents_list: "monitors.incidents.list",
  incidents_get: "monitors.incidents.read",
  maintenance_list: "monitors.maintenance.list",
  maintenance_get: "monitors.maintenance.read",
  deliveries_list: "relay.list",
  deliveries_get: "relay.read",
  deliveries_body: "relay.body",
  deliveries_stats: "relay.stats",
  deliveries_resend_status: "relay.resends.read",
  messages_list: "relay.messages.list",
  messages_get: "relay.messages.read",
  endpoints_list: "relay.endpoints.list",
  endpoints_get: "relay.endpoints.read",
  endpoints_preview: "relay.endpoints.preview",
  event_types_list: "relay.event_types.list",
  event_types_get: "relay.event_types.read",
  schedules_list: "relay.schedules.list",
  schedules_get: "relay.schedules.read",
  buckets_list: "catch.buckets.list",
  buckets_get: "catch.buckets.get",
  events_list: "catch.events.list",
  events_get: "catch.events.get",
  events_replay_status: "catch.replays.get",
  receipts_search: "witness.receipts.list",
  receipts_get: "witness.receipts.read",
  receipts_verify: "witness.verify",
  locks_list: "latch.list",
  locks_get: "latch.status",
  audit_list: "audit.list",
  audit_get: "audit.read",
} as const;

/** Tools that change something, with `--mcp-write` only. */
export const WRITING_TOOLS = {
  flags_save: "gate.save",
  deliveries_schedule: "relay.schedule",
  deliveries_resend: "relay.resend",
  deliveries_resend_many: "relay.resends.start",
  endpoints_recover: "relay.endpoints.recover",
  messages_resend: "relay.messages.resend",
  schedules_create: "relay.schedules.create",
  schedules_update: "relay.schedules.update",
  schedules_run: "relay.schedules.run",
  events_replay: "catch.events.replay",
  events_replay_many: "catch.replays.start",
} as const;

/** Operations that a reviewed project rejects, with those that propose the same change. */
const PROPOSING: Readonly<
  Record<string, { readonly operation: string; readonly key: string; readonly param: string }>
> = {
  "gate.save": { operation: "gate.proposals.create", key: "flag_key", param: "flagKey" },
};

/** The proposal of the change that a tool makes; null if there is none. */
export function proposalOf(
  tool: Tool,
  input: ContainedInput,
): { operation: string; input: ContainedInput } | null {
  const proposing = PROPOSING[tool.route.operation.name];
  if (proposing === undefined || input.body === null) return null;
  const { operation, key, param } = proposing;
  const { [key]: name, ...body } = input.body as Readonly<Record<string, unknown>>;
  return { operation, input: { ...input, params: { [param]: String(name) }, body } };
}

/** Argument of writing tools that is sent as `Idempotency-Key`. */
const IDEMPOTENCY_KEY = "idempotency_key";

const IdempotencyKey = Type.Optional(
  Type.String({
    minLength: 1,
    maxLength: 255,
    description: "A repeat with the same key within 24 hours returns the first result and changes nothing.",
  }),
);

/** An operation as a tool. */
export interface Tool {
  readonly name: string;
  readonly writes: boolean;
  readonly route: DeclaredRoute;
}

/** The tools of a server, by name, in a fixed order. @throws Error if an operation of the lists is not declared. */
export function toolsOf(routes: readonly DeclaredRoute[], withWriting: boolean): ReadonlyMap<string, Tool> {
  const byOperation = new Map(routes.map((route) => [route.operation.name, route]));
  const named = (list: Readonly<Record<string, string>>, writes: boolean): [string, Tool][] =>
    Object.entries(list).map(([name, operation]) => {
      const route = byOperation.get(operation);
      if (route === undefined) throw new Error(`the tool ${name} has no operation ${operation}`);
      return [name, { name, writes, route }];
    });
  return new Map([...named(READING_TOOLS, false), ...(withWriting ? named(WRITING_TOOLS, true) : [])]);
}

/** Whether a caller's key may call a tool. */
export function mayCall(caller: Caller, { route: { operation } }: Tool): boolean {
  const { access, accountOnly } = operation;
  if (accountOnly && caller.projectBound) return false;
  return access === "any" || hasScope(caller, access as Scope);
}

/** The definition of a tool, as `tools/list` returns it. */
export function definitionOf({ name, writes, route }: Tool): Json {
  const { summary, description, cost } = route.operation;
  const price = cost === 0 ? [] : [`Costs ${cost} credit${cost === 1 ? "" : "s"}.`];
  return {
    name,
    title: summary,
    description: [`${summary}.`, description ?? [], price].flat().join(" "),
    inputSchema: publicSchema(inputSchema(route, writes)),
    annotations: {
      title: summary,
      readOnlyHint: !writes,
      // Nothing is deleted, but saving a flag replaces what it was.
      destructiveHint: route.operation.name === "gate.save",
      // Results repeat what others have sent.
      openWorldHint: true,
    },
  };
}

/** Path parameters, query parameters and fields of the body, next to each other. */
function inputSchema({ params, query, body }: DeclaredRoute, writes: boolean): TObject {
  return Type.Object(
    {
      ...params?.properties,
      ...query?.properties,
      ...body?.properties,
      ...(writes ? { [IDEMPOTENCY_KEY]: IdempotencyKey } : {}),
    },
    { additionalProperties: false },
  );
}

/**
 * Longest arguments of path and query together, names included, in characters: the server's own limit of a request line is
 * of this order, and no parameter needs more.
 */
export const PARAMETERS_LENGTH_MAX = 2_048;

/**
 * What is wrong with the arguments of a tool, apart from what its operation checks; null if nothing is. Reads no further
 * than the first unknown argument, or the end of {@link PARAMETERS_LENGTH_MAX}.
 */
export function argumentProblem(
  { name: tool, writes, route: { params, query, body } }: Tool,
  args: Readonly<Record<string, unknown>>,
): string | null {
  let left = PARAMETERS_LENGTH_MAX;
  for (const name in args) {
    if (has(params, name) || has(query, name)) {
      const length = parameterLength(name, args[name], left);
      if (length === null) return `The argument ${name} must be a text, a number or a boolean.`;
      left -= length;
      if (left < 0)
        return `The arguments of path and query are longer than ${PARAMETERS_LENGTH_MAX} characters together. Shorten ${name}.`;
    } else if (writes && name === IDEMPOTENCY_KEY) {
      if (!isHeaderValue(args[name]))
        return `The argument ${IDEMPOTENCY_KEY} must be 1 to 255 printable ASCII characters.`;
    } else if (!has(body, name)) return `The tool ${tool} has no argument ${echoed(name)}.`;
  }
  return null;
}

/** Characters of a parameter, with its name before each value. Ends above `max`. Null for what is no parameter. */
function parameterLength(name: string, value: unknown, max: number): number | null {
  let length = 0;
  for (const item of Array.isArray(value) ? value : [value]) {
    if (typeof item === "object" && item !== null) return null;
    length += name.length + String(item).length;
    if (length > max) break;
  }
  return length;
}

function has(schema: TObject | undefined, name: string): boolean {
  return schema !== undefined && Object.hasOwn(schema.properties, name);
}

/**
 * The input of a tool's operation, with each argument where its schema has it. Values are checked by the operation.
 * `args` have no {@link argumentProblem}.
 */
export function inputOf({ route }: Tool, args: Readonly<Record<string, unknown>>): ContainedInput {
  const params: Record<string, string> = {};
  const query = new URLSearchParams();
  const body: Record<string, unknown> = {};
  let idempotencyKey: string | null = null;
  for (const [name, value] of Object.entries(args)) {
    const isParameter = has(route.params, name);
    if (isParameter || has(route.query, name)) {
      // Models send null for what they omit, in the path and in the query.
      if (value === null) continue;
      if (isParameter) params[name] = String(value);
      else for (const item of Array.isArray(value) ? value : [value]) query.append(name, String(item));
    } else if (name === IDEMPOTENCY_KEY) idempotencyKey = String(value);
    else body[name] = value;
  }
  return {
    params,
    query,
    body: route.body === undefined ? null : body,
    idempotencyKey,
  };
}

/** Printable ASCII, which is what a header can carry. */
const HEADER_VALUE = /^[\x20-\x7e]{1,255}$/;

function isHeaderValue(value: unknown): boolean {
  return typeof value === "string" && HEADER_VALUE.test(value);
}
