import { join, resolve } from "node:path";
import { writeHistory } from "../archive/history.ts";
import { isArchiveUrl } from "../archive/place.ts";
import { forgetAccountSecrets } from "../areas/accounts/backup-check.ts";
import { forgetCatchSecrets } from "../areas/catch/backup-check.ts";
import { raiseFencingTokens } from "../areas/locks/backup-check.ts";
import { forgetMonitorSecrets, reportProbes } from "../areas/monitors/backup-check.ts";
import {
  forgetNotarySecrets,
  raiseChainEpochs,
  replaceWitnessKey,
  reportChainEnds,
} from "../areas/notary/backup-check.ts";
import { endLogins } from "../areas/people/backup-check.ts";
import {
  forgetRelaySecrets,
  reportHeldDeliveries,
  reportWaitingDeliveries,
} from "../areas/relay/backup-check.ts";
import { forgetServerSecrets, removeStoredArchive } from "../areas/server/backup-check.ts";
import { removeLeftovers, removeTemporary, temporaryName } from "../backup/files.ts";
import { type RestoreOrder, type RestoreOutcome, restore as restoreFile } from "../backup/restore.ts";
import { leaveLog } from "../cluster/node-folder.ts";
import { UsageError } from "../config/command-line.ts";
import { flagsGiven } from "../config/sources.ts";
import { resolveFolderConfig } from "../config.ts";
import type { RestoreStep } from "../kernel/data/backup-check.ts";
import { StartupError } from "../kernel/errors.ts";
import { isDatabaseThere } from "../kernel/storage/examine.ts";
import { dataFilesOf, makeFolder } from "../kernel/storage/folders.ts";
import { createSystemClock } from "../kernel/time/clock.ts";
import { isoTime, parseDateTime } from "../kernel/time/date-time.ts";
import { historyOf, openArchive, readable } from "./archive.ts";
import type { Arguments } from "./arguments.ts";
import { interruption, print } from "./output.ts";
import { Progress } from "./progress.ts";

/** Changes of a restore in the copy, with their messages. */
const STEPS: readonly RestoreStep[] = [
  raiseFencingTokens,
  () => [
    "changes   everything after the backup is gone: keys revoked since then are valid again, keys made since then are not",
  ],
  reportProbes,
  endLogins,
  reportWaitingDeliveries,
  reportHeldDeliveries,
  raiseChainEpochs,
  reportChainEnds,
  replaceWitnessKey,
  removeStoredArchive,
];

/** Changes of a restore whose backup's master key is lost. */
const FORGET_SECRETS: readonly RestoreStep[] = [
  forgetAccountSecrets,
  forgetRelaySecrets,
  forgetMonitorSecrets,
  forgetCatchSecrets,
  forgetNotarySecrets,
  forgetServerSecrets,
];

/** `ninefold restore FILE|URL`: puts a backup in the place of a data folder's database. Resolves to the exit code. */
export async function restore(args: Arguments): Promise<number> {
  const source = args.words[0] ?? "";
  process.umask(0o077);
  if (isArchiveUrl(source)) return restoreArchive(args, source);
  if (args.has("--at")) throw new UsageError("--at needs an archive: s3://bucket/prefix.");
  return restoreFrom(args, { file: resolve(source), signal: interruption() });
}

/** Writes the state at a time to a temporary file, and restores that. */
async function restoreArchive(args: Arguments, url: string): Promise<number> {
  const at = timeGiven(args);
  const archive = openArchive(args, url);
  const folder = resolve(archive.dataFolder);
  if (args.has("--without-master-key"))
    throw new UsageError(
      "An archive is encrypted with the master key: without it nothing can be restored from it.",
    );
  const key = archive.key();
  if (isDatabaseThere(dataFilesOf(folder).database) && !args.has("--force"))
    throw new StartupError(
      `There is already a database in ${folder}. With --force it is renamed, and the archive's is put in its place.`,
    );
  const history = await historyOf(archive, at);
  makeFolder(folder);
  const file = temporaryName(join(folder, "ninefold.archive"));
  const progress = new Progress();
  const signal = interruption();
  try {
    await removeLeftovers(folder, (name) => name === "ninefold.archive");
    const onRead = (bytes: number, total: number) => progress.show("Reading", "bytes", bytes, total);
    const end = await readable(writeHistory(archive.store, history, { path: file, key, at, onRead, signal }));
    progress.finish();
    return await restoreFrom(args, { file, signal, origin: { name: url, at: end.position.at } });
  } finally {
    progress.finish();
    await removeTemporary(file);
  }
}

function timeGiven(args: Arguments): number | null {
  const text = args.text("--at");
  if (text === null) return null;
  const at = parseDateTime(text);
  if (at === null) throw new UsageError("--at must be a time such as 2026-11-22T18:00:00Z.");
  return at;
}

async function restoreFrom(
  args: Arguments,
  source: Pick<RestoreOrder, "file" | "signal" | "origin">,
): Promise<number> {
  const config = resolveFolderConfig(flagsGiven(args.line));
  const folder = resolve(config.dataFolder);
  const progress = new Progress();
  try {
    const outcome = await restoreFile({
      ...source,
      folder,
      force: args.has("--force"),
      masterKey: config.masterKey,
      steps: STEPS,
      forgetSecrets: args.has("--without-master-key") ? FORGET_SECRETS : null,
      now: createSystemClock().now(),
      onCopied: (bytes, total) => progress.show("Copying", "bytes", bytes, total),
      onChecked: () => progress.finish(),
      onReplacing: leaveLog,
    });
    print(report(source, folder, outcome, args.has("--without-master-key")));
  } finally {
    progress.finish();
  }
  return 0;
}

function report(
  { file, origin }: Pick<RestoreOrder, "file" | "origin">,
  folder: string,
  outcome: RestoreOutcome,
  isNewKey: boolean,
): string {
  const { seal, aside, keyProblem } = outcome;
  const at = origin?.at ?? seal?.createdAt;
  const created =
    at === undefined ? "no backup's own line: a database copied by other means" : `of ${isoTime(at)}`;
  const lines = [
    `restored  ${origin?.name ?? file} (${created}) to ${folder}`,
    ...(aside === null ? [] : [`kept      the former database as ${aside}`]),
    ...outcome.report,
    keyProblem === null
      ? `key       ${isNewKey ? "the database has the master key of this folder now: store master.key" : "the master key fits"}`
      : `key       ${keyProblem}`,
  ];
  return `${lines.join("\n")}\n`;
}
