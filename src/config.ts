import { isAbsolute } from "node:path";
import { isatty } from "node:tty";
import { type ArchiveSettings, archivePlace } from "./archive/place.ts";
import { type ClusterSettings, engineAddress } from "./cluster/settings.ts";
import { readCommandLine } from "./config/command-line.ts";
import { type FilePerson, loginOf, readPeople } from "./config/login.ts";
import { assertObserverTargets } from "./config/observer-targets.ts";
import { type OidcProvider, type OidcSetting, readOidcProviders } from "./config/oidc.ts";
import { OPTIONS, type Option, type OptionName, type Value, type Values } from "./config/options.ts";
import {
  assertKnownVariables,
  type Environment,
  type FileLists,
  flagsGiven,
  ignoredVariables,
  readConfigFile,
  readEnvironment,
  type Source,
  type SourcedValues,
  type TierTables,
} from "./config/sources.ts";
import { FIGURE_NAMES, type ReadValue, readTiers, readValue } from "./config/values.ts";
import { errorText, StartupError } from "./kernel/errors.ts";
import { TIER_NAMES, type Tiers } from "./kernel/limits/tiers.ts";
import { isEmail } from "./kernel/mail/address.ts";
import { nextOccurrence } from "./kernel/scheduler/calendar.ts";
import { isBearerKey } from "./kernel/secrets/key-format.ts";
import { HOUR_MS } from "./kernel/time/units.ts";
import { createNativeCrypto } from "./verify/native.ts";
import { ED25519, isKeyName, KEY_NAME_LENGTH_MAX, parseVkey } from "./verify/note.ts";

/** The file descriptor of standard error: `process.stderr` would make a stream of it. */
const STDERR = 2;

/** Whether a person reads standard error. */
function isTerminal(): boolean {
  return isatty(STDERR);
}

/** The configuration: flags take precedence over the environment, the file and the defaults, in this order. */
export type Config = Readonly<ReturnType<typeof assemble>> & {
  /** Names of the options that differ from their defaults. */
  readonly optionsSet: readonly string[];
  /** Variables of options that were ignored, if any, because Kubernetes has set them for a service of this name. */
  readonly ignoredVariables?: readonly string[];
  /** Every option and every limit of every tier, for display. */
  readonly settings: readonly Setting[];
  /** Every option as it is. */
  readonly values: Values;
  /** Providers of logins by OpenID Connect. */
  readonly oidc: readonly OidcProvider[];
  /** People of the configuration file. */
  readonly people: readonly FilePerson[];
};

/** A value of the configuration and its source. */
export interface Setting {
  /** Its name in the configuration file: `port`, `keys.rotation_grace_hours`, `tiers.free.buckets`. */
  readonly name: string;
  /** Secrets are masked. */
  readonly value: Value;
  readonly source: Source;
  /** The flag, the variable, or the path of the file; null for a default. */
  readonly origin: string | null;
  readonly secret: boolean;
}

/**
 * Resolves the configuration of `ninefold serve`. The only reader of the environment.
 *
 * @throws StartupError with one line that describes the problem; UsageError for the command line.
 */
export function loadConfig(args: readonly string[], environment: Environment = process.env): Config {
  const flags = OPTIONS.flatMap(({ flag, placeholder }) => (flag === null ? [] : [{ flag, placeholder }]));
  return resolveConfig(flagsGiven(readCommandLine(args, flags, "ninefold serve")), environment);
}

/** Configuration of commands that work on the files of a data folder. */
export type FolderConfig = Pick<Config, "dataFolder" | "masterKey">;

/** Configuration of commands that read an archive. */
export interface ArchiveConfig extends FolderConfig {
  /** Null: no archive is configured. */
  readonly archive: ArchiveSettings | null;
  readonly extraCaPath: string | null;
}

/**
 * From the same sources as {@link resolveConfig}. Other options are not validated: a backup must not fail because the
 * server's port is invalid, or because one option of a pair is only on its command line.
 *
 * @throws StartupError, UsageError
 */
