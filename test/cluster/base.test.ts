import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BASE_PATH, BaseServer, fetchBase, type NodeAccess } from "../../src/cluster/base.ts";
import type { Leader } from "../../src/cluster/commit-log.ts";
import { type NodeRequest, signRequest } from "../../src/cluster/node-token.ts";
import { openDataFolder } from "../../src/data-folder.ts";
import { closeKernel, type Kernel } from "../../src/kernel/kernel.ts";
import { KeptLog } from "../kernel/support.ts";

const KEY = new Uint8Array(32).fill(7);
const OTHER_KEY = new Uint8Array(32).fill(8);
const NOW = 1_800_000_000_000;
const MINUTE_MS = 60_000;
const CELL = "main";
const LOG = "0123456789abcdef0123456789abcdef";
const ACCESS: NodeAccess = { id: "b", key: KEY, cell: CELL, extraCaPath: null, now: () => NOW };
/** So that a copy has several responses. */
const FILLER_BYTES = 12 * 1024 * 1024;
const TIMEOUT_MS = 180_000;

const folder = mkdtempSync(join(tmpdir(), "ninefold-base-"));
const target = join(folder, "fetched");
let kernel: Kernel;

/** A leader's folder with a database that has a position. */
beforeAll(async () => {
  kernel = openDataFolder(folder, {
    masterKey: null,
    durability: "normal",
    makesEntries: true,
    continuesFrom: { log: LOG, epoch: 5, seq: 40 },
    log: new KeptLog(),
  });
  const change = kernel.db.change<[Uint8Array]>(
    "INSERT OR REPLACE INTO settings (name, value) VALUES ('filler', ?)",
  );
  await kernel.writer.submit((tx) => {
    change(tx, crypto.getRandomValues(Buffer.alloc(65_536)));
    for (let at = 65_536; at < FILLER_BYTES; at += 65_536)
      kernel.db.change<[string, Uint8Array]>("INSERT INTO settings (name, value) VALUES (?, ?)")(
        tx,
        `filler-${at}`,
        crypto.getRandomValues(Buffer.alloc(65_536)),
      );
  });
});
afterAll(() => {
  closeKernel(kernel);
  rmSync(folder, { recursive: true });
});

const servers: { stop: () => Promise<void> }[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
});

/** What a leader does with a request before the server responds. Null: the server does. */
type Front = (request: Request, count: number) => Response | Promise<Response> | null;

/** A node that leads. */
function lead(front: Front = () => null, change: Partial<ConstructorParameters<typeof BaseServer>[0]> = {}) {
  let base: BaseServer | null = null;
  let count = 0;
  const received: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request) => {
      expect(new URL(request.url).pathname).toBe(BASE_PATH);
      count += 1;
      received.push(request.headers.get("authorization") ?? "");
      return front(request, count) ?? base?.respond(request) ?? new Response(null, { status: 500 });
    },
  });
  const leader: Leader = { id: "a", advertise: server.url.href, epoch: 5 };
  base = new BaseServer({
    folder,
    node: { id: leader.id, advertise: leader.advertise },
    log: LOG,
    key: KEY,
    cell: CELL,
    isLeading: () => true,
    now: () => NOW,
    ...change,
  });
  servers.push({
    stop: async () => {
      base?.close();
      await server.stop(true);
    },
  });
  return { leader, base, received, responses: () => count };
}

const interruptions: string[] = [];

function fetched(leader: Leader, access = ACCESS, isWanted = () => true) {
  interruptions.length = 0;
  return fetchBase(access, { leader, log: LOG }, target, {
    isWanted: () => Promise.resolve(isWanted()),
    onBegun: () => undefined,
    onProgress: () => undefined,
    onInterrupted: (reason) => interruptions.push(reason),
  });
}

