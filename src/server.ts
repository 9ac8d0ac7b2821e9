import { version } from "../package.json" with { type: "json" };
import { type App, createApp } from "./app.ts";
import type { Config } from "./config.ts";
import { openDataFolder } from "./data-folder.ts";
import type { Ids } from "./kernel/ids.ts";
import { closeKernel, explained, type Kernel } from "./kernel/kernel.ts";
import { createLogger, type LogFields, type Logger } from "./kernel/log.ts";
import type { OutboundOverrides } from "./kernel/outbound/client.ts";
import { lockFolder } from "./kernel/storage/folder-lock.ts";
import { dataFilesOf } from "./kernel/storage/folders.ts";
import { type Clock, createSystemClock, ManualClock } from "./kernel/time/clock.ts";

/** Time that requests in flight have to finish when the server stops. */
const SHUTDOWN_GRACE_MS = 10_000;

/** A running server. */
export interface Server {
  readonly url: string;
  readonly kernel: Kernel;
  readonly app: App;
  /** The operator's account; with its key until that has been printed. */
  readonly operator: { readonly userId: string; readonly key: string | null };
  /** Accepts no more requests, finishes those in flight, commits everything and releases the folder. */
  stop(): Promise<void>;
}

/** Replacements for tests. */
export interface ServerParts {
  readonly clock?: Clock;
  readonly ids?: Ids;
  readonly log?: Logger;
  readonly outbound?: OutboundOverrides;
  readonly cores?: number;
  /** A shorter idle timeout of connections, for tests of requests that take longer. */
  readonly idleTimeoutSeconds?: number;
}

/**
 * Starts a server on a data folder that exists.
 *
 * @throws StartupError when the folder is in use or cannot be written, the database or its key does not match, or
 *   the port is in use.
 */
export async function startServer(folder: string, config: Config, parts: ServerParts = {}): Promise<Server> {
  const release = lockFolder(dataFilesOf(folder).lock);
  try {
    const server = await startLocked(folder, config, parts);
    return {
      ...server,
      stop: async () => {
        try {
          await server.stop();
        } finally {
          release();
        }
      },
    };
  } catch (error) {
    release();
    throw error;
  }
}

async function startLocked(folder: string, config: Config, parts: ServerParts): Promise<Server> {
  const clock = parts.clock ?? (config.testClock ? new ManualClock() : createSystemClock());
  const log = parts.log ?? createLogger(clock, { level: config.logLevel, format: config.logFormat });
  const { masterKey, durability, acceptDamagedLog } = config;
  const ids = parts.ids === undefined ? {} : { ids: parts.ids };
  const cores = parts.cores === undefined ? {} : { cores: parts.cores };
  const kernel = openDataFolder(folder, {
    masterKey,
    durability,
    acceptDamagedLog,
    clock,
    log,
    ...ids,
    ...cores,
  });
  try {
    const app = createApp(kernel, config, clock instanceof ManualClock ? clock : null, parts.outbound);
    // Listen before the first account is created: if the port is in use, the next start is still the first one.
    const { idleTimeoutSeconds } = parts;
    const url = app.http.listen({ ...config, idleTimeoutSeconds });
    const operator = await app.accounts.operator(config.operatorKey, config.operatorEmail);
    await app.start();
    log.info("server started", { version, url, data: folder, pid: process.pid, ...changedSettings(config) });
    return { url, kernel, app, operator, stop: () => stop(kernel, app) };
  } catch (error) {
    closeKernel(kernel);
    throw explained(kernel.db.path, error);
  }
}

async function stop(kernel: Kernel, app: App): Promise<void> {
  await app.http.stop(SHUTDOWN_GRACE_MS);
  try {
    await app.finish();
  } finally {
    closeKernel(kernel);
  }
  kernel.log.info("server stopped");
}

/** The options that differ from their defaults, by name; secrets are masked. */
function changedSettings({ settings }: Config): LogFields {
  const changed = settings.filter(({ source }) => source !== "default");
  return Object.fromEntries(
    changed.map(({ name, value }) => [name, typeof value === "object" ? value?.join(",") : value]),
  );
}
