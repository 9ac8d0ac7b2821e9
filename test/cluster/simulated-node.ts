import { type ClusterNode, EngineUnavailable, PlaceTaken } from "../../src/cluster/commit-log.ts";
import { Leadership } from "../../src/cluster/leadership.ts";
import type { Logger } from "../../src/kernel/log.ts";
import type { Cancel } from "../../src/kernel/time/clock.ts";
import { type FakeEngine, FakeLog, type Fault, type World } from "./fake-engine.ts";

const LEASE_MS = 3_000;
/** Between two looks of a follower. */
const LOOK_MS = 100;
/** From the end of a process to the start of the next. */
const RESTART_MS = 300;
const PAGE_ENTRIES = 100;

const SILENT: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** Something that a client was told. */
export interface Acknowledged {
  readonly seq: number;
  readonly epoch: number;
  readonly text: string;
  readonly at: number;
}

/** What a client was shown: the last place that the node had, and the time of the request. */
export interface Shown {
  readonly seq: number;
  readonly sentAt: number;
}

/** One start of a process. */
interface Life {
  isOver: boolean;
  leadership: Leadership | null;
  /** The last place of the file, and its epoch. */
  seq: number;
  epoch: number;
}

/** A node as the server makes it of a follower and a leadership, without files. Its clock runs at its own rate. */
export class SimulatedNode {
  readonly acknowledged: Acknowledged[] = [];
  readonly shown: Shown[] = [];
  private readonly node: ClusterNode;
  private life: Life;
  private pausedUntil = 0;
  private sent = 0;

  constructor(
    private readonly world: World,
    private readonly engine: FakeEngine,
    private readonly nextFault: () => Fault,
    name: string,
    private readonly rate: number,
  ) {
    this.node = { id: name, advertise: null };
    this.life = this.begin();
  }

  get isLeading(): boolean {
    return this.life.leadership?.isTrusted === true;
  }

  /** A client's change. */
  change(): void {
    const { life } = this;
    const { leadership } = life;
    if (leadership === null || !leadership.isTrusted) return;
    life.seq += 1;
    this.sent += 1;
    const [{ seq, epoch }, text] = [life, `${this.node.id} ${this.sent}`];
    leadership
      .append({ seq, epoch, parts: [Buffer.from(text)] })
      .then(() => leadership.pass())
      .then(
        () => {
          if (!life.isOver) this.acknowledged.push({ seq, epoch, text, at: this.world.now });
        },
        () => undefined,
      );
  }

  /** A client's request for what the node has. */
  show(): void {
    const { life } = this;
    const { leadership } = life;
    const sentAt = this.world.now;
    if (leadership === null) return;
    // The batch in flight is in the file already: the gate waits for it.
    const { seq } = life;
    Promise.resolve()
      .then(() => leadership.pass())
      .then(
        () => {
          if (!life.isOver) this.shown.push({ seq, sentAt });
        },
        () => undefined,
      );
  }

  /** Stops the process for a time, as SIGSTOP does. */
  pause(ms: number): void {
    this.pausedUntil = Math.max(this.pausedUntil, this.world.now + ms);
  }

  /** Ends the process; another one starts. */
  kill(): void {
    // The lock of the folder keeps a second process out.
    if (this.life.isOver) return;
    this.life.isOver = true;
    this.life.leadership?.close();
    this.world.after(RESTART_MS, () => {
      this.life = this.begin();
    });
  }

  /** Gives the lease up, as SIGTERM does. */
  handOver(): void {
    const { life } = this;
    if (life.leadership === null) return;
    void life.leadership.handOver().then(() => {
      if (life === this.life && !life.isOver) this.kill();
    });
  }

  private begin(): Life {
    const life: Life = { isOver: false, leadership: null, seq: 0, epoch: 0 };
    const later = (delayMs: number, run: () => void) => this.later(life, delayMs, run);
    this.follow(life, new FakeLog(this.engine, this.world, later, this.nextFault)).catch((error: unknown) => {
      throw error;
    });
    return life;
  }

  private async follow(life: Life, log: FakeLog): Promise<void> {
    while (life.leadership === null) {
      try {
        await this.tryToLead(life, log);
      } catch (error) {
        if (!(error instanceof EngineUnavailable)) throw error;
      }
      await new Promise<void>((resolve) => this.later(life, LOOK_MS, resolve));
    }
  }

  private async tryToLead(life: Life, log: FakeLog): Promise<void> {
    const leader = await log.leader();
    await this.read(life, log);
    if (leader !== null && leader.id !== this.node.id) return;
    const since = this.monotonic();
    const epoch = await log.tryLead(this.node, LEASE_MS, life.epoch + 1);
    if (epoch === null) return;
    const time = {
      monotonic: () => this.monotonic(),
      sinceBoot: () => this.monotonic(),
      after: (delayMs: number, run: () => void) => this.later(life, delayMs / this.rate, run),
      delay: (ms: number) =>
        new Promise<void>((resolve) => {
          this.later(life, ms / this.rate, resolve);
        }),
    };
    const parts = { log, node: this.node, epoch, leaseMs: LEASE_MS, logger: SILENT, since, time };
    const leadership = new Leadership(parts);
    try {
      await this.seal(life, log, epoch);
    } catch (error) {
      leadership.close();
      throw error;
    }
    life.leadership = leadership;
    void leadership.deposed.then(() => {
      if (life === this.life && !life.isOver) this.kill();
    });
  }

  private async seal(life: Life, log: FakeLog, epoch: number): Promise<void> {
    for (;;) {
      await this.read(life, log);
      if (life.epoch > epoch) throw new EngineUnavailable("another node leads");
      try {
        await log.append({ seq: life.seq + 1, epoch, parts: [Buffer.from("seal")] });
        life.seq += 1;
        life.epoch = epoch;
        return;
      } catch (error) {
        if (!(error instanceof PlaceTaken)) throw error;
      }
    }
  }

  private async read(life: Life, log: FakeLog): Promise<void> {
    for (;;) {
      const entries = await log.read(life.seq + 1, PAGE_ENTRIES);
      const last = entries.at(-1);
      if (last === undefined) return;
      life.seq = last.seq;
      life.epoch = last.epoch;
    }
  }

  private monotonic(): number {
    return this.world.now * this.rate;
  }

  private later(life: Life, delayMs: number, run: () => void): Cancel {
    let cancel = this.world.after(delayMs, () => {
      if (life.isOver) return;
      const leftMs = this.pausedUntil - this.world.now;
      if (leftMs > 0) cancel = this.later(life, leftMs, run);
      else run();
    });
    return () => cancel();
  }
}
