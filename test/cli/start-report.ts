import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** What a server in a process of its own has loaded and begun, once it has made a change. */
export interface StartReport {
  /** Paths of the modules. */
  readonly modules: readonly string[];
  /** Names of the files in its folder. */
  readonly files: readonly string[];
  /** Programs of the threads. */
  readonly threads: readonly string[];
  /** For each timer that was set, who set it. */
  readonly timers: readonly string[];
  /** Whether it makes entries for an archive or a commit log. */
  readonly makesEntries: boolean;
}

const threads: string[] = [];
const timers: string[] = [];
Error.stackTraceLimit = 50;

// Before anything else is loaded, so that nothing has the originals.
const Thread = globalThis.Worker;
globalThis.Worker = class extends Thread {
  constructor(program: string | URL, options?: WorkerOptions) {
    threads.push(String(program));
    super(program, options);
  }
};
for (const name of ["setTimeout", "setInterval"] as const) {
  const original = globalThis[name] as (...given: unknown[]) => unknown;
  const recording = (...given: unknown[]): unknown => {
    timers.push(new Error(name).stack ?? "");
    return original(...given);
  };
  Object.assign(globalThis, { [name]: Object.assign(recording, original) });
}

await import("../../src/cli/serve.ts");
const { loadConfig } = await import("../../src/config.ts");
const { startNode } = await import("../../src/server.ts");

const folder = mkdtempSync(join(tmpdir(), "ninefold-start-"));
try {
  const config = loadConfig(["--port", "0", "--data", folder, ...process.argv.slice(2)], process.env);
  const log = { debug() {}, info() {}, warn() {}, error() {}, isDebug: false };
  const server = await startNode(folder, config, new Promise(() => undefined), { log });
  if (server === null) throw new Error("the server did not start");
  const response = await fetch(`${server.url}/v1/meter/m/refill`, {
    method: "POST",
    headers: { authorization: `Bearer ${server.operator.key}` },
    body: JSON.stringify({ amount: 1 }),
  });
  if (!response.ok) throw new Error(`the server made no change: ${await response.text()}`);
  const report: StartReport = {
    modules: Object.keys(require.cache),
    files: readdirSync(folder).sort(),
    threads,
    timers,
    makesEntries: server.kernel.entries !== null,
  };
  console.log(JSON.stringify(report));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
// Not in order: an orderly end waits for the archive.
process.exit();
