// Adds delayed jobs with BullMQ: bun bench/queues/bullmq.ts SOCKET SECONDS.
import { Queue } from "bullmq";
import { DATA, DELAY_SECONDS, load } from "../load.ts";

const [socket = "", seconds = "1"] = process.argv.slice(2);
const queue = new Queue("relays", { connection: { path: socket } });
await load(Number(seconds), () => queue.add("deliver", DATA, { delay: DELAY_SECONDS * 1_000 }));
await queue.close();
process.exit();
