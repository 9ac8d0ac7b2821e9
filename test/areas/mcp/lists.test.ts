import { describe, expect, test } from "bun:test";
import { definitionOf, READING_TOOLS, toolsOf, WRITING_TOOLS } from "../../../src/areas/mcp/tools.ts";
import type { DeclaredRoute } from "../../../src/kernel/http/api.ts";
import { publicSchema } from "../../../src/kernel/http/document/openapi.ts";
import { isForKeys } from "../../support/matrix.ts";
import { useTestServer } from "../../support/server.ts";

/** Operations that read and are deliberately no tools. A change is a tool only if the list of writing tools has it. */
const EXCLUDED: Readonly<Record<string, readonly RegExp[]>> = {
  "keys and secrets": [/^keys\./, /^projects\.keys\./, /^relay\.portal\./, /\.(secret|ping_key)\b/],
  "the operator's": [/^admin\./],
  "sessions and people": [/^sessions?\./, /^people\./],
  "settings, and what only their owner asks for": [
    /^monitors\.(pages|channels|probes)\./,
    /^witness\.(config|index|witnesses)\.read$/,
  ],
  "streams, files, proofs and formats of other programs": [
    /^(ofrep|changes|probe)\./,
    /^check$/,
    /^gate\.config$/,
    /\.(export|stream|raw)$/,
    /^witness\.(checkpoint|bundle|proofs\..*)$/,
  ],
};

const server = useTestServer();
const routes = (): readonly DeclaredRoute[] => server.server.app.http.routes;
const TOOLS: Readonly<Record<string, string>> = {
  ...READING_TOOLS,
  ...WRITING_TOOLS,
};

/** Whether the operation of a route changes something. */
function isChange({ operation }: DeclaredRoute): boolean {
  return operation.changesProject || operation.audit !== "no";
}

test("every operation for keys that reads is a tool or excluded, not both", () => {
  const operations = new Set(Object.values(TOOLS));
  const patterns = Object.values(EXCLUDED).flat();
  const undecided = routes()
    .filter(isForKeys)
    .filter((route) => !isChange(route) || operations.has(route.operation.name))
    .map(({ operation }) => operation.name)
    .filter((name) => operations.has(name) === patterns.some((pattern) => pattern.test(name)));
  expect(undecided).toEqual([]);
});

describe("no tool", () => {
  const tools = () => [...toolsOf(routes(), true).values()];

  test("is for keys, for the operator or deletes", () => {
    for (const { name, route } of tools()) {
      const { operation, method } = route;
      const facts = {
        name,
        access: operation.access === "operator" || operation.access.startsWith("keys:"),
        secret: operation.secret || operation.changesKeys || operation.grantsEverything,
        deletes: method === "DELETE",
        streams: operation.responseTypes !== undefined,
        other: operation.byPortal || operation.forProxies || operation.access === "public",
      };
      expect(facts).toEqual({
        name,
        access: false,
        secret: false,
        deletes: false,
        streams: false,
        other: false,
      });
    }
  });

  test("responds with a secret", () => {
    for (const { name, route } of tools()) {
      const found = Object.values(route.responses).flatMap((schema) => [...fieldsOf(publicSchema(schema))]);
      const secrets = found.filter((field) => SECRET.test(field) && !HARMLESS.has(field));
      expect({ name, secrets }).toEqual({ name, secrets: [] });
    }
  });

  test("that reads changes anything, and none that writes only reads", () => {
    for (const { name, writes, route } of tools()) {
      expect({ name, isChange: isChange(route) }).toEqual({ name, isChange: writes });
    }
  });

  test("has two arguments of one name, or a name that clients reject", () => {
    for (const { name, route, writes } of tools()) {
      const { params, query, body } = route;
      const names = [params, query, body].flatMap((schema) => Object.keys(schema?.properties ?? {}));
      expect(new Set(names).size).toBe(names.length);
      expect(name).toMatch(/^[a-z_]{1,64}$/);
      expect(definitionOf({ name, writes, route })).toMatchObject({
        inputSchema: { type: "object" },
        annotations: { readOnlyHint: !writes },
      });
    }
  });
});

/** Names of fields that could hold a secret. */
const SECRET = /secret|token|password|credential|_key$|ping_(slug_)?url|push_url/;
/** Names of fields about secrets, of fields that results omit, and of public fields. */
const HARMLESS = new Set([
  "has_signing_secret",
  "has_token",
  "secret_encoding",
  "secret_digest",
  "signature_key",
  "timestamp_key",
  "ping_url",
  "ping_slug_url",
  "push_url",
  "push_token",
  "fencing_token",
  "flag_key",
  "order_key",
  "public_key",
]);

function* fieldsOf(schema: unknown): Generator<string> {
  if (typeof schema !== "object" || schema === null) return;
  const { properties } = schema as { properties?: object };
  if (properties !== undefined) yield* Object.keys(properties);
  for (const part of Object.values(schema)) yield* fieldsOf(part);
}
