import { expect, test } from "bun:test";
import { MIGRATIONS } from "../../../migrations/index.ts";
import { channelStore } from "../../../src/areas/alerts/store.ts";
import { incidentStore } from "../../../src/areas/incidents/store.ts";
import { migrate } from "../../../src/kernel/storage/migrate.ts";
import { TestStorage } from "../../kernel/support.ts";

test("alerts that a channel held before the update are in its message, and then on the timelines", async () => {
  const storage = new TestStorage();
  const { db, writer } = storage;
  const update = MIGRATIONS.findIndex(({ name }) => name.endsWith("_alert_digests"));
  migrate(db, MIGRATIONS.slice(0, update));
  const channel = db.change<[ref: number]>(
    `INSERT INTO channels (ref, channel_id, account_ref, project_ref, name, kind, config, is_default, events, created_at, updated_at,
     held_dropped) VALUES (?, 'chn_' || ?1, 5, 7, 'night', 'webhook', x'00', 1, '[]', 1, 1, 3)`,
  );
  const incident = db.change<[ref: number]>(
    `INSERT INTO incidents (ref, incident_id, project_ref, monitor_ref, title, impact, status, monitor_ids, started_at, public)
     VALUES (?, 'inc_' || ?1, 7, ?1, '', 'outage', 'investigating', '[]', 1, 0)`,
  );
  const sent = db.change("INSERT INTO incident_alerts VALUES (1, 1, 10, 'monitor.down', '[\"loud\"]')");
  const held = db.change<[monitor: number | null, event: string, at: number, incident: string | null]>(
    `INSERT INTO held_alerts (channel_ref, monitor_ref, event, at, message) VALUES (2, ?, ?, ?,
     json_object('facts', json_object('incident_id', ?)))`,
  );
  await writer.submit((tx) => {
    channel(tx, 2);
    for (const ref of [1, 2]) incident(tx, ref);
    sent(tx);
    held(tx, 1, "monitor.down", 10, "inc_1");
    held(tx, 2, "monitor.down", 11, "inc_2");
    held(tx, 1, "monitor.up", 12, "inc_1");
    held(tx, null, "observer.offline", 13, null);
  });
  migrate(db, MIGRATIONS);
  const [channels, incidents] = [channelStore(db), incidentStore(db)];
  const seen = channels.held(2, 10).map(({ event, at }) => `${event} ${at}`);
  expect(seen).toEqual(["observer.offline 13", "monitor.up 12", "monitor.down 11", "monitor.down 10"]);
  expect(channels.heldOfAccount(5)).toBe(4);
  expect(new Map(channels.heldCounts(2).map(({ event, n }) => [event, n]))).toEqual(
    new Map([
      ["monitor.down", 5],
      ["monitor.up", 1],
      ["observer.offline", 1],
    ]),
  );
  const timeline = (ref: number) =>
    incidents.alerts(ref, 10).map(({ at, event, channels: names }) => `${at} ${event} ${names}`);
  expect([timeline(1), timeline(2)]).toEqual([["10 monitor.down loud"], []]);
  await writer.submit((tx) => {
    incidents.addDigest(tx, { channelRef: 2, number: channels.digestNumber(2), projectRef: 7, at: 50 });
    channels.releaseHeld(tx, 2);
  });
  expect(timeline(1)).toEqual(["10 monitor.down loud", "50 monitor.down night", "50 monitor.up night"]);
  expect(timeline(2)).toEqual(["50 monitor.down night"]);
  expect([channels.heldOfAccount(5), channels.heldCounts(2), channels.digestNumber(2)]).toEqual([0, [], 1]);
  storage.close();
});
