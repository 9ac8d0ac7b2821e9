// Fills a data folder with receipts, through the service itself: bun fill-receipts.ts FOLDER EMAIL COUNT LINES
// The receipts belong to the default project of the account with that e-mail address, and are written to the file
// LINES as JSON lines, too.
import { join } from "node:path";
import { MIGRATIONS } from "../../migrations/index.ts";
import { readLogEntry } from "../../src/areas/notary/log-entry.ts";
import { NotaryService } from "../../src/areas/notary/service.ts";
import { NotaryStore } from "../../src/areas/notary/store.ts";
import { createSystemClock } from "../../src/kernel/clock.ts";
import { openKernel } from "../../src/kernel/kernel.ts";
import { createLogger } from "../../src/kernel/log.ts";
import type { Tx } from "../../src/kernel/storage/tx.ts";
import { logBody } from "./rows.ts";

/** Receipts made in one unit of work. */
const SLICE = 1_000;

const [folder = "", email = "", count = "0", lines = ""] = process.argv.slice(2);
const kernel = openKernel({
  databasePath: join(folder, "ninefold.db"),
  masterKeyPath: join(folder, "master.key"),
  masterKey: null,
  // Nobody reads the file before it is whole.
  durability: "normal",
  migrations: MIGRATIONS,
  log: createLogger(createSystemClock(), "warn"),
});
const { db, writer, checkpointer, vault, ids } = kernel;
const owner = db
  .query<{ user_id: string; ref: number; id: string }, [string]>(
    "SELECT user_id, projects.ref, projects.id FROM projects JOIN accounts ON accounts.ref = account_ref WHERE email = ? AND is_default = 1",
  )
  .get(email);
if (owner === null) throw new Error(`there is no account ${email}`);
const { user_id, ...project } = owner;
const notary = new NotaryService({ store: new NotaryStore(db), vault, ids });
const file = Bun.file(lines).writer();

function fill(tx: Tx, from: number, end: number): void {
  for (let number = from; number < end; number += 1) {
    const body = logBody(`in_${number}`);
    const { receipt } = notary.append(tx, project.ref, readLogEntry(body, JSON.stringify(body)));
    file.write(`${JSON.stringify(receipt)}\n`);
  }
}

await writer.submit((tx) => notary.init(tx, user_id, project));
const total = Number(count);
for (let from = 0; from < total; from += SLICE) {
  await writer.submit((tx) => fill(tx, from, Math.min(total, from + SLICE)));
  await file.flush();
  // A turn of the event loop: checkpoints go on beside.
  await Bun.sleep(0);
}
await file.end();
writer.close();
checkpointer.close();
db.close();
process.exit();
