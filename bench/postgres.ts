import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "../test/harness/processes/children.ts";
import type { Competitor, Measurement } from "./benchmark.ts";
import { PostgresCluster } from "./postgres-cluster.ts";
import { METERS, type Stage } from "./stage.ts";

const CLIENTS = 32;
const THREADS = 2;

const TABLES = `
CREATE TABLE meters (id integer PRIMARY KEY, balance bigint NOT NULL);
CREATE TABLE entries (
  sequence bigserial PRIMARY KEY, meter_id integer NOT NULL, amount bigint NOT NULL,
  balance_after bigint NOT NULL, at timestamptz NOT NULL, request_id uuid NOT NULL);
INSERT INTO meters SELECT number, 1000000000 FROM generate_series(0, ${METERS - 1}) AS number;
VACUUM ANALYZE meters;
`;

/** Balance and ledger in one statement, so in one transaction and one round trip: the fastest form in PostgreSQL. */
const DEDUCT = `
\\set meter random(0, ${METERS - 1})
WITH changed AS (UPDATE meters SET balance = balance - 1 WHERE id = :meter AND balance >= 1 RETURNING id, balance)
INSERT INTO entries (meter_id, amount, balance_after, at, request_id)
SELECT id, -1, balance, now(), gen_random_uuid() FROM changed RETURNING balance_after;
`;

/** A deduct with its ledger entry in PostgreSQL, by pgbench over a Unix socket. */
export class PostgresDeduct implements Competitor {
  readonly name = "PostgreSQL deduct";
  private cluster: PostgresCluster | null = null;
  private script = "";

  missing(): string | null {
    return PostgresCluster.missing();
  }

  async prepare(stage: Stage): Promise<void> {
    this.cluster = await PostgresCluster.start(stage, "postgres");
    const tables = join(stage.folder, "tables.sql");
    writeFileSync(tables, TABLES);
    await run([...this.cluster.client("psql"), "-q", "-v", "ON_ERROR_STOP=1", "-f", tables]);
    this.script = join(stage.folder, "deduct.sql");
    writeFileSync(this.script, DEDUCT);
  }

  async measure(seconds: number): Promise<Measurement> {
    const load = [
      "-n",
      "-M",
      "prepared",
      "-c",
      `${CLIENTS}`,
      "-j",
      `${THREADS}`,
      "-T",
      `${Math.ceil(seconds)}`,
    ];
    const out = await run([...(this.cluster?.client("pgbench") ?? []), ...load, "-f", this.script]);
    const perSecond = Number(/^tps = ([\d.]+)/m.exec(out)?.[1] ?? Number.NaN);
    if (!(perSecond > 0) || !/failed transactions: 0\b/.test(out)) throw new Error(`pgbench: ${out}`);
    return { perSecond, p50Ms: null, p99Ms: null };
  }
}
