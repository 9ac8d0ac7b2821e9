/** The value of an option; null if it is not set and has no default. */
export type Value = string | number | boolean | readonly string[] | null;

/** The type of a value, as in JSON Schema. Plain objects, because loading TypeBox would slow down every command. */
export type Schema =
  | { readonly type: "string"; readonly enum?: readonly string[] }
  | { readonly type: "boolean" | "list" }
  /** A table of texts in the file, such as `{ ops = "admin" }`; its value is a list such as `ops=admin`. */
  | { readonly type: "table" }
  | {
      readonly type: "integer" | "number";
      readonly title: string;
      readonly minimum: number;
      readonly maximum: number;
    };

export interface Declared<T extends Value = Value> {
  readonly schema: Schema;
  readonly default: T;
  /** The default with `--ephemeral`, if it differs. */
  readonly ephemeral?: T;
  /** Stands for the value in the help; shells complete `FILE` and `FOLDER`. */
  readonly placeholder?: string;
  readonly description: string;
  /** Never printed, and readable from a file named by `NINEFOLD_…_FILE`. */
  readonly secret?: true;
  /** Not available as a flag, because every user of the machine can read command lines. */
  readonly noFlag?: true;
  /** Only available as a flag: it applies to one start and must not stay in the environment or a file. */
  readonly flagOnly?: true;
  /** Section of the configuration file. */
  readonly section?: string;
  /** Its name within the section, if it differs from its key here. */
  readonly key?: string;
  /** The operator can store it in the database, where no other source sets it: effective `now`, or after a `restart`. */
  readonly storable?: "now" | "restart";
}

/**
 * Every option of `ninefold serve`, in the order of the help, by its key in the configuration file: with dashes it is the
 * flag, and in capitals after `NINEFOLD_` the variable. Everything that reads, prints or completes options uses this table.
 */
