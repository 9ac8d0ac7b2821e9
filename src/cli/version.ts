import { version } from "../../package.json" with { type: "json" };
import { sqliteVersion } from "../kernel/storage/examine.ts";
import type { Arguments } from "./arguments.ts";
import { print } from "./output.ts";

/** Set by `scripts/build`: the commit that an executable was built from, and its date. Not there in a checkout. */
declare const NINEFOLD_BUILD: { readonly commit: string; readonly date: string } | undefined;

/** What `version --json` prints. */
export interface VersionInfo {
  readonly version: string;
  /** Full hash; with `-dirty` where files differed from it. Null where the build knew none, and in a checkout. */
  readonly commit: string | null;
  /** When the commit was made, ISO 8601 in UTC: the same sources name the same date. Null as for `commit`. */
  readonly date: string | null;
  readonly bun: string;
  readonly sqlite: string;
}

/** Prints the version on the first line, alone, and below it what the executable consists of. */
export function printVersion(args: Arguments): number {
  const info = versionInfo();
  print(args.has("--json") ? `${JSON.stringify(info)}\n` : describe(info));
  return 0;
}

function versionInfo(): VersionInfo {
  const { commit, date } = typeof NINEFOLD_BUILD === "undefined" ? { commit: "", date: "" } : NINEFOLD_BUILD;
  return { version, commit: commit || null, date: date || null, bun: Bun.version, sqlite: sqliteVersion() };
}

function describe({ version, commit, date, bun, sqlite }: VersionInfo): string {
  const rows = [
    ["commit", commit ?? "unknown"],
    ...(date === null ? [] : [["date", date]]),
    ["Bun", bun],
    ["SQLite", sqlite],
  ];
  return `${version}\n${rows.map(([name = "", value]) => `${name.padEnd(7)} ${value}\n`).join("")}`;
}
