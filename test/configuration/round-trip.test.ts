import { beforeAll, expect, test } from "bun:test";
import type { TSchema } from "@sinclair/typebox";
import fc from "fast-check";
import type { Kind } from "../../src/configuration/kinds.ts";
import { bodyOf } from "../support/matrix.ts";
import { type AccountClient, useTestServer } from "../support/server.ts";
import { CLIENT, Configured, createFitting, SECRET_TEXT, valuesFor } from "./support.ts";

const server = useTestServer({
  manualClock: true,
  args: [
    ...["--allow-private-targets", "all"],
    ...["--smtp-url", "smtp://127.0.0.1:9", "--mail-from", "ninefold@example.com"],
  ],
});
let account: AccountClient;
let configured: Configured;
/** Ids that resources can refer to, by section. */
const ids = new Map<string, string[]>();
let names = 0;

beforeAll(async () => {
  account = await server.account({ tier: "unlimited" });
  configured = new Configured(server, account.key ?? "");
  const make = async (section: string, path: string, body: object, id: string) => {
    const created = await account.post(path, body);
    expect(created.status, created.text).toBe(201);
    ids.set(section, [...(ids.get(section) ?? []), String(created.body[id])]);
  };
  for (const name of ["one", "two"]) {
    const role = await account.put(`/v1/keys/roles/${name}`, { permissions: ["documents.read"] });
    expect(role.status, role.text).toBe(201);
    ids.set("roles", [...(ids.get("roles") ?? []), name]);
    await make("monitors", "/v1/pulse", { name, url: "https://example.com/", interval: 60_000 }, "id");
    const config = { url: "https://example.com/" };
    await make("channels", "/v1/pulse/channels", { name, kind: "webhook", config }, "id");
    await make(
      "endpoints",
      "/v1/relay/endpoints",
      { name, url: "https://example.com/", secret: SECRET_TEXT },
      "endpoint_id",
    );
  }
});

/** Required fields of a resource of a kind, in addition to its name. */
const BASES: Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>> = {
  monitors: [
    { type: "tcp", host: "db.example.com", port: 5432, interval: 60_000 },
    { type: "icmp", host: "db.example.com", packets: 5, max_loss_percent: 40, interval: 60_000 },
    { type: "dns", host: "example.com", record_type: "A", record_value: "192.0.2.1", interval: 60_000 },
    {
      type: "dns",
      host: "example.com",
      record_type: "A",
      interval: 60_000,
      match: "set",
      record_values: ["a"],
    },
    { type: "heartbeat" },
    { type: "domain", host: "example.com" },
    { type: "manual" },
    { type: "heartbeat", schedule: "30 2 * * *", tz: "Europe/Berlin" },
    { url: "https://example.com/", interval: 60_000, timeout: 30_000 },
    {
      url: "https://example.com/",
      interval: 60_000,
      tls_client_certificate: CLIENT.cert,
      tls_client_key: CLIENT.key,
    },
    { url: "https://example.com/", interval: 300_000, json_path: "$.a", json_value: "b" },
  ],
  channels: [
    { kind: "webhook", config: { url: "https://hooks.example.com/services/T0/B0/secret" } },
    { kind: "slack", config: { url: "https://hooks.example.com/services/T0/B0/secret" } },
    { kind: "telegram", config: { token: "123456:AbCdEf", chat_id: "-100" } },
    {
      kind: "ntfy",
      config: { url: "https://hooks.example.com/services/T0/B0/secret", token: "123456:AbCdEf" },
    },
    { kind: "email", config: { to: ["ann@example.com"] } },
  ],
  maintenance: [
    { starts_at: "2030-01-31T22:00:00Z", ends_at: "2030-01-31T23:00:00Z" },
    { schedule: "0 3 * * 0", duration_ms: 3_600_000 },
  ],
  event_types: [{}],
  incidents: [
    {},
    {
      started_at: "2020-01-31T22:00:00Z",
      resolved_at: "2020-01-31T23:00:00Z",
      updates: [{ at: "2020-01-31T22:10:00Z", status: "identified", message: "A certificate has expired." }],
    },
  ],
  roles: [{ permissions: ["documents.read"] }],
  schedules: [
    { cron: "0 3 * * *", target_url: "https://example.com/" },
    { cron: "0 3 * * *", event_type: "invoice.paid" },
  ],
  buckets: [
    { target_url: "https://example.com/x" },
    { targets: [], delivery: "pull" },
    {
      delivery: "pull",
      provider: "custom",
      signature: { header: "X-Sig", algorithm: "hmac-sha256", template: "{body}" },
    },
    { delivery: "pull", challenge: { pointer: "/challenge", when: { type: "verify" }, as: "json" } },
    { delivery: "pull", provider: "event-grid", challenge: { origins: ["eventgrid.azure.net"] } },
    { delivery: "pull", provider: "meta", challenge: { token: "123456:AbCdEf" } },
    {
      delivery: "pull",
      signing_secret: SECRET_TEXT,
      previous_signing_secret: SECRET_TEXT,
      previous_expires_at: "2026-03-20T12:00:00Z",
    },
  ],
  endpoints: [{ url: "https://example.com/", secret: SECRET_TEXT }],
};

