import { describe, expect, test } from "bun:test";
import { XMLParser, XMLValidator } from "fast-xml-parser";
import { HtmlValidate } from "html-validate";
import { uptimeOf } from "../../../src/areas/status-pages/domain.ts";
import type {
  PageIncident,
  PageMaintenance,
  PageOutage,
} from "../../../src/areas/status-pages/event-reader.ts";
import { type EventDeps, OUTAGES_MAX } from "../../../src/areas/status-pages/events.ts";
import type { MonitorWithHistory, PageDay } from "../../../src/areas/status-pages/ports.ts";
import { badgeOf } from "../../../src/areas/status-pages/rendering/badge.ts";
import { hourBarsOf, shadeOf } from "../../../src/areas/status-pages/rendering/bars.ts";
import { maintenanceCalendar } from "../../../src/areas/status-pages/rendering/calendar.ts";
import { durationText } from "../../../src/areas/status-pages/rendering/dates.ts";
import { statusFeed, statusJson } from "../../../src/areas/status-pages/rendering/feed.ts";
import { statusHtml, UNFOLDED_MONITORS_MAX } from "../../../src/areas/status-pages/rendering/html.ts";
import { PageTimes } from "../../../src/areas/status-pages/rendering/times.ts";
import { PAGE_DEFAULTS, type PageSettings } from "../../../src/areas/status-pages/schema.ts";
import { BARS_MAX, buildView, type StatusView } from "../../../src/areas/status-pages/view.ts";
import { html, paragraphs } from "../../../src/kernel/data/markup.ts";
import { DAY_MS, dayOf } from "../../../src/kernel/time/units.ts";
import { processorMs } from "../../support/processor-time.ts";
import { TEST_START_MS } from "../../support/server.ts";

const NOW = TEST_START_MS;
const HOUR_MS = DAY_MS / 24;

const INCIDENT: PageIncident = {
  id: "inc_1",
  kind: "manual",
  title: "Slow <search>",
  impact: "degraded",
  status: "identified",
  public: true,
  monitorIds: ["m1"],
  startedAt: NOW - HOUR_MS,
  resolvedAt: null,
  titleGiven: true,
  updatesCount: 2,
  updates: [
    { at: NOW - 1_000, status: "identified", message: "Found & <fixed>", links: [] },
    {
      at: NOW - HOUR_MS,
      status: "investigating",
      message: "We look.\nSee https://example.com/x.",
      links: null,
    },
  ],
};
const MAINTENANCE: PageMaintenance = {
  id: "mnt_1",
  title: "New disks",
  message: "Short breaks.",
  public: true,
  monitorIds: ["m2"],
  startsAt: NOW - HOUR_MS,
  endsAt: NOW + HOUR_MS,
  announcedAt: NOW - DAY_MS,
};

interface Given {
  /** States of the monitors `Name 1`, `Name 2` and so on. */
  readonly monitors?: readonly ("up" | "down" | "unknown" | "slow" | "paused" | "overdue")[];
  readonly incidents?: readonly PageIncident[];
  readonly outages?: readonly PageOutage[];
  readonly maintenance?: readonly PageMaintenance[];
  readonly settings?: Partial<PageSettings>;
  readonly days?: readonly (PageDay & { readonly day: number })[];
  readonly hours?: ReturnType<MonitorWithHistory["hours"]>;
  readonly hasTarget?: boolean;
}

function view({
  monitors = ["up", "up"],
  incidents = [],
  outages = [],
  maintenance = [],
  settings = {},
  days = [],
  hours = [],
  hasTarget = true,
}: Given) {
  const rows: MonitorWithHistory[] = monitors.map((state, index) => ({
    ref: index + 1,
    monitorId: `m${index + 1}`,
    projectRef: 1,
    latencyMs: 20,
    lastCheckedAt: NOW - 1_000,
    status: state === "slow" || state === "paused" ? "up" : state === "overdue" ? "unknown" : state,
    degraded: state === "slow",
    overdue: state === "overdue",
    name: `Name ${index + 1}`,
    isNamed: true,
    hasTarget,
    url: "https://example.com/",
    isActive: state !== "paused",
    certificateDays: () => null,
    domainDays: () => null,
    days: () => new Map(days.map((row) => [row.day, row])),
    hours: () => hours,
  }));
  const find = (id: string) => rows.find(({ monitorId }) => monitorId === id) ?? null;
  const deps: EventDeps = {
    monitors: { find, findWithHistory: find },
    eventReader: {
      incident: () => null,
      incidents: () => incidents,
      maintenance: async () => maintenance,
      outages: () => outages,
    },
  };
  const groups = [{ name: "Shop", monitor_ids: rows.map(({ monitorId }) => monitorId) }];
  const page = {
    ref: 1,
    id: "page_1",
    accountRef: 1,
    projectRef: 1,
    slug: "acme",
    createdAt: NOW,
    updatedAt: NOW,
    managedBy: null,
    settings: { ...PAGE_DEFAULTS, title: "Acme", groups, ...settings },
  };
  return buildView(deps, page, NOW);
}

