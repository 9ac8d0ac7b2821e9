import { afterAll, expect, test } from "bun:test";
import { Kind, type TObject, type TSchema } from "@sinclair/typebox";
import { type DurationUnit, durationUnitOf, isTimeZone } from "../../../../src/kernel/data/schema.ts";
import type { DeclaredRoute } from "../../../../src/kernel/http/api.ts";
import { exampleOf, publicSchema } from "../../../../src/kernel/http/document/openapi.ts";
import { inputChecks } from "../../../../src/kernel/http/requests/validate.ts";
import type { Client } from "../../../support/client.ts";
import { customerOf } from "../../../support/portal.ts";
import { startTestServer } from "../../../support/server.ts";

const UNIT_MS: Readonly<Record<DurationUnit | "text", number>> = {
  ms: 1,
  seconds: 1_000,
  minutes: 60_000,
  hours: 3_600_000,
  days: 86_400_000,
  text: 1,
};
interface Field {
  readonly path: readonly string[];
  readonly schema: TSchema;
}

/** Every field of a body, at every level; `[]` stands for the items of a list. */
function* fieldsOf(schema: TSchema, path: readonly string[] = []): Generator<Field> {
  yield { path, schema };
  for (const one of schema["anyOf"] ?? []) if (one.type !== "null") yield* fieldsOf(one, path);
  for (const [name, property] of Object.entries<TSchema>(schema["properties"] ?? {}))
    yield* fieldsOf(property, [...path, name]);
  if (schema[Kind] === "Array") yield* fieldsOf(schema["items"], [...path, "[]"]);
}

/** A schema, and those that it lets choose from. */
function schemasAt(schema: TSchema): TSchema[] {
  return [schema, ...(schema["anyOf"] ?? [])];
}

/** A body that is valid, with a value at a path. */
function bodyWith(body: TObject, example: object, path: readonly string[], value: unknown): object {
  const put = (schema: TSchema, given: unknown, [name, ...rest]: readonly string[]): unknown => {
    if (name === undefined) return value;
    const own = (schema["anyOf"] as TSchema[] | undefined)?.find(({ type }) => type !== "null") ?? schema;
    if (name === "[]") return [put(own["items"], Array.isArray(given) ? given[0] : undefined, rest)];
    const isObject = typeof given === "object" && given !== null;
    const base = isObject ? given : requiredOf(own);
    const inner = put(own["properties"][name], Reflect.get(base, name), rest);
    return { ...base, [name]: inner };
  };
  return put(body, example, path) as object;
}

function requiredOf(schema: TSchema): object {
  const required: readonly string[] = schema["required"] ?? [];
  return Object.fromEntries(
    required.map((name) => [name, exampleOf(publicSchema(schema["properties"][name]))]),
  );
}

const server = await startTestServer({ manualClock: true });
afterAll(() => server.stop());
const routes: readonly DeclaredRoute[] = server.server.app.http.routes;
const noWarnings = { addWarnings: () => undefined };
const bodies = routes.flatMap(({ body, operation }) => {
  if (body === undefined) return [];
  return [...fieldsOf(body)].map((field) => ({
    ...field,
    operation,
    body,
    check: inputChecks({ body }).body,
  }));
});
const durations = bodies.filter(({ schema }) => durationUnitOf(schema) !== null);
const zones = bodies.filter(({ schema }) => isTimeZone(schema));

function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce((at, name) => Reflect.get(Object(at), name === "[]" ? 0 : name), value);
}

test("every field of a request that has the name of a duration or a zone is one", () => {
  const hasName = /(_ms|_seconds|_minutes|_hours|_days|^minutes|^ttl|^timeout|^interval|^delay|expires_in)$/;
  // What probes have measured is no setting that a person writes.
  const settings = bodies.filter(({ operation }) => operation.name !== "probe.results.create");
  // Quiet hours are times of a day.
  const named = settings.filter(
    ({ path, schema }) =>
      hasName.test(path.at(-1) ?? "") && !schemasAt(schema).some(({ type }) => type === "object"),
  );
  const missing = named.filter(({ schema }) =>
    [...fieldsOf(schema)].every((one) => durationUnitOf(one.schema) === null),
  );
  expect(missing.map(({ operation, path }) => `${operation.name} ${path.join(".")}`)).toEqual([]);
  const unmarked = bodies.filter(
    ({ path, schema }) => /^(tz|timezone|time_zone)$/.test(path.at(-1) ?? "") && !isTimeZone(schema),
  );
  expect(unmarked).toEqual([]);
  expect(durations.length).toBeGreaterThan(40);
  expect(zones.length).toBeGreaterThanOrEqual(6);
});

