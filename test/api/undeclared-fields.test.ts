import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { DeclaredRoute } from "../../src/kernel/http/api.ts";
import type { Client } from "../support/client.ts";
import { bodyOf, makeResource, parametersOf, pathOf, queryOf, segmentOf } from "../support/matrix.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

/** The value of undeclared fields, which responses and the database must not contain. */
const MARK = "undeclared-5cb1";
const VALUES: readonly unknown[] = [MARK, "", null, [MARK], { [MARK]: 1 }, 1.5, true];
let server: TestServer;
let routes: readonly DeclaredRoute[];
let names: readonly string[];

beforeAll(async () => {
  server = await startTestServer({
    args: ["--signup", "open", "--allow-private-targets", "127.0.0.0/8"],
  });
  routes = server.server.app.http.routes.filter(({ body }) => body !== undefined);
  names = [...new Set([...columnNames(), ...server.server.app.http.routes.flatMap(responseFields)])];
});
afterAll(() => server.stop());

function openDatabase(): Database {
  return new Database(join(server.folder, "ninefold.db"), { readonly: true });
}

/** The tables of the database with their columns. */
function columns(): { table: string; column: string }[] {
  using db = openDatabase();
  return db
    .query<{ table: string; column: string }, []>(
      `SELECT t.name AS "table", c.name AS "column" FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table'`,
    )
    .all();
}

function columnNames(): string[] {
  return columns().map(({ column }) => column);
}

function responseFields({ responses }: DeclaredRoute): string[] {
  return Object.values(responses).flatMap((schema) => Object.keys(schema.properties ?? {}));
}

/** The columns in which the mark stands. */
function markedColumns(): string[] {
  using db = openDatabase();
  return columns()
    .filter(({ table, column }) =>
      db.query(`SELECT 1 FROM "${table}" WHERE instr("${column}", ?) LIMIT 1`).get(MARK),
    )
    .map(({ table, column }) => `${table}.${column}`);
}

function callerOf({ operation: { access } }: DeclaredRoute): Promise<Client> | Client {
  if (access === "public") return server.client(null);
  return access === "operator" ? server.operator : server.account({ tier: "unlimited" });
}

async function targetOf(route: DeclaredRoute, caller: Client): Promise<string> {
  const needed = parametersOf(route);
  if (needed.length === 0) return route.path;
  if (needed.includes("user_id")) return pathOf(route, { user_id: (await server.account()).userId });
  return pathOf(route, await makeResource(segmentOf(route), caller)) + queryOf(route);
}

describe("undeclared fields of a body", () => {
  test("have no effect, also with names of columns or response fields, on every route", async () => {
    expect(names).toContain("active");
    for (const route of routes) {
      const declared = route.body?.properties ?? {};
      const undeclared = names.filter((name) => !Object.hasOwn(declared, name));
      for (const value of VALUES) {
        const caller = await callerOf(route);
        const extra = Object.fromEntries(undeclared.map((name) => [name, value]));
        const body = { ...extra, ...(bodyOf(route) as object | undefined) };
        const answer = await caller.send(route.method, await targetOf(route, caller), body);
        const request = `${route.method} ${route.path} with ${JSON.stringify(value)}`;
        expect({ request, fails: answer.status >= 500 && answer.body.code === "internal_error" }).toEqual({
          request,
          fails: false,
        });
        expect({ request, shows: answer.text.includes(MARK) }).toEqual({ request, shows: false });
      }
    }
    expect(markedColumns()).toEqual([]);
  }, 120_000);

  test("do not change what a creation stores", async () => {
    const account = await server.account();
    const monitor = { url: "https://127.0.0.1:9/", interval: 300_000 };
    for (const active of ["x", "", null, [], false]) {
      const { status, body } = await account.post("/v1/pulse", { ...monitor, active });
      expect({ status, active: body.active }).toEqual({ status: 201, active: true });
    }
  });

  test("are also ignored within lists and objects", async () => {
    const account = await server.account();
    const groups = [{ name: "Shop", monitor_ids: [], id: MARK }];
    const page = { slug: "undeclared", title: "Shop", groups };
    const { status, body } = await account.post("/v1/pulse/pages", page);
    expect({ status, groups: body.groups }).toEqual({
      status: 201,
      groups: [{ name: "Shop", monitor_ids: [] }],
    });
  });
});
