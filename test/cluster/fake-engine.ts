import {
  CALL_MS_MAX,
  type ClusterNode,
  type CommitLog,
  EngineErrors,
  type EngineSpace,
  EngineUnavailable,
  type Leader,
  type LoggedEntry,
  type LogRange,
  type NodeReport,
  PlaceTaken,
} from "../../src/cluster/commit-log.ts";
import type { Cancel } from "../../src/kernel/time/clock.ts";

/** What the network does with a call. */
export interface Fault {
  /** Milliseconds until it has its effect; null: it is lost before. */
  readonly effectMs: number | null;
  /** Milliseconds until the response arrives; null: it is lost. */
  readonly responseMs: number | null;
  /** Milliseconds until it has its effect a second time; null: it has it once. */
  readonly againMs: number | null;
}

/** A network that delivers everything. */
export const NO_FAULT: Fault = { effectMs: 1, responseMs: 1, againMs: null };

/** Simulated time: what is due runs in order, and nothing waits for real. */
export class World {
  now = 0;
  private readonly due: { readonly at: number; run: (() => void) | null }[] = [];

  after(delayMs: number, run: () => void): Cancel {
    const event: { readonly at: number; run: (() => void) | null } = { at: this.now + delayMs, run };
    let place = this.due.length;
    while (place > 0 && (this.due[place - 1]?.at ?? 0) > event.at) place -= 1;
    this.due.splice(place, 0, event);
    return () => {
      event.run = null;
    };
  }

  /** Runs what is due within this time. */
  async run(ms: number): Promise<void> {
    const until = this.now + ms;
    // What promises have started belongs to the time before.
    await settled();
    while ((this.due[0]?.at ?? Number.POSITIVE_INFINITY) <= until) {
      const { at, run } = this.due.shift() ?? { at: until, run: null };
      this.now = at;
      if (run === null) continue;
      run();
      await settled();
    }
    this.now = until;
  }
}

function settled(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** An entry, and when it was written. */
export interface WrittenEntry extends LoggedEntry {
  readonly writtenAt: number;
}

/** An engine in memory: a list and a lease. */
export class FakeEngine {
  readonly entries = new Map<number, WrittenEntry>();
  private epoch = 0;
  private lease: { readonly node: ClusterNode; readonly epoch: number; readonly until: number } | null = null;

  constructor(private readonly world: World) {}

  tryLead(node: ClusterNode, ttlMs: number, epochMin: number): number | null {
    const holder = this.leader();
    if (holder !== null && holder.id !== node.id) return null;
    this.epoch = Math.max(this.epoch + 1, epochMin);
    this.lease = { node, epoch: this.epoch, until: this.world.now + ttlMs };
    return this.epoch;
  }

  renew(node: ClusterNode, epoch: number, ttlMs: number): boolean {
    if (this.epoch !== epoch) return false;
    this.lease = { node, epoch, until: this.world.now + ttlMs };
    return true;
  }

  release(epoch: number): void {
    if (this.lease?.epoch === epoch) this.lease = null;
  }

  leader(): Leader | null {
    if (this.lease === null || this.lease.until <= this.world.now) return null;
    return { ...this.lease.node, epoch: this.lease.epoch };
  }

  append(entry: LoggedEntry): void {
    const there = this.entries.get(entry.seq);
    if (there === undefined) this.entries.set(entry.seq, { ...entry, writtenAt: this.world.now });
    else if (there.epoch !== entry.epoch) throw new PlaceTaken(`place ${entry.seq} is taken`);
  }

  read(from: number, max: number): LoggedEntry[] {
    const found: LoggedEntry[] = [];
    for (let seq = from; found.length < max; seq += 1) {
      const entry = this.entries.get(seq);
      if (entry === undefined) break;
      found.push(entry);
    }
    return found;
  }
}

/** The engine as one node reaches it. */
export class FakeLog implements CommitLog {
  readonly errors = new EngineErrors();

  constructor(
    private readonly engine: FakeEngine,
    private readonly world: World,
    /** Runs what this node does later: not while it is paused, and not after its death. */
    private readonly later: (delayMs: number, run: () => void) => Cancel,
    private readonly nextFault: () => Fault,
  ) {}

  tryLead(node: ClusterNode, ttlMs: number, epochMin: number): Promise<number | null> {
    return this.call(() => this.engine.tryLead(node, ttlMs, epochMin));
  }

  renew(node: ClusterNode, epoch: number, ttlMs: number): Promise<boolean> {
    return this.call(() => this.engine.renew(node, epoch, ttlMs));
  }

  release(_node: ClusterNode, epoch: number): Promise<void> {
    return this.call(() => this.engine.release(epoch));
  }

  leader(): Promise<Leader | null> {
    return this.call(() => this.engine.leader());
  }

  append(entry: LoggedEntry): Promise<void> {
    return this.call(() => this.engine.append(entry));
  }

  read(from: number, max: number): Promise<LoggedEntry[]> {
    return this.call(() => this.engine.read(from, max));
  }

  range(): Promise<LogRange | null> {
    const last = this.engine.entries.size;
    return this.call(() => (last === 0 ? null : { first: 1, last }));
  }

  watch(): Cancel {
    return () => undefined;
  }

  async prepare(): Promise<void> {}
  async trim(): Promise<void> {}
  async space(): Promise<EngineSpace> {
    return { used: 0, quota: null };
  }
  async identity(): Promise<string | null> {
    return null;
  }
  async identify(id: string): Promise<string> {
    return id;
  }
  async report(): Promise<NodeReport | null> {
    return null;
  }
  async nodes(): Promise<NodeReport[]> {
    return [];
  }
  async forget(): Promise<void> {}
  async askToHandOver(): Promise<void> {}
  async isAskedToHandOver(): Promise<boolean> {
    return false;
  }
  async reset(): Promise<void> {}
  close(): void {}

  private call<T>(effect: () => T): Promise<T> {
    const { effectMs, responseMs, againMs } = this.nextFault();
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const cancel = this.later(CALL_MS_MAX, () => reject(new EngineUnavailable("no response")));
    if (effectMs === null) return promise;
    this.world.after(effectMs, () => {
      let respond: () => void;
      try {
        const result = effect();
        respond = () => resolve(result);
      } catch (error) {
        respond = () => reject(error);
      }
      if (responseMs !== null)
        this.later(responseMs, () => {
          cancel();
          respond();
        });
      if (againMs !== null) this.world.after(againMs, () => repeatEffect(effect));
    });
    return promise;
  }
}

/** A request that the network delivers twice: nobody waits for the second result. */
function repeatEffect(effect: () => unknown): void {
  try {
    effect();
  } catch (error) {
    if (!(error instanceof PlaceTaken)) throw error;
  }
}
