import { tmpdir } from "node:os";
import { resolve } from "node:path";
import { resolveConfig } from "../config.ts";
import { InaccessibleFile, nearestExisting } from "../kernel/storage/file-access.ts";
import { isDiskFull } from "../kernel/storage/storage-failures.ts";
import type { Arguments } from "./arguments.ts";
import { serveFlags } from "./config-print.ts";
import { backupFolderCheck, fileSystemCheck, folderCheck, fsyncCheck, spaceCheck } from "./doctor/disk.ts";
import { type Check, type Finding, failed, type Target } from "./doctor/finding.ts";
import { loginCheck } from "./doctor/logins.ts";
import { dnsCheck, portCheck, smtpCheck, tlsCheck } from "./doctor/network.ts";
import { clockCheck, databaseCheck, masterKeyCheck, sqliteCheck } from "./doctor/state.ts";
import { oneLine, print, printJson } from "./output.ts";

const CHECKS: readonly Check[] = [
  sqliteCheck,
  folderCheck,
  backupFolderCheck,
  fileSystemCheck,
  fsyncCheck,
  spaceCheck,
  databaseCheck,
  masterKeyCheck,
  clockCheck,
  portCheck,
  tlsCheck,
  dnsCheck,
  smtpCheck,
  loginCheck,
];

/** A name reserved for examples (RFC 2606) that resolves. */
const DNS_NAME = "example.com";
const STATUS_WIDTH = 9;
const NAME_WIDTH = 13;

/** `ninefold doctor`. Resolves to the exit code: 1 if a check failed. Changes nothing. */
export async function doctor(args: Arguments): Promise<number> {
  const config = resolveConfig(serveFlags(args));
  const folder = config.ephemeral ? tmpdir() : resolve(config.dataFolder);
  const target: Target = {
    config,
    folder,
    existing: nearestExisting(folder),
    dnsName: args.text("--dns-name") ?? DNS_NAME,
  };
  const report: Report[] = [];
  for (const check of CHECKS) {
    const finding = await examine(check, target);
    report.push({ name: check.name, ...finding });
    if (!args.has("--json")) print(lineOf(check.name, finding));
  }
  const failures = report.filter(({ status }) => status === "failed").length;
  if (args.has("--json")) printJson({ ok: failures === 0, checks: report });
  else
    print(
      failures === 0 ? "\nA server can run here.\n" : `\n${failures} of ${report.length} checks failed.\n`,
    );
  return failures === 0 ? 0 : 1;
}

interface Report extends Finding {
  readonly name: string;
}

async function examine(check: Check, target: Target): Promise<Finding> {
  try {
    return await check.run(target);
  } catch (error) {
    if (isDiskFull(error))
      return failed("the disk is full", "Free space on it, or move the data folder to a larger disk.");
    if (error instanceof InaccessibleFile) return failed(error.detail, error.cure);
    const reason = error instanceof Error ? error.message : String(error);
    return failed(reason.replace(/\.$/, ""), check.cure);
  }
}

function lineOf(name: string, { status, detail, cure }: Finding): string {
  const line = `${status.padEnd(STATUS_WIDTH)}${name.padEnd(NAME_WIDTH)}${oneLine(detail)}\n`;
  return cure === undefined ? line : `${line}${"".padEnd(STATUS_WIDTH + NAME_WIDTH)}→ ${oneLine(cure)}\n`;
}
