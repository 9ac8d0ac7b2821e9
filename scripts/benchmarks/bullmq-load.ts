// Adds delayed jobs with BullMQ: bun bullmq-load.ts SOCKET SECONDS CLIENTS. Prints per-second, p50 and p99 as JSON.
import { Queue } from "bullmq";

const DELAY_MS = 3_600_000;
const DATA = { url: "https://hooks.example.com/in", method: "POST", payload: { id: "evt_1", amount: 4200 } };

const [socket = "", seconds = "1", clients = "32"] = process.argv.slice(2);
const queue = new Queue("relays", { connection: { path: socket } });
await queue.add("deliver", DATA, { delay: DELAY_MS });

const latencies: number[] = [];
const begun = performance.now();
const end = begun + Number(seconds) * 1_000;
const client = async (): Promise<void> => {
  while (performance.now() < end) {
    const sent = performance.now();
    await queue.add("deliver", DATA, { delay: DELAY_MS });
    latencies.push(performance.now() - sent);
  }
};
await Promise.all(Array.from({ length: Number(clients) }, client));
const elapsed = (performance.now() - begun) / 1_000;
latencies.sort((a, b) => a - b);
const at = (share: number): number => latencies[Math.floor(latencies.length * share)] ?? Number.NaN;
console.log(JSON.stringify({ perSecond: latencies.length / elapsed, p50Ms: at(0.5), p99Ms: at(0.99) }));
await queue.close();
process.exit();
