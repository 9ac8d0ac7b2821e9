// Recovers messages that an endpoint has missed, with order keys of which some always fail, while the server is killed
// repeatedly. Checks that each message arrives, oldest first, and is delivered once, and that failing keys delay no others.
//   scripts/harness recover                 100,000 messages with 10,000 keys, of which 10 fail; 50 kills; 22 minutes
//   scripts/harness recover --messages N    number of messages (100,000), in recoveries of 10,000, one after another
//   scripts/harness recover --endpoints N   number of endpoints (1), which share the messages and are recovered at the same time
//   scripts/harness recover --keys N        number of order keys (10,000)
//   scripts/harness recover --failing N     number of keys that fail (10)
//   scripts/harness recover --rate N        messages per second and endpoint (100, the maximum)
//   scripts/harness recover --kills N       number of kills (50)
//   scripts/harness recover --seed N        repeats the choices of an earlier run, not its timing
//   scripts/harness recover --binary        runs the executable dist/ninefold instead of the source
import { parseArgs } from "node:util";
import { Cleanup } from "./processes/cleanup.ts";
import { BINARY_COMMAND, SOURCE_COMMAND } from "./processes/server-process.ts";
import { describeRecover, runRecover } from "./recover/run.ts";

/** Longest pause of keys that do not fail: a recovery sends once a second. */
const PAUSE_MS_MAX = 3_000;
/** What the reads of another account may take longer than those of a server that does nothing else. */
const P99_MS_MAX = 20;

const { values } = parseArgs({
  options: {
    messages: { type: "string", default: "100000" },
    endpoints: { type: "string", default: "1" },
    keys: { type: "string", default: "10000" },
    failing: { type: "string", default: "10" },
    rate: { type: "string", default: "100" },
    kills: { type: "string", default: "50" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    binary: { type: "boolean", default: false },
  },
});

function whole(name: keyof typeof values, least = 1): number {
  const number = Number(values[name]);
  if (!Number.isSafeInteger(number) || number < least)
    throw new Error(`--${name} must be an integer from ${least}, not "${values[name]}"`);
  return number;
}

const cleanup = new Cleanup();
try {
  const endpoints = whole("endpoints");
  const seed = whole("seed", 0);
  console.log(`seed ${seed}`);
  const result = await runRecover({
    command: values.binary ? BINARY_COMMAND : SOURCE_COMMAND,
    folder: cleanup.folder("recover"),
    endpoints,
    messages: Math.ceil(whole("messages") / endpoints),
    keys: Math.ceil(whole("keys") / endpoints),
    failingKeys: Math.ceil(whole("failing", 0) / endpoints),
    perSecond: whole("rate"),
    kills: whole("kills", 0),
    seed,
    report: console.log,
  });
  console.log(describeRecover(result));
  for (const problem of result.problems) console.log(`  ${problem}`);
  const isOk =
    result.problems.length === 0 &&
    result.longestPauseMs <= PAUSE_MS_MAX &&
    result.sending.p99Ms - result.sending.bareP99Ms <= P99_MS_MAX;
  console.log(isOk ? "ok" : "FAILED");
  process.exitCode = isOk ? 0 : 1;
} catch (error) {
  if (!cleanup.interrupted)
    console.error(`scripts/harness recover: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  await cleanup.run();
}
process.exit();
