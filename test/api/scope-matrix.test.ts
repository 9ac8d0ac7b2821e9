import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Scope } from "../../src/kernel/callers/caller.ts";
import type { DeclaredRoute } from "../../src/kernel/http/api.ts";
import type { Client } from "../support/client.ts";
import { expectError } from "../support/errors.ts";
import {
  CREDENTIALS,
  type Credential,
  clientOf,
  parametersOf,
  pathOf,
  scopedRoutes,
} from "../support/matrix.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

/** Reads that are sent as POST. */
const READS_BY_POST: ReadonlySet<string> = new Set([
  ...[
    "keys.verify",
    "witness.verify",
    "ofrep.evaluate",
    "ofrep.bulk",
    "gate.preview",
    "relay.endpoints.preview",
  ],
]);
const CHANGES_KEYS: ReadonlySet<string> = new Set([
  ...["keys.platform.rotate", "keys.create", "keys.import", "projects.keys.create"],
  ...["keys.rotate", "keys.patch", "keys.revoke", "keys.revoke_owned"],
  ...["keys.roles.save", "keys.roles.delete"],
]);
const SCOPE_AREAS = ["meter", "projects", "keys", "gate", "latch", "pulse", "relay", "catch", "witness"];
const EVERY_SCOPE: readonly Scope[] = [
  ...SCOPE_AREAS.flatMap((area): Scope[] => [`${area}:read`, `${area}:write`]),
  "audit:read",
  "ofrep:read",
  "check:write",
];

let server: TestServer;
let routes: readonly DeclaredRoute[];
beforeAll(async () => {
  server = await startTestServer({ manualClock: true, args: ["--trust-proxy", "127.0.0.1"] });
  routes = scopedRoutes(server);
});
afterAll(() => server.stop());

const scopeOf = ({ operation }: DeclaredRoute): Scope => operation.access as Scope;

/** Keys of the operator's account, which has no rate limits. */
async function keyWith(
  scopes: readonly string[],
  credential: Credential = "key",
  project?: string,
): Promise<Client> {
  const path = project === undefined ? "/v1/keys" : `/v1/projects/${project}/keys`;
  const { status, body, text } = await server.operator.post(path, { prefix: "sm", name: "k", scopes });
  expect(status, text).toBe(201);
  return clientOf(server, String(body.secret), credential);
}

/**
 * A request that passes the scopes and is rejected because of its input, so that it has no effect. Without a body to
 * reject, it refers to resources that do not exist.
 */
function knock(client: Client, route: DeclaredRoute, headers: Record<string, string> = {}) {
  const params = Object.fromEntries(parametersOf(route).map((name) => [name, "none"]));
  const body = route.body === undefined ? undefined : "[1]";
  return client.send(route.method, pathOf(route, params), body, { headers });
}

/** Routes that can grant all scopes require all of them. */
function grantsEverything(route: DeclaredRoute): boolean {
  return route.operation.grantsEverything;
}

/** Routes by their scope, each with a key as `scopes` describes. */
async function onEveryRoute(
  credential: Credential,
  scopes: (scope: Scope) => readonly string[],
  look: (client: Client, route: DeclaredRoute, scope: Scope) => Promise<void>,
): Promise<void> {
  for (const scope of new Set(routes.map(scopeOf))) {
    const client = await keyWith(scopes(scope), credential);
    for (const route of routes) {
      if (scopeOf(route) === scope) await look(client, route, scope);
    }
  }
}

test("GET requires read and other methods write, except a POST that only reads", () => {
  expect(routes.length).toBeGreaterThan(20);
  for (const route of routes) {
    const operation = route.operation.name;
    const right = route.method === "GET" || READS_BY_POST.has(operation) ? "read" : "write";
    expect(`${operation} needs ${scopeOf(route)}`).toMatch(new RegExp(`:${right}$`));
  }
});

