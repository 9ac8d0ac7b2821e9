import { fetchBase, type NodeClient } from "../../../src/cluster/base.ts";
import { ClockComparison } from "../../../src/cluster/clock-comparison.ts";
import type { ClusterNode } from "../../../src/cluster/commit-log.ts";
import { Follower, type Lead } from "../../../src/cluster/follower.ts";
import { Membership } from "../../../src/cluster/membership.ts";
import { NodeFolder, nodeStatePath } from "../../../src/cluster/node-folder.ts";
import type { NodeTime } from "../../../src/cluster/node-time.ts";
import { errorText } from "../../../src/kernel/errors.ts";
import type { Logger } from "../../../src/kernel/log.ts";
import { OutboundFailure } from "../../../src/kernel/outbound/outcome.ts";
import type { LogPosition } from "../../../src/kernel/storage/replication/position.ts";
import type { Cancel, Clock } from "../../../src/kernel/time/clock.ts";
import { SimulatedDisk } from "./disk.ts";
import { EngineConnection, type EngineFaults, Link, type Runner, type SimulatedEngine } from "./engine.ts";
import { type Operation, type Respond, type ServerFaults, SimulatedServer } from "./server.ts";
import type { World } from "./world.ts";

export const LEASE_MS = 3_000;
/** From the end of a process to the start of the next, and from the lease to the first request. */
const RESTART_MS = 300;
const START_MS = 100;
/** After an error at the start. */
const RETRY_MS = 1_000;
/** What wall clocks show at the beginning. */
const WALL_AT_START = 1_800_000_000_000;
const FOLDER = "/data";
export const DATABASE = `${FOLDER}/ninefold.db`;
/** Lines of its log that a machine keeps. */
const LINES_MAX = 400;

/** Switches by which a test makes a machine wrong. */
export interface MachineFaults extends ServerFaults, EngineFaults {
  /** Requests to other nodes never time out. */
  readonly waitsForEver?: boolean;
}

/** How a machine is set up. */
export interface MachineSettings {
  readonly name: string;
  readonly cell: string;
  readonly key: Uint8Array;
  readonly schema: number;
  /** By how much its clocks run faster than the time of the world. */
  readonly rate: number;
  readonly faults: MachineFaults;
}

/** What machines reach each other by. */
export type Peers = Map<string, SimulatedMachine>;

/** One start of a process. */
class Life implements Runner {
  isOver = false;
  follower: Follower | null = null;
  server: SimulatedServer | null = null;

  constructor(private readonly machine: SimulatedMachine) {}

  /** Delays by the machine's clock, which may be paused meanwhile. */
  get time(): NodeTime {
    const { machine } = this;
    return {
      monotonic: () => machine.monotonic,
      sinceBoot: () => machine.sinceBoot,
      wall: () => machine.wall,
      after: (delayMs, run) => this.later(delayMs / machine.settings.rate, run),
      delay: (ms) =>
        new Promise((resolve) => {
          this.later(ms / machine.settings.rate, resolve);
        }),
    };
  }

  monotonic(): number {
    return this.machine.monotonic;
  }

  later(delayMs: number, run: () => void): Cancel {
    const { sleptMs } = this.machine;
    let cancel = this.machine.world.after(delayMs, () => {
      if (this.isOver) return;
      // Timers stand still while a machine sleeps.
      const sleptMsSince = this.machine.sleptMs - sleptMs;
      const leftMs = Math.max(sleptMsSince, this.machine.pausedUntil - this.machine.world.now);
      if (leftMs > 0) cancel = this.later(leftMs, run);
      else run();
    });
    return () => cancel();
  }
}

/** A machine with its disk, its clocks and its network, and a supervisor that starts a node again whenever it has ended. */
export class SimulatedMachine {
  readonly disk: SimulatedDisk;
  readonly link = new Link();
  /** Why nodes did not start, or ended with an error. */
  readonly complaints: string[] = [];
  /** What was logged last. */
  readonly lines: string[] = [];
  pausedUntil = 0;
  /** What its wall clock shows beyond the time of the world. */
  wallAhead = 0;
  /** Whether other nodes get no response from it. */
  isUnreachable = false;
  copyMs: () => number = () => 200;
  /** Called when its node begins to lead. */
  onLead: (machine: SimulatedMachine, lead: Lead) => void = () => undefined;
  private life: Life | null = null;
  /** How long it was suspended. */
  sleptMs = 0;
  private isOn = false;
  /** When its process began to lead; meaningless while it does not. */
  leadsSince = 0;
  /** How many processes it has started. */
  starts = 0;

