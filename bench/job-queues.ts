import type { Competitor, Measurement } from "./benchmark.ts";
import { runLoad } from "./load.ts";
import { PostgresCluster } from "./postgres-cluster.ts";
import { startRedis } from "./redis.ts";
import type { Stage } from "./stage.ts";

/** Adds delayed jobs with BullMQ, with every write synced, to a separate Redis on a Unix socket. */
export class BullMqDelayed implements Competitor {
  readonly name = "BullMQ delayed add";
  private socket = "";

  missing(): string | null {
    return Bun.which("redis-server") === null ? "Redis is not installed: apt-get install redis-server" : null;
  }

  async prepare(stage: Stage): Promise<void> {
    this.socket = await startRedis(stage, "bullmq");
  }

  measure(seconds: number): Promise<Measurement> {
    return runLoad("queues/bullmq.ts", this.socket, seconds);
  }
}

/** Sends delayed jobs with pg-boss, with every commit synced, to a separate PostgreSQL cluster on a Unix socket. */
export class PgBossDelayed implements Competitor {
  readonly name = "pg-boss delayed send";
  private folder = "";

  missing(): string | null {
    return PostgresCluster.missing();
  }

  async prepare(stage: Stage): Promise<void> {
    this.folder = (await PostgresCluster.start(stage, "pg-boss")).folder;
  }

  measure(seconds: number): Promise<Measurement> {
    return runLoad("queues/pg-boss.ts", this.folder, seconds);
  }
}
