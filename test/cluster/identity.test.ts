import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { CommitLog } from "../../src/cluster/commit-log.ts";
import { openDataFolder } from "../../src/data-folder.ts";
import { closeKernel } from "../../src/kernel/kernel.ts";
import { createVault } from "../../src/kernel/secrets/vault.ts";
import { dataFilesOf } from "../../src/kernel/storage/folders.ts";
import { OfflineDatabase } from "../../src/kernel/storage/offline.ts";
import {
  ENTRY_KEY_PURPOSE,
  type Entry,
  encodeEntry,
  readHeader,
} from "../../src/kernel/storage/replication/entry.ts";
import { positionIn } from "../../src/kernel/storage/replication/position.ts";
import { type Engine, startEtcd } from "../harness/failover/engines.ts";
import { Cleanup } from "../harness/processes/cleanup.ts";
import { KeptLog } from "../kernel/support.ts";
import { confirmed, filesOf, logOf, MASTER_KEY, Nodes, operatorOf, stateOf } from "./nodes.ts";

const TIMEOUT_MS = 120_000;
const ENTRY_KEY = createVault(Buffer.from(MASTER_KEY, "hex")).derive(ENTRY_KEY_PURPOSE);

const cleanup = new Cleanup();
let engine: Engine;
let nodes: Nodes;
const logs: CommitLog[] = [];
let cells = 0;
beforeAll(async () => {
  engine = await startEtcd(cleanup, 1);
  nodes = new Nodes(engine.url, cleanup);
}, TIMEOUT_MS);
afterEach(async () => {
  await nodes.stopAll();
  for (const log of logs.splice(0)) log.close();
}, TIMEOUT_MS);
afterAll(() => cleanup.run(), TIMEOUT_MS);

function nextCell(): string {
  cells += 1;
  return `cell-${cells}`;
}

function open(cell: string): CommitLog {
  const log = logOf(engine.url, cell);
  logs.push(log);
  return log;
}

/** A cell whose only node has led, made some changes, and ended. */
async function madeCell(changes: number): Promise<{ readonly cell: string; readonly folder: string }> {
  const [cell, folder] = [nextCell(), nodes.folder()];
  const node = nodes.start(cell, folder);
  const operator = operatorOf(await node.server());
  for (let change = 0; change < changes; change += 1)
    await operator.send("POST", "/v1/meter/m/refill", { amount: 1 });
  await node.stop();
  return { cell, folder };
}

function positionOf(folder: string) {
  using db = OfflineDatabase.read(dataFilesOf(folder).database);
  return positionIn(db);
}

/**
 * A leader of the version before identities: its entries have no log id, and neither have its file and its state. `at`: when it
 * made its last change.
 */
async function formerCell(
  cell: string,
  folder: string,
): Promise<{ readonly last: number; readonly epoch: number }> {
  const log = open(cell);
  const epoch = await confirmed(() => log.tryLead({ id: "former", advertise: null }, 1_000, 1));
  expect(epoch).not.toBeNull();
  const term = epoch as number;
  const append = (entry: Entry) =>
    confirmed(() => log.append({ ...entry, parts: [...encodeEntry(entry, ENTRY_KEY)] }));
  const seal = { log: null, epoch: term, seq: 1 };
  await append({ ...seal, at: 0, isSeal: true, filePages: 0, payload: new Uint8Array() });
  const kernel = openDataFolder(folder, {
    masterKey: MASTER_KEY,
    durability: "normal",
    makesEntries: true,
    continuesFrom: seal,
    log: new KeptLog(),
  });
  const entries: Entry[] = [];
  kernel.entries?.onEntry((entry) => entries.push({ ...entry, payload: new Uint8Array(entry.payload) }));
  const change = kernel.db.change<[number]>("INSERT OR REPLACE INTO settings (name, value) VALUES ('n', ?)");
  for (let value = 1; value <= 5; value += 1)
    await kernel.writer.submit((tx) => {
      change(tx, value);
    });
  closeKernel(kernel);
  for (const entry of entries) await append(entry);
  await confirmed(() => log.release({ id: "former", advertise: null }, term));
  const last = entries.at(-1)?.seq ?? 0;
  writeState(folder, { id: crypto.randomUUID(), joined: true, synced: null });
  return { last, epoch: term };
}

