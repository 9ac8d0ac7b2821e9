import { describe, expect, test } from "bun:test";
import {
  EVENT_AFTER_MS,
  eventVersion,
  NOTIFIED_IMMEDIATELY_MAX,
  notifiedPerStep,
  openingEvent,
  RETRY_MS_MAX,
  RETRY_MS_MIN,
  refetchEvent,
  STREAMS_MAX,
} from "../../../../src/areas/flags/ofrep/domain.ts";
import { ofrepExtras } from "../../../../src/areas/flags/ofrep/rejections.ts";
import { OPEN_WITHIN_MS, RecentVersions, VERSIONS_MAX } from "../../../../src/areas/flags/ofrep/versions.ts";
import { ApiError } from "../../../../src/kernel/errors.ts";

describe("listeners notified per step", () => {
  test.each([
    [1, 1],
    [NOTIFIED_IMMEDIATELY_MAX, 1],
    // Above this, a second per thousand listeners, and at most 4.5 s.
    [NOTIFIED_IMMEDIATELY_MAX + 1, 6],
    [1_000, 10],
    [3_000, 30],
    [STREAMS_MAX, 45],
    [10 * STREAMS_MAX, 45],
  ])("of %i: all within %i steps", (listeners, steps) => {
    expect(Math.ceil(listeners / notifiedPerStep(listeners))).toBe(steps);
    expect(steps * EVENT_AFTER_MS).toBeLessThan(5_000);
  });
});

test("a client reconnects after a random delay", () => {
  const retryOf = (fraction: number) =>
    Number(/^retry: (\d+)\nid: 7\n: ok\n\n$/.exec(openingEvent(7, fraction))?.[1]);
  expect(retryOf(0)).toBe(RETRY_MS_MIN);
  expect(retryOf(0.5)).toBe((RETRY_MS_MIN + RETRY_MS_MAX) / 2);
  expect(retryOf(1 - Number.EPSILON)).toBe(RETRY_MS_MAX);
});

test("an event has the version and a time in seconds", () => {
  expect(refetchEvent(42, 1_999)).toBe(
    'id: 42\nevent: message\ndata: {"type":"refetchEvaluation","lastModified":1}\n\n',
  );
});

test.each([
  ["0", 0],
  ["9".repeat(15), 999_999_999_999_999],
  ["9".repeat(16), null],
  ["-1", null],
  ["1.5", null],
  ["1 ", null],
  ["", null],
  [null, null],
  [undefined, null],
])("the version in the id %j: %p", (id, version) => expect(eventVersion(id)).toBe(version));

describe("the version known to a client that opens a stream", () => {
  let now = 0;
  const world = () => {
    now = 1_000;
    return new RecentVersions(() => now);
  };

  test("the current one without an evaluation", () => expect(world().known("p", 5)).toBe(5));

  test("the evaluated one, for the time to open a stream", () => {
    const versions = world();
    versions.note("p", 5);
    expect(versions.known("p", 5)).toBe(5);
    expect(versions.known("p", 6)).toBe(5);
    expect(versions.known("q", 6)).toBe(6);
    now += OPEN_WITHIN_MS - 1;
    expect(versions.known("p", 6)).toBe(5);
    now += 1;
    expect(versions.known("p", 6)).toBe(6);
  });

  test("the previous one, while a client may still open a stream with it", () => {
    const versions = world();
    versions.note("p", 5);
    now += 1;
    versions.note("p", 5);
    now += OPEN_WITHIN_MS - 1;
    versions.note("p", 6);
    expect(versions.known("p", 6)).toBe(5);
    now += 1;
    expect(versions.known("p", 6)).toBe(6);
  });

  test("not one that was evaluated long ago", () => {
    const versions = world();
    versions.note("p", 5);
    now += OPEN_WITHIN_MS;
    versions.note("p", 6);
    expect(versions.known("p", 6)).toBe(6);
  });

  test(`of ${VERSIONS_MAX} projects; with one more, those that were evaluated longest ago are removed`, () => {
    const full = (): RecentVersions => {
      const versions = world();
      for (let project = 0; project < VERSIONS_MAX; project += 1) versions.note(`p${project}`, 5);
      return versions;
    };
    expect(full().known("p0", 6)).toBe(5);
    const beyond = full();
    beyond.note("another", 5);
    expect(beyond.known(`p${VERSIONS_MAX - 1}`, 6)).toBe(5);
    expect(beyond.known("p0", 6)).toBe(6);
  });
});

describe("error fields", () => {
  const call = { request: new Request("http://x/ofrep/v1/evaluate/flags/%zz?a=1"), bodyText: "" };
  test.each([
    ["service_unavailable", "GENERAL"],
    ["internal_error", "GENERAL"],
    ["not_found", "GENERAL"],
    ["validation_error", "INVALID_CONTEXT"],
  ] as const)("%s: %s", (code, errorCode) => {
    const error = new ApiError(code, "That is how it is.");
    expect(ofrepExtras(error, call)).toEqual({ key: "%zz", errorCode, errorDetails: "That is how it is." });
  });
});