/** Creates a resource as its kind is created, with a name of its own. */
async function made({ facts, create }: Kind, base: object, values: Readonly<Record<string, unknown>>) {
  const name = `r-${names}`;
  if (facts.isPut === true) {
    const path = create.path.replace(`:${facts.name}`, name);
    const { archivedField = "" } = facts;
    const { [archivedField]: isArchived, ...optional } = values;
    const { body, sent } = await createFitting(
      account,
      { method: create.method, path },
      { ...base },
      optional,
    );
    if (isArchived !== true) return { body, sent };
    const archived = await account.send("DELETE", path);
    expect(archived.status, archived.text).toBe(204);
    return { body, sent: { ...sent, [archivedField]: true } };
  }
  const own =
    facts.isSingle === true
      ? { accessKeyId: SECRET_TEXT, secretAccessKey: SECRET_TEXT }
      : { [facts.name]: name };
  const [project] = (await account.get("/v1/projects")).body["projects"] as { id: string }[];
  const path = create.path.replace(":id", project?.id ?? "");
  return createFitting(account, { method: create.method, path }, { ...base, ...own }, values);
}

test("export, then plan: no changes, over every kind of resource and every field", async () => {
  const covered = new Map<string, Set<string>>();
  for (const kind of configured.kinds) {
    const { section, facts, create, fields } = kind;
    const seen = new Set<string>();
    covered.set(section, seen);
    const optional = Object.fromEntries(
      [...fields.values()]
        .filter((field) => !field.isFlattened)
        .map(({ apiName, schema }) => [
          apiName,
          valuesFor(apiName, schema as TSchema, (referred) => ids.get(referred) ?? [""]),
        ]),
    );
    const bases = BASES[section] ?? [bodyOf(create) as Record<string, unknown>];
    const samples = fc.sample(fc.record(optional, { requiredKeys: [] }), { numRuns: 8, seed: 7 });
    const single = Object.entries(optional).flatMap(([name, value]) =>
      // A field that suits few bases meets all of them.
      fc
        .sample(fc.record({ [name]: value }), { numRuns: Math.max(3, bases.length), seed: 7 })
        .map((values, turn) => ({ values, isNeeded: () => turn < 3 || !seen.has(name) })),
    );
    const several = samples.map((values) => ({ values, isNeeded: () => true }));
    const wanted = facts.isSingle === true ? single : [...several, ...single];
    for (const [index, { values, isNeeded }] of wanted.entries()) {
      if (!isNeeded()) continue;
      names += 1;
      const base = bases[index % bases.length] ?? {};
      const { body, sent } = await made(kind, base, values as Record<string, unknown>);
      const flattened = sent[facts.flattened ?? ""] as object | undefined;
      for (const name of Object.keys({ ...sent, ...flattened })) seen.add(name);
      // Fields that only an update has.
      const later = Object.entries(values as Record<string, unknown>).filter(([name]) =>
        [...fields.values()].some((field) => field.apiName === name && !field.inCreate),
      );
      const { change } = kind;
      if (later.length === 0 || change === null) continue;
      const item = change.path.replace(/:\w+/, String(body["id"]));
      const changed = await account.send(change.method, item, Object.fromEntries(later));
      expect(changed.status, changed.text).toBe(200);
      for (const [name] of later) seen.add(name);
    }
    const missing = [...fields.values()].filter(({ apiName }) => !seen.has(apiName));
    expect(missing.map(({ apiName }) => `${section}.${apiName}`)).toEqual([]);
  }
  const text = await configured.export();
  const steps = await configured.plan(text);
  expect(steps.map(({ kind, name, fields }) => ({ kind, name, fields }))).toEqual([]);
}, 120_000);
