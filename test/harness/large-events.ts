// Sends many large webhooks at the same time, from many networks, and measures memory and the reads of another account.
//   scripts/harness large-events                200 events of 25 MiB from 50 networks
//   scripts/harness large-events --events N     number of events
//   scripts/harness large-events --networks N   number of networks
//   scripts/harness large-events --mib N        size of each, in MiB
//   scripts/harness large-events --kills N      kills the server so often, and once while the events are replayed
//   scripts/harness large-events --binary       runs the executable dist/ninefold instead of the source
import { parseArgs } from "node:util";
import { describeLargeLoad, runLargeLoad } from "./large/large-events.ts";
import { Cleanup } from "./processes/cleanup.ts";
import { BINARY_COMMAND, SOURCE_COMMAND } from "./processes/server-process.ts";

/** Limits of the full form. */
const MIB_MAX = 512;
const P99_MS_MAX = 20;

const { values } = parseArgs({
  options: {
    events: { type: "string", default: "200" },
    networks: { type: "string", default: "50" },
    mib: { type: "string", default: "25" },
    kills: { type: "string", default: "0" },
    binary: { type: "boolean", default: false },
  },
});

const cleanup = new Cleanup();
try {
  const events = Number(values.events);
  const kills = Number(values.kills);
  const result = await runLargeLoad({
    command: values.binary ? BINARY_COMMAND : SOURCE_COMMAND,
    folder: cleanup.folder("large-events"),
    events,
    networks: Number(values.networks),
    bytes: Number(values.mib) * 1024 * 1024,
    kills,
  });
  console.log(describeLargeLoad(result));
  for (const text of result.other) console.log(`  ${text}`);
  const isOk =
    result.accepted === events &&
    result.forwarded.areEqual &&
    result.replayed.areEqual &&
    result.orphans === 0 &&
    // A server that starts again does not respond.
    [result.sending, result.forwarding, result.replaying].every(
      ({ mib, p99Ms }) => (mib ?? 0) <= MIB_MAX && (kills > 0 || p99Ms <= P99_MS_MAX),
    );
  console.log(isOk ? "ok" : "FAILED");
  process.exitCode = isOk ? 0 : 1;
} finally {
  await cleanup.run();
}
process.exit();
