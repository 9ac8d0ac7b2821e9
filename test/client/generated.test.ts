import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Document, operationsOf } from "../../codegen/document.ts";
import { generatedFiles } from "../../codegen/formatted.ts";
import { GENERATE_COMMAND } from "../../codegen/generate.ts";
import { PUBLISHED, WITHOUT_METHOD, WRITTEN } from "../../codegen/method-names.ts";
import { generateMethods } from "../../codegen/method-text.ts";
import { derivedPath, objectsOf } from "../../codegen/methods.ts";
import { Ninefold } from "../../src/client/index.ts";

const root = join(import.meta.dir, "../..");
const document: Document = JSON.parse(readFileSync(join(root, "test/golden/openapi.json"), "utf8"));

test("the client's types, operations and methods are those of the API's document", () => {
  for (const [path, text] of Object.entries(generatedFiles(root)))
    expect(readFileSync(join(root, path), "utf8"), `run: ${GENERATE_COMMAND}`).toBe(text);
});

test("a client has every method, generated or written", () => {
  const nf = new Ninefold({ url: "http://127.0.0.1:9", apiKey: null });
  for (const { path, methods } of objectsOf(document)) {
    const parts = path === "" ? [] : path.split(".");
    // A meter is the one object that is made by a function.
    const object: unknown =
      path === "meter" ? nf.meter("m") : parts.reduce((one, name) => Reflect.get(one, name), nf as object);
    for (const { name } of methods)
      expect(typeof Reflect.get(object as object, name), `${path}.${name}`).toBe("function");
  }
});

test("every operation has a method, or a reason for having none", () => {
  const ids = operationsOf(document).map(({ id }) => id);
  const called = objectsOf(document).flatMap(({ methods }) => methods.map(({ operation }) => operation.id));
  expect([...called, ...WITHOUT_METHOD].sort()).toEqual(ids.sort());
  const named = [...Object.keys(PUBLISHED), ...Object.keys(WRITTEN)];
  expect(named.filter((id) => !ids.includes(id))).toEqual([]);
});

test("no published name is the one that its operation would have anyway", () => {
  const operations = operationsOf(document).filter(({ id }) => id in PUBLISHED);
  expect(operations.filter((one) => PUBLISHED[one.id] === derivedPath(one))).toEqual([]);
});

/** A document with one new operation. */
function documentOf(method: string, path: string, id: string, more: object = {}): Document {
  const params = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
  const operation = { operationId: id, summary: "Do it", tags: ["Keys"], parameters: params, responses: {} };
  const paths = { [path]: { [method]: { ...operation, ...more } } };
  const schemas = {
    NewBody: { type: "object", properties: { amount: { type: "number" } } },
    NewPage: { type: "object", properties: { things: { type: "array" }, cursor: { type: "string" } } },
  };
  return { paths, components: { schemas } } as unknown as Document;
}

const json = (name: string, example?: unknown): object => ({
  "application/json": { schema: { $ref: `#/components/schemas/${name}` }, example },
});
const query = (...names: string[]): object[] =>
  names.map((name) => ({ name, in: "query", required: name === "q", schema: { type: "string" } }));

test.each([
  [
    "get",
    "/v1/latch/{key}/owner",
    "latch.owner.read",
    {},
    "locks.owner",
    "get(key: string, options?: RequestOptions)",
  ],
  [
    "post",
    "/v1/keys/{key_id}/check",
    "keys.re_check",
    { requestBody: { required: false, content: json("NewBody") } },
    "keys",
    "reCheck(keyId: string, body: NewBody = {}, options?: RequestOptions)",
  ],
  [
    "post",
    "/v1/keys",
    "keys.make",
    { requestBody: { required: false, content: json("NewBody", { amount: 1 }) } },
    "keys",
    "make(body: NewBody, options?: RequestOptions)",
  ],
  [
    "get",
    "/v1/things",
    "things.list",
    { parameters: query("limit", "cursor"), responses: { 200: { content: json("NewPage") } } },
    "things",
    'list(query: PageQuery = {}, options: RequestOptions = {}): ListOf<"things.list", "things">',
  ],
  [
    "get",
    "/v1/things/search",
    "things.search",
    { parameters: [...query("q"), { $ref: "#/components/parameters/IdempotencyKey" }] },
    "things",
    'search(query: QueryOf<"things.search">, options?: ChangeOptions): Answers<"things.search">',
  ],
  ["get", "/v1/meter/{meterId}/peak", "meter.peak.read", {}, "meter", "getPeak(options?: RequestOptions)"],
  ["get", "/v1/meter/{meterId}/peak", "meter.peak", {}, "meter", "peak(options?: RequestOptions)"],
  ["get", "/v1/meter/peak", "meter.peak", {}, "allMeters", "peak(options?: RequestOptions)"],
] as const)(
  "%s %s (%s) gets a method without a line of the client",
  (method, path, id, more, object, text) => {
    const one = documentOf(method, path, id, more);
    expect(objectsOf(one).flatMap(({ methods }) => methods.map((found) => found.object))).toEqual([object]);
    expect(generateMethods(one)).toContain(text);
  },
);

test("two operations of the same method are an error, as is a body without a name", () => {
  const first = documentOf("get", "/v1/keys/a", "keys.read");
  const second = documentOf("get", "/v1/keys/b", "keys.get");
  const both = { ...first, paths: { ...first.paths, ...second.paths } };
  expect(() => objectsOf(both)).toThrow("two operations have the method keys.get");
  const content = { "application/json": { schema: { type: "object" } } };
  const nameless = documentOf("post", "/v1/keys/a", "keys.make", { requestBody: { content } });
  expect(() => generateMethods(nameless)).toThrow("the body of keys.make needs a name");
});
