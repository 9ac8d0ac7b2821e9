// Sends delayed jobs with pg-boss: bun bench/queues/pg-boss.ts FOLDER-OF-THE-SOCKET SECONDS.
import { PgBoss } from "pg-boss";
import { DATA, DELAY_SECONDS, load } from "../load.ts";

const QUEUE = "relays";
/** A connection for each client. */
const CONNECTIONS = 32;

const [host = "", seconds = "1"] = process.argv.slice(2);
const boss = new PgBoss({
  host,
  user: "bench",
  database: "postgres",
  max: CONNECTIONS,
  // Disables the rest of pg-boss, which would take time from the database.
  supervise: false,
  schedule: false,
});
boss.on("error", (error) => console.error(error));
await boss.start();
await boss.createQueue(QUEUE);
await load(Number(seconds), () => boss.send(QUEUE, DATA, { startAfter: DELAY_SECONDS }));
await boss.stop({ graceful: false });
process.exit();
