/** A piece of an OpenAPI document. */
export type Json = { readonly [key: string]: unknown };

/** Named schemas of a description, by name: each stands there once, wherever it is used. */
export type Components = Map<string, Json>;

/**
 * A schema as the API's description shows it: without what is for our own checks only, a union of constants as an
 * `enum`, and "or null" as a second type. With `components`, a schema that has an `$id` is put there, and a
 * reference stands in its place.
 */
export function publicSchema(schema: unknown, components: Components | null = null): Json {
  return simplified(JSON.parse(JSON.stringify(schema)), components) as Json;
}

function simplified(value: unknown, components: Components | null): unknown {
  if (Array.isArray(value)) return value.map((part) => simplified(part, components));
  if (typeof value !== "object" || value === null) return value;
  const { errorMessage: _, $id: name, ...rest } = value as { [key: string]: unknown };
  const plain: Json = Object.fromEntries(
    Object.entries(rest).map(([key, part]) => [key, simplified(part, components)]),
  );
  const shown = Array.isArray(plain["anyOf"]) ? union(plain, plain["anyOf"]) : plain;
  if (typeof name !== "string" || components === null) return shown;
  components.set(name, shown);
  return { $ref: `#/components/schemas/${name}` };
}

function union({ anyOf: _, ...rest }: Json, members: readonly Json[]): Json {
  const values = members.filter(({ type }) => type !== "null");
  const joined = values.length === 1 ? values[0] : enumOf(values);
  if (joined === undefined) return { ...rest, anyOf: members };
  const own = values.length < members.length ? orNull(joined) : joined;
  return own === undefined ? { ...rest, anyOf: members } : { ...own, ...rest };
}

/** One schema for constants of one type; undefined for anything else. */
function enumOf(members: readonly Json[]): Json | undefined {
  const [first] = members;
  if (first === undefined || !members.every((one) => "const" in one && one["type"] === first["type"]))
    return undefined;
  return { type: first["type"], enum: members.map((one) => one["const"]) };
}

/** The same with null; undefined where a second type would not say it (an object's own rules stand beside its type). */
function orNull(schema: Json): Json | undefined {
  const { type } = schema;
  if (typeof type !== "string" || type === "object" || type === "array" || "const" in schema)
    return undefined;
  const names = schema["enum"];
  return { ...schema, type: [type, "null"], ...(Array.isArray(names) ? { enum: [...names, null] } : {}) };
}

const UUID = "0199f0a2-7c1e-7b3a-9d52-0c8f6f0f5e11";
const AT_MS = Date.UTC(2026, 2, 10, 12);
const HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

/**
 * Values as they occur, by the name of a field or parameter, where a schema brings no `examples` of its own. With an
 * area before the name, for that area alone. One that is of another type than its field is passed over.
 */
const BY_NAME: Readonly<Record<string, unknown>> = {
  "24h": 99.95,
  "7d": 99.98,
  "30d": 100,
  accessKeyId: "AKIA…MPLE",
  active: true,
  amount: -1,
  api_key: "sm_4fJ9…_1c2d3e4f",
  attempt: 1,
  attempts: 1,
  balance: 999,
  balance_after: 999,
  body: null,
  "Notary.bucket": "receipts",
  bucket_id: "brave-otter-314159",
  buckets: 1,
  buffered: 0,
  chain_hash: HASH,
  chain_id: "wc_u7Qk1xR0aZ3mB9cV5nL2pS8tY4hW6dEf",
  chain_link_valid: true,
  chainId: "wc_u7Qk1xR0aZ3mB9cV5nL2pS8tY4hW6dEf",
  chains: 1,
  consecutive_failures: 0,
  consecutive_threshold: 3,
  content_hash: HASH,
  content_hash_matches: true,
  cooldown_ms: 300_000,
  count: 1,
  cursor: "eyJhIjo0Mn0",
  deleted_count: 12,
  delivered: 41,
  "Flags.description": "The new checkout",
  "Projects.description": "Orders of the web shop",
  duration_ms: 84,
  email: "jane@example.com",
  email_alert: false,
  enabled: true,
  endpoint: "https://s3.eu-central-1.amazonaws.com",
  environment: "production",
  error: null,
  event: "monitor.down",
  event_id: "evt_1jjbpshg000",
  failed: 0,
  fencing_token: 7,
  finished_at: null,
  flag: "new-checkout",
  flag_key: "new-checkout",
  flags: 4,
  grace_hours: 24,
  has_more: false,
  has_signing_secret: true,
  "Catch.id": "brave-otter-314159",
  "Projects.id": "proj_8Zk2vQ1mX7cB4nL9pS3t",
  interval: 60_000,
  "Keys.key": "sm_4fJ9…_1c2d3e4f",
  "Locks.key": "invoice:42",
  keys: 3,
  last4: "3e4f",
  last_error: null,
  last_used_ip: "203.0.113.7",
  last_used_ua: "curl/8.5.0",
  latency_ms: 84,
  locked: true,
  locks: 0,
  manual: false,
  masked_secret: "sm_...",
  meter_balance: 9_990,
  meter_id: "customer-42",
  meters: 120,
  method: "POST",
  "Monitors.method": "GET",
  monitors: 2,
  name: "Web shop",
  "Keys.name": "Checkout service",
  new_secret: "sm_7hK2…_5a6b7c8d",
  next_cursor: null,
  notify_recovery: true,
  openapi: "3.1.0",
  operation: "gate.evaluate",
  payload: { order: 1042 },
  payload_base64: "eyJvcmRlciI6MTA0Mn0=",
  pending: 0,
  prefix: "sm",
  "Notary.prefix": "",
  prev_hash: "0".repeat(64),
  project_id: "proj_8Zk2vQ1mX7cB4nL9pS3t",
  project_name: "Web shop",
  queue_depth: 0,
  reentrant: false,
  region: "eu-central-1",
  relays: 1,
  request_id: UUID,
  response_status: 200,
  revoked_at: null,
  scope: "meter:write",
  secret: "sm_4fJ9…_1c2d3e4f",
  sequence: 42,
  sequence_id: "1",
  signature: HASH.repeat(2),
  signature_valid: true,
  slug: "web-shop",
  storage_location:
    "https://s3.eu-central-1.amazonaws.com/receipts/witness/receipts/00000000000000000001.json",
  suspended: false,
  target_url: "https://example.com/hooks",
  timeout: 10_000,
  token: "6f1c2b7e-3c1d-4d8e-9a52-1f0b7c9d2e34",
  ttl_remaining: 8_500,
  url: "https://example.com/health",
  user_id: "usr_3vQ8Zk2mX7cB4nL9pS1t",
  valid: true,
  webhook_url: "https://example.com/alerts",
  x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
};

