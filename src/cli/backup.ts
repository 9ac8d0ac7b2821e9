import { setPriority } from "node:os";
import { resolve } from "node:path";
import { accountBalancesCheck } from "../areas/accounts/backup-check.ts";
import { metersCheck } from "../areas/meter/backup-check.ts";
import { chainsCheck } from "../areas/notary/backup-check.ts";
import { type BackupOutcome, backUp } from "../backup/backup.ts";
import type { CheckResult } from "../backup/verification.ts";
import { flagsGiven } from "../config/sources.ts";
import { resolveFolderConfig } from "../config.ts";
import { type BackupCheck, counted } from "../kernel/data/backup-check.ts";
import { dataFilesOf } from "../kernel/storage/folders.ts";
import { createSystemClock, monotonicMs } from "../kernel/time/clock.ts";
import type { Arguments } from "./arguments.ts";
import { interruption, print } from "./output.ts";
import { formatCount, formatDuration, Progress } from "./progress.ts";

/** The checks of each area that recalculate its data in a backup. */
const CHECKS: readonly BackupCheck[] = [metersCheck, accountBalancesCheck, chainsCheck];

/** Lowest scheduling priority, so that the server is not slowed down. */
const LOWEST_PRIORITY = 19;

/**
 * `ninefold backup FILE`: copies the database of a running or stopped server into a file. Resolves to the exit code:
 * 1 if verification failed.
 */
export async function backup(args: Arguments): Promise<number> {
  const file = resolve(args.words[0] ?? "");
  const config = resolveFolderConfig(flagsGiven(args.line));
  const folder = resolve(config.dataFolder);
  // The copy is readable by its owner only, like the original.
  process.umask(0o077);
  setPriority(LOWEST_PRIORITY);
  const begun = monotonicMs();
  const progress = new Progress();
  let outcome: BackupOutcome;
  try {
    outcome = await backUp({
      file,
      folder,
      force: args.has("--force"),
      checks: args.has("--verify") ? CHECKS : null,
      now: createSystemClock().now(),
      signal: interruption(),
      onCopied: (bytes, total) => progress.show("Copying", "bytes", bytes, total),
      onChecked: (what, rows) => progress.show(`Checking ${what}`, "rows", rows, null),
    });
  } finally {
    progress.finish();
  }
  for (const check of outcome.checks) print(checkLines(check));
  const { file: written } = outcome;
  if (written === null) {
    process.stderr.write(
      "ninefold: The verification failed (see above). No backup was written. Without --verify the database is copied unchecked.\n",
    );
    return 1;
  }
  const duration = formatDuration(monotonicMs() - begun);
  print(`written  ${file}: ${formatCount(written.bytes)} bytes in ${duration}, sha256 ${written.sha256}\n`);
  if (config.masterKey === null) {
    print(`note     ${dataFilesOf(folder).masterKey} is not in the backup: store a copy of it separately\n`);
  } else print("note     the master key is not in the backup: store a copy of it separately\n");
  return 0;
}

/** `ok       meters: 12 balances, 340 ledger entries`, or one line per problem. */
function checkLines({ name, extent, problems: { count, listed } }: CheckResult): string {
  if (count === 0) return `ok       ${name}: ${extent}\n`;
  const more = count - listed.length;
  const lines = [
    `failed   ${name}: ${counted(count, "problem")} in ${extent}`,
    ...listed.map((problem) => `         ${problem}`),
    ...(more > 0 ? [`         … and ${more} more`] : []),
  ];
  return `${lines.join("\n")}\n`;
}
