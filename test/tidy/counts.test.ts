import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { flakyFiles, judge, readCounts } from "../../scripts/steps/bun-test.ts";
import { ROOT } from "../harness/processes/server-process.ts";
import { endOf } from "../support/ended.ts";

const report = (tests: number, failures: number, skipped: number): string =>
  `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="bun test" tests="${tests}" assertions="9" ` +
  `failures="${failures}" skipped="${skipped}" time="0.1">\n  <testsuite name="a" tests="99" failures="98"/>\n</testsuites>`;

describe("the counts of a test run", () => {
  test("come from the report's totals", () => {
    expect(judge(readCounts(report(10, 2, 1)), 1)).toMatchObject({ passed: 7, failed: 2 });
    expect(judge(readCounts(report(10, 0, 0)), 0)).toMatchObject({ passed: 10, failed: 0 });
  });

  test.each([
    ["no report", undefined, 134],
    ["a report without totals", "<html/>", 0],
    ["no test", report(0, 0, 0), 0],
    ["nothing but skipped tests", report(3, 0, 3), 0],
  ])("fail on %s", (_, xml, code) => {
    expect(judge(xml === undefined ? undefined : readCounts(xml), code)).toMatchObject({
      passed: 0,
      failed: 1,
    });
  });

  test("name the files that failed, once each", () => {
    const xml = `${report(3, 2, 0).split("\n").slice(0, 2).join("\n")}
      <testsuite name="b" file="test/b.test.ts" tests="2" failures="2"><testsuite name="in" file="test/b.test.ts" failures="1">
      <testsuite name="c" file="test/c.test.ts" tests="1" failures="0"><testcase name="file=&quot;x" file="test/c.test.ts"/>`;
    expect(readCounts(xml)?.failing).toEqual(["test/b.test.ts"]);
  });

  test("fail on an error outside of every test", () => {
    expect(judge(readCounts(report(3, 0, 0)), 1)).toMatchObject({ passed: 3, failed: 1 });
  });
});

describe("flaky files", () => {
  const entry = { file: "test/cli/a.test.ts", date: "2026-11-28", reason: "the shell is slow to start" };

  test("are recorded with a date and a reason", () => {
    expect(flakyFiles("[]")).toEqual([]);
    expect(flakyFiles(JSON.stringify([entry]))).toEqual([entry.file]);
  });

  test.each([
    ["without a test file", [{ ...entry, file: "test/cli" }], "names no test file"],
    ["without a date", [{ ...entry, date: "yesterday" }], "needs a date"],
    ["without a reason", [{ ...entry, reason: " " }], "needs a date (2026-01-31) and a reason"],
    ["a second time", [entry, { ...entry, date: "2026-11-29" }], "failed twice; repair it"],
    ["of crashes and power cuts", [{ ...entry, file: "test/crash/powercut.test.ts" }], "may not be flaky"],
    ["of storms", [{ ...entry, file: "test/storm/storm.test.ts" }], "may not be flaky"],
    ["of the storage", [{ ...entry, file: "test/kernel/storage/tx.test.ts" }], "may not be flaky"],
  ])("are not recorded %s", (_, entries, message) => {
    expect(() => flakyFiles(JSON.stringify(entries))).toThrow(message);
  });
});

test("a file that fails runs a second time, alone, unless a recorded one fails, or more than three", async () => {
  const folder = mkdtempSync(join(tmpdir(), "ninefold-rerun-test-"));
  try {
    const once = (marker: string) => `import { expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
test("the second time", () => {
  const hasRun = existsSync(${JSON.stringify(join(folder, marker))});
  writeFileSync(${JSON.stringify(join(folder, marker))}, "");
  expect(hasRun).toBe(true);
});
`;
    const steps = JSON.stringify(join(ROOT, "scripts/steps/bun-test.ts"));
    const run = `import { runTests } from ${steps};
const flaky = ["recorded.test.ts"];
const never = ["a.test.ts", "b.test.ts", "c.test.ts", "never.test.ts"];
const results = [];
for (const files of [["recorded.test.ts", "never.test.ts"], never, ["once.test.ts", "never.test.ts"]]) {
  const { passed, failed, rerun } = await runTests({ name: "tests", files, verbose: false, flaky });
  results.push({ passed, failed, rerun });
}
console.log(JSON.stringify(results));
`;
    const never = 'import { test } from "bun:test";\ntest("never", () => { throw new Error(); });\n';
    for (const [name, text] of Object.entries({
      "once.test.ts": once("once"),
      "recorded.test.ts": once("recorded"),
      "never.test.ts": never,
      "a.test.ts": never,
      "b.test.ts": never,
      "c.test.ts": never,
      "run.ts": run,
    }))
      writeFileSync(join(folder, name), text);
    const { out } = await endOf([process.execPath, "run.ts"], { cwd: folder, timeoutMs: 60_000 });
    const last = out.trimEnd().split("\n").at(-1) ?? "";
    expect(JSON.parse(last)).toEqual([
      { passed: 0, failed: 2 },
      { passed: 0, failed: 4 },
      { passed: 1, failed: 1, rerun: ["once.test.ts"] },
    ]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}, 60_000);
