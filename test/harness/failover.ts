// Disturbs a cluster of two nodes under load, and looks whether anything was lost or doubled. At the end the leader's file is
// compared with a copy from the beginning to which the whole log was applied.
//   scripts/harness failover                     from source, with three nodes of etcd
//   scripts/harness failover --engine postgres   with a primary and two synchronous standbys
//   scripts/harness failover --kills N           so many kills of the leader (20)
//   scripts/harness failover --pauses N          so many times SIGSTOP for longer than the lease, then SIGCONT (5)
//   scripts/harness failover --engine-kills N    so many kills of etcd's leader, or of PostgreSQL's primary (5)
//   scripts/harness failover --majorities N      so many times two nodes of etcd, or both standbys, are away for two leases (2)
//   scripts/harness failover --splits N          so many kills of the leader between its COMMIT and the log (2)
//   scripts/harness failover --archive           the leader archives to the object store of the tests; what that restores is compared, too
//   scripts/harness failover --uploads N         with it: so many kills of the leader while it uploads (5)
//   scripts/harness failover --lease-seconds N   (3)
//   scripts/harness failover --binary            the executable dist/ninefold instead of the source
import { parseArgs } from "node:util";
import { S3Server } from "../support/s3-server.ts";
import { DISTURBANCES, type Disturbance } from "./failover/disturbances.ts";
import { missingFor } from "./failover/engines.ts";
import { isClean, runFailovers } from "./failover/run.ts";
import { Cleanup } from "./processes/cleanup.ts";
import { BINARY_COMMAND, SOURCE_COMMAND } from "./processes/server-process.ts";

const { values } = parseArgs({
  options: {
    engine: { type: "string", default: "etcd" },
    kills: { type: "string", default: "20" },
    pauses: { type: "string", default: "5" },
    "engine-kills": { type: "string", default: "5" },
    majorities: { type: "string", default: "2" },
    splits: { type: "string", default: "2" },
    archive: { type: "boolean", default: false },
    uploads: { type: "string" },
    "lease-seconds": { type: "string", default: "3" },
    binary: { type: "boolean", default: false },
  },
});

function count(name: Disturbance | "lease-seconds"): number {
  const number = Number(values[name] ?? (values.archive ? UPLOADS : 0));
  if (!Number.isSafeInteger(number) || number < 0)
    throw new Error(`--${name} must be a number, not "${values[name]}"`);
  return number;
}

function quantiles(times: readonly number[]): string {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (part: number) =>
    Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0);
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${at(1)} ms`;
}

/** Kills in uploads, unless it is said. */
const UPLOADS = 5;

const cleanup = new Cleanup();
try {
  const { engine } = values;
  if (engine !== "etcd" && engine !== "postgres")
    throw new Error(`--engine must be etcd or postgres, not "${engine}"`);
  const missing = missingFor(engine);
  if (missing !== null) throw new Error(missing);
  const s3 = values.archive ? await new S3Server().start() : null;
  cleanup.add(async () => s3?.stop());
  const result = await runFailovers(
    {
      ...(s3 && { archive: s3.disturbed() }),
      command: values.binary ? BINARY_COMMAND : SOURCE_COMMAND,
      engine,
      leaseSeconds: count("lease-seconds"),
      counts: Object.fromEntries(DISTURBANCES.map((kind) => [kind, count(kind)])),
      report: (text) => console.log(text),
    },
    cleanup,
  );
  const { acknowledged, reads, locks, lost, doubled, staleReads, fencing, times, differing } = result;
  for (const problem of result.problems) console.log(`  ${problem}`);
  console.log(`${acknowledged} changes acknowledged, ${reads} reads, ${locks} locks`);
  console.log(
    `${lost} lost, ${doubled} doubled, ${staleReads} stale reads, ${fencing} fencing tokens out of order`,
  );
  console.log(
    `${result.withoutQuorum} responses without a quorum, ${result.unnoticed} nodes with a change of their own`,
  );
  console.log(`${differing} bytes differ between the leader's file and the replay of the log`);
  for (const what of result.unarchived) console.log(`the archive restores something else: ${what}`);
  for (const [kind, ms] of Object.entries(times))
    if (ms.length > 0) console.log(`${ms.length} ${kind}: ${quantiles(ms)}`);
  process.exitCode = isClean(result) ? 0 : 1;
} catch (error) {
  if (!cleanup.interrupted)
    console.error(`scripts/harness failover: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  await cleanup.run();
}
process.exit();
