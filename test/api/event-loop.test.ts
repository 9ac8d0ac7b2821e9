import { afterAll, beforeAll, expect, test } from "bun:test";
import type { TSchema } from "@sinclair/typebox";
import type { DeclaredRoute } from "../../src/kernel/http/api.ts";
import { bodyOf, makeResource, parametersOf, pathOf, queryOf, segmentOf } from "../support/matrix.ts";
import { leastMs, longestTurnMs, TURN_MS_MAX } from "../support/processor-time.ts";
import { type AccountClient, startTestServer, type TestServer } from "../support/server.ts";

/** So many runs count whatever they return: the second one may not find what the first one deleted. */
const FIRST_RUNS = 5;

/** A server with its data and code in this process: requests come over no socket, so that nothing of a client's work counts. */
let server: TestServer;
let owner: AccountClient;

/** Sends a request without a socket, reads the whole response, and returns its status. */
async function sent(method: string, path: string, body: string | undefined, key: string): Promise<number> {
  const headers = { authorization: `Bearer ${key}`, "x-ninefold-key": key, "x-ninefold-session": "1" };
  const request = new Request(server.url + path, {
    method,
    headers,
    ...(body === undefined ? {} : { body }),
  });
  const response = await server.server.app.http.handle(request);
  await response.arrayBuffer();
  return response.status;
}

/** The largest value of a schema, of about so many characters at most. */
function largestOf(schema: TSchema, characters: number): unknown {
  if (Array.isArray(schema["examples"]) && schema["examples"].length > 0 && schema["type"] === "string")
    return schema["examples"][0];
  if ("const" in schema) return schema["const"];
  if (Array.isArray(schema["anyOf"])) {
    const values = schema["anyOf"] as TSchema[];
    return largestOf(
      values.find(({ type }) => type === "array" || type === "object") ?? values[0] ?? schema,
      characters,
    );
  }
  switch (schema["type"]) {
    case "object":
      return largestObject(schema, characters);
    case "array": {
      const count = Math.max(1, Math.min(Number(schema["maxItems"] ?? 1_000), Math.floor(characters / 24)));
      return Array.from({ length: count }, (_, index) =>
        different(largestOf(schema["items"] as TSchema, characters / count), index),
      );
    }
    case "string":
      return "a".repeat(
        Math.max(1, Math.min(Number(schema["maxLength"] ?? characters), Math.floor(characters / 2))),
      );
    case "boolean":
      return true;
    case "integer":
    case "number":
      return Number(schema["maximum"] ?? schema["minimum"] ?? 1_000);
    case "null":
      return null;
    default:
      // Any value: what is slowest to read.
      return Array.from({ length: Math.min(40_000, Math.floor(characters / 4)) }, (_, index) => index % 10);
  }
}

function different(value: unknown, index: number): unknown {
  return typeof value === "string" ? `${value}${index}` : value;
}

function largestObject(schema: TSchema, characters: number): Record<string, unknown> {
  const properties = Object.entries((schema["properties"] ?? {}) as Record<string, TSchema>);
  const share = Math.floor(characters / Math.max(1, properties.length));
  const declared = properties.map(([name, member]) => [name, largestOf(member, share)] as const);
  const [values] = Object.values((schema["patternProperties"] ?? {}) as Record<string, TSchema>);
  const isOpen = schema["additionalProperties"] === true || values !== undefined;
  const count =
    isOpen && properties.length === 0
      ? Math.min(Number(schema["maxProperties"] ?? 5_000), Math.floor(characters / 24))
      : 0;
  const others = Array.from(
    { length: count },
    (_, index) => [`name-${index}`, values === undefined ? index : largestOf(values, 10)] as const,
  );
  return Object.fromEntries([...declared, ...others]);
}

/** A list of numbers and an object of names that fill a body, by the space in it: most operations have the same. */
const FILLINGS = new Map<number, { readonly long: string; readonly names: Record<string, number> }>();

