import { expect, test } from "bun:test";
import { INCIDENT_ALERTS_MAX, incidentStore } from "../../../src/areas/incidents/store.ts";
import { ALERTS_MAX, CHECKS_MAX } from "../../../src/areas/incidents/timeline.ts";
import { CHECKS_READ_MAX } from "../../../src/areas/monitors/history/check-changes.ts";
import { PAGES_MAX } from "../../../src/areas/status-pages/incident-pages.ts";
import { leastMs, longestTurnMs, TURN_MS_MAX } from "../../support/processor-time.ts";
import { useTestServer } from "../../support/server.ts";

const MINUTE = 60_000;
const INCIDENTS = "/v1/pulse/incidents";

const server = useTestServer({ manualClock: true });

type Shown = Record<"alerts" | "checks" | "monitors" | "status_pages", readonly Record<string, unknown>[]>;

test("the largest timeline is limited, and takes less than 20 ms", async () => {
  const owner = await server.account({ tier: "unlimited" });
  const read = async (id: unknown): Promise<Shown> => {
    const { status, body } = await owner.get(`${INCIDENTS}/${id}`);
    expect(status).toBe(200);
    return body as unknown as Shown;
  };
  const ids: string[] = [];
  for (let at = 0; at < 100; at += 1) {
    const created = await owner.post("/v1/pulse", {
      type: "heartbeat",
      name: `job ${at}`,
      period_ms: MINUTE,
    });
    ids.push(String(created.body["id"]));
  }
  const groups = Array.from({ length: 50 }, () => ({ name: "g", monitor_ids: ids.slice(0, 50) }));
  for (let at = 0; at <= PAGES_MAX; at += 1)
    await owner.post("/v1/pulse/pages", { slug: `page-${at}`, title: "Page", groups });
  const { body: made } = await owner.post(INCIDENTS, { title: "All fail", monitor_ids: ids, public: true });
  const { db, writer, clock } = server.server.kernel;
  const incidents = incidentStore(db);
  const incident = incidents.find(String(made["id"]));
  const [{ ref: first = 1 } = {}] = db.all<{ ref: number }, []>("SELECT min(ref) AS ref FROM monitors")();
  const insert = db.change<[sequence: number, ref: number, previous: number, at: number, up: number]>(
    "INSERT INTO monitor_checks (sequence, monitor_ref, previous, checked_at, up, manual, latency_ms, mark) VALUES (?, ?, ?, ?, ?, 0, 5, 0)",
  );
  const setLast = db.change<[sequence: number, ref: number]>(
    "UPDATE monitor_states SET last_check = ? WHERE monitor_ref = ?",
  );
  await writer.submit((tx) => {
    // Each monitor has more checks than are read, and every second one fails.
    let sequence = 1_000;
    for (let round = 0; round < 200; round += 1)
      for (let at = 0; at < ids.length; at += 1) {
        sequence += 1;
        insert(
          tx,
          sequence,
          first + at,
          round === 0 ? 0 : sequence - ids.length,
          clock.now() + round,
          round % 2,
        );
      }
    for (let at = 0; at < ids.length; at += 1) setLast(tx, sequence - ids.length + 1 + at, first + at);
    for (let sent = 0; sent <= INCIDENT_ALERTS_MAX; sent += 1)
      incidents.addAlert(
        tx,
        incident?.ref ?? 0,
        { at: clock.now() + sent, event: "monitor.acknowledged", channels: [`channel ${sent}`] },
        null,
      );
  });
  const shown = await read(made["id"]);
  expect(shown.alerts).toHaveLength(ALERTS_MAX);
  // The first ones stay, and the latest one replaces the last.
  expect(shown.alerts.map(({ channels }) => channels).slice(-2)).toEqual([["channel 98"], ["channel 100"]]);
  expect(shown.checks).toHaveLength(CHECKS_MAX);
  expect(shown.monitors).toHaveLength(100);
  expect(shown.status_pages).toHaveLength(PAGES_MAX);
  expect(CHECKS_READ_MAX / ids.length).toBeLessThan(200);
  const leastTurnMs = () => leastMs(TURN_MS_MAX, () => longestTurnMs(() => read(made["id"])));
  expect(await leastTurnMs()).toBeLessThanOrEqual(TURN_MS_MAX);
  await owner.post(`${INCIDENTS}/${made["id"]}/updates`, { status: "resolved" });
  expect(await leastTurnMs()).toBeLessThanOrEqual(TURN_MS_MAX);
});
