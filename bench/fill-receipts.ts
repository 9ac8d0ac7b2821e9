// Fills a data folder with receipts, through the service itself: bun fill-receipts.ts FOLDER EMAIL COUNT LINES
// The receipts belong to the default project of the account with that e-mail address, and are also written to the file
// LINES as JSON lines.
import { readLogEntry } from "../src/areas/notary/chain.ts";
import { NotaryService } from "../src/areas/notary/service.ts";
import { notaryStore } from "../src/areas/notary/store.ts";
import type { Tx } from "../src/kernel/storage/tx.ts";
import { defaultProjectOf, endFilling, openForFilling } from "./filling.ts";
import { logBody } from "./rows.ts";

/** Receipts created in one unit of work. */
const SLICE = 1_000;

const [folder = "", email = "", count = "0", lines = ""] = process.argv.slice(2);
const kernel = openForFilling(folder);
const { db, writer } = kernel;
const project = defaultProjectOf(kernel, email);
const notary = new NotaryService(notaryStore(db), kernel);
const file = Bun.file(lines).writer();

function fill(tx: Tx, from: number, end: number): void {
  for (let number = from; number < end; number += 1) {
    const body = logBody(`in_${number}`);
    const { receipt } = notary.append(tx, project.ref, readLogEntry(body, JSON.stringify(body)));
    file.write(`${JSON.stringify(receipt)}\n`);
  }
}

await writer.submit((tx) => notary.init(tx, project.userId, project));
const total = Number(count);
for (let from = 0; from < total; from += SLICE) {
  await writer.submit((tx) => fill(tx, from, Math.min(total, from + SLICE)));
  await file.flush();
  // Yields to the event loop, so that checkpoints continue.
  await Bun.sleep(0);
}
await file.end();
endFilling(kernel);