  constructor(
    readonly world: World,
    readonly engine: SimulatedEngine,
    private readonly peers: Peers,
    readonly settings: MachineSettings,
  ) {
    this.disk = new SimulatedDisk(world.random);
    peers.set(this.url, this);
  }

  /** Where other nodes reach it. */
  get url(): string {
    return `https://${this.settings.name}.example/`;
  }

  get monotonic(): number {
    return (this.world.now - this.sleptMs) * this.settings.rate;
  }

  get sinceBoot(): number {
    return this.world.now * this.settings.rate;
  }

  get wall(): number {
    return Math.floor(WALL_AT_START + this.world.now + this.wallAhead);
  }

  /** Whether a process runs, and is not paused. */
  get isRunning(): boolean {
    return this.life !== null && this.pausedUntil <= this.world.now;
  }

  get isPowered(): boolean {
    return this.isOn;
  }

  /** Whether its node leads, and its responses may leave. */
  get isLeading(): boolean {
    return this.isRunning && this.life?.server?.leadership.isTrusted === true;
  }

  /** Where its node is, as far as it knows; null: it has no database, or does not run. */
  get position(): LogPosition | null {
    return this.life?.follower?.position ?? null;
  }

  /** Whether its disk has a database. */
  get hasDatabase(): boolean {
    return this.disk.exists(DATABASE);
  }

  /** The place up to which its disk has the log, by what its files say. */
  get storedPosition(): LogPosition | null {
    const text = this.disk.readText(nodeStatePath(DATABASE));
    if (text === null || !this.hasDatabase) return null;
    const { synced, log } = JSON.parse(text) as { synced: LogPosition | null; log: string | null };
    return synced === null ? this.disk.positionIn(DATABASE) : { ...synced, log };
  }

  start(): void {
    if (this.isOn) return;
    this.isOn = true;
    this.begin();
  }

  /** Ends the process at once; its supervisor starts another one. */
  kill(): void {
    this.end(RESTART_MS);
  }

  /** The power fails. It stays off until {@link start}. */
  turnOff(): void {
    this.isOn = false;
    this.endLife();
    this.disk.cutPower();
  }

  /** Ends the process, and starts none. */
  shutDown(): void {
    this.isOn = false;
    this.endLife();
  }

  /** Stops the process in order, as SIGTERM does; its supervisor starts another one. */
  terminate(): void {
    const { life } = this;
    const end = (): void => {
      if (life === this.life) this.kill();
    };
    if (life?.server == null) end();
    else life.server.stop().then(end, end);
  }

  /** Stops the process for a time, as SIGSTOP does. */
  pause(ms: number): void {
    this.pausedUntil = Math.max(this.pausedUntil, this.world.now + ms);
  }

  /** Suspends the machine for a time: its monotonic clock stands still. */
  suspend(ms: number): void {
    this.pause(ms);
    this.sleptMs += ms;
  }

  /** A request of a client. Rejected (null) where nobody leads. */
  request(operation: Operation, respond: Respond): void {
    const { life } = this;
    if (life?.server == null || !this.isRunning) {
      respond(null);
      return;
    }
    life.server.request(operation, (state) => {
      if (!life.isOver) respond(state);
    });
  }

  private begin(): void {
    if (!this.isOn || this.life !== null) return;
    const life = new Life(this);
    this.life = life;
    this.starts += 1;
    this.run(life).catch((error: unknown) => {
      if (life !== this.life) return;
      this.complaints.push(errorText(error));
      this.end(RETRY_MS);
    });
  }

  private end(restartMs: number): void {
    if (this.life === null) return;
    this.endLife();
    this.world.after(restartMs, () => this.begin());
  }

  private endLife(): void {
    if (this.life !== null) this.life.isOver = true;
    this.life = null;
  }

