// Proves that `ninefold listen` loses no event: it is killed and restarted many times while events arrive. Prints the result;
// exit code 1 if an event was lost, changed or out of order.
//   scripts/harness listening [--kills 20] [--per-second 100] [--alive-ms 1500]
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { killListeners } from "../cli/listen-run.ts";
import { NINEFOLD_COMMAND, ServerProcess } from "./processes/server-process.ts";

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "20" },
    "per-second": { type: "string", default: "100" },
    "alive-ms": { type: "string", default: "1500" },
  },
});
const read = (name: keyof typeof values): number => {
  const number = Number(values[name]);
  if (!Number.isSafeInteger(number) || number < 1) throw new Error(`--${name} must be a positive integer`);
  return number;
};
const size = { kills: read("kills"), perSecond: read("per-second"), aliveMs: read("alive-ms") };
const folder = mkdtempSync(join(tmpdir(), "ninefold-listening-"));
const args = ["--port", "0", "--data", folder, "--allow-private-targets", "127.0.0.0/8"];
const server = await ServerProcess.start({ command: NINEFOLD_COMMAND, args });
const result = await killListeners(server.url, server.key ?? "", size);
await server.stop();
rmSync(folder, { recursive: true, force: true });
console.log(JSON.stringify({ ...size, ...result }, null, 2));
const holds = result.lost.length === 0 && result.wrong.length === 0 && result.isInOrder;
console.log(holds ? `all ${result.sent} events were forwarded` : "events were lost, changed or out of order");
process.exit(holds ? 0 : 1);
