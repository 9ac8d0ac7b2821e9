import { resolve } from "node:path";
import { type RestoreOutcome, restore as restoreFile } from "../backup/restore.ts";
import { flagsGiven } from "../config/sources.ts";
import { resolveFolderConfig } from "../config.ts";
import { createSystemClock } from "../kernel/clock.ts";
import { isoTime } from "../kernel/date-time.ts";
import type { Given } from "./arguments.ts";
import { interruption, print } from "./output.ts";
import { Progress } from "./progress.ts";

/** `ninefold restore FILE`: puts a backup in the place of a data folder's database. Resolves to the exit code. */
export async function restore(given: Given): Promise<number> {
  const file = resolve(given.words[0] ?? "");
  const config = resolveFolderConfig(flagsGiven(given.line));
  const folder = resolve(config.dataFolder);
  process.umask(0o077);
  const progress = new Progress();
  try {
    const outcome = await restoreFile({
      ...{ file, folder },
      force: given.has("--force"),
      masterKey: config.masterKey,
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
  const { seal, aside, chains, fencingAbove, waitingDeliveries, keyProblem } = outcome;
  const made =
    seal === null
      ? "no backup's own line: a database copied by other means"
      : `of ${isoTime(seal.createdAt)}`;
  const lines = [`restored  ${file} (${made}) to ${folder}`];
  if (aside !== null) lines.push(`kept      the former database as ${aside}`);
  lines.push(
    `locks     fencing tokens go on above ${fencingAbove}, and so above every one handed out before`,
    "changes   everything after the backup is gone: keys revoked since then are valid again, keys made since then are not",
  );
  if (waitingDeliveries > 0)
    lines.push(
      `sending   ${waitingDeliveries} webhooks and e-mails were waiting: those sent since then are sent again (webhooks under the same X-Svc-Delivery-Id)`,
    );
  if (chains.count > 0) {
    lines.push(
      `notary    ${chains.count === 1 ? "1 chain ends" : `${chains.count} chains end`} where the backup does: receipts handed out since then are not in it, and their sequence_ids are given again`,
      ...chains.named.map(
        ({ chain_id, sequence, at }) => `          ${chain_id} ends at ${sequence} (${isoTime(at)})`,
      ),
    );
    const more = chains.count - chains.named.length;
    if (more > 0) lines.push(`          … and ${more} more`);
  }
  lines.push(keyProblem === null ? "key       the master key fits" : `key       ${keyProblem}`);
  return `${lines.join("\n")}\n`;
}
