import {
  CALL_MS_MAX,
  CHANGE_MS_MAX,
  type ClusterNode,
  type CommitLog,
  EngineErrors,
  type EngineSpace,
  EngineUnavailable,
  type Leader,
  type LoggedEntry,
  type LogRange,
  LogTrimmed,
  type NodeReport,
  PlaceTaken,
} from "../../../src/cluster/commit-log.ts";
import { holderName, ObservedLease } from "../../../src/cluster/engines/observed-lease.ts";
import { commitOnStandbys } from "../../../src/cluster/engines/synchronous-commit.ts";
import type { Cancel } from "../../../src/kernel/time/clock.ts";
import type { World } from "./world.ts";

/** Waits that somebody cancels are longer. */
const CANCELLED_MS_MIN = 510;
/** An etcd notices the end of a lease so much later, at most. */
const EXPIRY_LATE_MS_MAX = 500;
/** How often followers of a PostgreSQL look for new entries. */
const WATCH_MS = 50;

/** The lease as an engine stores it. */
interface StoredLease {
  readonly name: string;
  readonly epoch: number;
  /** By the engine's wall clock. */
  readonly expires: number;
  readonly isReleased: boolean;
}

/** What an engine stores of one cell. */
class Cell {
  entries = new Map<number, LoggedEntry>();
  first = 1;
  epoch = 0;
  lease: StoredLease | null = null;
  identity: string | null = null;
  nodes = new Map<string, NodeReport>();
  asked = 0;

  /** The last place that is taken; 0: none. */
  get last(): number {
    return Math.max(0, ...this.entries.keys());
  }

  get range(): LogRange | null {
    const places = [...this.entries.keys()];
    return places.length === 0 ? null : { first: Math.min(...places), last: Math.max(...places) };
  }

  copy(): Cell {
    const { entries, nodes, ...rest } = this;
    return Object.assign(new Cell(), rest, { entries: new Map(entries), nodes: new Map(nodes) });
  }
}

/** A change of a cell that its replica makes, too. Returns the result. */
type Change<T> = (cell: Cell) => T;

/** A change that the standby has not: the primary shows it after that, or after somebody has cancelled the wait for it. */
interface Unreplicated {
  readonly cell: string;
  readonly change: Change<unknown>;
  readonly respond: (result: () => unknown) => void;
  readonly since: number;
  isVisible: boolean;
}

/** What engines differ in. */
export type EngineKind = "etcd" | "postgres";

/**
 * An engine: the data of its cells, and what can happen to it. `etcd` confirms what a majority has. `postgres` has a primary and a
 * synchronous standby: a wait for the standby that is cancelled leaves a commit that everybody sees and nobody else has.
 */
export class SimulatedEngine {
  /** Bytes that the entries of all cells may take. */
  quota = Number.POSITIVE_INFINITY;
  /** Whether no call has an effect. */
  isDown = false;
  /** What its wall clock shows beyond the time of the world. */
  clockAhead = 0;
  /** Whether the standby receives what the primary commits. */
  isReplicating = true;
  /** Whether it took an entry beyond its quota: from then on it takes nothing but deletions, until its owner disarms the alarm. */
  hasAlarm = false;
  /** Since when nothing is wrong with it. */
  healthySince = 0;
  /** Whether it has lost what it had confirmed. */
  hasLost = false;
  /** Called with each entry that has got its place. */
  onEntry: (cell: string, entry: LoggedEntry) => void = () => undefined;
  /** Called when what was confirmed or visible is gone: the place after the last one that is left. */
  onLost: (cell: string, from: number) => void = () => undefined;
  private cells = new Map<string, Cell>();
  private replica = new Map<string, Cell>();
  private unreplicated: Unreplicated[] = [];
  private readonly watchers = new Set<() => void>();

  constructor(
    readonly kind: EngineKind,
    readonly world: World,
  ) {}

  cell(name: string): Cell {
    return cellIn(this.cells, name);
  }

  /** Its wall clock. */
  get clock(): number {
    return this.world.now + this.clockAhead;
  }

  get used(): number {
    let bytes = 0;
    for (const { entries } of this.cells.values())
      for (const { parts } of entries.values()) for (const { length } of parts) bytes += length;
    return bytes;
  }

  watch(wake: () => void): Cancel {
    this.watchers.add(wake);
    return () => this.watchers.delete(wake);
  }

  wakeWatchers(): void {
    for (const wake of this.watchers) wake();
  }

