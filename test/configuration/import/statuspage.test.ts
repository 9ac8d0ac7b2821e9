import { expect, setDefaultTimeout, test } from "bun:test";
import { INCIDENT_UPDATES_MAX } from "../../../src/areas/incidents/schema.ts";
import { parseCsv } from "../../../src/configuration/import/csv.ts";
import { readStatuspage } from "../../../src/configuration/import/statuspage/read.ts";
import { importStatuspage } from "../../../src/configuration/import/statuspage/statuspage.ts";
import { readSubscribers } from "../../../src/configuration/import/statuspage/subscribers.ts";
import { TEST_START_MS } from "../../support/server.ts";
import { COMPONENTS, GROUPS, INCIDENTS, PAGE, SUBSCRIBERS } from "./statuspage-fixture.ts";
import { losses, useImports } from "./support.ts";

/** Busy machines take longer. */
setDefaultTimeout(60_000);

const imports = useImports();

function imported(...files: readonly (object | string)[]) {
  const texts = files.map((file, index) => ({
    path: `${index}.json`,
    text: typeof file === "string" ? file : JSON.stringify(file),
  }));
  return imports.run((draft) => importStatuspage(draft, readStatuspage(texts), TEST_START_MS));
}

type Sections = Record<string, Record<string, Record<string, unknown>>>;

test("components become manual monitors, groups those of a page, and incidents keep their times and updates", async () => {
  const result = imported(PAGE, COMPONENTS, GROUPS, INCIDENTS, SUBSCRIBERS);
  const { monitors, incidents, maintenance, status_pages } = Bun.YAML.parse(result.text) as Sections;
  expect(monitors).toEqual({
    API: { type: "manual", group: "Services" },
    Website: { type: "manual" },
    Worker: { type: "manual", group: "Services" },
  });
  expect(status_pages).toEqual({
    acme: {
      title: "Acme",
      description: "The status of Acme.",
      index: true,
      groups: [
        { name: "Services", monitors: ["API", "Worker"] },
        { name: "", monitors: ["Website"] },
      ],
    },
  });
  expect(maintenance).toEqual({
    "Move of the database": {
      starts_at: "2026-03-20T22:00:00.000Z",
      ends_at: "2026-03-20T23:00:00.000Z",
      public: true,
      monitors: ["API"],
    },
  });
  expect(incidents).toEqual({
    Slow: {
      impact: "degraded",
      monitors: [],
      public: true,
      started_at: "2026-03-01T09:00:00.123Z",
      resolved_at: "2026-03-01T10:30:00.000Z",
      updates: [],
    },
    "Slow (2026-03-02)": {
      impact: "degraded",
      monitors: ["Website"],
      public: true,
      started_at: "2026-03-02T10:00:00.000Z",
      resolved_at: "2026-03-02T11:00:00.000Z",
      updates: [
        { at: "2026-03-02T10:30:00.000Z", status: "monitoring", message: "It works." },
        { at: "2026-03-02T10:40:00.000Z", status: "investigating", message: "Back again." },
        { at: "2026-03-02T11:00:00.000Z", status: "resolved", message: "It works again." },
        { at: "2026-03-03T10:00:00.000Z", status: "resolved", message: "What happened." },
      ],
    },
    "API down": {
      impact: "outage",
      monitors: ["API"],
      public: true,
      started_at: "2026-03-10T11:30:00.000Z",
      updates: [
        { at: "2026-03-10T11:31:00.000Z", status: "investigating", message: "We look into it." },
        { at: "2026-03-10T11:40:00.000Z", status: "identified", message: "It is the database." },
      ],
    },
  });
  expect(losses(result)).toEqual([
    "incident Long ago: resolved_at: is more than 400 days ago, after which incidents are deleted",
    "incident Upgrade: scheduled_until: has passed: past maintenance is not carried over",
    "component Website: description: not carried over",
    "component Worker: only_show_if_degraded: is always shown",
    "incident Slow: components: there is no component Gone",
    "incident Slow: postmortem_body: not carried over",
    "page Acme: support_url: not carried over",
    "page Acme: css_body_background_color: not carried over",
    "component Worker: status is operational, not degraded_performance: create an incident if it is not",
    "page Acme: domain is another one: status.acme.example leads to the new page if you redirect it",
    "page Acme: url is another one: https://status.acme.example leads to the new page if you redirect it",
    "page Acme: time_zone is that of the project: set Europe/Berlin there",
    "Statuspage: subscribers are not part of a file: import the 4 with ninefold page subscribers import SLUG FILE",
  ]);
  const [before, after] = await imports.apply(result.text);
  expect(before).toHaveLength(8);
  expect(after).toEqual([]);
});

test("tables have components and incidents too, a row for each update", () => {
  const components = 'Name,Group,Status\r\nAPI,Services,operational\r\n"Web, shop",,operational\r\n';
  const incidents = [
    "Incident name,Impact,Status,Started,Resolved,Components,Update at,Update status,Message",
    'API down,major,resolved,2026-03-01 10:00 UTC,2026-03-01 11:00 UTC,API; Web shop,2026-03-01 10:05 UTC,identified,"It is ""the"" database,',
    'and slow."',
    "API down,major,resolved,2026-03-01 10:00 UTC,2026-03-01 11:00 UTC,API; Web shop,2026-03-01 11:00 UTC,resolved,Fixed.",
  ].join("\n");
  const result = imported(components, incidents);
  const sections = Bun.YAML.parse(result.text) as Sections;
  expect(sections["monitors"]).toEqual({
    API: { type: "manual", group: "Services" },
    "Web, shop": { type: "manual" },
  });
  expect(sections["incidents"]).toEqual({
    "API down": {
      impact: "outage",
      monitors: ["API"],
      public: true,
      started_at: "2026-03-01T10:00:00.000Z",
      resolved_at: "2026-03-01T11:00:00.000Z",
      updates: [
        { at: "2026-03-01T10:05:00.000Z", status: "identified", message: 'It is "the" database,\nand slow.' },
        { at: "2026-03-01T11:00:00.000Z", status: "resolved", message: "Fixed." },
      ],
    },
  });
  expect(sections["status_pages"]?.["status"]?.["title"]).toBe("Status");
});

