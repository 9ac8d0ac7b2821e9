import { Counter, Histogram } from "./instruments.ts";

/** Labels of a series, by name. Their values come from the code, or name resources of limited number, which limits the number of series. */
export type Labels = Readonly<Record<string, string>>;

/** The value of one series now. */
export interface Sample {
  readonly labels: Labels;
  readonly value: number | Histogram;
}

/** A metric as it is described and read: all series of one name. */
export interface Family {
  /** With its unit, in Prometheus's base units, such as `ninefold_wal_bytes`. */
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly labels: readonly string[];
  /** Reads every series. A family without any is omitted. */
  samples(): Iterable<Sample>;
}

/** What a family is called, and what it means. */
export type Described = Pick<Family, "name" | "help">;

/** Our own metrics; those of the process have the names that every Prometheus client gives them. */
const NAME = /^(ninefold|process)(_[a-z]+)+$/;
/** How the names of counters end, and no others. */
const TOTAL = "_total";
/** Endings that the exposition format gives to parts of other metrics. */
const RESERVED_ENDING = /_(count|sum|bucket)$/;

/** Everything that is counted: kernel and areas declare their metrics here, and `GET /metrics` reads them. */
export class Metrics {
  private readonly byName = new Map<string, Family>();

  /** Every metric, in the order of declaration. */
  get families(): readonly Family[] {
    return [...this.byName.values()];
  }

  /** Declares a metric that reads itself. */
  declare(family: Family): void {
    const { name, type } = family;
    const isCounter = type === "counter";
    if (!NAME.test(name) || RESERVED_ENDING.test(name) || name.endsWith(TOTAL) !== isCounter) {
      throw new Error(`${name} is no name of a ${type}`);
    }
    if (this.byName.has(name)) throw new Error(`metric ${name} is declared twice`);
    this.byName.set(name, family);
  }

  /** Declares a number without labels that is stored elsewhere; null: it has no value now, and is omitted. */
  number(name: string, help: string, read: () => number | null): void {
    const type = name.endsWith(TOTAL) ? "counter" : "gauge";
    const samples = (): Sample[] => {
      const value = read();
      return value === null ? [] : [{ labels: {}, value }];
    };
    this.declare({ name, help, type, labels: [], samples });
  }

  /** Declares a histogram without labels. */
  histogram(name: string, help: string, value: Histogram): void {
    this.declare({ name, help, type: "histogram", labels: [], samples: () => [{ labels: {}, value }] });
  }

  /** Declares a counter with one series per value of a label, all there from the start. */
  counters<V extends string>(
    described: Described,
    label: string,
    values: readonly V[],
  ): Readonly<Record<V, Counter>> {
    const counters = recordOf(values, () => new Counter());
    const samples = (): Sample[] =>
      values.map((value) => ({ labels: { [label]: value }, value: counters[value].value }));
    this.declare({ ...described, type: "counter", labels: [label], samples });
    return counters;
  }

  /** The same with two labels. */
  counterTable<R extends string, C extends string>(
    described: Described,
    rows: { readonly label: string; readonly values: readonly R[] },
    columns: { readonly label: string; readonly values: readonly C[] },
  ): Readonly<Record<R, Readonly<Record<C, Counter>>>> {
    const table = recordOf(rows.values, () => recordOf(columns.values, () => new Counter()));
    const samples = (): Sample[] =>
      rows.values.flatMap((row) =>
        columns.values.map((column) => ({
          labels: { [rows.label]: row, [columns.label]: column },
          value: table[row][column].value,
        })),
      );
    this.declare({ ...described, type: "counter", labels: [rows.label, columns.label], samples });
    return table;
  }
}

function recordOf<Name extends string, T>(names: readonly Name[], make: () => T): Record<Name, T> {
  const record = {} as Record<Name, T>;
  for (const name of names) record[name] = make();
  return record;
}

/** The Prometheus text format of `GET /metrics`. */
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
