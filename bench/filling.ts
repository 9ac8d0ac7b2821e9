import { openDataFolder } from "../src/data-folder.ts";
import { closeKernel, type Kernel } from "../src/kernel/kernel.ts";
import { createLogger } from "../src/kernel/log.ts";
import { createSystemClock } from "../src/kernel/time/clock.ts";

/** Reference of an account's default project. */
export interface DefaultProject {
  readonly userId: string;
  readonly accountRef: number;
  readonly ref: number;
  readonly id: string;
}

/** Opens a data folder to fill it. */
export function openForFilling(folder: string): Kernel {
  const clock = createSystemClock();
  // No other process reads the file before it is complete.
  return openDataFolder(folder, {
    masterKey: null,
    durability: "normal",
    clock,
    log: createLogger(clock, { level: "warn" }),
  });
}

/** The default project of the account with an e-mail address. */
export function defaultProjectOf({ db }: Kernel, email: string): DefaultProject {
  const row = db.one<DefaultProject, [string]>(
    "SELECT user_id AS userId, accounts.ref AS accountRef, projects.ref, projects.id FROM projects JOIN accounts ON accounts.ref = account_ref WHERE email = ? AND is_default = 1",
  )(email);
  if (row === null) throw new Error(`there is no account ${email}`);
  return row;
}

/** Writes everything to the disk and ends the process. */
export function endFilling(kernel: Kernel): never {
  closeKernel(kernel);
  process.exit();
}
