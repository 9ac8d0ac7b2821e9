import { BaseServer } from "../../../src/cluster/base.ts";
import { continuedClock } from "../../../src/cluster/clock-comparison.ts";
import type { ClusterNode, CommitLog } from "../../../src/cluster/commit-log.ts";
import type { Lead } from "../../../src/cluster/follower.ts";
import type { Leadership } from "../../../src/cluster/leadership.ts";
import type { Membership } from "../../../src/cluster/membership.ts";
import type { NodeTime } from "../../../src/cluster/node-time.ts";
import { Replication } from "../../../src/cluster/replication.ts";
import { errorText } from "../../../src/kernel/errors.ts";
import type { Logger } from "../../../src/kernel/log.ts";
import { type Entry, payloadOf } from "../../../src/kernel/storage/replication/entry.ts";
import type { StoredPosition } from "../../../src/kernel/storage/replication/position.ts";
import type { Clock } from "../../../src/kernel/time/clock.ts";
import type { SimulatedDisk } from "./disk.ts";
import { contentOf, PAGES, PagedFile, pageOf, readPages } from "./paged-file.ts";
import type { Random } from "./world.ts";

/** As in the server: longest wait for the commit log, and time for everything, when a leader stops. */
const HAND_OVER_MS_MAX = 2_000;
const STOP_MS_MAX = 8_000;
/** Longest time between two checkpoints. */
const CHECKPOINT_MS_MAX = 4_000;

/** What a page stores for an account: the number of its changes, who made the last one, and a digest of all of them. */
export interface AccountState {
  readonly value: number;
  readonly by: string;
  readonly digest: number;
  /** Until when the account's lock is held, by the leader's wall clock. */
  readonly until: number;
}

const EMPTY: AccountState = { value: 0, by: "", digest: 0, until: 0 };

/** A request of a client. `lock`: a change that holds the account's lock for so long, if it is free. */
export interface Operation {
  readonly id: string;
  readonly account: number;
  readonly kind: "change" | "read" | "lock";
  readonly lockMs: number;
}

/** A response; null: a rejection that says that nothing was changed. */
export type Respond = (state: AccountState | null) => void;

interface Waiting {
  readonly operation: Operation;
  readonly respond: Respond;
}

/** Switches by which a test makes the server wrong. */
export interface ServerFaults {
  /** Responses do not wait until the commit log has confirmed what they show. */
  readonly respondsEarly?: boolean;
  /** Checkpoints move what is not confirmed. */
  readonly movesUnconfirmed?: boolean;
  /** The clock of a leader does not continue that of the one before. */
  readonly keepsOwnClock?: boolean;
}

/** What a simulated server needs. */
export interface ServerDeps {
  readonly lead: Lead;
  readonly cell: string;
  readonly node: ClusterNode;
  readonly log: CommitLog;
  readonly membership: Membership;
  readonly disk: SimulatedDisk;
  readonly folder: string;
  readonly entryKey: Uint8Array;
  readonly nodeKey: Uint8Array;
  readonly leaseMs: number;
  readonly logger: Logger;
  readonly time: NodeTime;
  readonly clock: Clock;
  readonly differenceMs: number;
  readonly random: Random;
  readonly schema: number;
  /** How long a copy of the database takes. */
  readonly copyMs: () => number;
  readonly faults: ServerFaults;
}

/** A leader's server: its database, its writer, and what responds to clients. Everything of the cluster is real. */
export class SimulatedServer {
  readonly base: BaseServer;
  readonly leadership: Leadership;
  private readonly file: PagedFile;
  private readonly replication: Replication;
  private readonly stats: { failing: string | null } = { failing: null };
  private readonly clock: Clock;
  private position: StoredPosition;
  private readonly entries;
  private queue: Waiting[] = [];
  private isScheduled = false;
  private hasUnconfirmed = false;
  private wasAbandoned = false;

  constructor(private readonly deps: ServerDeps) {
    const { lead, disk, folder, random, schema, faults, clock, differenceMs } = deps;
    this.leadership = lead.leadership;
    this.clock =
      differenceMs === 0 || faults.keepsOwnClock === true ? clock : continuedClock(clock, differenceMs);
    this.file = new PagedFile(disk, `${folder}/ninefold.db`, schema, () => random.between(1, 1e9));
    this.position = { ...lead.seal, at: 0 };
    const base = new BaseServer({
      folder,
      node: deps.node,
      log: lead.seal.log,
      key: deps.nodeKey,
      cell: deps.cell,
      isLeading: () => this.leadership.isTrusted,
      now: clock.now,
      disk,
      time: deps.time,
      backUp: (path) => this.backUp(path),
    });
    this.base = base;
    const entries = {
      position: { epoch: lead.seal.epoch, seq: lead.seal.seq },
      sink: (_entry: Entry): void => undefined,
      isRejecting: false,
      confirmation: null as Promise<void> | null,
      onEntry: (sink: (entry: Entry) => void): void => {
        entries.sink = sink;
      },
      rejectBatches: (): void => {
        entries.isRejecting = true;
      },
    };
    this.entries = entries;
    this.replication = new Replication({
      ...deps,
      leadership: this.leadership,
      base,
      entries,
      logId: lead.seal.log,
      syncLog: async () => this.file.sync(),
      probe: () => this.probe(),
      commits: this.stats,
    });
    this.checkpointLater();
    // What a start changes itself.
    this.flush();
  }

