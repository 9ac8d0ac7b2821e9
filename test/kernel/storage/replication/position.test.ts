import { afterEach, beforeEach, expect, test } from "bun:test";
import { closeSync, copyFileSync, openSync, readFileSync } from "node:fs";
import { MIGRATIONS } from "../../../../migrations/index.ts";
import { closeKernel, type Kernel, openKernel } from "../../../../src/kernel/kernel.ts";
import type { Migration } from "../../../../src/kernel/storage/migrate.ts";
import { applyEntry, type Entry } from "../../../../src/kernel/storage/replication/entry.ts";
import { PositionRow } from "../../../../src/kernel/storage/replication/position.ts";
import { ManualClock } from "../../../../src/kernel/time/clock.ts";
import { TEST_START_MS } from "../../../support/server.ts";
import { KeptLog, Scratch } from "../../support.ts";

const FIRST_EPOCH = Math.floor(TEST_START_MS / 1_000);
const NEXT: Migration = {
  name: "9999_next",
  sql: "CREATE TABLE next (id INTEGER PRIMARY KEY); INSERT INTO next VALUES (1), (2);",
};

let scratch: Scratch;
let kernel: Kernel;
let entries: Entry[];
beforeEach(() => {
  scratch = new Scratch();
});
afterEach(() => {
  closeKernel(kernel);
  scratch.remove();
});

function open(makesEntries: boolean, migrations: readonly Migration[] = MIGRATIONS): void {
  kernel = openKernel({
    databasePath: scratch.path("ninefold.db"),
    masterKeyPath: scratch.path("master.key"),
    masterKey: null,
    durability: "normal",
    makesEntries,
    migrations,
    clock: new ManualClock(TEST_START_MS),
    log: new KeptLog(),
  });
  entries = [];
  kernel.entries?.onEntry((entry) => entries.push({ ...entry, payload: new Uint8Array(entry.payload) }));
}

function reopen(makesEntries: boolean, migrations: readonly Migration[] = MIGRATIONS): void {
  closeKernel(kernel);
  open(makesEntries, migrations);
}

function write(): Promise<unknown> {
  const change = kernel.db.change<[string]>(
    "INSERT OR REPLACE INTO settings (name, value) VALUES ('test', ?)",
  );
  return kernel.writer.submit((tx) => {
    change(tx, crypto.randomUUID());
  });
}

const stored = () => new PositionRow(kernel.db).read();

test("without an archive and a commit log nothing is stored and nothing captured", async () => {
  open(false);
  await write();
  expect(kernel.entries).toBeNull();
  expect(stored()).toBeNull();
});

test("each batch stores its position, which the next start continues", async () => {
  open(true);
  expect(kernel.entries?.origin).toBeNull();
  await write();
  await write();
  const second = { log: null, epoch: FIRST_EPOCH, seq: 2, at: TEST_START_MS };
  expect(stored()).toEqual(second);
  expect(entries.map(({ epoch, seq }) => [epoch, seq])).toEqual([
    [FIRST_EPOCH, 1],
    [FIRST_EPOCH, 2],
  ]);
  reopen(true);
  expect(kernel.entries?.origin).toEqual(second);
  expect(kernel.entries?.position).toEqual(second);
  await write();
  expect(entries).toMatchObject([{ epoch: FIRST_EPOCH, seq: 3, isSeal: false }]);
});

test("a start without the option forgets the position: what it changes is in no entry", async () => {
  open(true);
  await write();
  reopen(false);
  expect(stored()).toBeNull();
  reopen(true);
  expect(kernel.entries?.origin).toBeNull();
});

test("migrations are an entry of their own, in one transaction with its position", async () => {
  open(true);
  await write();
  closeKernel(kernel);
  const copy = scratch.path("copy.db");
  copyFileSync(scratch.path("ninefold.db"), copy);
  open(true, [...MIGRATIONS, NEXT]);
  expect(entries).toMatchObject([{ epoch: FIRST_EPOCH, seq: 2 }]);
  expect(stored()).toMatchObject({ epoch: FIRST_EPOCH, seq: 2 });
  await write();
  expect(entries).toMatchObject([{ seq: 2 }, { seq: 3 }]);
  const file = openSync(copy, "r+");
  for (const entry of entries) applyEntry(file, entry);
  closeSync(file);
  reopen(true, [...MIGRATIONS, NEXT]);
  expect(readFileSync(copy).equals(readFileSync(scratch.path("ninefold.db")))).toBe(true);
});

test("a new epoch is higher than the one before, or the given one", async () => {
  open(true);
  await write();
  expect(kernel.entries?.beginEpoch()).toBe(FIRST_EPOCH + 1);
  await write();
  expect(kernel.entries?.beginEpoch(FIRST_EPOCH + 9)).toBe(FIRST_EPOCH + 9);
  await write();
  await write();
  expect(entries.slice(1).map(({ epoch, seq }) => [epoch - FIRST_EPOCH, seq])).toEqual([
    [1, 2],
    [9, 3],
    [9, 4],
  ]);
});
