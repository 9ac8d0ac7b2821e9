import { expect, test } from "bun:test";
import { findingsOf, type Series, seriesKey } from "../../bench/results.ts";
import { BENCHMARKS } from "../../bench/rows.ts";

function series(name: string, ...perSecond: readonly number[]): [string, Series] {
  const rounds = perSecond.map((one) => ({ perSecond: one, p50Ms: null, p99Ms: null }));
  return [seriesKey(name, 32), { name, connections: 32, rounds }];
}

test("a row is compared with its own rivals, round by round, and with competitors by their names", () => {
  const results = new Map([
    series("one", 80, 40, 90),
    series("one, bare", 100, 100, 100),
    series("one, ceiling", 100, 50, 100),
    series("other, bare", 1, 1, 1),
    series("elsewhere", 40, 40, 40),
    series("dead", 0, 40, 40),
  ]);
  const ratio = (to: string, atLeast: number) => ({ kind: "ratio", to, atLeast, connections: [32] }) as const;
  const requires = [
    ...[ratio("bare", 0), ratio("ceiling", 0.8), ratio("ceiling", 0.81)],
    ...[ratio("elsewhere", 2), ratio("not installed", 2), ratio("dead", 2)],
  ];
  const row = { name: "one", connections: [32], request: () => ({ lua: "" }), requires };
  const found = findingsOf(row, results).map(({ what, measured, ok }) => [what, measured, ok]);
  expect(found).toEqual([
    ["one, 32 connections: to bare", "× 0.80", null],
    ["one, 32 connections: to ceiling", "× 0.80", true],
    ["one, 32 connections: to ceiling", "× 0.80", false],
    ["one, 32 connections: to elsewhere", "× 2.00", true],
    ["one, 32 connections: to not installed", "–", null],
    ["one, 32 connections: to dead", "–", null],
  ]);
});

test("a row on a server that has just started is compared with the same row on a warm one", () => {
  const row = { name: "one", connections: [32], request: () => ({ lua: "" }), requires: [] };
  for (const [cold, measured, ok] of [
    [70, "× 0.70", true],
    [69, "× 0.69", false],
  ] as const) {
    const results = new Map([series("one", 100), series("one, cold", cold)]);
    expect(findingsOf(row, results)).toEqual([
      { what: "one, 32 connections: cold to warm", measured, required: "≥ 0.70", ok },
    ]);
  }
});

test("each row is compared with a bare server, at each of its connections, and where it waits for the disk with its ceiling", () => {
  const compared = BENCHMARKS.map(({ name, connections, requires }) => {
    const at = (to: string): number[] =>
      requires.flatMap((require) =>
        require.kind === "ratio" && require.to === to ? [...require.connections] : [],
      );
    expect(at("bare")).toEqual([...connections]);
    return at("ceiling").length === 0 ? null : name;
  });
  expect(compared.filter((name) => name !== null)).toEqual([
    ...[
      "tenant deduct",
      "meter hold, capture",
      "lock acquire, release",
      "schedule a relay",
      "notary log of 1 KB",
    ],
    "webhook in, 1 KiB",
    "ping of a heartbeat",
  ]);
});
