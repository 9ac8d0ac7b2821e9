import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Counter, Histogram } from "../../../src/kernel/metrics/instruments.ts";
import { Metrics, renderMetrics } from "../../../src/kernel/metrics/metrics.ts";
import { RequestMetrics } from "../../../src/kernel/metrics/request-metrics.ts";
import { Scrape } from "../../support/metrics.ts";

describe("a histogram", () => {
  test("counts a value at a limit in its bucket, and above it in the next", () => {
    const histogram = new Histogram([1, 10]);
    for (const value of [0, 1, 1.000001, 10, 10.5, 1e9]) histogram.observe(value);
    expect(histogram.cumulative()).toEqual([2, 4, 6]);
    expect(histogram.count).toBe(6);
    expect(histogram.sum).toBe(1_000_000_022.500001);
  });

  test("agrees with a simple count for random values", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 60 })), (values) => {
        const bounds = [1, 2, 5, 10, 50];
        const histogram = new Histogram(bounds);
        for (const value of values) histogram.observe(value);
        const byHand = [...bounds, Number.POSITIVE_INFINITY].map(
          (bound) => values.filter((value) => value <= bound).length,
        );
        expect(histogram.cumulative()).toEqual(byHand);
        expect(histogram.sum).toBe(values.reduce((sum, value) => sum + value, 0));
      }),
    );
  });
});

describe("a declaration", () => {
  const refusals: readonly (readonly [type: "counter" | "gauge" | "histogram", name: string])[] = [
    ["counter", "ninefold_commits"],
    ["gauge", "ninefold_commits_total"],
    ["histogram", "ninefold_commits_total"],
    ["gauge", "commits"],
    ["gauge", "ninefold_Commits"],
    ["gauge", "ninefold__commits"],
    ["gauge", "ninefold_commits_"],
    ["gauge", "ninefold_commits2"],
    ["gauge", "ninefold_commits_count"],
    ["gauge", "ninefold_commits_sum"],
    ["gauge", "ninefold_commits_bucket"],
  ];
  test.each(refusals)("of a %s called %s is rejected", (type, name) => {
    const metrics = new Metrics();
    const declare = () => metrics.declare({ name, type, help: "h", labels: [], samples: () => [] });
    expect(declare).toThrow(`${name} is no name of a ${type}`);
    expect(metrics.families).toEqual([]);
  });

  test("is unique", () => {
    const metrics = new Metrics();
    const declare = () => metrics.number("ninefold_things_total", "Things.", () => 1);
    declare();
    expect(() => metrics.number("ninefold_things", "Things.", () => 1)).not.toThrow();
    expect(declare).toThrow("metric ninefold_things_total is declared twice");
  });
});

test("every kind of metric in the text format, character by character", () => {
  const metrics = new Metrics();
  metrics.number("ninefold_things_total", 'A "thing",\nor \\two.', () => 3);
  const colours = metrics.counters({ name: "ninefold_colours_total", help: "c" }, "colour", ["red", "blue"]);
  colours.blue.add();
  const table = metrics.counterTable(
    { name: "ninefold_cells_total", help: "t" },
    { label: "row", values: ["a", "b"] },
    { label: "column", values: ["x"] },
  );
  table.b.x.add(2);
  metrics.number("ninefold_level", "l", () => 0.5);
  metrics.number("ninefold_absent", "a", () => null);
  const histogram = new Histogram([0.1, 1]);
  histogram.observe(0.05);
  histogram.observe(7);
  metrics.histogram("ninefold_wait_seconds", "w", histogram);
  metrics.declare({
    name: "ninefold_odd",
    type: "gauge",
    help: "o",
    labels: ["text"],
    samples: () => [{ labels: { text: 'a"b\\c\nd' }, value: 1 }],
  });
  const text = renderMetrics(metrics.families);
  expect(text).toBe(
    `# HELP ninefold_things_total A "thing",\\nor \\\\two.
# TYPE ninefold_things_total counter
ninefold_things_total 3

# HELP ninefold_colours_total c
# TYPE ninefold_colours_total counter
ninefold_colours_total{colour="red"} 0
ninefold_colours_total{colour="blue"} 1

# HELP ninefold_cells_total t
# TYPE ninefold_cells_total counter
ninefold_cells_total{row="a",column="x"} 0
ninefold_cells_total{row="b",column="x"} 2

# HELP ninefold_level l
# TYPE ninefold_level gauge
ninefold_level 0.5

# HELP ninefold_wait_seconds w
# TYPE ninefold_wait_seconds histogram
ninefold_wait_seconds_bucket{le="0.1"} 1
ninefold_wait_seconds_bucket{le="1"} 1
ninefold_wait_seconds_bucket{le="+Inf"} 2
ninefold_wait_seconds_sum 7.05
ninefold_wait_seconds_count 2

# HELP ninefold_odd o
# TYPE ninefold_odd gauge
ninefold_odd{text="a\\"b\\\\c\\nd"} 1
`,
  );
  expect(new Scrape(text).value("ninefold_odd", { text: 'a"b\\c\nd' })).toBe(1);
});

test("a counter adds one, or the given number", () => {
  const counter = new Counter();
  counter.add();
  counter.add(4);
  expect(counter.value).toBe(5);
});

test("responses are counted by status; an unlisted one counts as other", () => {
  const requests = new RequestMetrics().of("ping");
  for (const status of [200, 200, 404, 418, 999, 503]) requests.answered(status, 2);
  const byStatus = requests.byStatus().map(({ labels, value }) => [labels["status"], value]);
  expect(byStatus).toEqual([
    ["200", 2],
    ["404", 1],
    ["500", 0],
    ["503", 1],
    ["other", 2],
  ]);
  expect(requests.duration?.cumulative().slice(0, 4)).toEqual([0, 0, 6, 6]);
});
