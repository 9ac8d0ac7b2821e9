import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { flagStore } from "../../../src/areas/flags/store.ts";
import { RETENTION_MS } from "../../../src/areas/keys/domain.ts";
import { projectStore } from "../../../src/areas/projects/store.ts";
import type { Client } from "../../support/client.ts";
import { expectError } from "../../support/errors.ts";
import { AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import { defaultProjectOf, makeProject, projectsOf } from "./support.ts";

let server: TestServer;
let account: AccountClient;
beforeEach(async () => {
  server = await startTestServer({ manualClock: true });
  account = await server.account({ balance: 1_000 });
});
afterEach(() => server.stop());

async function makeKey(project: string, prefix = "sm"): Promise<Client> {
  const terms = { prefix, name: "k", scopes: ["*"] };
  const { status, body, text } = await account.post(`/v1/projects/${project}/keys`, terms);
  expect(status, text).toBe(201);
  return server.client(String(body.secret));
}

function refOf(project: string): number {
  const { db } = server.server.kernel;
  return db.number<[id: string]>("SELECT ref AS n FROM projects WHERE id = ?")(project);
}

/** Number of the project's rows in every table with projects; cleared keys do not count. */
function rowsOf(ref: number): Record<string, number> {
  const { db } = server.server.kernel;
  const tables = db.all<{ name: string }>(
    "SELECT m.name FROM sqlite_master m WHERE m.type = 'table' AND EXISTS (SELECT 1 FROM pragma_table_info(m.name) c WHERE c.name = 'project_ref')",
  )();
  const counts = tables.map(({ name }) => {
    const living = name === "keys" ? " AND deleted = 0" : "";
    const sql = `SELECT count(*) AS n FROM ${name} WHERE project_ref = ?${living}`;
    return [name, db.number<[ref: number]>(sql)(ref)] as const;
  });
  const own = projectStore(db)
    .deleted()
    .filter((row) => row.ref === ref).length;
  return Object.fromEntries([...counts, ["projects", own] as const].filter(([, count]) => count > 0));
}

/** Inserts flags into a project, so many that their removal takes several units of work. */
function fill(ref: number, count: number): Promise<void> {
  const { db, writer } = server.server.kernel;
  const store = flagStore(db);
  const plain = {
    managed_by: null,
    description: null,
    archived: 0,
    version: 0,
    updated_at: 0,
    definition: null,
  };
  return writer.submit((tx) => {
    for (let index = 0; index < count; index += 1) {
      const flag = { ref: 1_000_000 + index, project_ref: ref, flag_key: `f${index}`, enabled: 1 };
      store.insert(tx, { ...plain, ...flag });
    }
  });
}

async function fillEveryArea(client: Client): Promise<void> {
  await client.post("/v1/gate", { flag_key: "a", enabled: true });
  await client.post("/v1/meter/m/reset", { balance: 5 });
  await client.post("/v1/meter/m/deduct", { amount: 1 });
  await client.post("/v1/latch/l/acquire", { ttl: 900_000 });
}

test("a deleted project is not found immediately, its keys get 403 and verify reports deleted", async () => {
  const project = await makeProject(account);
  const client = await makeKey(project);
  const acme = await makeKey(project, "acme");
  await fillEveryArea(client);
  expect((await account.delete(`/v1/projects/${project}`)).status).toBe(200);
  for (const last of ["", "/overview"]) {
    expectError(await account.get(`/v1/projects/${project}${last}`), "not_found");
  }
  expectError(await account.patch(`/v1/projects/${project}`, { name: "x" }), "not_found");
  expectError(await account.delete(`/v1/projects/${project}`), "not_found");
  const terms = { prefix: "p", name: "k", scopes: ["x"] };
  expectError(await account.post(`/v1/projects/${project}/keys`, terms), "not_found");
  expect((await projectsOf(account)).map(({ id }) => id)).not.toContain(project);
  expect((await account.get("/v1/keys")).body.keys).toEqual([]);
  const verdicts = async (error: string) => {
    for (const { key } of [client, acme]) {
      const { body } = await account.post("/v1/keys/verify", { secret: key });
      expect(body).toMatchObject({ valid: false, error });
    }
  };
  // The same before and after the rows are removed, and after a restart, for 30 days.
  for (const moment of ["at once", "removed", "restarted", "on the last day"]) {
    if (moment === "removed") await server.clock.advance(1);
    if (moment === "restarted") await server.restart();
    if (moment === "on the last day") await server.clock.advance(RETENTION_MS - 2);
    // The port changes with a restart.
    account = new AccountClient(server.url, account.key ?? "", account.userId, account.email);
    const { error } = expectError(await server.client(client.key).get("/v1/gate"), "forbidden");
    expect(error.message).toContain("project");
    await verdicts("deleted");
  }
  await server.clock.advance(2);
  expectError(await server.client(client.key).get("/v1/gate"), "unauthorized");
  await verdicts("invalid_key");
  // The record is removed by the next purge.
  await server.clock.advance(3_600_000);
  const left = server.server.kernel.db.one<{ count: number }>("SELECT count(*) AS count FROM keys")();
  expect(left?.count).toBe(0);
});

test("its rows are removed in every area, and no other rows", async () => {
  const [project, kept] = [await makeProject(account, "A"), await makeProject(account, "B")];
  const [ref, keptRef] = [refOf(project), refOf(kept)];
  await fillEveryArea(await makeKey(project));
  await fillEveryArea(await makeKey(kept));
  const before = rowsOf(ref);
  expect(Object.keys(before)).toEqual(expect.arrayContaining(["flags", "keys", "meters", "locks"]));
  expect(rowsOf(keptRef)).toEqual(before);
  await account.delete(`/v1/projects/${project}`);
  await server.clock.advance(1);
  expect(rowsOf(ref)).toEqual({});
  expect(rowsOf(keptRef)).toEqual(before);
  expect(refOf(project)).toBe(0);
  await server.restart();
  expect(rowsOf(ref)).toEqual({});
  // A new project gets a new reference.
  const next = await makeProject(server.client(account.key), "C");
  expect(refOf(next)).toBeGreaterThan(keptRef);
});

test("a removal continues after a restart; other requests are served meanwhile", async () => {
  const project = await makeProject(account);
  const ref = refOf(project);
  await fill(ref, 20_000);
  await account.delete(`/v1/projects/${project}`);
  const removing = server.clock.advance(1);
  let served = 0;
  while ((rowsOf(ref)["flags"] ?? 0) > 19_000) {
    expect((await account.post("/v1/gate", { flag_key: "other", enabled: true })).status).toBe(201);
    served += 1;
  }
  expect(served).toBeGreaterThan(1);
  await server.server.stop();
  await removing;
  await server.start();
  const left = rowsOf(ref)["flags"] ?? 0;
  expect(left).toBeGreaterThan(0);
  expect(left).toBeLessThanOrEqual(19_000);
  const client = server.client(account.key);
  expectError(await client.get(`/v1/projects/${project}`), "not_found");
  expect((await client.get("/v1/gate")).body).toEqual({ flags: ["other"] });
  await server.clock.advance(1);
  expect(rowsOf(ref)).toEqual({});
  expect((await client.get("/v1/gate/other")).status).toBe(200);
  expect(server.logs.filter(({ level }) => level === "error")).toEqual([]);
}, 60_000);

test("concurrent requests complete before the deletion or are rejected, and leave no rows", async () => {
  for (let round = 0; round < 5; round += 1) {
    const project = await makeProject(account, `Round ${round}`);
    const ref = refOf(project);
    const client = await makeKey(project);
    const writes = (count: number) =>
      Array.from({ length: count }, (_, index) =>
        index % 2 === 0
          ? client.post("/v1/gate", { flag_key: `f${round}-${index}`, enabled: true })
          : client.post(`/v1/meter/m${index}/refill`, { amount: 1 }),
      );
    const early = writes(10);
    const deletion = account.delete(`/v1/projects/${project}`);
    const answers = await Promise.all([...early, ...writes(10)]);
    expect((await deletion).status).toBe(200);
    for (const answer of answers) {
      if (answer.status >= 300) expectError(answer, "forbidden");
    }
    await server.clock.advance(1);
    expect(rowsOf(ref)).toEqual({});
  }
});

describe("the default project", () => {
  test("can be deleted if there is another: the oldest becomes the default", async () => {
    const first = await defaultProjectOf(account);
    const [second, third] = [await makeProject(account, "Second"), await makeProject(account, "Third")];
    const managed = await account.post("/v1/keys", { prefix: "sm", name: "k", scopes: ["*"] });
    const ofAccount = server.client(String(managed.body.secret));
    const ofSecond = await makeKey(second);
    await account.post("/v1/gate", { flag_key: "first", enabled: true });
    expect((await account.delete(`/v1/projects/${first}`)).status).toBe(200);
    await ofSecond.post("/v1/gate", { flag_key: "second", enabled: true });
    // From now on the account's keys work in the new default project.
    for (const client of [account, ofAccount]) {
      expect((await client.get("/v1/gate")).body).toEqual({ flags: ["second"] });
    }
    await server.restart();
    expect((await server.client(ofAccount.key).get("/v1/gate")).body).toEqual({ flags: ["second"] });
    const client = server.client(account.key);
    expect((await client.delete(`/v1/projects/${third}`)).status).toBe(200);
    expectError(await client.delete(`/v1/projects/${second}`), "forbidden");
    expect((await client.get("/v1/gate")).body).toEqual({ flags: ["second"] });
  });

  test("and the only other, deleted concurrently: one of them stays", async () => {
    for (let round = 0; round < 5; round += 1) {
      const other = await server.account();
      const ids = [await defaultProjectOf(other), await makeProject(other)];
      const statuses = await Promise.all(
        ids.map(async (id) => (await other.delete(`/v1/projects/${id}`)).status),
      );
      expect(statuses.sort()).toEqual([200, 403]);
      expect(await projectsOf(other)).toHaveLength(1);
      expect((await other.post("/v1/gate", { flag_key: "a", enabled: true })).status).toBe(201);
    }
  });

  test("can be deleted by its own key, which gets 403 from then on", async () => {
    const project = await makeProject(account);
    const client = await makeKey(project);
    expect((await client.delete(`/v1/projects/${project}`)).status).toBe(200);
    expectError(await client.get("/v1/projects"), "forbidden");
  });
});

test("a key of one project sees only that project and cannot create others", async () => {
  const [project, other] = [await makeProject(account, "A"), await makeProject(account, "B")];
  const client = await makeKey(project);
  expect((await client.get("/v1/projects")).body).toEqual({ projects: [(await projectsOf(account))[1]] });
  expect((await client.get("/v1/projects?limit=1")).body).not.toHaveProperty("cursor");
  expect((await client.get(`/v1/projects/${project}`)).status).toBe(200);
  expect((await client.patch(`/v1/projects/${project}`, { description: "mine" })).status).toBe(200);
  for (const id of [other, await defaultProjectOf(account)]) {
    expectError(await client.get(`/v1/projects/${id}`), "not_found");
    expectError(await client.get(`/v1/projects/${id}/overview`), "not_found");
    expectError(await client.patch(`/v1/projects/${id}`, { name: "x" }), "not_found");
    expectError(await client.delete(`/v1/projects/${id}`), "not_found");
  }
  expectError(await client.post("/v1/projects", { name: "C" }), "forbidden");
  expect((await projectsOf(account)).map(({ name }) => name)).toEqual(["B", "A", "Default"]);
});
