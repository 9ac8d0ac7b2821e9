import { OfflineDatabase } from "../kernel/storage/offline.ts";
import { checkAccounts } from "./checks/accounts.ts";
import { checkChains } from "./checks/chains.ts";
import { checkIntegrity } from "./checks/integrity.ts";
import { checkMeters } from "./checks/meters.ts";
import type { CheckResult, OnRows } from "./checks/report.ts";

/** Told what is being checked and how many rows of it have been looked at; may throw to end it all. */
export type OnChecked = (what: string, rows: number) => Promise<void>;

/** Opens a copy and checks everything in it that can be recalculated. A file that SQLite finds damaged is not read further. */
export async function verifyCopy(path: string, onChecked: OnChecked): Promise<CheckResult[]> {
  const db = OfflineDatabase.read(path);
  const step =
    (what: string): OnRows =>
    (rows) =>
      onChecked(what, rows);
  try {
    await onChecked("integrity", 0);
    const integrity = checkIntegrity(db);
    if (integrity.problemCount > 0) return [integrity];
    return [
      integrity,
      await checkMeters(db, step("meters")),
      await checkAccounts(db, step("own balances")),
      await checkChains(db, step("notary chains")),
    ];
  } finally {
    db.close();
  }
}
