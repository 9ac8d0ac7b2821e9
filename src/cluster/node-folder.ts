import { dirname, join } from "node:path";
import { type Entry, forEachPage, PAGE_BYTES } from "../kernel/storage/replication/entry.ts";
import type { LogPosition, Position, StoredPosition } from "../kernel/storage/replication/position.ts";
import { type Disk, LOCAL_DISK } from "./disk.ts";

/** Where SQLite keeps `user_version`, big-endian: the number of migrations. */
const SCHEMA_AT = 60;

/** What `follower.json` stores: which node this folder is, and how far its file is. */
interface NodeState {
  readonly id: string;
  /** Id of the log that the folder belongs to; absent or null before it is known. */
  readonly log?: string | null;
  /** Whether this folder has ever had its place in the log: then an empty log is one that was lost. */
  readonly joined: boolean;
  /** Everything up to here is in the file and synced; null while the file itself says where it is. */
  readonly synced: Position | null;
  /** Whether the node gave the lease up because it could not serve; absent: it did not. */
  readonly gaveUp?: true;
  /** The epoch with which this folder has begun the log, or has tried to; absent: it has not. */
  readonly begins?: number;
  /**
   * Whether its database was changed by a leader that leaves what is not confirmed in the log: then that can be cut. Absent:
   * by an earlier version, or by nobody.
   */
  readonly leavesUnconfirmed?: boolean;
  /** Position of a complete copy that is put in the place of the database; absent: none is. */
  readonly replacing?: Position;
}

/** The path of the state of a data folder. */
export function nodeStatePath(databasePath: string): string {
  return join(dirname(databasePath), "follower.json");
}

/**
 * Call before the database of a data folder is replaced by other means than the log: the folder, which stays the same node, has
 * no place in a log any more. Changes nothing in a folder that was never one of a node.
 */
export function leaveLog(databasePath: string, disk: Disk = LOCAL_DISK): void {
  const path = nodeStatePath(databasePath);
  const text = disk.readText(path);
  if (text === null) return;
  const { id } = JSON.parse(text) as NodeState;
  const state: NodeState = { id, log: null, joined: false, synced: null };
  disk.writeText(path, `${JSON.stringify(state)}\n`);
}

/** The data folder of a node that does not lead: its database, to which entries are applied, and its state. */
export class NodeFolder {
  private state: NodeState;
  private file: number | null = null;
  private syncedNow: LogPosition | null = null;

  /** A folder without an identity gets one. */
  constructor(
    readonly databasePath: string,
    newId: () => string,
    private readonly disk: Disk = LOCAL_DISK,
  ) {
    const text = disk.readText(nodeStatePath(databasePath));
    this.state =
      text === null
        ? { id: newId(), log: null, joined: false, synced: null }
        : (JSON.parse(text) as NodeState);
    if (text === null) this.keep({});
    if (this.state.replacing !== undefined) this.finishReplacing(this.state.replacing);
  }

  /** Where a copy of the leader's database is made. */
  get copyPath(): string {
    return `${this.databasePath}.base`;
  }

  /** Id of the node. */
  get id(): string {
    return this.state.id;
  }

  /** Id of the log that this folder belongs to; null: not known yet. */
  get log(): string | null {
    return this.state.log ?? null;
  }

  get hasJoined(): boolean {
    return this.state.joined;
  }

  /** The epoch with which this folder has begun the log, or has tried to; null: it has not. */
  get begins(): number | null {
    return this.state.begins ?? null;
  }

  /** Whether it has followed since its database was changed by a leader: then it has nothing but what the log had. */
  get hasFollowed(): boolean {
    return this.state.synced !== null;
  }

  get hasDatabase(): boolean {
    return this.disk.exists(this.databasePath);
  }

  /** Everything up to here is in the file and synced. */
  get synced(): LogPosition | null {
    return this.syncedNow;
  }

  /** Pages of the file. */
  get pages(): number {
    return this.hasDatabase ? this.withFile((file) => this.disk.size(file)) / PAGE_BYTES : 0;
  }

  /** Migrations of the file. */
  get schema(): number {
    return this.withFile((file) => {
      const bytes = Buffer.alloc(4);
      this.disk.read(file, bytes, SCHEMA_AT);
      return bytes.readUInt32BE(0);
    });
  }

  /** Where the file is: by the state of the folder, or by what the file itself says. */
  position(): LogPosition | null {
    const { synced } = this.state;
    return synced === null ? this.stored() : { ...synced, log: this.log };
  }

