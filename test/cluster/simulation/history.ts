import type { Lead } from "../../../src/cluster/follower.ts";
import type { LogPosition } from "../../../src/kernel/storage/replication/position.ts";
import { assertLinearizable, assertLocks, assertPages, type Call, Truth } from "./checks.ts";
import { type EngineKind, SimulatedEngine } from "./engine.ts";
import {
  DATABASE,
  LEASE_MS,
  type MachineFaults,
  type MachineSettings,
  type Peers,
  SimulatedMachine,
} from "./machine.ts";
import { PAGES, readPages } from "./paged-file.ts";
import type { Operation } from "./server.ts";
import { Violation, World } from "./world.ts";

/** What looks and starts add to the leases within which somebody must take changes. */
const LOOKS_MS = 2_500;
/** Between two looks whether that is so. */
const LOOK_MS = 250;
/** Time after the last fault in which everything must have recovered. */
const RECOVERY_MS_MAX = 60_000;
/** A lock may end earlier by this part: clocks run at different rates, and differences of a second are not corrected. */
const LOCK_TOLERANCE = 0.3;

/** What came of a history. */
export interface Outcome {
  readonly acknowledged: number;
  readonly shown: number;
  readonly elections: number;
  readonly simulatedMs: number;
  /** The longest time without a change although a node could have taken one. */
  readonly longestGapMs: number;
}

/** A cell in a simulated world, with clients, and with checks of what happens. */
export class History {
  readonly world: World;
  readonly engine: SimulatedEngine;
  readonly machines: SimulatedMachine[] = [];
  /** Whether the engine may lose what it has confirmed, and whether nobody may take changes then. */
  mayLose = false;
  /** Time in which somebody must take changes if a node with all data can. */
  livenessMsMax = 2 * LEASE_MS + LOOKS_MS;
  /** Between two changes, and between two reads, of clients. */
  changeMs = 500;
  readMs = 200;
  readonly calls: Call[] = [];
  private readonly peers: Peers = new Map();
  private readonly truths = new Map<string, Truth>();
  /** Of each epoch: the place after which it began. */
  private readonly parents = new Map<number, LogPosition>();
  private readonly dataSince = new Map<SimulatedMachine, number>();
  private lastAcknowledged = 0;
  private elections = 0;
  private longestGapMs = 0;
  private violation: Violation | null = null;
  private isBusy = true;

  constructor(
    readonly seed: number,
    kind: EngineKind,
    readonly faults: MachineFaults = {},
  ) {
    this.world = new World(seed);
    this.engine = new SimulatedEngine(kind, this.world);
    this.engine.onEntry = (cell, entry) => this.truth(cell).note(entry);
    this.engine.onLost = (cell, from) => this.truth(cell).forgetFrom(from);
    this.world.every(LOOK_MS, () => this.look());
    this.changeAgain();
    this.readAgain();
  }

  /** Adds a machine, which is off. */
  add(settings: Partial<MachineSettings> = {}): SimulatedMachine {
    const name = `m${this.machines.length}`;
    const machine = new SimulatedMachine(this.world, this.engine, this.peers, {
      name,
      cell: "main",
      key: keyOf("main"),
      schema: 1,
      rate: 1,
      faults: this.faults,
      ...settings,
    });
    machine.onLead = (which, lead) => this.checkLead(which, lead);
    this.machines.push(machine);
    return machine;
  }

  /** Adds machines that run, and waits until one of them leads and the others have its data. */
  begin(count: number, settings: () => Partial<MachineSettings> = () => ({})): void {
    for (let index = 0; index < count; index += 1) {
      this.add(settings()).start();
      // The first one makes the log.
      if (index === 0) this.runUntil(() => this.leader !== null, 10_000, "the first node leads");
    }
    this.runUntil(() => this.isInSync, RECOVERY_MS_MAX, "the nodes have copied the database");
  }

  /** The machine whose node leads. */
  get leader(): SimulatedMachine | null {
    return this.machines.find(({ isLeading, settings }) => isLeading && settings.cell === "main") ?? null;
  }

