import { join } from "node:path";
import { endsWithUs } from "../processes/children.ts";
import { plainEnvironment } from "../processes/server-process.ts";
import type { Competitor, Measurement } from "./benchmark.ts";
import { startRedis } from "./redis.ts";
import type { Stage } from "./stage.ts";

const CLIENTS = 32;

/** Adding a delayed job with BullMQ, every write synced: a Redis of its own on a Unix socket. */
export class BullMqDelayed implements Competitor {
  readonly name = "BullMQ delayed add";
  private socket = "";

  missing(): string | null {
    return Bun.which("redis-server") === null ? "Redis is not installed: apt-get install redis-server" : null;
  }

  async prepare(stage: Stage): Promise<void> {
    this.socket = await startRedis(stage, "bullmq");
  }

  async measure(seconds: number): Promise<Measurement> {
    const script = join(import.meta.dir, "bullmq-load.ts");
    const command = [process.execPath, "--no-env-file", script, this.socket, `${seconds}`, `${CLIENTS}`];
    const child = Bun.spawn(command, {
      env: plainEnvironment(),
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    endsWithUs(child);
    const [out, error, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    if (code !== 0) throw new Error(`BullMQ failed (${code}): ${out}${error}`);
    return JSON.parse(out) as Measurement;
  }
}