const ASSETS = { style: "s.css", hasMail: true, times: new PageTimes("UTC", false) };
const rendered = (shown: StatusView) => statusHtml(shown, ASSETS);

describe("the sentence", () => {
  test.each<[string, Given, string, string]>([
    ["all up", {}, "up", "All systems operational"],
    ["up next to paused", { monitors: ["up", "paused"] }, "up", "1 of 2 systems operational, 1 paused"],
    [
      "up next to unknown",
      { monitors: ["unknown", "up", "up"] },
      "up",
      "2 of 3 systems operational, 1 without data",
    ],
    [
      "up next to paused and unknown ones",
      { monitors: ["up", "paused", "unknown", "paused"] },
      "up",
      "1 of 4 systems operational, 2 paused, 1 without data",
    ],
    ["nothing on the page", { monitors: [] }, "unknown", "No data yet"],
    ["not checked yet", { monitors: ["unknown", "paused"] }, "unknown", "No data yet"],
    [
      "one of them",
      { monitors: ["up", "down", "up", "paused"] },
      "down",
      "Partial outage: 1 of 3 systems is down",
    ],
    ["some of them", { monitors: ["up", "down", "down"] }, "down", "Partial outage: 2 of 3 systems are down"],
    ["all of them", { monitors: ["down", "down"] }, "down", "Major outage"],
    [
      "all that are known",
      { monitors: ["down", "paused", "unknown", "paused"] },
      "down",
      "Outage: 1 system is down, 2 paused, 1 without data",
    ],
    [
      "all but one that is paused",
      { monitors: ["down", "down", "paused"] },
      "down",
      "Outage: 2 systems are down, 1 paused",
    ],
    ["a slow one", { monitors: ["up", "slow"] }, "degraded", "Degraded performance"],
    ["an incident of degraded performance", { incidents: [INCIDENT] }, "degraded", "Degraded performance"],
    [
      "an incident of an outage",
      { incidents: [{ ...INCIDENT, impact: "outage" }] },
      "down",
      "Partial outage: 1 of 2 systems is down",
    ],
    [
      "an incident of an outage without monitors",
      { incidents: [{ ...INCIDENT, impact: "outage", monitorIds: [] }] },
      "down",
      "Partial outage",
    ],
    ["maintenance", { maintenance: [MAINTENANCE] }, "maintenance", "Under maintenance"],
    [
      "down during maintenance",
      { monitors: ["up", "down"], maintenance: [MAINTENANCE] },
      "maintenance",
      "Under maintenance",
    ],
    [
      "down next to maintenance",
      { monitors: ["down", "up"], maintenance: [MAINTENANCE] },
      "down",
      "Partial outage: 1 of 2 systems is down",
    ],
  ])("%s", async (_, given, state, sentence) => {
    expect(await view(given)).toMatchObject({ state, sentence });
  });
});

