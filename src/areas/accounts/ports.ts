import type { CallerProject } from "../../kernel/http/caller.ts";
import type { Tx } from "../../kernel/storage/tx.ts";

/** The projects of an account, as far as accounts need them. */
export interface DefaultProjects {
  /** Makes the default project of a new account. */
  createDefault(tx: Tx, accountRef: number): CallerProject;
  /** The default project of an account. */
  defaultOf(accountRef: number): CallerProject;
}