test.each(
  durations.map((duration) => [`${duration.operation.name} ${duration.path.join(".")}`, duration] as const),
)(
  "%s accepts both forms, and rejects what it cannot read with an example",
  (_name, { schema, operation, body, path, check }) => {
    const unit = durationUnitOf(schema) ?? "ms";
    const isText = unit === "text";
    const least = isText ? 3_600_000 : Math.max(Number(schema["minimum"]), 1) * UNIT_MS[unit];
    const text = isText ? "1h" : `${least}ms`;
    const number = least / UNIT_MS[unit];
    const read = (value: unknown): unknown =>
      valueAt(check?.(bodyWith(body, operation.example ?? {}, path, value), noWarnings), path);
    expect(read(text)).toBe(isText ? text : number);
    expect(read(number)).toBe(isText ? text : number);
    for (const wrong of ["1x", "soon", true, "", "999999999w", -1]) {
      if (wrong === "999999999w" && schema["maximum"] === undefined) continue;
      // What a list of delays has is checked with its limits, by the service.
      if (path.includes("[]") && isText && typeof wrong === "string") continue;
      expect(() => read(wrong)).toThrow(/such as "?\d+[a-z]+/);
    }
  },
);

test.each(zones.map((zone) => [`${zone.operation.name} ${zone.path.join(".")}`, zone] as const))(
  "%s accepts each name of a zone",
  (_name, { operation, body, path, check }) => {
    const example = operation.example ?? {};
    const parent = path.slice(0, -1);
    const complete = Object(valueAt(bodyWith(body, example, path, "UTC"), parent));
    const { tz: _tz, timezone: _zone, time_zone: _timeZone, ...others } = complete;
    for (const name of ["tz", "timezone", "time_zone"]) {
      const terms = bodyWith(body, example, parent, { ...others, [name]: "Europe/Berlin" });
      expect(valueAt(check?.(terms, noWarnings), path)).toBe("Europe/Berlin");
    }
  },
);

test("a wait in a query is a number or a text", () => {
  const query = routes.find(({ query }) => "wait_ms" in (query?.properties ?? {}))?.query;
  const check = inputChecks({ query }).query;
  expect(check?.("/x?after=now&wait_ms=30s", noWarnings)).toMatchObject({ wait_ms: 30_000 });
  expect(() => check?.("/x?after=now&wait_ms=soon", noWarnings)).toThrow('such as "1ms"');
});

test("what is created with a zone, a duration or a state has it", async () => {
  const account = await server.account({ tier: "scale" });
  const create = async (client: Client, path: string, body: object): Promise<unknown> => {
    const { status, body: shown, text } = await client.post(path, body);
    expect(status, text).toBe(201);
    expect(shown).not.toHaveProperty("warnings");
    return shown;
  };
  const target_url = "https://example.com/hooks";
  const run = { cron: "0 9 * * *", target_url, timezone: "Europe/Berlin" };
  expect(await create(account, "/v1/relay/schedules", run)).toMatchObject({ time_zone: "Europe/Berlin" });
  const heartbeat = { type: "heartbeat", schedule: "0 9 * * *", time_zone: "Europe/Berlin", grace: "2m" };
  expect(await create(account, "/v1/pulse", heartbeat)).toMatchObject({
    tz: "Europe/Berlin",
    grace_ms: 120_000,
  });
  const bucket = { target_url, state: "live", retry_schedule: [5_000, "5m"] };
  expect(await create(account, "/v1/catch/buckets", bucket)).toMatchObject({
    state: "live",
    retry_schedule: ["5s", "5m"],
  });
  const customer = await customerOf(server, account);
  const paused = { url: target_url, state: "paused" };
  expect(await create(customer, "/v1/relay/portal/endpoints", paused)).toMatchObject({ state: "paused" });
  const relay = { target_url, method: "POST", delay: 90_000 };
  expect(await create(account, "/v1/relay", relay)).toMatchObject({ status: "scheduled" });
});

test("each operation that creates what has a state accepts the state", () => {
  const withState = routes.filter(({ responses }) => "state" in (responses[201]?.["properties"] ?? {}));
  const missing = withState.filter(({ body }) => body !== undefined && !("state" in body.properties));
  expect(missing.map(({ operation }) => operation.name)).toEqual([]);
});
