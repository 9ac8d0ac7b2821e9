import type { Tx } from "../../kernel/storage/tx.ts";

/** A backup that is requested, running or has failed. */
export interface BackupAttempt {
  readonly name: string;
  /** Its start in epoch milliseconds, like all times here. */
  readonly at: number;
}

/** The backups of the server. */
export interface Backups {
  readonly plan: { readonly folder: string; readonly cron: string; readonly keep: number };
  readonly nextAt: number;
  readonly running: BackupAttempt | null;
  readonly failure: (BackupAttempt & { readonly message: string }) | null;
  readonly lastBackupAt: number | null;
  readonly isOverdue: boolean;
  /** The existing backups that started before a time, newest first. */
  list(before: number, filesMax: number): Promise<readonly (BackupAttempt & { readonly bytes: number })[]>;
  /** Requests a backup, which starts after the commit. @throws ApiError `conflict` while one is running. */
  ask(tx: Tx): BackupAttempt;
}

/** The archive of the server. */
export interface ArchiveState {
  readonly status: {
    readonly url: string;
    readonly lagSeconds: number;
    readonly bytesWaiting: number;
    readonly archivedAt: number | null;
    readonly baseAt: number | null;
    readonly lastError: string | null;
  };
}

/** The options that the operator can store in the database. */
export interface StorableOptions {
  readonly storable: readonly {
    readonly name: string;
    readonly secret: boolean;
    /** When a change is effective. */
    readonly effect: "now" | "restart";
    readonly description: string;
  }[];
  /** Every option with its value and source now. */
  readonly current: readonly OptionValue[];
  /** @throws StartupError that begins with the option's name, for stored values that cannot be used. */
  assertUsable(stored: ReadonlyMap<string, unknown>, changed: readonly string[]): void;
  /** Uses other stored values from now on, unless the unit of work is rolled back. @throws StartupError */
  apply(tx: Tx, stored: ReadonlyMap<string, unknown>): void;
  /** Whether a stored value of an option is not effective yet. */
  waitsForRestart(name: string): boolean;
}

/** An option of the server with its value and source. */
export interface OptionValue {
  readonly name: string;
  /** Secrets are masked. */
  readonly value: string | number | boolean | readonly string[] | null;
  readonly source: "default" | "stored" | "flag" | "variable" | "file";
  /** The flag, the variable, or the path of the file; null for the others. */
  readonly origin: string | null;
}

/** The cluster that the server leads. */
export interface ClusterState {
  readonly status: {
    readonly cell: string;
    /** Id of the log. */
    readonly log: string;
    readonly epoch: number;
    readonly seq: number;
    readonly isTrusted: boolean;
    /** Bytes that the log takes, and may take, in its engine. */
    readonly space: { readonly used: number; readonly quota: number | null } | null;
    readonly nodes: readonly {
      readonly id: string;
      readonly advertise: string | null;
      readonly synced: number;
      /** Epoch milliseconds. */
      readonly at: number;
    }[];
  };
}