const DECLARED = {
  host: text("127.0.0.1", "ADDRESS", "Address to listen on"),
  port: {
    ...integer("a port", 0, 65_535, 9909, "Port to listen on; 0 selects a free port"),
    ephemeral: 0,
    placeholder: "PORT",
  },
  data: text("./ninefold-data", "FOLDER", "Data folder"),
  config: optional("FILE", "Configuration file (TOML)"),
  ephemeral: flag("A private temporary database, deleted at exit; any free port"),
  test_clock: flag("The clock moves only by POST /v1/admin/clock (with --ephemeral)"),
  apply: optional("FILE", "Configuration file (YAML) with resources, applied before the first request"),
  json: flag("Print one line of JSON when ready"),
  stop_with_stdin: flag("Stop when standard input closes"),
  signup: { ...choice(["closed", "free", "open"], "closed", "Who may sign up"), ephemeral: "open" },
  durability: {
    ...choice(["full", "normal", "none"], "full", "fsync at every commit, at checkpoints, or never"),
    // A database that is deleted at exit does not need to survive a power cut.
    ephemeral: "none",
  },
  accept_damaged_log: {
    ...flag("Start on a damaged log; the commits after the damage are lost"),
    flagOnly: true,
  },
  allow_private_targets: {
    ...list("WORD|CIDR,…", "Additional targets of requests: loopback, private, all, ranges"),
    ephemeral: ["loopback"],
  },
  extra_ca: optional("FILE", "Additional certificate authorities (PEM) for targets"),
  tls_cert: optional("FILE", "Certificate chain (PEM); serves HTTPS"),
  tls_key: optional("FILE", "Private key of the certificate (PEM)"),
  smtp_url: {
    ...optional("URL", "Mail server, such as smtp://user:password@host:587"),
    secret: true,
    storable: "now",
  },
  mail_from: { ...optional("ADDRESS", "Sender of e-mails"), storable: "now" },
  operator_email: optional("ADDRESS", "E-mail address of the operator"),
  observer_targets: list("HOST:PORT,…", "Hosts for the connectivity check of this server (TCP, at most 5)"),
  rdap_bootstrap: optional("FILE|URL", "List of RDAP servers for domain monitors; that of IANA by default"),
  public_url: {
    ...optional("URL", "Where browsers and senders reach this server: https://ninefold.example.com"),
    storable: "now",
  },
  brand_color: { ...optional("COLOR", "Color of status pages without their own: #0f766e"), storable: "now" },
  brand_logo: {
    ...optional("DATA-URI", "Logo of status pages without their own: data:image/png;base64,…"),
    storable: "now",
  },
  brand_website: { ...optional("URL", "Website that status pages without their own link"), storable: "now" },
  cors_origins: list("ORIGIN,…", "Origins whose pages may call the API"),
  portal_origins: list("ORIGIN,…", "Origins whose pages may embed the portal of customers"),
  trust_proxy: list("CIDR,…", "Proxies whose X-Forwarded-For and X-Forwarded-Proto are trusted"),
  metrics_access: choice(
    ["loopback", "health", "operator", "public"],
    "loopback",
    "Who can read /metrics and health",
  ),
  audit_retention_days: {
    // A hundred years: a larger value is a typing error.
    ...integer("a number of days", 0, 36_500, 365, "Retention of the audit log; 0 for unlimited"),
    placeholder: "DAYS",
  },
  audit_ip: choice(["on", "off"], "on", "Whether the audit log stores client addresses"),
  dashboard: choice(["on", "off"], "on", "Whether the console is served at /dashboard/"),
  mcp: flag("Serve the Model Context Protocol to agents at /v1/mcp"),
  mcp_write: flag("Agents may also save flags, schedule, resend and replay (with --mcp)"),
  log_level: choice(["debug", "info", "warn", "error"], "info", "Least severe message that is logged"),
  log_format: choice(
    ["auto", "json", "text"],
    "auto",
    "Format of log lines; auto: text on a terminal, else json",
  ),
  backup_dir: {
    ...optional("FOLDER", "Folder for scheduled backups; without it there are none"),
    storable: "now",
  },
  backup_cron: { ...text("0 3 * * *", "CRON", "Schedule of backups, in UTC"), storable: "now" },
  // A year of hourly backups.
  backup_keep: {
    ...integer("a number", 1, 10_000, 7, "Number of backups to keep"),
    placeholder: "N",
    storable: "now",
  },
  commit_log: {
    ...optional("URL", "Commit log of a cluster: etcd://host:2379,… or postgres://user@host/db"),
    secret: true,
  },
  commit_log_trusted: flag("The PostgreSQL service replicates below SQL: its settings are not checked"),
  cell: text("main", "NAME", "Name of the cluster: several can share a commit log"),
  lease_seconds: {
    ...integer("a number of seconds", 3, 60, 10, "Lease of the leader: the longest outage after its loss"),
    placeholder: "SECONDS",
  },
  advertise: optional("URL", "Where other nodes and clients reach this node: https://n1.internal:9909"),
  archive: {
    ...optional("URL", "Archive of all changes in an object store: s3://bucket/prefix"),
    storable: "restart",
  },
  archive_endpoint: {
    ...optional("URL", "URL of the object store; Amazon S3 of the region without it"),
    storable: "restart",
  },
  archive_region: { ...text("us-east-1", "REGION", "Region of the object store"), storable: "restart" },
  archive_interval: {
    schema: { type: "number", title: "a number of seconds", minimum: 0.2, maximum: 3_600 },
    default: 1,
    placeholder: "SECONDS",
    description: "Shortest time between two objects of the archive",
    storable: "restart",
  },
  archive_keep: {
    // Ten years: a larger value is a typing error.
    ...integer("a number of days", 1, 3_650, 7, "Days of which the archive can restore any time"),
    placeholder: "DAYS",
    storable: "restart",
  },
  archive_access_key_id: {
    ...optional("ID", "Access key of the object store"),
    secret: true,
    noFlag: true,
    storable: "restart",
  },
  archive_secret_access_key: {
    ...optional("KEY", "Secret key of the object store"),
    secret: true,
    noFlag: true,
    storable: "restart",
  },
  master_key: {
    ...optional("KEY", "Master key: 64 hex digits or base64 of 32 bytes"),
    secret: true,
    noFlag: true,
  },
  operator_key: {
    ...optional("KEY", "API key of the operator, for the first start"),
    secret: true,
    noFlag: true,
  },
  rotation_grace_hours: {
    // Ten years: a larger value is a typing error.
    ...integer("a number of hours", 0, 10 * 365 * 24, 168, "How long a rotated platform key remains valid"),
    section: "keys",
    noFlag: true,
  },
  breaker_failures: {
    ...integer("a number", 3, 100, 10, "Consecutive failed attempts that open the circuit breaker"),
    section: "relay",
    noFlag: true,
  },
  payload_retention_hours: {
    ...integer("a number of hours", 0, 720, 168, "Retention of message payloads"),
    section: "relay",
    noFlag: true,
  },
  paypal: {
    ...list("HOST:PORT,…", "Hosts of the certificates of PayPal's webhooks, in place of its own"),
    section: "catch.certificate_hosts",
    noFlag: true,
  },
  sns: {
    ...list("HOST:PORT,…", "Hosts of certificates and subscriptions of Amazon SNS, in place of its own"),
    section: "catch.certificate_hosts",
    noFlag: true,
  },
  checkpoint_seconds: {
    // A day: whoever wants fewer checkpoints requests them.
    ...integer(
      "a number of seconds",
      1,
      86_400,
      1,
      "Seconds from a receipt to the checkpoint that covers it",
    ),
    section: "notary",
    noFlag: true,
  },
  witness_name: {
    ...optional("NAME", "Name under which this server cosigns checkpoints of other servers"),
    section: "notary",
    noFlag: true,
  },
  witnessed: {
    ...list("VKEY,…", "Verifier keys of the chains that this server witnesses"),
    section: "notary",
    noFlag: true,
  },
  login_keys: {
    ...choice(["all", "operator"], "all", "Whose API keys log browsers in"),
    section: "login",
    key: "keys",
    noFlag: true,
  },
  login_email_links: {
    ...flag("Log people in by a link sent by e-mail (needs a mail server)"),
    section: "login",
    key: "email_links",
    noFlag: true,
  },
  header_email: {
    ...optional("HEADER", "Header in which a trusted proxy sends the e-mail address of a person"),
    ...inHeader("email"),
  },
  header_name: { ...optional("HEADER", "Header with the name of the person"), ...inHeader("name") },
  header_groups: { ...optional("HEADER", "Header with the groups of the person"), ...inHeader("groups") },
  header_groups_separator: {
    ...text(",", "TEXT", "What separates groups in their header"),
    ...inHeader("groups_separator"),
  },
  header_roles: {
    schema: { type: "table" },
    default: [] as readonly string[],
    placeholder: "GROUP=ROLE,…",
    description: "Role of each group, and of everyone else (*)",
    ...inHeader("roles"),
  },
  header_account: {
    ...optional("ACCOUNT", "Account that roles apply to: its user_id or e-mail address"),
    ...inHeader("account"),
  },
  header_jwt: {
    ...optional("HEADER", "Header with a signed token, whose address counts in place of email"),
    ...inHeader("jwt"),
  },
  header_issuer: {
    ...optional("URL", "Issuer of the token: https://team.cloudflareaccess.com"),
    ...inHeader("issuer"),
  },
  header_audience: { ...optional("TEXT", "Audience of the token"), ...inHeader("audience") },
} as const satisfies Record<string, Declared>;

