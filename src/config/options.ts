/** What an option can come to; null where nothing is set and nothing is the default. */
export type Value = string | number | boolean | readonly string[] | null;

/** What a value is. Plain objects as JSON Schema has them: to load TypeBox would hold up every command. */
export type Schema =
  | { readonly type: "string"; readonly enum?: readonly string[] }
  | { readonly type: "boolean" | "list" }
  | { readonly type: "integer"; readonly title: string; readonly minimum: number; readonly maximum: number };

/** An option as it is declared. */
export interface Declared<T extends Value = Value> {
  readonly schema: Schema;
  readonly default: T;
  /** The default with `--ephemeral`, where that differs. */
  readonly ephemeral?: T;
  /** What stands for the value in the help; `FILE` and `FOLDER` are completed by shells. */
  readonly placeholder?: string;
  readonly description: string;
  /** Never printed, and readable from a file named by `NINEFOLD_…_FILE`. */
  readonly secret?: true;
  /** Not a flag: secrets on a command line can be read by every user of the machine. */
  readonly noFlag?: true;
  /** A flag alone: consent to one start, which must not be left lying in the environment or a file. */
  readonly flagOnly?: true;
  /** Section of the configuration file that it stands in. */
  readonly section?: string;
}

/**
 * Every option of `ninefold serve`, in the order of the help, by its key in the configuration file: with dashes it is the
 * flag, in capitals behind `NINEFOLD_` the variable. What reads, prints, explains and completes options goes by this.
 */
const DECLARED = {
  host: text("127.0.0.1", "ADDRESS", "Address to listen on"),
  port: {
    ...integer("a port", 0, 65_535, 9909, "Port to listen on; 0 takes a free one"),
    ephemeral: 0,
    placeholder: "PORT",
  },
  data: text("./ninefold-data", "FOLDER", "Data folder"),
  config: optional("FILE", "Configuration file (TOML)"),
  ephemeral: flag("A private temporary database, deleted at exit; any free port"),
  test_clock: flag("Time moves only by POST /v1/admin/clock (with --ephemeral)"),
  json: flag("Print one line of JSON when ready"),
  stop_with_stdin: flag("Stop when standard input ends, as with the program behind it"),
  signup: { ...choice(["closed", "free", "open"], "closed", "Who may sign up"), ephemeral: "open" },
  durability: {
    ...choice(["full", "normal"], "full", "fsync at every commit, or at checkpoints only"),
    // What is deleted at exit need not survive a power cut.
    ephemeral: "normal",
  },
  accept_damaged_log: {
    ...flag("Start on a damaged log: the commits behind the damage are lost"),
    flagOnly: true,
  },
  allow_private_targets: {
    ...list("WORD|CIDR,…", "Where requests go besides public addresses: loopback, private, all, ranges"),
    ephemeral: ["loopback"],
  },
  extra_ca: optional(
    "FILE",
    "Certificates (PEM) of authorities that targets may have besides the public ones",
  ),
  tls_cert: optional("FILE", "Certificate chain (PEM); serves HTTPS"),
  tls_key: optional("FILE", "Private key of the certificate (PEM)"),
  smtp_url: { ...optional("URL", "Mail server, such as smtp://user:password@host:587"), secret: true },
  mail_from: optional("ADDRESS", "Sender of e-mails"),
  operator_email: optional("ADDRESS", "The operator's e-mail address, from this start on"),
  observer_targets: list(
    "HOST:PORT,…",
    "Hosts that show whether this server's own line is up (TCP, at most 5)",
  ),
  public_url: optional("URL", "Where browsers and senders reach this server: https://ninefold.example.com"),
  cors_origins: list("ORIGIN,…", "Origins whose pages may call the API"),
  trust_proxy: list("CIDR,…", "Proxies whose X-Forwarded-For and -Proto are believed"),
  metrics_access: choice(
    ["loopback", "health", "operator", "public"],
    "loopback",
    "Who reads /metrics and health: loopback, health, operator, public",
  ),
  audit_retention_days: {
    // At most a hundred years, which is to say that more was typed wrongly.
    ...integer("a number of days", 0, 36_500, 365, "How long the audit log is kept; 0 for ever"),
    placeholder: "DAYS",
  },
  audit_ip: choice(["on", "off"], "on", "Whether the audit log keeps client addresses"),
  dashboard: choice(["on", "off"], "on", "Whether the console is served at /dashboard/"),
  log_level: choice(["debug", "info", "warn", "error"], "info", "Least severe message that is logged"),
  backup_dir: optional("FOLDER", "Folder for scheduled backups; without it there are none"),
  backup_cron: text("0 3 * * *", "CRON", "When they are made, in UTC"),
  // At most a year of hourly ones: more than a folder is pleasant with.
  backup_keep: { ...integer("a number", 1, 10_000, 7, "How many of them are kept"), placeholder: "N" },
  master_key: {
    ...optional("KEY", "Master key: 64 hex digits or base64 of 32 bytes"),
    secret: true,
    noFlag: true,
  },
  operator_key: {
    ...optional("KEY", "The operator's API key at the first start"),
    secret: true,
    noFlag: true,
  },
  rotation_grace_hours: {
    // At most ten years, which is to say that more was typed wrongly.
    ...integer("a number of hours", 0, 10 * 365 * 24, 168, "How long a rotated platform key still works"),
    section: "keys",
    noFlag: true,
  },
  breaker_failures: {
    ...integer("a number", 3, 100, 10, "Failed attempts in a row after which an endpoint is only probed"),
    section: "relay",
    noFlag: true,
  },
  payload_retention_hours: {
    ...integer("a number of hours", 0, 720, 168, "How long the payload of a message is kept"),
    section: "relay",
    noFlag: true,
  },
} as const satisfies Record<string, Declared>;

