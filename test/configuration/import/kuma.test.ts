import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROWS_MAX, readKumaDatabase } from "../../../src/configuration/import/kuma/database.ts";
import { importKuma } from "../../../src/configuration/import/kuma/kuma.ts";

import { isSqlite } from "../../../src/kernel/storage/foreign-database.ts";
import { KUMA_TABLES } from "./kuma-fixture.ts";
import { losses, useImports } from "./support.ts";

/** Busy machines take longer. */
setDefaultTimeout(60_000);

const imports = useImports();
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "ninefold-kuma-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const MONITOR = {
  type: "http",
  url: "https://shop.example.com/health",
  method: "GET",
  hostname: null,
  port: null,
  maxretries: 2,
  weight: 2_000,
  active: true,
  timeout: 16,
  interval: 20,
  retryInterval: 10,
  resendInterval: 0,
  keyword: null,
  invertKeyword: false,
  expiryNotification: true,
  ignoreTls: false,
  upsideDown: false,
  packetSize: 56,
  maxredirects: 10,
  accepted_statuscodes: ["200-299"],
  dns_resolve_type: "A",
  dns_resolve_server: "1.1.1.1",
  proxyId: null,
  notificationIDList: {},
  tags: [],
  httpBodyEncoding: "json",
  mqttTopic: null,
  gamedigGivenPortOnly: true,
  authMethod: null,
  headers: null,
  body: null,
  basic_auth_user: null,
  basic_auth_pass: null,
  pushToken: null,
  includeSensitiveData: true,
};

/** A backup of version 1. */
const BACKUP = {
  version: "1.23.11",
  notificationList: [
    {
      id: 1,
      name: "Team chat",
      active: true,
      userId: 1,
      isDefault: true,
      config: JSON.stringify({
        name: "Team chat",
        type: "discord",
        isDefault: true,
        applyExisting: false,
        discordWebhookUrl: "https://discord.com/api/webhooks/1/SECRET-A",
        discordUsername: "Kuma",
      }),
    },
    {
      id: 2,
      name: "Phones",
      active: true,
      isDefault: false,
      config: '{"type":"pushover","pushoveruserkey":"SECRET-B"}',
    },
    {
      id: 3,
      name: "Bot",
      active: true,
      isDefault: false,
      config: '{"type":"telegram","telegramBotToken":"1:SECRET-C","telegramChatID":"-100200"}',
    },
  ],
  monitorList: [
    {
      ...MONITOR,
      id: 1,
      name: "Shop",
      type: "keyword",
      keyword: "ok",
      parent: 4,
      notificationIDList: { "1": true, "2": true, "3": true },
      headers: '{"Authorization": "Bearer SECRET-D", "X-Source": "kuma", "Connection": "close"}',
      tags: [{ tag_id: 1, name: "prod", value: "", color: "#DC2626" }],
    },
    {
      ...MONITOR,
      id: 2,
      name: "API",
      type: "json-query",
      url: "https://ada:SECRET-E@api.example.com/status",
      method: "POST",
      body: '{"deep": true}',
      jsonPath: "data.status",
      jsonPathOperator: "==",
      expectedValue: "up",
      interval: 10,
      maxretries: 0,
      maxredirects: 0,
      ignoreTls: true,
      resendInterval: 3,
    },
    {
      ...MONITOR,
      id: 3,
      name: "Backup",
      type: "push",
      url: "https://",
      interval: 3_600,
      pushToken: "SECRET-F",
    },
    { ...MONITOR, id: 4, name: "Production", type: "group", url: "https://" },
    {
      ...MONITOR,
      id: 5,
      name: "Database",
      type: "port",
      url: "https://",
      hostname: "db.example.com",
      port: 5432,
    },
    { ...MONITOR, id: 6, name: "Name", type: "dns", url: "https://", hostname: "example.com", port: 53 },
    { ...MONITOR, id: 7, name: "Ping", type: "ping", hostname: "example.com" },
    { ...MONITOR, id: 8, name: "Must fail", upsideDown: true },
    { ...MONITOR, id: 9, name: "Shop", active: false, description: "The old one" },
  ],
};

