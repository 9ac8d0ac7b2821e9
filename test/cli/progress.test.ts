import { describe, expect, test } from "bun:test";
import {
  formatAmount,
  formatCount,
  formatDuration,
  PLAIN_INTERVAL_MS,
  Progress,
  TERMINAL_DELAY_MS,
  TERMINAL_INTERVAL_MS,
} from "../../src/cli/progress.ts";

/** A progress line with a clock that the test controls, and everything that was written. */
function shown(options: { isTTY: boolean; total: number | null; unit?: "bytes" | "rows"; columns?: number }) {
  const { isTTY, total, unit = "bytes", columns } = options;
  const written: string[] = [];
  let time = 1_000;
  const progress = new Progress({ isTTY, columns, write: (text) => written.push(text) }, () => time);
  const show = (done: number): void => progress.show("Backing up", unit, done, total);
  show(0);
  const at = (ms: number, done: number): string[] => {
    time = 1_000 + ms;
    show(done);
    return written.splice(0);
  };
  const finish = (): string[] => {
    progress.finish();
    return written.splice(0);
  };
  return { at, finish };
}

describe("on a terminal", () => {
  test("shows one line with rate and remaining time", () => {
    const { at, finish } = shown({ isTTY: true, total: 10_000_000 });
    expect(at(0, 0)).toEqual([]);
    expect(at(TERMINAL_DELAY_MS - 1, 1_000_000)).toEqual([]);
    expect(at(500, 1_000_000)).toEqual(["\rBacking up  10 %  1.0 MB of 10 MB  2.0 MB/s  4.5 s left"]);
    expect(at(500 + TERMINAL_INTERVAL_MS - 1, 2_000_000)).toEqual([]);
    expect(at(1_000, 5_000_000)).toEqual(["\rBacking up  50 %  5.0 MB of 10 MB  5.0 MB/s  1.0 s left"]);
    // The rest of a longer line is overwritten.
    expect(at(2_000, 10_000_000)).toEqual([`\r${"Backing up  100 %  10 MB of 10 MB  5.0 MB/s".padEnd(55)}`]);
    expect(finish()).toEqual([`\r${" ".repeat(43)}\r`]);
  });

  test("shows the rate of the last seconds", () => {
    const { at } = shown({ isTTY: true, total: null, unit: "rows" });
    expect(at(10_000, 100_000)).toEqual(["\rBacking up  100,000 rows  10,000 rows/s"]);
    expect(at(20_000, 100_010)[0]).toContain("100,010 rows  1 row/s");
    expect(at(25_000, 100_085)[0]).toContain("100,085 rows  15 rows/s");
  });

  test("shows nothing for short work, and can be finished twice", () => {
    const { at, finish } = shown({ isTTY: true, total: 5 });
    expect(at(100, 5)).toEqual([]);
    expect(finish()).toEqual([]);
    expect(finish()).toEqual([]);
    expect(at(60_000, 5)).toEqual([]);
  });

  test("cuts the line on a narrow terminal", () => {
    const { at, finish } = shown({ isTTY: true, total: 100, columns: 20 });
    expect(at(1_000, 50)).toEqual(["\rBacking up  50 %  5"]);
    expect(finish()).toEqual([`\r${" ".repeat(19)}\r`]);
  });

  test.each([0, undefined])("assumes 80 columns if the terminal reports the width %p", (columns) => {
    const { at } = shown({ isTTY: true, total: null, ...(columns === undefined ? {} : { columns }) });
    expect(at(1_000, 50)).toEqual(["\rBacking up  50 B  50 B/s"]);
  });

  test("never shows more than 100 %", () => {
    expect(shown({ isTTY: true, total: 10 }).at(1_000, 11)).toEqual([
      "\rBacking up  100 %  10 B of 10 B  11 B/s",
    ]);
    expect(shown({ isTTY: true, total: 0 }).at(1_000, 0)).toEqual(["\rBacking up  100 %  0 B of 0 B"]);
  });
});

test("prints a plain line every ten seconds without a terminal", () => {
  const { at, finish } = shown({ isTTY: false, total: 100, unit: "rows" });
  expect(at(PLAIN_INTERVAL_MS - 1, 10)).toEqual([]);
  expect(at(PLAIN_INTERVAL_MS, 10)).toEqual([
    "Backing up  10 %  10 rows of 100 rows  1 row/s  1 min 30 s left\n",
  ]);
  expect(at(PLAIN_INTERVAL_MS + 1, 11)).toEqual([]);
  expect(at(PLAIN_INTERVAL_MS * 2, 60)[0]).toStartWith("Backing up  60 %");
  expect(finish()).toEqual([]);
});

test.each([
  [0, "0 B"],
  [999, "999 B"],
  [1_000, "1.0 kB"],
  [9_940, "9.9 kB"],
  [99_400, "99 kB"],
  [999_400, "999 kB"],
  [999_600, "1.0 MB"],
  [1_234_567_890, "1.2 GB"],
  [5_000_000_000_000_000, "5000 TB"],
])("%d bytes are %s", (bytes, text) => expect(formatAmount(bytes, "bytes")).toBe(text));

test.each([
  [0, "0"],
  [999, "999"],
  [1_000, "1,000"],
  [1_234_567.4, "1,234,567"],
])("%d is written %s", (count, text) => expect(formatCount(count)).toBe(text));

test.each([
  [0, "0.0 s"],
  [9_949, "9.9 s"],
  [9_950, "10 s"],
  [59_499, "59 s"],
  [59_500, "1 min 0 s"],
  [3_599_400, "59 min 59 s"],
  [3_600_000, "1 h 0 min"],
  [90_061_000, "25 h 1 min"],
])("%d ms are %s", (ms, text) => expect(formatDuration(ms)).toBe(text));
