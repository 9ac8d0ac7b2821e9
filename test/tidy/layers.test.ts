import { describe, expect, test } from "bun:test";
import { violationsIn } from "./tree.ts";

const INDEX = { "src/areas/meter/index.ts": "const createMeter = 1;\nexport { createMeter };\n" };
const ERRORS = { "src/kernel/errors.ts": "export class ApiError extends Error {}\n" };

describe("layers", () => {
  test.each([
    ["src/kernel/http/shell.ts", 'import { createMeter } from "../../areas/meter/index.ts";\ncreateMeter;\n'],
    ["src/kernel/x.ts", 'import type { createMeter } from "../areas/meter/index.ts";\n'],
    ["src/kernel/x.ts", 'type M = import("../areas/meter/index.ts").M;\n'],
    ["src/kernel/x.ts", 'await import("../areas/meter/index.ts");\n'],
    ["src/kernel/x.ts", 'export { createMeter } from "../areas/meter/index";\n'],
    ["src/kernel/x.ts", 'export * from "../areas/meter";\n'],
  ])("the kernel imports no area: %s %s", (path, text) => {
    expect(violationsIn({ ...INDEX, [path]: text })).toContain(`kernel-knows-no-area ${path}:1`);
  });

  test("the kernel and areas do not look up to what is built on them", () => {
    const found = violationsIn({
      "src/app.ts": "export const app = 1;\n",
      "src/kernel/x.ts": 'import { app } from "../app.ts";\n',
      "src/areas/keys/service.ts": '\nimport { app } from "../../app.ts";\n',
    });
    expect(found).toEqual([
      "area-knows-no-area src/areas/keys/service.ts:2",
      "kernel-knows-no-area src/kernel/x.ts:1",
    ]);
  });

  test("what an image is built from imports nothing of the tests, the benchmarks and the generator", () => {
    const found = violationsIn({
      "package.json": "{}",
      "test/a.ts": "export const a = 1;\n",
      "bench/b.ts": 'import { a } from "../test/a.ts";\nexport const b = a;\n',
      "codegen/c.ts": "export const c = 1;\n",
      "scripts/x.ts": 'import { a } from "../test/a.ts";\nimport { b } from "../bench/b.ts";\n',
      "scripts/y.ts": 'import manifest from "../package.json" with { type: "json" };\n',
      "src/x.ts": 'import { c } from "../codegen/c.ts";\n',
    });
    expect(found).toEqual([
      "built-alone scripts/x.ts:1",
      "built-alone scripts/x.ts:2",
      "built-alone src/x.ts:1",
    ]);
  });

  test("an area imports no other area, types included", () => {
    const found = violationsIn({
      "src/areas/meter/service.ts": "export interface Meter {}\n",
      "src/areas/keys/service.ts": 'import type { Meter } from "../meter/service.ts";\n',
    });
    expect(found).toEqual(["area-knows-no-area src/areas/keys/service.ts:1"]);
  });

  test("only app.ts imports an area's index", () => {
    const use = 'import { createMeter } from "./areas/meter/index.ts";\n';
    expect(violationsIn({ ...INDEX, "src/app.ts": use })).toEqual([]);
    expect(violationsIn({ ...INDEX, "src/main.ts": `export const a = 1;\n${use}` })).toEqual([
      "only-app-builds-areas src/main.ts:2",
    ]);
  });

  test.each([
    ['import { ApiError } from "../../kernel/errors.ts";', true],
    ['import { isoTime } from "../../kernel/time/date-time.ts";', true],
    ['import type { Port } from "./ports.ts";', true],
    ['import { bucket } from "./schema.ts";', true],
    ['import { find } from "./store.ts";', false],
    ['import type { Clock } from "../../kernel/time/clock.ts";', false],
    ['import { createHash } from "node:crypto";', false],
  ])("domain.ts stays pure: %s", (text, clean) => {
    const found = violationsIn({
      ...ERRORS,
      "src/kernel/time/clock.ts": "",
      "src/kernel/time/date-time.ts": "export function isoTime() {}\n",
      "src/areas/flags/ports.ts": "",
      "src/areas/flags/schema.ts": "",
      "src/areas/flags/store.ts": "",
      "src/areas/flags/domain.ts": `${text}\n`,
    });
    expect(found).toEqual(clean ? [] : ["domain-is-pure src/areas/flags/domain.ts:1"]);
  });
});

test("the client imports nothing but itself, packages and types included", () => {
  const found = violationsIn({
    ...ERRORS,
    "src/client/errors.ts": "export class NinefoldError extends Error {}\n",
    "src/client/transport.ts": [
      'import { NinefoldError } from "./errors.ts";',
      'import type { ApiError } from "../kernel/errors.ts";',
      'import { randomUUID } from "node:crypto";',
      'export type T = import("@sinclair/typebox").TSchema;',
      "export const used = NinefoldError;\n",
    ].join("\n"),
  });
  expect(found).toEqual([2, 3, 4].map((line) => `client-stands-alone src/client/transport.ts:${line}`));
});

