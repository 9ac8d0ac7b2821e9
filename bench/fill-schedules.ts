// Fills a data folder with schedules: bun fill-schedules.ts FOLDER EMAIL COUNT DUE SECONDS PORT
// Each is due once and sends a request to the receiver at PORT. The first is due at DUE (epoch milliseconds), the
// others follow within SECONDS.
import { scheduleStore } from "../src/areas/relay/schedules/store.ts";
import { laneName } from "../src/kernel/scheduler/dispatcher.ts";
import type { Tx } from "../src/kernel/storage/tx.ts";
import { defaultProjectOf, endFilling, openForFilling } from "./filling.ts";
import { hostUrl } from "./schedule.ts";

/** Schedules created in one unit of work. */
const SLICE = 5_000;

const [folder = "", email = "", ...numbers] = process.argv.slice(2);
const [count = 0, due = 0, seconds = 1, port = 0] = numbers.map(Number);
const kernel = openForFilling(folder);
const { db, writer, scheduler } = kernel;
const account = defaultProjectOf(kernel, email);
const store = scheduleStore(db);

function fill(tx: Tx, from: number, end: number): void {
  for (let number = from; number < end; number += 1) {
    const ref = number + 1;
    const next_run_at = Math.round(due + (number * seconds * 1_000) / count);
    store.insert(tx, {
      ref,
      id: `sch_${ref.toString(16).padStart(32, "0")}`,
      accountRef: account.accountRef,
      projectRef: account.ref,
      managedBy: null,
      name: null,
      cron: "0 0 1 1 *",
      time_zone: "Europe/Berlin",
      target_url: `${hostUrl(number, port)}/`,
      method: "POST",
      event_type: null,
      headers: null,
      payload: '{"id":"evt_1","amount":4200}',
      state: "live",
      missed: "once",
      overlap: "allow",
      starts_at: null,
      ends_at: null,
      retry_schedule: null,
      callback_url: null,
      failure_callback_url: null,
      next_run_at,
      last_run_at: null,
      last_relay_id: null,
      last_message_id: null,
      runs: 0,
      skipped: 0,
      last_error: null,
      created_at: tx.now,
      updated_at: tx.now,
    });
    scheduler.enqueue(
      ...([tx, "relay.schedules", String(ref), next_run_at, null] as const),
      laneName(account.accountRef, "schedules"),
    );
  }
}

for (let from = 0; from < count; from += SLICE) {
  await writer.submit((tx) => fill(tx, from, Math.min(count, from + SLICE)));
  // Yields to the event loop, so that checkpoints continue.
  await Bun.sleep(0);
}
endFilling(kernel);
