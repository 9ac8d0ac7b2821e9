import { OPTIONS, type OptionName } from "./config/options.ts";
import { type Setting, settingsOf } from "./config/settings.ts";
import { type Given, type GivenValue, readConfigFile, readEnvironment, readFlags } from "./config/sources.ts";
import { readTiers, readValue } from "./config/values.ts";
import { errorText, StartupError } from "./kernel/errors.ts";
import type { MonitoringAccess } from "./kernel/http/monitoring-access.ts";
import type { LogLevel } from "./kernel/log.ts";
import { nextOccurrence } from "./kernel/scheduler/calendar.ts";
import { isBearerKey } from "./kernel/secrets/key-format.ts";
import type { Durability } from "./kernel/storage/database.ts";
import type { Tiers } from "./kernel/tiers.ts";

/** Everything that can be settled from outside, resolved: flags before environment before file before default. */
export interface Config {
  readonly host: string;
  readonly port: number;
  readonly dataFolder: string;
  readonly ephemeral: boolean;
  readonly testClock: boolean;
  readonly json: boolean;
  readonly stopWithStdin: boolean;
  readonly signup: "closed" | "free" | "open";
  readonly durability: Durability;
  readonly acceptDamagedLog: boolean;
  readonly allowPrivateTargets: readonly string[];
  readonly tls: { readonly certPath: string; readonly keyPath: string } | null;
  readonly smtp: { readonly url: string; readonly from: string } | null;
  readonly corsOrigins: readonly string[];
  readonly trustProxy: readonly string[];
  readonly metricsAccess: MonitoringAccess;
  readonly logLevel: LogLevel;
  readonly masterKey: string | null;
  readonly operatorKey: string | null;
  readonly rotationGraceMs: number;
  /** Scheduled backups: where to, when (a cron expression, UTC), and how many are kept. */
  readonly backups: { readonly folder: string; readonly cron: string; readonly keep: number } | null;
  readonly tiers: Tiers;
}

/** Loopback, in both families: what an ephemeral server may reach. */
const LOOPBACK = ["127.0.0.0/8", "::1/128"];
const HOUR_MS = 60 * 60 * 1000;

/** Variables by name, as `process.env` has them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The configuration, and where each of its values comes from. */
export interface ResolvedConfig {
  readonly config: Config;
  /** Every option and every figure of every tier. Secrets are as they are: whoever prints masks them. */
  readonly settings: readonly Setting[];
}

/**
 * Resolves the configuration of `ninefold serve`. The only reader of the environment.
 *
 * @throws StartupError with one line that says what is wrong; a UsageError when it is the command line.
 */
export function loadConfig(args: readonly string[], environment: Environment = process.env): Config {
  return resolveConfig(readFlags(args), environment).config;
}

/** What a command needs to know that works on the files of a data folder alone. */
export interface FolderConfig {
  readonly dataFolder: string;
  readonly masterKey: string | null;
}

const FOLDER_OPTIONS = ["config", "data", "master_key"] as const;

/**
 * Of the same sources as {@link loadConfig}. What they say of everything else is not looked at: a backup must not fail,
 * nor a restore be held up, because the server's port is mistyped, or one half of a pair is only on its command line.
 *
 * @throws StartupError, UsageError
 */
export function loadFolderConfig(
  args: readonly string[],
  environment: Environment = process.env,
): FolderConfig {
  const flags = readFlags(args);
  const fromEnvironment = readEnvironment(environment, FOLDER_OPTIONS);
  const path = (flags.get("config") ?? fromEnvironment.get("config"))?.value;
  const file: Given = typeof path === "string" ? readConfigFile(path).given : new Map();
  const values = new Values([flags, fromEnvironment, file], FOLDER_OPTIONS);
  return {
    dataFolder: values.get("data", "./ninefold-data"),
    masterKey: values.get<string | null>("master_key", null),
  };
}

/** As {@link loadConfig}, for commands that have read their flags by themselves. @throws StartupError, UsageError */
export function resolveConfig(flags: Given, environment: Environment = process.env): ResolvedConfig {
  const fromEnvironment = readEnvironment(environment);
  const named = flags.get("config") ?? fromEnvironment.get("config");
  const path = named?.value;
  const file = typeof path === "string" ? readConfigFile(path) : { given: new Map(), tiers: undefined };
  const tiers = readTiers(file.tiers, String(path ?? ""));
  const values = new Values([flags, fromEnvironment, file.given]);
  const config = checked(assemble(values, tiers));
  // Asked for above, before there were values; its default is none.
  values.get("config", null);
  return { config, settings: settingsOf(values, { table: file.tiers, tiers, path: String(path ?? "") }) };
}