function writeState(folder: string, state: object): void {
  writeFileSync(join(folder, "follower.json"), JSON.stringify(state));
}

describe("the id of a log", () => {
  test(
    "stands in the engine, in every entry, in the file and in the state of the folder",
    async () => {
      const { cell, folder } = await madeCell(2);
      const log = open(cell);
      const id = await confirmed(() => log.identity());
      expect(id).toMatch(/^[0-9a-f]{32}$/);
      const entries = await confirmed(() => log.read(1, 100));
      expect(entries.length).toBeGreaterThan(2);
      for (const { parts } of entries) for (const part of parts) expect(readHeader(part).log).toBe(id);
      // Terms that know nothing of each other differ: they are from the time.
      expect(entries[0]?.epoch).toBeGreaterThan(1_700_000_000);
      expect(positionOf(folder)?.log).toBe(id);
      expect(stateOf(folder)).toMatchObject({ log: id, joined: true });
    },
    TIMEOUT_MS,
  );

  test(
    "keeps the folder of one cell out of another one, although its entry has the same place",
    async () => {
      const [x, y] = [await madeCell(12), await madeCell(3)];
      const ids = await Promise.all([x, y].map(({ cell }) => confirmed(() => open(cell).identity())));
      const before = filesOf(y.folder);
      const refusal = await nodes.start(x.cell, y.folder).refusal();
      for (const id of ids) expect(refusal).toContain(id as string);
      expect(refusal).toContain("--cell");
      expect(filesOf(y.folder)).toEqual(before);
      // Also when the folder has lost its state, and when it has followed.
      rmSync(join(y.folder, "follower.json"));
      expect(await nodes.start(x.cell, y.folder).refusal()).toContain(ids[1] as string);
      expect(filesOf(y.folder)).toEqual(before);
      const server = await nodes.start(y.cell, y.folder).server();
      expect(await operatorOf(server).send("GET", "/v1/ping")).toBeDefined();
    },
    TIMEOUT_MS,
  );

  test(
    "is compared with each entry: one of another log is not applied",
    async () => {
      const { cell, folder } = await madeCell(2);
      const log = open(cell);
      const range = await confirmed(() => log.range());
      const seq = (range?.last ?? 0) + 1;
      const position = { log: "f".repeat(32), epoch: 4_000_000_000, seq };
      const entry = { ...position, at: 0, isSeal: true, filePages: 1, payload: new Uint8Array() };
      const before = filesOf(folder);
      await confirmed(() => log.append({ ...position, parts: [...encodeEntry(entry, ENTRY_KEY)] }));
      expect(await nodes.start(cell, folder).refusal()).toContain("f".repeat(32));
      expect(filesOf(folder)).toEqual(before);
    },
    TIMEOUT_MS,
  );

  test(
    "is that of the folder that begins a log: another folder with data is not changed",
    async () => {
      const [first, second] = [await madeCell(1), await madeCell(5)];
      for (const { folder } of [first, second]) rmSync(join(folder, "follower.json"));
      const cell = nextCell();
      const before = filesOf(second.folder);
      const leader = await nodes.start(cell, first.folder).server();
      expect(leader.kernel.entries?.position.seq).toBeGreaterThan(1);
      expect(await nodes.start(cell, second.folder).refusal()).toContain("belongs to the commit log");
      expect(filesOf(second.folder)).toEqual(before);
    },
    TIMEOUT_MS,
  );

  test(
    "survives an end between the first entry of a log and the first change",
    async () => {
      const { folder } = await madeCell(1);
      const cell = nextCell();
      const log = open(cell);
      const node = { id: String(stateOf(folder)?.["id"]), advertise: null };
      const epoch = (await confirmed(() => log.tryLead(node, 1_000, 1_000))) as number;
      const id = await confirmed(() => log.identify("a".repeat(32)));
      const seq = (positionOf(folder)?.seq ?? 0) + 1;
      const entry = { log: id, epoch, seq, at: 0, isSeal: true, filePages: 1, payload: new Uint8Array() };
      await confirmed(() => log.append({ ...entry, parts: [...encodeEntry(entry, ENTRY_KEY)] }));
      writeState(folder, { id: node.id, log: id, joined: false, synced: null, begins: epoch });
      const server = await nodes.start(cell, folder).server();
      expect(server.kernel.entries?.position.seq).toBeGreaterThan(seq);
    },
    TIMEOUT_MS,
  );
});

