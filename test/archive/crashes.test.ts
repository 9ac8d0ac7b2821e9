import { expect, test } from "bun:test";
import { runRemovalRounds } from "../harness/archive/removals.ts";
import { runArchiveRounds } from "../harness/archive/rounds.ts";
import { NINEFOLD_COMMAND } from "../harness/processes/server-process.ts";
import { repeated } from "../support/long-form.ts";
import { S3Server } from "../support/s3-server.ts";

/** Kills at random times; scripts/harness archive-crashes makes as many as it is told to. */
const KILLS = repeated(3, 10);
/** Kills in the two requests that delete, and at more steps in the long form; scripts/harness archive-crashes visits all 40. */
const REMOVAL_ROUNDS = repeated(2, 8);
/** Far above what a round takes: a machine that is busy with other things must not fail it. */
const REMOVAL_ROUND_MS_MAX = 300_000;

test(
  "what was acknowledged is in the archive after kills at random times",
  async () => {
    const s3 = await new S3Server().start();
    try {
      const options = { command: NINEFOLD_COMMAND, rounds: KILLS, seed: 7 };
      const outcome = await runArchiveRounds(s3.disturbed(), options);
      expect(outcome.problems).toEqual([]);
      expect(outcome.acknowledged).toBeGreaterThan(0);
      expect(outcome.kills).toBe(KILLS);
    } finally {
      await s3.stop();
    }
  },
  REMOVAL_ROUND_MS_MAX,
);

test(
  "kills and failures in a deletion of expired objects take no retained time, and leave nothing for good",
  async () => {
    const s3 = await new S3Server().start();
    try {
      const options = { command: NINEFOLD_COMMAND, rounds: REMOVAL_ROUNDS };
      const outcome = await runRemovalRounds(s3.disturbed(), options);
      expect(outcome.problems).toEqual([]);
      expect(outcome.kills + outcome.failures).toBe(REMOVAL_ROUNDS);
      expect(outcome.restores).toBeGreaterThan(REMOVAL_ROUNDS);
      expect(outcome.left).toBeGreaterThan(0);
      expect(outcome.removed).toBe(outcome.left);
    } finally {
      await s3.stop();
    }
  },
  REMOVAL_ROUNDS * REMOVAL_ROUND_MS_MAX,
);
