import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { CommitLog } from "../../src/cluster/commit-log.ts";
import type { Server } from "../../src/server.ts";
import { ninefold } from "../cli/run.ts";
import { type Engine, startEtcd } from "../harness/failover/engines.ts";
import { Cleanup } from "../harness/processes/cleanup.ts";
import type { Client } from "../support/client.ts";
import { memoryDisk } from "../support/memory-disk.ts";
import { CuttingProxy } from "./cutting-proxy.ts";
import {
  confirmed,
  filesOf,
  isFollowing,
  logOf,
  Nodes,
  operatorOf,
  type RunningNode,
  spaceOf,
  stateOf,
  writeBytes,
} from "./nodes.ts";

const TIMEOUT_MS = 120_000;
const POLL_MS = 20;
const MIB = 1024 * 1024;
/** Room for a database, its log, and some changes. */
const SMALL_DISK_MIB = 24;
/** Of an engine that a test fills. */
const QUOTA_BYTES = 16 * MIB;
/** Written between two looks of the leader. */
const ROUND_BYTES = MIB;

const cleanup = new Cleanup();
let engine: Engine;
let nodes: Nodes;
const logs: CommitLog[] = [];
const proxies: CuttingProxy[] = [];
let cells = 0;
beforeAll(async () => {
  engine = await startEtcd(cleanup, 1);
  nodes = new Nodes(engine.url, cleanup);
}, TIMEOUT_MS);
afterEach(async () => {
  await nodes.stopAll();
  for (const log of logs.splice(0)) log.close();
  for (const proxy of proxies.splice(0)) proxy.stop();
}, TIMEOUT_MS);
afterAll(() => cleanup.run(), TIMEOUT_MS);

function nextCell(): string {
  cells += 1;
  return `fault-${cells}`;
}

function open(cell: string, url = engine.url): CommitLog {
  const log = logOf(url, cell);
  logs.push(log);
  return log;
}

/** A leader, and a node that follows it with a copy of its database. `through`: where the leader reaches the engine. */
async function pair(
  cell: string,
  { leaderFolder = nodes.folder(), through = engine.url, aheadMs = 0 } = {},
): Promise<{
  readonly leader: RunningNode;
  readonly server: Server;
  readonly follower: RunningNode;
  readonly operator: Client;
}> {
  const leader = nodes.start(cell, leaderFolder, { commitLog: through, advertises: true });
  const server = await leader.server();
  const follower = nodes.start(cell, nodes.folder(), { aheadMs, advertises: true });
  await isFollowing(follower);
  return { leader, server, follower, operator: operatorOf(server) };
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await Bun.sleep(POLL_MS);
}

/** The URL of the engine through a proxy. */
function throughProxy(): { readonly proxy: CuttingProxy; readonly url: string } {
  const proxy = new CuttingProxy(Number(new URL(engine.url.replace("etcd:", "http:")).port));
  proxies.push(proxy);
  return { proxy, url: `etcd://127.0.0.1:${proxy.port}` };
}