  /** Makes a change. `respond` is called when it is certain, or when a wait for that was cancelled. */
  commit<T>(cell: string, change: Change<T>, respond: (result: () => T) => void): void {
    if (this.kind === "etcd") {
      respond(resultOf(change, this.cell(cell)));
      return;
    }
    const waiting: Unreplicated = {
      cell,
      change,
      respond: respond as (result: () => unknown) => void,
      since: this.world.now,
      isVisible: false,
    };
    this.unreplicated.push(waiting);
    this.world.after(1, () => this.replicate());
    this.world.after(CHANGE_MS_MAX, () => {
      if (this.unreplicated.includes(waiting)) this.show(waiting);
    });
  }

  /** Somebody cancels the waits for the standby: nobody does so while they are short. */
  cancelWaits(): void {
    for (const waiting of this.unreplicated)
      if (this.world.now - waiting.since >= CANCELLED_MS_MIN) this.show(waiting);
  }

  replicate(): void {
    if (!this.isReplicating) return;
    for (const waiting of this.unreplicated.splice(0)) {
      this.show(waiting);
      resultOf(waiting.change, cellIn(this.replica, waiting.cell));
    }
  }

  private show(waiting: Unreplicated): void {
    if (waiting.isVisible) return;
    waiting.isVisible = true;
    waiting.respond(resultOf(waiting.change, this.cell(waiting.cell)));
  }

  /** The primary is lost, and its standby is promoted. `clockAhead`: its own clock. */
  failOver(clockAhead: number): void {
    const before = this.cells;
    this.unreplicated = [];
    this.cells = this.replica;
    this.replica = copied(this.cells);
    this.clockAhead = clockAhead;
    this.noteLost(before);
  }

  /** Its owner makes a snapshot. Returns what restores it. */
  snapshot(): () => void {
    const kept = copied(this.cells);
    return () => {
      const before = this.cells;
      this.cells = copied(kept);
      this.replica = copied(kept);
      this.unreplicated = [];
      this.hasLost = true;
      this.noteLost(before);
    };
  }

  /** Its servers elect another leader, which extends all leases by their time. */
  extendLeases(): void {
    for (const cell of this.cells.values())
      if (cell.lease !== null && cell.lease.expires > this.clock)
        cell.lease = { ...cell.lease, expires: this.clock + ttlOf(cell.lease) };
  }

  private noteLost(before: ReadonlyMap<string, Cell>): void {
    for (const [name, { last }] of before) {
      const left = this.cell(name).last;
      if (left < last) this.onLost(name, left + 1);
    }
  }
}

function cellIn(cells: Map<string, Cell>, name: string): Cell {
  let cell = cells.get(name);
  if (cell === undefined) {
    cell = new Cell();
    cells.set(name, cell);
  }
  return cell;
}

function copied(cells: ReadonlyMap<string, Cell>): Map<string, Cell> {
  return new Map([...cells].map(([name, cell]) => [name, cell.copy()]));
}

