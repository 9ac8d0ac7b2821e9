// Measures the throughput and latency of Ninefold and of comparable servers, all in one run. A row is one kind of
// request. Each round measures every row once on a server that has just started ("cold") and, after some load, once on
// a "warm" one. The results are medians over the rounds, and ratios of measurements that were taken within seconds of
// each other. Each row is compared with "bare", a server that sends the same responses and stores nothing. A row that
// writes to the disk is also compared with its "ceiling", a minimal server that verifies the key, creates an id and
// writes the same rows.
//   scripts/bench                   5 rounds of 3 s each, from source
//   scripts/bench --only PATTERN    only the rows whose name matches, with what they are compared with
//   scripts/bench --rounds N        number of rounds (5)
//   scripts/bench --seconds N       whole seconds per measurement (3)
//   scripts/bench --warm-seconds N  seconds of load before a server counts as warm (10; 0: only cold servers are measured)
//   scripts/bench --fsync-ms N      duration of an fsync in the row of a slow disk (10)
//   scripts/bench --wal-minutes N   afterwards sends deducts over 32 connections for N minutes and measures the size of the WAL
//   scripts/bench --probe-minutes N minutes for which a probe, and a server with 50 probes, are measured (10)
//   scripts/bench --binary          runs the executable dist/ninefold instead of the source
//   scripts/bench --json            prints the results as one JSON object on standard output
// Exits with 1 if a requirement is missed. The rows are in bench/rows.ts.
// Needs wrk. PostgreSQL (alone and with pg-boss), Redis (alone and with BullMQ) and etcd are measured if they are
// installed.
import { parseArgs } from "node:util";
import { Cleanup } from "../test/harness/processes/cleanup.ts";
import { BINARY_COMMAND, SOURCE_COMMAND } from "../test/harness/processes/server-process.ts";
import { BACKUP, measureBackup } from "./backup.ts";
import type { Competitor, Finding } from "./benchmark.ts";
import { ARCHIVE, COMMIT_LOG, measureArchive, measureCommitLog } from "./beyond-one-machine.ts";
import { CHECK_COST, measureCheckCost } from "./check-cost.ts";
import { CHECK_BY_NGINX, measureByNginx } from "./checks.ts";
import { EtcdLock } from "./etcd.ts";
import { IDLE, measureIdle } from "./idle.ts";
import { BullMqDelayed, PgBossDelayed } from "./job-queues.ts";
import { KEY_LIST, KEY_VERIFY, measureKeyList } from "./keys-and-flags.ts";
import {
  LOCK_HAND_OVER,
  LOCK_LONG_WAIT,
  LOCKS_HELD,
  measureHandOver,
  measureHeld,
  measureLongWait,
} from "./locks.ts";
import { LONG_CHAIN, measureLongChain } from "./long-chain.ts";
import { MILLION_METERS, measureMillion } from "./million.ts";
import { PostgresDeduct } from "./postgres.ts";
import { MANY_PROBES, measureManyProbes, measureOneProbe, ONE_PROBE } from "./probes.ts";
import { RedisDeduct } from "./redis.ts";
import { measureRemoval, PROJECT_REMOVAL } from "./removal.ts";
import { findingsOf, findingsTable, mediansOf, seriesTable } from "./results.ts";
import { type RoundsResult, runRounds } from "./rounds.ts";
import { BENCHMARKS, deductRequest } from "./rows.ts";
import {
  MONITORS_CHECKED,
  measureDue,
  measureMonitors,
  measureWaiting,
  RELAYS_DUE,
  RELAYS_WAITING,
} from "./schedule.ts";
import { measureSchedules, SCHEDULES } from "./schedules.ts";
import { measureSlowDisk, SLOW_DISK } from "./slow-disk.ts";
import { KEYS, Stage } from "./stage.ts";
import { measureStartUp, START_UP } from "./start-up.ts";
import { runWrk } from "./wrk.ts";

const WAL_MIB_MAX = 64;

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "3" },
    "warm-seconds": { type: "string", default: "10" },
    "fsync-ms": { type: "string", default: "10" },
    "wal-minutes": { type: "string", default: "0" },
    "probe-minutes": { type: "string", default: "10" },
    binary: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});

const command = values.binary ? BINARY_COMMAND : SOURCE_COMMAND;

/** Measurements other than rows. Each runs on servers of its own, after the rounds. */
const SPECIALS: readonly (readonly [name: string, measure: typeof measureMillion])[] = [
  [MILLION_METERS, measureMillion],
  [LOCK_HAND_OVER, measureHandOver],
  [LOCK_LONG_WAIT, measureLongWait],
  [LOCKS_HELD, measureHeld],
  [PROJECT_REMOVAL, measureRemoval],
  [KEY_LIST, measureKeyList],
  [BACKUP, (stage, say) => measureBackup(stage, command, say)],
  [LONG_CHAIN, (stage, say) => measureLongChain(stage, command, say)],
  [RELAYS_DUE, measureDue],
  [RELAYS_WAITING, measureWaiting],
  [MONITORS_CHECKED, measureMonitors],
  [SCHEDULES, measureSchedules],
  [
    SLOW_DISK,
    (stage, say) =>
      measureSlowDisk(stage, say, {
        fsyncMs: wholeNumber("fsync-ms", values["fsync-ms"], 1),
        ...series(),
      }),
  ],
  [COMMIT_LOG, (stage, say) => measureCommitLog(stage, say, series())],
  [ARCHIVE, (stage, say) => measureArchive(stage, say, series())],
  [START_UP, measureStartUp],
  [IDLE, measureIdle],
  [ONE_PROBE, (stage, say) => measureOneProbe(stage, say, probes())],
  [MANY_PROBES, (stage, say) => measureManyProbes(stage, say, probes())],
  [CHECK_COST, measureCheckCost],
  [CHECK_BY_NGINX, measureByNginx],
];

