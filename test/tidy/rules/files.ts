import { readdir } from "node:fs/promises";
import type { SourceText } from "./model.ts";

/** Reads every text file of the tree that git tracks or would track; without git, every file that was not built. */
export async function readTree(root: string): Promise<SourceText[]> {
  const paths = listedByGit(root) ?? (await listedByWalk(root));
  const files = await Promise.all(paths.map((path) => readText(root, path)));
  return files.filter((file) => file !== undefined);
}

function listedByGit(root: string): string[] | undefined {
  const git = Bun.which("git");
  if (!git) return undefined;
  const command = [git, "ls-files", "--cached", "--others", "--exclude-standard", "-z"];
  const { success, stdout } = Bun.spawnSync(command, { cwd: root, stderr: "ignore" });
  if (!success) return undefined;
  return [...new Set(stdout.toString().split("\0"))].filter((path) => path !== "");
}

const PACKAGES = "node_modules";
const BUILT: ReadonlySet<string> = new Set([".git", ".tools", "build", "dist", "coverage", "ninefold-data"]);

async function listedByWalk(root: string, folder = ""): Promise<string[]> {
  const paths: string[] = [];
  for (const entry of await readdir(`${root}/${folder}`, { withFileTypes: true })) {
    if (entry.isFile()) paths.push(`${folder}${entry.name}`);
    else if (entry.isDirectory() && entry.name !== PACKAGES && !(folder === "" && BUILT.has(entry.name))) {
      paths.push(...(await listedByWalk(root, `${folder}${entry.name}/`)));
    }
  }
  return paths;
}

/** Undefined for a file that is not text, and for one that git still lists but is deleted. */
async function readText(root: string, path: string): Promise<SourceText | undefined> {
  const file = Bun.file(`${root}/${path}`);
  if (!(await file.exists())) return undefined;
  const text = await file.text();
  return text.includes("\0") ? undefined : { path, text };
}
