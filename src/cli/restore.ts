import { resolve } from "node:path";
import { raiseFencingTokens } from "../areas/locks/backup-check.ts";
import { reportChainEnds } from "../areas/notary/backup-check.ts";
import { reportHeldDeliveries, reportWaitingDeliveries } from "../areas/relay/backup-check.ts";
import { type RestoreOutcome, restore as restoreFile } from "../backup/restore.ts";
import { flagsGiven } from "../config/sources.ts";
import { resolveFolderConfig } from "../config.ts";
import type { RestoreStep } from "../kernel/data/backup-check.ts";
import { createSystemClock } from "../kernel/time/clock.ts";
import { isoTime } from "../kernel/time/date-time.ts";
import type { Given } from "./arguments.ts";
import { interruption, print } from "./output.ts";
import { Progress } from "./progress.ts";

/** Changes of a restore in the copy, with their messages. */
const STEPS: readonly RestoreStep[] = [
  raiseFencingTokens,
  () => [
    "changes   everything after the backup is gone: keys revoked since then are valid again, keys made since then are not",
  ],
  reportWaitingDeliveries,
  reportHeldDeliveries,
  reportChainEnds,
];

/** `ninefold restore FILE`: puts a backup in the place of a data folder's database. Resolves to the exit code. */
export async function restore(given: Given): Promise<number> {
  const file = resolve(given.words[0] ?? "");
  const config = resolveFolderConfig(flagsGiven(given.line));
  const folder = resolve(config.dataFolder);
  process.umask(0o077);
  const progress = new Progress();
  try {
    const outcome = await restoreFile({
      file,
      folder,
      force: given.has("--force"),
      masterKey: config.masterKey,
      steps: STEPS,
      now: createSystemClock().now(),
      signal: interruption(),
      onCopied: (bytes, total) => progress.show("Copying", "bytes", bytes, total),
      onChecked: () => progress.finish(),
    });
    print(report(file, folder, outcome));
  } finally {
    progress.finish();
  }
  return 0;
}

function report(file: string, folder: string, outcome: RestoreOutcome): string {
  const { seal, aside, keyProblem } = outcome;
  const made =
    seal === null
      ? "no backup's own line: a database copied by other means"
      : `of ${isoTime(seal.createdAt)}`;
  const lines = [
    `restored  ${file} (${made}) to ${folder}`,
    ...(aside === null ? [] : [`kept      the former database as ${aside}`]),
    ...outcome.report,
    keyProblem === null ? "key       the master key fits" : `key       ${keyProblem}`,
  ];
  return `${lines.join("\n")}\n`;
}