function fillingOf(space: number) {
  const known = FILLINGS.get(space);
  if (known !== undefined) return known;
  const count = Math.min(45_000, Math.floor(space / 14));
  const filling = {
    long: `[${"1.0,".repeat(Math.floor(space / 4)).slice(0, -1)}]`,
    names: Object.fromEntries(Array.from({ length: count }, (_, index) => [`n${index}`, 0])),
  };
  FILLINGS.set(space, filling);
  return filling;
}

/** Bodies that are as large as an operation allows: by its schema, and by size alone. */
function bodiesOf(route: DeclaredRoute): string[] {
  const { body, operation } = route;
  const { bytesMax } = operation.bodyLimits;
  const space = bytesMax - 4_096;
  const example = (bodyOf(route) ?? {}) as Record<string, unknown>;
  const { long, names } = fillingOf(space);
  const found: unknown[] = [{ ...example, ...names }];
  if (body !== undefined) {
    const largest = largestObject(body, space);
    found.push(largest, { ...largest, ...example });
    for (const [name, schema] of Object.entries<TSchema>(body.properties)) {
      // A field that takes a list or an object is also sent as large as the body may be.
      const isLarge = ["array", "object", undefined].includes(schema["type"] as string | undefined);
      if (isLarge)
        found.push({ ...example, [name]: largestOf(schema, space) }, { ...example, [name]: names });
    }
  }
  return [...found.map((item) => JSON.stringify(item)), long].filter((text) => text.length <= bytesMax);
}

/** The largest pages, and pages by the parameters that filter. */
function queriesOf(route: DeclaredRoute): string[] {
  const own = queryOf(route);
  const join = own === "" ? "?" : `${own}&`;
  const properties = Object.entries<TSchema>(route.query?.properties ?? {});
  const limit = properties.find(([name]) => name === "limit")?.[1];
  const all = limit === undefined ? [own] : [own, `${join}limit=${limit["maximum"] ?? 100}`];
  const isFull = properties.some(([name]) => name === "full");
  return isFull ? [...all, `${join}full=true`] : all;
}

/** How much of most things is stored: enough for a list that is rendered in one step to take too long. */
const STORED = 1_000;

async function store(key: string): Promise<void> {
  const post = (path: string, body: object): Promise<number> => sent("POST", path, JSON.stringify(body), key);
  const target = "https://127.0.0.1:9/";
  const kinds: readonly (readonly [most: number, make: (index: number) => Promise<number>])[] = [
    [
      STORED,
      (index) => post("/v1/gate", { flag_key: `flag-${index}`, enabled: true, description: "d".repeat(200) }),
    ],
    [
      STORED,
      (index) =>
        post("/v1/keys", {
          prefix: "acme",
          name: `key ${index}`,
          scopes: ["a"],
          owner: "somebody",
          metadata: { note: "n".repeat(400) },
        }),
    ],
    [STORED, (index) => post("/v1/pulse", { url: target, interval: 300_000, name: `monitor ${index}` })],
    [
      STORED,
      (index) =>
        post("/v1/relay", {
          target_url: target,
          method: "POST",
          delay: "1d",
          payload: { index, text: "t".repeat(400) },
        }),
    ],
    [
      900,
      (index) => post("/v1/relay/endpoints", { url: target, name: `endpoint ${index}`, event_types: ["a"] }),
    ],
    // Each reads its order key from the payload of the message in the examples.
    [
      8,
      (index) =>
        post("/v1/relay/endpoints", { url: target, event_types: ["invoice.paid"], order_by: `/n${index}` }),
    ],
    [
      STORED,
      (index) =>
        post("/v1/relay/schedules", { cron: "@yearly", target_url: target, name: `schedule ${index}` }),
    ],
    [50, (index) => post("/v1/catch/buckets", { target_url: target, name: `bucket ${index}` })],
    [900, (index) => post("/v1/meter/stored/holds", { amount: 1, hold_id: `hold-${index}` })],
    [STORED, (index) => post(`/v1/meter/meter-${index}/refill`, { amount: 1_000 })],
    [STORED, (index) => post(`/v1/latch/lock-${index}/acquire`, { ttl: 900_000 })],
    [STORED, (index) => post("/v1/witness/log", { log: { index, text: "t".repeat(400) } })],
    [
      40,
      (index) =>
        post("/v1/pulse/incidents", {
          title: `Incident ${index}`,
          public: true,
          message: "http://a ".repeat(100),
        }),
    ],
  ];
  await post("/v1/meter/stored/refill", { amount: 1_000_000 });
  await post("/v1/witness/sys/init", {});
  const refused = new Map<number, number>();
  for (let from = 0; from < STORED; from += 50) {
    const indexes = Array.from({ length: 50 }, (_, at) => from + at);
    const making = indexes.flatMap((index) =>
      kinds.map(async ([most, make], kind) => {
        const status = index < most ? await make(index) : 200;
        if (status >= 300) refused.set(kind, status);
      }),
    );
    await Promise.all(making);
  }
  if (refused.size > 0)
    throw new Error(`not stored: ${[...refused].map(([kind, status]) => `${kind}: ${status}`).join(", ")}`);
}

