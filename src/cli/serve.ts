import { rmSync } from "node:fs";
import { resolve } from "node:path";
import { version } from "../../package.json" with { type: "json" };
import { flagsGiven } from "../config/sources.ts";
import { type Config, resolveConfig } from "../config.ts";
import { withLocalhost } from "../kernel/data/addresses.ts";
import { errorText, StartupError } from "../kernel/errors.ts";
import { createLogger } from "../kernel/log.ts";
import { makeFolder, makeTemporaryFolder, writeAll } from "../kernel/storage/folders.ts";
import { createSystemClock } from "../kernel/time/clock.ts";
import { DeposedAtStart, type Server, type ServerDeps, startNode } from "../server.ts";
import type { Arguments } from "./arguments.ts";
import { useUsualJitPolicy } from "./jit-policy.ts";

/** Another node of the cluster leads now: a supervisor starts this one again, and it follows. */
const EXIT_FOLLOW = 75;
/** The file descriptor of standard output: written synchronously, so that a failure is seen here. */
const STDOUT = 1;

/** `ninefold serve`: runs until it is stopped. Resolves to the exit code. */
export async function serve(args: Arguments): Promise<number> {
  const config = resolveConfig(flagsGiven(args.line));
  // Only the user of the server may read what it creates: database, WAL and key.
  process.umask(0o077);
  const folder = prepareFolder(config);
  try {
    // From here on, a signal stops the server in order, also during its start.
    const signal = stopSignal(config.stopWithStdin, () => noteHangup(config));
    // It may follow for days before it leads.
    if (config.cluster !== null) useUsualJitPolicy();
    const deps: ServerDeps = {
      onFirstWork: useUsualJitPolicy,
      announce: (ready) => announce(config, folder, ready),
    };
    const server = await startNode(folder, config, signal, deps).catch((error: unknown) => {
      if (error instanceof DeposedAtStart) return "deposed" as const;
      throw error;
    });
    if (server === null) return 0;
    if (server === "deposed") return EXIT_FOLLOW;
    let end: "signal" | "deposed" | "handed over" = "signal";
    try {
      // Recorded after the output: if this start is interrupted in between, the next one prints the key again.
      if (server.operator.key !== null) await server.app.accounts.markOperatorAnnounced();
      const ended = await Promise.race([
        signal.then(() => ({ end: "signal", failure: null }) as const),
        server.deposed.then(() => ({ end: "deposed", failure: null }) as const),
        server.askedToHandOver.then(() => ({ end: "handed over", failure: null }) as const),
        server.failed.then((failure) => ({ end: "signal", failure }) as const),
      ]);
      end = ended.end;
      if (ended.failure !== null) throw new StartupError(`The server stops: ${ended.failure}`);
    } finally {
      // What a deposed leader has in its memory must not be written any more.
      if (end === "deposed") server.abandon();
      else await server.stop();
    }
    return end === "signal" ? 0 : EXIT_FOLLOW;
  } finally {
    if (config.ephemeral) rmSync(folder, { recursive: true, force: true });
  }
}

function noteHangup({ logLevel, logFormat }: Config): void {
  const log = createLogger(createSystemClock(), { level: logLevel, format: logFormat });
  log.warn(
    "SIGHUP is ignored: configuration and certificates are read at the start. Restart the server to read them again.",
  );
}

/** Prints that the server is ready. @throws StartupError when that cannot be written. */
async function announce(
  config: Config,
  folder: string,
  { operator, app, url }: Pick<Server, "operator" | "app" | "url">,
): Promise<void> {
  const { key, userId } = operator;
  const path = key === null || config.json || !config.dashboard ? null : await app.createSetupLink(key);
  const link = path && (config.publicUrl ?? withLocalhost(url)) + path;
  const text = config.json
    ? readyLine(url, userId, key)
    : banner(config, url, config.ephemeral ? null : folder, key === null ? null : { key, link });
  try {
    writeAll(STDOUT, Buffer.from(text));
  } catch (error) {
    throw new StartupError(
      `Standard output cannot be written (${errorText(error)}), so the key cannot be shown.`,
    );
  }
}

function prepareFolder(config: Config): string {
  // With the process id, so that the parent process can remove the folder of a killed server.
  if (config.ephemeral) return makeTemporaryFolder(`ninefold-${process.pid}-`);
  const folder = resolve(config.dataFolder);
  makeFolder(folder);
  return folder;
}

/** `onHangup`: SIGHUP came, which other programs take for a request to read their files again. */
function stopSignal(withStdin: boolean, onHangup: () => void): Promise<void> {
  return new Promise((resolve) => {
    // The pipe closes however its other process ends, SIGKILL included, on every system.
    if (withStdin)
      process.stdin
        .on("end", resolve)
        .on("error", () => resolve())
        .resume();
    // Not `once`: a second signal, such as one that a wrapper forwards to its group, must not interrupt the stop.
    process.on("SIGTERM", () => resolve());
    process.on("SIGINT", () => resolve());
    process.on("SIGHUP", () => {
      // The terminal was closed.
      if (process.getBuiltinModule("node:tty").isatty(STDOUT)) resolve();
      else onHangup();
    });
  });
}

/** What only the start that created the operator's key prints. */
interface FirstStart {
  readonly key: string;
  /** URL that logs in a browser; null without the console. */
  readonly link: string | null;
}

/**
 * The lines for people when the server is ready. `folder` is null for an ephemeral server, `first` for every start after
 * the one that created the key.
 */
function banner(config: Config, url: string, folder: string | null, first: FirstStart | null): string {
  const lines = [
    `Ninefold ${version} is ready.`,
    "",
    `  URL    ${url}`,
    `  Data   ${folder ?? "temporary, deleted at exit"}`,
    `  Key    ${first?.key ?? earlierKey(folder)}`,
    ...(first === null || first.link === null ? [] : [`  Open   ${first.link}`]),
  ];
  if (config.allowPrivateTargets.length === 0) {
    lines.push(
      "  Sends  to public addresses only (--allow-private-targets loopback or private permits others)",
    );
  }
  if (first === null) return `${lines.join("\n")}\n`;
  // Responses end without a newline, which -w adds.
  const curl = `curl -w '\\n' -H 'Authorization: Bearer ${first.key}'`;
  lines.push(
    "",
    "This is the operator's API key. It is shown only once: store it. Try it:",
    "",
    `  ${curl} -d '{"amount": 100}' ${url}/v1/meter/my-first-meter/refill`,
    `  ${curl} -d '{"amount": 1}' ${url}/v1/meter/my-first-meter/deduct`,
    "",
  );
  return `${lines.join("\n")}\n`;
}

/** Where to find a key that this start does not print. */
function earlierKey(folder: string | null): string {
  if (folder === null) return "the configured one";
  return `printed by the first start; if it is lost, stop the server and run: ninefold key create --data ${folder}`;
}

/** The line for programs: the operator's user id, and its key if this start prints it. */
function readyLine(url: string, userId: string, key: string | null): string {
  const line = { url, ...(key === null ? {} : { api_key: key }), user_id: userId, pid: process.pid };
  return `${JSON.stringify(line)}\n`;
}