describe("a leader that cannot serve", () => {
  test(
    "gives up when its requests arrive and no response comes back: the other node leads",
    async () => {
      const cell = nextCell();
      const { proxy, url } = throughProxy();
      const { leader, server, follower, operator } = await pair(cell, { through: url });
      // It has seen that the other node could lead.
      await until(() => hasSuccessor(server));
      const { log_bytes, nodes: others } = await statusOf(operator);
      expect(log_bytes).toBeGreaterThan(0);
      expect(others).toHaveLength(1);
      proxy.mute();
      const lost = await operator.post("/v1/meter/m/refill", { amount: 1 });
      expect([lost.status, lost.body["code"]]).toEqual([503, "unconfirmed"]);
      expect(await server.deposed).toContain("has not confirmed");
      server.abandon();
      expect((await follower.server()).kernel.entries?.position.epoch).toBeGreaterThan(
        server.kernel.entries?.position.epoch ?? 0,
      );
      expect(stateOf(leader.folder)).toMatchObject({ gaveUp: true });
      expect(leader.log.messages("error")).toContain("this node cannot serve, and lets another one lead");
      // The change that nobody was told of is undone, so that the node follows without a copy.
      await leader.stop();
      const again = nodes.start(cell, leader.folder, { advertises: true });
      await isFollowing(again);
      expect(again.log.messages("info")).not.toContain("the database is copied from the leader");
    },
    TIMEOUT_MS,
  );

  const disk = memoryDisk(SMALL_DISK_MIB);
  afterAll(() => disk?.remove());
  test.skipIf(disk === null)(
    "gives up when its disk is full, and the other node has space",
    async () => {
      const cell = nextCell();
      const leaderFolder = join(disk?.folder ?? "", "node");
      mkdirSync(leaderFolder);
      const { server, follower, operator } = await pair(cell, { leaderFolder });
      await until(() => hasSuccessor(server));
      disk?.fill();
      const writing = until(async () => {
        await operator.post("/v1/meter/m/refill", { amount: 1 });
        return follower.isOver();
      }).catch(() => undefined);
      expect(await server.deposed).toMatch(/written|space|full/);
      await follower.server();
      await writing;
    },
    TIMEOUT_MS,
  );

  test(
    "continues when no other node could lead, and when the engine is back",
    async () => {
      const cell = nextCell();
      const { proxy, url } = throughProxy();
      const leader = nodes.start(cell, nodes.folder(), { commitLog: url });
      const server = await leader.server();
      expect(hasSuccessor(server)).toBe(false);
      proxy.cutNext("response");
      await operatorOf(server).post("/v1/meter/m/refill", { amount: 1 });
      await until(async () => (await operatorOf(server).get("/v1/ping")).status === 200);
      expect(leader.log.messages("error")).toEqual([]);
    },
    TIMEOUT_MS,
  );
});

/** Whether a leader knows a node that could lead. */
function hasSuccessor(server: Server): boolean {
  const name = "ninefold_cluster_successors";
  const family = server.kernel.metrics.families.find((family) => family.name === name);
  return [...(family?.samples() ?? [])].some(({ value }) => value === 1);
}

interface ClusterStatus {
  readonly log_bytes: number | null;
  readonly nodes: readonly { readonly lag: number }[];
}

async function statusOf(operator: Client): Promise<ClusterStatus> {
  return (await operator.get("/v1/admin/status")).body["cluster"] as ClusterStatus;
}

describe("a node that is ahead of the log", () => {
  test(
    "does not start, keeps its file, and says what to do; the command that shows the cluster works",
    async () => {
      const cell = nextCell();
      const folder = nodes.folder();
      const first = nodes.start(cell, folder);
      const operator = operatorOf(await first.server());
      for (let change = 0; change < 5; change += 1) await operator.post("/v1/meter/m/refill", { amount: 1 });
      await first.stop();
      const range = (await confirmed(() => open(cell).range())) ?? { first: 0, last: 0 };
      // As a snapshot from before the last three changes.
      for (const seq of [range.last, range.last - 1, range.last - 2]) await removeEntry(cell, seq);
      const before = filesOf(folder);
      const refusal = await nodes.start(cell, folder).refusal();
      for (const text of [`entry ${range.last}`, `to ${range.last - 3}`, "reset-log --accept"])
        expect(refusal).toContain(text);
      expect(filesOf(folder)).toEqual(before);
      const shown = await ninefold(["cluster", "status", "--commit-log", engine.url, "--cell", cell]);
      expect(shown.out).toContain(`entries ${range.first} to ${range.last - 3}`);
    },
    TIMEOUT_MS,
  );
});

/** Deletes an entry as no node does. */
async function removeEntry(cell: string, seq: number): Promise<void> {
  const key = Buffer.from(`ninefold/${cell}/entry/${String(seq).padStart(15, "0")}`).toString("base64");
  const response = await fetch(`${engine.url.replace("etcd:", "http:")}/v3/kv/deleterange`, {
    method: "POST",
    body: JSON.stringify({ key }),
  });
  expect(await response.text()).toContain('"deleted":"1"');
}

