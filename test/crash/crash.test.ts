import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LimitLevelWorkload } from "../harness/crash/limit-levels.ts";
import { ReadWorkload } from "../harness/crash/reads.ts";
import { describeRound, type RoundResult, runCrashRounds } from "../harness/crash/rounds.ts";
import { allWorkloads } from "../harness/crash/workloads.ts";
import { NINEFOLD_COMMAND, ServerProcess, spawnServer } from "../harness/processes/server-process.ts";
import { repeated } from "../support/long-form.ts";

const ROUNDS = repeated(4, 20);
/** BatchedWrites of reads alone: each takes two seconds. */
const READ_ROUNDS = repeated(2, 4);
/** Each takes twelve seconds. */
const LIMIT_ROUNDS = repeated(1, 4);
/** Groups of changes that the comparison has to notice: each takes a run of all workloads. */
const TAMPERED_RUNS = repeated(1, 4);
/** Between two moments at which a first start is killed. */
const FIRST_START_STEP_MS = repeated(50, 20);
/** Far above what a run takes: a machine that is busy with other things must not fail it. */
const TIMEOUT_MS = 600_000;

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "ninefold-crash-test-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function subfolder(): string {
  return mkdtempSync(join(folder, "run-"));
}

/** Enough for a kill to hit a server at work. */
const ACTS_MIN = 300;
/** Enough for every workload to have done all that it does, the rarest included: what one of them misses must be there. */
const ALL_ACTS_MIN = 1_500;

function run(rounds: number, actsMin: number, tamper?: (data: string) => void): Promise<RoundResult[]> {
  return runCrashRounds({
    command: NINEFOLD_COMMAND,
    folder: subfolder(),
    rounds,
    secondsMax: 0.3,
    connections: 16,
    actsMin,
    seed: 20_260_310,
    workloads: allWorkloads(),
    ...(tamper === undefined ? {} : { tamper }),
  });
}

/** Changes the database of a server that was killed. */
function edit(data: string, sql: string): void {
  const db = new Database(join(data, "ninefold.db"));
  db.run(sql);
  db.close();
}

test(
  `${ROUNDS} kills under load: what was acknowledged is there once, what was in doubt once or not at all`,
  async () => {
    const results = await run(ROUNDS, ACTS_MIN);
    const failed = results.filter(({ problems }) => problems.length > 0);
    expect(failed.flatMap((round) => [describeRound(round), ...round.problems])).toEqual([]);
    expect(results.length).toBe(ROUNDS);
    const acknowledged = results.reduce((sum, round) => sum + round.acknowledged, 0);
    const inDoubt = results.reduce((sum, round) => sum + round.inDoubt, 0);
    // Otherwise the kills have hit an idle server, and the test has shown nothing.
    expect(acknowledged).toBeGreaterThan(ROUNDS * ACTS_MIN * 0.9);
    expect(inDoubt).toBeGreaterThan(ROUNDS);
  },
  TIMEOUT_MS,
);

test(
  "reads alone: a kill forgives charges of the last second and none before, and doubles none",
  async () => {
    const reads = new ReadWorkload(0);
    // Each kill comes later than the charges of its first reads may wait.
    const results = await runCrashRounds({
      command: NINEFOLD_COMMAND,
      folder: subfolder(),
      rounds: READ_ROUNDS,
      secondsMin: 1.5,
      secondsMax: 2.5,
      connections: 2,
      seed: 20_260_311,
      workloads: [reads],
    });
    expect(results.flatMap(({ problems }) => problems)).toEqual([]);
    expect(results.length).toBe(READ_ROUNDS);
    const answered = results.reduce((sum, { acknowledged }) => sum + acknowledged, 0);
    // Otherwise reads have waited for commits, or the kills have shown nothing.
    expect(reads.forgiven).toBeGreaterThan(0);
    expect(reads.forgiven).toBeLessThan(answered);
  },
  TIMEOUT_MS,
);