/** Progress goes to standard error, so that standard output has only the results. */
function say(text: string): void {
  console.error(`· ${text}`);
}

function wholeNumber(name: string, text: string, least: number): number {
  const number = Number(text);
  if (!Number.isInteger(number) || number < least) {
    throw new Error(`--${name} must be a whole number from ${least}, not "${text}"`);
  }
  return number;
}

function series() {
  return {
    rounds: wholeNumber("rounds", values.rounds, 1),
    seconds: wholeNumber("seconds", values.seconds, 1),
  };
}

function probes() {
  return { command, minutes: wholeNumber("probe-minutes", values["probe-minutes"], 1) };
}

function chosen(name: string): boolean {
  return new RegExp(values.only, "i").test(name);
}

/** The installed competitors that the selected rows are compared with. */
async function prepareCompetitors(stage: Stage): Promise<Competitor[]> {
  const wanted = BENCHMARKS.filter(({ name }) => chosen(name)).flatMap(({ requires }) =>
    requires.flatMap((one) => (one.kind === "ratio" ? [one.to] : [])),
  );
  const ready: Competitor[] = [];
  const all = [
    ...[new PostgresDeduct(), new RedisDeduct(), new EtcdLock()],
    ...[new BullMqDelayed(), new PgBossDelayed()],
  ];
  for (const competitor of all) {
    if (!wanted.includes(competitor.name)) continue;
    const missing = competitor.missing();
    if (missing !== null) {
      say(`${competitor.name} is omitted: ${missing}`);
      continue;
    }
    say(`preparing ${competitor.name}`);
    await competitor.prepare(stage);
    ready.push(competitor);
  }
  return ready;
}

async function measureRows(stage: Stage): Promise<{ rounds: RoundsResult; findings: Finding[] }> {
  const benchmarks = BENCHMARKS.filter(({ name }) => chosen(name));
  say("making meters and keys");
  await stage.fillOwn(benchmarks.includes(KEY_VERIFY) ? KEYS : 0);
  await stage.fresh("ninefold", async () => {
    for (const benchmark of benchmarks) await benchmark.prepare?.(stage);
  });
  const rounds = await runRounds({
    stage,
    benchmarks,
    competitors: await prepareCompetitors(stage),
    rounds: wholeNumber("rounds", values.rounds, 1),
    seconds: wholeNumber("seconds", values.seconds, 1),
    warmSeconds: wholeNumber("warm-seconds", values["warm-seconds"], 0),
    say,
  });
  const findings = benchmarks.flatMap((benchmark) => findingsOf(benchmark, rounds.results));
  await loadForWal(stage, wholeNumber("wal-minutes", values["wal-minutes"], 0));
  // Reads alone write nothing to measure.
  if (stage.walMiB > 0)
    findings.push({
      what: "size of the write-ahead log under all of this",
      measured: `${stage.walMiB.toFixed(1)} MiB`,
      required: `≤ ${WAL_MIB_MAX} MiB`,
      ok: stage.walMiB <= WAL_MIB_MAX,
    });
  return { rounds, findings };
}

async function loadForWal(stage: Stage, minutes: number): Promise<void> {
  if (minutes === 0) return;
  say(`deducts for ${minutes} minutes`);
  const run = { connections: 32, seconds: minutes * 60, folder: stage.folder };
  const { perSecond } = await stage.fresh("ninefold", () =>
    runWrk({ ...run, url: stage.url, request: deductRequest(stage) }),
  );
  say(`${perSecond.toFixed(0)} per second`);
}

function report(rounds: RoundsResult | null, findings: readonly Finding[]): void {
  if (values.json) {
    const series = [...(rounds?.results.values() ?? [])].map(({ name, connections, rounds: all }) => {
      return { name, connections, medians: mediansOf({ name, connections, rounds: all }), rounds: all };
    });
    console.log(JSON.stringify({ series, findings, faults: rounds?.faults ?? [] }));
    return;
  }
  if (rounds !== null) console.log(`${seriesTable(rounds.results)}\n`);
  console.log(findingsTable(findings));
  for (const fault of rounds?.faults ?? []) console.log(`FAULT  ${fault}`);
}

const cleanup = new Cleanup();
try {
  if (Bun.which("wrk") === null) throw new Error("wrk is not installed: apt-get install wrk");
  const stage = new Stage(cleanup, command);
  const withRows = BENCHMARKS.some(({ name }) => chosen(name));
  const specials = SPECIALS.filter(([name]) => chosen(name));
  if (!withRows && specials.length === 0) throw new Error(`no row matches "${values.only}"`);
  const rows = withRows ? await measureRows(stage) : null;
  const findings = [...(rows?.findings ?? [])];
  for (const [, measure] of specials) findings.push(...(await measure(stage, say)));
  report(rows?.rounds ?? null, findings);
  const failed = findings.some(({ ok }) => ok === false) || (rows?.rounds.faults.length ?? 0) > 0;
  process.exitCode = failed ? 1 : 0;
} catch (error) {
  if (!cleanup.interrupted)
    console.error(`scripts/bench: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  await cleanup.run();
}
process.exit();