test("a backup: monitors and notifications", async () => {
  const imported = imports.run((draft) => importKuma(draft, BACKUP));
  expect(Bun.YAML.parse(imported.text)).toEqual({
    ninefold: 1,
    channels: {
      "Team chat": { kind: "discord", url: { env: "CHANNELS_TEAM_CHAT_URL" }, default: true },
      Bot: { kind: "telegram", token: { env: "CHANNELS_BOT_TOKEN" }, chat_id: "-100200", default: false },
    },
    monitors: {
      Shop: {
        group: "Production",
        channels: ["Team chat", "Bot"],
        interval: 20_000,
        consecutive_threshold: 3,
        retry_interval: 10_000,
        timeout: 16_000,
        url: "https://shop.example.com/health",
        headers: { Authorization: { env: "MONITORS_SHOP_AUTHORIZATION" }, "X-Source": "kuma" },
        accept_status: ["200-299"],
        keyword: "ok",
      },
      API: {
        channels: [],
        interval: 15_000,
        consecutive_threshold: 1,
        timeout: 16_000,
        tls_verify: false,
        url: "https://api.example.com/status",
        method: "POST",
        body: '{"deep": true}',
        headers: {
          Authorization: { env: "MONITORS_API_AUTHORIZATION" },
          "Content-Type": "application/json",
        },
        accept_status: ["200-299"],
        json_path: "$.data.status",
        json_op: "==",
        json_value: "up",
      },
      Backup: { channels: [], type: "heartbeat", period_ms: 3_600_000, grace_ms: 60_000 },
      Database: {
        channels: [],
        interval: 20_000,
        consecutive_threshold: 3,
        retry_interval: 10_000,
        timeout: 16_000,
        type: "tcp",
        host: "db.example.com",
        port: 5432,
      },
      Name: {
        channels: [],
        interval: 20_000,
        consecutive_threshold: 3,
        retry_interval: 10_000,
        timeout: 16_000,
        type: "dns",
        host: "example.com",
        record_type: "A",
      },
      Ping: {
        channels: [],
        interval: 20_000,
        consecutive_threshold: 3,
        retry_interval: 10_000,
        timeout: 16_000,
        type: "icmp",
        host: "example.com",
        packets: 1,
      },
      "Shop 2": {
        active: false,
        channels: [],
        interval: 20_000,
        consecutive_threshold: 3,
        retry_interval: 10_000,
        timeout: 16_000,
        url: "https://shop.example.com/health",
        accept_status: ["200-299"],
      },
    },
  });
  expect(losses(imported)).toEqual([
    "notification Phones: type: pushover is not supported",
    "monitor Must fail: upside_down: a monitor with the opposite meaning is not supported",
    "notification Team chat: discordUsername: not carried over",
    "monitor Shop: tags: a monitor has one group: prod are not all carried over",
    "monitor Shop: notificationIDList: notification 2 is not carried over",
    "monitor Shop: headers: Connection is set by the server itself: not carried over",
    "monitor API: maxredirects: not carried over: at most 5 are followed",
    "monitor API: resend_interval: not carried over",
    "monitor Shop: description: not carried over",
    "monitor API: interval raised to 15 s",
    "monitor Backup: ping_url is new: apply prints it; with --keep-ids, only its host changes",
    "monitor Backup: grace_ms raised to 1 min",
    "monitor Shop: name is Shop 2 in monitors",
  ]);
  expect(imported.text + imported.notes.join()).not.toContain("SECRET-");
  const [before, after] = await imports.apply(imported.text);
  expect(before).toHaveLength(9);
  expect(after).toEqual([]);
});

test("a ping, with as many packets as version 2 has", () => {
  const ping = { ...MONITOR, type: "ping", url: null, hostname: "10.0.0.1" };
  const monitorList = [
    { ...ping, id: 1, name: "Old" },
    { ...ping, id: 2, name: "New", ping_count: 4, ping_numeric: true, ping_per_request_timeout: 2 },
    { ...ping, id: 3, name: "Many", ping_count: 50 },
  ];
  const imported = imports.run((draft) => importKuma(draft, { monitorList }));
  const { monitors } = Bun.YAML.parse(imported.text) as { monitors: Record<string, object> };
  expect(monitors).toMatchObject({
    Old: { type: "icmp", host: "10.0.0.1", packets: 1 },
    New: { type: "icmp", packets: 4, timeout: 16_000 },
    Many: { type: "icmp", packets: 10 },
  });
  expect(losses(imported)).toEqual(["monitor Many: packets lowered to 10"]);
});

