import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { findHistory, writeHistory } from "../../src/archive/history.ts";
import { baseNamed, entryName, entryNamed } from "../../src/archive/names.ts";
import { Uploader } from "../../src/archive/uploader.ts";
import type { CommitLog } from "../../src/cluster/commit-log.ts";
import { createVault } from "../../src/kernel/secrets/vault.ts";
import { dataFilesOf } from "../../src/kernel/storage/folders.ts";
import { OfflineDatabase } from "../../src/kernel/storage/offline.ts";
import { ENTRY_KEY_PURPOSE, encodeEntry } from "../../src/kernel/storage/replication/entry.ts";
import { positionIn, type StoredPosition } from "../../src/kernel/storage/replication/position.ts";
import type { Server } from "../../src/server.ts";
import { rowsIn, TestArchive } from "../archive/support.ts";
import { ninefold } from "../cli/run.ts";
import { type Engine, startEtcd } from "../harness/failover/engines.ts";
import { Cleanup } from "../harness/processes/cleanup.ts";
import { Scratch } from "../kernel/support.ts";
import type { Client } from "../support/client.ts";
import { until } from "../support/eventually.ts";
import { CuttingProxy } from "./cutting-proxy.ts";
import {
  confirmed,
  isFollowing,
  logOf,
  MASTER_KEY,
  type NodeOptions,
  Nodes,
  operatorOf,
  type RunningNode,
  spaceOf,
  writeBytes,
} from "./nodes.ts";

const TIMEOUT_MS = 120_000;
/** Of an engine that a test fills. */
const QUOTA_BYTES = 16 * 1024 * 1024;
const KEY = createVault(Buffer.from(MASTER_KEY, "hex")).derive(ENTRY_KEY_PURPOSE);

const cleanup = new Cleanup();
let engine: Engine;
let nodes: Nodes;
let archive: TestArchive;
let scratch: Scratch;
const logs: CommitLog[] = [];
const proxies: CuttingProxy[] = [];
let cell: string;
let cells = 0;
beforeAll(async () => {
  engine = await startEtcd(cleanup, 1);
  nodes = new Nodes(engine.url, cleanup);
}, TIMEOUT_MS);
beforeEach(async () => {
  cells += 1;
  cell = `archive-${cells}`;
  archive = new TestArchive();
  scratch = new Scratch();
  await archive.s3.start();
});
afterEach(async () => {
  archive.s3.mode = "up";
  await nodes.stopAll();
  for (const log of logs.splice(0)) log.close();
  for (const proxy of proxies.splice(0)) proxy.stop();
  await archive.stop();
  scratch.remove();
}, TIMEOUT_MS);
afterAll(() => cleanup.run(), TIMEOUT_MS);

/** A node with the archive. `store`: where it reaches the object store. */
function start(
  folder = nodes.folder(),
  more: Partial<NodeOptions> = {},
  store = archive.s3.endpoint,
): RunningNode {
  return nodes.start(cell, folder, {
    advertises: true,
    args: ["--archive", archive.url, "--archive-interval", "0.2"],
    environment: { ...archive.s3.archiveEnvironment, NINEFOLD_ARCHIVE_ENDPOINT: store },
    ...more,
  });
}

function proxyTo(port: number): CuttingProxy {
  const proxy = new CuttingProxy(port);
  proxies.push(proxy);
  return proxy;
}

/** Where a node reaches something through a proxy that can be cut. */
const through = ({ port }: CuttingProxy): string => `127.0.0.1:${port}`;

let given = 0;
/** Changes that are acknowledged. Returns their amounts. */
async function change(operator: Client, count: number): Promise<number[]> {
  const amounts: number[] = [];
  for (let index = 0; index < count; index += 1) {
    given += 1;
    expect((await operator.post("/v1/meter/m/refill", { amount: given })).status).toBe(200);
    amounts.push(given);
  }
  return amounts;
}

function isArchived({ archive: one }: Server): boolean {
  const { lagSeconds = 1, baseAt = null, lastError = null } = one?.status ?? {};
  return lagSeconds === 0 && baseAt !== null && lastError === null;
}

