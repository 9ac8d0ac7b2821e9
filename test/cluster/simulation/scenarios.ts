import type { EngineKind } from "./engine.ts";
import { type History, keyOf, type Outcome } from "./history.ts";
import { LEASE_MS, type MachineSettings, type SimulatedMachine } from "./machine.ts";
import { PAGES } from "./paged-file.ts";
import { Violation } from "./world.ts";

/** Longest time for a leader to stop. */
const STOP_MS_MAX = 10_000;
const HOUR_MS = 3_600_000;
/** Time in which a leader looks at its log twice. */
const LOOKS_MS = 5_000;

/** What happens in a history, at times and in ways that its random numbers determine. */
export interface Scenario {
  readonly engines: readonly EngineKind[];
  /** How often it is chosen, compared with the others. */
  readonly weight: number;
  readonly run: (history: History) => Outcome;
}

const BOTH: readonly EngineKind[] = ["etcd", "postgres"];

/** Clocks that run at different rates: those of two nodes differ by less than a fifth. */
function rates({ world }: History): () => Partial<MachineSettings> {
  return () => ({ rate: world.random.pick([0.92, 1, 1.08]) });
}

function pause(history: History, least: number, most: number): void {
  history.run(history.world.random.between(least, most));
}

/** One thing that goes wrong, or is healed. */
function act(history: History): void {
  const { world, engine, machines } = history;
  const { random } = world;
  const machine = random.pick(machines);
  const { link } = machine;
  const acts: (() => void)[] = [
    () => machine.kill(),
    () => machine.terminate(),
    () => machine.pause(random.between(1, 6_000)),
    () => machine.suspend(random.between(1, 6_000)),
    () => {
      link.faultyPart = random.pick([0, 0.05, 0.3]);
    },
    () => {
      link.losesResponses = !link.losesResponses;
    },
    () => {
      link.losesRequests = !link.losesRequests;
    },
    () => {
      link.delayMs = random.pick([1, 1, 10, 200, 450]);
    },
    () => {
      engine.isDown = !engine.isDown;
    },
    () => {
      machine.isUnreachable = !machine.isUnreachable;
    },
    () => {
      machine.turnOff();
      world.after(random.between(1, 4_000), () => machine.start());
    },
    () => {
      machine.disk.isFull = !machine.disk.isFull;
    },
    () => {
      machine.wallAhead += random.between(-40_000, 40_000);
    },
    () => engine.extendLeases(),
    () => history.heal(),
    () => history.heal(),
  ];
  random.pick(acts)();
}

/** Anything may happen at any time. */
function chaos(history: History): Outcome {
  // Each fault of a leader may begin when the one before is almost over.
  history.livenessMsMax += 2 * LEASE_MS;
  history.begin(history.world.random.between(2, 3), rates(history));
  for (let acts = history.world.random.between(3, 8); acts > 0; acts -= 1) {
    act(history);
    pause(history, 0, 2_000);
  }
  return history.finish();
}

/** The leader's requests reach the engine, and no response comes back. */
function grayFailure(history: History): Outcome {
  history.begin(2, rates(history));
  pause(history, 2_500, 5_000);
  history.leading.link.losesResponses = true;
  pause(history, 12_000, 20_000);
  return history.finish();
}

/** The leader's disk takes nothing more. */
function fullDisk(history: History): Outcome {
  history.begin(2, rates(history));
  pause(history, 4_500, 7_000);
  history.leading.disk.isFull = true;
  pause(history, 16_000, 22_000);
  return history.finish();
}

/**
 * The leader is cut off with a batch that the log lacks, and killed. Another node leads, and is lost for good soon after the first
 * one has returned. Copies take long.
 */
function lastBatch(history: History): Outcome {
  history.begin(2);
  pause(history, 500, 3_000);
  const { leading: first, follower: second } = history;
  for (const machine of history.machines) machine.copyMs = () => HOUR_MS;
  first.link.losesRequests = true;
  // A change comes, and is committed on its disk alone.
  history.changeMs = 100;
  pause(history, 300, 900);
  history.changeMs = 500;
  first.shutDown();
  history.runUntil(() => second.isLeading, 12_000, "another node leads");
  pause(history, 500, 4_000);
  history.heal();
  first.start();
  pause(history, 5_000, 7_000);
  second.turnOff();
  pause(history, 12_000, 14_000);
  return history.finish([first]);
}

/** A node is off for long, in a cell that makes more changes than its engine may store. */
function offlineFollower(history: History): Outcome {
  history.engine.quota = 40_000;
  history.begin(2);
  const { follower } = history;
  follower.turnOff();
  history.changeMs = 60;
  pause(history, 14_000, 18_000);
  history.changeMs = 500;
  return history.finish();
}

/** The clock of a PostgreSQL is set, and the leader's link is slow. */
function serverClock(history: History): Outcome {
  const { engine, world } = history;
  history.begin(2, rates(history));
  history.leading.link.delayMs = world.random.between(100, 400);
  history.readMs = 40;
  history.changeMs = 60;
  for (let steps = world.random.between(2, 4); steps > 0; steps -= 1) {
    pause(history, 300, 3_000);
    engine.clockAhead += world.random.between(-20_000, 20_000);
    if (world.random.chance(0.3)) engine.failOver(world.random.between(-9_000, 9_000));
  }
  pause(history, 1_000, 3_000);
  return history.finish();
}

