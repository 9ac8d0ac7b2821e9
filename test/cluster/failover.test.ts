import { afterAll, expect, test } from "bun:test";
import { runFailovers } from "../harness/failover/run.ts";
import { Cleanup } from "../harness/processes/cleanup.ts";
import { NINEFOLD_COMMAND } from "../harness/processes/server-process.ts";
import { S3Server } from "../support/s3-server.ts";

const RUN_MS_MAX = 300_000;

const cleanup = new Cleanup();
afterAll(() => cleanup.run());

// The long form is scripts/harness failover.
test(
  "nothing is lost or doubled, nor missing in the archive, when the leader is killed and paused, and when the engine is away",
  async () => {
    const counts = { kills: 1, pauses: 1, "engine-kills": 1, majorities: 1, splits: 1, uploads: 1 };
    const s3 = await new S3Server().start();
    cleanup.add(() => s3.stop());
    const archive = s3.disturbed();
    const result = await runFailovers(
      { command: NINEFOLD_COMMAND, engine: "etcd", leaseSeconds: 3, counts, archive },
      cleanup,
    );
    const { acknowledged, reads, locks, times, ...findings } = result;
    expect(findings).toEqual({
      lost: 0,
      doubled: 0,
      staleReads: 0,
      fencing: 0,
      withoutQuorum: 0,
      unnoticed: 0,
      problems: [],
      differing: 0,
      unarchived: [],
    });
    for (const ms of Object.values(times)) expect(ms).toHaveLength(1);
    for (const count of [acknowledged, reads, locks]) expect(count).toBeGreaterThan(0);
  },
  RUN_MS_MAX,
);
