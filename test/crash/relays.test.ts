import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RelayWorkload } from "../harness/crash/relays.ts";
import { inParallel, ServerTarget } from "../harness/crash/target.ts";
import { NINEFOLD_COMMAND, ServerProcess } from "../harness/processes/server-process.ts";
import { repeated } from "../support/long-form.ts";

const DELIVERIES = repeated(1_500, 5_000);
/** Deliveries fall due over so many seconds. */
const SPREAD_SECONDS = repeated(4, 10);
const KILL_EVERY_MS = 2_000;
const KILLS = repeated(2, 5);

test(`${DELIVERIES} deliveries fall due while the server is killed every 2 s: all arrive, repeats only of those under way`, async () => {
  const folder = mkdtempSync(join(tmpdir(), "ninefold-crash-relays-"));
  const config = join(folder, "ninefold.toml");
  await Bun.write(config, "[tiers.scale]\nrequests_per_minute = 1000000000\n");
  const data = join(folder, "data");
  const args = ["--port", "0", "--data", data, "--config", config, "--log-level", "error"];
  const launch = { command: NINEFOLD_COMMAND, args: [...args, "--allow-private-targets", "127.0.0.1"] };
  let server = await ServerProcess.start(launch);
  try {
    const target = new ServerTarget(server.url, server.key ?? "", data);
    const workload = new RelayWorkload();
    await workload.prepare(target);
    const numbers = Array.from({ length: DELIVERIES }, (_, number) => number);
    await inParallel(numbers, 32, (number) => workload.schedule(target, 1 + (number % SPREAD_SECONDS)));
    expect(workload.takeTally()).toEqual({ acknowledged: DELIVERIES, inDoubt: 0, happened: 0 });
    for (let kill = 0; kill < KILLS; kill += 1) {
      await Bun.sleep(KILL_EVERY_MS);
      const from = Date.now();
      await server.stop("SIGKILL");
      workload.noteKill(from, Date.now());
      server = await ServerProcess.start(launch);
      target.attach(server.url);
    }
    expect(await workload.verify(target)).toEqual([]);
    // 16 at once to one host: so many can be under way at each kill.
    expect(workload.repeated).toBeLessThanOrEqual(16 * KILLS);
  } finally {
    await server.stop("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}, 120_000);
