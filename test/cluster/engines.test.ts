import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { SQL } from "bun";
import { openCommitLog } from "../../src/cluster/cluster.ts";
import {
  type ClusterNode,
  type CommitLog,
  EngineUnavailable,
  type LoggedEntry,
  LogTrimmed,
  PlaceTaken,
} from "../../src/cluster/commit-log.ts";
import { EtcdPut } from "../../src/cluster/engines/etcd-put.ts";
import { StartupError } from "../../src/kernel/errors.ts";
import { OutboundClient } from "../../src/kernel/outbound/client.ts";
import { ninefold } from "../cli/run.ts";
import { type Engine, missingFor, startEngine, startPostgres } from "../harness/failover/engines.ts";
import { Cleanup } from "../harness/processes/cleanup.ts";
import { CuttingProxy } from "./cutting-proxy.ts";

const A: ClusterNode = { id: "node-a", advertise: "http://127.0.0.1:1" };
const B: ClusterNode = { id: "node-b", advertise: null };
/** Long enough that no test sees its end. */
const LONG_MS = 600_000;
/** Short, but not shorter than what etcd grants: twice the time of an election. */
const SHORT_MS = 2_000;
const POLL_MS = 50;
/** When a test cancels a wait for standbys: longer than a confirmation takes, which is not repeated. */
const CANCEL_AFTER_MS = 700;
const START_MS_MAX = 120_000;
const MIB = 1024 * 1024;

const cleanup = new Cleanup();
afterAll(() => cleanup.run(), START_MS_MAX);

let cells = 0;
const open: CommitLog[] = [];
afterEach(() => {
  for (const log of open.splice(0)) log.close();
});

function nextCell(): string {
  cells += 1;
  return `cell-${cells}`;
}

function openLog(url: string, cell: string, isTrusted = false, extraCaPath: string | null = null): CommitLog {
  const log = openCommitLog({ url, cell, leaseMs: LONG_MS, advertise: null, isTrusted, extraCaPath });
  open.push(log);
  return log;
}

/** Repeats a call that the engine did not confirm: on a busy machine any of them may take too long. */
async function confirmed<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof EngineUnavailable)) throw error;
    }
  }
}

/** A log whose calls are repeated until the engine confirms them. */
function patient(log: CommitLog): CommitLog {
  return {
    errors: log.errors,
    space: () => confirmed(() => log.space()),
    prepare: () => log.prepare(),
    tryLead: (...given) => confirmed(() => log.tryLead(...given)),
    renew: (...given) => confirmed(() => log.renew(...given)),
    release: (...given) => confirmed(() => log.release(...given)),
    leader: () => confirmed(() => log.leader()),
    append: (entry) => confirmed(() => log.append(entry)),
    read: (...given) => confirmed(() => log.read(...given)),
    range: () => confirmed(() => log.range()),
    identity: () => confirmed(() => log.identity()),
    identify: (id) => confirmed(() => log.identify(id)),
    watch: (...given) => log.watch(...given),
    trim: (through) => confirmed(() => log.trim(through)),
    report: (node) => confirmed(() => log.report(node)),
    nodes: () => confirmed(() => log.nodes()),
    forget: (id) => confirmed(() => log.forget(id)),
    askToHandOver: (epoch) => confirmed(() => log.askToHandOver(epoch)),
    isAskedToHandOver: (epoch) => confirmed(() => log.isAskedToHandOver(epoch)),
    reset: () => confirmed(() => log.reset()),
    close: () => log.close(),
  };
}

function entry(seq: number, epoch: number, text = `${seq} of ${epoch}`): LoggedEntry {
  return { seq, epoch, parts: [Buffer.from(text)] };
}

/** Entries as plain values. */
function plain(entries: readonly LoggedEntry[]): unknown[] {
  return entries.map(({ seq, epoch, parts }) => ({
    seq,
    epoch,
    parts: parts.map((part) => Buffer.from(part).toString()),
  }));
}

async function appendAll(log: CommitLog, through: number, epoch: number): Promise<void> {
  for (let seq = 1; seq <= through; seq += 1) await log.append(entry(seq, epoch));
}