describe("another node", () => {
  test(
    "with another master key does not start, also with an empty folder",
    async () => {
      const { cell, folder } = await madeCell(1);
      const masterKey = "08".repeat(32);
      for (const place of [nodes.folder(), folder]) {
        const refusal = await nodes.start(cell, place, { masterKey }).refusal();
        expect(refusal).toContain("need the same master key");
      }
    },
    TIMEOUT_MS,
  );

  test(
    "on a copied folder does not start while the first one runs, and the first one continues",
    async () => {
      const { cell, folder } = await madeCell(1);
      const copy = nodes.folder();
      cpSync(folder, copy, { recursive: true });
      rmSync(join(copy, "ninefold.lock"), { force: true });
      const server = await nodes.start(cell, folder).server();
      const { epoch } = server.kernel.entries?.position ?? {};
      expect(await nodes.start(cell, copy).refusal()).toContain("Another process runs as this node");
      expect((await confirmed(() => open(cell).leader()))?.epoch).toBe(epoch as number);
      expect(server.kernel.entries?.position.epoch).toBe(epoch as number);
    },
    TIMEOUT_MS,
  );

  test(
    "with a clock that is wrong by more than five minutes is told so, and the leader logs it",
    async () => {
      const [cell, folder] = [nextCell(), nodes.folder()];
      const leader = nodes.start(cell, folder, { args: ["--advertise", "http://127.0.0.1:1"] });
      await leader.server();
      const late = nodes.start(cell, nodes.folder(), { aheadMs: 6 * 60_000 });
      await leader.logged("the clocks of two nodes differ");
      expect(JSON.stringify(leader.log.lines)).toContain("s ahead of the clock of this node");
      await late.stop();
    },
    TIMEOUT_MS,
  );
});

describe("a cell from before logs had an identity", () => {
  test(
    "gets one when a leader of this version begins, and its followers take it over",
    async () => {
      const [cell, folder, follower] = [nextCell(), nodes.folder(), nodes.folder()];
      const { last, epoch } = await formerCell(cell, folder);
      cpSync(folder, follower, { recursive: true });
      writeState(follower, { id: crypto.randomUUID(), joined: true, synced: { epoch, seq: last } });
      const log = open(cell);
      expect(await confirmed(() => log.identity())).toBeNull();
      const leader = nodes.start(cell, folder);
      const server = await leader.server();
      const id = await confirmed(() => log.identity());
      expect(id).not.toBeNull();
      const second = nodes.start(cell, follower);
      await leader.stop();
      expect((await second.server()).kernel.entries?.position.seq).toBeGreaterThan(
        server.kernel.entries?.position.seq ?? 0,
      );
      await second.stop();
      expect(positionOf(follower)?.log).toBe(id);
      const logsOfEntries = (await confirmed(() => log.read(1, 100))).map(
        ({ parts }) => readHeader(parts[0] ?? new Uint8Array()).log,
      );
      expect(logsOfEntries.slice(0, last)).toEqual(Array.from({ length: last }, () => null));
      expect(new Set(logsOfEntries.slice(last))).toEqual(new Set([id]));
    },
    TIMEOUT_MS,
  );

  test(
    "keeps the folder of another such cell out",
    async () => {
      const [x, y] = [
        { cell: nextCell(), folder: nodes.folder() },
        { cell: nextCell(), folder: nodes.folder() },
      ];
      await formerCell(x.cell, x.folder);
      await formerCell(y.cell, y.folder);
      const before = filesOf(y.folder);
      expect(await nodes.start(x.cell, y.folder).refusal()).toContain("may belong to another cell");
      expect(filesOf(y.folder)).toEqual(before);
    },
    TIMEOUT_MS,
  );
});