  /** What the file itself says, which may be older, or newer while entries are applied. */
  stored(): StoredPosition | null {
    return this.disk.positionIn(this.databasePath);
  }

  /** The file is at this place, as the log has it. It is synced when this returns. */
  accept(position: LogPosition): void {
    if (this.hasDatabase && !this.hasFollowed) this.disk.settle(this.databasePath);
    this.syncedNow = position;
  }

  /** Undoes the last batch of this node as the leader, which was confirmed to nobody. False: that is not possible. */
  cutUnconfirmed(): boolean {
    return this.state.leavesUnconfirmed === true && this.disk.cutLastCommit(this.databasePath);
  }

  /** Applies an entry. `before`: where the file was until then. */
  apply(entry: Entry, before: LogPosition): void {
    // From here on the file does not say where it is: pages of an entry may be missing after a crash.
    if (this.file === null) {
      this.keep({ joined: true, synced: before, log: before.log });
      this.file = this.disk.open(this.databasePath, false);
    }
    const { file } = this;
    forEachPage(entry.payload, (page, content) => this.disk.write(file, content, (page - 1) * PAGE_BYTES));
    this.disk.truncate(file, entry.filePages * PAGE_BYTES);
  }

  /** What was applied up to here is durable afterwards, and noted. */
  sync(applied: LogPosition): void {
    if (this.file === null || applied.seq === this.syncedNow?.seq) return;
    this.disk.sync(this.file);
    this.syncedNow = applied;
    this.keep({ joined: true, synced: applied, log: applied.log });
  }

  /** Whether the node gave the lease up because it could not serve, and has not led since. */
  get hasGivenUp(): boolean {
    return this.state.gaveUp === true;
  }

  /** The node gives the lease up because it cannot serve: its next process lets others lead for a while. */
  noteGivenUp(): void {
    this.keep({ gaveUp: true });
  }

  /** The log is about to begin with this folder's data. */
  noteBeginning(log: string, epoch: number): void {
    this.keep({ log, begins: epoch });
  }

  /** The file says where it is, from its next batch on: this node leads. */
  handOver(log: string): void {
    this.close();
    const { gaveUp: _, ...state } = this.state;
    this.state = state;
    this.keep({ joined: true, synced: null, log, leavesUnconfirmed: true });
  }

  /** Puts the copy, which is complete, in the place of the database. */
  replace(position: LogPosition): void {
    this.close();
    const file = this.disk.open(this.copyPath, false);
    this.disk.sync(file);
    this.disk.close(file);
    // From here on a start after a crash continues with the copy.
    this.keep({ joined: true, log: position.log, replacing: position });
    this.finishReplacing(position);
    this.syncedNow = position;
  }

  private finishReplacing(position: Position): void {
    if (this.disk.exists(this.copyPath)) {
      // Of the database that is replaced: another one must not get it.
      for (const suffix of ["-wal", "-shm"]) this.disk.remove(this.databasePath + suffix);
      this.disk.rename(this.copyPath, this.databasePath);
    }
    const { replacing: _, ...state } = this.state;
    this.state = state;
    this.keep({ synced: position });
  }

  close(): void {
    if (this.file === null) return;
    this.disk.sync(this.file);
    this.disk.close(this.file);
    this.file = null;
  }

  private keep(change: Partial<NodeState>): void {
    const next = { ...this.state, ...change };
    const { id, joined, synced, log = null, begins, gaveUp, leavesUnconfirmed, replacing } = next;
    this.state = {
      id,
      log,
      joined,
      synced: synced && placeOf(synced),
      ...(begins === undefined ? {} : { begins }),
      ...(gaveUp === undefined ? {} : { gaveUp }),
      ...(leavesUnconfirmed === undefined ? {} : { leavesUnconfirmed }),
      ...(replacing === undefined ? {} : { replacing: placeOf(replacing) }),
    };
    this.disk.writeText(nodeStatePath(this.databasePath), `${JSON.stringify(this.state)}\n`);
  }

  private withFile<T>(use: (file: number) => T): T {
    if (this.file !== null) return use(this.file);
    const file = this.disk.open(this.databasePath, false);
    try {
      return use(file);
    } finally {
      this.disk.close(file);
    }
  }
}

function placeOf({ epoch, seq }: Position): Position {
  return { epoch, seq };
}