  /** A machine of the cell that does not lead. */
  get follower(): SimulatedMachine {
    const { leader } = this;
    const found = this.machines.find(
      (machine) => machine !== leader && machine.settings.cell === "main" && machine.isRunning,
    );
    if (found === undefined) throw new Error("there is no follower");
    return found;
  }

  /** The machine whose node leads. @throws Violation if none does. */
  get leading(): SimulatedMachine {
    const { leader } = this;
    if (leader === null) throw new Violation("liveness", "no node leads");
    return leader;
  }

  truth(cell: string): Truth {
    let truth = this.truths.get(cell);
    if (truth === undefined) {
      truth = new Truth(keyOf("main"), 1);
      this.truths.set(cell, truth);
    }
    return truth;
  }

  /** Lets time pass. @throws Violation */
  run(ms: number): void {
    this.world.run(ms);
    if (this.violation !== null) throw this.violation;
  }

  /** Lets time pass until something is so. @throws Violation if it is not within this time. */
  runUntil(isSo: () => boolean, msMax: number, what: string): void {
    const until = this.world.now + msMax;
    while (!isSo()) {
      if (this.world.now >= until) throw new Violation("recovery", `not within ${msMax} ms: ${what}`);
      this.run(100);
    }
  }

  /** Sends a request to a machine. */
  send(machine: SimulatedMachine, operation: Operation): Call {
    const call: Call = { operation, sentAt: this.world.now, response: null };
    if (machine.settings.cell === "main") this.calls.push(call);
    machine.request(operation, (state) => {
      if (state === null) return;
      call.response = { at: this.world.now, state };
      if (operation.kind !== "read") this.lastAcknowledged = this.world.now;
    });
    return call;
  }

  /** Ends all faults of networks and clocks, and starts what is off. */
  heal(): void {
    const { engine, world } = this;
    engine.isDown = false;
    engine.isReplicating = true;
    engine.replicate();
    engine.healthySince = world.now;
    for (const machine of this.machines) {
      Object.assign(machine.link, { losesRequests: false, losesResponses: false, faultyPart: 0, delayMs: 1 });
      machine.link.healthySince = world.now;
      machine.isUnreachable = false;
      machine.disk.isFull = false;
    }
  }

  /** Whether a file at the first place has everything that was at the second one. */
  descends(from: LogPosition | null, before: LogPosition): boolean {
    for (let place = from; place !== null; place = this.parents.get(place.epoch) ?? null) {
      if (place.epoch === before.epoch) return place.seq >= before.seq;
      if (place.epoch < before.epoch) return false;
    }
    return false;
  }

  /** After the last fault: one node leads, the others have its data, nothing acknowledged is lost. */
  finish(machines = this.machines): Outcome {
    this.heal();
    for (const machine of machines) machine.start();
    const isRecovered = (): boolean => this.leader !== null && this.isInSync;
    this.runUntil(isRecovered, RECOVERY_MS_MAX, "a node leads, and the others have its data");
    this.isBusy = false;
    for (let account = 1; account < PAGES; account += 1) this.readAtEnd(account);
    // The last batch is confirmed, too.
    this.run(3_000);
    this.runUntil(isRecovered, RECOVERY_MS_MAX, "the last entries are applied");
    if (!this.engine.hasLost) assertLinearizable(this.calls);
    assertLocks(this.calls, LOCK_TOLERANCE);
    for (const machine of machines) this.checkPages(machine);
    const responded = this.calls.filter(({ response }) => response !== null);
    const shown = responded.filter(({ operation }) => operation.kind === "read").length;
    return {
      acknowledged: responded.length - shown,
      shown,
      elections: this.elections,
      simulatedMs: this.world.now,
      longestGapMs: this.longestGapMs,
    };
  }

  /** Whether all nodes of the cell that run have everything. */
  get isInSync(): boolean {
    const { last } = this.engine.cell("main");
    return this.machines.every(
      (machine) =>
        machine.settings.cell !== "main" ||
        !machine.isPowered ||
        machine.isLeading ||
        machine.position?.seq === last,
    );
  }

