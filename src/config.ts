import { OPTIONS, type OptionName } from "./config/options.ts";
import { type Given, readConfigFile, readEnvironment, readFlags } from "./config/sources.ts";
import { readTiers, readValue } from "./config/values.ts";
import { StartupError } from "./kernel/errors.ts";
import type { LogLevel } from "./kernel/log.ts";
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
  readonly allowPrivateTargets: readonly string[];
  readonly tls: { readonly certPath: string; readonly keyPath: string } | null;
  readonly smtp: { readonly url: string; readonly from: string } | null;
  readonly corsOrigins: readonly string[];
  readonly trustProxy: readonly string[];
  readonly logLevel: LogLevel;
  readonly masterKey: string | null;
  readonly operatorKey: string | null;
  readonly rotationGraceMs: number;
  readonly tiers: Tiers;
}

/** Loopback, in both families: what an ephemeral server may reach. */
const LOOPBACK = ["127.0.0.0/8", "::1/128"];
const HOUR_MS = 60 * 60 * 1000;

/**
 * Resolves the configuration of `ninefold serve`. The only reader of the environment.
 *
 * @throws StartupError with one line that says what is wrong.
 */
export function loadConfig(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>> = process.env,
): Config {
  const flags = readFlags(args);
  const fromEnvironment = readEnvironment(environment);
  const path = flags.get("config")?.value ?? fromEnvironment.get("config")?.value;
  const file = typeof path === "string" ? readConfigFile(path) : { given: new Map(), tiers: undefined };
  const tiers = readTiers(file.tiers, String(path ?? ""));
  return checked(assemble(new Values([flags, fromEnvironment, file.given]), tiers));
}

/** Values by precedence, each read by the kind of its option. */
class Values {
  private readonly values = new Map<OptionName, unknown>();

  constructor(sources: readonly Given[]) {
    for (const { name } of OPTIONS) {
      const given = sources.map((source) => source.get(name)).find((value) => value !== undefined);
      if (given !== undefined) this.values.set(name, readValue(name, given));
    }
  }

  /** The value of an option, or the default where no source gives one. */
  get<T>(name: OptionName, fallback: T): T {
    return this.values.has(name) ? (this.values.get(name) as T) : fallback;
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
    allowPrivateTargets: values.get<readonly string[]>("allow_private_targets", ephemeral ? LOOPBACK : []),
    tls: pair(values, "tls_cert", "tls_key", (certPath, keyPath) => ({ certPath, keyPath })),
    smtp: pair(values, "smtp_url", "mail_from", (url, from) => ({ url, from })),
    corsOrigins: values.get<readonly string[]>("cors_origins", []),
    trustProxy: values.get<readonly string[]>("trust_proxy", []),
    logLevel: values.get<LogLevel>("log_level", "info"),
    masterKey: values.get<string | null>("master_key", null),
    operatorKey: values.get<string | null>("operator_key", null),
    rotationGraceMs: values.get("rotation_grace_hours", 168) * HOUR_MS,
    tiers,
  };
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

function checked(config: Config): Config {
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
