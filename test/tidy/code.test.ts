import { describe, expect, test } from "bun:test";
import { violationsIn } from "./tree.ts";

const SERVICE = "src/areas/keys/service.ts";

describe("globals", () => {
  test.each([
    ["fetch(url);", "outbound-zone", "src/kernel/outbound/client.ts"],
    ["const send = globalThis.fetch;", "outbound-zone", "src/client/http.ts"],
    ["process.env.PORT;", "config-zone", "src/config.ts"],
    ["const { env } = process;", "config-zone", "src/config/environment.ts"],
    ['Bun["env"];', "config-zone", "src/config.ts"],
    ["Date.now();", "clock-zone", "src/kernel/time/clock.ts"],
    ["setTimeout(retry, 500);", "clock-zone", "src/client/backoff.ts"],
    ["run(Date.now);", "clock-zone", "src/kernel/time/clock-manual.ts"],
    ["new Date();", "clock-zone", "src/kernel/outbound/measure.ts"],
    ["performance.now();", "clock-zone", "src/kernel/time/clock.ts"],
    ["const { now } = performance;", "clock-zone", "src/kernel/time/clock.ts"],
    ["setTimeout(run, 10);", "clock-zone", "src/kernel/time/clock.ts"],
    ["const timers = { setInterval };", "clock-zone", "src/kernel/time/clock.ts"],
    ["Math.random();", "clock-zone", "src/kernel/ids.ts"],
    ["setImmediate(run);", "clock-zone", "src/kernel/storage/writer.ts"],
  ])("%s is only where it belongs", (text, rule, right) => {
    expect(violationsIn({ [SERVICE]: `\n${text}\n` })).toEqual([`${rule} ${SERVICE}:2`]);
    expect(violationsIn({ [right]: `\n${text}\n` })).toEqual([]);
  });

  test.each([
    "new Date(value);",
    "clock.setTimeout(run, 10);",
    "clock.now();",
    "const timers = { setTimeout: clock.after };",
    "interface Clock { setTimeout(run: () => void, ms: number): void; fetch: number }",
    "type Send = typeof fetch;",
    "class Client { fetch(): void {} }",
    'import { fetch } from "./client.ts";\nfetch();',
    "function send({ fetch }: Deps): void { fetch(); }",
    "const text = 'Date.now() and process.env';",
    "clearTimeout(handle);",
  ])("is clean: %s", (text) => {
    expect(violationsIn({ [SERVICE]: `${text}\n` })).toEqual([]);
  });

  test("tests and scripts may use them", () => {
    const text = "fetch(process.env.URL, Date.now());\n";
    expect(violationsIn({ "test/areas/keys.test.ts": text, "bench/main.ts": text })).toEqual([]);
  });
});

describe("SQL text", () => {
  test.each([
    '"SELECT id FROM keys WHERE hash = ?"',
    '"select 1"',
    '"select changes()"',
    "`select k.id, k.name\n from keys k\n where k.id = ?`",
    "`select * from ${table}`",
    '"INSERT OR IGNORE INTO keys (id) VALUES (?)"',
    '"update keys set name = ? where id = ?"',
    '"delete from keys where id = ?"',
    '"create table if not exists keys (id text primary key)"',
    '"with recursive tree(id) as (select 1) select id from tree"',
    '"PRAGMA journal_mode = WAL"',
    '"begin immediate"',
    '"COMMIT"',
    '"VACUUM INTO ?"',
  ])("%s is only in stores, the kernel and migrations", (text) => {
    const code = `run(${text});\n`;
    expect(violationsIn({ [SERVICE]: code })).toEqual([`sql-zone ${SERVICE}:1`]);
    for (const right of ["src/areas/keys/store.ts", "src/areas/keys/store-usage.ts", "src/kernel/jobs.ts"]) {
      expect(violationsIn({ [right]: code })).toEqual([]);
    }
    expect(violationsIn({ "migrations/index.ts": code })).toEqual([]);
  });

  test.each([
    '"Select a plan from the list"',
    '"delete from the default project is refused"',
    '"update the set of tags"',
    '"commit"',
    '"release"',
    '"with care"',
    "`create a key for ${name} (see the docs)`",
    '"Insert into which bucket?"',
  ])("prose is no SQL: %s", (text) => {
    expect(violationsIn({ [SERVICE]: `run(${text});\n` })).toEqual([]);
  });
});