  private readAtEnd(account: number): void {
    let call: Call | null = null;
    const isRead = (): boolean => {
      if (call !== null && call.response !== null) return true;
      if (this.leader !== null)
        call = this.send(this.leader, { id: `final-${account}`, account, kind: "read", lockMs: 0 });
      return false;
    };
    this.runUntil(isRead, 10_000, "a read at the end");
  }

  private changeAgain(): void {
    const { world } = this;
    world.after(world.random.between(this.changeMs / 2, this.changeMs * 1.5), () => {
      this.changeAgain();
      this.sendToAll("change");
    });
  }

  private readAgain(): void {
    const { world } = this;
    world.after(world.random.between(this.readMs / 2, this.readMs * 1.5), () => {
      this.readAgain();
      this.sendToAll("read");
    });
  }

  /** A client does not know who leads. */
  private sendToAll(kind: "change" | "read"): void {
    if (!this.isBusy) return;
    const account = this.world.random.between(1, PAGES - 1);
    for (const machine of this.machines)
      if (machine.settings.cell === "main")
        this.send(machine, { id: `${kind}-${this.calls.length}`, account, kind, lockMs: 0 });
  }

  private look(): void {
    const { world, engine } = this;
    const sinceMs = (since: number): number => world.now - since;
    if (engine.isDown || !engine.isReplicating) engine.healthySince = world.now;
    for (const machine of this.machines) {
      const { link, isPowered, disk } = machine;
      const isHealthy = link.isHealthy && isPowered && machine.pausedUntil <= world.now && !disk.isFull;
      if (!isHealthy || machine.isUnreachable) link.healthySince = world.now;
      if (!isHealthy || !this.hasAllData(machine)) this.dataSince.set(machine, world.now);
    }
    if (!this.isBusy || this.mayLose) return;
    const couldSince = this.machines
      .filter(({ settings }) => settings.cell === "main")
      .map((machine) =>
        Math.max(engine.healthySince, machine.link.healthySince, this.dataSince.get(machine) ?? 0),
      );
    const gapMs = Math.min(sinceMs(this.lastAcknowledged), sinceMs(Math.min(...couldSince)));
    this.longestGapMs = Math.max(this.longestGapMs, gapMs);
    if (gapMs > this.livenessMsMax)
      this.violation ??= new Violation(
        "liveness",
        `at ${world.now} nobody has taken a change for ${gapMs} ms, although a node with all data reached the engine`,
      );
  }

  /** Whether a machine has everything that the log does not have. */
  private hasAllData(machine: SimulatedMachine): boolean {
    if (machine.isLeading) return true;
    const position = machine.position ?? machine.storedPosition;
    if (position === null) return false;
    const { entries } = this.truth(machine.settings.cell);
    const { range, identity } = this.engine.cell(machine.settings.cell);
    if (position.log !== identity || position.seq < (range?.first ?? 1) - 1) return false;
    // Its last batch may be unconfirmed: then it is to be cut.
    return entries.get(position.seq)?.epoch === position.epoch || entries.has(position.seq - 1);
  }

  private checkLead(machine: SimulatedMachine, lead: Lead): void {
    this.elections += 1;
    this.parents.set(lead.seal.epoch, machine.position ?? { log: null, epoch: 0, seq: 0 });
    const { seq } = lead.seal;
    try {
      const image = this.truth(machine.settings.cell).imageAt(seq);
      if (image !== null && machine.hasDatabase)
        assertPages(
          readPages(machine.disk, DATABASE),
          image,
          `${machine.settings.name}, which leads from ${seq} on`,
        );
    } catch (error) {
      if (error instanceof Violation) this.violation ??= error;
      else throw error;
    }
  }

  private checkPages(machine: SimulatedMachine): void {
    const { last } = this.engine.cell(machine.settings.cell);
    const image = this.truth(machine.settings.cell).imageAt(last);
    if (image === null || !machine.hasDatabase) return;
    assertPages(readPages(machine.disk, DATABASE), image, `${machine.settings.name} at ${last}`);
  }
}

/** The master key of a cell. */
export function keyOf(cell: string): Uint8Array {
  return new Bun.CryptoHasher("sha256").update(cell).digest();
}
