import { afterAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeSeal } from "../../src/backup/seal.ts";
import { BASE_PATH, BaseServer, fetchBase } from "../../src/cluster/base.ts";

const KEY = new Uint8Array(32).fill(7);
const NOW = 1_800_000_000_000;
const ACCESS = { key: KEY, cell: "main", extraCaPath: null, now: () => NOW };
const MINUTE_MS = 60_000;

const folder = mkdtempSync(join(tmpdir(), "ninefold-base-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** A sealed copy, as the leader sends it. */
function sealedCopy(): { readonly database: Buffer; readonly copy: Buffer } {
  const database = Buffer.alloc(100_000, "page ");
  const path = join(folder, "sealed");
  const file = openSync(path, "w");
  writeSync(file, database);
  const sha256 = createHash("sha256").update(database).digest("hex");
  writeSeal(file, { createdAt: NOW, bytes: database.length, sha256 });
  closeSync(file);
  return { database, copy: readFileSync(path) };
}

/** Fetches what a leader sends. Resolves to the file. */
async function fetched(body: Uint8Array<ArrayBuffer>): Promise<Buffer> {
  await using leader = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: ({ url }) => new Response(new URL(url).pathname === BASE_PATH ? body : null),
  });
  const target = join(folder, "fetched");
  await fetchBase(ACCESS, { id: "a", advertise: leader.url.href, epoch: 1 }, target);
  return readFileSync(target);
}

test("a fetched copy is the database without its seal", async () => {
  const { database, copy } = sealedCopy();
  expect(database.equals(await fetched(new Uint8Array(copy)))).toBe(true);
});

test.each([
  ["damaged", (copy: Buffer) => copy.fill("x", 50_000, 50_001), "damaged on its way"],
  ["cut off", (copy: Buffer) => copy.subarray(0, 60_000), "is incomplete"],
])("a copy that is %s is rejected", async (_, spoil, message) => {
  const { copy } = sealedCopy();
  expect(fetched(new Uint8Array(spoil(copy)))).rejects.toThrow(message);
});

test("only a node with the master key gets a copy, and only for a few minutes with one token", async () => {
  let header = "";
  await using recorder = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: ({ headers }) => {
      header = headers.get("authorization") ?? "";
      return new Response("no", { status: 503 });
    },
  });
  const leader = { id: "a", advertise: recorder.url.href, epoch: 1 };
  expect(fetchBase(ACCESS, leader, join(folder, "none"))).rejects.toThrow("responded with 503: no");
  while (header === "") await Bun.sleep(1);
  const statusFor = async (authorization: string, change: Partial<typeof ACCESS> = {}) => {
    const server = new BaseServer({ ...ACCESS, ...change, folder: join(folder, "missing") });
    const request = new Request("http://leader/", { headers: { authorization } });
    return (await server.respond(request)).status;
  };
  // There is no database to copy.
  expect(await statusFor(header)).toBe(503);
  expect(await statusFor(header, { now: () => NOW + 5 * MINUTE_MS })).toBe(503);
  expect(await statusFor(header, { now: () => NOW + 5 * MINUTE_MS + 1 })).toBe(401);
  expect(await statusFor(header, { cell: "other" })).toBe(401);
  expect(await statusFor(header, { key: new Uint8Array(32).fill(8) })).toBe(401);
  expect(await statusFor(header.slice(0, -1))).toBe(401);
  expect(await statusFor("")).toBe(401);
  expect(existsSync(join(folder, "missing"))).toBe(false);
});
