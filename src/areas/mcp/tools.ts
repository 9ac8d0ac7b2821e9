import { type TObject, Type } from "@sinclair/typebox";
import { type Caller, hasScope, type Scope } from "../../kernel/http/access/caller.ts";
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
  messages_resend: "relay.messages.resend",
  schedules_create: "relay.schedules.create",
  schedules_update: "relay.schedules.update",
  schedules_run: "relay.schedules.run",
  events_replay: "catch.events.replay",
  events_replay_many: "catch.replays.start",
} as const;

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
 * The input of a tool's operation, with each argument where its schema has it. Values are checked by the operation.
 * @throws UnknownArgument
 */
export function inputOf({ writes, route }: Tool, args: Readonly<Record<string, unknown>>): ContainedInput {
  const has = (schema: TObject | undefined, name: string): boolean =>
    schema !== undefined && Object.hasOwn(schema.properties, name);
  const params: Record<string, string> = {};
  const query = new URLSearchParams();
  const body: Record<string, unknown> = {};
  let idempotencyKey: string | null = null;
  for (const [name, value] of Object.entries(args)) {
    if (has(route.params, name)) addPathParameter(params, name, value);
    else if (has(route.query, name)) addParameter(query, name, value);
    else if (has(route.body, name)) body[name] = value;
    else if (writes && name === IDEMPOTENCY_KEY) idempotencyKey = headerValue(value);
    else throw new UnknownArgument(name);
  }
  return {
    params,
    query,
    body: route.body === undefined ? null : body,
    idempotencyKey,
  };
}

/** Thrown for an argument that a tool does not have. */
export class UnknownArgument extends Error {
  constructor(readonly argument: string) {
    super(argument);
  }
}

// Models send null for what they leave out, in the path and in the query.

function addPathParameter(params: Record<string, string>, name: string, value: unknown): void {
  if (value === null) return;
  params[name] = typeof value === "string" ? value : JSON.stringify(value);
}

function addParameter(query: URLSearchParams, name: string, value: unknown): void {
  if (value === null) return;
  for (const one of Array.isArray(value) ? value : [value])
    query.append(name, typeof one === "string" ? one : JSON.stringify(one));
}

/** Printable ASCII, which is what a header can carry. */
const HEADER_VALUE = /^[\x20-\x7e]{1,255}$/;

function headerValue(value: unknown): string {
  if (typeof value === "string" && HEADER_VALUE.test(value)) return value;
  throw new UnknownArgument(`${IDEMPOTENCY_KEY} that is not 1 to 255 printable ASCII characters`);
}