describe.each(CREDENTIALS)("every route that requires a scope, with a %s", (credential) => {
  test("rejects a key with all other scopes with 403 that names the missing one", () =>
    onEveryRoute(
      credential,
      (scope) => EVERY_SCOPE.filter((other) => other !== scope),
      async (client, route, scope) => {
        const { error } = expectError(await knock(client, route), "forbidden");
        expect(error.message).toBe(
          `The key does not have the scope ${scope}. Use a key that has it, or add the scope.`,
        );
      },
    ));

  test("accepts a key with only this scope", () =>
    onEveryRoute(
      credential,
      (scope) => [scope],
      async (client, route) => {
        if (grantsEverything(route)) {
          const { error } = expectError(await knock(client, route), "forbidden");
          expect(error.message).toContain("does not have the scope *");
          return;
        }
        const { status, text } = await knock(client, route);
        expect([401, 403], `${route.method} ${route.path}: ${text}`).not.toContain(status);
      },
    ));

  test("accepts a key with * of the area", () =>
    onEveryRoute(
      credential,
      (scope) => [`${scope.split(":")[0]}:*`],
      async (client, route) => {
        if (grantsEverything(route)) return;
        const { status, text } = await knock(client, route);
        expect([401, 403], `${route.method} ${route.path}: ${text}`).not.toContain(status);
      },
    ));

  test("accepts a key with *", async () => {
    const client = await keyWith(["*"], credential);
    for (const route of routes) {
      const { status, text } = await knock(client, route);
      expect([401, 403], `${route.method} ${route.path}: ${text}`).not.toContain(status);
    }
  });

  test("a session of a key without * cannot use routes of another project", async () => {
    if (credential === "key") return;
    const project = await server.operator.post("/v1/projects", { name: "Other" });
    const headers = { "x-ninefold-project": String(project.body.id) };
    const client = await keyWith(EVERY_SCOPE, credential);
    for (const route of routes) {
      const answer = await knock(client, route, headers);
      expectError(answer, "forbidden");
    }
  });

  test("accepts a project key with * except at routes of the account", async () => {
    const project = await server.operator.post("/v1/projects", { name: "Shop" });
    const client = await keyWith(["*"], credential, String(project.body.id));
    const refused: string[] = [];
    for (const route of routes) {
      const answer = await knock(client, route);
      if (answer.status === 403) {
        expect(expectError(answer, "forbidden").error.message).toContain("key of the account");
        refused.push(route.operation.name);
      }
      expect(answer.status).not.toBe(401);
    }
    expect(refused.sort()).toEqual(
      routes.flatMap(({ operation }) => (operation.accountOnly ? [operation.name] : [])).sort(),
    );
  });
});

test.each(CREDENTIALS)(
  "a platform key in its grace period works with a %s except for changes of keys",
  async (credential) => {
    const platform = await server.account({ tier: "unlimited" });
    expect((await platform.post("/v1/keys/rotate")).status).toBe(200);
    const account = await clientOf(server, platform.key, credential);
    const refused: string[] = [];
    for (const route of routes) {
      const answer = await knock(account, route);
      if (answer.status === 403) {
        expect(expectError(answer, "forbidden").error.message).toContain("cannot change keys");
        refused.push(route.operation.name);
      }
      expect(answer.status).not.toBe(401);
    }
    expect(refused.sort()).toEqual(
      routes
        .map(({ operation }) => operation.name as string)
        .filter((name) => CHANGES_KEYS.has(name))
        .sort(),
    );
    expect(refused).toHaveLength(CHANGES_KEYS.size);
  },
);

test.each(CREDENTIALS)(
  "a managed key is an operator only with * of the operator's account: %s",
  async (credential) => {
    const { routes: declared } = server.server.app.http;
    const operators = declared.filter(({ operation }) => operation.access === "operator");
    expect(operators.length).toBeGreaterThan(2);
    const project = await server.operator.post("/v1/projects", { name: "Shop" });
    const [all, some, bound] = [
      await keyWith(["*"], credential),
      await keyWith(
        SCOPE_AREAS.map((area) => `${area}:*`),
        credential,
      ),
      await keyWith(["*"], credential, String(project.body.id)),
    ];
    for (const route of operators) {
      expectError(await knock(some, route), "forbidden");
      expectError(await knock(bound, route), "forbidden");
      expect([401, 403]).not.toContain((await knock(all, route)).status);
    }
  },
);
