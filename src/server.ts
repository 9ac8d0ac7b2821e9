import { MIGRATIONS } from "../migrations/index.ts";
import { version } from "../package.json" with { type: "json" };
import { type App, createApp, loadMcp } from "./app.ts";
import type { Archive, ArchiveDeps } from "./archive/archive.ts";
import type { LeadingNode } from "./cluster/cluster.ts";
import type { Replication } from "./cluster/replication.ts";
import type { Config } from "./config.ts";
import { openDataFolder } from "./data-folder.ts";
import { StartupError } from "./kernel/errors.ts";
import type { Ids } from "./kernel/ids.ts";
import { closeKernel, explained, type Kernel } from "./kernel/kernel.ts";
import { createLogger, type LogFields, type Logger } from "./kernel/log.ts";
import type { OutboundOverrides } from "./kernel/outbound/client.ts";
import { lockFolder } from "./kernel/storage/folder-lock.ts";
import { dataFilesOf } from "./kernel/storage/folders.ts";
import { type Clock, createSystemClock, ManualClock, realDelay } from "./kernel/time/clock.ts";
import { LiveConfig, needsEntries } from "./live-config.ts";

const NEVER = new Promise<never>(() => undefined);
/** Longest wait for the commit log when a leader stops. */
const HAND_OVER_MS_MAX = 2_000;
/**
 * Time that a leader has to stop: with the clean-up after it less than the ten seconds after which supervisors kill. What is not
 * confirmed by then may be lost: nobody was told of it.
 */
const LEADER_STOP_MS_MAX = 8_000;
/** Time that requests in flight at a leader have to finish: the commit log needs some of the time, too. */
const LEADER_SHUTDOWN_GRACE_MS = 4_000;
/** Units of work after which a server without requests has work, such as deliveries that fell due. */
const UNITS_OF_WORK = 1_000;
/** Time that requests in flight have to finish when the server stops. */
const SHUTDOWN_GRACE_MS = 10_000;

/** A running server. */
export interface Server {
  readonly url: string;
  readonly kernel: Kernel;
  readonly app: App;
  /** Null without one. */
  readonly archive: Archive | null;
  /** The operator's account; with its key until that has been printed. */
  readonly operator: { readonly userId: string; readonly key: string | null };
  /** Resolves to the reason if the server can no longer accept changes and must stop. */
  readonly failed: Promise<string>;
  /** Resolves to the reason when another node of the cluster leads: the process must end at once. Never without a cluster. */
  readonly deposed: Promise<string>;
  /** Resolves when an operator asks this node to stop, and to let another one lead. */
  readonly askedToHandOver: Promise<void>;
  /** Accepts no more requests, finishes those in flight, commits everything and releases the folder. */
  stop(): Promise<void>;
  /** Undoes what a commit log has not confirmed, before the process of a deposed leader ends. */
  abandon(): void;
}

/** Another node of the cluster began to lead before this one served. */
export class DeposedAtStart extends Error {}

/** What is told of a server's start, and replacements for tests. */
export interface ServerDeps {
  /** Called when it first has work: its first request, or its {@link UNITS_OF_WORK}th unit of work. */
  readonly onFirstWork?: () => void;
  /** Announces the server, which is ready. */
  readonly announce?: (server: Pick<Server, "app" | "operator" | "url">) => Promise<void>;
  readonly clock?: Clock;
  readonly ids?: Ids;
  readonly log?: Logger;
  readonly outbound?: OutboundOverrides;
  readonly cores?: number;
  readonly archive?: ArchiveDeps;
  /** A shorter idle timeout of connections, for tests of requests that take longer. */
  readonly idleTimeoutSeconds?: number;
}

/**
 * Starts a server on a data folder that exists.
 *
 * @throws StartupError when the folder is in use or cannot be written, the database or its key does not match, or
 *   the port is in use.
 */
export async function startServer(folder: string, config: Config, deps: ServerDeps = {}): Promise<Server> {
  return locked(folder, () => startLocked(folder, config, deps, null));
}

/**
 * The same for a node of a cluster: it follows until it leads, and then starts. Null: `stopped` settled before.
 *
 * @throws StartupError also when the commit log cannot be used, or this folder does not belong to it.
 */