test(
  "rate limits of 30 days: a kill gives back tokens of the last ten seconds and none before",
  async () => {
    const limits = new LimitLevelWorkload();
    const results = await runCrashRounds({
      command: NINEFOLD_COMMAND,
      folder: subfolder(),
      rounds: LIMIT_ROUNDS,
      // Each kill comes later than the first levels may wait.
      secondsMin: 11.5,
      secondsMax: 12.5,
      connections: 1,
      seed: 20_261_129,
      workloads: [limits],
    });
    expect(results.flatMap(({ problems }) => problems)).toEqual([]);
    expect(results.length).toBe(LIMIT_ROUNDS);
    const acknowledged = results.reduce((sum, round) => sum + round.acknowledged, 0);
    // Otherwise uses have waited for commits, or nothing was written.
    expect(limits.forgiven).toBeGreaterThan(0);
    expect(limits.forgiven).toBeLessThan(acknowledged);
  },
  TIMEOUT_MS,
);

const AUDIT_COLUMNS =
  "at, account_ref, project_id, action, summary, actor_type, user_id, target_type, target_id, was, became, truncated, request_id";

describe("the comparison notices", () => {
  type Case = readonly [name: string, sql: string, wanted: RegExp];
  // One run for each group: no change of a group shows as another one of it does.
  const groups: readonly (readonly Case[])[] = [
    [
      [
        "a lost change of a meter",
        "DELETE FROM meter_entries WHERE sequence > (SELECT max(sequence) - 60 FROM meter_entries)",
        /was acknowledged and is lost/,
      ],
      [
        "a balance that its ledger does not bear out",
        "UPDATE accounts SET balance = balance + 1 WHERE email LIKE 'own-%'",
        /account own-\d@example.com: the balance is \d+, its ledger sums up to \d+/,
      ],
      [
        "a lost receipt",
        "DELETE FROM receipts WHERE (chain_ref, sequence) IN (SELECT chain_ref, max(sequence) FROM receipts GROUP BY chain_ref)",
        /chain-\d: receipt of log \d+ was given and is not there/,
      ],
      [
        "a lost event",
        "DELETE FROM catch_events WHERE (bucket_ref, sequence) IN (SELECT bucket_ref, max(sequence) FROM catch_events WHERE status = 2 GROUP BY bucket_ref)",
        /bucket \S+: evt_\w+ was acknowledged and is not there/,
      ],
      [
        "a lost entry of the audit log",
        "DELETE FROM audit_log WHERE action = 'gate.save' AND sequence > (SELECT max(sequence) - 60 FROM audit_log)",
        /audit: change-\d+: has no entry/,
      ],
      ["lost sessions", "DELETE FROM sessions", /sessions: one that was opened is not there/],
      [
        "forgiven charges of reads that a commit has followed",
        "UPDATE accounts SET balance = 1000000000 WHERE email LIKE 'reads-%'",
        /reads-\d@example.com: 0 reads were paid for, [1-9]\d* to \d+ would be right/,
      ],
      [
        "a lost resend",
        "UPDATE relays SET attempts = attempts - 1 WHERE attempts > 1 AND target_url = 'http://127.0.0.1:9/'",
        /resends: \d+ attempts were made where \d+ were asked for/,
      ],
      [
        "a lost acknowledgement of a fetched event",
        "UPDATE catch_events SET status = 0 WHERE bucket_ref = (SELECT ref FROM catch_buckets WHERE pull = 1)",
        /pull bucket: evt_\w+ was acknowledged as \w+ and is pending/,
      ],
      [
        "a use that was given back",
        "UPDATE key_allowances SET remaining = remaining + 1",
        /\d+ uses are taken, \d+ were answered/,
      ],
      [
        "a lost change of a role",
        `UPDATE key_roles SET permissions = '["role.0"]'`,
        /role-\d\.\d+ was acknowledged, and is not in own-\d\.\d+, role\.0/,
      ],
      [
        "a lost incident",
        "DELETE FROM incidents WHERE monitor_ref IS NULL",
        /incidents: inc_\w+ was made and is lost/,
      ],
      [
        "a lost delivery of an event to an endpoint",
        "DELETE FROM relays WHERE event_id IS NOT NULL AND endpoint_ref = (SELECT max(endpoint_ref) FROM relays WHERE event_id IS NOT NULL)",
        /target bucket: evt_\w+ has \d+ deliveries after \d+ replays/,
      ],
      [
        "a lost delivery of a recovery",
        "DELETE FROM relays WHERE ref IN (SELECT relay_ref FROM relay_later_deliveries)",
        /recoveries: message missed-\d+-\d+ has the deliveries \[\]/,
      ],
      [
        "a lost callback",
        "DELETE FROM relays WHERE ref IN (SELECT relay_ref FROM relay_callbacks WHERE callback_of IS NOT NULL)",
        /callbacks: not one callback: \{"relay_id":"[^"]+","status":"\w+","callbacks":\[\]\}/,
      ],
      ["lost holders of locks", "DELETE FROM locks", /shared-\d+: \d+ is lost/],
      [
        "an applied proposal without its entry",
        "DELETE FROM audit_log WHERE action = 'gate.proposals.approve'",
        /proposed-\d+: its entries are \{"number":\d+,"numbers":\[\]\}/,
      ],
      [
        "a changed payload",
        "UPDATE catch_payloads SET body = CAST(CAST(body AS TEXT) || ' ' AS BLOB)",
        /bucket \S+: evt_\w+ is not as it was sent/,
      ],
    ],
    [
      [
        "a doubled change of a meter",
        "INSERT INTO meter_entries (sequence, meter_ref, previous, kind, amount, balance_after, at, request_id) SELECT 1 + (SELECT max(sequence) FROM meter_entries), meter_ref, sequence, kind, amount, balance_after + amount, at, request_id FROM meter_entries WHERE kind = 2 ORDER BY sequence DESC LIMIT 1",
        /refill \d+.* has happened 2 times/,
      ],
      [
        "a doubled entry of the audit log",
        `INSERT INTO audit_log (${AUDIT_COLUMNS}) SELECT ${AUDIT_COLUMNS} FROM audit_log WHERE action = 'projects.create'`,
        /audit: change-\d+: has 2 entries/,
      ],
      [
        "sessions that do not end",
        "CREATE TRIGGER kept_sessions BEFORE DELETE ON sessions BEGIN SELECT RAISE(IGNORE); END",
        /sessions: one works after all were ended/,
      ],
      [
        "a lost change of an account balance",
        "DELETE FROM account_entries WHERE kind IN ('deduct', 'refill')",
        /own-\d@example.com: (deduct|refill) \d+.* was acknowledged and is lost/,
      ],
      [
        "an outage without its incident",
        "UPDATE incidents SET resolved_at = 0 WHERE monitor_ref IS NOT NULL; UPDATE monitor_states SET status = 2",
        /incidents: monitor \S+ is down, and its open incidents are $/m,
      ],
      [
        "charges of reads that were paid twice",
        "UPDATE accounts SET balance = balance - (1000000000 - balance) WHERE email LIKE 'reads-%'",
        /reads-\d@example.com: \d+ reads were paid for, \d+ to \d+ would be right/,
      ],
      [
        "a changed receipt",
        "UPDATE receipts SET log = replace(log, 'x', 'y')",
        /chain-\d: chain_hash is not the hash of/,
      ],
      [
        "an event that nobody paid for",
        "UPDATE account_entries SET count = count - 1, amount = amount + 1 WHERE operation = 'catch.ingest'",
        /buckets: \d+ events are there, \d+ were paid for/,
      ],
    ],
    [
      [
        "a broken chain",
        "UPDATE meter_entries SET previous = 0 WHERE sequence = (SELECT max(sequence) FROM meter_entries WHERE previous > 0)",
        /refers to \d+ as the previous entry/,
      ],
      [
        "a lost account",
        "DELETE FROM accounts WHERE email LIKE 'account-%'",
        /account-\d+@example.com: .*lost/,
      ],
      [
        "a change that its entry does not bear out",
        "UPDATE flags SET description = 'another' WHERE flag_key LIKE 'audit-%'",
        /audit: audit-\w is at another, its newest entry says change-\d+/,
      ],
      [
        "links that work twice",
        "CREATE TRIGGER kept_links BEFORE DELETE ON login_links BEGIN SELECT RAISE(IGNORE); END",
        /sessions: a link has opened a second session/,
      ],
      [
        "a gap in a chain",
        "DELETE FROM receipts WHERE sequence = 2",
        /chain-\d: (sequence_id 3 follows 1|prev_hash)/,
      ],
      [
        "a lost flag",
        "DELETE FROM flags WHERE flag_key LIKE 'flag-%' AND length(definition) > 2000",
        /flag-\d+: is null, and its response was \{"number"/,
      ],
      [
        "a lost hold",
        "DELETE FROM meter_holds WHERE status = 1",
        /hold-\d+: was acknowledged and is lost, it says 404/,
      ],
    ],
    [
      [
        "a charge without its work",
        "UPDATE account_entries SET count = count + 1, amount = amount - 1 WHERE operation = 'meter.refill'",
        /charges: \d+ × refill happened, \d+ were paid for/,
      ],
      [
        "a definition that is an older one",
        "UPDATE flags SET definition = replace(definition, '\"number\":', '\"number\":-') WHERE flag_key LIKE 'flag-%'",
        /flag-\d+: is \{"number":-\d+/,
      ],
      [
        "versions that come back",
        "UPDATE flag_projects SET version = 1",
        /version \d+ (was given twice|came after \d+)/,
      ],
      [
        "a hold that was captured and is open again",
        "UPDATE meter_holds SET status = 1, ended_at = NULL WHERE status = 2",
        /hold-\d+: the answers said capture, it says 200[\s\S]*held-\d: \d+ captured, \d+ held, it says/,
      ],
      ["forgotten answers of Idempotency-Keys", "DELETE FROM idempotency", /instead of being replayed/],
    ],
  ];
  describe.each(groups.slice(0, TAMPERED_RUNS).map((cases, at) => [at + 1, cases] as const))(
    "in run %i",
    (_, cases) => {
      let problems = "";
      beforeAll(async () => {
        const results = await run(1, ALL_ACTS_MIN, (data) => {
          for (const [, sql] of cases) edit(data, sql);
        });
        problems = results.flatMap((round) => round.problems).join("\n");
      }, TIMEOUT_MS);
      test.each(cases)("%s", (_name, _sql, wanted) => {
        expect(problems).toMatch(wanted);
      });
    },
  );
});

test(
  "a first start that is killed at any moment does not keep the next one from starting",
  async () => {
    const key = "sm_0000000000000000000000000000000000000000000_92dff3c0";
    for (let killMs = 0; killMs <= 200; killMs += FIRST_START_STEP_MS) {
      const launch = {
        command: NINEFOLD_COMMAND,
        args: ["--port", "0", "--data", join(subfolder(), "data")],
        environment: { NINEFOLD_OPERATOR_KEY: key },
      };
      const first = spawnServer(launch);
      await Bun.sleep(killMs);
      first.process.kill("SIGKILL");
      await first.process.exited;
      const second = await ServerProcess.start(launch);
      try {
        const headers = { authorization: `Bearer ${key}` };
        const answer = await fetch(`${second.url}/v1/meter/balance`, { headers });
        expect(answer.status).toBe(200);
      } finally {
        await second.stop("SIGKILL");
      }
    }
  },
  TIMEOUT_MS,
);