beforeAll(async () => {
  const args = ["--allow-private-targets", "127.0.0.0/8"];
  server = await startTestServer({ manualClock: true, args });
  owner = await server.account({ tier: "unlimited" });
  await store(owner.key ?? "");
}, 60_000);
afterAll(() => server.stop());

/** Operations that are left out, each with its reason. */
function isLeftOut({ operation: { name, monitoring, responseTypes } }: DeclaredRoute): boolean {
  // The test clock works through all that falls due; it exists on throw-away servers only.
  if (name === "admin.clock.advance") return true;
  return monitoring || responseTypes?.includes("text/event-stream") === true;
}

/** The time of the best of some runs of a request, and its status. */
async function bestOf(route: DeclaredRoute, created: Made, query: string, body: string | undefined) {
  const { method, operation } = route;
  const isOperators = operation.access === "operator";
  const client = isOperators ? server.operator : owner;
  let [status, usual, runs] = [0, 0, 0];
  let target = created;
  const best = await leastMs(TURN_MS_MAX, async () => {
    if (runs > 0 && method === "DELETE") target = await resourceFor(route);
    const path = pathOf(route, target) + query;
    const turn = await longestTurnMs(async () => {
      status = await sent(method, path, body, client.key ?? "");
    });
    runs += 1;
    if (runs <= FIRST_RUNS) usual = status;
    // A limit that is reached later is another case.
    return status === usual ? turn : Number.POSITIVE_INFINITY;
  });
  return { best, status: usual };
}

type Made = Readonly<Record<string, string>>;

async function resourceFor(route: DeclaredRoute): Promise<Made> {
  if (parametersOf(route).length === 0) return {};
  return makeResource(segmentOf(route), route.operation.access === "operator" ? server.operator : owner);
}

test("no request blocks the event loop, whatever its size and the size of the stored data", async () => {
  const slow: string[] = [];
  for (const route of server.server.app.http.routes) {
    if (isLeftOut(route)) continue;
    const { method, operation } = route;
    const created = await resourceFor(route);
    const takesBody = method !== "GET" && (route.body !== undefined || operation.anyBody !== undefined);
    for (const query of queriesOf(route)) {
      for (const body of takesBody ? bodiesOf(route) : [undefined]) {
        const { best, status } = await bestOf(route, created, query, body);
        const sentBody = body === undefined ? "" : ` ${body.length} bytes: ${body.slice(0, 60)}`;
        if (best > TURN_MS_MAX)
          slow.push(`${operation.name}${query} ${status} ${best.toFixed(0)} ms${sentBody}`);
      }
    }
  }
  expect(slow).toEqual([]);
}, 300_000);
