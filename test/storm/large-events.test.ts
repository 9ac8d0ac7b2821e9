import { expect, test } from "bun:test";
import { describeLargeLoad, runLargeLoad } from "../harness/large/large-events.ts";
import { Cleanup } from "../harness/processes/cleanup.ts";
import { NINEFOLD_COMMAND } from "../harness/processes/server-process.ts";

/** The short form of `scripts/harness large-events`. */
test("large webhooks from several networks are all stored, and forwarded and replayed byte for byte, despite kills", async () => {
  const cleanup = new Cleanup();
  try {
    const result = await runLargeLoad({
      command: NINEFOLD_COMMAND,
      folder: cleanup.folder("large-events"),
      events: 20,
      networks: 5,
      bytes: 2 * 1024 * 1024 + 1,
      kills: 1,
    });
    console.log(describeLargeLoad(result));
    expect({ accepted: result.accepted, other: result.other }).toEqual({ accepted: 20, other: [] });
    expect([result.forwarded.areEqual, result.replayed.areEqual, result.orphans]).toEqual([true, true, 0]);
  } finally {
    await cleanup.run();
  }
}, 120_000);