/** Optional fields that an answer has in a special case only. */
const SPECIAL_CASES = new Set(["warning", "errors"]);

/** A value as it could stand in an answer. `area`: the part of the API that it is for. */
export function exampleOf(schema: Json, area: string, name = ""): unknown {
  if ("const" in schema) return schema["const"];
  const [own] = listOf(schema["examples"]);
  if (own !== undefined) return own;
  for (const key of [`${area}.${name}`, name]) {
    if (Object.hasOwn(BY_NAME, key) && fits(BY_NAME[key], schema)) return BY_NAME[key];
  }
  const [choice] = [...listOf(schema["enum"]), ...listOf(schema["default"])];
  if (choice !== undefined) return choice;
  const [member] = listOf(schema["anyOf"]);
  if (member !== undefined) return exampleOf(member as Json, area, name);
  return byType(schema, area, name);
}

function byType(schema: Json, area: string, name: string): unknown {
  switch (typesOf(schema)[0]) {
    case "object":
      return objectOf(schema, area);
    case "array":
      return [exampleOf(schema["items"] as Json, area, singular(name))];
    case "string":
      return textOf(schema);
    case "boolean":
      return true;
    case "integer":
    case "number":
      return numberOf(schema);
    default:
      return null;
  }
}

function objectOf(schema: Json, area: string): Json {
  const properties = Object.entries((schema["properties"] ?? {}) as Record<string, Json>);
  const shown = properties.filter(([name]) => !SPECIAL_CASES.has(name));
  return Object.fromEntries(shown.map(([name, property]) => [name, exampleOf(property, area, name)]));
}

function textOf({ format }: Json): string {
  if (format === "uuid") return UUID;
  return format === "date-time" ? new Date(AT_MS).toISOString() : "text";
}

/** Moments are told from other numbers by what their description says of the unit. */
function numberOf({ description = "" }: Json): number {
  if (/Epoch milliseconds|Milliseconds since/.test(String(description))) return AT_MS;
  return /Unix seconds/.test(String(description)) ? AT_MS / 1_000 : 1;
}

function fits(value: unknown, schema: Json): boolean {
  const types = typesOf(schema);
  if (types.length === 0) return !("anyOf" in schema) && !("enum" in schema);
  if (schema["enum"] !== undefined || schema["format"] !== undefined)
    return value === null && types.includes("null");
  const type = value === null ? "null" : typeof value;
  return types.some(
    (name) =>
      name === type ||
      (name === "integer" && Number.isInteger(value)) ||
      (name === "number" && type === "number"),
  );
}

function typesOf({ type }: Json): readonly unknown[] {
  return Array.isArray(type) ? type : type === undefined ? [] : [type];
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : value === undefined ? [] : [value];
}

function singular(name: string): string {
  return name.replace(/s$/, "");
}
