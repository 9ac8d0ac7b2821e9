import { expect } from "bun:test";
import type { Client } from "./client.ts";

/** One series as the text format shows it. */
export interface Series {
  /** With the ending of a histogram's part, such as `_bucket`. */
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A metric as the text format shows it. */
export interface MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly series: Series[];
}

const SERIES = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/;
const NUMBER = /^(?:[+-]?Inf|NaN|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/;

/** What one scrape has found. */
export class Scrape {
  readonly families: readonly MetricFamily[];

  constructor(text: string) {
    this.families = parseExposition(text);
  }

  /** The value of one series; null when it is not there. */
  find(name: string, labels: Readonly<Record<string, string>> = {}): number | null {
    const wanted = JSON.stringify(sorted(labels));
    const found = this.families
      .flatMap(({ series }) => series)
      .filter((one) => one.name === name && JSON.stringify(sorted(one.labels)) === wanted);
    return found[0]?.value ?? null;
  }

  /** The value of one series. @throws Error when it is not there. */
  value(name: string, labels: Readonly<Record<string, string>> = {}): number {
    const value = this.find(name, labels);
    if (value === null) throw new Error(`there is no ${name} ${JSON.stringify(labels)}`);
    return value;
  }

  /** The values of a metric's series that are not 0, by their labels' values, joined by a space. */
  counts(name: string): Record<string, number> {
    const family = this.families.find((family) => family.name === name);
    if (family === undefined) throw new Error(`there is no ${name}`);
    return Object.fromEntries(
      family.series
        .filter(({ value }) => value !== 0)
        .map(({ labels, value }) => [Object.values(labels).join(" "), value]),
    );
  }
}

/** Reads `/metrics`, strictly. */
export async function scrape(client: Client): Promise<Scrape> {
  const answer = await client.get("/metrics");
  expect(answer.status, answer.text).toBe(200);
  expect(answer.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  return new Scrape(answer.text);
}

/**
 * Parses the Prometheus text format, version 0.0.4. Stricter than Prometheus is: each metric has its HELP and TYPE, in
 * this order, before its series, which stand together.
 * @throws Error at the first line that does not fit.
 */
export function parseExposition(text: string): MetricFamily[] {
  if (!text.endsWith("\n")) throw new Error("the last line does not end");
  const families: MetricFamily[] = [];
  const seen = new Set<string>();
  let help: readonly [name: string, text: string] | null = null;
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const comment = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line);
    const [, keyword, name = "", rest = ""] = comment ?? [];
    if (keyword === "HELP") {
      if (families.some((family) => family.name === name)) throw new Error(`${name} comes twice`);
      help = [name, rest];
    } else if (keyword === "TYPE") {
      if (help?.[0] !== name) throw new Error(`TYPE of ${name} does not follow its HELP`);
      families.push({ name, help: help[1], type: rest, series: [] });
      help = null;
    } else {
      const family = families.at(-1);
      const series = parseSeries(line);
      if (family === undefined || help !== null || !belongs(series.name, family)) {
        throw new Error(`out of place: ${line}`);
      }
      const identity = `${series.name} ${JSON.stringify(sorted(series.labels))}`;
      if (seen.has(identity)) throw new Error(`twice: ${line}`);
      seen.add(identity);
      family.series.push(series);
    }
  }
  return families;
}

function parseSeries(line: string): Series {
  const match = SERIES.exec(line);
  const [, name = "", labelText = "", value = ""] = match ?? [];
  if (match === null || !NUMBER.test(value)) throw new Error(`no series: ${line}`);
  const labels: Record<string, string> = {};
  let rest = labelText;
  while (rest !== "") {
    const label = LABEL.exec(rest);
    if (label === null || Object.hasOwn(labels, label[1] ?? "")) throw new Error(`no labels: ${line}`);
    labels[label[1] ?? ""] = (label[2] ?? "").replace(/\\(.)/g, (_, c: string) => (c === "n" ? "\n" : c));
    rest = rest.slice(label[0].length);
  }
  return { name, labels, value: Number(value.replace("Inf", "Infinity")) };
}

function belongs(name: string, { name: family, type }: MetricFamily): boolean {
  return type === "histogram"
    ? [`${family}_bucket`, `${family}_sum`, `${family}_count`].includes(name)
    : name === family;
}

function sorted(labels: Readonly<Record<string, string>>): [string, string][] {
  return Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
}