/** Waits for the standby of a PostgreSQL are cancelled, and its primary is lost. */
function cancelledWaits(history: History): Outcome {
  const { engine, world } = history;
  // A node that has seen what is lost stops: nobody knows that it was confirmed to nobody.
  history.mayLose = true;
  history.begin(2);
  pause(history, 500, 2_000);
  const { leading, follower } = history;
  engine.isReplicating = false;
  const hasSeen = world.random.chance(0.5);
  if (!hasSeen) follower.shutDown();
  history.changeMs = 100;
  pause(history, 700, 1_500);
  if (world.random.chance(0.8)) engine.cancelWaits();
  pause(history, 1, 1_500);
  engine.failOver(0);
  if (world.random.chance(0.7)) leading.turnOff();
  engine.isReplicating = true;
  history.changeMs = 500;
  follower.start();
  pause(history, 1_000, 12_000);
  if (!leading.isPowered && !hasSeen) return history.finish([follower]);
  return finishWithStopped(history);
}

/** An engine is restored from a snapshot, so that it has lost what it had confirmed. */
function restored(history: History): Outcome {
  const { engine, world } = history;
  history.begin(3);
  pause(history, 500, 3_000);
  const restore = engine.snapshot();
  const behind = world.random.chance(0.7) ? history.follower : null;
  behind?.shutDown();
  pause(history, 2_000, 6_000);
  history.mayLose = true;
  const stopPart = world.random.pick([0, 0, 0.5, 1]);
  if (world.random.chance(0.7)) history.leading.shutDown();
  for (const machine of history.machines) if (world.random.chance(stopPart)) machine.shutDown();
  restore();
  const knew = history.machines.flatMap((machine) => {
    const before = machine === behind ? null : machine.storedPosition;
    return before === null ? [] : [{ machine, before }];
  });
  const {
    leader,
    engine: {
      world: { now },
    },
  } = history;
  behind?.start();
  pause(history, 0, 8_000);
  for (const { machine } of knew) machine.start();
  pause(history, 8_000, 12_000);
  const hasSaidSo = leader?.lines.some((line) => line.includes("has lost entries")) === true;
  if (leader?.isLeading === true && leader.leadsSince < now - LOOKS_MS && !hasSaidSo)
    throw new Violation("ahead", `${leader.settings.name} leads, and has not noticed that the log has a gap`);
  const outcome = finishWithStopped(history);
  for (const { machine, before } of knew)
    if (!history.descends(machine.storedPosition, before))
      throw new Violation(
        "ahead",
        `${machine.settings.name} was at ${before.seq} of epoch ${before.epoch}, and has discarded that`,
      );
  return outcome;
}

/**
 * The engine has lost something. A node that had it keeps its file and says so, or leads with it; nothing is mixed. Nodes that follow have
 * what the log has.
 */
function finishWithStopped(history: History): Outcome {
  history.heal();
  for (const machine of history.machines) machine.start();
  history.run(3_000);
  const stopped = history.machines.filter((machine) => isStopped(machine));
  for (const machine of stopped) machine.shutDown();
  const running = history.machines.filter((machine) => !stopped.includes(machine));
  const outcome = running.some(({ isLeading }) => isLeading) ? history.finish(running) : null;
  // What the leader acknowledged before, and lost since, was confirmed by the engine.
  return (
    outcome ?? { acknowledged: 0, shown: 0, elections: 0, simulatedMs: history.world.now, longestGapMs: 0 }
  );
}

function isStopped({ complaints, isLeading, position }: SimulatedMachine): boolean {
  const last = complaints.at(-1) ?? "";
  return !isLeading && position === null && /which the commit log of the cell .* does not have/.test(last);
}

/** The wall clocks of nodes differ. A lock must last as long as it should when another node leads. */
function wallClocks(history: History): Outcome {
  const { world } = history;
  history.begin(2);
  for (const machine of history.machines) machine.wallAhead = world.random.between(-60_000, 60_000);
  pause(history, 10_000, 12_000);
  const { leading, follower } = history;
  const account = world.random.between(1, PAGES - 1);
  const lock = (machine: SimulatedMachine): void => {
    history.send(machine, { id: `lock-${history.calls.length}`, account, kind: "lock", lockMs: 20_000 });
  };
  lock(leading);
  pause(history, 100, 2_000);
  leading.shutDown();
  history.runUntil(() => follower.isLeading, 12_000, "another node leads");
  for (let tries = 0; tries < 8; tries += 1) {
    lock(follower);
    pause(history, 200, 2_000);
  }
  return history.finish();
}

