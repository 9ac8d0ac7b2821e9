import { Database as SqliteDatabase } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { MIGRATIONS } from "../../../migrations/index.ts";
import { StartupError } from "../../../src/kernel/errors.ts";
import { Database } from "../../../src/kernel/storage/database.ts";
import { inspectDatabase, UnreadableDatabase, unreadable } from "../../../src/kernel/storage/examine.ts";
import { APPLICATION_ID, type Migration, migrate } from "../../../src/kernel/storage/migrate.ts";
import { Scratch, thrown } from "../support.ts";

const ONE: Migration = {
  name: "0001_one",
  sql: "CREATE TABLE one (id INTEGER); CREATE TABLE more (id INTEGER);",
};
const TWO: Migration = { name: "0002_two", sql: "CREATE TABLE two (id INTEGER);" };
const BROKEN: Migration = {
  name: "0002_broken",
  sql: "CREATE TABLE half (id INTEGER); CREATE TABLE one (id);",
};

let scratch: Scratch;
let path: string;
beforeEach(() => {
  scratch = new Scratch();
  path = scratch.path("test.db");
});
afterEach(() => scratch.remove());

function withDatabase<T>(use: (db: Database) => T): T {
  const db = new Database(path, "normal");
  try {
    return use(db);
  } finally {
    db.close();
  }
}

function tables(): string[] {
  return withDatabase((db) =>
    db
      .all<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")()
      .map(({ name }) => name),
  );
}

/** A file of another program. */
function foreignFile(...statements: string[]): void {
  const db = new SqliteDatabase(path, { create: true });
  for (const statement of statements) db.run(statement);
  db.close();
}

