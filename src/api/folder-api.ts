import { rmSync } from "node:fs";
import { resolve } from "node:path";
import { type App, createApp } from "../app.ts";
import type { CommandLine } from "../config/command-line.ts";
import { flagsGiven } from "../config/sources.ts";
import { type Config, loadConfig, resolveConfig } from "../config.ts";
import { openDataFolder } from "../data-folder.ts";
import { StartupError } from "../kernel/errors.ts";
import { closeKernel, explained } from "../kernel/kernel.ts";
import { createLogger } from "../kernel/log.ts";
import { isDatabaseThere } from "../kernel/storage/examine.ts";
import { FolderInUse, lockFolder, type ReleaseFolder } from "../kernel/storage/folder-lock.ts";
import { dataFilesOf, makeTemporaryFolder } from "../kernel/storage/folders.ts";
import { createSystemClock } from "../kernel/time/clock.ts";
import { type Api, type JsonObject, rejection } from "./http-api.ts";

/** Base URL of requests that do not leave the process. */
const ORIGIN = "http://offline";

/**
 * The API of a stopped server, run on its folder as the operator: nothing listens, and the folder is locked
 * meanwhile.
 * @throws StartupError if the folder has no database, a server uses it, or the master key does not match.
 */
export async function openFolderApi(path: string, line: CommandLine): Promise<Api> {
  const { app, close } = await openFolder(path, line);
  return { ...apiOf(app, app.accounts.operatorKey()), close };
}

/** A stopped server, and what it is configured with. */
export interface StoppedServer extends OfflineApp {
  readonly config: Config;
}

/**
 * Opens the folder of a stopped server, which is locked until it is closed.
 * @throws StartupError if the folder has no database, a server uses it, or the master key does not match.
 */
export async function openFolder(path: string, line: CommandLine): Promise<StoppedServer> {
  const folder = resolve(path);
  const config = resolveConfig(flagsGiven(line));
  if (!isDatabaseThere(dataFilesOf(folder).database)) {
    throw new StartupError(
      `There is no Ninefold database in ${folder}. --data names the data folder of a server.`,
    );
  }
  // New files next to the database are readable by their owner only.
  process.umask(0o077);
  await using opened = new AsyncDisposableStack();
  opened.defer(take(folder));
  const { app, close } = openOfflineApp(folder, { ...config, ephemeral: false, testClock: false });
  opened.defer(close);
  // The first start creates it, and may have been interrupted.
  await app.accounts.operator(config.operatorKey, config.operatorEmail);
  const held = opened.move();
  return { app, config, close: () => held.disposeAsync() };
}

/** The API of an app in this process, with a key. */
export function apiOf(app: Pick<App, "http">, key: string): Api {
  const ask = async (
    method: string,
    path: string,
    body?: JsonObject,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Response> => {
    const response = await app.http.handle(
      requestOf(method, path, { ...headers, authorization: `Bearer ${key}` }, body),
    );
    if (!response.ok) throw rejection(response.status, (await response.json()) as JsonObject);
    return response;
  };
  return {
    async send(method, path, body, headers) {
      const response = await ask(method, path, body, headers);
      return response.status === 204 ? {} : ((await response.json()) as JsonObject);
    },
    read: async (path) => {
      const response = await ask("GET", path);
      return { text: await response.text(), cursor: response.headers.get("x-next-cursor") };
    },
    stream: async (path, onBytes) => {
      const { body } = await ask("GET", path);
      for await (const bytes of body ?? []) onBytes(bytes);
    },
    close: () => Promise.resolve(),
  };
}

function take(folder: string): ReleaseFolder {
  try {
    return lockFolder(dataFilesOf(folder).lock);
  } catch (error) {
    if (!(error instanceof FolderInUse)) throw error;
    throw new StartupError(
      `A running server uses ${folder}. Omit --data and use --url, or stop the server first.`,
    );
  }
}

function requestOf(
  method: string,
  path: string,
  additional: Readonly<Record<string, string>>,
  body: JsonObject | undefined,
): Request {
  const headers = { ...additional, "content-type": "application/json" };
  return new Request(`${ORIGIN}${path}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

/** All areas on a data folder, without a port and without background work. */
export interface OfflineApp {
  readonly app: App;
  close(): Promise<void>;
}

/**
 * Opens a folder that no server uses.
 * @throws StartupError for a foreign or newer database, a missing or wrong master key.
 */
export function openOfflineApp(folder: string, config: Config): OfflineApp {
  const clock = createSystemClock();
  const { masterKey, durability } = config;
  const kernel = openDataFolder(folder, {
    masterKey,
    durability,
    clock,
    log: createLogger(clock, { level: "error" }),
  });
  try {
    const app = createApp(kernel, config);
    return {
      app,
      close: async () => {
        try {
          await app.finish();
        } finally {
          closeKernel(kernel);
        }
      },
    };
  } catch (error) {
    closeKernel(kernel);
    throw explained(kernel.db.path, error);
  }
}

/** Runs work with an app whose endpoints are of interest, not its data: the areas declare them, and need a database. */
export async function withDeclaredApp<T>(work: (app: App) => T | Promise<T>): Promise<T> {
  const folder = makeTemporaryFolder("ninefold-declared-");
  try {
    const { app, close } = openOfflineApp(folder, loadConfig(["--ephemeral"], {}));
    try {
      return await work(app);
    } finally {
      await close();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