  private async run(life: Life): Promise<void> {
    const { settings, disk, world } = this;
    const { time } = life;
    const newId = (): string => idFrom(world.random.next(), world.random.next());
    const log = new EngineConnection(this.engine, settings.cell, this.link, life, settings.faults);
    const folder = new NodeFolder(DATABASE, newId, disk);
    const node: ClusterNode = { id: folder.id, advertise: this.url };
    const logger = this.logger();
    const now = (): number => this.wall;
    const membership = new Membership({
      log,
      node,
      processId: newId(),
      place: settings.name,
      schema: settings.schema,
      logger,
      time,
      now,
    });
    const comparison = new ClockComparison(time.monotonic);
    const access = { id: node.id, key: settings.key, cell: settings.cell, extraCaPath: null, now };
    const here = { disk, time, client: this.client(life) };
    const follower = new Follower({
      log,
      node,
      cell: settings.cell,
      folder,
      membership,
      comparison,
      key: settings.key,
      schema: settings.schema,
      leaseMs: LEASE_MS,
      logger,
      fetchBase: (leader, id, watch) =>
        fetchBase({ ...access, ...here }, { leader, log: id }, folder.copyPath, watch),
      time,
      now,
      newLogId: () => newId().padEnd(32, "0").slice(0, 32),
    });
    life.follower = follower;
    const lead = await follower.follow();
    if (lead === null) return;
    this.leadsSince = this.world.now;
    this.onLead(this, lead);
    await time.delay(START_MS);
    const { differenceMs } = comparison;
    const server = new SimulatedServer({
      lead,
      cell: settings.cell,
      node,
      log,
      membership,
      disk,
      folder: FOLDER,
      entryKey: settings.key,
      nodeKey: settings.key,
      leaseMs: LEASE_MS,
      logger,
      time,
      clock: this.clock(time),
      differenceMs,
      random: world.random,
      schema: settings.schema,
      copyMs: () => this.copyMs(),
      faults: settings.faults,
    });
    life.server = server;
    const restart = (): void => {
      if (life === this.life) this.kill();
    };
    lead.leadership.deposed.then(() => {
      server.abandon();
      restart();
    }, restart);
    server.askedToHandOver.then(() => server.stop().then(restart, restart), restart);
  }

  private clock(time: NodeTime): Clock {
    return {
      now: () => this.wall,
      monotonic: time.monotonic,
      at: (epochMs, run) => time.after(epochMs - this.wall, run),
      after: time.after,
      track: () => undefined,
      advancing: () => null,
      wallMoved: () => 0,
      runningSince: () => 0,
      onWallSet: () => () => undefined,
    };
  }

  /** Sends requests to other machines. */
  private client(life: Life): NodeClient {
    const measured = { latencyMs: 1, stalledMs: 0 };
    const { peers } = this;
    const isCut = (): boolean => this.isUnreachable;
    return {
      close: () => undefined,
      send: ({ url, headers, timeoutMs }) =>
        new Promise((resolve) => {
          const failure = new OutboundFailure("timeout", `no response within ${timeoutMs} ms`);
          if (this.settings.faults.waitsForEver !== true)
            life.later(timeoutMs, () => resolve({ answered: false, failure, addresses: [], ...measured }));
          this.world.after(1, () => {
            const peer = peers.get(new URL("/", url).href);
            const server = peer?.isRunning === true && !isCut() && !peer.isUnreachable ? peer.server : null;
            const authorization = headers["authorization"] ?? "";
            const request = new Request(url, { headers: { authorization } });
            void server?.base.respond(request).then(async (response) => {
              const body = await response.bytes();
              life.later(1, () => {
                if (isCut() || peer?.isUnreachable === true) return;
                const { status } = response;
                const rest = { headers: {}, truncated: false, address: "", certificate: null };
                resolve({ answered: true, status, body, ...rest, ...measured });
              });
            });
          });
        }),
    };
  }

  private get server(): SimulatedServer | null {
    return this.life?.server ?? null;
  }

  private logger(): Logger {
    const write = (message: string, fields: object = {}): void => {
      if (this.lines.length >= LINES_MAX) this.lines.shift();
      this.lines.push(
        `${this.world.now} ${this.settings.name}.${this.starts} ${message} ${JSON.stringify(fields)}`,
      );
    };
    return { debug: () => undefined, info: write, warn: write, error: write };
  }
}

function idFrom(...parts: readonly number[]): string {
  return parts
    .map((part) =>
      Math.floor(part * 2 ** 32)
        .toString(16)
        .padStart(8, "0"),
    )
    .join("");
}
