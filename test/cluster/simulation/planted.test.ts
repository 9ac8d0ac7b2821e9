import { afterEach, expect, test } from "bun:test";
import { ClockComparison } from "../../../src/cluster/clock-comparison.ts";
import { Follower } from "../../../src/cluster/follower.ts";
import { Leadership } from "../../../src/cluster/leadership.ts";
import { Membership } from "../../../src/cluster/membership.ts";
import { NodeFolder } from "../../../src/cluster/node-folder.ts";
import { Replication } from "../../../src/cluster/replication.ts";
import type { MachineFaults } from "./machine.ts";
import { findViolation } from "./run.ts";
import { SCENARIOS, type ScenarioName } from "./scenarios.ts";

/** Histories of a scenario that are enough to find any of the faults. */
const SEEDS_MAX = 60;
const TEST_MS_MAX = 600_000;

const undo: (() => void)[] = [];
afterEach(() => {
  for (const one of undo.splice(0)) one();
});

/** A fault: of the real code, a method or getter that is replaced; or of what the simulation has in place of a server, a client or an engine's adapter. */
interface Fault {
  readonly what: string;
  readonly scenario: ScenarioName;
  /** The property that does not hold with it. */
  readonly breaks: string;
  readonly replaces?: readonly [prototype: object, name: string, by: PropertyDescriptor];
  readonly faults?: MachineFaults;
}

const NOTHING: PropertyDescriptor = { value: () => Promise.resolve() };

const FAULTS: readonly Fault[] = [
  {
    what: "responses leave before the commit log has confirmed what they show",
    scenario: "chaos",
    breaks: "linearizable",
    faults: { respondsEarly: true },
  },
  {
    what: "reads wait for no confirmation, and for no lease",
    scenario: "chaos",
    breaks: "linearizable",
    replaces: [Leadership.prototype, "pass", { value: () => undefined }],
  },
  {
    what: "checkpoints move what is not confirmed",
    scenario: "lastBatch",
    breaks: "liveness",
    faults: { movesUnconfirmed: true },
  },
  {
    what: "a folder of another log is taken for one of this log",
    scenario: "strangers",
    breaks: "identity",
    replaces: [Follower.prototype, "assertIsOurs", { value: () => undefined }],
  },
  {
    what: "a node with another master key takes part",
    scenario: "strangers",
    breaks: "identity",
    replaces: [Follower.prototype, "assertReadable", NOTHING],
  },
  {
    what: "two processes with one identity take part",
    scenario: "strangers",
    breaks: "identity",
    replaces: [
      Membership.prototype,
      "register",
      {
        value(this: Membership, state: Parameters<Membership["register"]>[0]) {
          return this.report(state).catch(() => undefined);
        },
      },
    ],
  },
  {
    what: "a leader whose responses are lost leads for ever",
    scenario: "grayFailure",
    breaks: "liveness",
    replaces: [Leadership.prototype, "giveUpIfUseless", NOTHING],
  },
  {
    what: "a leader that has not seen two reports of another node yet gives nothing up",
    scenario: "grayFailure",
    breaks: "liveness",
    replaces: [
      Replication.prototype,
      "hasSuccessor",
      {
        get(this: Replication) {
          return this.successors > 0;
        },
      },
    ],
  },
  {
    what: "a leader whose disk is full leads for ever",
    scenario: "fullDisk",
    breaks: "liveness",
    replaces: [Replication.prototype, "lookAtDisk", NOTHING],
  },
  {
    what: "a node with an unconfirmed batch copies the whole database",
    scenario: "lastBatch",
    breaks: "liveness",
    replaces: [NodeFolder.prototype, "cutUnconfirmed", { value: () => false }],
  },
  {
    what: "a copy waits for ever for a source that is gone",
    scenario: "copies",
    breaks: "recovery",
    faults: { waitsForEver: true },
  },
  {
    what: "a node that follows does not notice that the engine has lost what it has",
    scenario: "restored",
    breaks: "ahead",
    replaces: [Follower.prototype, "assertIsInLog", NOTHING],
  },
  {
    what: "a node that is ahead of the log discards its database",
    scenario: "restored",
    breaks: "ahead",
    replaces: [Follower.prototype, "isOwnBatch", { value: () => Promise.resolve(true) }],
  },
  {
    what: "a leader does not notice that the log has a gap",
    scenario: "restored",
    breaks: "ahead",
    replaces: [Replication.prototype, "lookForGap", NOTHING],
  },
  {
    what: "the log is kept for a node that is off, until the engine is full",
    scenario: "offlineFollower",
    breaks: "liveness",
    replaces: [Replication.prototype, "isOverLimit", { get: () => false }],
  },
  {
    what: "the clock of a PostgreSQL decides who leads",
    scenario: "serverClock",
    breaks: "linearizable",
    faults: { trustsServerClock: true },
  },
  {
    what: "a commit whose wait for the standby was cancelled counts",
    scenario: "cancelledWaits",
    breaks: "linearizable",
    faults: { trustsCancelledWaits: true },
  },
  {
    what: "a leader does not continue the clock of the one before",
    scenario: "wallClocks",
    breaks: "locks",
    faults: { keepsOwnClock: true },
  },
  {
    what: "clocks of nodes are not compared",
    scenario: "wallClocks",
    breaks: "locks",
    replaces: [ClockComparison.prototype, "note", { value: () => undefined }],
  },
  {
    what: "a leader that stops waits for an engine that is gone",
    scenario: "stops",
    breaks: "stop",
    replaces: [Leadership.prototype, "release", { value: () => new Promise(() => undefined) }],
  },
  {
    what: "a machine that has slept trusts its lease",
    scenario: "sleeps",
    breaks: "linearizable",
    replaces: [Leadership.prototype, "noteSleep", { value: () => undefined }],
  },
  {
    what: "a first leader does not start after a power cut that undid all of its changes",
    scenario: "powerCuts",
    breaks: "recovery",
    replaces: [Follower.prototype, "positionBegun", { value: () => Promise.resolve(null) }],
  },
];

test.each(FAULTS.map((fault) => [fault.what, fault] as const))(
  "histories find it when %s",
  (_what, { scenario, breaks, replaces, faults }) => {
    if (replaces !== undefined) plant(...replaces);
    const names = Array.from({ length: SEEDS_MAX }, (_, seed) =>
      SCENARIOS[scenario].engines.map((engine) => ({ scenario, engine, seed })),
    ).flat();
    expect(findViolation(names, breaks, faults)?.property ?? "nothing").toBe(breaks);
  },
  TEST_MS_MAX,
);

function plant(prototype: object, name: string, by: PropertyDescriptor): void {
  const before = Object.getOwnPropertyDescriptor(prototype, name);
  if (before === undefined) throw new Error(`there is no ${name} any more`);
  Object.defineProperty(prototype, name, { configurable: true, ...by });
  undo.push(() => Object.defineProperty(prototype, name, before));
}
