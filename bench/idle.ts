import { existsSync } from "node:fs";
import { BINARY_COMMAND, ServerProcess } from "../test/harness/processes/server-process.ts";
import { processorMs } from "../test/harness/processes/usage.ts";
import type { Finding } from "./benchmark.ts";
import { noExecutable } from "./results.ts";
import type { Stage } from "./stage.ts";

/** Name that selects this measurement. */
export const IDLE = "idle processor time of the executable, 10 monitors";

const MONITORS = 10;
const INTERVAL_MS = 60_000;
/** Code that runs ten times a minute is compiled after some minutes. A server is idle for days, so that is not measured. */
const SETTLING_MS = 300_000;
const MEASURED_MS = 180_000;
const PERCENT_MAX = 0.1;

/** Share of a core that a server takes with a few monitors and no requests. */
export async function measureIdle(stage: Stage, say: (text: string) => void): Promise<Finding[]> {
  const [executable = ""] = BINARY_COMMAND;
  if (!existsSync(executable)) return [noExecutable(IDLE)];
  say(`${IDLE}: ${(SETTLING_MS + MEASURED_MS) / 60_000} minutes`);
  const target = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("OK") });
  const server = await ServerProcess.start({ command: [executable], args: ["--ephemeral"] });
  try {
    for (let made = 0; made < MONITORS; made += 1) {
      const monitor = { name: `Monitor ${made}`, url: target.url.href, interval: INTERVAL_MS };
      await stage.post("/v1/pulse", monitor, server.key ?? "", server.url);
    }
    await Bun.sleep(SETTLING_MS);
    const before = processorMs(server.pid);
    const begun = performance.now();
    await Bun.sleep(MEASURED_MS);
    const after = processorMs(server.pid);
    const percent = ((after - before) / (performance.now() - begun)) * 100;
    return [
      {
        what: IDLE,
        measured: `${percent.toFixed(2)} %`,
        required: `≤ ${PERCENT_MAX} % of a core`,
        ok: percent <= PERCENT_MAX,
      },
    ];
  } finally {
    await server.stop();
    await target.stop(true);
  }
}