export function resolveFolderConfig(
  flags: SourcedValues,
  environment: Environment = process.env,
): FolderConfig {
  const names: readonly OptionName[] = ["config", "data", "master_key"];
  const { values } = resolveOptions(
    flags,
    environment,
    OPTIONS.filter(({ name }) => names.includes(name)),
  );
  return { dataFolder: values.data, masterKey: values.master_key };
}

/**
 * The cluster, for commands that ask its engine; from the same sources as {@link resolveConfig}.
 *
 * @throws StartupError if none is configured, UsageError
 */
export function resolveClusterConfig(
  flags: SourcedValues,
  environment: Environment = process.env,
): FolderConfig & { readonly cluster: ClusterSettings } {
  const names =
    "config data master_key extra_ca commit_log commit_log_trusted cell lease_seconds advertise".split(" ");
  const options = OPTIONS.filter(({ name }) => names.includes(name));
  const { values } = resolveOptions(flags, environment, options);
  const cluster = clusterOf(values);
  if (cluster === null)
    throw new StartupError("No cluster is configured: set --commit-log or NINEFOLD_COMMIT_LOG.");
  return { dataFolder: values.data, masterKey: values.master_key, cluster };
}

/**
 * Same as {@link resolveFolderConfig}, with the archive. `url` overrides the configured one.
 *
 * @throws StartupError, UsageError
 */
export function resolveArchiveConfig(
  flags: SourcedValues,
  url: string | null,
  environment: Environment = process.env,
): ArchiveConfig {
  const options = OPTIONS.filter(
    ({ name }) => name.startsWith("archive") || ["config", "data", "master_key", "extra_ca"].includes(name),
  );
  const { values } = resolveOptions(flags, environment, options);
  return {
    dataFolder: values.data,
    masterKey: values.master_key,
    extraCaPath: values.extra_ca,
    archive: archiveOf(url === null ? values : { ...values, archive: url }),
  };
}

/** Same as {@link loadConfig}, for commands that have parsed their flags. @throws StartupError, UsageError */
export function resolveConfig(flags: SourcedValues, environment: Environment = process.env): Config {
  const { options, values, tierTables, lists } = resolveOptions(flags, environment, OPTIONS);
  const path = values.config ?? "";
  const oidc = readOidcProviders(lists.oidc, path, environment);
  assertKnownVariables(environment, oidc.variables);
  const tiers = readTiers(tierTables);
  const optionsSet = OPTIONS.filter(({ name }) => options.get(name)?.source !== "default");
  const names = optionsSet.map(({ fileName }) => fileName);
  const people = readPeople(lists.people, path);
  const settings = [
    ...settingsOf(options, tiers, tierTables.tables, path),
    ...oidc.settings.map((setting) => settingOfFile(setting, path)),
    ...settingsOfPeople(people, path),
  ];
  assertPeerWitness(values.witness_name, values.witnessed);
  const variables = ignoredVariables(environment);
  const ignored = variables.length === 0 ? {} : { ignoredVariables: variables };
  const assembled = { ...assemble(values, tiers), optionsSet: names, ...ignored, settings, values, people };
  return checked({ ...assembled, oidc: oidc.providers }, options);
}

type Resolved = ReadonlyMap<OptionName, ReadValue>;

/** Without a file. */
const NO_TIERS: TierTables = { tables: undefined, placeOf: () => "" };
const NO_LISTS: FileLists = { oidc: undefined, people: undefined };