describe("incidents", () => {
  const resolved = { ...INCIDENT, id: "inc_2", resolvedAt: NOW - 1 };
  const auto: PageIncident = {
    ...INCIDENT,
    kind: "auto",
    title: "secret.internal is down",
    titleGiven: false,
    public: false,
    updatesCount: 0,
    updates: [],
  };
  const titles = async (given: Given) => (await view(given)).incidents.map(({ title }) => title);

  test.each<[string, Partial<PageSettings>, PageIncident, boolean]>([
    ["manual, public", {}, INCIDENT, true],
    ["manual, not public", {}, { ...INCIDENT, public: false }, false],
    ["manual, without monitors", {}, { ...INCIDENT, monitorIds: [] }, true],
    ["manual, of monitors on other pages", {}, { ...INCIDENT, monitorIds: ["m9"] }, false],
    ["automatic, with publish_incidents manual", {}, auto, false],
    ["automatic, with publish_incidents all", { publish_incidents: "all" }, auto, true],
    [
      "automatic, of monitors on other pages",
      { publish_incidents: "all" },
      { ...auto, monitorIds: ["m9"] },
      false,
    ],
    ["manual, with publish_incidents none", { publish_incidents: "none" }, INCIDENT, false],
  ])("%s", async (_, settings, incident, isShown) => {
    expect(await titles({ settings, incidents: [incident] })).toHaveLength(isShown ? 1 : 0);
  });

  test("an automatic title uses the names of the page", async () => {
    const settings = { publish_incidents: "all" } as const;
    expect(await titles({ settings, incidents: [auto] })).toEqual(["Name 1 is down"]);
    expect(await titles({ settings, incidents: [{ ...auto, resolvedAt: NOW }] })).toEqual([
      "Name 1 was down",
    ]);
  });

  test("open incidents come first, resolved ones are past incidents", async () => {
    const text = await rendered(await view({ incidents: [INCIDENT, { ...resolved, title: "Over" }] }));
    const order = ["Open incidents", "Slow &lt;search&gt;", "Shop", "Past incidents", "Over"];
    const positions = order.map((word) => text.indexOf(`>${word}<`));
    expect(positions).toEqual(positions.toSorted((position, other) => position - other));
    expect(positions[0]).toBeGreaterThan(0);
    expect(text.indexOf("identified")).toBeLessThan(text.indexOf("investigating"));
  });
});

describe("maintenance", () => {
  const shown = async (more: Partial<PageMaintenance>) =>
    (await view({ maintenance: [{ ...MAINTENANCE, ...more }] })).maintenance;
  test("is shown if it is public and concerns the page or no monitor", async () => {
    expect(await shown({})).toHaveLength(1);
    expect(await shown({ monitorIds: [] })).toHaveLength(1);
    expect(await shown({ monitorIds: ["m9"] })).toEqual([]);
    expect(await shown({ public: false })).toEqual([]);
  });

  test("that is over appears in the feed only", async () => {
    const over = await view({ maintenance: [{ ...MAINTENANCE, endsAt: NOW - 1 }] });
    expect(over.sentence).toBe("All systems operational");
    expect(await statusHtml(over, ASSETS)).not.toContain("New disks");
    expect(await statusFeed(over, "http://x/status/acme")).toContain("New disks");
  });
});

test("latency is shown of targets, and not of heartbeats", async () => {
  const settings = { show_latency: true };
  const shown = async (hasTarget: boolean) =>
    (await view({ settings, hasTarget })).groups.flatMap(({ monitors }) =>
      monitors.map((monitor) => monitor?.latencyMs),
    );
  expect(await shown(true)).toEqual([20, 20]);
  expect(await shown(false)).toEqual([null, null]);
});

const FULL: Given = {
  incidents: [INCIDENT, { ...INCIDENT, id: "inc_2", resolvedAt: NOW - 1 }],
  maintenance: [MAINTENANCE],
  settings: { show_latency: true, show_urls: true, footer: "f", description: "d" },
};

test("a page with everything is valid HTML, Atom and JSON", async () => {
  const full = await view(FULL);
  const validator = new HtmlValidate({ extends: ["html-validate:standard"] });
  const report = await validator.validateString(await statusHtml(full, ASSETS));
  expect(report.results.flatMap(({ messages }) => messages)).toEqual([]);
  const broken = await validator.validateString("<!doctype html><p><div></p>");
  expect(broken.valid).toBe(false);
  const atom = await statusFeed(full, "https://x.example/status/acme");
  expect(XMLValidator.validate(atom)).toBe(true);
  const { feed } = new XMLParser().parse(atom);
  expect(feed.entry).toHaveLength(3);
  const ids = feed.entry.map(({ id }: { id: string }) => id);
  expect(new Set(ids).size).toBe(3);
  expect(ids.join("")).not.toContain("inc_");
  expect(feed.entry.map(({ title }: { title: string }) => title)).toEqual([
    ...["Resolved: Slow <search>", "Slow <search>", "Maintenance: New disks"],
  ]);
  const updates = feed.entry.map(({ updated }: { updated: string }) => Date.parse(updated));
  expect(updates).toEqual([NOW - 1_000, NOW - 1, NOW - DAY_MS].toSorted((one, other) => other - one));
  expect(Date.parse(feed.updated)).toBe(NOW);
  expect(JSON.parse(await statusJson(full))).toMatchObject({
    incidents: [{ title: "Slow <search>", monitors: [1], resolved_at: null }, {}],
    maintenance: [{ title: "New disks", monitors: [2] }],
  });
});

