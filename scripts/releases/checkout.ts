import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { changesOf } from "./finish.ts";

/** The sources of a release. */
export interface Sources {
  /** The root of a checkout. */
  readonly root: string;
  /** The full hash of the commit; with `-dirty` if files differ from it. */
  readonly commit: string;
  /** Time of the commit, ISO 8601 in UTC. */
  readonly date: string;
  /** Removes the copy. */
  dispose(): void;
}

/** The date of a commit in the format of `ninefold version`. */
const DATE_FORMAT = "--date=format-local:%Y-%m-%dT%H:%M:%SZ";

/** The heading of the changes that no version contains yet. */
const UNRELEASED = /^## (?:Unreleased|\S+ \(unreleased\))$/m;

/**
 * The checked-out sources of a version.
 *
 * @throws Error if files differ from the commit, if the tag is missing or on another commit, or if the version is not
 * in package.json and the changelog.
 */
export function sourcesOf(root: string, version: string): Sources {
  const changed = git(root, "status", "--porcelain");
  if (changed !== "") throw new Error(`commit or remove first:\n${changed}`);
  const commit = git(root, "rev-parse", "HEAD");
  const tag = `v${version}`;
  if (git(root, "tag", "--list", tag) === "") throw new Error(`there is no tag ${tag}`);
  if (git(root, "rev-parse", `${tag}^{commit}`) !== commit)
    throw new Error(`the tag ${tag} is not what is checked out`);
  const { version: own } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    version: string;
  };
  if (own !== version) throw new Error(`package.json has the version ${own}`);
  const [heading = ""] = changesOf(readFileSync(join(root, "CHANGELOG.md"), "utf8"), version).split("\n");
  if (heading.includes("unreleased")) throw new Error(`CHANGELOG.md says "${heading}"`);
  return { root, commit, date: dateOf(root), dispose: () => undefined };
}

/** The web address of the repository, as `repository` of package.json has it; null without one. */
export function repositoryOf(root: string): string | null {
  const { repository } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    repository?: string | { url: string };
  };
  const url = typeof repository === "string" ? repository : repository?.url;
  return url?.replace(/^git\+/, "").replace(/\.git$/, "") ?? null;
}

/** A copy of a checkout, including uncommitted files, with a version that is not released yet. @throws Error */
export function tryOut(root: string, version: string): Sources {
  const head = git(root, "rev-parse", "HEAD");
  const commit = git(root, "status", "--porcelain") === "" ? head : `${head}-dirty`;
  const date = dateOf(root);
  const copy = mkdtempSync(join(tmpdir(), "ninefold-release-"));
  const dispose = (): void => rmSync(copy, { recursive: true, force: true });
  try {
    const files = git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0");
    for (const file of new Set(files)) {
      // A removed file is still listed.
      if (file === "" || !existsSync(join(root, file))) continue;
      mkdirSync(dirname(join(copy, file)), { recursive: true });
      cpSync(join(root, file), join(copy, file));
    }
    for (const folder of ["node_modules", ".tools"]) {
      mkdirSync(join(root, folder), { recursive: true });
      symlinkSync(join(root, folder), join(copy, folder));
    }
    rewrite(join(copy, "package.json"), /^( {2}"version": )"[^"]*"/m, `$1"${version}"`);
    const changelog = join(copy, "CHANGELOG.md");
    const heading = `## ${version} (${date.slice(0, 10)})`;
    rewrite(changelog, UNRELEASED, heading);
    changesOf(readFileSync(changelog, "utf8"), version);
    return { root: copy, commit, date, dispose };
  } catch (error) {
    dispose();
    throw error;
  }
}

function rewrite(path: string, from: RegExp, to: string): void {
  writeFileSync(path, readFileSync(path, "utf8").replace(from, to));
}

function dateOf(root: string): string {
  return git(root, "show", "--no-patch", DATE_FORMAT, "--format=%cd", "HEAD");
}

/** The output of git, without the last line end. @throws Error */
function git(root: string, ...args: readonly string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(["git", "-C", root, ...args], {
    env: { ...process.env, TZ: "UTC" },
  });
  if (exitCode !== 0) throw new Error(`git ${args[0]}: ${stderr.toString().trim()}`);
  return stdout.toString().trimEnd();
}
