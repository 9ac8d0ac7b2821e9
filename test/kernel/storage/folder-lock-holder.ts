// A process that takes the lock named on its command line, says so, and keeps it until it is ended.
import { lockFolder } from "../../../src/kernel/storage/folder-lock.ts";

lockFolder(process.argv[2] ?? "");
process.stdout.write("locked\n");
setInterval(() => {}, 60_000);
