import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { DeclaredRoute } from "../../src/kernel/http/api.ts";
import type { Browser } from "../areas/session/support.ts";
import type { Client } from "../support/client.ts";
import { expectError } from "../support/errors.ts";
import {
  bodyOf,
  CREDENTIALS,
  clientOf,
  makeResource,
  NOT_404,
  parametersOf,
  pathOf,
  queryOf,
  scopedRoutes,
  segmentOf,
} from "../support/matrix.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

/** The balance from which all keys of an account pay: other keys of the same account change it. */
const SHARED: ReadonlySet<string> = new Set(["meter.own.balance", "meter.own.history"]);
/** Counts of what is read here. */
const COUNTING: ReadonlySet<string> = new Set(["gate.evaluations"]);

let server: TestServer;
let routes: readonly DeclaredRoute[];
beforeAll(async () => {
  const args = ["--allow-private-targets", "127.0.0.0/8", "--trust-proxy", "127.0.0.1"];
  server = await startTestServer({ manualClock: true, args });
  routes = scopedRoutes(server);
});
afterAll(() => server.stop());

/** A key of a new project of an account. */
async function keyOfProject(account: Client): Promise<Client> {
  const project = await account.post("/v1/projects", { name: "Shop" });
  const terms = { prefix: "sm", name: "k", scopes: ["*"] };
  const { status, body, text } = await account.post(`/v1/projects/${project.body.id}/keys`, terms);
  expect(status, text).toBe(201);
  return server.client(String(body.secret));
}

type Params = Readonly<Record<string, string>>;

/** Areas of the account, which its credentials see from every project. */
const OF_THE_ACCOUNT: ReadonlySet<string> = new Set(["audit", "keys", "projects"]);

/** Reads that are sent as POST, and show everything of their area. */
const READS_BY_POST: ReadonlySet<string> = new Set(["ofrep.evaluate", "ofrep.bulk"]);

/** Everything that the owner can see in an area. */
async function everythingOf(owner: Client, segment: string, params: Params): Promise<Record<string, string>> {
  const seen: Record<string, string> = {};
  for (const route of routes) {
    const { name } = route.operation;
    const isRead = route.method === "GET" || READS_BY_POST.has(name);
    if (!isRead || segmentOf(route) !== segment || SHARED.has(name) || COUNTING.has(name)) continue;
    const path = pathOf(route, params) + queryOf(route);
    const { status, text } = await owner.send(route.method, path, bodyOf(route));
    // A step that is not complete yet must not be completable by anyone else.
    expect([200, 404], `${path}: ${text}`).toContain(status);
    seen[path] = status === 200 ? text : String(status);
  }
  return seen;
}

/** Sends every route with a resource of the owner as another caller, and expects no effect. */
async function expectApart(
  owner: Client,
  stranger: Client,
  shared: ReadonlySet<string> = new Set(),
): Promise<void> {
  const naming = routes.filter((route) => parametersOf(route).length > 0 && !shared.has(segmentOf(route)));
  const segments = new Set(naming.map(segmentOf));
  expect(segments.size).toBeGreaterThan(4);
  for (const segment of segments) {
    const params = await makeResource(segment, owner);
    const before = await everythingOf(owner, segment, params);
    expect(Object.values(before).some((text) => text !== "404")).toBe(true);
    for (const route of naming.filter((named) => segmentOf(named) === segment)) {
      const path = pathOf(route, params) + queryOf(route);
      const answer = await stranger.send(route.method, path, bodyOf(route));
      const expected = NOT_404[route.operation.name] ?? 404;
      expect({ path: `${route.method} ${path}`, status: answer.status, text: answer.text }).toMatchObject({
        path: `${route.method} ${path}`,
        status: expected,
      });
      if (expected === 404) expectError(answer, String(answer.body.code));
      expect(await everythingOf(owner, segment, params)).toEqual(before);
    }
    // The owner still has access: the rejections were not caused by a missing resource.
    for (const route of naming.filter((named) => segmentOf(named) === segment && named.method === "GET")) {
      expect((await owner.get(pathOf(route, params) + queryOf(route))).status).toBe(200);
    }
  }
}

describe.each(CREDENTIALS)("resources cannot be seen or changed from outside with a %s", (credential) => {
  const strangerOf = ({ key }: Client): Promise<Client> => clientOf(server, key, credential);

  test("by another account", async () => {
    const owner = await server.account({ balance: 1_000 });
    await expectApart(owner, await strangerOf(await server.account({ balance: 1_000 })));
  });

  test("by a project key of another account", async () => {
    const owner = await server.account({ balance: 1_000 });
    const stranger = await keyOfProject(await server.account({ balance: 1_000 }));
    await expectApart(owner, await strangerOf(stranger));
  });

  test("by another project of the account", async () => {
    const account = await server.account({ balance: 1_000 });
    await expectApart(await keyOfProject(account), await strangerOf(await keyOfProject(account)));
  });

  test("by the default project of the account", async () => {
    const account = await server.account({ balance: 1_000 });
    await expectApart(account, await strangerOf(await keyOfProject(account)));
  });
});

test("a session that selects another project of its account works only in that one", async () => {
  const account = await server.account({ balance: 1_000 });
  const project = await account.post("/v1/projects", { name: "Other" });
  const stranger = (await clientOf(server, account.key, "session of a key")) as Browser;
  stranger.headers["x-ninefold-project"] = String(project.body.id);
  await expectApart(account, stranger, OF_THE_ACCOUNT);
});