/** Makes a change now. Returns what gives its result, or throws its error. */
function resultOf<T>(change: Change<T>, cell: Cell): () => T {
  try {
    const result = change(cell);
    return () => result;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}

function ttlOf({ name }: StoredLease): number {
  return (JSON.parse(name) as { lease_ms: number }).lease_ms;
}

/** What happens to the calls of one node. */
export class Link {
  /** Whether requests, and responses, are lost. */
  losesRequests = false;
  losesResponses = false;
  /** Part of the calls that are delayed, doubled or lost at random. */
  faultyPart = 0;
  delayMs = 1;
  /** Since when nothing is wrong with it. */
  healthySince = 0;

  get isHealthy(): boolean {
    return !this.losesRequests && !this.losesResponses && this.faultyPart === 0 && this.delayMs < 50;
  }
}

/** What a process gives to its connections: it runs nothing when it is paused, or has ended. */
export interface Runner {
  /** Runs later, by the time of the world. */
  later(delayMs: number, run: () => void): Cancel;
  /** Monotonic time of the machine. */
  monotonic(): number;
}

/** Switches by which a test makes an engine's client wrong. */
export interface EngineFaults {
  /** The lease of PostgreSQL is believed to have ended when the server's clock says so. */
  readonly trustsServerClock?: boolean;
  /** A commit in PostgreSQL is believed without another one. */
  readonly trustsCancelledWaits?: boolean;
}

/** An engine as one process reaches it. */
export class EngineConnection implements CommitLog {
  readonly errors = new EngineErrors();
  private readonly lease: ObservedLease;

  constructor(
    private readonly engine: SimulatedEngine,
    private readonly cell: string,
    private readonly link: Link,
    private readonly runner: Runner,
    private readonly faults: EngineFaults = {},
  ) {
    this.lease = new ObservedLease(() => runner.monotonic());
  }

  async prepare(): Promise<void> {}

  async tryLead(node: ClusterNode, ttlMs: number, epochMin: number): Promise<number | null> {
    const { engine } = this;
    await this.observe();
    if (engine.kind === "postgres" && !this.isFreeFor(node)) return null;
    const seen = this.lease.row;
    const expires = engine.clock + ttlMs;
    return this.change(true, (cell) => {
      const { lease } = cell;
      const isOwn = lease !== null && idIn(lease) === node.id;
      const isFree =
        engine.kind === "etcd"
          ? lease === null || isOver(lease, engine)
          : `${lease?.epoch} ${lease?.expires}` === `${seen?.epoch} ${seen?.expires}`;
      if (!isOwn && !isFree) return null;
      cell.epoch = Math.max(cell.epoch + 1, epochMin);
      cell.lease = { name: holderName(node, ttlMs), epoch: cell.epoch, expires, isReleased: false };
      return cell.epoch;
    });
  }

  renew(node: ClusterNode, epoch: number, ttlMs: number): Promise<boolean> {
    const { engine } = this;
    return this.change(false, (cell) => {
      if (cell.epoch !== epoch) return false;
      const expires = Math.max(engine.clock + ttlMs, (cell.lease?.expires ?? 0) + 0.001);
      cell.lease = {
        name: holderName(node, ttlMs),
        epoch,
        expires: engine.kind === "etcd" ? engine.clock + ttlMs : expires,
        isReleased: false,
      };
      return true;
    });
  }

  async release(_node: ClusterNode, epoch: number): Promise<void> {
    await this.change(false, (cell) => {
      if (cell.lease?.epoch === epoch) cell.lease = { ...cell.lease, isReleased: true };
    });
  }

  async leader(): Promise<Leader | null> {
    const row = await this.observe();
    if (this.engine.kind === "postgres") return this.lease.leader;
    return row === null || row.isReleased || row.isOver
      ? null
      : { ...(JSON.parse(row.node) as ClusterNode), epoch: Number(row.epoch) };
  }

  append(entry: LoggedEntry): Promise<void> {
    const { engine, cell: name } = this;
    const write = (): Promise<void> =>
      this.change(true, (cell) => {
        const there = cell.entries.get(entry.seq);
        if (there !== undefined && there.epoch !== entry.epoch)
          throw new PlaceTaken(`another leader has written entry ${entry.seq}`);
        if (there !== undefined) return;
        cell.entries.set(entry.seq, entry);
        if (cell !== engine.cell(name)) return;
        if (engine.quota < Number.POSITIVE_INFINITY && engine.used > engine.quota) engine.hasAlarm = true;
        engine.onEntry(name, entry);
        engine.wakeWatchers();
      });
    return engine.kind === "etcd" || this.faults.trustsCancelledWaits === true
      ? write()
      : commitOnStandbys(write, () => this.runner.monotonic());
  }

  read(from: number, max: number): Promise<LoggedEntry[]> {
    return this.call((cell) => {
      const found: LoggedEntry[] = [];
      for (let seq = from; found.length < max; seq += 1) {
        const entry = cell.entries.get(seq);
        if (entry === undefined) break;
        found.push(entry);
      }
      const next = found.length > 0 ? null : [...cell.entries.keys()].find((seq) => seq > from);
      if (next !== null && next !== undefined) throw new LogTrimmed(`the log begins at entry ${next}`);
      return found;
    });
  }

  range(): Promise<LogRange | null> {
    return this.call(({ range }) => range);
  }

  identity(): Promise<string | null> {
    return this.call(({ identity }) => identity);
  }

  identify(id: string): Promise<string> {
    return this.change(true, (cell) => {
      cell.identity ??= id;
      return cell.identity;
    });
  }

  watch(_from: number, wake: () => void): Cancel {
    let isOver = false;
    if (this.engine.kind === "postgres") {
      const look = (): void => {
        this.runner.later(WATCH_MS, () => {
          if (isOver) return;
          wake();
          look();
        });
      };
      look();
      return () => {
        isOver = true;
      };
    }
    const cancel = this.engine.watch(() => {
      const { losesResponses, delayMs } = this.link;
      if (!losesResponses) this.runner.later(delayMs, () => isOver || wake());
    });
    return () => {
      isOver = true;
      cancel();
    };
  }

  async trim(through: number): Promise<void> {
    await this.change(false, (cell) => {
      for (const seq of cell.entries.keys()) if (seq <= through) cell.entries.delete(seq);
    });
  }

  space(): Promise<EngineSpace> {
    const { quota, kind } = this.engine;
    return this.call(() => ({
      used: this.engine.used,
      quota: kind === "postgres" || quota === Number.POSITIVE_INFINITY ? null : quota,
    }));
  }

  report(node: NodeReport): Promise<NodeReport | null> {
    return this.change(true, (cell) => {
      const before = cell.nodes.get(node.id) ?? null;
      cell.nodes.set(node.id, node);
      return before;
    });
  }

  nodes(): Promise<NodeReport[]> {
    return this.call((cell) => [...cell.nodes.values()]);
  }

  async forget(id: string): Promise<void> {
    await this.change(false, (cell) => cell.nodes.delete(id));
  }

  async askToHandOver(epoch: number): Promise<void> {
    await this.change(true, (cell) => {
      cell.asked = epoch;
    });
  }

  isAskedToHandOver(epoch: number): Promise<boolean> {
    return this.call((cell) => cell.asked === epoch);
  }

  async reset(): Promise<void> {
    await this.change(false, (cell) => Object.assign(cell, new Cell(), { epoch: cell.epoch }));
  }

  close(): void {}

  /** Reads the lease. */
  private async observe() {
    const { engine } = this;
    const row = await this.call(({ lease }) =>
      lease === null
        ? null
        : {
            epoch: String(lease.epoch),
            node: lease.name,
            expires: String(lease.expires),
            isReleased: lease.isReleased,
            isOver: isOver(lease, engine),
          },
    );
    this.lease.note(row);
    return row;
  }

  private isFreeFor(node: ClusterNode): boolean {
    const isOverThere = this.faults.trustsServerClock === true && this.lease.row?.isOver === true;
    return isOverThere || this.lease.isFreeFor(node);
  }

  private call<T>(read: (cell: Cell) => T): Promise<T> {
    return this.send(CALL_MS_MAX, (respond) => respond(resultOf(read, this.engine.cell(this.cell))));
  }

  /** `needsSpace`: whether an engine without space rejects it. */
  private change<T>(needsSpace: boolean, change: Change<T>): Promise<T> {
    const { engine } = this;
    return this.send(engine.kind === "etcd" ? CALL_MS_MAX : CHANGE_MS_MAX, (respond) => {
      if (needsSpace && engine.hasAlarm)
        respond(() => {
          throw this.errors.count(new EngineUnavailable("database space exceeded", "no_space"));
        });
      else engine.commit(this.cell, change, respond);
    });
  }

  /** Sends a call through the network, which may lose, delay and double it. */
  private send<T>(timeoutMs: number, effect: (respond: (result: () => T) => void) => void): Promise<T> {
    const { engine, link, runner } = this;
    const { world } = engine;
    const { random } = world;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const cancel = runner.later(timeoutMs, () =>
      reject(this.errors.count(new EngineUnavailable("no response"))),
    );
    const isFaulty = link.faultyPart > 0 && random.chance(link.faultyPart);
    const wayMs = (): number => (isFaulty && random.chance(0.5) ? random.between(1, 4_000) : link.delayMs);
    const back = (settle: () => void): void => {
      if (link.losesResponses || (isFaulty && random.chance(0.3))) return;
      runner.later(wayMs(), () => {
        cancel();
        settle();
      });
    };
    const arrive = (): void => {
      if (engine.isDown) return;
      effect((result) =>
        back(() => {
          try {
            resolve(result());
          } catch (error) {
            reject(error);
          }
        }),
      );
    };
    if (link.losesRequests || (isFaulty && random.chance(0.3))) return promise;
    world.after(wayMs(), arrive);
    if (isFaulty && random.chance(0.2)) world.after(random.between(1, 6_000), arrive);
    return promise;
  }
}

function idIn({ name }: StoredLease): string {
  return (JSON.parse(name) as ClusterNode).id;
}

/** etcd notices it late; PostgreSQL compares with its clock. */
function isOver(lease: StoredLease, engine: SimulatedEngine): boolean {
  const late = engine.kind === "etcd" ? EXPIRY_LATE_MS_MAX : 0;
  return lease.isReleased || lease.expires + late < engine.clock;
}
