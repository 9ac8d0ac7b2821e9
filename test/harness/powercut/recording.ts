import { mkdirSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { EXIT_SYNC_FAILED } from "../../../src/kernel/kernel.ts";
import { AccountBalanceWorkload } from "../crash/account-balances.ts";
import { AccountWorkload } from "../crash/accounts.ts";
import { AuditWorkload } from "../crash/audit.ts";
import { BucketWorkload } from "../crash/buckets.ts";
import { CallbackWorkload } from "../crash/callbacks.ts";
import { ChainWorkload } from "../crash/chains.ts";
import { CheckWorkload } from "../crash/checks.ts";
import { FlagWorkload } from "../crash/flags.ts";
import { HeldAlertWorkload } from "../crash/held-alerts.ts";
import { HoldWorkload } from "../crash/holds.ts";
import { KeyUsesWorkload } from "../crash/key-uses.ts";
import { launchUnderLoad, runLoad } from "../crash/load.ts";
import { MessageWorkload } from "../crash/messages.ts";
import { MeterWorkload } from "../crash/meters.ts";
import { PingWorkload } from "../crash/pings.ts";
import { ProposalWorkload } from "../crash/proposals.ts";
import { PullBucketWorkload } from "../crash/pull-bucket.ts";
import { createRandom } from "../crash/random.ts";
import { RecoveryWorkload } from "../crash/recoveries.ts";
import { ResendWorkload } from "../crash/resends.ts";
import { ScheduleWorkload } from "../crash/schedules.ts";
import { SharedLockWorkload } from "../crash/shared-locks.ts";
import { ServerTarget } from "../crash/target.ts";
import { TargetBucketWorkload } from "../crash/target-buckets.ts";
import type { Target, Workload } from "../crash/workload.ts";
import { type Command, type Launch, ServerProcess } from "../processes/server-process.ts";
import { Control, type Fault } from "./control.ts";
import { compareWithReal, Disk } from "./disk.ts";
import { type Journal, JournalTarget, ReplayTarget } from "./journal.ts";
import { Trace } from "./trace.ts";

/** The operator's key, the same on every disk. */
export const OPERATOR_KEY = "sm_0000000000000000000000000000000000000000000_92dff3c0";
/** Few clients, so that reading a disk back stays fast. */
const METERS = 30;
const KEYS_WITH_USES = 4;
const CUSTOMERS = 5;
/** The server dies within this number of operations in its last step, at any point of a commit. */
const LAST_OPERATIONS = 60;
/** Longest wait for this; a server without anything to write is stopped, and dies in what that writes. */
const DEATH_WITHIN_MS = 5_000;

/** How a life ends: with a regular stop, or killed under load. */
export type Ending = "stop" | "death";

/** Settings of a recording: one data folder, used by one server process after another (its lives). */
export interface RecordingPlan {
  readonly command: Command;
  readonly shim: string;
  /** A folder that need not exist. */
  readonly folder: string;
  readonly seed: number;
  readonly connections: number;
  /** Steps of each life. */
  readonly acts: number;
  readonly lives: readonly Ending[];
  /** The failure in the middle of each life. */
  readonly fault: Fault | null;
}

/** What a server wrote, synced and returned, and what its clients received. */
export interface Recording {
  readonly plan: RecordingPlan;
  readonly trace: Trace;
  readonly journal: Journal;
  /** For each response in the journal: the number of notes after which it and all before it were sent. */
  readonly deliveredAt: readonly number[];
  /** Number of notes after which the first life was ready and prepared. */
  readonly preparedAt: number;
  /** Problems before any power cut. */
  readonly problems: readonly string[];
}

/** The workloads whose records a replay can rebuild: they depend only on responses. */
function createWorkloads(): Workload[] {
  return [
    new MeterWorkload(METERS),
    new HoldWorkload(),
    new AccountBalanceWorkload(),
    new AccountWorkload(),
    new AuditWorkload(),
    new ChainWorkload(),
    new CheckWorkload(CUSTOMERS),
    new BucketWorkload(false),
    new PullBucketWorkload(),
    new TargetBucketWorkload(false),
    new CallbackWorkload(false),
    new ResendWorkload(),
    new RecoveryWorkload(false),
    new MessageWorkload(false),
    new ScheduleWorkload(),
    new PingWorkload(),
    new KeyUsesWorkload(KEYS_WITH_USES),
    new FlagWorkload(),
    new ProposalWorkload(),
    new SharedLockWorkload(),
    new HeldAlertWorkload(),
  ];
}

/** Runs a server under load, and records everything. @throws Error when the trace is incomplete. */
export async function record(plan: RecordingPlan): Promise<Recording> {
  const root = join(plan.folder, "disk");
  mkdirSync(root, { recursive: true });
  const tracePath = join(plan.folder, "trace");
  const control = new Control(join(plan.folder, "control"));
  const launch = traced(plan, { root, tracePath, control });
  let server = await ServerProcess.start(launch);
  const inner = new ServerTarget(server.url, OPERATOR_KEY, join(root, "data"));
  const target = new JournalTarget(inner);
  const problems: string[] = [];
  let prepared = 0;
  try {
    await live(plan, createWorkloads(), target, {
      prepared: () => {
        prepared = target.deliveries.length;
      },
      step: (step) => misfortune(plan, control, inner, step),
      lastStep: () => {
        inner.expectDeath();
        control.killAfter(1 + createRandom(plan.seed + prepared).below(LAST_OPERATIONS));
      },
      ended: async (ending, isLast) => {
        await end(server, ending);
        if (inner.unexplained > 0) problems.push(`${inner.unexplained} requests unanswered before the end`);
        if (plan.fault === null && server.warnings !== "")
          problems.push(`the server's log: ${server.warnings.trim()}`);
        control.clear();
        if (isLast) return;
        server = await ServerProcess.start(launch);
        inner.attach(server.url);
      },
    });
  } finally {
    await server.stop("SIGKILL");
  }
  if (plan.fault?.kind === "sync" && plan.fault.files === "log" && (await server.exited) !== EXIT_SYNC_FAILED)
    problems.push(`the server ended with ${await server.exited} after a failed sync of the log`);
  const trace = new Trace(readFileSync(tracePath));
  const disk = new Disk();
  disk.apply(trace.notes);
  compareWithReal(root, disk.seen());
  const deliveredAt = positionsOf(trace, target);
  return { plan, trace, journal: target, deliveredAt, preparedAt: deliveredAt[prepared - 1] ?? 0, problems };
}

/** Replays the clients up to a number of notes. Returns their workloads and their open requests. */
export async function replay(recording: Recording, notes: number): Promise<Replayed> {
  const target = new ReplayTarget(recording.journal, OPERATOR_KEY);
  const workloads = createWorkloads();
  const life = live(recording.plan, workloads, target, NO_STAGE);
  const until = recording.deliveredAt.findIndex((at) => at > notes);
  await target.playTo(until < 0 ? recording.deliveredAt.length : until);
  return { workloads, target, life };
}

/** Clients at a time of a recording. */
export interface Replayed {
  readonly workloads: readonly Workload[];
  readonly target: ReplayTarget;
  /** Resolves after the replay's end. */
  readonly life: Promise<void>;
}

/** Number of successful responses after a number of notes. */
export function acknowledgedBy({ journal, deliveredAt }: Recording, notes: number): number {
  const isSuccess = (index: number): boolean => (journal.deliveries[index]?.answer?.status ?? 500) < 300;
  return deliveredAt.filter((at, index) => at <= notes && isSuccess(index)).length;
}

/** Environment of a shim that records the writes of a server. */
export function traced(
  plan: Pick<RecordingPlan, "command" | "folder" | "shim">,
  { root, tracePath, control }: { root: string; tracePath: string; control: Control },
): Launch {
  return {
    ...launchUnderLoad(plan.command, plan.folder, join(root, "data")),
    environment: {
      NINEFOLD_OPERATOR_KEY: OPERATOR_KEY,
      LD_PRELOAD: plan.shim,
      POWERCUT_ROOT: realpathSync(root),
      POWERCUT_TRACE: tracePath,
      POWERCUT_CONTROL: control.path,
    },
  };
}

/** Called around the clients of a recording; not in a replay. */
interface Stage {
  prepared(): void;
  step(step: number): void;
  /** Called before the last step of a life that ends with a kill. */
  lastStep(): void;
  ended(ending: Ending, isLast: boolean): Promise<void>;
}

const NO_STAGE: Stage = {
  prepared: () => {},
  step: () => {},
  lastStep: () => {},
  ended: () => Promise.resolve(),
};

/** The target of the clients of a recording; `isOver` ends their lives. */
type LivingTarget = Target & { gone: boolean; readonly isOver: boolean };

/** The lives of the clients. Their steps depend only on the seed and on the responses. */
async function live(
  plan: RecordingPlan,
  workloads: readonly Workload[],
  target: LivingTarget,
  stage: Stage,
): Promise<void> {
  const random = createRandom(plan.seed);
  for (const workload of workloads) await workload.prepare(target);
  stage.prepared();
  for (const [life, ending] of plan.lives.entries()) {
    if (target.isOver) return;
    target.gone = false;
    let steps = 0;
    const goesOn = (): boolean => {
      if (target.gone || (ending === "stop" && steps >= plan.acts)) return false;
      steps += 1;
      stage.step(steps);
      if (ending === "death" && steps === plan.acts) stage.lastStep();
      return true;
    };
    await runLoad({ workloads, target, random, connections: plan.connections, goesOn });
    await stage.ended(ending, life === plan.lives.length - 1);
  }
}

/** Starts the failure of a recording after a third of a life. A failed sync ends the server. */
function misfortune(
  { fault, acts }: RecordingPlan,
  control: Control,
  target: ServerTarget,
  step: number,
): void {
  if (fault === null || step !== Math.ceil(acts / 3)) return;
  if (fault.kind === "sync" || fault.kind === "change") target.expectDeath();
  control.set(fault);
}

/** A kill from outside could come between a write and its note: the notes would not show what the disk has. */
async function end(server: ServerProcess, ending: Ending): Promise<void> {
  if (ending === "death") await Promise.race([server.exited, Bun.sleep(DEATH_WITHIN_MS)]);
  await server.stop("SIGTERM");
}

/**
 * A response counts from the time at which it and all before it, in the order of delivery, were sent. A missing one
 * adds nothing.
 */
function positionsOf(trace: Trace, { deliveries }: Journal): number[] {
  let latest = 0;
  return deliveries.map(({ answer: response }) => {
    const id = response?.headers.get("x-request-id");
    if (id !== undefined) latest = Math.max(latest, trace.respondedAt(id));
    return latest;
  });
}
