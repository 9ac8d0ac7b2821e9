import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { ninefold } from "../backup/support.ts";
import { Scratch } from "../kernel/support.ts";
import { until } from "../support/eventually.ts";
import type { TestServer } from "../support/server.ts";
import { isArchived, rowsIn, TestArchive } from "./support.ts";

const TIMEOUT_MS = 120_000;

const archive = new TestArchive();
const scratch = new Scratch();
/** Between the two refills, as RFC 3339. */
let between = "";

beforeAll(async () => {
  await archive.s3.start();
  const server = archive.server();
  await server.start();
  await server.operator.post("/v1/meter/m/refill", { amount: 1 });
  await until(() => isArchived(server));
  await Bun.sleep(5);
  between = new Date().toISOString();
  await Bun.sleep(5);
  await server.operator.post("/v1/meter/m/refill", { amount: 2 });
  await until(() => isArchived(server));
  await server.stop();
}, TIMEOUT_MS);
afterAll(async () => {
  await archive.stop();
  scratch.remove();
});

function run(...args: string[]) {
  return ninefold(args, archive.environment);
}

function amountsIn(folder: string): unknown[] {
  const rows = rowsIn(`${folder}/ninefold.db`, "SELECT amount FROM meter_entries ORDER BY sequence");
  return rows.map(({ amount }) => amount);
}

/** Index of the object that a changed list shows next. */
let at = 0;
const OBJECT = /<Contents>.*?<\/Contents>/gs;
const without = (list: string, at: number) => list.replace(list.match(OBJECT)?.at(at) ?? "", "");

test("restore has what was archived after the list of changes began", async () => {
  const { list } = archive.s3;
  let lists = 0;
  archive.s3.list = async (stored) => {
    const text = await stored();
    if (!text.includes("/e/")) return text;
    lists += 1;
    return lists === 1 ? without(text, -1) : text;
  };
  const folder = scratch.path("later");
  expect(await run("restore", archive.url, "--data", folder)).toMatchObject({ code: 0 });
  archive.s3.list = list;
  expect(amountsIn(folder)).toEqual([1, 2]);
  expect(lists).toBeGreaterThan(1);
});

test(
  "restores the newest state, and that of a time, into a folder that a server then starts on",
  async () => {
    const newest = scratch.path("newest");
    const restored = await run("restore", archive.url, "--data", newest);
    expect(restored).toMatchObject({ code: 0, error: "" });
    expect(restored.out).toContain(`restored  ${archive.url} (of 20`);
    expect(restored.out).toContain("the master key fits");
    expect(amountsIn(newest)).toEqual([1, 2]);
    expect(readdirSync(newest).filter((name) => name.includes("partial"))).toEqual([]);

    const earlier = scratch.path("earlier");
    expect(await run("restore", archive.url, "--at", between, "--data", earlier)).toMatchObject({ code: 0 });
    expect(amountsIn(earlier)).toEqual([1]);

    // Its history continues in an epoch of its own.
    const before = (await archive.names("b/")).length;
    const server: TestServer = archive.server();
    server.folder = earlier;
    await server.start();
    await until(() => isArchived(server));
    expect((await archive.names("b/")).length).toBe(before + 1);
    const entries = server.server.kernel.db.all("SELECT * FROM audit_log WHERE action = 'server.restore'")();
    expect(JSON.stringify(entries)).toContain(archive.url);
    await server.stop();
  },
  TIMEOUT_MS,
);

test(
  "restore ends with an error if the store shows a part of its list only",
  async () => {
    const { list } = archive.s3;
    archive.s3.list = async (stored) =>
      (await stored()).replace("<IsTruncated>false</IsTruncated>", "<IsTruncated>true</IsTruncated>");
    const restored = await run("restore", archive.url, "--data", scratch.path("part"));
    archive.s3.list = list;
    expect(restored.code).toBe(1);
    expect(restored.error).toContain("the storage's list is not whole");
  },
  TIMEOUT_MS,
);

test.each<[string, (list: string) => string, string]>([
  ["lacks the last objects", (list) => without(list, -1), "is not whole: it lacks"],
  [
    "has the first object twice",
    (list) => list.replace(OBJECT, (object) => object + object),
    "repeats itself",
  ],
  [
    "begins again",
    (list) => list.replace("</ListBucketResult>", `${list.match(OBJECT)?.[0]}$&`),
    "repeats itself",
  ],
  [
    "is not in order",
    (list) => list.replace(OBJECT, () => list.match(OBJECT)?.reverse()[at++] ?? ""),
    "not in order",
  ],
])("restore ends with an error if a list of changes %s", async (_, changed, problem) => {
  const { list } = archive.s3;
  archive.s3.list = async (stored) => {
    const text = await stored();
    at = 0;
    return text.includes("/e/") ? changed(text) : text;
  };
  const restored = await run("restore", archive.url, "--data", scratch.path("odd"));
  archive.s3.list = list;
  expect(restored.code).toBe(1);
  expect(restored.error).toContain(problem);
});

test(
  "status and verify say what can be restored",
  async () => {
    const status = await run("archive", "status", archive.url, "--data", scratch.path("none"));
    expect(status).toMatchObject({ code: 0, error: "" });
    expect(status.out).toMatch(/^base +20\S+Z, [\d,]+ bytes$/m);
    const verified = await run("archive", "verify", archive.url, "--data", scratch.path("none"));
    expect(verified).toMatchObject({ code: 0, error: "" });
    expect(verified.out).toContain("ok       integrity:");
    expect(verified.out).toContain("the last change is of 20");
  },
  TIMEOUT_MS,
);

test(
  "what cannot be done says why, and changes nothing",
  async () => {
    const folder = scratch.path("untouched");
    const cases: [string[], string][] = [
      [["restore", `s3://${archive.s3.bucket}/empty`], "has no complete base yet"],
      [["restore", archive.url, "--at", "2020-01-01T00:00:00Z"], "has no complete base from 2020-01-01"],
      [["restore", archive.url, "--at", "yesterday"], "--at must be a time such as"],
      [["restore", "backup.db", "--at", between], "--at needs an archive"],
      [["restore", archive.url, "--without-master-key"], "encrypted with the master key"],
      [["restore", "s3://Bucket!/x"], "is not a URL such as s3://bucket/prefix"],
      [["restore", "s3://nowhere/x"], "The archive cannot be read: the storage returned 404 NoSuchBucket"],
      [["archive", "status"], "No archive is configured"],
    ];
    for (const [args, message] of cases) {
      const outcome = await run(...args, "--data", folder);
      expect(outcome.code).toBeGreaterThan(0);
      expect(outcome.error).toContain(message);
    }
    expect(existsSync(folder)).toBe(false);
    const otherKey = { ...archive.environment, NINEFOLD_MASTER_KEY: "11".repeat(32) };
    const wrong = await ninefold(["restore", archive.url, "--data", folder], otherKey);
    expect(wrong.error).toContain("the master key is a different one");
    expect(existsSync(`${folder}/ninefold.db`)).toBe(false);
  },
  TIMEOUT_MS,
);