describe.each(["etcd", "postgres"] as const)("a commit log in %s", (engine) => {
  let running: Engine;

  beforeAll(async () => {
    expect(missingFor(engine)).toBeNull();
    running = await startEngine(cleanup, engine);
  }, START_MS_MAX);

  /** Two nodes of a new cell. */
  async function nodes(): Promise<[CommitLog, CommitLog]> {
    const cell = nextCell();
    const [a, b] = [patient(openLog(running.url, cell)), patient(openLog(running.url, cell))];
    // Nodes may start concurrently.
    await Promise.all([a.prepare(), b.prepare()]);
    return [a, b];
  }

  /** The engine's URL with another port for the node that orders. */
  function urlThrough(port: number, leaderPort: number): string {
    const { protocol, username, pathname } = new URL(running.url.replace(/,[^/]*/, ""));
    expect(running.url).toContain(`:${leaderPort}`);
    return `${protocol}//${username === "" ? "" : `${username}@`}127.0.0.1:${port}${pathname}`;
  }

  async function portOfLeader(): Promise<number> {
    const index = running.nodes.indexOf(await running.leader());
    return Number(running.url.match(/:(\d+)/g)?.[index]?.slice(1));
  }

  test("gives the lease to one node", async () => {
    const [a, b] = await nodes();
    expect(await a.leader()).toBeNull();
    const epoch = await a.tryLead(A, LONG_MS, 1);
    expect(epoch).toBeGreaterThanOrEqual(1);
    expect(await b.tryLead(B, LONG_MS, 1)).toBeNull();
    expect(await b.leader()).toEqual({ ...A, epoch: epoch as number });
    expect(await a.renew(A, epoch as number, LONG_MS)).toBeTrue();
    expect(await b.tryLead(B, LONG_MS, 1)).toBeNull();
  });

  test("gives it to the same node again, with a higher epoch", async () => {
    const [a, b] = await nodes();
    const first = (await a.tryLead(A, LONG_MS, 1)) as number;
    // The process was restarted: another one, on the same folder.
    const second = (await b.tryLead(A, LONG_MS, 1)) as number;
    expect(second).toBeGreaterThan(first);
    expect(await a.renew(A, first, LONG_MS)).toBeFalse();
    expect(await b.renew(A, second, LONG_MS)).toBeTrue();
    expect(await a.leader()).toEqual({ ...A, epoch: second });
  });

  test("begins epochs at the one that is required", async () => {
    const [a] = await nodes();
    expect(await a.tryLead(A, LONG_MS, 70)).toBeGreaterThanOrEqual(70);
    const next = (await a.tryLead(A, LONG_MS, 5)) as number;
    expect(next).toBeGreaterThan(70);
    expect(await a.tryLead(A, LONG_MS, next + 100)).toBeGreaterThanOrEqual(next + 100);
  });

  test("frees the lease when it is released, and keeps it from the one who released it", async () => {
    const [a, b] = await nodes();
    const first = (await a.tryLead(A, LONG_MS, 1)) as number;
    await b.release(B, first + 1);
    expect(await b.tryLead(B, LONG_MS, 1)).toBeNull();
    await a.release(A, first);
    expect(await b.leader()).toBeNull();
    const second = (await b.tryLead(B, LONG_MS, 1)) as number;
    expect(second).toBeGreaterThan(first);
    expect(await a.renew(A, first, LONG_MS)).toBeFalse();
    await a.release(A, first);
    expect((await a.leader())?.epoch).toBe(second);
  });

  test("lets an expired lease be renewed, and be taken", async () => {
    const [a, b] = await nodes();
    const begun = performance.now();
    const first = (await a.tryLead(A, SHORT_MS, 1)) as number;
    while ((await b.leader()) !== null) await Bun.sleep(POLL_MS);
    expect(performance.now() - begun).toBeGreaterThanOrEqual(SHORT_MS);
    expect(await a.renew(A, first, SHORT_MS)).toBeTrue();
    expect((await b.leader())?.epoch).toBe(first);
    let second: number | null = null;
    while (second === null) {
      await Bun.sleep(POLL_MS);
      second = await b.tryLead(B, LONG_MS, 1);
    }
    expect(second).toBeGreaterThan(first);
    expect(await a.renew(A, first, SHORT_MS)).toBeFalse();
  });

  test("appends in order, and gives back what was appended", async () => {
    const [a, b] = await nodes();
    expect(await a.range()).toBeNull();
    expect(await a.read(1, 10)).toEqual([]);
    await appendAll(a, 5, 3);
    expect(await b.range()).toEqual({ first: 1, last: 5 });
    expect(plain(await b.read(2, 2))).toEqual(plain([entry(2, 3), entry(3, 3)]));
    expect(plain(await b.read(5, 10))).toEqual(plain([entry(5, 3)]));
    expect(await b.read(6, 10)).toEqual([]);
  });

  test("appends an entry once, however often it is sent", async () => {
    const [a, b] = await nodes();
    await a.append(entry(1, 3));
    await a.append(entry(1, 3));
    expect(plain(await b.read(1, 10))).toEqual(plain([entry(1, 3)]));
  });

  test("rejects an entry whose place another epoch has", async () => {
    const [a, b] = await nodes();
    await a.append(entry(1, 3));
    await expect(b.append(entry(1, 4))).rejects.toBeInstanceOf(PlaceTaken);
    await expect(b.append(entry(1, 2))).rejects.toBeInstanceOf(PlaceTaken);
    expect(plain(await b.read(1, 10))).toEqual(plain([entry(1, 3)]));
  });

  test("lets exactly one of two that append at a place succeed", async () => {
    const [a, b] = await nodes();
    for (let seq = 1; seq <= 20; seq += 1) {
      const results = await Promise.allSettled([a.append(entry(seq, 1)), b.append(entry(seq, 2))]);
      const winners = results.flatMap(({ status }, index) => (status === "fulfilled" ? [index + 1] : []));
      expect(winners).toHaveLength(1);
      expect(plain(await a.read(seq, 1))).toEqual(plain([entry(seq, winners[0] as number)]));
    }
  });

  test("stores entries of several parts", async () => {
    const [a, b] = await nodes();
    const parts = [MIB, MIB, MIB / 2].map((length, index) => new Uint8Array(length).fill(index + 1));
    await a.append({ seq: 1, epoch: 3, parts });
    await a.append(entry(2, 3));
    const [first, second] = await b.read(1, 2);
    expect(first?.parts.map((part, index) => Buffer.compare(part, parts[index] as Uint8Array))).toEqual([
      0, 0, 0,
    ]);
    expect(plain([second as LoggedEntry])).toEqual(plain([entry(2, 3)]));
  });

  test("returns pages of large entries", async () => {
    const [a, b] = await nodes();
    const large = new Uint8Array(MIB).fill(7);
    for (let seq = 1; seq <= 6; seq += 1) await a.append({ seq, epoch: 1, parts: [large] });
    const read: number[] = [];
    while (read.length < 6) read.push(...(await b.read(read.length + 1, 100)).map(({ seq }) => seq));
    expect(read).toEqual(Array.from({ length: 6 }, (_, index) => index + 1));
  });

  test("says what has been trimmed", async () => {
    const [a, b] = await nodes();
    await a.append({ seq: 1, epoch: 1, parts: [new Uint8Array(MIB), new Uint8Array(MIB)] });
    for (let seq = 2; seq <= 6; seq += 1) await a.append(entry(seq, 1));
    await a.trim(4);
    expect(await b.range()).toEqual({ first: 5, last: 6 });
    await expect(b.read(1, 10)).rejects.toBeInstanceOf(LogTrimmed);
    await expect(b.read(4, 1)).rejects.toBeInstanceOf(LogTrimmed);
    expect(plain(await b.read(5, 10))).toEqual(plain([entry(5, 1), entry(6, 1)]));
    await a.trim(4);
    await b.trim(5);
    expect(await a.range()).toEqual({ first: 6, last: 6 });
    await a.append(entry(7, 1));
    expect(await b.range()).toEqual({ first: 6, last: 7 });
  });

  test("wakes those who watch", async () => {
    const [a, b] = await nodes();
    let seen = 0;
    let wake = (): void => undefined;
    const cancel = b.watch(1, () => wake());
    for (let seq = 1; seq <= 3; seq += 1) {
      const { promise: woken, resolve } = Promise.withResolvers<void>();
      wake = resolve;
      await a.append(entry(seq, 1));
      while (seen < seq) {
        await woken;
        seen += (await b.read(seen + 1, 10)).length;
      }
    }
    cancel();
    expect(seen).toBe(3);
  });

  test("gives a log one id, which a reset forgets", async () => {
    const [a, b] = await nodes();
    expect(await a.identity()).toBeNull();
    const [first, second] = await Promise.all([a.identify("1".repeat(32)), b.identify("2".repeat(32))]);
    expect(first).toBe(second);
    expect(await a.identity()).toBe(first);
    expect(await b.identify("3".repeat(32))).toBe(first);
    await a.reset();
    expect(await b.identity()).toBeNull();
    expect(await b.identify("3".repeat(32))).toBe("3".repeat(32));
  });

  test("returns the report that another one replaces", async () => {
    const [a, b] = await nodes();
    const report = { ...A, applied: 7, synced: 5, schema: 48, at: 1_700_000_000_000 };
    expect(await a.report(report)).toBeNull();
    const process = { id: "p", place: "here", term: 2 };
    expect(await b.report({ ...report, process })).toEqual(report);
    expect(await a.report(report)).toEqual({ ...report, process });
  });

  test("keeps the newest report of each node", async () => {
    const [a, b] = await nodes();
    const report = { applied: 7, synced: 5, schema: 48, at: 1_700_000_000_000 };
    await a.report({ ...A, ...report, applied: 6 });
    await a.report({ ...A, ...report });
    await b.report({ ...B, ...report });
    const found = [...(await a.nodes())].sort((left, right) => left.id.localeCompare(right.id));
    expect(found).toEqual([
      { ...A, ...report },
      { ...B, ...report },
    ]);
  });

  test("forgets a node that does not run any more", async () => {
    const cell = nextCell();
    const log = patient(openLog(running.url, cell));
    await log.prepare();
    const report = { applied: 7, synced: 5, schema: 48 };
    await log.report({ ...A, ...report, at: 1_700_000_000_000 });
    await log.report({ ...B, ...report, at: Date.now() });
    const forget = (name: string) =>
      ninefold(["cluster", "forget", name, "--commit-log", running.url, "--cell", cell]);
    expect(await forget(B.id)).toMatchObject({ code: 1, error: expect.stringContaining("is running") });
    expect(await forget("nobody")).toMatchObject({
      code: 1,
      error: expect.stringContaining("No node nobody"),
    });
    expect(await forget(A.id)).toMatchObject({ code: 0, out: expect.stringContaining("Forgot") });
    expect((await log.nodes()).map(({ id }) => id)).toEqual([B.id]);
  });

  test("begins a new log when it is reset, with higher epochs", async () => {
    const [a, b] = await nodes();
    const epoch = (await a.tryLead(A, LONG_MS, 1)) as number;
    await appendAll(a, 3, epoch);
    await a.report({ ...A, applied: 3, synced: 3, schema: 48, at: 1 });
    await b.reset();
    expect(await a.range()).toBeNull();
    expect(await a.nodes()).toEqual([]);
    expect(await a.leader()).toBeNull();
    expect(await b.tryLead(B, LONG_MS, 1)).toBeGreaterThan(epoch);
  });

  test("asks one leader to hand over, not the next one", async () => {
    const [a, b] = await nodes();
    const first = (await a.tryLead(A, LONG_MS, 1)) as number;
    expect(await a.isAskedToHandOver(first)).toBeFalse();
    await b.askToHandOver(first);
    expect(await a.isAskedToHandOver(first)).toBeTrue();
    await a.release(A, first);
    const second = (await b.tryLead(B, LONG_MS, 1)) as number;
    expect(await b.isAskedToHandOver(second)).toBeFalse();
  });

  test("keeps cells apart", async () => {
    const [a] = await nodes();
    const [other] = await nodes();
    await a.append(entry(1, 1));
    await a.tryLead(A, LONG_MS, 1);
    expect(await other.range()).toBeNull();
    expect(await other.leader()).toBeNull();
    await other.reset();
    expect(await a.range()).toEqual({ first: 1, last: 1 });
  });

  test.each(["request", "response"] as const)(
    "appends once although the connection breaks in a %s",
    async (cut) => {
      const [a] = await nodes();
      const leaderPort = await portOfLeader();
      const proxy = new CuttingProxy(leaderPort);
      const throughProxy = openLog(urlThrough(proxy.port, leaderPort), `cell-${cells}`);
      try {
        await confirmed(() => throughProxy.append(entry(1, 1)));
        for (let seq = 2; seq <= 4; seq += 1) {
          proxy.cutNext(cut);
          await confirmed(() => throughProxy.append(entry(seq, 1)));
        }
        expect(plain(await a.read(1, 10))).toEqual(plain([1, 2, 3, 4].map((seq) => entry(seq, 1))));
      } finally {
        proxy.stop();
      }
    },
  );

  test("reports an engine that cannot be reached", async () => {
    const log = openLog(urlThrough(1, await portOfLeader()), "main");
    await expect(log.prepare()).rejects.toThrow("The commit log cannot be reached");
    await expect(log.append(entry(1, 1))).rejects.toBeInstanceOf(EngineUnavailable);
  });

  if (engine === "etcd") {
    test("puts what does not exist by gRPC, more than the server takes without confirmation", async () => {
      const client = new OutboundClient(["all"]);
      const puts = new EtcdPut((url) => client.openHttp2(url, LONG_MS));
      const endpoint = {
        url: running.url.replace("etcd:", "http:").replace(/,.*/, ""),
        token: null,
      };
      const put = (key: string, bytes: Uint8Array) => puts.put(endpoint, Buffer.from(key), bytes);
      try {
        for (let count = 0; count < 30; count += 1)
          expect(await confirmed(() => put(`put/${count}`, new Uint8Array(20_000)))).toBeTrue();
        expect(await put("put/0", new Uint8Array(1))).toBeFalse();
        expect(await confirmed(() => put("put/large", new Uint8Array(MIB)))).toBeTrue();
        expect(await put("put/small", new Uint8Array())).toBeTrue();
      } finally {
        puts.close();
        client.close();
      }
    });

    test("appends through the gateway where an endpoint speaks nothing else", async () => {
      const [a] = await nodes();
      const target = running.url.replace("etcd:", "http:").replace(/,.*/, "");
      const paths: string[] = [];
      await using gateway = Bun.serve({
        hostname: "127.0.0.1",
        port: 0,
        fetch: async (request) => {
          const { pathname } = new URL(request.url);
          paths.push(pathname);
          return fetch(target + pathname, { method: "POST", body: await request.bytes() });
        },
      });
      const log = patient(openLog(`etcd://127.0.0.1:${gateway.port}`, `cell-${cells}`));
      await appendAll(log, 3, 1);
      expect(plain(await a.read(1, 10))).toEqual(plain([1, 2, 3].map((seq) => entry(seq, 1))));
      expect(new Set(paths)).toEqual(new Set(["/v3/kv/txn"]));
    });

    test("rejects releases without the gateway", async () => {
      const old = Bun.serve({
        hostname: "127.0.0.1",
        port: 0,
        fetch: () => Response.json({ version: "3.3.27" }),
      });
      const log = openLog(`etcd://127.0.0.1:${old.port}`, "main");
      await expect(log.prepare()).rejects.toThrow("etcd 3.3.27 is too old: 3.4.0 or later is required.");
      await old.stop(true);
    });

    test(
      "continues when the node that orders dies, or hangs",
      async () => {
        const [a, b] = await nodes();
        await a.append(entry(1, 1));
        const killed = await running.leader();
        await killed.kill();
        await a.append(entry(2, 1));
        killed.start();
        await killed.ready();
        let paused = null;
        while (paused === null) paused = await running.leader().catch(() => null);
        paused.pause();
        try {
          await a.append(entry(3, 1));
          expect(plain(await b.read(1, 10))).toEqual(plain([1, 2, 3].map((seq) => entry(seq, 1))));
        } finally {
          paused.resume();
        }
      },
      START_MS_MAX,
    );
  }

  if (engine === "postgres") {
    test("keeps the lease from others when the server's clock jumps", async () => {
      const cell = nextCell();
      const [a, b] = [patient(openLog(running.url, cell)), patient(openLog(running.url, cell))];
      await a.prepare();
      const epoch = (await a.tryLead(A, SHORT_MS, 1)) as number;
      const [port = 0] = portsOf(running.url);
      // A promoted server whose clock is a minute ahead sees it so, and one whose clock is behind the other way.
      const jump = (by: string) =>
        onServer(port, `UPDATE nf_lease SET expires = expires - interval '${by}' WHERE cell = '${cell}'`);
      await jump("60 seconds");
      expect(await b.tryLead(B, SHORT_MS, 1)).toBeNull();
      expect(await a.renew(A, epoch, SHORT_MS)).toBeTrue();
      await jump("-1 hour");
      let taken: number | null = null;
      const begun = performance.now();
      while (taken === null) {
        await Bun.sleep(POLL_MS);
        taken = await b.tryLead(B, SHORT_MS, 1);
      }
      expect(performance.now() - begun).toBeGreaterThanOrEqual(SHORT_MS);
      expect(await a.renew(A, epoch, SHORT_MS)).toBeFalse();
    });

    test("renews no lease when the server does not replicate synchronously any more", async () => {
      const [a] = await nodes();
      const epoch = (await a.tryLead(A, LONG_MS, 1)) as number;
      const log = openLog(running.url, `cell-${cells}`);
      const [port = 0] = portsOf(running.url);
      const user = "ninefold";
      expect(await confirmed(() => log.renew(A, epoch, LONG_MS))).toBeTrue();
      await onServer(port, `ALTER ROLE ${user} SET synchronous_commit = 'local'`);
      try {
        const other = openLog(running.url, `cell-${cells}`);
        const error = await other.renew(A, epoch, LONG_MS).catch((caught: unknown) => caught);
        expect(error).toBeInstanceOf(EngineUnavailable);
        expect((error as EngineUnavailable).kind).toBe("not_durable");
      } finally {
        await onServer(port, `ALTER ROLE ${user} RESET synchronous_commit`);
      }
    });

    test(
      "does not take a wait for the standbys that somebody cancelled for a confirmation",
      async () => {
        const [a, b] = await nodes();
        await a.append(entry(1, 1));
        const standbys = running.nodes.slice(1);
        for (const standby of standbys) standby.pause();
        const impatient = openLog(running.url, `cell-${cells}`);
        const [port = 0] = portsOf(running.url);
        try {
          const outcome = impatient.append(entry(2, 1)).then(
            () => "confirmed",
            (error: unknown) => error,
          );
          let cancelled = 0;
          while (cancelled === 0) {
            await Bun.sleep(CANCEL_AFTER_MS);
            const found = await onServer(
              port,
              `SELECT count(pg_cancel_backend(pid))::int AS count FROM pg_stat_activity
               WHERE wait_event = 'SyncRep' AND application_name = 'ninefold'`,
            );
            cancelled = Number(found["count"]);
          }
          expect(await outcome).toBeInstanceOf(EngineUnavailable);
        } finally {
          for (const standby of standbys) standby.resume();
        }
        await a.append(entry(2, 1));
        expect(plain(await b.read(1, 10))).toEqual(plain([entry(1, 1), entry(2, 1)]));
      },
      START_MS_MAX,
    );

    test("finds the primary among several addresses", async () => {
      const hosts = /@([^/]*)/.exec(running.url)?.[1] ?? "";
      const reversed = running.url.replace(hosts, hosts.split(",").reverse().join(","));
      const log = patient(openLog(reversed, nextCell()));
      await log.prepare();
      await log.append(entry(1, 1));
      expect(await log.range()).toEqual({ first: 1, last: 1 });
    });

    test(
      "rejects a server that does not replicate, unless it is trusted",
      async () => {
        const { url } = await startPostgres(cleanup, 0);
        const error = await openLog(url, "main")
          .prepare()
          .catch((caught: unknown) => caught);
        expect(error).toBeInstanceOf(StartupError);
        expect((error as Error).message).toContain("--commit-log-trusted");
        const trusted = openLog(url, "main", true);
        await trusted.prepare();
        await confirmed(() => trusted.append(entry(1, 1)));
      },
      START_MS_MAX,
    );

    test(
      "confirms nothing without a standby, and does when they are back",
      async () => {
        const [a, b] = await nodes();
        await a.append(entry(1, 1));
        const standbys = running.nodes.slice(1);
        await Promise.all(standbys.map((standby) => standby.kill()));
        const impatient = openLog(running.url, `cell-${cells}`);
        expect(await impatient.append(entry(2, 1)).catch((error: unknown) => error)).toBeInstanceOf(
          EngineUnavailable,
        );
        expect(await impatient.append(entry(2, 1)).catch((error: unknown) => error)).toBeInstanceOf(
          EngineUnavailable,
        );
        expect(await b.range()).toEqual({ first: 1, last: 1 });
        for (const standby of standbys) standby.start();
        await a.append(entry(2, 1));
        await expect(b.append(entry(2, 2))).rejects.toBeInstanceOf(PlaceTaken);
        expect(plain(await b.read(1, 10))).toEqual(plain([entry(1, 1), entry(2, 1)]));
        await Promise.all(standbys.map((standby) => standby.ready()));
      },
      START_MS_MAX,
    );

    test(
      "continues on the standby that is promoted when the primary is lost",
      async () => {
        const { url, nodes: servers } = await startPostgres(cleanup, 2);
        const cell = nextCell();
        const [a, b] = [patient(openLog(url, cell)), patient(openLog(url, cell))];
        await a.prepare();
        const epoch = (await a.tryLead(A, LONG_MS, 1)) as number;
        let stops = false;
        let appended = 0;
        const appending = (async () => {
          while (!stops) {
            await a.append(entry(appended + 1, epoch));
            appended += 1;
          }
        })();
        while (appended < 20) await Bun.sleep(1);
        await servers[0]?.kill();
        const [promoted, other] = await newestFirst(portsOf(url).slice(1));
        const before = appended;
        await onServer(promoted, "SELECT pg_promote()");
        // Nothing is confirmed before it has a standby of its own.
        const impatient = openLog(url, cell);
        expect(
          await impatient.append(entry(before + 1, epoch)).catch((error: unknown) => error),
        ).toBeInstanceOf(EngineUnavailable);
        expect(appended).toBe(before);
        const primary = `host=127.0.0.1 port=${promoted} user=ninefold`;
        await onServer(other, `ALTER SYSTEM SET primary_conninfo = '${primary}'`);
        await onServer(other, "SELECT pg_reload_conf()");
        while (appended < before + 20) await Bun.sleep(POLL_MS);
        stops = true;
        await appending;
        const all = Array.from({ length: appended }, (_, index) => entry(index + 1, epoch));
        expect(plain(await b.read(1, appended + 10))).toEqual(plain(all));
        await expect(b.append(entry(before, epoch + 1))).rejects.toBeInstanceOf(PlaceTaken);
        expect(await a.renew(A, epoch, LONG_MS)).toBeTrue();
        expect(await b.tryLead(B, LONG_MS, 1)).toBeNull();
        await a.release(A, epoch);
        expect(await b.tryLead(B, LONG_MS, 1)).toBeGreaterThan(epoch);
      },
      START_MS_MAX,
    );
  }
});

