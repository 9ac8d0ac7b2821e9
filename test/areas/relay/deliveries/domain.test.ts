import { describe, expect, test } from "bun:test";
import { afterRelayAttempt, DELAY_MS_MAX, readDelay } from "../../../../src/areas/relay/domain.ts";
import { type AttemptResult, RETRY_AFTER_MS_MAX } from "../../../../src/kernel/outbound/retries.ts";

const NOW = Date.UTC(2026, 2, 10, 12);

function result(status: number | null, retryAfter?: string): AttemptResult {
  const failure = status === null ? { kind: "timeout", message: "too late" } : null;
  return { status, failure, retryAfter, finishedAt: NOW };
}

describe("delays", () => {
  const taken: readonly (readonly [text: string, ms: number])[] = [
    ["0s", 0],
    ["0d", 0],
    ["1s", 1_000],
    ["90s", 90_000],
    ["007m", 420_000],
    ["15m", 900_000],
    ["12h", 43_200_000],
    ["3d", 259_200_000],
    ["30d", DELAY_MS_MAX],
    ["720h", DELAY_MS_MAX],
    ["2592000s", DELAY_MS_MAX],
  ];
  for (const [text, ms] of taken) test(`${text}`, () => expect(readDelay(text)).toBe(ms));

  for (const text of [
    "31d",
    "721h",
    "2592001s",
    "1",
    "s",
    "",
    "-1s",
    "1.5h",
    "1w",
    "1S",
    " 1s",
    "1s ",
    "١s",
    "99999999999999999999s",
  ]) {
    test(`${JSON.stringify(text)} is rejected`, () => expect(() => readDelay(text)).toThrow("delay must be"));
  }
});

describe("after an attempt", () => {
  for (const status of [200, 201, 204, 299, 300, 301, 302, 304, 307, 399]) {
    test(`${status} is delivered`, () =>
      expect(afterRelayAttempt("scheduled", 1, result(status), 0.5)).toEqual({ kind: "delivered" }));
  }
  for (const status of [400, 401, 403, 404, 405, 409, 410, 413, 422, 451, 499]) {
    test(`${status} fails immediately`, () =>
      expect(afterRelayAttempt("scheduled", 1, result(status), 0.5)).toEqual({
        kind: "failed",
        error: `the target responded with ${status}`,
      }));
  }
  for (const status of [408, 429, 500, 502, 503, 504, 599]) {
    test(`${status} is retried`, () =>
      expect(afterRelayAttempt("scheduled", 1, result(status), 0.5)).toEqual({
        kind: "retry",
        error: `the target responded with ${status}`,
        at: NOW + 1_000,
      }));
  }

  test("a network error is retried, a blocked address is not", () => {
    expect(afterRelayAttempt("scheduled", 1, result(null), 0.5)).toEqual({
      kind: "retry",
      error: "timeout: too late",
      at: NOW + 1_000,
    });
    for (const kind of ["blocked", "invalid"]) {
      const refused = { ...result(null), failure: { kind, message: "no" } };
      expect(afterRelayAttempt("scheduled", 1, refused, 0.5)).toEqual({
        kind: "failed",
        error: `${kind}: no`,
      });
    }
  });

  const waits: readonly (readonly [kind: "scheduled" | "pulse", fraction: number, waits: number[]])[] = [
    ["scheduled", 0.5, [1_000, 5_000, 25_000]],
    ["scheduled", 0, [900, 4_500, 22_500]],
    ["scheduled", 1, [1_100, 5_500, 27_500]],
    ["pulse", 0, [1_000, 5_000, 15_000]],
    ["pulse", 1, [1_000, 5_000, 15_000]],
  ];
  for (const [kind, fraction, expected] of waits) {
    test(`${kind} waits ${expected.join(", ")} ms with a fraction of ${fraction}, and then fails`, () => {
      const steps = [1, 2, 3].map((attempt) => afterRelayAttempt(kind, attempt, result(500), fraction));
      expect(steps.map((step) => (step.kind === "retry" ? step.at - NOW : null))).toEqual(expected);
      expect(afterRelayAttempt(kind, 4, result(500), fraction)).toEqual({
        kind: "failed",
        error: "the target responded with 500",
      });
    });
  }

  const asked: readonly (readonly [value: string, waitMs: number])[] = [
    ["0", 1_000],
    ["1", 1_000],
    ["2", 2_000],
    ["3600", RETRY_AFTER_MS_MAX],
    ["3601", RETRY_AFTER_MS_MAX],
    ["9999999999", RETRY_AFTER_MS_MAX],
    ["99999999999", 1_000],
    ["-5", 1_000],
    ["soon", 1_000],
    ["", 1_000],
    ["5, 20,3", 20_000],
    ["5, soon", 1_000],
    ["Tue, 10 Mar 2026 12:00:30 GMT", 30_000],
    ["Tue, 10 Mar 2026 11:00:00 GMT", 1_000],
    ["Wed, 11 Mar 2026 12:00:00 GMT", RETRY_AFTER_MS_MAX],
  ];
  for (const [value, waitMs] of asked) {
    test(`Retry-After: ${value} waits ${waitMs} ms`, () => {
      const step = afterRelayAttempt("scheduled", 1, result(503, value), 0.5);
      expect(step.kind === "retry" ? step.at - NOW : null).toBe(waitMs);
    });
  }
});