function text(value: string, placeholder: string, description: string): Declared<string> {
  return { schema: { type: "string" }, default: value, placeholder, description };
}

function optional(placeholder: string, description: string): Declared<string | null> {
  return { schema: { type: "string" }, default: null, placeholder, description };
}

function flag(description: string): Declared<boolean> {
  return { schema: { type: "boolean" }, default: false, description };
}

function list(placeholder: string, description: string): Declared<readonly string[]> {
  return { schema: { type: "list" }, default: [], placeholder, description };
}

function choice<const T extends string>(
  words: readonly T[],
  value: NoInfer<T>,
  description: string,
): Declared<T> {
  const schema = { type: "string", enum: words } as const;
  return { schema, default: value, placeholder: words.join("|"), description };
}

function integer(
  title: string,
  minimum: number,
  maximum: number,
  value: number,
  description: string,
): Declared<number> {
  return { schema: { type: "integer", title, minimum, maximum }, default: value, description };
}

/** The name of an option. */
export type OptionName = keyof typeof DECLARED;

/** A value for each option. */
export type Values = { readonly [Name in OptionName]: (typeof DECLARED)[Name]["default"] };

/** An option under each of its names. */
export interface Option extends Declared {
  readonly name: OptionName;
  /** With its dashes; null: it is none. */
  readonly flag: string | null;
  readonly variable: string;
  /** In the configuration file, with its section: `port`, `keys.rotation_grace_hours`. */
  readonly fileName: string;
  /** What it means, with its default in brackets. */
  readonly help: string;
}

/** Every option, in the order of the help. */
export const OPTIONS: readonly Option[] = Object.entries(DECLARED).map(
  ([name, declared]: [string, Declared]) => {
    const fileName = declared.section === undefined ? name : `${declared.section}.${name}`;
    const value = declared.default;
    const shown = typeof value === "string" && value.includes(" ") ? `"${value}"` : value;
    return {
      ...declared,
      name: name as OptionName,
      flag: declared.noFlag === true ? null : `--${name.replaceAll("_", "-")}`,
      variable: `NINEFOLD_${fileName.replace(".", "_").toUpperCase()}`,
      fileName,
      help: ["string", "number"].includes(typeof value)
        ? `${declared.description} (${shown})`
        : declared.description,
    };
  },
);
