import { afterAll, expect, test } from "bun:test";
import { runFailovers } from "../../scripts/failovers/run.ts";
import { Cleanup } from "../../scripts/processes/cleanup.ts";
import { NINEFOLD_COMMAND } from "../../scripts/processes/server-process.ts";

const RUN_MS_MAX = 300_000;

const cleanup = new Cleanup();
afterAll(() => cleanup.run());

// The long form is scripts/failover.
test(
  "nothing is lost or doubled when the leader is killed and paused",
  async () => {
    const result = await runFailovers(
      { command: NINEFOLD_COMMAND, engine: "etcd", leaseSeconds: 3, kills: 2, pauses: 1 },
      cleanup,
    );
    const { lost, doubled, staleReads, fencing, problems } = result;
    expect({ lost, doubled, staleReads, fencing, problems }).toEqual({
      lost: 0,
      doubled: 0,
      staleReads: 0,
      fencing: 0,
      problems: [],
    });
    expect(result.times.kill).toHaveLength(2);
    expect(result.times.pause).toHaveLength(1);
    for (const count of [result.acknowledged, result.reads, result.locks]) expect(count).toBeGreaterThan(0);
  },
  RUN_MS_MAX,
);
