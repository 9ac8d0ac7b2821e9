import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { version } from "../../../package.json" with { type: "json" };
import { declareArchiveMetrics } from "../../../src/archive/archive.ts";
import { EngineErrors } from "../../../src/cluster/commit-log.ts";
import { declareLeaderMetrics, declareNodeMetrics } from "../../../src/cluster/node-metrics.ts";
import { declareKernelMetrics } from "../../../src/kernel/kernel-metrics.ts";
import { Histogram } from "../../../src/kernel/metrics/instruments.ts";
import { type Family, Metrics } from "../../../src/kernel/metrics/metrics.ts";
import { scrape } from "../../support/metrics.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

const ROOT = join(import.meta.dir, "..", "..", "..");
const ALERTS = join(ROOT, "docs", "monitoring-alerts.yml");
const DASHBOARD = join(ROOT, "docs", "monitoring-grafana.json");
const PAGE = readFileSync(join(ROOT, "docs", "monitoring.md"), "utf8");

let server: TestServer;
let families: readonly Family[];
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  families = server.server.kernel.metrics.families;
  const account = await server.account();
  await account.post("/v1/meter/m/refill", { amount: 1 });
});
afterAll(() => server.stop());

/** Those of a server with an archive, or in a cluster. */
function optionalFamilies(): readonly Family[] {
  const metrics = new Metrics();
  declareArchiveMetrics({ metrics }, { status: {} } as never);
  declareNodeMetrics(metrics, {
    errors: new EngineErrors(),
    elections: () => 1,
    place: () => ({ role: "leader", epoch: 1, seq: 1, lag: 0 }),
  });
  declareLeaderMetrics(metrics, { appendSeconds: new Histogram([1]) } as never, {} as never);
  return metrics.families;
}

/** The parts of a histogram, as PromQL names them. */
const withoutEnding = (name: string) => name.replace(/_(bucket|sum|count)$/, "");

describe("docs/monitoring.md", () => {
  /** The rows of the table of metrics. */
  const rows = [...PAGE.matchAll(/^\| `((?:ninefold|process)_\w+)` \| (\w+) \| ([^|]*)\| (.+) \|$/gm)];

  test("lists exactly every metric with its type and labels", () => {
    const documented = rows.map(([, name, type, labels = ""]) => ({
      name,
      type,
      labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label),
    }));
    const declared = [...families, ...optionalFamilies()].map(({ name, type, labels }) => ({
      name,
      type,
      labels: [...labels],
    }));
    const byName = (a: { name: unknown }, b: { name: unknown }) =>
      String(a.name).localeCompare(String(b.name));
    expect(documented.sort(byName) as unknown).toEqual(declared.sort(byName));
  });

  test("describes each metric", () => {
    expect(rows.length).toBe(families.length + optionalFamilies().length);
    for (const [, , , , meaning = ""] of rows) expect(meaning.length).toBeGreaterThan(5);
  });

  test("lists every value of labels with few values", () => {
    for (const { name, samples } of families) {
      const row = rows.find(([, documented]) => documented === name)?.[0] ?? "";
      for (const { labels } of samples()) {
        for (const label of ["outcome", "trigger"] as const) {
          if (labels[label] !== undefined) expect(row, name).toContain(`\`${labels[label]}\``);
        }
        if (name === "ninefold_webhooks_ingested_total") expect(row).toContain(`\`${labels["status"]}\``);
      }
    }
  });
});

describe("GET /metrics", () => {
  test("has every metric with a value, with the declared labels and help", async () => {
    const shown = (await scrape(server.client(null))).families;
    // Neither a backup nor a monitor nor a probe exists.
    const valueless = /^ninefold_last_backup_|^ninefold_monitor_(?!checks_total$)|^ninefold_probe_online$/;
    const expected = families.filter(({ name }) => !valueless.test(name));
    expect(shown.map(({ name }) => name)).toEqual(expected.map(({ name }) => name));
    for (const [index, { name, type, help, labels }] of expected.entries()) {
      const family = shown[index];
      expect([family?.type, family?.help]).toEqual([type, help]);
      for (const series of family?.series ?? []) {
        const names = Object.keys(series.labels).filter((label) => label !== "le");
        expect(names.sort(), name).toEqual([...labels].sort());
      }
    }
  });

  test("follows Prometheus's rules: help, base units, totals, complete histograms, limited labels", async () => {
    for (const { name, type, help, series } of (await scrape(server.client(null))).families) {
      expect(help, name).toMatch(/^[A-Z1].*[.0]$/);
      expect(name).not.toMatch(
        /_(ms|milliseconds|minutes|hours|days|kilobytes|megabytes|percent|gauge|histogram|timer)(_|$)/,
      );
      expect(name.endsWith("_total"), name).toBe(type === "counter");
      for (const { labels, value } of series) {
        expect(Number.isFinite(value), name).toBe(true);
        for (const label of Object.keys(labels)) {
          expect(label, name).toMatch(
            /^(operation|status|kind|method|result|outcome|reason|trigger|version|bun_version|le)$/,
          );
        }
        if (type !== "gauge") expect(value, name).toBeGreaterThanOrEqual(0);
      }
      if (type !== "histogram") continue;
      const bySeries = Map.groupBy(series, ({ labels: { le, ...rest } }) => JSON.stringify(rest));
      for (const [labels, parts] of bySeries) {
        const buckets = parts.filter((part) => part.name === `${name}_bucket`);
        const bounds = buckets.map(({ labels: { le } }) => Number(le?.replace("Inf", "Infinity")));
        expect(bounds, labels).toEqual([...bounds].sort((a, b) => a - b));
        expect(bounds.at(-1)).toBe(Number.POSITIVE_INFINITY);
        const counts = buckets.map(({ value }) => value);
        expect(counts, labels).toEqual([...counts].sort((a, b) => a - b));
        expect(parts.find((part) => part.name === `${name}_count`)?.value).toBe(counts.at(-1));
        expect(parts.length).toBe(buckets.length + 2);
      }
    }
  });

  test("the process and the version", async () => {
    const seen = await scrape(server.client(null));
    expect(seen.value("ninefold_build_info", { version, bun_version: Bun.version })).toBe(1);
    expect(seen.value("process_resident_memory_bytes")).toBeGreaterThan(10_000_000);
    expect(seen.value("process_cpu_seconds_total")).toBeGreaterThan(0);
    // On a server whose clock is not running, the start is before that time.
    const uptime = server.clock.now() / 1000 - seen.value("process_start_time_seconds");
    expect(uptime).toBeGreaterThan(0);
    expect(uptime).toBeLessThanOrEqual(process.uptime());
  });

  test("the last backup, if there is one", () => {
    const metrics = new Metrics();
    let at: number | null = null;
    declareKernelMetrics(
      { ...server.server.kernel, metrics },
      { requestsInFlight: () => 0, lastBackupAt: () => at },
    );
    const backup = metrics.families.find(({ name }) => name === "ninefold_last_backup_timestamp_seconds");
    expect([...(backup?.samples() ?? [])]).toEqual([]);
    at = 1_700_000_000_500;
    expect([...(backup?.samples() ?? [])]).toEqual([{ labels: {}, value: 1_700_000_000.5 }]);
  });
});