describe("packages", () => {
  test.each([
    ["elysia", "elysia-zone", "src/areas/keys/service.ts", "src/kernel/http/http.ts"],
    ["elysia/adapter/bun", "elysia-zone", "src/cli/serve.ts", "src/kernel/http/shell.ts"],
    ["@elysiajs/cors", "elysia-zone", "src/config.ts", "src/kernel/http/api.ts"],
    ["bun:sqlite", "sqlite-zone", "src/areas/keys/store.ts", "src/kernel/storage/database.ts"],
    ["croner", "croner-zone", "src/areas/relay/jobs.ts", "src/kernel/scheduler/calendar.ts"],
    ["node:https", "outbound-zone", "src/areas/relay/jobs.ts", "src/kernel/outbound/client.ts"],
    ["node:http", "outbound-zone", "src/kernel/http/shell.ts", "src/kernel/outbound/connection.ts"],
    ["node:timers/promises", "clock-zone", "src/areas/locks/actor.ts", "src/kernel/time/clock-system.ts"],
  ])("%s is only where it belongs", (name, rule, wrong, right) => {
    const text = `import type { X } from "${name}";\n`;
    expect(violationsIn({ [wrong]: text })).toEqual([`${rule} ${wrong}:1`]);
    expect(violationsIn({ [right]: text })).toEqual([]);
  });
});

test("only routes files declare routes", () => {
  const text = 'import { Elysia } from "elysia";\nnew Elysia();\n';
  const wrong = "src/areas/keys/service.ts";
  expect(violationsIn({ [wrong]: text })).toEqual([`elysia-zone ${wrong}:1`]);
  for (const right of ["src/areas/keys/routes.ts", "src/areas/keys/proxy-routes.ts"])
    expect(violationsIn({ [right]: text })).toEqual([]);
});

describe("folders have no circles", () => {
  const importing = (...paths: string[]): string =>
    paths.map((path, index) => `import type { X${index} } from "${path}";\n`).join("");
  test("types count, and so do files next to folders", () => {
    const found = violationsIn({
      "src/kernel/time/clock.ts": importing("../log.ts"),
      "src/kernel/time/timer.ts": "",
      "src/kernel/log.ts": importing("./time/clock.ts", "./time/timer.ts"),
    });
    expect(found).toEqual(["folder-circle src/kernel/time/clock.ts:1"]);
  });

  test("also by way of a third one; the fewest imports are reported", () => {
    const found = violationsIn({
      "src/kernel/a/x.ts": importing("../b/x.ts", "../b/y.ts"),
      "src/kernel/b/x.ts": importing("../c/x.ts", "../c/y.ts"),
      "src/kernel/b/y.ts": "",
      "src/kernel/c/x.ts": importing("../a/x.ts"),
      "src/kernel/c/y.ts": "",
    });
    expect(found).toEqual(["folder-circle src/kernel/c/x.ts:1"]);
  });

  test("imports that go down alone make none, also into a folder of one's own", () => {
    const found = violationsIn({
      "src/kernel/a/x.ts": importing("../b/x.ts", "./y.ts"),
      "src/kernel/a/y.ts": importing("../b/deep/x.ts"),
      "src/kernel/b/x.ts": importing("./deep/x.ts"),
      "src/kernel/b/deep/x.ts": "",
    });
    expect(found).toEqual([]);
  });
});

test("the receipt verifier imports nothing of the server", () => {
  const found = violationsIn({
    ...ERRORS,
    "src/json-text.ts": 'import type { ApiError } from "./kernel/errors.ts";\nexport const levels = 1;\n',
    "src/verify/chain.ts": [
      'import { levels } from "../json-text.ts";',
      'import { hash } from "node:crypto";',
      'import { ApiError } from "../kernel/errors.ts";',
      "export const used = [levels, hash, ApiError];\n",
    ].join("\n"),
  });
  expect(found).toEqual([
    "verifier-is-portable src/json-text.ts:1",
    "verifier-is-portable src/verify/chain.ts:3",
  ]);
});

describe("the console", () => {
  test.each([
    ['import { render } from "preact";', true],
    ['import { signal } from "@preact/signals";', true],
    ['import "./styles.css";', true],
    ['import { verifyReceipt } from "../../verify/index.ts";', true],
    ['import { go } from "./route.ts";', true],
    ['import { app } from "../../app.ts";', false],
    ['import { readFileSync } from "node:fs";', false],
    ['import { Elysia } from "preactish";', false],
  ])("takes only what runs in browsers: %s", (text, clean) => {
    const path = "src/pages/dashboard/main.tsx";
    const others = {
      "src/app.ts": "",
      "src/verify/index.ts": "",
      "src/pages/dashboard/route.ts": "",
    };
    expect(violationsIn({ ...others, [path]: `${text}\n` })).toEqual(clean ? [] : [`browser-zone ${path}:1`]);
  });

  test("nothing of the server takes from the console, nor what draws it", () => {
    const found = violationsIn({
      "src/pages/dashboard/route.ts": "export const go = 1;\n",
      "src/pages/docs.ts": 'import { go } from "./dashboard/route.ts";\ngo;\n',
      "src/pages/x.ts": 'import { h } from "preact/hooks";\nh;\n',
    });
    expect(found).toEqual(["browser-zone src/pages/docs.ts:1", "browser-zone src/pages/x.ts:1"]);
  });
});
