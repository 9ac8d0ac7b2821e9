import { afterAll, beforeAll, expect, test } from "bun:test";
import { KEYS_SCANNED_MAX } from "../../../src/areas/keys/overview-card.ts";
import { uuidToBytes } from "../../../src/kernel/data/uuid.ts";
import { COUNTED_MAX } from "../../../src/kernel/projects/overview-card.ts";
import type { Client } from "../../support/client.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import { type MadeKey, makeBearer, makeKey } from "./support.ts";

/** Keys of the neighbour: counting all of them takes tens of milliseconds. */
const NEIGHBOUR_KEYS = 200_000;
const HOUR_MS = 60 * 60 * 1000;
/** Reads of which the fastest counts: the machine may be busy. */
const ATTEMPTS = 20;

interface Copies {
  readonly copies: number;
  readonly isRevoked?: boolean;
  /** In milliseconds. */
  readonly later?: number;
}

let server: TestServer;
/** Clients with keys of projects: `reader` of an account of its own, `crowded` of one that has the keys of the neighbour. */
let reader: Client;
let crowded: Client;
let neighbour: AccountClient;
let project: string;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  const account = await server.account({ tier: "pro" });
  reader = await clientOfProject(account, await defaultProjectOf(account));
  neighbour = await server.account({ tier: "scale" });
  project = await defaultProjectOf(neighbour);
  crowded = await clientOfProject(neighbour, project);
  const expires_at = new Date(server.clock.now() + HOUR_MS).toISOString();
  await copyKey(await makeKey(neighbour, { expires_at }, project), { copies: NEIGHBOUR_KEYS });
});
afterAll(() => server.stop());

async function defaultProjectOf(client: Client): Promise<string> {
  const { body } = await client.get("/v1/projects");
  return String((body["projects"] as { id: string }[])[0]?.id);
}

async function clientOfProject(client: Client, id: string): Promise<Client> {
  return server.client((await makeBearer(client, ["*"], id)).secret);
}

/** Adds copies of a key, created `later` than it, under numbers far from those that the server gives. */
async function copyKey({ id }: MadeKey, { copies, isRevoked = false, later = 0 }: Copies) {
  const { db, writer } = server.server.kernel;
  const copy = db.change<[from: number, copies: number, id: Uint8Array]>(
    `INSERT INTO keys (ref, id, account_ref, project_ref, project_id, digest, prefix, last4, name, scopes, created_at,
       expires_at, revoked_at, deleted)
     SELECT ? + i, randomblob(16), account_ref, project_ref, project_id, randomblob(32), prefix, last4, name, scopes,
       created_at + ${later} + i, expires_at, ${isRevoked ? 1 : "NULL"}, deleted
     FROM keys, (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT i FROM n)
     WHERE id = ?`,
  );
  const from = db.number("SELECT max(ref) AS n FROM keys")() + 1_000;
  await writer.submit((tx) => void copy(tx, from, copies, uuidToBytes(id)));
}

/** Processor time of the fastest of some runs, in milliseconds: the server is in this process. */
async function fastestMs(run: () => unknown): Promise<number> {
  let fastest = Number.POSITIVE_INFINITY;
  for (let at = 0; at < ATTEMPTS; at += 1) {
    const from = process.threadCpuUsage();
    await run();
    const { user, system } = process.threadCpuUsage(from);
    fastest = Math.min(fastest, (user + system) / 1_000);
  }
  return fastest;
}

test("an overview does not read the keys of other accounts", async () => {
  const every = server.server.kernel.db.number("SELECT count(*) AS n FROM keys WHERE expires_at > 0");
  const counting = await fastestMs(every);
  const reading = await fastestMs(async () => {
    expect((await reader.get("/v1/overview")).body["keys"]).toEqual({ total: 1, ending_soon: 0 });
  });
  expect(reading).toBeLessThan(counting);
});

test("counts of a project end at their maximum", async () => {
  const { body } = await crowded.get("/v1/overview");
  expect(body["keys"]).toEqual({ total: COUNTED_MAX, ending_soon: COUNTED_MAX });
  const { body: counted } = await neighbour.get(`/v1/projects/${project}/overview`);
  expect(counted["resources"]).toMatchObject({ keys: COUNTED_MAX });
});

test("keys that are revoked are looked at up to a maximum", async () => {
  const account = await server.account({ tier: "scale" });
  const id = await defaultProjectOf(account);
  const client = await clientOfProject(account, id);
  const key = await makeKey(account, {}, id);
  await copyKey(key, { copies: KEYS_SCANNED_MAX, isRevoked: true });
  await copyKey(key, { copies: 1, later: KEYS_SCANNED_MAX });
  expect((await client.get("/v1/overview")).body["keys"]).toEqual({ total: 2, ending_soon: 0 });
});
