import { closeSync, existsSync, openSync, readSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { errorText, StartupError } from "../kernel/errors.ts";
import { type CommandLine, didYouMean } from "./command-line.ts";
import { OPTIONS, type Option, type OptionName } from "./options.ts";

/** Where a value comes from; `stored`: from the database, where the operator has set it in the console. */
export type Source = "flag" | "variable" | "file" | "stored" | "default";

/** A value as its source gave it, and which source that was. */
export interface SourcedValue {
  readonly value: unknown;
  readonly source: Source;
  /** The flag, the variable, or the file and the name in it: what a message about the value begins with. */
  readonly origin: string;
}

/** Values by option; what no source gives is left out. */
export type SourcedValues = ReadonlyMap<OptionName, SourcedValue>;

/** Variables by name, as `process.env` has them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** What a command line gives for the options of `ninefold serve`; the last one counts where one is repeated. */
export function flagsGiven({ values }: Pick<CommandLine, "values">): SourcedValues {
  return gathered("flag", ({ flag }) => {
    const value = flag === null ? undefined : values.get(flag)?.at(-1);
    return { value, origin: String(flag) };
  });
}

/** @throws StartupError when a file named by `NINEFOLD_…_FILE` cannot be read. */
export function readEnvironment(
  environment: Environment,
  options: readonly Option[] = OPTIONS,
): SourcedValues {
  return gathered(
    "variable",
    ({ variable, secret }) => {
      if (secret === true) return secretIn(environment, variable);
      const text = environment[variable] ?? "";
      return { value: text === "" || isOfKubernetes(variable, text) ? undefined : text, origin: variable };
    },
    options.filter(({ flagOnly }) => flagOnly !== true),
  );
}

/** A secret from a variable, or from the file that the variable `…_FILE` names. @throws StartupError when that cannot be read. */
export function secretIn(
  environment: Environment,
  variable: string,
): { readonly value?: string; readonly origin: string } {
  const { [variable]: text = "", [`${variable}_FILE`]: path = "" } = environment;
  if (text !== "") return { value: text, origin: variable };
  const origin = `${variable}_FILE`;
  return path === "" ? { origin } : { value: readText(path, origin).trim(), origin };
}

/** The key of a Healthchecks project, for an import; null where it is not set. @throws StartupError when its file cannot be read. */
export function healthchecksKey(file: string | null, environment: Environment = process.env): string | null {
  if (file !== null) return readText(file, "--api-key-file").trim();
  return secretIn(environment, "HEALTHCHECKS_API_KEY").value ?? null;
}

/** Where a server listens unless it is told otherwise. */
export const DEFAULT_URL = "http://127.0.0.1:9909";

/** What the environment tells commands that talk to a running server. */
export interface ClientSettings {
  readonly url: string | null;
  /** The API key. Never a flag: a command line can be read by every user of the machine. */
  readonly key: string | null;
}

/** The value of a variable that a configuration file names; undefined where it is not set, or empty. */
export function variableNamed(name: string, environment: Environment = process.env): string | undefined {
  return environment[name] || undefined;
}

/**
 * URL and key for a command: those that `given` has from its options, else those of the environment, else those that
 * `ninefold login` has stored. A stored key is sent to no other server than its own.
 * @throws StartupError when a file with a key cannot be read.
 */
export function readClientSettings(
  options: { readonly url: string | null; readonly keyFile?: string | null },
  environment: Environment = process.env,
): ClientSettings {
  const { NINEFOLD_URL: variable = "" } = environment;
  const url = options.url ?? (variable === "" ? null : variable);
  const key =
    typeof options.keyFile === "string"
      ? readText(options.keyFile, "--api-key-file").trim()
      : secretIn(environment, "NINEFOLD_API_KEY").value?.trim();
  if (key !== undefined && url !== null) return { url, key };
  const stored = readCredentials(environment);
  if (key !== undefined) return { url: stored?.url ?? null, key };
  return stored === null || (url !== null && url !== stored.url) ? { url, key: null } : stored;
}

/** The file in which `ninefold login` stores URL and key. */
export function credentialsPath(environment: Environment = process.env): string {
  const { XDG_CONFIG_HOME: configured = "" } = environment;
  const folder = isAbsolute(configured) ? configured : join(environment["HOME"] ?? homedir(), ".config");
  return join(folder, "ninefold", "credentials");
}

function readCredentials(environment: Environment): { readonly url: string; readonly key: string } | null {
  const path = credentialsPath(environment);
  if (!existsSync(path)) return null;
  try {
    const { url, key } = JSON.parse(readText(path, "credentials"));
    if (typeof url === "string" && typeof key === "string") return { url, key };
  } catch (error) {
    if (error instanceof StartupError) throw error;
  }
  throw new StartupError(`${path} is damaged. Run ninefold login again.`);
}

/** The ping key of a project; null where it is not set. @throws StartupError when its file cannot be read. */
export function readPingKey(environment: Environment = process.env): string | null {
  return secretIn(environment, "NINEFOLD_PING_KEY").value?.trim() ?? null;
}

/** The environment of this process with further variables, for a command that it runs. */
export function withEnvironment(
  more: Readonly<Record<string, string>>,
  environment: Environment = process.env,
): Record<string, string | undefined> {
  return { ...environment, ...more };
}

/** Where `ninefold upgrade` looks for a newer version. */
export interface UpgradeSettings {
  /** URL of the signed feed. */
  readonly feed: string | null;
  /** Public key of the feed, as minisign writes it. */
  readonly publicKey: string | null;
}

export function readUpgradeSettings(environment: Environment = process.env): UpgradeSettings {
  const { NINEFOLD_UPGRADE_FEED: feed = "", NINEFOLD_UPGRADE_PUBLIC_KEY: publicKey = "" } = environment;
  return { feed: feed === "" ? null : feed, publicKey: publicKey === "" ? null : publicKey };
}

/** The tables of tiers of a configuration file, and where they stand in it. */
export interface TierTables {
  readonly tables: unknown;
  /** The file with the line of a tier's table, or of a limit in it: `ninefold.toml:12`. */
  readonly placeOf: (tier: string, limit?: string) => string;
}

/** Arrays of tables of a configuration file, as they are written: no variable and no flag sets them. */
export interface FileLists {
  /** `[[login.oidc]]` */
  readonly oidc: unknown;
  /** `[[people]]` */
  readonly people: unknown;
}

/** The configuration file: its options, its tables for tiers, and its arrays of tables. */
export interface ConfigFile {
  readonly values: SourcedValues;
  readonly tiers: TierTables;
  readonly lists: FileLists;
}

/** @throws StartupError when the file cannot be read, is not TOML, or names something unknown. */
export function readConfigFile(path: string): ConfigFile {
  const text = readText(path, "--config");
  let table: Record<string, unknown>;
  try {
    table = Bun.TOML.parse(text) as Record<string, unknown>;
  } catch (error) {
    throw new StartupError(`${path} is not a TOML file (${errorText(error)}).`);
  }
  const { tiers, people, ...others } = table;
  const { oidc, rest } = withoutOidc(others);
  const values = flattened(rest, path);
  const options = OPTIONS.filter(({ name, flagOnly }) => name !== "config" && flagOnly !== true);
  const names = options.map(({ fileName }) => fileName);
  const unknown = [...values.keys()].find((name) => !names.includes(name));
  if (unknown !== undefined) {
    const line = lineOf(text, unknown);
    throw new StartupError(`${path}${line}: there is no option "${unknown}".${didYouMean(unknown, names)}`);
  }
  const read = ({ fileName }: Option) => ({ value: values.get(fileName), origin: `${path}: ${fileName}` });
  const placeOf = (tier: string, limit?: string): string => path + lineOfTier(text, tier, limit);
  return {
    values: gathered("file", read, options),
    tiers: { tables: tiers, placeOf },
    lists: { oidc, people },
  };
}

/** The tables of `[[login.oidc]]`, and the file without them. */
function withoutOidc({ login, ...rest }: Readonly<Record<string, unknown>>) {
  if (typeof login !== "object" || login === null)
    return { oidc: undefined, rest: { ...rest, ...(login === undefined ? {} : { login }) } };
  const { oidc, ...others } = login as { readonly oidc?: unknown };
  return { oidc, rest: Object.keys(others).length === 0 ? rest : { ...rest, login: others } };
}

/** `:12` for the line of `[tiers.<tier>]`, or of a limit in this table; empty if it cannot be found. */
function lineOfTier(text: string, tier: string, limit: string | undefined): string {
  const lines = text.split("\n");
  const table = lines.findIndex((line) => line.replaceAll(/[\s"']/g, "") === `[tiers.${tier}]`);
  if (table < 0 || limit === undefined) return table < 0 ? "" : `:${table + 1}`;
  const line = lines.findIndex((line, at) => at > table && line.split("=")[0]?.trim() === limit);
  return `:${(line < 0 ? table : line) + 1}`;
}

/** `:12` for the line of an option in a file; empty if it cannot be found, for example in an inline table. */
function lineOf(text: string, fileName: string): string {
  const key = fileName.split(".").at(-1) ?? "";
  const line = text
    .split("\n")
    .findIndex((line) => line.split("=")[0]?.trim() === key || line.trim() === `[${key}]`);
  return line < 0 ? "" : `:${line + 1}`;
}

/** In the names of variables that Kubernetes sets for services named `ninefold` or `ninefold-…`. */
const OF_KUBERNETES = ["_SERVICE_HOST", "_SERVICE_PORT"];
const PORT_OF_KUBERNETES = /_PORT_\d{1,5}_(?:TCP|UDP|SCTP)/;
/** Values that it sets for `NINEFOLD_PORT` and `NINEFOLD_…_PORT`. */
const URL_OF_KUBERNETES = /^(?:tcp|udp|sctp):\/\//;

/** Whether Kubernetes has set a variable for a service: it is no option, whatever its name. */
function isOfKubernetes(name: string, value: string): boolean {
  if (name.endsWith("_PORT") && URL_OF_KUBERNETES.test(value)) return true;
  return OF_KUBERNETES.some((part) => name.includes(part)) || PORT_OF_KUBERNETES.test(name);
}

/** Options whose variable has a value of Kubernetes, which does not count. */
export function ignoredVariables(environment: Environment): string[] {
  return OPTIONS.flatMap(({ variable }) =>
    isOfKubernetes(variable, environment[variable] ?? "") ? [variable] : [],
  );
}

/** Variables of the client and of its test server, which are no options of `ninefold serve`. */
const OTHER_VARIABLES: readonly string[] = [
  "NINEFOLD_URL",
  "NINEFOLD_API_KEY",
  "NINEFOLD_API_KEY_FILE",
  "NINEFOLD_UPGRADE_FEED",
  "NINEFOLD_UPGRADE_PUBLIC_KEY",
  "NINEFOLD_BINARY",
  "NINEFOLD_PING_KEY",
  "NINEFOLD_PING_KEY_FILE",
  "NINEFOLD_FENCING_TOKEN",
];

/**
 * Rejects misspelt variables, which would otherwise have no effect. `ofFile`: those that the configuration file makes known.
 * @throws StartupError with the nearest variable.
 */
export function assertKnownVariables(environment: Environment, ofFile: readonly string[] = []): void {
  const ofOptions = OPTIONS.flatMap(({ variable, secret }) =>
    secret === true ? [variable, `${variable}_FILE`] : [variable],
  );
  const known = [...ofOptions, ...ofFile];
  for (const [name, value] of Object.entries(environment)) {
    if (!name.startsWith("NINEFOLD_") || value === undefined || value === "" || isOfKubernetes(name, value))
      continue;
    if (known.includes(name) || OTHER_VARIABLES.includes(name)) continue;
    throw new StartupError(`${name}: there is no such option.${didYouMean(name, known)}`);
  }
}

function gathered(
  source: Source,
  read: (option: Option) => { readonly value?: unknown; readonly origin: string },
  options: readonly Option[] = OPTIONS,
): SourcedValues {
  const values = new Map<OptionName, SourcedValue>();
  for (const option of options) {
    const { value, origin } = read(option);
    if (value !== undefined) values.set(option.name, { value, source, origin });
  }
  return values;
}

/** Values by name; what stands in a section, or in one within it, with that in front. */
function flattened(table: object, path: string, outer = ""): Map<string, unknown> {
  const entries = Object.entries(table).flatMap(([inner, value]): [string, unknown][] => {
    const name = outer + inner;
    if (!OPTIONS.some(({ section = "" }) => `${section}.`.startsWith(`${name}.`))) return [[name, value]];
    if (typeof value !== "object" || value === null) {
      throw new StartupError(`${path}: ${name} must be a table, such as [${name}].`);
    }
    return [...flattened(value, path, `${name}.`)];
  });
  return new Map(entries);
}

/** Largest file that settings and secrets are read from: far more than any holds, and little memory for one that never ends. */
export const TEXT_BYTES_MAX = 1024 * 1024;
const CHUNK_BYTES = 64 * 1024;

/** The maximum size of a file, and what to do about a larger one. */
interface TextLimits {
  readonly bytesMax?: number;
  readonly hint?: string;
}

/**
 * Reads a file of settings or a secret; a pipe will do. `what` is what names it, for messages.
 * @throws StartupError when it cannot be read, or is larger than `bytesMax` ({@link TEXT_BYTES_MAX} by default).
 */
export function readText(
  path: string,
  what: string,
  { bytesMax = TEXT_BYTES_MAX, hint = "that is another file" }: TextLimits = {},
): string {
  let bytes: Buffer;
  try {
    bytes = readUpTo(path, bytesMax + 1);
  } catch (error) {
    throw new StartupError(`${what}: ${path} cannot be read (${errorText(error)}).`);
  }
  if (bytes.length <= bytesMax) return bytes.toString("utf8");
  throw new StartupError(`${what}: ${path} is larger than ${bytesMax} bytes: ${hint}.`);
}

/**
 * Reads a file that another file names. What is no regular file, such as a pipe, could keep the reader waiting for ever.
 * @throws StartupError as {@link readText}, and for what is no regular file.
 */
export function readRegularText(path: string, what: string): string {
  if (statSync(path, { throwIfNoEntry: false })?.isFile() === false)
    throw new StartupError(`${what}: ${path} is not a regular file.`);
  return readText(path, what);
}

/** Asks for pieces until there is none: the size that a device or a pipe tells is not its own. */
function readUpTo(path: string, bytesMax: number): Buffer {
  const file = openSync(path, "r");
  try {
    const pieces: Buffer[] = [];
    let total = 0;
    while (total < bytesMax) {
      const piece = Buffer.alloc(CHUNK_BYTES);
      const size = readSync(file, piece);
      if (size === 0) break;
      pieces.push(piece.subarray(0, size));
      total += size;
    }
    return Buffer.concat(pieces);
  } finally {
    closeSync(file);
  }
}