export async function startNode(
  folder: string,
  config: Config,
  stopped: Promise<unknown>,
  deps: ServerDeps = {},
): Promise<Server | null> {
  const settings = config.cluster;
  if (settings === null) return startServer(folder, config, deps);
  const clock = deps.clock ?? createSystemClock();
  const logger = deps.log ?? createLogger(clock, { level: config.logLevel, format: config.logFormat });
  return locked(folder, async () => {
    // Loaded on use: a server without a cluster starts without it.
    const { waitToLead } = await import("./cluster/cluster.ts");
    const { masterKey } = config;
    const leading = await waitToLead({
      settings,
      folder,
      masterKey,
      schema: MIGRATIONS.length,
      logger,
      listen: config,
      metricsAccess: config.metricsAccess,
      now: () => clock.now(),
      newId: () => crypto.randomUUID(),
      stopped,
    });
    return (
      leading && startLocked(folder, config, { ...deps, clock: leading.clockOf(clock), log: logger }, leading)
    );
  });
}

/** Starts a server behind the lock of its folder, which is released when it stops, or where it does not start. */
async function locked<Started extends Server | null>(
  folder: string,
  start: () => Promise<Started>,
): Promise<Started> {
  const release = lockFolder(dataFilesOf(folder).lock);
  try {
    const server = await start();
    if (server === null) {
      release();
      return server;
    }
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

function warnOfVariables({ ignoredVariables = [] }: Config, log: Logger): void {
  for (const variable of ignoredVariables)
    log.warn(
      "the variable was set by Kubernetes for a service named ninefold and is ignored: set enableServiceLinks: false, or name the service differently",
      { variable },
    );
}

async function startLocked(
  folder: string,
  config: Config,
  deps: ServerDeps,
  leading: LeadingNode | null,
): Promise<Server> {
  const clock = deps.clock ?? (config.testClock ? new ManualClock() : createSystemClock());
  const log = deps.log ?? createLogger(clock, { level: config.logLevel, format: config.logFormat });
  warnOfVariables(config, log);
  const { masterKey, durability, acceptDamagedLog } = config;
  const { ids, cores } = deps;
  const kernel = openDataFolder(folder, {
    masterKey,
    durability,
    acceptDamagedLog,
    makesEntries: needsEntries(config),
    clock,
    log,
    ...(ids === undefined ? {} : { ids }),
    ...(cores === undefined ? {} : { cores }),
    ...leading?.kernelOptions,
  });
  const failed = Promise.withResolvers<string>();
  if (kernel.entries !== null) kernel.entries.onFailure = failed.resolve;
  let archive: Archive | null = null;
  try {
    const live = new LiveConfig(kernel, config);
    const receivers = await receiversOf(kernel, live.started, deps, leading);
    const { replication } = receivers;
    archive = receivers.archive;
    await startArchive(archive, config.archive === null);
    const app = createApp(kernel, config, {
      live,
      testClock: clock instanceof ManualClock ? clock : null,
      ...(deps.outbound && { overrides: deps.outbound }),
      archive,
      cluster: replication,
      createMcp: config.mcp ? await loadMcp() : null,
    });
    // Before anything listens. The first account is announced by the first start that succeeds.
    if (config.applyPath !== null || config.people.length > 0)
      await app.accounts.operator(config.operatorKey, config.operatorEmail);
    await app.applyPeople();
    if (config.applyPath !== null) {
      const { applyAtStart } = await import("./configuration/at-start.ts");
      await applyAtStart(app, config.applyPath);
    }
    const listenOptions = {
      ...config,
      idleTimeoutSeconds: deps.idleTimeoutSeconds,
      ...leading?.listenOptions,
    };
    if (deps.onFirstWork !== undefined) watchForWork(kernel, app, deps.onFirstWork);
    // Before the first account is created: if the port is in use, the next start is still the first one.
    const url = app.http.listen(listenOptions);
    const operator = await begin(app, config, url, deps);
    log.info("server started", { version, url, data: folder, pid: process.pid, ...changedSettings(config) });
    return {
      url,
      kernel,
      app,
      archive,
      operator,
      failed: failed.promise,
      deposed: leading?.leadership.deposed ?? NEVER,
      askedToHandOver: replication?.askedToHandOver ?? NEVER,
      abandon: () => kernel.writer.abandonUnconfirmed(),
      stop: () => stop(kernel, app, archive, replication),
    };
  } catch (error) {
    closeKernel(kernel);
    await archive?.finish();
    if (leading?.leadership.wasDeposed === true) throw new DeposedAtStart("another node leads");
    throw explained(kernel.db.path, error);
  }
}

/** A stored archive that cannot be used never keeps the server from starting: its status says what is wrong. */
async function startArchive(archive: Archive | null, isStored: boolean): Promise<void> {
  try {
    await archive?.start();
  } catch (error) {
    if (!isStored || !(error instanceof StartupError)) throw error;
  }
}

/** What receives each entry: the commit log, and then the archive, which asks whether the log has confirmed it. */
async function receiversOf(
  kernel: Kernel,
  config: Config,
  deps: ServerDeps,
  leading: LeadingNode | null,
): Promise<{ readonly replication: Replication | null; readonly archive: Archive | null }> {
  // Loaded on use: a server without an archive starts without it. Both begin in one turn of the event loop, without a batch between.
  const loaded = config.archive === null ? null : await import("./archive/archive.ts");
  const replication = leading?.replicate(kernel) ?? null;
  if (config.archive === null || loaded === null) return { replication, archive: null };
  const log = leading?.confirmedLog ?? null;
  const archive = new loaded.Archive(kernel, config.archive, config.extraCaPath, deps.archive, log);
  loaded.declareArchiveMetrics(kernel, archive);
  if (replication !== null) replication.archivedThrough = () => archive.archivedThrough;
  return { replication, archive };
}

/** Starts a server that listens, and announces it. @throws StartupError when its output cannot be written. */
async function begin(
  app: App,
  config: Config,
  url: string,
  { announce }: ServerDeps,
): Promise<Server["operator"]> {
  try {
    const operator = await app.accounts.operator(config.operatorKey, config.operatorEmail);
    await app.start();
    await announce?.({ app, operator, url });
    return operator;
  } catch (error) {
    await app.http.stop(SHUTDOWN_GRACE_MS);
    await app.finish();
    throw error;
  }
}

async function stop(
  kernel: Kernel,
  app: App,
  archive: Archive | null,
  replication: Replication | null,
): Promise<void> {
  if (replication !== null) {
    await stopLeader(kernel, app, archive, replication);
    return;
  }
  await app.http.stop(SHUTDOWN_GRACE_MS);
  try {
    await app.finish();
    kernel.writer.close();
    await kernel.writer.confirmed();
  } finally {
    closeKernel(kernel);
    await archive?.finish();
  }
  kernel.log.info("server stopped");
}

/**
 * The same for a leader, which stops also when the engine is gone. Then nothing more is committed, and what is not confirmed is
 * undone here.
 */
async function stopLeader(
  kernel: Kernel,
  app: App,
  archive: Archive | null,
  replication: Replication,
): Promise<void> {
  const late = realDelay(LEADER_STOP_MS_MAX).then(() => "late" as const);
  const confirmed = async (): Promise<"confirmed" | "late"> => {
    const within = realDelay(HAND_OVER_MS_MAX).then(() => "late" as const);
    return Promise.race([kernel.writer.confirmed().then(() => "confirmed" as const), within]);
  };
  const orderly = async (): Promise<"confirmed" | "late"> => {
    await app.http.stop(LEADER_SHUTDOWN_GRACE_MS);
    await app.finish();
    // Before the rest is committed, which would be lost, too.
    if ((await confirmed()) === "late") return "late";
    kernel.writer.close();
    const outcome = await confirmed();
    await replication.finish();
    return outcome;
  };
  if ((await Promise.race([orderly(), late])) === "late") {
    await replication.close();
    kernel.log.warn(
      "the commit log does not confirm the last changes: the process ends, and their outcome is unknown",
    );
  }
  closeKernel(kernel);
  await archive?.finish();
  kernel.log.info("server stopped");
}

function watchForWork({ writer }: Kernel, { http }: App, onFirstWork: () => void): void {
  let hasWorked = false;
  const noteWork = (): void => {
    if (hasWorked) return;
    hasWorked = true;
    onFirstWork();
  };
  http.requests.onArrival = noteWork;
  writer.onCommitted(() => {
    if (writer.stats.units >= UNITS_OF_WORK) noteWork();
  });
}

/** The options that differ from their defaults, by name; secrets are masked. */
function changedSettings({ settings }: Config): LogFields {
  const changed = settings.filter(({ source }) => source !== "default");
  return Object.fromEntries(
    changed.map(({ name, value }) => [name, typeof value === "object" ? value?.join(",") : value]),
  );
}
