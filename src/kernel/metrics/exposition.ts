import type { Metric } from "prom-client";
import { Histogram } from "./instruments.ts";
import type { Family, Labels, Sample } from "./metrics.ts";

/** The Prometheus text format: what `GET /metrics` answers. */
export const EXPOSITION_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** A line of the format, as prom-client's registry takes it. */
interface Line {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly sharedLabels: Labels;
  readonly value: number;
}

/** Renders all families that have a value, in the Prometheus text format. */
export async function renderMetrics(families: readonly Family[]): Promise<string> {
  // Loaded at the first scrape: a start does not wait for it.
  const { default: Registry } = await import("prom-client/lib/registry.js");
  const registry = new Registry();
  for (const family of families) {
    const { name, type, help } = family;
    const samples = [...family.samples()];
    if (samples.length === 0) continue;
    const values = samples.flatMap((sample) => linesOf(name, sample));
    // The registry asks a metric for nothing but this; the counting is ours, and cheaper than that of its own metrics.
    const metric = { name, get: () => Promise.resolve({ name, type, help, values }) };
    registry.registerMetric(metric as unknown as Metric);
  }
  return registry.metrics();
}

function linesOf(name: string, { labels, value }: Sample): Line[] {
  if (!(value instanceof Histogram)) return [{ metricName: name, labels: {}, sharedLabels: labels, value }];
  const counts = value.cumulative();
  const line = (ending: string, own: Line["labels"], number: number): Line => ({
    metricName: `${name}_${ending}`,
    labels: own,
    sharedLabels: labels,
    value: number,
  });
  return [
    ...counts.map((count, index) => line("bucket", { le: value.bounds[index] ?? "+Inf" }, count)),
    line("sum", {}, value.sum),
    line("count", {}, counts.at(-1) ?? 0),
  ];
}
