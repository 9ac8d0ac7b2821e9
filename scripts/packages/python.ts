import { join } from "node:path";

/** Builds the wheel and the source distribution of the Python package into a folder. Returns the names of the files. @throws Error */
export function buildPython(root: string, folder: string, python = Bun.which("python3")): string[] {
  if (python === null) {
    console.error("the Python package is not built: install python3 (3.9 or later), then run this again");
    return [];
  }
  const { success, stdout, stderr } = Bun.spawnSync([python, join(root, "python/build_backend.py"), folder]);
  if (!success) throw new Error(`the Python package could not be built:\n${stdout}${stderr}`);
  return stdout.toString().trim().split("\n");
}
