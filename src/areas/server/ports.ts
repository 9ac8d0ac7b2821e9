import type { Tx } from "../../kernel/storage/tx.ts";

/** A backup that is being made. */
export interface BackupTry {
  readonly name: string;
  /** Epoch milliseconds, as the others. */
  readonly at: number;
}

/** What makes the backups. */
export interface Backups {
  readonly plan: { readonly folder: string; readonly cron: string; readonly keep: number };
  readonly nextAt: number;
  readonly running: BackupTry | null;
  readonly failure: (BackupTry & { readonly message: string }) | null;
  readonly lastBackupAt: number | null;
  readonly isOverdue: boolean;
  /** Those that are there and were begun before a moment, newest first. */
  list(before: number, filesMax: number): Promise<readonly (BackupTry & { readonly bytes: number })[]>;
  /** Has one made once this is committed. @throws ApiError `conflict` */
  ask(tx: Tx): BackupTry;
}

/** An option of the server, and where its value comes from. */
export interface OptionValue {
  readonly name: string;
  /** What must not be seen is masked. */
  readonly value: string | number | boolean | readonly string[] | null;
  readonly source: "default" | "flag" | "variable" | "file";
}
