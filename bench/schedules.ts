import { Database } from "bun:sqlite";
import { join } from "node:path";
import type { Finding } from "./benchmark.ts";
import { finding, PRIVATE, percentile, startReceiver } from "./schedule.ts";
import type { Stage } from "./stage.ts";

const COUNT = 100_000;
const SECONDS = 240;
/** Long enough that the folder is filled and the server ready before the first one falls due. */
const FILLING_MS = 25_000;
/** What is late comes within this. */
const AFTER_MS = 5_000;
const READY_MS_MAX = 1_000;
const LATENESS_MS_MAX = 250;

/** The name under which they are chosen. */
export const SCHEDULES = "100,000 schedules over 4 minutes";

/** Many schedules: how soon a server is ready with them, and whether each runs once, in time. */
export async function measureSchedules(stage: Stage, say: (text: string) => void): Promise<Finding[]> {
  say(`making ${COUNT} schedules, waiting until each has run`);
  await using receiver = await startReceiver();
  const data = stage.subfolder("schedules");
  const due = Date.now() + FILLING_MS;
  await stage.fillBy("fill-schedules.ts", data, [COUNT, due, SECONDS, receiver.port].map(String));
  const server = await stage.startNinefold(data, PRIVATE);
  const isReadyInTime = Date.now() < due;
  await Bun.sleep(due + SECONDS * 1_000 + AFTER_MS - Date.now());
  const arrivals = await receiver.take();
  await server.stop();
  const { times, ranOnce } = recorded(join(data, "ninefold.db"));
  const late = arrivals.map(([id, at]) => at - (times.get(id) ?? Number.NaN));
  return [
    finding(`${SCHEDULES}: ready after the start`, server.readyMs, READY_MS_MAX),
    finding(`${SCHEDULES}: lateness, p99`, percentile(late, 0.99), LATENESS_MS_MAX),
    {
      what: `${SCHEDULES}: each ran once`,
      measured: `${ranOnce}, ${arrivals.length} arrived${isReadyInTime ? "" : ", the server was not ready in time"}`,
      required: `${COUNT}, ${COUNT} arrived`,
      ok: isReadyInTime && ranOnce === COUNT && arrivals.length === COUNT && times.size === COUNT,
    },
  ];
}

/** When each delivery was due, and how many schedules have run once. */
function recorded(file: string): { times: Map<string, number>; ranOnce: number } {
  using db = new Database(file, { readonly: true });
  const rows = db.query<{ id: string; at: number }, []>(
    "SELECT lower(hex(relay_id)) AS id, scheduled_for AS at FROM relays WHERE schedule_id IS NOT NULL",
  );
  const ran = db.query<{ n: number }, []>("SELECT count(*) AS n FROM relay_schedules WHERE runs = 1");
  const times = new Map(rows.all().map(({ id, at }) => [dashed(id), at]));
  return { times, ranOnce: ran.get()?.n ?? 0 };
}

/** A UUID as it is written. */
function dashed(hex: string): string {
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
