// A process that syncs the log of the database at its first argument as often as its second one says, and prints how many of
// these syncs the event loop has waited for.
import { writeFileSync } from "node:fs";
import { LogFile } from "../../../src/kernel/storage/log-file.ts";
import { LogSync } from "../../../src/kernel/storage/log-sync.ts";

const [, , database = "", times = ""] = process.argv;
writeFileSync(database, "");
writeFileSync(`${database}-wal`, "");
const sync = new LogSync(new LogFile(database, 4096));
let waitedFor = 0;
for (let count = 0; count < Number(times); count += 1) {
  const confirmation = sync.begin();
  if (confirmation === null) waitedFor += 1;
  else await confirmation;
}
sync.close();
process.stdout.write(`${waitedFor}\n`);
process.exit();
