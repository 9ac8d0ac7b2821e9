// Fills a data folder to a size in bytes, through the service itself: bun fill-large.ts FOLDER EMAIL BYTES
// Receipts with large logs, in the default project of the account with that e-mail address, make up the size.
import { readLogEntry } from "../src/areas/notary/chain.ts";
import { NotaryService } from "../src/areas/notary/service.ts";
import { notaryStore } from "../src/areas/notary/store.ts";
import { defaultProjectOf, endFilling, openForFilling } from "./filling.ts";

/** Receipts created in one unit of work. */
const SLICE = 100;
/** A log of 20 KB: two receipts take eleven pages. */
const NOTE = "n".repeat(20_000);

const [folder = "", email = "", bytes = "0"] = process.argv.slice(2);
const kernel = openForFilling(folder);
const { db, writer } = kernel;
const project = defaultProjectOf(kernel, email);
const notary = new NotaryService(notaryStore(db), kernel);

await writer.submit((tx) => notary.init(tx, project.userId, project));
const pages = db.number("SELECT page_count AS n FROM pragma_page_count");
const pagesWanted = Number(bytes) / 4096;
for (let number = 0; pages() < pagesWanted; ) {
  await writer.submit((tx) => {
    for (const end = number + SLICE; number < end; number += 1) {
      const body = { log: { number, note: NOTE } };
      notary.append(tx, project.ref, readLogEntry(body, JSON.stringify(body)));
    }
  });
  // Yields to the event loop, so that checkpoints continue.
  await Bun.sleep(0);
}
endFilling(kernel);