/** A rule in the file of alerts. */
interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string };
}

test("the alert rules use existing metrics, labels and values", () => {
  const file = Bun.YAML.parse(readFileSync(ALERTS, "utf8")) as { groups: { rules: AlertRule[] }[] };
  const rules = file.groups.flatMap((group) => group.rules);
  expect(rules.length).toBeGreaterThan(10);
  for (const { alert, expr, labels, annotations } of rules) {
    expect(alert).toMatch(/^Ninefold[A-Za-z]+$/);
    expect(["page", "ticket"]).toContain(labels.severity);
    expect(annotations.summary).toContain("$labels.instance");
    const known = [...families, ...optionalFamilies()];
    const asked = [...expr.matchAll(/\b((?:ninefold|process)_\w+)(?:\{([^}]*)\})?/g)];
    for (const [, name = "", selectors = ""] of asked) {
      const family = known.find((family) => family.name === name || family.name === withoutEnding(name));
      expect(family?.name, `${alert} uses ${name}`).toBeDefined();
      for (const [, label = "", text = ""] of selectors.matchAll(/(\w+)[=!~]+"([^"]*)"/g)) {
        expect(family?.labels, alert).toContain(label);
        const values = families.flatMap((family) =>
          [...family.samples()].map((sample) => sample.labels[label]),
        );
        for (const value of text.split("|")) expect(values, alert).toContain(value);
      }
    }
    if (alert !== "NinefoldDown") expect(asked.length, alert).toBeGreaterThan(0);
  }
});

/** What the test reads of the dashboard. */
interface Dashboard {
  readonly panels: readonly {
    readonly title: string;
    readonly gridPos: { readonly x: number; readonly y: number };
    readonly targets: readonly { readonly expr: string }[];
  }[];
}

test("the Grafana dashboard uses existing metrics, labels and parts of histograms", () => {
  const { panels } = JSON.parse(readFileSync(DASHBOARD, "utf8")) as Dashboard;
  expect(panels.length).toBeGreaterThan(10);
  const places = panels.map(({ gridPos: { x, y } }) => `${x} ${y}`);
  expect(new Set(places).size).toBe(panels.length);
  const known = [...families, ...optionalFamilies()];
  for (const { title, targets } of panels) {
    for (const { expr } of targets) {
      const used = [...expr.matchAll(/\b((?:ninefold|process)_\w+)\{([^}]*)\}/g)];
      expect(used.length, title).toBeGreaterThan(0);
      for (const [, name = "", selectors = ""] of used) {
        const family = known.find((family) => family.name === name || family.name === withoutEnding(name));
        expect(family, `${title} uses ${name}`).toBeDefined();
        expect(name.endsWith("_bucket"), name).toBe(family?.type === "histogram");
        const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, by = ""]) => by.split(", "));
        const selected = [...selectors.matchAll(/(\w+)[=!~]+"/g)].map(([, label = ""]) => label);
        for (const label of [...grouped, ...selected])
          if (!["instance", "le"].includes(label)) expect(family?.labels, title).toContain(label);
      }
    }
  }
});

/** Installed, or taken from its package by `test/support/promtool`. */
const OWN_PROMTOOL = join(ROOT, ".tools", "promtool", "promtool");
const promtool = Bun.which("promtool") ?? (existsSync(OWN_PROMTOOL) ? OWN_PROMTOOL : null);
if (promtool !== null) {
  test("promtool reports nothing", async () => {
    const { text } = await server.client(null).get("/metrics");
    const metrics = Bun.spawnSync([promtool, "check", "metrics"], { stdin: Buffer.from(text) });
    expect([metrics.exitCode, metrics.stdout.toString(), metrics.stderr.toString()]).toEqual([0, "", ""]);
    const rules = Bun.spawnSync([promtool, "check", "rules", ALERTS]);
    expect([rules.exitCode, rules.stderr.toString()]).toEqual([0, ""]);
    // It detects errors.
    const wrong = Buffer.from(text.replaceAll("ninefold_commits_total", "ninefold_commits"));
    expect(Bun.spawnSync([promtool, "check", "metrics"], { stdin: wrong }).exitCode).not.toBe(0);
  });
}
