import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { FormatRegistry, type TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { exampleOf, publicSchema } from "../../src/kernel/http/document/openapi.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

interface Operation {
  readonly operationId: string;
  readonly "x-former-operation-id"?: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly "x-codeSamples": readonly { readonly source: string }[];
  readonly responses: Readonly<Record<string, Content & { readonly $ref?: string }>>;
}

interface Content {
  readonly content?: { readonly "application/json": { readonly example: unknown } };
}

interface Document {
  readonly info: { readonly description: string };
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly responses: Readonly<Record<string, unknown>> };
}

let server: TestServer;
let document: Document;
let operations: readonly Operation[];
const nameOf = (one: Operation): string => one["x-former-operation-id"] ?? one.operationId;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  document = JSON.parse((await server.client(null).get("/openapi.json")).text);
  operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));
  for (const format of ["date-time", "uuid", "uri", "email"]) {
    if (!FormatRegistry.Has(format)) FormatRegistry.Set(format, () => true);
  }
});
afterAll(() => server.stop());

describe("the API document", () => {
  test("lists its areas in order, each with operations and a description", () => {
    const names = document.tags.map(({ name }) => name);
    expect(names).toEqual([
      ...[
        "Meter",
        "Projects",
        "Keys",
        "Flags",
        "OpenFeature",
        "Check",
        "Locks",
        "Monitors",
        "Status pages",
        "Relay",
        "Portal",
        "Catch",
      ],
      "Notary",
      ...["People", "Sessions", "Changes", "Overview", "Audit", "Signup", "Operator", "System"],
    ]);
    for (const { name, description } of document.tags) expect(description.length, name).toBeGreaterThan(10);
    expect(new Set(operations.flatMap(({ tags }) => tags))).toEqual(new Set(names));
  });

  test("lists a project's keys in the area of keys", () => {
    expect(operations.find(({ operationId }) => operationId === "projects.keys.create")?.tags).toEqual([
      "Keys",
    ]);
  });

  test.each([
    ["meter.deduct", "**Cost** 1 credit · **Scope** `meter:write` · **Role** editor"],
    ["meter.balance", "**Cost** free · **Scope** `meter:read` · **Role** viewer"],
    [
      "meter.own.refill",
      "**Cost** free · **Scope** `meter:write` · **Role** admin · **Not** for keys of one project",
    ],
    [
      "monitors.list",
      "**Cost** 1 credit · **Scope** `pulse:read` · **Role** viewer · **Rate limit** of monitors",
    ],
    [
      "keys.platform.rotate",
      "**Cost** 1 credit · **Scope** `*` · **Role** owner · **Login** within the last 15 minutes · **Not** for keys of one project",
    ],
    ["admin.accounts.list", "**Cost** free · **Key** of the operator's account · **Role** owner"],
    ["catch.ingest", "**Cost** 1 credit · **Public**"],
    ["ping", "**Cost** free · **Public**"],
  ])("documents the requirements of %s", (name, terms) => {
    const operation = operations.find((operation) => nameOf(operation) === name);
    expect(operation?.description.split("\n\n").at(-1)).toBe(terms);
  });

  test("resolves every reference to a response", () => {
    const used = operations.flatMap(({ responses }) =>
      Object.values(responses).flatMap(({ $ref }) => $ref ?? []),
    );
    expect(used.length).toBeGreaterThan(100);
    const known = Object.keys(document.components.responses).map((code) => `#/components/responses/${code}`);
    expect(known).toEqual(expect.arrayContaining([...new Set(used)]));
  });
});

test("has a valid example for every successful response", () => {
  let count = 0;
  for (const { operation, responses } of server.server.app.http.routes) {
    // Health and metrics are the operator's, and not in the document.
    if (operation.monitoring) continue;
    const documented = operations.find((documented) => nameOf(documented) === operation.name);
    for (const [status, schema] of Object.entries<TSchema>(responses)) {
      if (status === "204") continue;
      const example = documented?.responses[status]?.content?.["application/json"].example;
      const errors = [...Value.Errors(schema, example)].map(({ path, message }) => `${path}: ${message}`);
      expect(errors, `${operation.name} ${status} ${JSON.stringify(example)}`).toEqual([]);
      expect(JSON.stringify(example), operation.name).not.toContain('"text"');
      count += 1;
    }
  }
  expect(count).toBeGreaterThan(60);
});

