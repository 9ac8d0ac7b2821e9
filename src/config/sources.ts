import { closeSync, openSync, readSync } from "node:fs";
import { errorText, StartupError } from "../kernel/errors.ts";
import { type CommandLine, didYouMean } from "./command-line.ts";
import { OPTIONS, type Option, type OptionName } from "./options.ts";

/** Where a value comes from. */
export type Source = "flag" | "variable" | "file" | "default";

/** A value as its source gave it, and which source that was. */
export interface GivenValue {
  readonly value: unknown;
  readonly source: Source;
  /** The flag, the variable, or the file and the name in it: what a message about the value begins with. */
  readonly origin: string;
}

/** Values by option; what no source gives is left out. */
export type Given = ReadonlyMap<OptionName, GivenValue>;

/** Variables by name, as `process.env` has them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** What a command line gives for the options of `ninefold serve`; the last one counts where one is repeated. */
export function flagsGiven({ values }: Pick<CommandLine, "values">): Given {
  return gathered("flag", ({ flag }) => {
    const value = flag === null ? undefined : values.get(flag)?.at(-1);
    return { value, origin: String(flag) };
  });
}

/** @throws StartupError when a file named by `NINEFOLD_…_FILE` cannot be read. */
export function readEnvironment(environment: Environment, options: readonly Option[] = OPTIONS): Given {
  return gathered(
    "variable",
    ({ variable, secret }) => {
      if (secret === true) return secretIn(environment, variable);
      const text = environment[variable];
      return { value: text === "" ? undefined : text, origin: variable };
    },
    options.filter(({ flagOnly }) => flagOnly !== true),
  );
}

/** A secret from a variable, or from the file that the variable `…_FILE` names. @throws StartupError when that cannot be read. */
function secretIn(environment: Environment, variable: string): { value?: string; origin: string } {
  const { [variable]: text = "", [`${variable}_FILE`]: path = "" } = environment;
  if (text !== "") return { value: text, origin: variable };
  const origin = `${variable}_FILE`;
  return path === "" ? { origin } : { value: readText(path, origin).trim(), origin };
}

/** Where a server listens unless it is told otherwise. */
export const DEFAULT_URL = "http://127.0.0.1:9909";

/** What the environment tells commands that talk to a running server. */
export interface ClientSettings {
  readonly url: string | null;
  /** The API key. Never a flag: a command line can be read by every user of the machine. */
  readonly key: string | null;
}

/** @throws StartupError when the file named by `NINEFOLD_API_KEY_FILE` cannot be read. */
export function readClientSettings(environment: Environment = process.env): ClientSettings {
  const { NINEFOLD_URL: url = "" } = environment;
  const key = secretIn(environment, "NINEFOLD_API_KEY").value?.trim();
  return { url: url === "" ? null : url, key: key ?? null };
}

/** The configuration file: its options, and its tables for tiers. */
export interface ConfigFile {
  readonly given: Given;
  readonly tiers: unknown;
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
  const { tiers, ...rest } = table;
  const values = flattened(rest, path);
  const options = OPTIONS.filter(({ name, flagOnly }) => name !== "config" && flagOnly !== true);
  const names = options.map(({ fileName }) => fileName);
  const unknown = [...values.keys()].find((name) => !names.includes(name));
  if (unknown !== undefined) {
    const line = lineOf(text, unknown);
    throw new StartupError(`${path}${line}: there is no option "${unknown}".${didYouMean(unknown, names)}`);
  }
  const read = ({ fileName }: Option) => ({ value: values.get(fileName), origin: `${path}: ${fileName}` });
  return { given: gathered("file", read, options), tiers };
}

/** `:12` for the line of an option in a file; empty if it cannot be found, for example in an inline table. */
function lineOf(text: string, fileName: string): string {
  const key = fileName.split(".").at(-1) ?? "";
  const line = text
    .split("\n")
    .findIndex((one) => one.split("=")[0]?.trim() === key || one.trim() === `[${key}]`);
  return line < 0 ? "" : `:${line + 1}`;
}

/** Variables that Kubernetes sets for a service named `ninefold`. */
const KUBERNETES = /^NINEFOLD_(SERVICE_(HOST|PORT)|PORT_\d+_)/;
/** Variables of the client and of its test server, which are no options of `ninefold serve`. */
const OTHER_VARIABLES: readonly string[] = [
  "NINEFOLD_URL",
  "NINEFOLD_API_KEY",
  "NINEFOLD_API_KEY_FILE",
  "NINEFOLD_BINARY",
];

/**
 * Rejects misspelt variables, which would otherwise have no effect.
 * @throws StartupError with the nearest variable.
 */
export function assertKnownVariables(environment: Environment): void {
  const known = OPTIONS.flatMap(({ variable, secret }) =>
    secret === true ? [variable, `${variable}_FILE`] : [variable],
  );
  for (const [name, value] of Object.entries(environment)) {
    if (!name.startsWith("NINEFOLD_") || value === undefined || value === "" || KUBERNETES.test(name))
      continue;
    if (known.includes(name) || OTHER_VARIABLES.includes(name)) continue;
    throw new StartupError(`${name}: there is no such option.${didYouMean(name, known)}`);
  }
}

function gathered(
  source: Source,
  read: (option: Option) => { readonly value?: unknown; readonly origin: string },
  options: readonly Option[] = OPTIONS,
): Given {
  const given = new Map<OptionName, GivenValue>();
  for (const option of options) {
    const { value, origin } = read(option);
    if (value !== undefined) given.set(option.name, { value, source, origin });
  }
  return given;
}

/** Values by name; what stands in a section with that in front. */
function flattened(table: Record<string, unknown>, path: string): Map<string, unknown> {
  const entries = Object.entries(table).flatMap(([name, value]): [string, unknown][] => {
    if (!OPTIONS.some(({ section }) => section === name)) return [[name, value]];
    if (typeof value !== "object" || value === null) {
      throw new StartupError(`${path}: ${name} must be a table, such as [${name}].`);
    }
    return Object.entries(value).map(([inner, own]) => [`${name}.${inner}`, own]);
  });
  return new Map(entries);
}

/** Largest file that settings and secrets are read from: far more than any holds, and little memory for one that never ends. */
export const TEXT_BYTES_MAX = 1024 * 1024;
const CHUNK_BYTES = 64 * 1024;

/**
 * Reads a file of settings or a secret; a pipe will do. `what` is what names it, for messages.
 * @throws StartupError when it cannot be read, or is larger than {@link TEXT_BYTES_MAX}.
 */
function readText(path: string, what: string): string {
  let bytes: Buffer;
  try {
    bytes = readUpTo(path, TEXT_BYTES_MAX + 1);
  } catch (error) {
    throw new StartupError(`${what}: ${path} cannot be read (${errorText(error)}).`);
  }
  if (bytes.length <= TEXT_BYTES_MAX) return bytes.toString("utf8");
  throw new StartupError(`${what}: ${path} is larger than ${TEXT_BYTES_MAX} bytes: that is another file.`);
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
