import { errorText } from "../kernel/errors.ts";
import type { Cancel } from "../kernel/time/clock.ts";

/** The place of an entry in the log, the term of the leader that wrote it, and its encoded parts. */
export interface LoggedEntry {
  readonly seq: number;
  readonly epoch: number;
  /** At least one, in order, each at most {@link PART_BYTES_MAX} long. */
  readonly parts: readonly Uint8Array[];
}

/** A node as it takes part in a cluster. */
export interface ClusterNode {
  /** Identifies its data folder. */
  readonly id: string;
  /** Where clients and other nodes reach it; null if it did not say. */
  readonly advertise: string | null;
}

/** The node that holds the lease. */
export interface Leader extends ClusterNode {
  readonly epoch: number;
}

/** How far a node's file is. */
export interface NodeReport extends ClusterNode {
  /** Everything up to here is on its disk. */
  readonly synced: number;
  readonly applied: number;
  /** Migrations that its program knows. */
  readonly schema: number;
  /** Its wall clock, epoch milliseconds. */
  readonly at: number;
  /** The process that reports. Absent from programs before identities. */
  readonly process?: NodeProcess;
}

/** A process that takes part as a node. */
export interface NodeProcess {
  /** Random. */
  readonly id: string;
  /** Machine and data folder: another process at the same place has ended, because the folder has a lock. */
  readonly place: string;
  /** Number of this process among those that were this node: the highest one is the node. */
  readonly term: number;
}

/** What the log has: every sequence number from `first` through `last`. */
export interface LogRange {
  readonly first: number;
  readonly last: number;
}

/** Another leader has written this place of the log, so this process leads no more. */
export class PlaceTaken extends Error {}

/** The entries before some place have been deleted from the log. */
export class LogTrimmed extends Error {}

/**
 * Why the engine did not confirm a call: no server of it responded in time (`unreachable`), it rejected the call (`rejected`), its
 * space is used up (`no_space`), or its settings do not keep what it confirms (`not_durable`).
 */
export const ENGINE_ERROR_KINDS = ["unreachable", "rejected", "no_space", "not_durable"] as const;
export type EngineErrorKind = (typeof ENGINE_ERROR_KINDS)[number];

/** The engine did not confirm a call. It may have had its effect. */
export class EngineUnavailable extends Error {
  constructor(
    message: string,
    readonly kind: EngineErrorKind = "unreachable",
  ) {
    super(message);
  }
}

/** At the start of a node: no server of the engine responded. */
export function unreachable(error: unknown): EngineUnavailable {
  return new EngineUnavailable(`The commit log cannot be reached: ${errorText(error)}. Check --commit-log.`);
}

/** Counts the calls that an engine did not confirm. */
export class EngineErrors {
  readonly counts: Record<EngineErrorKind, number> = {
    unreachable: 0,
    rejected: 0,
    no_space: 0,
    not_durable: 0,
  };

  /** Counts an error, and returns it. */
  count(error: EngineUnavailable): EngineUnavailable {
    this.counts[error.kind] += 1;
    return error;
  }
}

/** Space of an engine, in bytes. */
export interface EngineSpace {
  /** What the log takes; of etcd, with everything else that it stores. */
  readonly used: number;
  /** What it may take; null: not limited by the engine, or not known. */
  readonly quota: number | null;
}

/** Longest wait for a call to one address of the engine: then the next address is tried. */
export const CALL_MS_MAX = 500;
/**
 * Longest wait for a call that changes the log: PostgreSQL confirms it when its standbys have it. Repeating it earlier would only wait
 * for the first attempt.
 */
export const CHANGE_MS_MAX = 2_000;

/**
 * A durable, replicated log in an existing engine, and a lease. Every result is linearizable: nothing is read from a
 * server of the engine that may be behind. Each call may throw {@link EngineUnavailable}.
 *
 * The next place of the log is the fence: whoever appends there knows that nobody else did. The lease only decides who
 * tries.
 */
export interface CommitLog {
  readonly errors: EngineErrors;
  /** Checks that the engine can be used, and creates what it needs. @throws StartupError with the reason if it cannot. */
  prepare(): Promise<void>;
  /**
   * Takes the lease if it is free, expired, or this node's own. Returns a higher epoch than all before, at least `epochMin`;
   * null without the lease.
   */
  tryLead(node: ClusterNode, ttlMs: number, epochMin: number): Promise<number | null>;
  /** Renews the lease of an epoch, also an expired one that nobody took. False: another epoch has begun. */
  renew(node: ClusterNode, epoch: number, ttlMs: number): Promise<boolean>;
  /** Gives the lease of an epoch up. */
  release(node: ClusterNode, epoch: number): Promise<void>;
  /** The node with the lease; null if nobody has it. */
  leader(): Promise<Leader | null>;
  /** Appends at exactly this place, if it is empty. Safe to repeat. @throws PlaceTaken */
  append(entry: LoggedEntry): Promise<void>;
  /** At most `max` entries from a place on, without gaps. Empty at the end of the log. @throws LogTrimmed */
  read(from: number, max: number): Promise<LoggedEntry[]>;
  /** Null: the log is empty. */
  range(): Promise<LogRange | null>;
  /** Random id of the log, 32 hex digits. Null: it has none yet. */
  identity(): Promise<string | null>;
  /** Gives the log this id unless it has one. Returns the one that it has afterwards. */
  identify(id: string): Promise<string>;
  /** Calls `wake` when entries may have been appended. It may be called too often. */
  watch(from: number, wake: () => void): Cancel;
  /** Deletes the entries through this place. */
  trim(through: number): Promise<void>;
  space(): Promise<EngineSpace>;
  /** Replaces the report of a node. Returns the one before; null without one. */
  report(node: NodeReport): Promise<NodeReport | null>;
  nodes(): Promise<NodeReport[]>;
  /** Deletes the report of a node that was removed for good. A node that still runs reports again. */
  forget(id: string): Promise<void>;
  /** Asks the leader of an epoch to let another node lead. */
  askToHandOver(epoch: number): Promise<void>;
  isAskedToHandOver(epoch: number): Promise<boolean>;
  /** Deletes the whole log with its id, and the lease, for a new log that begins from a file. */
  reset(): Promise<void>;
  close(): void;
}
