import { mkdtempSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { version } from "../../package.json" with { type: "json" };
import { flagsGiven } from "../config/sources.ts";
import { type Config, resolveConfig } from "../config.ts";
import { errorText, StartupError } from "../kernel/errors.ts";
import { makeFolder } from "../kernel/storage/folders.ts";
import { type Server, startServer } from "../server.ts";
import type { Given } from "./arguments.ts";

/** The file descriptor of standard output: written synchronously, so that a failure is seen here. */
const STDOUT = 1;

/** `ninefold serve`: runs until it is told to stop. Resolves to the exit code. */
export async function serve(given: Given): Promise<number> {
  const config = resolveConfig(flagsGiven(given.line));
  // Whatever the server creates is its user's alone: database, WAL and key.
  process.umask(0o077);
  const folder = prepareFolder(config);
  try {
    // From here on a signal ends the server in order, at whatever point of its start it arrives.
    const signal = stopSignal(config.stopWithStdin);
    const server = await startServer(folder, config);
    try {
      await announce(config, folder, server);
      await signal;
    } finally {
      await server.stop();
    }
    return 0;
  } finally {
    if (config.ephemeral) rmSync(folder, { recursive: true, force: true });
  }
}

async function announce(config: Config, folder: string, { url, operator, app }: Server): Promise<void> {
  const { key } = operator;
  const link = key === null || config.json || !config.dashboard ? null : await app.createSetupLink(key, url);
  const line = config.json
    ? readyLine(url, operator.userId, key)
    : banner(config, url, config.ephemeral ? null : folder, key === null ? null : { key, link });
  try {
    writeSync(STDOUT, line);
  } catch (error) {
    throw new StartupError(
      `Standard output cannot be written (${errorText(error)}): nobody would read the key.`,
    );
  }
  // Noted after it was written: a start that is cut off in between leaves the telling to the next one.
  if (key !== null) await app.accounts.markOperatorAnnounced();
}

function prepareFolder(config: Config): string {
  // With the process's id, so that whoever started it can remove the folder of one that was killed.
  if (config.ephemeral) return mkdtempSync(join(tmpdir(), `ninefold-${process.pid}-`));
  const folder = resolve(config.dataFolder);
  makeFolder(folder);
  return folder;
}

function stopSignal(withStdin: boolean): Promise<void> {
  return new Promise((resolve) => {
    // Whoever holds the other end of a pipe lets go of it however they end, SIGKILL included, on every system.
    if (withStdin)
      process.stdin
        .on("end", resolve)
        .on("error", () => resolve())
        .resume();
    // Not `once`: a second signal (a wrapper that passes on what its group got as well) must not cut the stopping short.
    process.on("SIGTERM", () => resolve());
    process.on("SIGINT", () => resolve());
  });
}

/** What the start that made the key shows. */
interface FirstStart {
  readonly key: string;
  /** Logs a browser in with it; null without the console. */
  readonly link: string | null;
}

/**
 * The lines that a person reads when the server is ready. `folder` is null for an ephemeral server, `first` for all starts but
 * the one that made the key; the link and the commands beside it work as they stand.
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
  // Answers end without a newline: with -w each stands on a line of its own.
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

/** Where the key is that this start does not show. */
function earlierKey(folder: string | null): string {
  if (folder === null) return "the one that was given";
  return `the first start's; when it is lost, stop the server: ninefold key create --data ${folder}`;
}

/** The one line for programs: the operator's user id, and its key when this start tells it. */
function readyLine(url: string, userId: string, key: string | null): string {
  const line = { url, ...(key === null ? {} : { api_key: key }), user_id: userId, pid: process.pid };
  return `${JSON.stringify(line)}\n`;
}