test("the database: status pages and maintenance too, and it is not changed", async () => {
  const path = join(folder, "kuma.db");
  const database = new Database(path, { create: true });
  database.run(KUMA_TABLES);
  database.close();
  const bytes = readFileSync(path);
  expect(isSqlite(path)).toBe(true);
  const imported = imports.run((draft) => importKuma(draft, readKumaDatabase(path)));
  expect(readFileSync(path).equals(bytes)).toBe(true);
  const file = Bun.YAML.parse(imported.text) as Record<string, Record<string, unknown>>;
  expect(file["monitors"]).toEqual({
    Shop: {
      group: "Production",
      channels: ["ntfy"],
      interval: 60_000,
      consecutive_threshold: 2,
      timeout: 30_000,
      url: "https://shop.example.com/",
      headers: { Authorization: { env: "MONITORS_SHOP_AUTHORIZATION" } },
      accept_status: ["200-299", "401"],
      tls_expiry_days: 0,
    },
  });
  expect(file["channels"]).toEqual({
    ntfy: {
      kind: "ntfy",
      url: { env: "CHANNELS_NTFY_URL" },
      token: { env: "CHANNELS_NTFY_TOKEN" },
      default: false,
    },
  });
  expect(file["status_pages"]).toEqual({
    public: {
      title: "Shop",
      description: "All of it",
      footer: "Bye",
      index: true,
      published: true,
      show_urls: true,
      groups: [{ name: "Services", monitors: ["Shop"] }],
    },
  });
  expect(file["maintenance"]).toEqual({
    Move: {
      message: "New machine",
      monitors: ["Shop"],
      public: true,
      starts_at: "2040-07-01T20:00:00.000Z",
      ends_at: "2040-07-01T21:30:00.000Z",
    },
    Weekly: {
      message: "Updates",
      monitors: [],
      public: false,
      schedule: "30 2 * * 0",
      tz: "Europe/Berlin",
      duration_ms: 3_600_000,
    },
  });
  expect(losses(imported)).toEqual([
    "maintenance By hand: strategy: manual is not supported with these times: not carried over",
    "status page public: custom_css: not carried over",
    "status page public: domains: not carried over",
    "monitor Shop: timeout lowered to 30 s",
    "maintenance By hand: timezone is UTC: that of the server of Uptime Kuma is unknown",
  ]);
  const [before, after] = await imports.apply(
    imported.text.replaceAll("public:\n    title", `p-${crypto.randomUUID()}:\n    title`),
  );
  expect(before).toHaveLength(5);
  expect(after).toEqual([]);
});

