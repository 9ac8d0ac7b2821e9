import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { ProjectOverview } from "../../../src/areas/projects/schema.ts";
import { OVERVIEW_TTL_MS } from "../../../src/areas/projects/service.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import { defaultProjectOf, makeProject } from "./support.ts";

let server: TestServer;
let account: AccountClient;
let project: string;
/** The resources of an empty project: a kind that an area adds needs no line here. */
let nothing: ProjectOverview["resources"];
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  const empty = await server.account();
  nothing = (await overview(await defaultProjectOf(empty), empty)).resources;
  expect(new Set(Object.values(nothing))).toEqual(new Set([0]));
});
afterAll(() => server.stop());
beforeEach(async () => {
  account = await server.account({ balance: 1_000 });
  project = await defaultProjectOf(account);
});

async function overview(id: string, owner = account): Promise<ProjectOverview> {
  const { status, body, text } = await owner.get(`/v1/projects/${id}/overview`);
  expect(status, text).toBe(200);
  return body as unknown as ProjectOverview;
}

/** The overview after its cache of five minutes has expired. */
async function fresh(id: string): Promise<ProjectOverview> {
  await server.clock.advance(OVERVIEW_TTL_MS);
  return overview(id);
}

const isoNow = (): string => new Date(server.clock.now()).toISOString();

async function makeKey(path: string, prefix = "sm") {
  const { status, body, text } = await account.post(path, { prefix, name: "k", scopes: ["*"] });
  expect(status, text).toBe(201);
  return { id: String(body.key_id), client: server.client(String(body.secret)) };
}

test("contains the number of resources and the account's balance", async () => {
  await account.post("/v1/gate", { flag_key: "a", enabled: true });
  await account.post("/v1/gate", { flag_key: "b", enabled: true });
  await account.post("/v1/meter/m/reset", { balance: 5 });
  await account.post("/v1/latch/l/acquire", { ttl: 900_000 });
  const { id } = await makeKey("/v1/keys", "acme");
  await makeKey(`/v1/projects/${project}/keys`);
  expect(await overview(project)).toEqual({
    project_id: project,
    project_name: "Default",
    resources: { ...nothing, flags: 2, meters: 1, locks: 1, keys: 2 },
    usage: { meter_balance: 997, last_activity: isoNow() },
  });
  await account.delete("/v1/gate/a");
  await account.delete(`/v1/keys/${id}`);
  const { resources } = await fresh(project);
  expect(resources).toEqual({ ...nothing, flags: 1, meters: 1, locks: 1, keys: 1 });
  // The lock has expired.
  await server.clock.advance(900_000);
  expect((await overview(project)).resources.locks).toBe(0);
});

test("keys of the account count only in the default project, keys of a project in that project", async () => {
  const other = await makeProject(account);
  await makeKey("/v1/keys");
  const { client } = await makeKey(`/v1/projects/${other}/keys`);
  await client.post("/v1/gate", { flag_key: "a", enabled: true });
  expect((await overview(project)).resources).toEqual({ ...nothing, keys: 1 });
  expect((await overview(other)).resources).toEqual({ ...nothing, keys: 1, flags: 1 });
  // The account's keys count in the new default project, immediately.
  await account.delete(`/v1/projects/${project}`);
  expect((await overview(other)).resources).toEqual({ ...nothing, keys: 2, flags: 1 });
});

describe("for five minutes", () => {
  test("the response is identical, then the resources are counted again", async () => {
    const first = await account.get(`/v1/projects/${project}/overview`);
    await account.post("/v1/gate", { flag_key: "a", enabled: true });
    await account.post("/v1/meter/refill", { amount: 5 });
    await server.clock.advance(OVERVIEW_TTL_MS - 1);
    expect((await account.get(`/v1/projects/${project}/overview`)).text).toBe(first.text);
    await server.clock.advance(1);
    const { resources, usage } = await overview(project);
    expect(resources.flags).toBe(1);
    expect(usage.meter_balance).toBe(1_005);
  });

  test("except that a change of the project itself is visible immediately", async () => {
    await overview(project);
    await account.post("/v1/gate", { flag_key: "a", enabled: true });
    await account.patch(`/v1/projects/${project}`, { name: "Renamed" });
    expect(await overview(project)).toMatchObject({ project_name: "Renamed", resources: { flags: 1 } });
  });
});

describe("last_activity", () => {
  const lastActivityOf = async (id: string) => (await fresh(id)).usage.last_activity;

  test("is null until a change; a read is no change", async () => {
    await account.get("/v1/meter/balance");
    await account.get("/v1/gate/config");
    await account.post("/v1/meter/refill", { amount: 1 });
    expect(await lastActivityOf(project)).toBe(null);
  });

  test("is the last change in any area, of the project and of its keys", async () => {
    const other = await makeProject(account);
    const { id, client } = await makeKey(`/v1/projects/${other}/keys`);
    const changes: (() => Promise<{ status: number; text: string }>)[] = [
      () => client.post("/v1/gate", { flag_key: "a", enabled: true }),
      () => client.delete("/v1/gate/a"),
      () => client.post("/v1/meter/m/refill", { amount: 1 }),
      () => client.post("/v1/latch/l/acquire", {}),
      () => account.patch(`/v1/projects/${other}`, { description: "x" }),
      () => account.post(`/v1/projects/${other}/keys`, { prefix: "p", name: "k", scopes: ["x"] }),
      () => account.post(`/v1/keys/${id}/rotate`, {}),
      () => account.delete(`/v1/keys/${id}`),
    ];
    for (const change of changes) {
      await server.clock.advance(1_000);
      const at = isoNow();
      const { status, text } = await change();
      expect(status, text).toBeLessThan(300);
      expect(await lastActivityOf(other)).toBe(at);
      expect(await lastActivityOf(project)).toBe(null);
    }
  });

  test("is not affected by rejected requests", async () => {
    await account.delete("/v1/gate/absent");
    await account.post("/v1/meter/m/deduct", { amount: 5 });
    expect(await lastActivityOf(project)).toBe(null);
  });

  test("survives a restart", async () => {
    await account.post("/v1/gate", { flag_key: "a", enabled: true });
    await server.clock.advance(100);
    await account.post("/v1/gate", { flag_key: "b", enabled: true });
    const at = isoNow();
    await server.restart();
    const client = server.client(account.key);
    const { body } = await client.get(`/v1/projects/${project}/overview`);
    expect((body as unknown as ProjectOverview).usage.last_activity).toBe(at);
  });
});