function resolveOptions(flags: SourcedValues, environment: Environment, options: readonly Option[]) {
  const variables = readEnvironment(environment, options);
  const path = (flags.get("config") ?? variables.get("config"))?.value;
  const file = typeof path === "string" ? readConfigFile(path) : null;
  const resolved = new Map<OptionName, ReadValue>();
  for (const { name, schema } of options) {
    const sourced = flags.get(name) ?? variables.get(name) ?? file?.values.get(name);
    if (sourced !== undefined) resolved.set(name, { ...sourced, value: readValue(schema, sourced) });
  }
  const isEphemeral = resolved.get("ephemeral")?.value === true;
  for (const { name, ephemeral, default: usual } of options) {
    const value = (isEphemeral ? ephemeral : undefined) ?? usual;
    if (!resolved.has(name)) resolved.set(name, { value, source: "default", origin: "" });
  }
  const values = Object.fromEntries([...resolved].map(([name, { value }]) => [name, value]));
  return {
    options: resolved as Resolved,
    values: values as Values,
    tierTables: file?.tiers ?? NO_TIERS,
    lists: file?.lists ?? NO_LISTS,
  };
}

function assemble(values: Values, tiers: Tiers) {
  return {
    // As a URL writes an IPv6 address.
    host: values.host.replace(/^\[(.*)\]$/, "$1"),
    port: values.port,
    dataFolder: values.data,
    ephemeral: values.ephemeral,
    testClock: values.test_clock,
    json: values.json,
    stopWithStdin: values.stop_with_stdin,
    signup: values.signup,
    durability: values.durability,
    acceptDamagedLog: values.accept_damaged_log,
    applyPath: values.apply,
    allowPrivateTargets: values.allow_private_targets,
    extraCaPath: values.extra_ca,
    tls: pair(values, "tls_cert", "tls_key", (certPath, keyPath) => ({ certPath, keyPath })),
    smtp: smtpOf(values),
    observerTargets: values.observer_targets,
    rdapBootstrap: values.rdap_bootstrap,
    publicUrl: values.public_url,
    brand: brandOf(values),
    corsOrigins: values.cors_origins,
    portalOrigins: values.portal_origins,
    trustProxy: values.trust_proxy,
    metricsAccess: values.metrics_access,
    audit: { retentionDays: values.audit_retention_days, keepsAddresses: values.audit_ip === "on" },
    dashboard: values.dashboard === "on",
    login: loginOf(values),
    mcp: values.mcp,
    mcpWrite: values.mcp_write,
    logLevel: values.log_level,
    logFormat: values.log_format === "auto" ? (isTerminal() ? "text" : "json") : values.log_format,
    masterKey: values.master_key,
    operatorKey: values.operator_key,
    operatorEmail: values.operator_email,
    rotationGraceMs: values.rotation_grace_hours * HOUR_MS,
    /** Milliseconds from a receipt to the checkpoint that covers it without a request. */
    checkpointDelayMs: values.checkpoint_seconds * 1000,
    /** This server as a witness for chains of others. */
    peerWitness: values.witness_name === null ? null : { name: values.witness_name, logs: values.witnessed },
    relay: {
      breakerFailures: values.breaker_failures,
      payloadRetentionMs: values.payload_retention_hours * HOUR_MS,
    },
    certificateHosts: { paypal: values.paypal, sns: values.sns },
    backups: backupsOf(values),
    archive: archiveOf(values),
    cluster: clusterOf(values),
    tiers,
  };
}

/** The options that an operator can store in the database. */
export const STORABLE: readonly Option[] = OPTIONS.filter(({ storable }) => storable !== undefined);

/** Values that are stored in the database, by option. */
export type StoredValues = ReadonlyMap<string, unknown>;

/**
 * The configuration with stored values in place of defaults: what a flag, a variable or the file sets wins.
 *
 * @throws StartupError that begins with the name of the option, for a value that cannot be used.
 */