/** Values by precedence, each read by the kind of its option. */
class Values {
  /** What each option came to, once it has been asked for. */
  readonly resolved = new Map<OptionName, GivenValue>();
  private readonly given = new Map<OptionName, GivenValue>();

  /** Of all options, or of those named alone. */
  constructor(sources: readonly Given[], names: readonly OptionName[] = OPTIONS.map(({ name }) => name)) {
    for (const name of names) {
      const given = sources.map((source) => source.get(name)).find((value) => value !== undefined);
      if (given !== undefined) this.given.set(name, { ...given, value: readValue(name, given) });
    }
  }

  /** The value of an option, or the default where no source gives one. */
  get<T>(name: OptionName, fallback: T): T {
    const given = this.given.get(name) ?? { value: fallback, source: "default", origin: "default" };
    this.resolved.set(name, given);
    return given.value as T;
  }
}

function assemble(values: Values, tiers: Tiers): Config {
  const ephemeral = values.get("ephemeral", false);
  return {
    host: values.get("host", "127.0.0.1"),
    port: values.get("port", ephemeral ? 0 : 9909),
    dataFolder: values.get("data", "./ninefold-data"),
    ephemeral,
    testClock: values.get("test_clock", false),
    json: values.get("json", false),
    stopWithStdin: values.get("stop_with_stdin", false),
    signup: values.get("signup", ephemeral ? "open" : "closed"),
    // What is deleted at exit need not survive a power cut.
    durability: values.get("durability", ephemeral ? "normal" : "full"),
    acceptDamagedLog: values.get("accept_damaged_log", false),
    allowPrivateTargets: values.get<readonly string[]>("allow_private_targets", ephemeral ? LOOPBACK : []),
    tls: pair(values, "tls_cert", "tls_key", (certPath, keyPath) => ({ certPath, keyPath })),
    smtp: pair(values, "smtp_url", "mail_from", (url, from) => ({ url, from })),
    corsOrigins: values.get<readonly string[]>("cors_origins", []),
    trustProxy: values.get<readonly string[]>("trust_proxy", []),
    metricsAccess: values.get<MonitoringAccess>("metrics_access", "loopback"),
    logLevel: values.get<LogLevel>("log_level", "info"),
    masterKey: values.get<string | null>("master_key", null),
    operatorKey: values.get<string | null>("operator_key", null),
    rotationGraceMs: values.get("rotation_grace_hours", 168) * HOUR_MS,
    backups: backups(values),
    tiers,
  };
}

function backups(values: Values): Config["backups"] {
  const folder = values.get<string | null>("backup_dir", null);
  const cron = values.get("backup_cron", "0 3 * * *");
  const keep = values.get("backup_keep", 7);
  if (folder !== null) return { folder, cron, keep };
  const useless = (["backup_cron", "backup_keep"] as const).find(
    (name) => values.resolved.get(name)?.source !== "default",
  );
  if (useless !== undefined)
    throw new StartupError(`${useless} needs backup_dir: the folder for the backups.`);
  return null;
}

function pair<T>(values: Values, a: OptionName, b: OptionName, build: (a: string, b: string) => T): T | null {
  const first = values.get<string | null>(a, null);
  const second = values.get<string | null>(b, null);
  if (first === null && second === null) return null;
  if (first === null || second === null) {
    throw new StartupError(`${a} and ${b} go together: one of them is missing.`);
  }
  return build(first, second);
}

function assertCron(expression: string): void {
  try {
    nextOccurrence(expression, 0);
  } catch (error) {
    throw new StartupError(
      `backup_cron: "${expression}" is not a cron expression such as "0 3 * * *" (${errorText(error)}).`,
    );
  }
}

function checked(config: Config): Config {
  if (config.backups !== null) assertCron(config.backups.cron);
  if (config.testClock && !config.ephemeral) throw new StartupError("--test-clock needs --ephemeral.");
  if (config.smtp !== null && !/^smtps?:$/.test(URL.parse(config.smtp.url)?.protocol ?? "")) {
    throw new StartupError("smtp_url must be a URL such as smtp://user:password@host:587.");
  }
  if (config.operatorKey !== null && !isBearerKey(config.operatorKey)) {
    throw new StartupError(
      "NINEFOLD_OPERATOR_KEY is not a well-formed platform key (sm_…, 43 characters, checksum).",
    );
  }
  for (const origin of config.corsOrigins) {
    if (!/^https?:\/\/[^/?#\s]+$/.test(origin)) {
      throw new StartupError(`cors_origins: "${origin}" is not an origin such as https://app.example.com.`);
    }
  }
  return config;
}