  /** Resolves when an operator wants another node to lead. */
  get askedToHandOver(): Promise<void> {
    return this.replication.askedToHandOver;
  }

  request(operation: Operation, respond: Respond): void {
    try {
      this.leadership.assertOpen();
    } catch {
      respond(null);
      return;
    }
    if (operation.kind === "read") this.respond(this.stateOf(operation.account), respond);
    else {
      this.queue.push({ operation, respond });
      this.schedule();
    }
  }

  /** Stops in order, as after SIGTERM. */
  async stop(): Promise<void> {
    const { time } = this.deps;
    const late = time.delay(STOP_MS_MAX).then(() => "late" as const);
    const orderly = async () => {
      const within = time.delay(HAND_OVER_MS_MAX).then(() => "late" as const);
      if ((await Promise.race([this.confirmed(), within])) === "late") return "late";
      await this.replication.finish();
      return "confirmed";
    };
    if ((await Promise.race([orderly(), late])) === "late") await this.replication.close();
    this.abandon();
    if (!this.wasAbandoned) this.tryToCheckpoint();
  }

  /** Undoes what is not confirmed, before the process ends. */
  abandon(): void {
    if (!this.hasUnconfirmed) return;
    this.wasAbandoned = true;
    try {
      this.file.abandonLast();
    } catch {
      // The next start undoes it.
    }
  }

  private async confirmed(): Promise<"confirmed"> {
    while (this.hasUnconfirmed) await this.deps.time.delay(10);
    return "confirmed";
  }

  private stateOf(account: number): AccountState {
    return contentOf<AccountState>(this.file.pages[account] ?? new Uint8Array()) ?? EMPTY;
  }

  private respond(state: AccountState, respond: Respond): void {
    if (this.deps.faults.respondsEarly === true) {
      respond(state);
      return;
    }
    const pass = async (): Promise<void> => this.leadership.pass();
    pass().then(
      () => respond(state),
      () => undefined,
    );
  }

  private schedule(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    this.deps.time.after(1, () => {
      this.isScheduled = false;
      if (this.queue.length > 0 && !this.hasUnconfirmed) this.flush();
    });
  }

  /** Commits what is queued, and sends it to the log. At most one batch is unconfirmed. */
  private flush(): void {
    const batch = this.queue.splice(0);
    if (this.entries.isRejecting) return;
    const at = Math.round(this.clock.now());
    const { position } = this;
    const next = { ...position, seq: position.seq + 1, at };
    const pages = new Map<number, Uint8Array>();
    const made = batch.map(({ operation, respond }) => ({
      state: this.apply(operation, pages, at),
      respond,
    }));
    pages.set(1, pageOf(next, this.deps.schema));
    try {
      this.file.commit(pages);
    } catch (error) {
      this.stats.failing = errorText(error);
      for (const { respond } of batch) respond(null);
      return;
    }
    this.stats.failing = null;
    this.position = next;
    this.entries.position = { epoch: next.epoch, seq: next.seq };
    this.entries.confirmation = null;
    this.hasUnconfirmed = true;
    this.entries.sink({ ...next, isSeal: false, filePages: PAGES, payload: payloadOf(pages, PAGES) });
    const confirmation: Promise<void> | null = this.entries.confirmation;
    const tell = (): void => {
      for (const { state, respond } of made) if (state !== null) this.respond(state, respond);
    };
    if (this.deps.faults.respondsEarly === true) tell();
    Promise.resolve(confirmation).then(
      () => {
        this.hasUnconfirmed = false;
        if (this.deps.faults.respondsEarly !== true) tell();
        if (this.queue.length > 0) this.schedule();
      },
      // The process ends.
      () => undefined,
    );
  }

  private apply(
    { id, account, kind, lockMs }: Operation,
    pages: Map<number, Uint8Array>,
    at: number,
  ): AccountState | null {
    const page = pages.get(account + 1);
    const before = page === undefined ? this.stateOf(account) : (contentOf<AccountState>(page) ?? EMPTY);
    if (kind === "lock" && before.until > at) return null;
    const value = before.value + 1;
    const digest = Bun.hash.xxHash32(id, before.digest);
    const state = { value, by: id, digest, until: kind === "lock" ? at + lockMs : before.until };
    pages.set(account + 1, pageOf(state));
    return state;
  }

  private checkpointLater(): void {
    const { time, random } = this.deps;
    time.after(random.between(1, CHECKPOINT_MS_MAX), () => {
      if (this.leadership.isEnded) return;
      this.tryToCheckpoint();
      this.checkpointLater();
    });
  }

  private tryToCheckpoint(): void {
    const movesAll = this.deps.faults.movesUnconfirmed === true;
    try {
      this.file.checkpoint(this.hasUnconfirmed && !movesAll);
    } catch {
      // The log stays, and grows.
    }
  }

  private async probe(): Promise<string | null> {
    try {
      this.deps.disk.writeText(`${this.deps.folder}/probe`, "");
      this.stats.failing = null;
      return null;
    } catch (error) {
      return errorText(error);
    }
  }

  private async backUp(path: string) {
    const { disk, folder, time, copyMs } = this.deps;
    await time.delay(copyMs());
    const bytes = Buffer.concat(readPages(disk, `${folder}/ninefold.db`));
    const file = disk.open(path, true);
    disk.write(file, bytes, 0);
    disk.sync(file);
    return { bytes: bytes.length, sha256: new Bun.CryptoHasher("sha256").update(bytes).digest("hex") };
  }
}