export function withStored(config: Config, stored: StoredValues): Config {
  const read = new Map<string, Value>();
  for (const { name, schema } of STORABLE) {
    const isFree = config.settings.some((setting) => setting.name === name && setting.source === "default");
    if (!isFree || !stored.has(name)) continue;
    const value = stored.get(name);
    read.set(name, readValue(schema, { value, source: "stored", origin: name }));
  }
  if (read.size === 0) return config;
  const values: Values = { ...config.values, ...Object.fromEntries(read) };
  const isStored = (...names: OptionName[]) => names.some((name) => read.has(name));
  const resolved: Config = {
    ...config,
    values,
    publicUrl: isStored("public_url") ? values.public_url : config.publicUrl,
    brand: isStored("brand_color", "brand_logo", "brand_website") ? brandOf(values) : config.brand,
    smtp: isStored("smtp_url", "mail_from") ? smtpOf(values) : config.smtp,
    backups: isStored("backup_dir", "backup_cron", "backup_keep") ? backupsOf(values) : config.backups,
    archive: STORABLE.some(({ name }) => name.startsWith("archive") && read.has(name))
      ? archiveOf(values)
      : config.archive,
    settings: config.settings.map((setting) => {
      const value = read.get(setting.name);
      if (value === undefined) return setting;
      return { ...setting, value: setting.secret ? masked(setting.name, value) : value, source: "stored" };
    }),
  };
  assertStorable(resolved);
  if (read.has("backup_dir") && !isAbsolute(values.backup_dir ?? ""))
    throw new StartupError(`backup_dir: "${values.backup_dir}" is not an absolute path.`);
  return resolved;
}

/** What status pages show that have no color, logo or website of their own. */
function brandOf(values: Values) {
  return { color: values.brand_color, logo: values.brand_logo, website_url: values.brand_website };
}

const COLOR = /^#[0-9a-fA-F]{6}$/;
const LOGO = /^data:image\/(?:png|jpeg|webp|svg\+xml);base64,[A-Za-z0-9+/]+={0,2}$/;
/** As of the logo of a page: 32 KiB in base64. */
const LOGO_LENGTH_MAX = 44_000;

/** @throws StartupError */
function assertBrand({ color, logo, website_url }: Config["brand"]): void {
  if (color !== null && !COLOR.test(color))
    throw new StartupError(`brand_color: "${color}" is not a color such as #0f766e.`);
  if (logo !== null && !(logo.length <= LOGO_LENGTH_MAX && LOGO.test(logo)))
    throw new StartupError(
      "brand_logo must be a base64 data URI of a PNG, JPEG, WebP or SVG image of at most 32 KiB.",
    );
  if (website_url !== null && !/^https?:$/.test(URL.parse(website_url)?.protocol ?? ""))
    throw new StartupError(`brand_website: "${website_url}" is not a URL such as https://example.com.`);
}

function smtpOf(values: Values) {
  return pair(values, "smtp_url", "mail_from", (url, from) => ({ url, from }));
}

/** Scheduled backups: folder, cron expression (UTC), and number of backups to keep; null without a folder. */
function backupsOf({ backup_dir, backup_cron, backup_keep }: Values) {
  return backup_dir === null ? null : { folder: backup_dir, cron: backup_cron, keep: backup_keep };
}

/** @throws StartupError for what only the options that can be stored have to meet. */
function assertStorable({ smtp, publicUrl, backups, archive, brand }: Config): void {
  assertBrand(brand);
  if (backups !== null) assertCron(backups.cron);
  if (archive !== null) archivePlace(archive);
  if (smtp !== null && !/^smtps?:$/.test(URL.parse(smtp.url)?.protocol ?? "")) {
    throw new StartupError("smtp_url must be a URL such as smtp://user:password@host:587.");
  }
  if (publicUrl !== null && !isPublicUrl(publicUrl)) {
    throw new StartupError(
      `public_url: "${publicUrl}" is not a URL such as https://ninefold.example.com or https://example.com/ninefold, without a query and a slash at its end.`,
    );
  }
}

/** The cluster that this node is part of; null without one. */
function clusterOf(values: Values): ClusterSettings | null {
  if (values.commit_log === null) return null;
  return {
    url: values.commit_log,
    cell: values.cell,
    leaseMs: values.lease_seconds * 1_000,
    advertise: values.advertise,
    isTrusted: values.commit_log_trusted,
    extraCaPath: values.extra_ca,
  };
}

