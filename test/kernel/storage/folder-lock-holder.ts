// A process that takes the lock named on its command line, prints a line, and holds it until it is killed.
import { lockFolder } from "../../../src/kernel/storage/folder-lock.ts";

lockFolder(process.argv[2] ?? "");
// Nothing refers to the lock here any more: it must stay held.
Bun.gc(true);
process.stdout.write("locked\n");
setInterval(() => {}, 60_000);
