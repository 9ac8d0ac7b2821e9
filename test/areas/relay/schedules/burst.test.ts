import { afterAll, beforeAll, expect, test } from "bun:test";
import { percentile, startReceiver } from "../../../../bench/schedule.ts";
import { scheduleStore } from "../../../../src/areas/relay/schedules/store.ts";
import { laneName } from "../../../../src/kernel/scheduler/dispatcher.ts";
import { realDelay } from "../../../../src/kernel/time/clock.ts";
import { processorMs } from "../../../support/processor-time.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";

/** Schedules of one account that are due at the same time. */
const SCHEDULES = 1_000;
/** The same in a first burst, which compiles the code. */
const WARM_UP = 300;
/** Time to store them before they are due. */
const STORING_MS = 1_000;
/**
 * Longest processor time of this thread, in milliseconds, from a change of another account to its response: all that the
 * event loop did in between. Other processes on the machine do not count.
 */
const CHANGE_MS_MAX = 10;

let server: TestServer;
let receiver: Awaited<ReturnType<typeof startReceiver>>;
let sender: AccountClient;
let neighbour: AccountClient;

beforeAll(async () => {
  receiver = await startReceiver();
  // The limits of a batch need a clock that runs.
  server = await startTestServer({ args: ["--allow-private-targets", "127.0.0.0/8"] });
  sender = await server.account();
  neighbour = await server.account();
  await neighbour.post("/v1/meter/m/refill", { amount: 1_000_000 });
});
afterAll(async () => {
  await server.stop();
  await receiver[Symbol.asyncDispose]();
});

/** Stores schedules that are all due once, at the same time. */
async function storeSchedules(first: number, count: number): Promise<void> {
  const { db, writer, scheduler } = server.server.kernel;
  const store = scheduleStore(db);
  const find = db.one<{ accountRef: number; ref: number }, [string]>(
    "SELECT account_ref AS accountRef, projects.ref FROM projects JOIN accounts ON accounts.ref = account_ref WHERE email = ?",
  );
  const project = find(sender.email);
  if (project === null) throw new Error("no project");
  const { accountRef } = project;
  const next_run_at = Date.now() + STORING_MS;
  await writer.submit((tx) => {
    for (let ref = first; ref < first + count; ref += 1) {
      store.insert(tx, {
        ref,
        id: `sch_${ref.toString(16).padStart(32, "0")}`,
        accountRef,
        projectRef: project.ref,
        managedBy: null,
        name: null,
        cron: "0 0 1 1 *",
        time_zone: "Europe/Berlin",
        target_url: `${receiver.hostUrl(ref)}/`,
        method: "POST",
        event_type: null,
        headers: null,
        payload: "{}",
        state: "live",
        missed: "once",
        overlap: "allow",
        starts_at: null,
        ends_at: null,
        retry_schedule: null,
        callback_url: null,
        failure_callback_url: null,
        next_run_at,
        last_run_at: null,
        last_relay_id: null,
        last_message_id: null,
        runs: 0,
        skipped: 0,
        last_error: null,
        created_at: tx.now,
        updated_at: tx.now,
      });
      scheduler.enqueue(
        tx,
        "relay.schedules",
        `${ref}`,
        next_run_at,
        null,
        laneName(accountRef, "schedules"),
      );
    }
  });
  await realDelay(Math.max(0, next_run_at - Date.now()));
}

/** What passed between a change and its response. */
interface Passed {
  readonly ms: number;
  readonly commits: number;
}

/** Changes a meter without a socket, so that nothing of a client's work counts. */
async function change(): Promise<Passed> {
  const { app, kernel } = server.server;
  const request = new Request(`${server.url}/v1/meter/m/deduct`, {
    method: "POST",
    headers: { authorization: `Bearer ${neighbour.key}`, "content-type": "application/json" },
    body: '{"amount":1}',
  });
  const commits = kernel.writer.stats.commits;
  const ms = await processorMs(async () => expect((await app.http.handle(request)).status).toBe(200));
  return { ms, commits: kernel.writer.stats.commits - commits };
}

/** Changes a meter again and again until all deliveries of a burst are finished. */
async function changesDuringBurst(first: number, count: number): Promise<Passed[]> {
  await storeSchedules(first, count);
  const finished = server.server.kernel.db.number(
    "SELECT count(*) AS n FROM relays WHERE finished_at IS NOT NULL",
  );
  const changes: Passed[] = [];
  while (finished() < first - 1 + count) {
    changes.push(await change());
    await realDelay(1);
  }
  return changes;
}

test("many schedules that are due at the same time delay the changes of another account by little", async () => {
  await changesDuringBurst(1, WARM_UP);
  const changes = await changesDuringBurst(1 + WARM_UP, SCHEDULES);
  expect((await receiver.take()).length).toBe(WARM_UP + SCHEDULES);
  expect(changes.length).toBeGreaterThan(20);
  const commits = changes.map((change) => change.commits);
  const ms = changes.map((change) => change.ms);
  // The next batch, however many outcomes of deliveries wait.
  expect(percentile(commits, 0.99)).toBe(1);
  expect(percentile(ms, 0.95)).toBeLessThanOrEqual(CHANGE_MS_MAX);
}, 60_000);