/** The archive; null without one. @throws StartupError if its credentials are missing. */
function archiveOf(values: Values): ArchiveSettings | null {
  const { archive: url, archive_access_key_id, archive_secret_access_key } = values;
  if (url === null) return null;
  if (archive_access_key_id === null || archive_secret_access_key === null) {
    throw new StartupError(
      "archive needs NINEFOLD_ARCHIVE_ACCESS_KEY_ID and NINEFOLD_ARCHIVE_SECRET_ACCESS_KEY.",
    );
  }
  return {
    url,
    endpoint: values.archive_endpoint,
    region: values.archive_region,
    accessKeyId: archive_access_key_id,
    secretAccessKey: archive_secret_access_key,
    intervalMs: values.archive_interval * 1_000,
    keepMs: values.archive_keep * 24 * HOUR_MS,
  };
}

type Pair = "tls_cert" | "tls_key" | "smtp_url" | "mail_from";

function pair<T>(values: Values, a: Pair, b: Pair, build: (a: string, b: string) => T): T | null {
  const { [a]: first, [b]: second } = values;
  if (first === null && second === null) return null;
  if (first === null || second === null) {
    throw new StartupError(`${a} and ${b} go together: one of them is missing.`);
  }
  return build(first, second);
}

/** Characters of names and addresses, which URLs of this server can contain: no other URL, and no zone of an interface. */
const LISTENING_HOST = /^[A-Za-z0-9._*:-]+$/;

function assertHost(host: string): void {
  if (LISTENING_HOST.test(host) && URL.canParse(`http://${host.includes(":") ? `[${host}]` : host}`)) return;
  throw new StartupError(
    `host: "${host}" is not an address such as 127.0.0.1, 0.0.0.0 or ::1. The port is set by port.`,
  );
}

/** Whether it is an origin, optionally with the path prefix under which a proxy serves this server. */
function isPublicUrl(text: string): boolean {
  const url = URL.parse(text);
  return (
    url !== null && /^https?:$/.test(url.protocol) && text === url.origin + url.pathname.replace(/\/$/, "")
  );
}

