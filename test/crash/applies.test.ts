import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runApplyRounds } from "../harness/crash/applies.ts";
import { NINEFOLD_COMMAND } from "../harness/processes/server-process.ts";
import { repeated } from "../support/long-form.ts";

/** Each kills twice. */
const ROUNDS = repeated(1, 10);

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "ninefold-applies-test-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test(
  `${2 * ROUNDS} kills of apply and of its server: applied again, nothing is left to change`,
  async () => {
    const kills = await runApplyRounds({
      command: NINEFOLD_COMMAND,
      folder,
      rounds: ROUNDS,
      seed: 20_260_310,
    });
    expect(kills.flatMap(({ problems }) => problems)).toEqual([]);
    expect(kills).toHaveLength(2 * ROUNDS);
  },
  ROUNDS * 90_000,
);