describe("the example request of an operation works in a shell", () => {
  const run = async (operationId: string, key: string) => {
    const source = operations.find((operation) => nameOf(operation) === operationId)?.["x-codeSamples"][0]
      ?.source;
    const env = { PATH: process.env["PATH"] ?? "", URL: server.url, AUTH: `Authorization: Bearer ${key}` };
    const child = Bun.spawn(["sh", "-c", `${source} -s -w ' %{http_code}'`], { env, stderr: "inherit" });
    return child.stdout.text();
  };

  test("a change, then a read", async () => {
    const { key } = await server.account({ balance: 100 });
    expect(await run("meter.refill", key ?? "")).toBe('{"balance":1000,"meter_id":"customer-42"} 200');
    expect(await run("meter.balance", key ?? "")).toBe(
      '{"balance":1000,"meter_id":"customer-42","available":1000,"held":0} 200',
    );
  });

  test("a login with the caller's key", async () => {
    const { key, userId } = await server.account();
    const text = await run("session.create", key ?? "");
    expect(text).toEndWith(" 201");
    expect(text).toContain(userId);
  });

  test("a public operation with any body", async () => {
    expect(await run("catch.ingest", "")).toContain('"status":"ignored"');
  });

  test("every operation has one, in which only address and key are placeholders", () => {
    for (const { operationId, "x-codeSamples": samples } of operations) {
      expect(samples[0]?.source, operationId).toMatch(/^curl --globoff (-X [A-Z]+ )?"\$URL\/[^":{}$]*"/);
    }
  });
});

describe("displayed schemas", () => {
  test.each<[string, object, Record<string, unknown>]>([
    ["without what is for our own checks", { type: "string", errorMessage: "must" }, { type: "string" }],
    [
      "a union of constants as an enum",
      {
        anyOf: [
          { type: "string", const: "a" },
          { type: "string", const: "b" },
        ],
        description: "x",
      },
      { type: "string", enum: ["a", "b"], description: "x" },
    ],
    [
      "or null as a second type",
      { anyOf: [{ type: "integer", description: "x" }, { type: "null" }] },
      { type: ["integer", "null"], description: "x" },
    ],
    [
      "an enum or null",
      {
        anyOf: [
          {
            anyOf: [
              { type: "string", const: "a" },
              { type: "string", const: "b" },
            ],
          },
          { type: "null" },
        ],
      },
      { type: ["string", "null"], enum: ["a", "b", null] },
    ],
    [
      "an object or null as it is",
      { anyOf: [{ type: "object", properties: {} }, { type: "null" }] },
      { anyOf: [{ type: "object", properties: {} }, { type: "null" }] },
    ],
    [
      "unlike alternatives as they are",
      { anyOf: [{ type: "string" }, { type: "integer" }] },
      { anyOf: [{ type: "string" }, { type: "integer" }] },
    ],
  ])("%s", (_, schema, shown) => expect(publicSchema(schema)).toEqual(shown));
});

describe("examples", () => {
  test.each<[string, object, unknown]>([
    ["its own example first", { type: "string", enum: ["yours", "mine"], examples: ["mine"] }, "mine"],
    ["a constant", { type: "boolean", const: false }, false],
    ["null where that is its example", { type: ["string", "null"], examples: [null] }, null],
    ["the first of its types otherwise", { type: ["boolean", "null"] }, true],
    ["a moment", { type: "string", format: "date-time" }, "2026-03-10T12:00:00.000Z"],
    ["seconds", { type: "integer", description: "Unix seconds." }, 1_773_144_000],
    ["milliseconds", { type: "integer", description: "Epoch milliseconds." }, 1_773_144_000_000],
    ["the first choice", { type: "string", enum: ["up", "down"] }, "up"],
    ["the first alternative", { anyOf: [{ type: "object", properties: {} }, { type: "null" }] }, {}],
    ["a list of one", { type: "array", items: { type: "string", examples: ["mine"] } }, ["mine"]],
    [
      "no field of special cases",
      { type: "object", properties: { a: { type: "integer" }, b: { type: "integer", examples: [] } } },
      { a: 1 },
    ],
    [
      "nothing inherited",
      { type: "object", properties: { constructor: { type: "string" } } },
      { constructor: "text" },
    ],
  ])("%s", (_, schema, value) => {
    expect(exampleOf(publicSchema(schema))).toEqual(value);
  });
});
