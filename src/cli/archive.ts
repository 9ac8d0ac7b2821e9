import { resolve } from "node:path";
import { ArchiveProblem, findHistory, type History, writeHistory } from "../archive/history.ts";
import { archiveClient, archivePlace } from "../archive/place.ts";
import { ArchiveStore, StoreUnavailable } from "../archive/store.ts";
import { accountBalancesCheck } from "../areas/accounts/backup-check.ts";
import { metersCheck } from "../areas/meter/backup-check.ts";
import { chainsCheck } from "../areas/notary/backup-check.ts";
import { removeTemporary, temporaryName } from "../backup/files.ts";
import { verifyCopy } from "../backup/verification.ts";
import { flagsGiven } from "../config/sources.ts";
import { type ArchiveConfig, resolveArchiveConfig } from "../config.ts";
import { StartupError } from "../kernel/errors.ts";
import { findMasterKey } from "../kernel/secrets/master-key.ts";
import { createVault } from "../kernel/secrets/vault.ts";
import { dataFilesOf, makeFolder } from "../kernel/storage/folders.ts";
import { ENTRY_KEY_PURPOSE, InvalidEntry } from "../kernel/storage/replication/entry.ts";
import { isoTime } from "../kernel/time/date-time.ts";
import type { Arguments } from "./arguments.ts";
import { interruption, print, printFields } from "./output.ts";
import { formatCount, Progress } from "./progress.ts";

/** An archive that a command reads. */
export interface OpenArchive extends ArchiveConfig {
  readonly url: string;
  readonly store: ArchiveStore;
  /** The key of its entries. @throws StartupError without a master key. */
  readonly key: () => Uint8Array;
}

/** Opens the archive of a URL, or the configured one. @throws StartupError */
export function openArchive(args: Arguments, url: string | null): OpenArchive {
  const config = resolveArchiveConfig(flagsGiven(args.line), url);
  if (config.archive === null)
    throw new StartupError(
      "No archive is configured. Set --archive s3://bucket/prefix, or NINEFOLD_ARCHIVE.",
    );
  const store = new ArchiveStore(archiveClient(config.extraCaPath), archivePlace(config.archive));
  const path = dataFilesOf(resolve(config.dataFolder)).masterKey;
  const key = (): Uint8Array => {
    const masterKey = findMasterKey({ configured: config.masterKey, path });
    if (masterKey === null)
      throw new StartupError(
        `The archive is encrypted with the master key. Put it at ${path}, or set NINEFOLD_MASTER_KEY.`,
      );
    return createVault(masterKey).derive(ENTRY_KEY_PURPOSE);
  };
  return { ...config, url: config.archive.url, store, key };
}

/** The history that reaches a time. @throws StartupError */
export async function historyOf({ store, url }: OpenArchive, at: number | null): Promise<History> {
  const history = await readable(findHistory(store, at));
  if (history !== null) return history;
  throw new StartupError(
    at === null
      ? `${url} has no complete base yet, so nothing can be restored from it.`
      : `${url} has no complete base from ${isoTime(at)} or before.`,
  );
}

/** Errors of an archive as one line for the operator. */
export async function readable<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof StoreUnavailable)
      throw new StartupError(`The archive cannot be read: ${error.message}.`);
    if (error instanceof InvalidEntry || error instanceof ArchiveProblem)
      throw new StartupError(`The archive cannot be used: ${error.message}.`);
    throw error;
  }
}

/** `ninefold archive status`: what can be restored. Resolves to the exit code. */
export async function archiveStatus(args: Arguments): Promise<number> {
  const archive = openArchive(args, args.words[0] ?? null);
  const { base, objects } = await historyOf(archive, null);
  const bytes = objects.reduce((sum, object) => sum + object.bytes, 0);
  printFields([
    ["archive", archive.url],
    ["epoch", String(base.from.epoch)],
    ...(base.position.log === null ? [] : [["commit log", base.position.log] as const]),
    ["base", `${isoTime(base.position.at)}, ${formatCount(base.bytes)} bytes`],
    ["after the base", `${formatCount(objects.length)} objects, ${formatCount(bytes)} bytes`],
  ]);
  return 0;
}

/** `ninefold archive verify`: restores the newest state to a temporary file, and checks it. Resolves to the exit code. */
export async function archiveVerify(args: Arguments): Promise<number> {
  const archive = openArchive(args, args.words[0] ?? null);
  const folder = resolve(archive.dataFolder);
  makeFolder(folder);
  const path = temporaryName(`${folder}/ninefold.archive`);
  const progress = new Progress();
  const signal = interruption();
  try {
    const history = await historyOf(archive, null);
    const onRead = (bytes: number, total: number) => progress.show("Reading", "bytes", bytes, total);
    const end = await readable(
      writeHistory(archive.store, history, { path, key: archive.key(), at: null, onRead, signal }),
    );
    const checks = await verifyCopy(
      path,
      [metersCheck, accountBalancesCheck, chainsCheck],
      async (what, rows) => {
        signal.throwIfAborted();
        progress.show(`Checking ${what}`, "rows", rows, null);
      },
    );
    progress.finish();
    for (const { name, extent, problems } of checks)
      print(
        `${problems.count === 0 ? "ok      " : "failed  "} ${name}: ${extent}\n${problems.listed.map((problem) => `         ${problem}\n`).join("")}`,
      );
    print(`${end.objects} objects after the base; the last change is of ${isoTime(end.position.at)}\n`);
    return checks.every(({ problems }) => problems.count === 0) ? 0 : 1;
  } finally {
    progress.finish();
    await removeTemporary(path);
  }
}
