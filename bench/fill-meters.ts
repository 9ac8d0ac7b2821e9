// Fills a data folder with meters, through the service itself: bun fill-meters.ts FOLDER EMAIL COUNT
// The meters meter-000000, meter-000001, … belong to the default project of the account with that e-mail address.
import { MeterService } from "../src/areas/meter/service.ts";
import { meterStore, usageStore } from "../src/areas/meter/store.ts";
import { UsageReader } from "../src/areas/meter/usage/reader.ts";
import type { Tx } from "../src/kernel/storage/tx.ts";
import { defaultProjectOf, endFilling, openForFilling } from "./filling.ts";

/** Meters created in one unit of work. */
const SLICE = 2_000;
const BALANCE = 1_000_000_000;
const REQUEST_ID = "00000000-0000-7000-8000-000000000000";

const [folder = "", email = "", count = "0"] = process.argv.slice(2);
const kernel = openForFilling(folder);
const { db, writer } = kernel;
const project = defaultProjectOf(kernel, email);
const meters = new MeterService(meterStore(db), kernel);

function fill(tx: Tx, from: number, end: number, projectRef: number): void {
  for (let number = from; number < end; number += 1) {
    const meterId = `meter-${String(number).padStart(6, "0")}`;
    meters.refill(tx, { projectRef, meterId, requestId: REQUEST_ID }, BALANCE);
  }
}

const total = Number(count);
for (let from = 0; from < total; from += SLICE) {
  await writer.submit((tx) => fill(tx, from, Math.min(total, from + SLICE), project.ref));
  // Yields to the event loop, so that settlement and checkpoints continue.
  await Bun.sleep(0);
}
await meters.finish();
// A server in service already has the totals. Otherwise each measured server would begin to calculate them again.
await new UsageReader(usageStore(db), kernel, meters.book.recent).catchUp();
endFilling(kernel);