describe("migrate", () => {
  test("runs every step on a new file and marks it", () => {
    expect(withDatabase((db) => migrate(db, [ONE, TWO]))).toEqual(["0001_one", "0002_two"]);
    expect(tables()).toEqual(["more", "one", "two"]);
    withDatabase((db) => {
      expect(db.one("PRAGMA user_version")()).toEqual({ user_version: 2 });
      expect(db.one("PRAGMA application_id")()).toEqual({ application_id: APPLICATION_ID });
    });
  });

  test("changes no byte the second time", () => {
    withDatabase((db) => migrate(db, [ONE, TWO]));
    const before = readFileSync(path);
    inspectDatabase(path, [ONE, TWO]);
    expect(withDatabase((db) => migrate(db, [ONE, TWO]))).toEqual([]);
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test("runs only missing steps", () => {
    withDatabase((db) => migrate(db, [ONE]));
    withDatabase((db) => db.execute("INSERT INTO one VALUES (7)"));
    inspectDatabase(path, [ONE, TWO]);
    expect(withDatabase((db) => migrate(db, [ONE, TWO]))).toEqual(["0002_two"]);
    expect(withDatabase((db) => db.all("SELECT id FROM one")())).toEqual([{ id: 7 }]);
  });

  test("rolls back a failing step completely, keeps earlier ones, and can be repeated", () => {
    const error = withDatabase((db) => thrown(() => migrate(db, [ONE, BROKEN])));
    expect(error).toBeInstanceOf(StartupError);
    expect(String(error)).toContain("Migration 0002_broken failed");
    expect(tables()).toEqual(["more", "one"]);
    expect(withDatabase((db) => migrate(db, [ONE, TWO]))).toEqual(["0002_two"]);
  });

  test.each([
    ["full", process.platform === "darwin" ? 2 : 1],
    ["normal", 1],
  ] as const)("keeps the durability of commits: %s", (durability, synchronous) => {
    const db = new Database(path, durability);
    try {
      const state = () => db.one("PRAGMA synchronous")();
      migrate(db, [ONE]);
      expect(state()).toEqual({ synchronous });
      expect(thrown(() => migrate(db, [ONE, BROKEN]))).toBeInstanceOf(StartupError);
      expect(state()).toEqual({ synchronous });
    } finally {
      db.close();
    }
  });

  test("the project's own steps are numbered in their order", () => {
    const names = MIGRATIONS.map(({ name }) => name);
    for (const name of names) expect(name).toMatch(/^\d{4}_[a-z_]+$/);
    const numbers = names.map((name) => Number(name.slice(0, 4)));
    expect(numbers).toEqual([...new Set(numbers)].toSorted((a, b) => a - b));
    expect(withDatabase((db) => migrate(db, MIGRATIONS))).toHaveLength(MIGRATIONS.length);
  });
});

describe("an inspected file", () => {
  test("can be missing or empty", () => {
    inspectDatabase(path, [ONE]);
    expect(readdirSync(scratch.folder)).toEqual([]);
    writeFileSync(path, "");
    inspectDatabase(path, [ONE]);
    expect(readFileSync(path)).toHaveLength(0);
  });

  const refused: [string, () => void, string][] = [
    [
      "of a newer version",
      () => withDatabase((db) => migrate(db, [ONE, TWO])),
      "was written by a newer version of Ninefold (schema 2, this one knows 1)",
    ],
    [
      "of another program that marks its files",
      () => foreignFile("PRAGMA application_id = 252006675", "CREATE TABLE theirs (id)"),
      "is not a Ninefold database",
    ],
    [
      "of another program that numbers its schema",
      () => foreignFile("PRAGMA user_version = 1", "CREATE TABLE theirs (id)"),
      "is not a Ninefold database",
    ],
    [
      "of another program that marks nothing",
      () => foreignFile("CREATE TABLE theirs (id)", "INSERT INTO theirs VALUES (1)"),
      "is not a Ninefold database",
    ],
    [
      "of another program, in WAL mode",
      () => foreignFile("PRAGMA journal_mode = WAL", "CREATE TABLE theirs (id)"),
      "is not a Ninefold database",
    ],
    [
      "that is no database",
      () => writeFileSync(path, "This is a text of more than a hundred characters. ".repeat(20)),
      "cannot be read as a database",
    ],
    ["that is cut off", () => writeFileSync(path, "SQLite format 3\0"), "cannot be read as a database"],
  ];

  test.each(refused)("%s is rejected and unchanged", (_, make, message) => {
    make();
    const before = readFileSync(path);
    const error = thrown(() => inspectDatabase(path, [ONE]));
    expect(error).toBeInstanceOf(StartupError);
    expect(String(error)).toContain(message);
    expect(String(error)).toContain(path);
    expect(readFileSync(path).equals(before)).toBe(true);
    expect(readdirSync(scratch.folder)).toEqual(["test.db"]);
  });

  test("that the disk cannot read is not called damaged: no backup must take its place", () => {
    const failed = (code: string) => unreadable(path, Object.assign(new Error("disk I/O error"), { code }));
    expect(failed("SQLITE_IOERR_READ").message).toBe(
      `${path} cannot be read (Error: disk I/O error). Check the disk and the system's log: the file itself may be whole.`,
    );
    expect(failed("SQLITE_IOERR_READ")).not.toBeInstanceOf(UnreadableDatabase);
    expect(failed("SQLITE_IOERR_SHORT_READ")).toBeInstanceOf(UnreadableDatabase);
    expect(failed("SQLITE_NOTADB")).toBeInstanceOf(UnreadableDatabase);
  });

  test("of a newer version after a crash is rejected by its WAL", () => {
    const newer = new Database(scratch.path("newer.db"), "normal");
    migrate(newer, [ONE]);
    newer.execute("PRAGMA wal_checkpoint(TRUNCATE)");
    migrate(newer, [ONE, TWO]);
    for (const ending of ["", "-wal"]) copyFileSync(scratch.path(`newer.db${ending}`), `${path}${ending}`);
    newer.close();
    const before = ["", "-wal"].map((ending) => readFileSync(`${path}${ending}`));
    expect(String(thrown(() => inspectDatabase(path, [ONE])))).toContain("(schema 2, this one knows 1)");
    expect(["", "-wal"].map((ending) => readFileSync(`${path}${ending}`))).toEqual(before);
    inspectDatabase(path, [ONE, TWO]);
  });

  test("can have a path with characters that are special in URIs", () => {
    path = scratch.path("a #1 100%?.db");
    withDatabase((db) => migrate(db, [ONE]));
    inspectDatabase(path, [ONE]);
    expect(String(thrown(() => inspectDatabase(path, [])))).toContain("(schema 1, this one knows 0)");
  });
});
