import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NINEFOLD_COMMAND, plainEnvironment, ROOT } from "../harness/processes/server-process.ts";

/** Timeout for a test that runs a test runner, which runs servers, on a busy machine. */
export const TIMEOUT_MS = 60_000;

/** The programs that run JavaScript in these tests: Bun, and Node.js if it is installed. */
export const RUNTIMES: readonly string[] = [process.execPath, Bun.which("node")].filter(
  (path) => path !== null,
);

/** The result of a program that ends by itself. */
export interface Ended {
  /** Null when a signal ended it. */
  readonly code: number | null;
  readonly output: string;
}

/**
 * A project of a user: a folder with `node_modules/ninefold` (this entry, built) next to `node_modules/vitest`, and a
 * separate temporary folder, so that a test sees leftover files.
 */
export class Project {
  readonly folder = mkdtempSync(join(tmpdir(), "ninefold-test-"));
  readonly temporary = join(this.folder, "tmp");

  async create(): Promise<this> {
    const package_ = join(this.folder, "node_modules", "ninefold");
    mkdirSync(join(package_, "dist"), { recursive: true });
    mkdirSync(this.temporary);
    const built = await Bun.build({
      entrypoints: [join(ROOT, "src", "testing", "index.ts")],
      target: "node",
      outdir: package_,
      naming: "testing.js",
    });
    if (!built.success) throw new Error(built.logs.join("\n"));
    this.write("package.json", '{ "type": "module" }');
    this.write(
      "node_modules/ninefold/package.json",
      '{ "name": "ninefold", "type": "module", "exports": { "./testing": "./testing.js" } }',
    );
    // The executable, or a script that runs the sources as it would.
    const command = NINEFOLD_COMMAND.map((part) => `'${part}'`).join(" ");
    chmodSync(this.write("node_modules/ninefold/dist/ninefold", `#!/bin/sh\nexec ${command} "$@"\n`), 0o755);
    return this;
  }

  /** Writes a file and returns its path. */
  write(name: string, text: string): string {
    const path = join(this.folder, name);
    writeFileSync(path, text);
    return path;
  }

  /** Starts a program in the project. */
  spawn(command: readonly string[]): Bun.Subprocess<"ignore", "pipe", "pipe"> {
    return Bun.spawn([...command], {
      cwd: this.folder,
      env: plainEnvironment({ TMPDIR: this.temporary }),
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      timeout: TIMEOUT_MS / 2,
      killSignal: "SIGKILL",
    });
  }

  /** Runs a program to its end. */
  async run(command: readonly string[]): Promise<Ended> {
    const child = this.spawn(command);
    const [out, error] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    return { code: child.exitCode, output: out + error };
  }

  /** Existing temporary folders of servers. */
  leftFolders(): string[] {
    return readdirSync(this.temporary).filter((name) => name.startsWith("ninefold-"));
  }

  remove(): void {
    if (existsSync(this.folder)) rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Whether a process runs. One that has ended counts as ended, even before its exit code was read. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  const state = `/proc/${pid}/stat`;
  return !existsSync(state) || !/\) Z /.test(readFileSync(state, "utf8"));
}
