import { describe, expect, test } from "bun:test";
import { judge, readCounts } from "../../scripts/steps/bun-test.ts";

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

  test("fail on an error outside of every test", () => {
    expect(judge(readCounts(report(3, 0, 0)), 1)).toMatchObject({ passed: 3, failed: 1 });
  });
});
