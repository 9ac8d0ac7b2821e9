import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NINEFOLD_COMMAND } from "../harness/processes/server-process.ts";
import { describeStreamLoad, runStreamLoad } from "../harness/storm/streams.ts";

/** Far above the usual duration, for a busy machine. */
const TIMEOUT_MS = 180_000;
/** Enough that the server notifies them in several steps. */
const STREAMS = 1_200;
/** The share of the limit for 10,000 streams, plus what a server needs after its start. */
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
    expect(result.lastReceivedMs).toBeGreaterThan(500);
    expect(result.lastReceivedMs).toBeLessThan(30_000);
    expect(result.mib ?? 0).toBeLessThan(MIB_MAX);
    expect(describeStreamLoad(result)).toStartWith(`${STREAMS} streams`);
  },
  TIMEOUT_MS,
);
