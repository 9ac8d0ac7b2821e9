import { beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Validator } from "@seriousme/openapi-schema-validator";
import { type Goldens, renderGoldens, UPDATE_COMMAND } from "./goldens.ts";

let rendered: Goldens;
beforeAll(async () => {
  rendered = await renderGoldens();
});

test.each(["routes.txt", "roles.txt", "openapi.json", "mistakes.txt", "channel-messages.txt"] as const)("%s is up to date", (name) => {
  const path = join(import.meta.dir, name);
  const hint = `test/golden/${name} differs; if the change is meant, run: ${UPDATE_COMMAND}`;
  expect(rendered[name], hint).toBe(readFileSync(path, "utf8"));
});

test("the error of every mistake says what to do", () => {
  const mistakes = rendered["mistakes.txt"].trimEnd().split("\n\n");
  expect(mistakes.length).toBeGreaterThanOrEqual(20);
  for (const mistake of mistakes) {
    expect(mistake).toMatch(/^\S.*\n {2}[A-Z]+ \/.*\n {2}(4\d\d|failed) .{20,}$/);
  }
});

test("no two routes share the name of an operation", () => {
  const rows = rendered["routes.txt"].trimEnd().split("\n").slice(1);
  const operations = rows.map((row) => row.split(/ {2,}/)[2] ?? "");
  expect(operations.length).toBeGreaterThan(50);
  expect(new Set(operations).size).toBe(operations.length);
});

test("the OpenAPI document is a valid one of version 3.1", async () => {
  const validator = new Validator();
  const { valid, errors } = await validator.validate(JSON.parse(rendered["openapi.json"]));
  expect(errors ?? []).toEqual([]);
  expect(valid).toBe(true);
  expect(validator.version).toBe("3.1");
});

test("the validator does find what is wrong", async () => {
  const document = JSON.parse(rendered["openapi.json"]);
  document.paths["/v1/ping"].get.responses = "none";
  expect((await new Validator().validate(document)).valid).toBe(false);
});
