import { describe, expect, test } from "bun:test";
import { createLogger, type LogFields, type LogSettings } from "../../src/kernel/log.ts";
import { ManualClock } from "../../src/kernel/time/clock.ts";

const AT = Date.parse("2026-11-23T02:35:17.000Z");

function linesOf(settings: LogSettings, message = "server started", fields?: LogFields): string[] {
  const lines: string[] = [];
  const log = createLogger(new ManualClock(AT), settings, (line) => lines.push(line));
  for (const level of ["debug", "info", "warn", "error"] as const) log[level](message, fields);
  return lines;
}

test.each([
  ["debug", 4],
  ["info", 3],
  ["warn", 2],
  ["error", 1],
] as const)("the level %s writes %d of the four levels", (level, count) => {
  expect(linesOf({ level }).length).toBe(count);
  expect(createLogger(new ManualClock(AT), { level }).isDebug).toBe(level === "debug");
});

test("a JSON line has the time, the level, the message and the fields", () => {
  const [line = ""] = linesOf({ level: "error" }, "a request failed", { status: 500, key: undefined });
  expect(line).toBe(
    '{"time":"2026-11-23T02:35:17.000Z","level":"error","message":"a request failed","status":500}\n',
  );
});

describe("a text line", () => {
  const textOf = (message: string, fields?: LogFields) =>
    linesOf({ level: "error", format: "text" }, message, fields)[0];

  test("has aligned levels and fields as name=value", () => {
    const lines = linesOf({ level: "info", format: "text" }, "server started", { port: 9909, on: true });
    expect(lines[0]).toBe("2026-11-23T02:35:17.000Z info  server started port=9909 on=true\n");
    expect(lines[2]).toBe("2026-11-23T02:35:17.000Z error server started port=9909 on=true\n");
  });

  test("quotes texts that are not a single word", () => {
    const fields = { a: "two words", b: "", c: 'a"b', d: "/v1/ping", e: null, f: undefined };
    expect(textOf("m", fields)).toBe(
      '2026-11-23T02:35:17.000Z error m a="two words" b="" c="a\\"b" d=/v1/ping e=null\n',
    );
  });

  test("stays on one line and escapes control characters", () => {
    expect(textOf("one\ntwo\x1b[31m", { error: "three\nfour\x1b" })).toBe(
      '2026-11-23T02:35:17.000Z error one two [31m error="three\\nfour\\u001b"\n',
    );
  });
});