/** Folders and keys that do not belong to the cell, and a folder that was copied. */
function strangers(history: History): Outcome {
  const { world } = history;
  const kind = world.random.pick(["other cell", "other key", "other key, empty", "clone"] as const);
  history.begin(2);
  if (kind === "other cell") {
    const other = history.add({ cell: "other" });
    other.start();
    history.runUntil(() => other.isLeading, 10_000, "the other cell has a leader");
    pause(history, 500, 4_000);
    for (let count = world.random.between(0, 6); count > 0; count -= 1) {
      history.send(other, { id: `other-${count}`, account: 1, kind: "change", lockMs: 0 });
      pause(history, 10, 100);
    }
    other.shutDown();
    const wrong = history.add({ key: keyOf("main") });
    other.disk.copyTo(wrong.disk);
    return withStranger(history, wrong);
  }
  pause(history, 500, 3_000);
  if (kind === "clone") {
    const clone = history.add();
    history.follower.disk.copyTo(clone.disk);
    return withStranger(history, clone);
  }
  const wrong = history.add({ key: keyOf("another") });
  if (kind === "other key") history.follower.disk.copyTo(wrong.disk);
  return withStranger(history, wrong);
}

/** A node that must not take part comes, and the others go. */
function withStranger(history: History, stranger: SimulatedMachine): Outcome {
  const rest = history.machines.filter((machine) => machine !== stranger && machine.settings.cell === "main");
  stranger.start();
  pause(history, 6_000, 9_000);
  if (stranger.complaints.length === 0)
    throw new Violation("identity", `${stranger.settings.name} takes part: ${stranger.lines.join("\n")}`);
  if (history.world.random.chance(0.5)) {
    history.leading.kill();
    pause(history, 1_000, 6_000);
  }
  stranger.shutDown();
  return history.finish(rest);
}

/** Nodes without data copy the database while its source is cut off, stops, or loses the lease. */
function copies(history: History): Outcome {
  const { world } = history;
  history.begin(1);
  const { leading } = history;
  const fresh = history.add();
  for (const machine of history.machines) machine.copyMs = () => world.random.between(1, 4_000);
  if (world.random.chance(0.5)) history.add().start();
  fresh.start();
  pause(history, 0, 3_000);
  const kinds = [
    () => {
      leading.isUnreachable = true;
    },
    () => leading.pause(world.random.between(1_000, 9_000)),
    () => leading.kill(),
    () => leading.turnOff(),
    () => fresh.turnOff(),
  ];
  world.random.pick(kinds)();
  pause(history, 1_000, 14_000);
  return history.finish();
}

/** A leader stops in order, also when the engine is gone. */
function stops(history: History): Outcome {
  const { engine, world } = history;
  history.begin(2);
  pause(history, 1_000, 3_000);
  const { leading } = history;
  if (world.random.chance(0.7)) engine.isDown = true;
  else leading.link.losesResponses = true;
  history.changeMs = 100;
  pause(history, 0, 4_000);
  const { starts } = leading;
  leading.terminate();
  history.run(STOP_MS_MAX);
  if (leading.starts === starts)
    throw new Violation("stop", `${leading.settings.name} has not stopped after ${STOP_MS_MAX} ms`);
  history.changeMs = 500;
  return history.finish();
}

/** The leader's process is stopped, or its machine sleeps, for longer than its lease. */
function sleeps(history: History): Outcome {
  const { world } = history;
  history.begin(2, rates(history));
  pause(history, 500, 3_000);
  const ms = world.random.between(4_000, 9_000);
  if (world.random.chance(0.5)) history.leading.suspend(ms);
  else history.leading.pause(ms);
  history.run(ms - 100);
  history.readMs = 30;
  history.run(1_200);
  return history.finish();
}

/** Power cuts, and starts with what the disks have. */
function powerCuts(history: History): Outcome {
  const { world } = history;
  history.begin(2);
  history.changeMs = 200;
  for (let cuts = world.random.between(1, 3); cuts > 0; cuts -= 1) {
    pause(history, 200, 4_000);
    const struck = history.machines.filter(() => world.random.chance(0.6));
    for (const machine of struck) machine.turnOff();
    pause(history, 0, 4_000);
    for (const machine of struck) machine.start();
  }
  history.changeMs = 500;
  return history.finish();
}

export const SCENARIOS = {
  chaos: { engines: BOTH, weight: 10, run: chaos },
  grayFailure: { engines: BOTH, weight: 1, run: grayFailure },
  fullDisk: { engines: BOTH, weight: 0.5, run: fullDisk },
  lastBatch: { engines: BOTH, weight: 2, run: lastBatch },
  offlineFollower: { engines: ["etcd"], weight: 0.5, run: offlineFollower },
  serverClock: { engines: ["postgres"], weight: 1, run: serverClock },
  cancelledWaits: { engines: ["postgres"], weight: 1, run: cancelledWaits },
  restored: { engines: ["etcd"], weight: 1, run: restored },
  wallClocks: { engines: BOTH, weight: 1, run: wallClocks },
  strangers: { engines: BOTH, weight: 1, run: strangers },
  copies: { engines: BOTH, weight: 2, run: copies },
  stops: { engines: BOTH, weight: 1, run: stops },
  sleeps: { engines: BOTH, weight: 1, run: sleeps },
  powerCuts: { engines: BOTH, weight: 2, run: powerCuts },
} satisfies Record<string, Scenario>;

export type ScenarioName = keyof typeof SCENARIOS;
