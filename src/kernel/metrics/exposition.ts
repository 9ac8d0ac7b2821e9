import { Histogram } from "./instruments.ts";
import type { Family, Labels, Sample } from "./metrics.ts";

/** The Prometheus text format: what `GET /metrics` answers. */
export const EXPOSITION_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** Renders all families that have a value, in the Prometheus text format. */
export function renderMetrics(families: readonly Family[]): string {
  const blocks = families.flatMap(({ name, type, help, samples }) => {
    const lines = [...samples()].flatMap((sample) => linesOf(name, sample));
    if (lines.length === 0) return [];
    return [[`# HELP ${name} ${escaped(help)}`, `# TYPE ${name} ${type}`, ...lines].join("\n")];
  });
  return `${blocks.join("\n\n")}\n`;
}

function linesOf(name: string, { labels, value }: Sample): string[] {
  if (!(value instanceof Histogram)) return [line(name, labels, value)];
  const counts = value.cumulative();
  return [
    ...counts.map((count, index) =>
      line(`${name}_bucket`, { le: String(value.bounds[index] ?? "+Inf"), ...labels }, count),
    ),
    line(`${name}_sum`, labels, value.sum),
    line(`${name}_count`, labels, counts.at(-1) ?? 0),
  ];
}

function line(name: string, labels: Labels, value: number): string {
  const pairs = Object.entries(labels).map(
    ([label, text]) => `${label}="${escaped(text).replaceAll('"', '\\"')}"`,
  );
  return `${name}${pairs.length === 0 ? "" : `{${pairs.join(",")}}`} ${value}`;
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}