function portsOf(url: string): number[] {
  return [...url.matchAll(/:(\d+)/g)].map(([, port]) => Number(port));
}

/** Runs a statement on one server of PostgreSQL. */
async function onServer(port: number, statement: string): Promise<Record<string, unknown>> {
  await using sql = new SQL(`postgres://ninefold@127.0.0.1:${port}/postgres`, { max: 1 });
  const [row] = (await sql.unsafe(statement)) as Record<string, unknown>[];
  return row ?? {};
}

/** Two standbys whose primary is lost, the one with all confirmed changes first. */
async function newestFirst(ports: readonly number[]): Promise<[number, number]> {
  const received = await Promise.all(
    ports.map(async (port) => {
      // What the primary has sent may still arrive.
      while ((await onServer(port, "SELECT count(*)::int AS count FROM pg_stat_wal_receiver"))["count"] !== 0)
        await Bun.sleep(POLL_MS);
      const { bytes } = await onServer(port, "SELECT (pg_last_wal_receive_lsn() - '0/0')::text AS bytes");
      return { port, bytes: BigInt(String(bytes)) };
    }),
  );
  const [first, second] = received.sort((left, right) => (left.bytes < right.bytes ? 1 : -1));
  return [first?.port ?? 0, second?.port ?? 0];
}