/** An option of the headers of a trusted proxy that log people in. */
function inHeader(key: string) {
  return { section: "login.header", key, noFlag: true } as const;
}

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

export type OptionName = keyof typeof DECLARED;

export type Values = { readonly [Name in OptionName]: (typeof DECLARED)[Name]["default"] };

/** An option with all of its names. */
export interface Option extends Declared {
  readonly name: OptionName;
  /** With its dashes; null if it is not available as a flag. */
  readonly flag: string | null;
  readonly variable: string;
  /** The key in the configuration file, with its section: `port`, `keys.rotation_grace_hours`. */
  readonly fileName: string;
  /** Description, with the default in parentheses. */
  readonly help: string;
}

/** Every option, in the order of the help. */
export const OPTIONS: readonly Option[] = Object.entries(DECLARED).map(
  ([name, declared]: [string, Declared]) => {
    const { section, key = name } = declared;
    const fileName = section === undefined ? key : `${section}.${key}`;
    const value = declared.default;
    const shown = typeof value === "string" && value.includes(" ") ? `"${value}"` : value;
    return {
      ...declared,
      name: name as OptionName,
      flag: declared.noFlag === true ? null : `--${name.replaceAll("_", "-")}`,
      variable: `NINEFOLD_${fileName.replaceAll(".", "_").toUpperCase()}`,
      fileName,
      help: ["string", "number"].includes(typeof value)
        ? `${declared.description} (${shown})`
        : declared.description,
    };
  },
);
