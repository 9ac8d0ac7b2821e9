/** How the text of an option (flag or environment) becomes its value. */
export type OptionKind =
  | "text"
  | "port"
  | "flag"
  | "list"
  | "hours"
  | "count"
  | { readonly oneOf: readonly string[] };

/** One option of `ninefold serve`: as a flag, in the environment, and in the configuration file. */
export interface OptionSpec {
  /** Key in the configuration file; with dashes the flag, in capitals behind `NINEFOLD_` the environment. */
  readonly name: string;
  readonly kind: OptionKind;
  readonly help: string;
  /** What stands for the value in the help. */
  readonly placeholder?: string;
  /** The value names a file or a folder: what a shell completes. */
  readonly completes?: "file" | "folder";
  /** Never printed, and readable from a file named by `NINEFOLD_…_FILE`. */
  readonly secret?: boolean;
  /** Not a flag: secrets on a command line can be read by every user of the machine. */
  readonly noFlag?: boolean;
  /** A flag alone: consent to one start, which must not be left lying in the environment or a file. */
  readonly flagOnly?: boolean;
  /** Section of the configuration file that it stands in. */
  readonly section?: string;
}

/** Every option, in the order of the help. Secrets come from the environment, a file or the configuration file. */
export const OPTIONS = [
  { name: "host", kind: "text", placeholder: "ADDRESS", help: "Address to listen on (127.0.0.1)" },
  { name: "port", kind: "port", placeholder: "PORT", help: "Port to listen on; 0 takes a free one (9909)" },
  {
    name: "data",
    kind: "text",
    placeholder: "FOLDER",
    completes: "folder",
    help: "Data folder (./ninefold-data)",
  },
  { name: "config", kind: "text", placeholder: "FILE", completes: "file", help: "Configuration file (TOML)" },
  { name: "ephemeral", kind: "flag", help: "A private temporary database, deleted at exit; any free port" },
  { name: "test_clock", kind: "flag", help: "Time moves only by POST /v1/admin/clock (with --ephemeral)" },
  { name: "json", kind: "flag", help: "Print one line of JSON when ready" },
  {
    name: "stop_with_stdin",
    kind: "flag",
    help: "Stop when standard input ends, as with the program behind it",
  },
  {
    name: "signup",
    kind: { oneOf: ["closed", "free", "open"] },
    placeholder: "closed|free|open",
    help: "Who may sign up (closed)",
  },
  {
    name: "durability",
    kind: { oneOf: ["full", "normal"] },
    placeholder: "full|normal",
    help: "fsync at every commit, or at checkpoints only (full)",
  },
  {
    name: "accept_damaged_log",
    kind: "flag",
    flagOnly: true,
    help: "Start on a damaged log: the commits behind the damage are lost",
  },
  {
    name: "allow_private_targets",
    kind: "list",
    placeholder: "CIDR,…|all",
    help: "Addresses that outbound requests may reach besides public ones",
  },
  {
    name: "tls_cert",
    kind: "text",
    placeholder: "FILE",
    completes: "file",
    help: "Certificate chain (PEM); serves HTTPS",
  },
  {
    name: "tls_key",
    kind: "text",
    placeholder: "FILE",
    completes: "file",
    help: "Private key of the certificate (PEM)",
  },
  {
    name: "smtp_url",
    kind: "text",
    placeholder: "URL",
    secret: true,
    help: "Mail server, such as smtp://user:password@host:587",
  },
  { name: "mail_from", kind: "text", placeholder: "ADDRESS", help: "Sender of e-mails" },
  {
    name: "cors_origins",
    kind: "list",
    placeholder: "ORIGIN,…",
    help: "Origins whose pages may call the API",
  },
  {
    name: "trust_proxy",
    kind: "list",
    placeholder: "CIDR,…",
    help: "Proxies whose X-Forwarded-For is believed",
  },
  {
    name: "metrics_access",
    kind: { oneOf: ["loopback", "health", "operator", "public"] },
    placeholder: "loopback|health|operator|public",
    help: "Who reads /metrics and health: loopback, health, operator, public (loopback)",
  },
  {
    name: "log_level",
    kind: { oneOf: ["debug", "info", "warn", "error"] },
    placeholder: "debug|info|warn|error",
    help: "Least severe message that is logged (info)",
  },
  {
    name: "backup_dir",
    kind: "text",
    placeholder: "FOLDER",
    completes: "folder",
    help: "Folder for scheduled backups; without it there are none",
  },
  {
    name: "backup_cron",
    kind: "text",
    placeholder: "CRON",
    help: 'When they are made, in UTC ("0 3 * * *")',
  },
  { name: "backup_keep", kind: "count", placeholder: "N", help: "How many of them are kept (7)" },
  {
    name: "master_key",
    kind: "text",
    secret: true,
    noFlag: true,
    help: "Master key: 64 hex digits or base64 of 32 bytes",
  },
  {
    name: "operator_key",
    kind: "text",
    secret: true,
    noFlag: true,
    help: "The operator's API key at the first start",
  },
  {
    name: "rotation_grace_hours",
    kind: "hours",
    section: "keys",
    noFlag: true,
    help: "How long a rotated platform key still works (168)",
  },
] as const satisfies readonly OptionSpec[];

/** The name of an option. */
export type OptionName = (typeof OPTIONS)[number]["name"];

/** `test_clock` → `--test-clock`. */
export function flagOf(option: OptionSpec): string {
  return `--${option.name.replaceAll("_", "-")}`;
}

/** Where an option stands in the configuration file: `port`, `keys.rotation_grace_hours`. */
export function fileNameOf(option: OptionSpec): string {
  return option.section === undefined ? option.name : `${option.section}.${option.name}`;
}

/** `test_clock` → `NINEFOLD_TEST_CLOCK`. */
export function environmentNameOf(option: OptionSpec): string {
  const section = option.section === undefined ? "" : `${option.section}_`;
  return `NINEFOLD_${`${section}${option.name}`.toUpperCase()}`;
}