test("a table has a maximum number of rows", () => {
  const path = join(folder, "large.db");
  const database = new Database(path, { create: true });
  database.run(KUMA_TABLES);
  const fill = (rows: number) =>
    database.run(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${rows}) INSERT INTO tag (name) SELECT 't' FROM n`,
    );
  fill(ROWS_MAX);
  expect(readKumaDatabase(path)).toHaveProperty("monitorList");
  fill(1);
  database.close();
  expect(() => readKumaDatabase(path)).toThrow(`more than ${ROWS_MAX} rows in a table`);
});

test("another database, and a damaged one, are rejected", () => {
  const other = join(folder, "other.db");
  const database = new Database(other, { create: true });
  database.run("CREATE TABLE a (id)");
  database.close();
  expect(() => readKumaDatabase(other)).toThrow("is not a database of Uptime Kuma");
  const damaged = join(folder, "damaged.db");
  writeFileSync(damaged, `SQLite format 3\0${"x".repeat(5_000)}`);
  expect(() => readKumaDatabase(damaged)).toThrow("cannot be read as a database");
  expect(isSqlite(join(folder, "missing.db"))).toBe(false);
});

test.each([
  [{}, 'must have {"monitorList": […]}'],
  [[], 'must have {"monitorList": […]}'],
  [{ monitorList: [1] }, "monitor must be an object."],
  [{ monitorList: [{ ...MONITOR, name: "a", interval: "x" }] }, "monitor a: interval must be a number."],
  [{ monitorList: [{ ...MONITOR, name: "a", headers: "{" }] }, "monitor a: headers is not JSON"],
  [{ monitorList: [], notificationList: [{ name: "a", config: "{" }] }, "notification a: config is not JSON"],
])("%j is rejected", (value, message) => {
  expect(() => imports.run((draft) => importKuma(draft, value))).toThrow(message);
});

test("name servers are carried over", () => {
  const dns = { ...MONITOR, type: "dns", hostname: "example.com", dns_resolve_type: "CAA" };
  const monitorList = [
    { ...dns, id: 1, name: "Default", port: 53 },
    { ...dns, id: 2, name: "Other", dns_resolve_server: "9.9.9.9, 8.8.8.8", port: 53 },
    { ...dns, id: 3, name: "Port", dns_resolve_server: "ns1.example.com", port: 5353 },
    { ...dns, id: 4, name: "IPv6", dns_resolve_server: "2620:fe::fe", port: 5353 },
  ];
  const imported = imports.run((draft) => importKuma(draft, { ...BACKUP, monitorList }));
  const { monitors } = Bun.YAML.parse(imported.text) as { monitors: Record<string, { resolver?: string }> };
  expect(Object.values(monitors).map(({ resolver = null }) => resolver)).toEqual([
    null,
    "9.9.9.9",
    "ns1.example.com:5353",
    "[2620:fe::fe]:5353",
  ]);
});

test("monitors without a counterpart are left out with a note, and what is printed can be applied", async () => {
  const monitorList = [
    { ...MONITOR, id: 1, name: "CAA", type: "dns", hostname: "example.com", dns_resolve_type: "HINFO" },
    { ...MONITOR, id: 2, name: "Any port", type: "port", hostname: "db.example.com", port: null },
    { ...MONITOR, id: 3, name: "Port 0", type: "port", hostname: "db.example.com", port: 0 },
    { ...MONITOR, id: 4, name: "No host", type: "port", hostname: "", port: 25 },
    { ...MONITOR, id: 5, name: "Scheme alone", type: "http", url: "https://" },
    { ...MONITOR, id: 6, name: "No URL", type: "keyword", url: null, keyword: "ok" },
    { ...MONITOR, id: 7, name: "Two dots", type: "http", url: "https://a..example.com/" },
    { ...MONITOR, id: 8, name: "Host with a path", type: "port", hostname: "db/x", port: 25 },
    { ...MONITOR, id: 9, name: "Good", type: "http", url: "https://example.com/" },
  ];
  const imported = imports.run((draft) => importKuma(draft, { ...BACKUP, monitorList }));
  const { monitors } = Bun.YAML.parse(imported.text) as { monitors: object };
  expect(Object.keys(monitors)).toEqual(["Good"]);
  const lost = losses(imported).filter((note) => note.includes("has no entry"));
  for (const { name } of monitorList.slice(0, -1))
    expect(lost.filter((note) => note.includes(name))).toHaveLength(1);
  const [, after] = await imports.apply(imported.text);
  expect(after).toEqual([]);
});

test("equal notes are counted: what is lost first, with its names, then what has changed", () => {
  const named = (count: number, noun: string, more: object) =>
    Array.from({ length: count }, (_, index) => ({
      ...MONITOR,
      id: `${noun}${index}`,
      name: `${noun} ${index}`,
      ...more,
    }));
  const monitorList = [
    ...named(57, "Slow", { timeout: 48 }),
    ...named(2, "Queue", { type: "mqtt" }),
    ...named(25, "Game", { type: "gamedig" }),
  ];
  const imported = imports.run((draft) => importKuma(draft, { monitorList }));
  const games = Array.from({ length: 20 }, (_, index) => `Game ${index}`).join(", ");
  expect(losses(imported)).toEqual([
    "type: mqtt is not supported: 2 monitors (Queue 0, Queue 1)",
    `type: gamedig is not supported: 25 monitors (${games}, 5 more)`,
    "timeout lowered to 30 s: 57 monitors",
  ]);
});

test("a group with too many monitors is split, and a page with too many groups continues on a further one", async () => {
  const monitorList = Array.from({ length: 101 }, (_, id) => ({ ...MONITOR, id, name: `M ${id}` }));
  const monitors = monitorList.map(({ id }) => id);
  const page = (slug: string, groups: readonly object[]) => ({
    slug,
    title: `${slug} `.repeat(60),
    description: "d".repeat(501),
    footer_text: null,
    search_engine_index: false,
    published: true,
    groups,
  });
  const few = { name: "Few", monitors: [0] };
  const [a, b] = ["a", `many-${crypto.randomUUID().slice(0, 8)}`];
  const statusPageList = [
    page(a, [{ name: "All", monitors }, few]),
    page(
      b,
      Array.from({ length: 51 }, () => few),
    ),
  ];
  const imported = imports.run((draft) => importKuma(draft, { monitorList, statusPageList }));
  const { status_pages } = Bun.YAML.parse(imported.text) as {
    status_pages: Record<string, { groups: { name: string; monitors: string[] }[] }>;
  };
  expect(Object.keys(status_pages)).toEqual(["page-a", b, `${b}-2`]);
  expect(status_pages["page-a"]?.groups.map((group) => [group.name, group.monitors.length])).toEqual([
    ["All", 50],
    ["All (2)", 50],
    ["All (3)", 1],
    ["Few", 1],
  ]);
  expect([b, `${b}-2`].map((slug) => status_pages[slug]?.groups.length)).toEqual([50, 1]);
  expect(losses(imported)).toContain(
    "status page a: group All is split into 3: a group has at most 50 monitors",
  );
  expect(losses(imported)).toContain(
    `status page ${b}: groups continue on further pages: a page has at most 50`,
  );
  const [, after] = await imports.apply(imported.text.replace("page-a:", `p-${crypto.randomUUID()}:`));
  expect(after).toEqual([]);
});

test("with their tokens, push monitors keep the paths of their URLs", async () => {
  const pushToken = crypto.randomUUID().replaceAll("-", "");
  const monitorList = [{ ...MONITOR, id: 1, name: "Backup", type: "push", interval: 3_600, pushToken }];
  const imported = imports.run((draft) => importKuma(draft, { monitorList }, { keepsIds: true }));
  expect(losses(imported)[1]).toBe(
    `monitor Backup: ping_url: keeps its path /api/push/${pushToken}: change the host only`,
  );
  const [, after] = await imports.apply(imported.text);
  expect(after).toEqual([]);
  const pushed = await imports.server.client(null).get(`/api/push/${pushToken}?status=up&msg=OK&ping=12`);
  expect([pushed.status, pushed.body]).toEqual([200, { ok: true }]);
});

test("the file of variables has each secret, as a shell reads it", () => {
  const { environment } = imports.draft((draft) => importKuma(draft, BACKUP));
  const variables = Bun.spawnSync([
    "sh",
    "-c",
    `${environment}\nprintf %s "$CHANNELS_TEAM_CHAT_URL $MONITORS_SHOP_AUTHORIZATION"`,
  ]);
  expect(variables.stdout.toString()).toBe("https://discord.com/api/webhooks/1/SECRET-A Bearer SECRET-D");
  expect(environment.match(/^[A-Z_]+=/gm)).toEqual([
    "CHANNELS_TEAM_CHAT_URL=",
    "CHANNELS_BOT_TOKEN=",
    "MONITORS_SHOP_AUTHORIZATION=",
    "MONITORS_API_AUTHORIZATION=",
  ]);
});

test.each([
  ["==", "4", "4"],
  ["!=", "4.0", "4.0"],
  ["contains", "4", "4"],
  ["==", "up", "up"],
  ["==", "true", true],
  ["<", "4", 4],
  [">=", "-0.5", -0.5],
])("a JSON query %s %s compares with the same value", (jsonPathOperator, expectedValue, value) => {
  const monitor = {
    ...MONITOR,
    id: 1,
    name: "Q",
    type: "json-query",
    jsonPath: "a",
    jsonPathOperator,
    expectedValue,
  };
  const imported = imports.run((draft) => importKuma(draft, { ...BACKUP, monitorList: [monitor] }));
  const { monitors } = Bun.YAML.parse(imported.text) as { monitors: { Q: { json_value: unknown } } };
  expect(monitors.Q.json_value).toBe(value as string);
});
