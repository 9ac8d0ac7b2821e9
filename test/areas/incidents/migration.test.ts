import { expect, test } from "bun:test";
import { MIGRATIONS } from "../../../migrations/index.ts";
import { incidentStore } from "../../../src/areas/incidents/store.ts";
import { uuidToBytes } from "../../../src/kernel/data/uuid.ts";
import { migrate } from "../../../src/kernel/storage/migrate.ts";
import { TestStorage } from "../../kernel/support.ts";

test("the migration opens an incident for each monitor that is down", async () => {
  const storage = new TestStorage();
  const { db, writer } = storage;
  migrate(
    db,
    MIGRATIONS.filter(({ name }) => name < "0028"),
  );
  const monitor = db.change<[ref: number, id: Uint8Array, name: string | null]>(
    `INSERT INTO monitors (ref, monitor_id, account_ref, project_ref, url, method, timeout_ms, interval_ms, consecutive_threshold,
     cooldown_ms, email_alert, notify_recovery, active, version, created_at, updated_at, name)
     VALUES (?, ?, 1, 7, 'https://example.com/', 'GET', 1, 1, 1, 1, 0, 0, 1, 1, 1, 5, ?)`,
  );
  const state = db.change<[ref: number, status: number, at: number | null]>(
    `INSERT INTO monitor_states (monitor_ref, project_ref, status, last_checked_at, consecutive_failures, last_check, hour, hour_checks,
     hour_up) VALUES (?, 7, ?, ?, 1, 0, 0, 0, 0)`,
  );
  const ids = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID()];
  await writer.submit((tx) => {
    for (const [at, id] of ids.entries()) monitor(tx, at + 1, uuidToBytes(id), at === 0 ? "Shop" : null);
    for (const [ref, status, checked] of [[1, 2, 40] as const, [2, 2, null] as const, [3, 1, 40] as const])
      state(tx, ref, status, checked);
  });
  migrate(db, MIGRATIONS);
  const incidents = incidentStore(db);
  expect(incidents.openOf(1)).toMatchObject({
    projectRef: 7,
    title: "Shop is down",
    impact: "outage",
    status: "investigating",
    monitorIds: [ids[0]],
    startedAt: 40,
    isPublic: false,
    cause: null,
    resolvedAt: null,
  });
  expect(incidents.openOf(1)?.id).toMatch(/^inc_[0-9a-f]{32}$/);
  expect(incidents.openOf(2)).toMatchObject({ title: "https://example.com/ is down", startedAt: 5 });
  expect(incidents.openOf(3)).toBeNull();
  const params = { projectRef: 7, before: 100, rowsMax: 10 };
  const found = incidents.pageBy(params, { isOpen: true, monitorId: ids[1] ?? "" });
  expect(found.map(({ monitorRef }) => monitorRef)).toEqual([2]);
  storage.close();
});
