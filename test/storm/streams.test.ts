import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NINEFOLD_COMMAND } from "../../scripts/processes/server-process.ts";
import { describeStreamLoad, runStreamLoad } from "../../scripts/storms/streams.ts";

/** Far above what it takes: a machine that is busy with other things must not fail it. */
const TIMEOUT_MS = 60_000;
/** So many that they hear of a change in turn, and not at once. */
const STREAMS = 1_200;
/** What 10,000 may take, for so many; and what any server takes that has just begun to work. */
const MIB_MAX = (200 * STREAMS) / 10_000 + 40;

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "ninefold-streams-test-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test(
  `a change reaches ${STREAMS} streams within seconds`,
  async () => {
    const result = await runStreamLoad({ command: NINEFOLD_COMMAND, folder, streams: STREAMS });
    expect(result.allHeardMs).toBeGreaterThan(500);
    expect(result.allHeardMs).toBeLessThan(5_000);
    expect(result.mib ?? 0).toBeLessThan(MIB_MAX);
    expect(describeStreamLoad(result)).toStartWith(`${STREAMS} streams`);
  },
  TIMEOUT_MS,
);
