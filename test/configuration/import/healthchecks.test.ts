import { expect, setDefaultTimeout, test } from "bun:test";
import { importHealthchecks } from "../../../src/configuration/import/healthchecks.ts";
import { CHANNELS, CHECKS } from "./healthchecks-fixture.ts";
import { losses, useImports } from "./support.ts";

/** Busy machines take longer. */
setDefaultTimeout(60_000);

const imports = useImports();

test("checks and integrations become heartbeats and channels; the rest is noted", async () => {
  const imported = imports.run((draft) => importHealthchecks(draft, { ...CHECKS, ...CHANNELS }));
  const { monitors, channels } = Bun.YAML.parse(imported.text) as Record<string, Record<string, unknown>>;
  expect(channels).toEqual({
    Ops: { kind: "slack", url: { env: "CHANNELS_OPS_URL" }, default: false },
    "On call": {
      kind: "telegram",
      token: { env: "CHANNELS_ON_CALL_TOKEN" },
      chat_id: { env: "CHANNELS_ON_CALL_CHAT_ID" },
      default: false,
    },
  });
  expect(monitors).toEqual({
    "Database backup": {
      type: "heartbeat",
      slug: "database-backup",
      grace_ms: 1_800_000,
      group: "prod",
      channels: ["Ops", "On call"],
      period_ms: 86_400_000,
    },
    "Nightly report": {
      type: "heartbeat",
      slug: "nightly-report",
      grace_ms: 3_600_000,
      channels: [],
      active: false,
      schedule: "15 3 * * *",
      tz: "Europe/Riga",
    },
    "Database backup 2": { type: "heartbeat", grace_ms: 60_000, channels: [], period_ms: 60_000 },
  });
  expect(losses(imported)).toEqual([
    "integration sms: kind: sms is not supported",
    "check Weekdays: schedule: Mon..Fri 09:00 in UTC is no cron expression of five fields: the check is not carried over",
    "check Database backup: tags: only the first, prod, is carried over, as group",
    "check Database backup: channels: integration 2f0c1b5c-9d56-4a4e-8a0d-4a2b31bd51a3 is not carried over",
    "check Database backup: desc: not carried over",
    "check Nightly report: manual_resume: not carried over",
    "check Nightly report: methods: not carried over",
    "check Nightly report: success_kw: not carried over",
    "check Nightly report: filter_body: not carried over",
    "check Database backup: slug: database-backup belongs to another check: not carried over",
    "ping_url is new: apply prints it; with --keep-ids, only its host changes: 3 checks",
    "check Database backup: name is Database backup 2 in monitors",
  ]);
  const [before, after] = await imports.apply(imported.text);
  expect(before).toHaveLength(5);
  expect(after).toEqual([]);
});

test("a read-only key lists checks without integrations: they keep the default channels", () => {
  const { checks } = CHECKS;
  const readOnly = checks.slice(0, 1).map(({ uuid, ping_url, update_url, channels, ...rest }) => rest);
  const { text, notes } = imports.run((draft) => importHealthchecks(draft, { checks: readOnly }));
  expect(text).not.toContain("channels");
  expect(notes).toContain(
    "check Database backup: channels are the default ones: the key is read-only and does not see them",
  );
});

test("with their ids, heartbeats keep the paths of their ping URLs", async () => {
  const [first] = CHECKS.checks;
  const uuid = crypto.randomUUID();
  const checks = [{ ...first, uuid, channels: "" }];
  const imported = imports.run((draft) => importHealthchecks(draft, { checks }, { keepsIds: true }));
  expect(losses(imported)).toContain(
    `check Database backup: ping_url: keeps its path /ping/${uuid}: change the host only`,
  );
  const [before, after] = await imports.apply(imported.text);
  expect([before, after]).toEqual([["create monitors.Database backup"], []]);
  expect((await imports.server.client(null).get(`/ping/${uuid}`)).text).toBe("OK");
});

test.each([
  [{}, 'must be {"checks": […]}'],
  [null, 'must be {"checks": […]}'],
  [{ checks: {} }, 'must be {"checks": […]}'],
  [{ checks: ["x"] }, "check 1 must be an object."],
  [{ checks: [{ name: 7 }] }, "check 1: name must be a text."],
  [{ checks: [{ name: "a", grace: "soon" }] }, "check a: grace must be a number."],
  [{ checks: [{ name: "a", channels: [] }] }, "check a: channels must be a text."],
])("%j is rejected", (value, message) => {
  expect(() => imports.run((draft) => importHealthchecks(draft, value))).toThrow(message);
});
