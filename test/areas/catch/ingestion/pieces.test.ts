import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { MIGRATIONS } from "../../../../migrations/index.ts";
import { pieceStore } from "../../../../src/areas/catch/large/store.ts";
import { migrate } from "../../../../src/kernel/storage/migrate.ts";
import { TestStorage } from "../../../kernel/support.ts";

let storage: TestStorage;
beforeEach(() => {
  storage = new TestStorage();
});
afterEach(() => storage.close());

const PIECE = 256 * 1024;
/** What the system counts of this process's reads. */
const COUNTS = "/proc/self/io";

function bytesRead(): number {
  return Number(/^rchar: (\d+)$/m.exec(readFileSync(COUNTS, "utf8"))?.[1]);
}

function pieceOf(upload: number, number: number): Uint8Array {
  return new Uint8Array(PIECE).fill(upload + number);
}

test.if(existsSync(COUNTS))("a piece is written and found without reading others", async () => {
  migrate(storage.db, MIGRATIONS);
  const pieces = pieceStore(storage.db);
  const write = (upload: number, number: number) =>
    storage.writer.submit((tx) => void pieces.insert(tx, upload, number, pieceOf(upload, number)));
  // The pieces of many uploads arrive in turn.
  for (let number = 0; number < 12; number += 1)
    for (let upload = 1; upload <= 12; upload += 1) await write(upload, number);
  const before = bytesRead();
  for (let upload = 1; upload <= 12; upload += 1) await write(upload, 12);
  const written = bytesRead();
  expect(written - before).toBeLessThan(4 * PIECE);
  for (let upload = 1; upload <= 12; upload += 1) expect(pieces.read(upload, 7)).toEqual(pieceOf(upload, 7));
  expect(bytesRead() - written).toBeLessThan(16 * PIECE);
});

test("pieces of earlier versions are kept", async () => {
  const { db, writer } = storage;
  migrate(
    db,
    MIGRATIONS.filter(({ name }) => name < "0087"),
  );
  const { insert } = pieceStore(db);
  await writer.submit((tx) => {
    for (const upload of [9, 7])
      for (const number of [1, 0]) insert(tx, upload, number, pieceOf(upload, number));
  });
  migrate(db, MIGRATIONS);
  const pieces = pieceStore(db);
  for (const upload of [7, 9])
    for (const number of [0, 1]) expect(pieces.read(upload, number)).toEqual(pieceOf(upload, number));
  expect(pieces.highestUpload()).toBe(9);
  expect(pieces.nextUpload(7)).toBe(9);
});