/** The newest state of the archive, or that of a time: the amounts of its ledger. */
async function restored(at: number | null = null): Promise<unknown[]> {
  const path = scratch.path("restored.db");
  const history = await findHistory(archive.store, at);
  if (history === null) throw new Error("nothing can be restored");
  await writeHistory(archive.store, history, { path, key: KEY, at });
  expect(rowsIn(path, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
  return rowsIn(path, "SELECT amount FROM meter_entries ORDER BY sequence").map(({ amount }) => amount);
}

/** Numbers of the histories that have a base, or entries. */
async function histories(): Promise<{ readonly bases: number[]; readonly entries: number[] }> {
  const bases = (await archive.names("b/")).map((name) => baseNamed(name)?.epoch ?? 0);
  const entries = (await archive.names("e/")).map((name) => entryNamed(name)?.epoch ?? 0);
  return { bases, entries: [...new Set(entries)].filter((epoch) => epoch > 0) };
}

test(
  "the leader archives and the follower does not; the next leader continues the same history without another base",
  async () => {
    const leader = start();
    const server = await leader.server();
    const operator = operatorOf(server);
    const store = proxyTo(Number(new URL(archive.s3.endpoint).port));
    const follower = start(nodes.folder(), {}, `http://${through(store)}`);
    const amounts = await change(operator, 3);
    await isFollowing(follower);
    await until(() => isArchived(server));
    expect(await restored()).toEqual(amounts);
    expect(store.connections).toBe(0);
    amounts.push(...(await change(operator, 2)));
    await leader.stop();
    const next = await follower.server();
    const continued = operatorOf(next, operator);
    amounts.push(...(await change(continued, 2)));
    await until(() => isArchived(next));
    expect(await restored()).toEqual(amounts);
    const { bases, entries } = await histories();
    expect(bases).toHaveLength(1);
    expect(entries).toEqual(bases);
    await follower.logged("this leader continues the archive");
  },
  TIMEOUT_MS,
);

test.each([
  ["after", "is refused"],
  ["before", "is continued"],
])(
  "an upload of the former leader that arrives %s the first one of the next leader %s",
  async (when) => {
    const store = proxyTo(Number(new URL(archive.s3.endpoint).port));
    const isFormers = ({ headers }: { headers: Headers }): boolean => headers.get("host") === through(store);
    const isUpload = ({ method, path }: { method: string; path: string }): boolean =>
      method === "PUT" && path.includes("/e/");
    const leader = start(nodes.folder(), {}, `http://${through(store)}`);
    const server = await leader.server();
    const operator = operatorOf(server);
    const amounts = await change(operator, 1);
    const follower = start();
    await isFollowing(follower);
    await until(() => isArchived(server));
    const release = store.hold();
    amounts.push(...(await change(operator, 3)));
    let isAway = when === "before";
    archive.s3.before = (request) => (isAway && isUpload(request) && !isFormers(request) ? 503 : null);
    await leader.stop();
    const next = await follower.server();
    const continued = operatorOf(next, operator);
    amounts.push(...(await change(continued, 2)));
    await until(() => (isAway ? next.archive?.status.lastError?.includes("503") === true : isArchived(next)));
    const sent = archive.s3.requests.length;
    const late = (): string => {
      const uploads = archive.s3.requests.slice(sent).filter(isUpload);
      return uploads.find(isFormers)?.path.replace(/^.*\/archive\//, "") ?? "";
    };
    const named = await archive.names("e/");
    release();
    await until(() => late() !== "");
    expect(named.includes(late())).toBe(!isAway);
    if (isAway) {
      await until(async () => (await archive.names("e/")).includes(late()));
      isAway = false;
      await follower.logged("another node has archived meanwhile");
    }
    amounts.push(...(await change(continued, 1)));
    await until(() => isArchived(next));
    expect(await restored()).toEqual(amounts);
    expect((await histories()).bases).toHaveLength(1);
  },
  TIMEOUT_MS,
);

test(
  "a leader that finds changes of a later one in the archive writes nothing to it any more, and serves",
  async () => {
    const node = start();
    const server = await node.server();
    const operator = operatorOf(server);
    await change(operator, 1);
    await until(() => isArchived(server));
    const { log } = await findBase();
    const uploader = new Uploader(archive.client, { place: archive.place, key: KEY });
    await until(async () => {
      const { end } = await uploader.find(log);
      if (end === null) throw new Error("the archive has no end");
      const { epoch, seq, at } = end.position;
      const name = entryName({ epoch: end.history, seq: seq + 1 });
      const seal = { log, epoch: epoch + 1, seq: seq + 1, at, isSeal: true, filePages: 1 };
      const parts = [...encodeEntry({ ...seal, payload: new Uint8Array() }, KEY, name)];
      return (await archive.store.put(name, Buffer.concat(parts))).kind === "stored";
    });
    await change(operator, 1);
    await node.logged("this node archives nothing any more");
    const names = await archive.names("");
    await change(operator, 1);
    const { body } = await operator.get("/v1/admin/status");
    expect(body["archive"]).toMatchObject({ last_error: "another node leads, and archives" });
    expect(await archive.names("")).toEqual(names);
  },
  TIMEOUT_MS,
);

test(
  "a change that the commit log has not confirmed is not archived",
  async () => {
    const log = proxyTo(Number(engine.url.split(":").at(-1)));
    const leader = start(nodes.folder(), { commitLog: `etcd://${through(log)}` });
    const server = await leader.server();
    const operator = operatorOf(server);
    const amounts = await change(operator, 2);
    const follower = start();
    await isFollowing(follower);
    await until(() => isArchived(server));
    log.stop();
    const response = await operator.post("/v1/meter/m/refill", { amount: 1_000_000 });
    expect(response.body).toMatchObject({ error: { code: "unconfirmed" } });
    const next = await follower.server();
    await until(() => (server.archive?.status.lagSeconds ?? 0) > 1);
    amounts.push(...(await change(operatorOf(next, operator), 2)));
    await until(() => isArchived(next));
    await leader.stop();
    expect(await restored()).toEqual(amounts);
    expect((await histories()).bases).toHaveLength(1);
  },
  TIMEOUT_MS,
);

test(
  "an outage of the object store stops nobody, and what it has missed comes from the commit log",
  async () => {
    const leader = start();
    const server = await leader.server();
    const operator = operatorOf(server);
    const amounts = await change(operator, 2);
    const follower = start(nodes.folder(), { archive: { tailBytesMax: 200_000 } });
    await isFollowing(follower);
    await until(() => isArchived(server));
    archive.s3.mode = "down";
    amounts.push(...(await change(operator, 12)));
    await leader.stop();
    const next = await follower.server();
    const continued = operatorOf(next, operator);
    amounts.push(...(await change(continued, 2)));
    expect((await continued.get("/readyz")).status).toBe(200);
    archive.s3.mode = "up";
    await until(() => isArchived(next));
    expect(await restored()).toEqual(amounts);
    expect((await histories()).bases).toHaveLength(1);
    // More than the tail may have, so a new history replaces it.
    archive.s3.mode = "down";
    while (!follower.log.lines.some(({ fields }) => String(fields["error"]).includes("is too far behind")))
      amounts.push(...(await change(continued, 5)));
    archive.s3.mode = "up";
    await until(() => isArchived(next));
    expect(await restored()).toEqual(amounts);
    const { bases, entries } = await histories();
    expect(bases).toHaveLength(2);
    expect(bases).toEqual(expect.arrayContaining(entries));
  },
  TIMEOUT_MS,
);

test(
  "the commit log is kept for an archive that lags, and its limit is that of nodes that are off",
  async () => {
    const small = await startEtcd(cleanup, 1, null, ["--quota-backend-bytes", String(QUOTA_BYTES)]);
    const own = new Nodes(small.url, cleanup);
    try {
      const node = own.start(cell, own.folder(), {
        args: ["--archive", archive.url, "--archive-interval", "0.2"],
        environment: archive.s3.archiveEnvironment,
      });
      const server = await node.server();
      const log = logOf(small.url, cell);
      logs.push(log);
      await until(() => isArchived(server));
      archive.s3.mode = "down";
      await writeBytes(server, 1);
      await until(() => server.archive?.status.lastError !== null);
      const end = server.archive?.archivedThrough ?? 0;
      const firstAfter = async (bytes: number): Promise<number> => {
        const { used } = spaceOf(server);
        await writeBytes(server, bytes);
        await until(() => spaceOf(server).used !== used);
        return (await confirmed(() => log.range()))?.first ?? 0;
      };
      // More than is kept without a reason, which is an eighth of the quota; the second look has seen it all.
      await firstAfter((QUOTA_BYTES * 3) / 16);
      expect(await firstAfter(1)).toBeLessThanOrEqual(end);
      while ((await firstAfter(QUOTA_BYTES / 16)) <= end)
        expect(spaceOf(server).used).toBeLessThan(QUOTA_BYTES);
      archive.s3.mode = "up";
      await until(() => isArchived(server));
    } finally {
      await own.stopAll();
    }
  },
  TIMEOUT_MS,
);

test(
  "when the commit log no longer has what the archive has missed, the next leader begins a new history with a base",
  async () => {
    const leader = start();
    const server = await leader.server();
    const operator = operatorOf(server);
    const amounts = await change(operator, 2);
    const follower = start();
    await isFollowing(follower);
    await until(() => isArchived(server));
    const boundary = server.archive?.status.archivedAt ?? 0;
    const early = [...amounts];
    archive.s3.mode = "down";
    amounts.push(...(await change(operator, 3)));
    await leader.stop();
    const next = await follower.server();
    const log = logOf(engine.url, cell);
    logs.push(log);
    await log.trim((await log.range())?.last ?? 0);
    amounts.push(...(await change(operatorOf(next, operator), 2)));
    archive.s3.mode = "up";
    await until(() => isArchived(next));
    await follower.logged("this leader begins a new history of the archive");
    expect(await restored()).toEqual(amounts);
    expect(await restored(boundary)).toEqual(early);
    expect((await histories()).bases).toHaveLength(2);
  },
  TIMEOUT_MS,
);

test(
  "of two histories of a commit log the one that reaches further is restored and continued, not that with the higher number",
  async () => {
    const folder = nodes.folder();
    const leader = start(folder);
    const server = await leader.server();
    const operator = operatorOf(server);
    const amounts = await change(operator, 2);
    const follower = start();
    await isFollowing(follower);
    await until(() => isArchived(server));
    await leader.stop();
    const next = await follower.server();
    amounts.push(...(await change(operatorOf(next, operator), 2)));
    await until(() => isArchived(next));
    // What a leader may have begun that was paused then, and has not noticed that another one leads.
    const database = dataFilesOf(folder).database;
    const position = positionOf(database);
    const uploader = new Uploader(archive.client, { place: archive.place, key: KEY });
    const { newest, end } = await uploader.find(position.log);
    expect(end).toMatchObject({ history: newest });
    const claimed = await uploader.claim(newest, "former");
    expect(claimed).toBe(newest + 1);
    await uploader.uploadBase(database, { epoch: claimed, seq: position.seq }, position.epoch);
    expect((await uploader.find(position.log)).end).toEqual(end);
    expect(await restored()).toEqual(amounts);
    // Nothing of the history in use expires because of a base with a higher number.
    await uploader.expire(Date.now() + 60_000, newest);
    expect(await restored()).toEqual(amounts);
  },
  TIMEOUT_MS,
);

function positionOf(path: string): StoredPosition {
  using db = OfflineDatabase.read(path);
  const position = positionIn(db);
  if (position === null) throw new Error("the file has no position");
  return position;
}

/** Position of the base that a restore begins with. */
async function findBase(): Promise<StoredPosition> {
  const history = await findHistory(archive.store, null);
  if (history === null) throw new Error("nothing can be restored");
  return history.base.position;
}

/** Restores the newest state of the archive with the command. Returns what it prints. */
async function restoreTo(folder: string): Promise<string> {
  return command("restore", archive.url, "--force", "--data", folder);
}

/** Runs a command with the access keys and the master key. Returns what it prints. */
async function command(...args: readonly string[]): Promise<string> {
  const environment = { ...archive.s3.archiveEnvironment, NINEFOLD_MASTER_KEY: MASTER_KEY };
  const { out, error, code } = await ninefold(args, { environment });
  expect({ code, error }).toEqual({ code: 0, error: "" });
  return out;
}

test(
  "a cell is restored elsewhere under another name, and continues in the same archive with a history of its own",
  async () => {
    const leader = start();
    const server = await leader.server();
    const operator = operatorOf(server);
    const amounts = await change(operator, 3);
    await until(() => isArchived(server));
    await leader.stop();
    const { log } = await findBase();
    expect(await command("archive", "status", archive.url)).toContain(log ?? "no log");
    const folder = nodes.folder();
    await restoreTo(folder);
    cell = `${cell}-restored`;
    const restoredNode = start(folder);
    const restoredServer = await restoredNode.server();
    const follower = start();
    await isFollowing(follower);
    amounts.push(...(await change(operatorOf(restoredServer, operator), 2)));
    await until(() => isArchived(restoredServer));
    expect(await restored()).toEqual(amounts);
    const { bases } = await histories();
    expect(bases).toHaveLength(2);
    expect(new Set(bases).size).toBe(2);
  },
  TIMEOUT_MS,
);

test(
  "a folder of a follower does not take what was restored into it for the state that it had, and leads with it after reset-log",
  async () => {
    const leader = start();
    const server = await leader.server();
    const operator = operatorOf(server);
    const kept = await change(operator, 2);
    await until(() => isArchived(server));
    const folder = nodes.folder();
    const follower = start(folder);
    await isFollowing(follower);
    await follower.stop();
    await restoreTo(folder);
    const again = start(folder);
    expect(await again.refusal()).toContain("has data of its own, and this folder has others");
    const lost = await change(operator, 1);
    await leader.stop();
    await command(
      "cluster",
      "reset-log",
      "--accept",
      "--commit-log",
      engine.url,
      "--cell",
      cell,
      "--data",
      folder,
    );
    const next = await start(folder).server();
    const amounts = [...kept, ...(await change(operatorOf(next, operator), 1))];
    await until(() => isArchived(next));
    expect(await restored()).toEqual(amounts);
    expect(amounts).not.toContain(lost[0]);
  },
  TIMEOUT_MS,
);

test(
  "a server becomes a node of a cluster and leaves it again, each time with a new history in the same archive",
  async () => {
    const single = archive.server({ environment: { NINEFOLD_MASTER_KEY: MASTER_KEY } });
    try {
      await single.start();
      const amounts = await change(single.operator, 2);
      await until(() => isArchived(single.server));
      await single.halt();
      const node = start(single.folder);
      const server = await node.server();
      amounts.push(...(await change(operatorOf(server, single.operator), 2)));
      await until(() => isArchived(server));
      expect(await restored()).toEqual(amounts);
      await node.stop();
      await single.start();
      amounts.push(...(await change(single.operator, 2)));
      await until(() => isArchived(single.server));
      expect(await restored()).toEqual(amounts);
      expect(new Set((await histories()).bases).size).toBe(3);
    } finally {
      await single.stop();
    }
  },
  TIMEOUT_MS,
);

test(
  "expired objects are deleted across changes of the leader",
  async () => {
    const parts = { keepMs: 0, baseIntervalMs: 0 };
    const leader = start();
    const server = await leader.server();
    const operator = operatorOf(server);
    const amounts = await change(operator, 2);
    const follower = start(nodes.folder(), { archive: parts });
    await isFollowing(follower);
    await until(() => isArchived(server));
    const [first = ""] = await archive.names("b/");
    await leader.stop();
    const next = await follower.server();
    const continued = operatorOf(next, operator);
    await until(async () => {
      amounts.push(...(await change(continued, 1)));
      return !(await archive.names("b/")).includes(first);
    });
    await until(() => isArchived(next));
    expect(await restored()).toEqual(amounts);
  },
  TIMEOUT_MS,
);
