import type { CallerProject } from "../../kernel/http/caller.ts";
import type { Tx } from "../../kernel/storage/tx.ts";

/** The accounts, as far as projects need them. */
export interface ProjectAccounts {
  /** An account's credit balance. */
  balance(accountRef: number): number;
  /** Another project is the default one now. */
  setDefaultProject(tx: Tx, accountRef: number, project: CallerProject): void;
}