test("the public summary of a page, whose components have their incidents", () => {
  const { text } = imported({
    page: {
      id: "x",
      name: "Acme",
      url: "https://acme.example",
      time_zone: "Etc/UTC",
      updated_at: "2026-03-01T00:00:00Z",
    },
    status: { indicator: "none", description: "All Systems Operational" },
    components: COMPONENTS,
    incidents: INCIDENTS.slice(1, 2),
    scheduled_maintenances: INCIDENTS.slice(0, 1),
  });
  const sections = Bun.YAML.parse(text) as Sections;
  expect(Object.keys(sections)).toEqual(["ninefold", "monitors", "maintenance", "incidents", "status_pages"]);
});

test("an incident with more than fits keeps its newest updates", () => {
  const updates = (count: number, length: number) =>
    Array.from({ length: count }, (_, index) => ({
      status: "investigating",
      body: `${index} ${"x".repeat(length)}`,
      display_at: new Date(TEST_START_MS - (count - index) * 60_000).toISOString(),
    }));
  const run = (count: number, length: number) => {
    const incident = { ...INCIDENTS[1], incident_updates: updates(count, length) };
    const result = imported(COMPONENTS, [incident]);
    const list = (Bun.YAML.parse(result.text) as Sections)["incidents"]?.["API down"]?.[
      "updates"
    ] as object[];
    return { list, notes: losses(result).filter((note) => note.includes("incident_updates")) };
  };
  expect(run(INCIDENT_UPDATES_MAX, 10)).toMatchObject({ list: { length: INCIDENT_UPDATES_MAX }, notes: [] });
  const many = run(INCIDENT_UPDATES_MAX + 1, 10);
  expect(many.list).toHaveLength(INCIDENT_UPDATES_MAX);
  expect(many.notes).toEqual([
    "incident API down: incident_updates: only the newest 100 of 101 are carried over",
  ]);
  expect(run(20, 4_000).list).toHaveLength(11);
});

test("what is no export of Statuspage is an error", () => {
  expect(() => imported("[]")).toThrow("have no components");
  expect(() => imported("[1]")).toThrow("0.json has a list of items that are no components");
  expect(() => imported("a,b\n1,2\n")).toThrow("must be JSON, or a table");
  expect(() => imported({ components: [1] })).toThrow("component 1 must be an object.");
});

test("tables are read as RFC 4180 has them", () => {
  expect(parseCsv('\uFEFFa,b\r\n"x\n""y""", z \n\n,\n1,', "a.csv")).toEqual([
    ["a", "b"],
    ['x\n"y"', " z "],
    ["1", ""],
  ]);
  expect(() => parseCsv('a\n"b\n', "a.csv")).toThrow("a.csv: the quoted value in line 2 does not end.");
  expect(() => parseCsv(`${",".repeat(200)}\n`, "a.csv")).toThrow("a.csv: line 1 has more than 200 values.");
  expect(parseCsv("", "a.csv")).toEqual([]);
});

test("subscribers are read from JSON, from tables with and without a head, and from lines", () => {
  const now = Date.UTC(2026, 0, 1);
  const emails = (text: string) =>
    readSubscribers(text, "subscribers", now).addresses.map(({ email }) => email);
  expect(readSubscribers(JSON.stringify(SUBSCRIBERS), "subscribers", now)).toEqual({
    addresses: [
      { email: "Ann@example.com", confirmed_at: "2025-02-01T12:00:00.000Z" },
      { email: "cleo@example.com", confirmed_at: "2025-02-03T12:00:00.000Z" },
    ],
    skipped: { "sms in place of e-mail": 1, quarantined: 1 },
  });
  expect(
    readSubscribers(
      "Mode,Email,State,Created at\nemail,a@example.com,active,2025-02-01 12:00:00 UTC\nemail,b@example.com,unconfirmed,\nemail,A@example.com,active,\n",
      "s",
      now,
    ),
  ).toEqual({
    addresses: [{ email: "a@example.com", confirmed_at: "2025-02-01T12:00:00.000Z" }],
    skipped: { "not confirmed": 1, "the same address again": 1 },
  });
  expect(emails("email,a@example.com,yes\nsms,5551234,US\nemail,b@example.com,no,API\n")).toEqual([
    "a@example.com",
    "b@example.com",
  ]);
  expect(emails("a@example.com\nb@example.com\n")).toEqual(["a@example.com", "b@example.com"]);
  const future = "email,created_at\na@example.com,2026-01-01T00:00:00.001Z\n";
  expect(readSubscribers(future, "s", now).addresses).toEqual([{ email: "a@example.com" }]);
  expect(() => emails("")).toThrow("subscribers has no subscribers.");
});
