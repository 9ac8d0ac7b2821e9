import { expect, test } from "bun:test";
import { runArchiveRounds } from "../../scripts/archives/rounds.ts";
import { NINEFOLD_COMMAND } from "../../scripts/processes/server-process.ts";
import { S3Server } from "../support/s3-server.ts";

test("what was acknowledged is in the archive after kills at random times", async () => {
  const s3 = await new S3Server().start();
  try {
    const options = { command: NINEFOLD_COMMAND, rounds: 5, seed: 7 };
    const outcome = await runArchiveRounds(s3.disturbed(), options);
    expect(outcome.problems).toEqual([]);
    expect(outcome.acknowledged).toBeGreaterThan(0);
    expect(outcome.kills).toBe(5);
  } finally {
    await s3.stop();
  }
}, 120_000);