test("a bar is green at 100 percent alone, and shaded by the share of the outage", async () => {
  const today = dayOf(NOW);
  const ups = [10_000, 9_999, 9_990, 9_989, 9_500, 9_499, 0];
  const days = ups.map((up, index) => ({
    day: today - (ups.length - 1 - index) * DAY_MS,
    checks: 10_000,
    up,
    latencySum: null,
    knownMs: 10_000,
    upMs: up,
    observerMs: index === 0 ? 120_000 : 0,
    maintenanceMs: index === 1 ? 60_000 : 0,
  }));
  const text = await rendered(await view({ monitors: ["up"], days }));
  const bars = [...text.matchAll(/<path(?: class="(\w+)")? d="[^"]+"><title>([^<]+)<\/title>/g)];
  expect(bars).toHaveLength(90 + 24);
  expect(
    bars
      .slice(0, 90)
      .slice(-8)
      .map(([, look = "good", title]) => [look, title?.split(": ")[1]]),
  ).toEqual([
    ["none", "no data"],
    ["good", "100%, not observed for 2 min"],
    ["s1", "99.99%, 1 min of maintenance"],
    ["s1", "99.9%"],
    ["s1", "99.89%"],
    ["s2", "95%"],
    ["s3", "94.99%"],
    ["s5", "0%"],
  ]);
  expect(bars[89]?.[2]).toStartWith("10 Mar: ");
  expect(text).toContain('aria-label="90 days: 6 days with failures"');
});

test("the last 24 hours have bars: those without checks are short, those with an outage have the full height", async () => {
  const hour = Math.floor(NOW / HOUR_MS) * HOUR_MS;
  const hours = [
    { hour: hour - 23 * HOUR_MS, checks: 60, up: 60, latencySum: null, knownMs: HOUR_MS, upMs: HOUR_MS },
    { hour: hour - HOUR_MS, checks: 60, up: 30, latencySum: null, knownMs: HOUR_MS, upMs: HOUR_MS / 2 },
  ];
  const text = await rendered(await view({ monitors: ["up"], hours }));
  const bars = [...text.matchAll(/<path(?: class="(\w+)")? d="(M\d+ \d)v\d"><title>([^<]+)<\/title>/g)].slice(
    90,
  );
  expect(bars.map(([, look = "good", at, title]) => [look, at, title])).toEqual([
    ["good", "M0 0", "13:00: 100%"],
    ...Array.from({ length: 21 }, (_, index) => [
      "none",
      `M${index + 1} 7`,
      `${String((14 + index) % 24).padStart(2, "0")}:00: no data`,
    ]),
    ["s4", "M22 0", "11:00: 50%"],
    ["none", "M23 7", "12:00: no data"],
  ]);
  expect(text).toContain('aria-label="24 hours: 1 hour with failures"');
});

describe("an open incident that names a monitor", () => {
  const states = async (given: Given) =>
    (await view(given)).groups.flatMap(({ monitors }) => monitors.map(({ state }) => state));

  test.each(["degraded", "outage"] as const)("of impact %s shows in the monitor's state", async (impact) => {
    const incidents = [{ ...INCIDENT, impact }];
    const shown = impact === "outage" ? "down" : "degraded";
    expect(await states({ incidents })).toEqual([shown, "up"]);
    expect(await states({ incidents, monitors: ["unknown", "up"] })).toEqual([shown, "up"]);
    expect(await states({ incidents, monitors: ["down", "up"] })).toEqual(["down", "up"]);
  });

  test("counts no longer when it is resolved, hidden or not shown on the page", async () => {
    expect(await states({ incidents: [{ ...INCIDENT, resolvedAt: NOW - 1 }] })).toEqual(["up", "up"]);
    expect(await states({ incidents: [{ ...INCIDENT, public: false }] })).toEqual(["up", "up"]);
    const settings = { publish_incidents: "none" } as const;
    expect(await states({ incidents: [INCIDENT], settings })).toEqual(["up", "up"]);
  });

  test("does not replace the state of a monitor under maintenance", async () => {
    const maintenance = [{ ...MAINTENANCE, monitorIds: ["m1"] }];
    expect(await states({ incidents: [INCIDENT], maintenance })).toEqual(["maintenance", "up"]);
  });
});

describe("groups", () => {
  const settings = (count: number) => ({
    groups: [
      { name: "Shop", monitor_ids: Array.from({ length: count }, (_, index) => `m${index + 1}`) },
      { name: "Partners", monitor_ids: [`m${count + 1}`] },
    ],
  });
  const monitors = (count: number) => Array<"up">(count + 1).fill("up");

  test("are unfolded on a page of up to UNFOLDED_MONITORS_MAX monitors", async () => {
    const [fits, many] = [UNFOLDED_MONITORS_MAX - 1, UNFOLDED_MONITORS_MAX];
    const small = await rendered(await view({ monitors: monitors(fits), settings: settings(fits) }));
    expect(small.split('<details class="group" open>')).toHaveLength(3);
    const large = await rendered(await view({ monitors: monitors(many), settings: settings(many) }));
    expect(large.split('<details class="group">')).toHaveLength(3);
  });

  test("with a problem are unfolded, and say how much of them is down", async () => {
    const count = UNFOLDED_MONITORS_MAX;
    const text = await rendered(
      await view({
        monitors: [...Array<"up">(count - 1).fill("up"), "down", "down"],
        settings: settings(count),
      }),
    );
    expect(text).toMatch(
      /<details class="group" open>\n<summary><h2>Shop<\/h2> <span class="state down">Partial outage</,
    );
    expect(text).toMatch(
      /<details class="group" open>\n<summary><h2>Partners<\/h2> <span class="state down">Outage</,
    );
  });
});

test("past incidents stand under their days, with their duration", async () => {
  const resolved = {
    ...INCIDENT,
    startedAt: NOW - 2 * DAY_MS,
    resolvedAt: NOW - 2 * DAY_MS + 59 * 60_000,
  };
  const text = await rendered(await view({ incidents: [resolved] }));
  const days = text.split('<h3 class="day">').slice(1);
  expect(days).toHaveLength(15);
  expect(days[0]).toStartWith('Tue 10 March</h3>\n<p class="when">No incidents.</p>');
  expect(days[2]).toContain("Sun 8 March");
  expect(days[2]).toContain("Degraded performance for <strong>59 min</strong>");
});

describe("outages", () => {
  const day = (upMs: number) => ({
    day: dayOf(NOW),
    checks: 10,
    up: 9,
    knownMs: 10_000,
    upMs,
    observerMs: 0,
    maintenanceMs: 0,
  });
  const outage = {
    id: "inc_1",
    monitorIds: ["m2"],
    startedAt: NOW - 20 * DAY_MS,
    endedAt: NOW - 20 * DAY_MS + HOUR_MS,
  };
  const continues = { id: "inc_2", monitorIds: ["m1"], startedAt: NOW - 5 * 60_000, endedAt: null };
  const elsewhere = { ...outage, id: "inc_3", monitorIds: ["m9"] };
  const body = { days: [day(9_000)], outages: [continues, elsewhere, outage] };

  test("stand under their days, with their duration, also those before the last 15 days", async () => {
    const text = await rendered(await view(body));
    const days = text.split('<h3 class="day">').slice(1);
    expect(days).toHaveLength(2);
    expect(days[0]).toContain("<h4>Name 1 is down</h4>");
    expect(days[0]).toContain("Down for <strong>5 min</strong>, since ");
    expect(days[1]).toContain("<h4>Name 2 was down</h4>");
    expect(days[1]).toContain("Down for <strong>1 h</strong>, ");
    expect(text).not.toContain("No incidents.");
  });

  test("are in the JSON, without their cause", async () => {
    const { outages } = JSON.parse(await statusJson(await view(body)));
    const [first, second] = [continues, outage].map(({ startedAt }) => new Date(startedAt).toISOString());
    const ended_at = new Date(outage.endedAt).toISOString();
    expect(outages).toEqual([
      { monitor: 1, name: "Name 1", started_at: first, ended_at: null, duration_ms: 300_000 },
      { monitor: 2, name: "Name 2", started_at: second, ended_at, duration_ms: HOUR_MS },
    ]);
  });

  test("are entries of the feed, unless their incidents are", async () => {
    const feed = async (publish_incidents: "outages" | "all") =>
      statusFeed(await view({ ...body, settings: { publish_incidents } }), "https://x.example/status/acme");
    expect(await feed("outages")).toContain("<title>Name 2 was down</title>");
    expect(await feed("all")).not.toContain("was down");
  });

  test("at most OUTAGES_MAX, the newest", async () => {
    const many = Array.from({ length: OUTAGES_MAX + 1 }, (_, index) => ({ ...outage, id: `inc_${index}` }));
    expect((await view({ outages: many })).outages.map(({ id }) => id)).toEqual(
      many.slice(0, OUTAGES_MAX).map(({ id }) => id),
    );
  });

  test.each(["none", "manual"] as const)(
    "are not shown with %s: next to failures, there is no empty list",
    async (publish_incidents) => {
      const shown = await view({ ...body, settings: { publish_incidents } });
      expect(shown.outages).toEqual([]);
      expect(await rendered(shown)).not.toContain("Past incidents");
      const healthy = await view({ outages: [], days: [day(10_000)], settings: { publish_incidents } });
      expect(await rendered(healthy)).toContain("No incidents.");
    },
  );
});

test("bars have five shades, by the share of the outage", () => {
  const uptimes = [100, 99.99, 99, 98.99, 95, 94.99, 80, 79.99, 50, 49.99, 0];
  expect(uptimes.map(shadeOf)).toEqual([0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
  const bars = hourBarsOf([null, 100, 99.5, 0], ["0", "1", "2", "3"]).text;
  expect(bars.match(/class="[^"]*" d|<path d/g)).toEqual([
    'class="none" d',
    "<path d",
    'class="s1" d',
    'class="s5" d',
  ]);
});

test.each([
  [0, "less than a minute"],
  [59 * 60_000, "59 min"],
  [60 * 60_000, "1 h"],
  [125 * 60_000, "2 h 5 min"],
  [76 * 60 * 60_000, "3 d 4 h"],
])("a duration of %d ms: %s", (ms, text) => {
  expect(durationText(ms)).toBe(text);
});

test("maintenance is a valid calendar: lines are folded and texts escaped", async () => {
  const body = { ...MAINTENANCE, title: "New disks; faster, \\o/", message: `First\nßß${"ß".repeat(100)}` };
  const calendar = maintenanceCalendar(await view({ maintenance: [body] }), "https://x.example/status/acme");
  expect(calendar).toEndWith("END:VEVENT\r\nEND:VCALENDAR\r\n");
  for (const line of calendar.split("\r\n")) expect(Buffer.byteLength(line)).toBeLessThanOrEqual(75);
  const unfolded = calendar.replaceAll("\r\n ", "");
  expect(unfolded).toContain("SUMMARY:New disks\\; faster\\, \\\\o/\r\n");
  expect(unfolded).toContain(`DESCRIPTION:Name 2\\n\\nFirst\\nßß${"ß".repeat(100)}\r\n`);
  expect(unfolded).toContain("DTSTART:20260310T110000Z\r\nDTEND:20260310T130000Z\r\n");
  expect(calendar).not.toContain("mnt_1");
});

test("a percentage is rounded down exactly, also on a badge", async () => {
  expect(uptimeOf([{ checks: 2_900, up: 2_001, knownMs: 0, upMs: 0 }])).toBe(69);
  expect(uptimeOf([{ checks: 1, up: 1, knownMs: 10_000, upMs: 6_410 }])).toBe(64.1);
  const monitor = (await view({})).groups[0]?.monitors[0];
  if (monitor === undefined) throw new Error("no monitor");
  const badge = badgeOf({
    monitor,
    metric: "uptime-90d",
    uptime: 64.1,
    certificateDays: null,
    domainDays: null,
  });
  expect(badge.message).toBe("64.1%");
});

describe("a monitor with several positions on a page", () => {
  const groups = (times: number) => [{ name: "", monitor_ids: Array<string>(times).fill("m1") }];
  const auto: PageIncident = { ...INCIDENT, kind: "auto", titleGiven: false };
  const all = { publish_incidents: "all" } as const;

  test("is named once in its incidents, and is under maintenance at all positions", async () => {
    const maintenance = [{ ...MAINTENANCE, monitorIds: ["m1"] }];
    const shown = await view({ incidents: [auto], maintenance, settings: { groups: groups(3), ...all } });
    expect(shown.incidents).toMatchObject([{ title: "Name 1 is down", numbers: [1, 2, 3] }]);
    expect(shown.groups[0]?.monitors.map(({ state }) => state)).toEqual(Array(3).fill("maintenance"));
    expect(await statusHtml(shown, ASSETS)).not.toContain("Name 1, Name 1");
    expect(await statusHtml(shown, ASSETS)).toContain("Affects Name 1</p>");
  });

  test("renders fast: 2,500 positions with the maximum of incidents and maintenance", async () => {
    const monitorIds = Array.from({ length: 100 }, (_, index) => `m${index + 1}`);
    const maintenance = Array.from({ length: 100 }, () => ({ ...MAINTENANCE, monitorIds }));
    const incidents = Array.from({ length: 50 }, () => ({ ...INCIDENT, monitorIds }));
    const settings = { groups: Array.from({ length: 50 }, () => groups(50)).flat() };
    let text = "";
    const used = await processorMs(async () => {
      text = await rendered(await view({ incidents, maintenance, settings }));
    });
    // It takes 0.2 s. Searching all positions for each monitor would take twelve.
    expect(used).toBeLessThan(2_000);
    expect(text.length).toBeLessThan(6_000_000);
  });
});

test("monitors beyond the limit of bars show numbers only", async () => {
  const monitors = Array.from({ length: BARS_MAX + 1 }, () => "up" as const);
  expect((await rendered(await view({ monitors }))).split('<svg class="bars days').length - 1).toBe(BARS_MAX);
});

test.each([
  [null, "no data", "grey"],
  [-1, "expired", "red"],
  [1, "1 day", "red"],
  [3, "3 days", "red"],
  [4, "4 days", "amber"],
  [13, "13 days", "amber"],
  [14, "14 days", "green"],
] as const)("a certificate with %p days left", async (certificateDays, message, colour) => {
  const monitor = (await view({})).groups[0]?.monitors[0];
  if (monitor === undefined) throw new Error("no monitor");
  const badge = badgeOf({ monitor, metric: "cert", uptime: null, certificateDays, domainDays: null });
  expect(badge).toEqual({ label: "Name 1 certificate", message, colour });
});

test.each([
  [null, "no data", "grey"],
  [-1, "expired", "red"],
  [7, "7 days", "red"],
  [8, "8 days", "amber"],
  [29, "29 days", "amber"],
  [30, "30 days", "green"],
] as const)("a registration with %p days left", async (domainDays, message, colour) => {
  const monitor = (await view({})).groups[0]?.monitors[0];
  if (monitor === undefined) throw new Error("no monitor");
  const badge = badgeOf({ monitor, metric: "domain", uptime: null, certificateDays: null, domainDays });
  expect(badge).toEqual({ label: "Name 1 registration", message, colour });
});

describe("templates", () => {
  test("escape values, also in lists, and omit null and false", () => {
    expect(html`<a title="${`"<'&`}">${["<", html`<b>${1}</b>`, null, false]}</a>`.text).toBe(
      '<a title="&quot;&lt;&#39;&amp;">&lt;<b>1</b></a>',
    );
    expect(html`${"\u0000\ufffe\ud800\t\r"}`.text).toBe("\ufffd\ufffd\ufffd\t\n");
  });

  test.each([
    ["one\ntwo\n\n\n\nthree", "<p>one<br>two</p><p>three</p>"],
    ["javascript:alert(1)", "<p>javascript:alert(1)</p>"],
    ["http://", "<p>http://</p>"],
    [
      '(see https://a.example/"><script>)',
      '<p>(see <a href="https://a.example/&quot;&gt;&lt;script&gt;" rel="nofollow noopener noreferrer">https://a.example/&quot;&gt;&lt;script&gt;</a>)</p>',
    ],
    ["", ""],
  ])("paragraphs of %p", (text, expected) => {
    expect(paragraphs(text).text).toBe(expected);
  });
});