describe("a node that is off", () => {
  test(
    "does not fill the engine: what is kept for it is limited, and it copies the database when it is back",
    async () => {
      const small = await startEtcd(cleanup, 1, null, ["--quota-backend-bytes", String(QUOTA_BYTES)]);
      const own = new Nodes(small.url, cleanup);
      try {
        const cell = nextCell();
        const [leaderFolder, followerFolder] = [own.folder(), own.folder()];
        const leader = own.start(cell, leaderFolder, { advertises: true });
        const server = await leader.server();
        const follower = own.start(cell, followerFolder, { advertises: true });
        await isFollowing(follower);
        await follower.stop();
        const { last: seen } = (await confirmed(() => open(cell, small.url).range())) ?? { last: 0 };
        const log = open(cell, small.url);
        while (((await confirmed(() => log.range()))?.first ?? 0) <= seen) {
          const { used, quota } = spaceOf(server);
          expect(quota ?? QUOTA_BYTES).toBe(QUOTA_BYTES);
          await writeBytes(server, ROUND_BYTES);
          await until(() => spaceOf(server).used !== used);
        }
        expect(spaceOf(server).used).toBeLessThan(QUOTA_BYTES);
        expect(leader.log.lines.some(({ message }) => message.includes("no longer kept for a node"))).toBe(
          true,
        );
        const again = own.start(cell, followerFolder, { advertises: true });
        await again.logged("the database was copied from the leader");
      } finally {
        await own.stopAll();
      }
    },
    2 * TIMEOUT_MS,
  );
});

describe("an engine without space", () => {
  test(
    "is named, with what to do",
    async () => {
      const small = await startEtcd(cleanup, 1, null, ["--quota-backend-bytes", String(QUOTA_BYTES)]);
      const own = new Nodes(small.url, cleanup);
      try {
        const leader = own.start(nextCell(), own.folder());
        const server = await leader.server();
        const filling = writeBytes(server, 4 * QUOTA_BYTES).catch(() => undefined);
        await leader.logged("etcdctl alarm disarm");
        expect(JSON.stringify(leader.log.lines)).toContain("database space exceeded");
        await own.stopAll();
        await filling;
      } finally {
        await own.stopAll();
      }
    },
    TIMEOUT_MS,
  );
});

/** Longer than a change of the leader takes on a busy machine. */
const LOCK_TTL_MS = 600_000;

describe("clocks that differ", () => {
  test.each([30_000, -30_000])(
    "do not end a lock early, nor late, when another node leads (%p ms)",
    async (aheadMs) => {
      const cell = nextCell();
      const { leader, follower, operator } = await pair(cell, { aheadMs });
      const acquiredAt = performance.now();
      const acquired = await operator.post("/v1/latch/k/acquire", { ttl: LOCK_TTL_MS });
      expect(acquired.status).toBe(200);
      // With each report of the leader.
      await follower.logged("compared with the clock of the leader");
      await leader.stop();
      const server = await follower.server();
      const lock = (await operatorOf(server, operator).get("/v1/latch/k")).body;
      expect(lock["locked"]).toBe(true);
      const passedMs = performance.now() - acquiredAt;
      // Without the comparison, 30 s less or more.
      const toleranceMs = 15_000;
      expect(Number(lock["ttl_remaining"]) + passedMs).toBeWithin(
        LOCK_TTL_MS - toleranceMs,
        LOCK_TTL_MS + toleranceMs,
      );
    },
    TIMEOUT_MS,
  );
});

describe("a leader whose engine is gone", () => {
  test(
    "stops, although a change is not confirmed, and its node continues when the engine is back",
    async () => {
      const own = await startEtcd(cleanup, 1);
      const ownNodes = new Nodes(own.url, cleanup);
      try {
        const cell = nextCell();
        const folder = ownNodes.folder();
        const leader = ownNodes.start(cell, folder);
        const server = await leader.server();
        const operator = operatorOf(server);
        await operator.post("/v1/meter/m/refill", { amount: 5 });
        for (const node of own.nodes) await node.kill();
        const lost = await operator.post("/v1/meter/m/refill", { amount: 1 });
        expect([lost.status, lost.body["code"], lost.body["outcome"]]).toEqual([
          503,
          "unconfirmed",
          "unknown",
        ]);
        await leader.stop();
        // A node that has taken part waits for its engine.
        const again = ownNodes.start(cell, folder);
        await again.logged("this node waits for it");
        for (const node of own.nodes) node.start();
        const { kernel } = await again.server();
        expect(kernel.entries?.position.seq).toBeGreaterThan(0);
      } finally {
        await ownNodes.stopAll();
      }
    },
    TIMEOUT_MS,
  );
});
