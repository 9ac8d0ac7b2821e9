import { beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { isRenamable } from "../../src/configuration/read.ts";
import { type AccountClient, useTestServer } from "../support/server.ts";
import { Configured } from "./support.ts";

/** Busy machines take longer. */
setDefaultTimeout(60_000);

const server = useTestServer({ manualClock: true, args: ["--allow-private-targets", "all"] });
let account: AccountClient;
let configured: Configured;
beforeEach(async () => {
  account = await server.account({ tier: "unlimited" });
  configured = new Configured(server, account.key ?? "");
});

/** The fields of a resource of each kind, as they stand in a file. */
const FIELDS: Readonly<Record<string, string>> = {
  keys: "prefix: acme, scopes: [orders]",
  flags: "enabled: true, description: A, tags: [team]",
  channels: "kind: slack, url: { env: SLACK_URL }",
  endpoints: "url: https://example.com/hooks, secret: { env: WHSEC }",
  buckets: "target_url: https://example.com/in, state: live",
  monitors: "type: heartbeat, period_ms: 60000",
  maintenance: 'schedule: "0 3 * * 0", duration_ms: 3600000',
  status_pages: "title: Shop",
  schedules: 'cron: "0 3 * * *", target_url: https://example.com/',
};

const file = (section: string, name: string, more = "") =>
  `ninefold: 1\n${section}:\n  ${name}: { ${FIELDS[section]}${more} }\n`;

test("every kind with a name that can change is covered", () => {
  const named = configured.kinds
    // A record of the past is never deleted, so that nothing looks like its new name.
    .filter(({ facts }) => facts.isSingle !== true && facts.isRecord !== true)
    .filter(isRenamable)
    .map(({ section }) => section);
  expect(Object.keys(FIELDS).sort()).toEqual(named.sort());
});

test("renamed_from is a mistake where the name cannot change", async () => {
  const text = "ninefold: 1\nprobes:\n  attic: { renamed_from: cellar }\n";
  await expect(configured.plan(text)).rejects.toThrow("the name of one of probes cannot change");
});

describe.each(Object.keys(FIELDS))("%s", (section) => {
  const unique = crypto.randomUUID().slice(0, 8);
  const [before, after] = [`old-${unique}`, `new-${unique}`];

  test("a rename keeps the resource, and is done once", async () => {
    await configured.apply(file(section, before));
    const kind = configured.kind(section);
    const list = async () =>
      (await account.get(kind.listPath)).body[kind.itemsKey] as Record<string, unknown>[];
    const idOf = (name: string, items: Record<string, unknown>[]) =>
      items.find((item) => item[kind.facts.name] === name)?.[kind.idKey];
    const id = idOf(before, await list());
    expect(id).toBeString();
    const renamed = file(section, after, `, renamed_from: ${before}`);
    const steps = await configured.plan(renamed, true);
    expect(steps.map(({ action, name, renamed_from }) => [action, name, renamed_from])).toEqual([
      ["rename", after, before],
    ]);
    await configured.apply(renamed, true);
    const items = await list();
    expect(idOf(before, items)).toBeUndefined();
    // A flag is its key.
    expect(idOf(after, items)).toBe(section === "flags" ? after : id);
    expect(await configured.lines(renamed, true)).toEqual([]);
    expect(await configured.lines(file(section, after), true)).toEqual([]);
  });

  test("a deletion and a creation that look like a rename are a warning", async () => {
    await configured.apply(file(section, before.replace("old", "was")));
    const warnings = (prune: boolean) =>
      configured.warnings(file(section, after.replace("new", "is")), prune);
    const [warning] = await warnings(true);
    expect(warning).toContain(`${section}.is-${unique} looks like was-${unique} with a new name`);
    expect(warning).toContain(`add renamed_from: was-${unique}`);
    expect(await warnings(false)).toHaveLength(1);
  });
});

test("changed fields are changed by the same step, and references follow the new name", async () => {
  const text = `ninefold: 1
monitors:
  site: { url: https://example.com/, interval: 60000 }
status_pages:
  ${`p-${crypto.randomUUID()}`}: { title: Shop, monitors: [site] }
`;
  await configured.apply(text);
  const renamed = text
    .replace("  site: {", "  shop: { renamed_from: site,")
    .replace("60000", "90000")
    .replace("[site]", "[shop]");
  expect(await configured.lines(renamed, true)).toEqual(["rename monitors.shop interval"]);
  await configured.apply(renamed, true);
  expect(await configured.lines(renamed, true)).toEqual([]);
});

test("a flag keeps the settings that the file does not name", async () => {
  await configured.apply("ninefold: 1\nflags:\n  old: { enabled: true, description: Kept, tags: [team] }\n");
  await configured.apply("ninefold: 1\nflags:\n  new: { enabled: false, renamed_from: old }\n");
  expect(await configured.export()).toContain(
    "new:\n    enabled: false\n    description: Kept\n    tags:\n      - team\n",
  );
});

test("a heartbeat with the slug of a missing one names the rename", async () => {
  const text = (name: string) => `ninefold: 1\nmonitors:\n  ${name}: { type: heartbeat, slug: job }\n`;
  await configured.apply(text("nightly"));
  await expect(configured.plan(text("daily"), true)).rejects.toThrow(
    "slug of monitors.daily is that of nightly: choose another one, or add renamed_from: nightly if daily is its new name",
  );
});

test("without a resource of the former name, one is created", async () => {
  const text = "ninefold: 1\nflags:\n  new: { enabled: true, renamed_from: old }\n";
  expect(await configured.lines(text)).toEqual(["create flags.new"]);
});

test("what differs is no rename", async () => {
  await configured.apply("ninefold: 1\nmonitors:\n  a: { url: https://a.example.com/, interval: 60000 }\n");
  const other =
    "ninefold: 1\nmonitors:\n  b: { type: tcp, host: b.example.com, port: 25, interval: 90000 }\n";
  expect(await configured.warnings(other, true)).toEqual([]);
});

test.each([
  ["its own name", "a: { enabled: true, renamed_from: a }", "must be the former name, not a itself"],
  [
    "a name of the file",
    "a: { enabled: true, renamed_from: b }\n  b: { enabled: true }",
    "renamed_from of flags.a: b belongs to flags.b of this file, too",
  ],
  [
    "a name twice",
    "a: { enabled: true, renamed_from: c }\n  b: { enabled: true, renamed_from: c }",
    "renamed_from of flags.b: c belongs to flags.a of this file, too",
  ],
  ["a number", "a: { enabled: true, renamed_from: 7 }", "renamed_from must be a text"],
])("%s is rejected", async (_, flags, message) => {
  await expect(configured.plan(`ninefold: 1\nflags:\n  ${flags}\n`)).rejects.toThrow(message);
});
