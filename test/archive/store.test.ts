import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { BASES } from "../../src/archive/names.ts";
import { ArchiveStore, StoreUnavailable } from "../../src/archive/store.ts";
import { Uploader } from "../../src/archive/uploader.ts";
import { PAGE_BYTES } from "../../src/kernel/storage/replication/entry.ts";
import { rejection } from "../kernel/support.ts";
import { TestArchive } from "./support.ts";

let archive: TestArchive;
beforeEach(async () => {
  archive = new TestArchive();
  await archive.s3.start();
  for (const name of ["a", "b", "c"]) await archive.s3.place(`archive/${name}`, name);
});
afterEach(() => archive.stop());

const lists = (): number => archive.s3.requests.filter(({ search }) => search.includes("list-type=2")).length;

/** A page of a list with these objects. */
const page = (names: readonly string[], rest: string): string => {
  const items = names.map((name) => `<Contents><Key>archive/${name}</Key><Size>1</Size></Contents>`);
  return `<?xml version="1.0"?><ListBucketResult><Name>b</Name>${rest}${items.join("")}</ListBucketResult>`;
};
const MORE = "<IsTruncated>true</IsTruncated>";
const token = (text: string) => `<NextContinuationToken>${text}</NextContinuationToken>`;

test("a base whose file becomes shorter while it is read is not archived", async () => {
  const path = join(mkdtempSync(join(tmpdir(), "ninefold-base-")), "base.db");
  try {
    // Two parts of a base: a position, and random bytes.
    const db = new Database(path);
    db.run(`PRAGMA page_size = ${PAGE_BYTES}`);
    db.run("CREATE TABLE replica_position (one INTEGER PRIMARY KEY, epoch, seq, at)");
    db.run("INSERT INTO replica_position VALUES (1, 1, 1, 0)");
    db.run("CREATE TABLE filler (bytes BLOB)");
    db.run("INSERT INTO filler VALUES (randomblob(8 * 1024 * 1024))");
    db.close();
    archive.s3.before = ({ search }) => {
      if (search.includes("partNumber=1")) truncateSync(path, 2 * 1024 * 1024);
      return null;
    };
    const key = new Uint8Array(32);
    const uploader = new Uploader(archive.client, { place: archive.place, key, uploadPartBytes: 1 });
    const error = await rejection(uploader.uploadBase(path, { epoch: 1, seq: 1 }, 1));
    expect(String(error)).toContain("is shorter than when its copy began");
    expect(await archive.names(BASES)).toEqual([]);
  } finally {
    rmSync(dirname(path), { recursive: true, force: true });
  }
});

describe("a list", () => {
  test.each([
    ["an empty token", "<NextContinuationToken></NextContinuationToken>"],
    ["an empty element", "<NextContinuationToken/>"],
    ["a token", token("left over")],
  ])("ends with IsTruncated false, also with %s", async (_, rest) => {
    archive.s3.list = () => page(["a", "b"], `<IsTruncated>false</IsTruncated>${rest}`);
    expect(await archive.names("")).toEqual(["a", "b"]);
    expect(lists()).toBe(1);
  });

  test("without IsTruncated continues as long as there is a token, whose entities are read", async () => {
    const pages = [page(["a"], token("1&amp;2&#43;&#x2b;")), page(["b"], "")];
    archive.s3.list = () => pages.shift() ?? "";
    expect(await archive.names("")).toEqual(["a", "b"]);
    expect(archive.s3.requests.at(-1)?.search).toContain(`continuation-token=${encodeURIComponent("1&2++")}`);
  });

  test.each([
    ["more objects without a token", [page(["a"], MORE)], "not whole"],
    ["more objects with an empty token", [page(["a"], MORE + token(""))], "not whole"],
    ["no list", ["<html>hello</html>"], "no list"],
    ["half a list", [page(["a"], MORE).slice(0, -20)], "no list"],
    ["an object without a size", [page(["a"], "").replace("<Size>1</Size>", "")], "malformed"],
    ["the same token again", [page(["a"], MORE + token("x")), page(["b"], MORE + token("x"))], "repeats"],
  ])("with %s is an error", async (_, pages, problem) => {
    let at = 0;
    archive.s3.list = () => pages[at++] ?? pages.at(-1) ?? "";
    const error = await rejection(archive.names(""));
    expect(error).toBeInstanceOf(StoreUnavailable);
    expect(String(error)).toContain(problem);
  });

  test("with the same objects under other tokens ends with an error", async () => {
    let at = 0;
    archive.s3.list = () => page(["a"], MORE + token(`token-${at++}`));
    expect(String(await rejection(archive.names("")))).toContain("repeats");
    expect(lists()).toBeLessThan(200);
  });
});

test("every upload has a checksum, for stores that demand one", async () => {
  archive.s3.demandsChecksum = true;
  expect(await archive.store.put("new", Buffer.from("new"))).toEqual({ kind: "stored" });
  await archive.store.putLarge("large", pieces(3));
  expect(await archive.s3.object("archive/large")).toBe("xxx");
});

/** One byte at a time. */
async function* pieces(count: number): AsyncGenerator<Uint8Array> {
  for (let n = 0; n < count; n += 1) yield Buffer.from("x");
}

test("a step of a large upload that fails once is repeated, not the whole upload", async () => {
  const store = new ArchiveStore(archive.client, archive.place, 1);
  const failed = new Set<string>();
  let read = 0;
  archive.s3.before = ({ method, search }) => {
    const step = `${method} ${search.replace(/uploadId=[^&]*/, "")}`;
    if (!search.includes("uploadId=") || failed.has(step)) return null;
    failed.add(step);
    return 503;
  };
  async function* counted(): AsyncGenerator<Uint8Array> {
    for await (const piece of pieces(3)) {
      read += 1;
      yield piece;
    }
  }
  await store.putLarge("large", counted());
  expect([read, await archive.s3.object("archive/large")]).toEqual([3, "xxx"]);
  // Three parts and the end of the upload.
  expect(failed.size).toBe(4);
});