const ORIGIN = /^https?:\/\/[^/?#\s]+$/;
/** An origin in a content security policy, which may stand for all subdomains. No character of it ends a directive. */
const FRAMING_ORIGIN = /^https?:\/\/(?:\*\.)?[A-Za-z0-9.-]+(?::[0-9]{1,5})?$/;

function assertCron(expression: string): void {
  try {
    nextOccurrence(expression, 0);
  } catch (error) {
    throw new StartupError(
      `backup_cron: "${expression}" is not a cron expression such as "0 3 * * *" (${errorText(error)}).`,
    );
  }
}

function checked(config: Config, options: Resolved): Config {
  const useless = (["backup_cron", "backup_keep"] as const).find(
    (name) => options.get(name)?.source !== "default",
  );
  assertHost(config.host);
  if (config.backups === null && useless !== undefined) {
    throw new StartupError(`${useless} needs backup_dir: the folder for the backups.`);
  }
  assertStorable(config);
  if (config.cluster !== null) {
    engineAddress(config.cluster);
    if (config.ephemeral) throw new StartupError("commit_log cannot be used with --ephemeral.");
    const { advertise } = config.cluster;
    if (advertise !== null && !/^https?:$/.test(URL.parse(advertise)?.protocol ?? ""))
      throw new StartupError("advertise must be a URL such as https://n1.internal:9909.");
  }
  if (config.mcpWrite && !config.mcp) throw new StartupError("mcp_write needs mcp.");
  if (!config.ephemeral) assertKept(config);
  if (config.operatorKey !== null && !isBearerKey(config.operatorKey)) {
    throw new StartupError(
      "NINEFOLD_OPERATOR_KEY is not a well-formed platform key (sm_…, 43 characters, checksum).",
    );
  }
  if (config.operatorEmail !== null && !isEmail(config.operatorEmail)) {
    throw new StartupError(`operator_email: "${config.operatorEmail}" is not an e-mail address.`);
  }
  assertObserverTargets("observer_targets", config.observerTargets);
  assertOrigins("cors_origins", config.corsOrigins, ORIGIN);
  assertOrigins("portal_origins", config.portalOrigins, FRAMING_ORIGIN);
  return config;
}

/** @throws StartupError for what only a temporary database may have. */
function assertKept({ testClock, durability }: Config): void {
  if (testClock) throw new StartupError("--test-clock needs --ephemeral.");
  if (durability === "none")
    throw new StartupError("--durability none needs --ephemeral: a power cut would damage the database.");
}

/** @throws StartupError for a name that no key can have, and for what is not the verifier key of a log. */
function assertPeerWitness(name: string | null, witnessed: readonly string[]): void {
  if (name === null) {
    if (witnessed.length === 0) return;
    throw new StartupError("notary.witnessed needs notary.witness_name: the name in the cosignatures.");
  }
  if (!isKeyName(name))
    throw new StartupError(
      `notary.witness_name: "${name}" must have at most ${KEY_NAME_LENGTH_MAX} characters, without spaces and +.`,
    );
  const crypto = createNativeCrypto();
  const wrong = witnessed.find((vkey) => parseVkey(crypto, vkey)?.type !== ED25519);
  if (wrong !== undefined)
    throw new StartupError(
      `notary.witnessed: "${wrong}" is not the vkey of a chain, as GET /v1/witness/checkpoint?format=json shows it.`,
    );
}

/** @throws StartupError naming the option and the text that is no origin. */
function assertOrigins(option: OptionName, origins: readonly string[], form: RegExp): void {
  const wrong = origins.find((origin) => !form.test(origin));
  if (wrong !== undefined)
    throw new StartupError(`${option}: "${wrong}" is not an origin such as https://app.example.com.`);
}

/** Every option in the order of the help, then every limit of every tier. `table` is the `[tiers]` table of the file at `path`. */
function settingsOf(
  options: ReadonlyMap<OptionName, ReadValue>,
  tiers: Tiers,
  table: unknown,
  path: string,
): Setting[] {
  const setting = (name: string, { value, source, origin }: ReadValue, secret = false): Setting => {
    const from = { default: null, stored: null, file: path, flag: origin, variable: origin }[source];
    return { name, value: secret ? masked(name, value) : value, source, origin: from, secret };
  };
  const tables = new Map(Object.entries((table ?? {}) as Record<string, object>));
  return [
    ...OPTIONS.flatMap(({ name, fileName, secret }) => {
      const read = options.get(name);
      return read === undefined ? [] : [setting(fileName, read, secret)];
    }),
    ...TIER_NAMES.flatMap((tier) =>
      [...FIGURE_NAMES].map(([name, figure]) => {
        const source = Object.hasOwn(tables.get(tier) ?? {}, name) ? "file" : "default";
        return setting(`tiers.${tier}.${name}`, { value: tiers[tier][figure], source, origin: "" });
      }),
    ),
  ];
}

/** A setting of a table of the file at `path`. */
function settingOfFile({ variable, ...setting }: OidcSetting, path: string): Setting {
  return { ...setting, origin: setting.source === "file" ? path : variable };
}

/** The people of the file, each with what they may do. */
function settingsOfPeople(people: readonly FilePerson[], path: string): Setting[] {
  return people.map(({ email, role, projects, account }) => ({
    name: account === null ? `people.${email}` : `people.${account}.${email}`,
    value: role ?? projects.map((grant) => `${grant.projectId}=${grant.role}`),
    source: "file",
    origin: path,
    secret: false,
  }));
}

const MASK = "********";

/** A masked secret. Of a mail server's URL, the host is shown. */
function masked(name: string, value: Value): Value {
  if (value === null) return value;
  const url = name === "smtp_url" ? URL.parse(String(value)) : null;
  if (url === null) return MASK;
  const user = `${url.username}${url.password}` === "" ? "" : `${MASK}@`;
  return `${url.protocol}//${user}${url.host}${url.search === "" ? "" : `?${MASK}`}`;
}
