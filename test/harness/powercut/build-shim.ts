import { join } from "node:path";

/** Why the simulation cannot run here; null if it can. */
export function missingForShim(): string | null {
  if (process.platform !== "linux" || process.arch !== "x64") return "it needs Linux on x86-64";
  return Bun.which("gcc") === null ? "it needs gcc" : null;
}

/** Compiles the shim into a folder. Returns the library to preload. @throws Error with the compiler's output. */
export function buildShim(folder: string): string {
  const library = join(folder, "shim.so");
  const source = join(import.meta.dir, "shim.c");
  const command = ["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", library, source];
  const { exitCode, stderr } = Bun.spawnSync([...command, "-ldl", "-lpthread"]);
  if (exitCode !== 0) throw new Error(`the shim cannot be compiled:\n${stderr.toString()}`);
  return library;
}
