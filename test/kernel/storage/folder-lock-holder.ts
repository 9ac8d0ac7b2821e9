// A process that takes the lock named on its command line, says so, and keeps it until it is ended.
import { lockFolder } from "../../../src/kernel/storage/folder-lock.ts";

lockFolder(process.argv[2] ?? "");
// Nothing here refers to the lock any more: it must hold all the same.
Bun.gc(true);
process.stdout.write("locked\n");
setInterval(() => {}, 60_000);