describe("a copy of the leader's database", () => {
  test(
    "is complete, and has its place in the log",
    async () => {
      const { leader, responses } = lead();
      expect(await fetched(leader)).toMatchObject({ log: LOG, epoch: 5, seq: 41 });
      expect(responses()).toBeGreaterThan(4);
      expect(readFileSync(target).length).toBeGreaterThan(FILLER_BYTES);
      expect(existsSync(join(folder, "ninefold.db.sent"))).toBe(false);
    },
    TIMEOUT_MS,
  );

  test(
    "continues after responses that were lost, and is given up when its source leads no more",
    async () => {
      const losing = lead((request, count) =>
        parsed(request).page > 1 && count % 2 === 0 ? new Response("away", { status: 503 }) : null,
      );
      await fetched(losing.leader);
      expect(interruptions.length).toBeGreaterThan(1);
      const gone = lead((request) =>
        parsed(request).page > 1 ? new Response("away", { status: 503 }) : null,
      );
      let looks = 0;
      const isWanted = (): boolean => {
        looks += 1;
        return interruptions.length < 2;
      };
      await expect(fetched(gone.leader, ACCESS, isWanted)).rejects.toThrow("another node leads");
      expect(looks).toBeGreaterThan(1);
    },
    TIMEOUT_MS,
  );

  test(
    "shows nothing without the master key, and cannot be changed on its way",
    async () => {
      const bodies: Buffer[] = [];
      let base: BaseServer;
      const honest = lead(async (request) => {
        const response = await base.respond(request);
        const body = Buffer.from(await response.bytes());
        bodies.push(body);
        return new Response(body, { status: response.status });
      });
      ({ base } = honest);
      await fetched(honest.leader);
      // Its first page, and the one with the names of the tables, are nowhere.
      for (const body of bodies) expect(body.includes("SQLite format 3")).toBe(false);
      for (const body of bodies) expect(body.includes("CREATE TABLE")).toBe(false);
      const changing = lead(async (request) => {
        const response = await base.respond(request);
        const body = Buffer.from(await response.bytes());
        if (parsed(request).copy !== null) body[body.length - 100] = (body[body.length - 100] ?? 0) ^ 1;
        return new Response(body, { status: response.status });
      });
      ({ base } = changing);
      await expect(fetched(changing.leader)).rejects.toThrow("damaged, or the master key is a different one");
      // What another node was sent, or what was sent before, is nothing to this one.
      const replaying = lead((_, count) => new Response(bodies[count] ?? bodies.at(-1) ?? null));
      await expect(fetched(replaying.leader)).rejects.toThrow("same master key");
    },
    TIMEOUT_MS,
  );

  test("is not accepted from a node with another master key", async () => {
    const forged = JSON.stringify({ manifest: "{}", mac: "0".repeat(64) });
    for (const body of [forged, "", "null", "[]", '{"manifest":1,"mac":{}}']) {
      const { leader } = lead(() => new Response(body));
      await expect(fetched(leader), body).rejects.toThrow("same master key");
    }
  });

  test("is rejected immediately by a node that does not lead, or cannot be reached", async () => {
    await expect(fetched(lead(() => null, { isLeading: () => false }).leader)).rejects.toThrow(
      "cannot confirm that it leads",
    );
    await expect(fetched({ id: "a", advertise: "http://127.0.0.1:1", epoch: 1 })).rejects.toThrow(
      "cannot be reached",
    );
  });
});

function parsed(request: Request): NodeRequest {
  const [, text = ""] = /^Ninefold ([^.]+)\./.exec(request.headers.get("authorization") ?? "") ?? [];
  return JSON.parse(Buffer.from(text, "base64url").toString("utf8")) as NodeRequest;
}

describe("a request for a copy", () => {
  const NODE = { id: "a", advertise: "https://a.internal" };
  const request = (change: Partial<NodeRequest> = {}): NodeRequest => ({
    from: "b",
    to: NODE,
    log: LOG,
    nonce: crypto.randomUUID(),
    at: NOW,
    copy: "gone",
    page: 1,
    ...change,
  });

  async function rejected(header: string, change: object = {}): Promise<string> {
    const server = new BaseServer({
      folder,
      node: NODE,
      log: LOG,
      key: KEY,
      cell: CELL,
      isLeading: () => true,
      now: () => NOW,
      ...change,
    });
    const response = await server.respond(
      new Request("http://leader/", { headers: { authorization: header } }),
    );
    return `${response.status} ${await response.text()}`;
  }
  const header = (change: Partial<NodeRequest> = {}, key = KEY, cell = CELL) =>
    signRequest(request(change), key, cell).authorization;

  test("is for one node, one log and one cell", async () => {
    // Accepted: the copy that it continues is not there.
    expect(await rejected(header())).toStartWith("410");
    expect(await rejected(header({ to: { ...NODE, id: "c" } }))).toStartWith("403");
    expect(await rejected(header({ to: { ...NODE, advertise: "https://thief.example" } }))).toStartWith(
      "403",
    );
    expect(await rejected(header({ log: "f".repeat(32) }))).toMatch(new RegExp(`^409 .*${LOG}.*f{32}`));
    expect(await rejected(header({}, OTHER_KEY))).toStartWith("401");
    expect(await rejected(header({}, KEY, "other"))).toStartWith("401");
    expect(await rejected(header().slice(0, -1))).toStartWith("401");
    expect(await rejected("")).toStartWith("401");
    expect(await rejected(`Bearer ${NOW}.${"0".repeat(64)}`)).toContain("older version");
  });

  test("is accepted once", async () => {
    const server = new BaseServer({
      folder,
      node: NODE,
      log: LOG,
      key: KEY,
      cell: CELL,
      isLeading: () => true,
      now: () => NOW,
    });
    const authorization = header();
    const respond = () => server.respond(new Request("http://leader/", { headers: { authorization } }));
    expect((await respond()).status).toBe(410);
    const again = await respond();
    expect([again.status, await again.text()]).toEqual([403, "This request was sent before.\n"]);
  });

  test("says when a clock is wrong", async () => {
    expect(await rejected(header({ at: NOW + 5 * MINUTE_MS }))).toStartWith("410");
    expect(await rejected(header({ at: NOW + 6 * MINUTE_MS }))).toMatch(/^403 .*360 s ahead of.*NTP/);
    expect(await rejected(header({ at: NOW - 6 * MINUTE_MS }))).toMatch(/^403 .*360 s behind/);
  });
});
