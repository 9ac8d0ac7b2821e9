import { join } from "node:path";
import { realDelay } from "../kernel/time/clock.ts";
import { removeTemporary, temporaryNameOf } from "./files.ts";

/** How long an aborted backup may take to remove its files. */
const END_GRACE_MS = 2_000;
/** Characters of standard error that are stored, from its end: the last line contains the error. */
const ERROR_CHARACTERS_MAX = 4_000;

/** A backup in progress, in a separate process. */
export interface BackupProcess {
  /** Resolves to the error, or to null if the backup is complete. */
  readonly done: Promise<string | null>;
  /** Ends it and removes its temporary file. */
  end(): Promise<void>;
}

/** Starts `ninefold backup` in a separate process, which does not load the server's event loop. */
export function startBackupProcess(file: string, dataFolder: string): BackupProcess {
  const child = Bun.spawn([...ownCommand(), "backup", file, `--data=${dataFolder}`, "--verify"], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const outcome = async (): Promise<string | null> => {
    const [out, error, code] = await Promise.all([endOf(child.stdout), endOf(child.stderr), child.exited]);
    if (code === 0) return null;
    const failed = out.split("\n").filter((line) => line !== "" && !line.startsWith("ok "));
    const last = error.trimEnd().split("\n").at(-1) ?? "";
    return [
      ...failed.map((line) => line.trim()),
      last.replace(/^ninefold: /, "") || `exit code ${code}`,
    ].join(" | ");
  };
  return {
    done: outcome(),
    end: async () => {
      child.kill("SIGTERM");
      await Promise.race([child.exited, realDelay(END_GRACE_MS)]);
      if (child.exitCode !== null) return;
      child.kill("SIGKILL");
      await child.exited;
      await removeTemporary(temporaryNameOf(file, child.pid));
    },
  };
}

/** The command of this program: the executable, or Bun with the main file of the sources. */
function ownCommand(): string[] {
  const isExecutable = import.meta.dir.startsWith("/$bunfs/") || import.meta.dir.includes("~BUN");
  if (isExecutable) return [process.execPath];
  const root = join(import.meta.dir, "..", "..");
  const options = ["--no-env-file", "--no-install", `--config=${join(root, "bunfig.toml")}`];
  return [process.execPath, ...options, join(root, "src", "main.ts")];
}

async function endOf(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stream) {
    text = (text + decoder.decode(chunk, { stream: true })).slice(-ERROR_CHARACTERS_MAX);
  }
  return text;
}
