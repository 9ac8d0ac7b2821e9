import { isIP } from "node:net";
import { ROLES, type Role } from "../kernel/callers/role.ts";
import { StartupError } from "../kernel/errors.ts";
import { isEmail } from "../kernel/mail/address.ts";
import { isPublicAddress } from "../kernel/outbound/address.ts";
import { didYouMean } from "./command-line.ts";
import type { Schema, Value } from "./options.ts";
import { type Environment, readText, type Source, secretIn } from "./sources.ts";
import { readValue } from "./values.ts";

/** Providers of one server: a page shows a button for each. */
export const OIDC_PROVIDERS_MAX = 5;
/** A name is part of a path and of the name of a variable. */
const NAME = /^[a-z0-9-]{1,32}$/;
const DOMAIN = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/i;
/** Issuers that stand for every tenant of Microsoft Entra, who choose their addresses themselves. */
const SEVERAL_TENANTS = /^\/(?:common|organizations|consumers)(?:\/|$)/i;
/** Names that no public name server knows. */
const INNER_NAME =
  /\.(?:localhost|local|internal|intranet|private|lan|corp|home|home\.arpa|localdomain|test)\.?$/i;
/** Names of the variables of a provider begin with it. */
const VARIABLE = "NINEFOLD_LOGIN_OIDC_";

const TEXT: Schema = { type: "string" };
const LIST: Schema = { type: "list" };
const FLAG: Schema = { type: "boolean" };

/** The fields of `[[login.oidc]]`, in the order in which they are printed. `roles` is a table of its own. */
export const FIELDS = {
  name: TEXT,
  label: TEXT,
  issuer: TEXT,
  client_id: TEXT,
  client_secret: TEXT,
  client_secret_file: TEXT,
  scopes: LIST,
  allowed_domains: LIST,
  allowed_groups: LIST,
  groups_claim: TEXT,
  create: FLAG,
  trust_email: FLAG,
  account: TEXT,
} as const satisfies Record<string, Schema>;
type Field = keyof typeof FIELDS;
const FIELD_NAMES = [...Object.keys(FIELDS), "roles"];

/** A provider of logins by OpenID Connect. */
export interface OidcProvider {
  readonly name: string;
  /** Text of its button. */
  readonly label: string;
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly scopes: readonly string[];
  /** In lower case. Empty: any. */
  readonly allowedDomains: readonly string[];
  /** Empty: any. */
  readonly allowedGroups: readonly string[];
  readonly groupsClaim: string;
  /** Role of each group, and of everyone else (`*`); empty: the provider sets no role. */
  readonly roles: ReadonlyMap<string, Role>;
  /** Whether people who are unknown are created. */
  readonly create: boolean;
  /** Whether addresses count as verified without a claim that says so. */
  readonly trustEmail: boolean;
  /** The account of its people, as `user_id` or e-mail address; null: any account in which a person exists. */
  readonly account: string | null;
}

/** A setting of a provider as `config print` shows it. */
export interface OidcSetting {
  readonly name: string;
  readonly value: Value;
  readonly source: Source;
  /** The variable; null for the file and for defaults. */
  readonly variable: string | null;
  readonly secret: boolean;
}

/** The providers of a configuration file, with how their settings are shown. */
export interface OidcProviders {
  readonly providers: readonly OidcProvider[];
  readonly settings: readonly OidcSetting[];
  /** Variables that their secrets can have. */
  readonly variables: readonly string[];
}

/**
 * Reads the `[[login.oidc]]` tables of a configuration file. `path`: the file, for messages.
 * @throws StartupError for a table that is incomplete or unsafe.
 */
export function readOidcProviders(tables: unknown, path: string, environment: Environment): OidcProviders {
  if (tables === undefined) return { providers: [], settings: [], variables: [] };
  if (!Array.isArray(tables) || !tables.every(isTable))
    throw new StartupError(`${path}: login.oidc must be tables such as [[login.oidc]].`);
  if (tables.length > OIDC_PROVIDERS_MAX)
    throw new StartupError(`${path}: login.oidc: at most ${OIDC_PROVIDERS_MAX} providers are possible.`);
  const read = tables.map((table, at) => readProvider(table, `${path}: login.oidc ${at + 1}`, environment));
  const names = read.map(({ provider }) => provider.name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined)
    throw new StartupError(`${path}: login.oidc: two providers have the name "${twice}".`);
  return {
    providers: read.map(({ provider }) => provider),
    settings: read.flatMap(({ settings }) => settings),
    variables: names.flatMap((name) => [secretVariable(name), `${secretVariable(name)}_FILE`]),
  };
}

/** The variable of the client secret of a provider. */
function secretVariable(name: string): string {
  return `${VARIABLE}${name.replaceAll("-", "_").toUpperCase()}_CLIENT_SECRET`;
}

function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The values of one table. */
class Table {
  constructor(
    private readonly values: Readonly<Record<string, unknown>>,
    readonly where: string,
  ) {
    const unknown = Object.keys(values).find((name) => !FIELD_NAMES.includes(name));
    if (unknown !== undefined)
      throw this.error(`there is no setting "${unknown}".${didYouMean(unknown, FIELD_NAMES)}`);
  }

  has(name: Field | "roles"): boolean {
    return this.values[name] !== undefined;
  }

  text(name: Field): string | null {
    return this.has(name) ? String(this.read(name)) : null;
  }

  required(name: Field): string {
    const value = this.text(name);
    if (value === null) throw this.error(`${name} is missing.`);
    return value;
  }

  list(name: Field): readonly string[] | null {
    const value = this.has(name) ? this.read(name) : null;
    return Array.isArray(value) ? value : null;
  }

  flag(name: Field): boolean {
    return this.has(name) && this.read(name) === true;
  }

  get roles(): Map<string, Role> {
    const { roles = {} } = this.values;
    if (!isTable(roles)) throw this.error('roles must be a table such as { "ops" = "admin" }.');
    return new Map(Object.entries(roles).map(([group, role]) => [group, this.role(group, role)]));
  }

  error(what: string): StartupError {
    return new StartupError(`${this.where}: ${what}`);
  }

  private role(group: string, name: unknown): Role {
    const role = ROLES.find((known) => known === name);
    if (role === undefined) throw this.error(`roles: "${group}" must be one of ${ROLES.join(", ")}.`);
    return role;
  }

  private read(name: Field): Value {
    const origin = `${this.where}: ${name}`;
    return readValue(FIELDS[name], { value: this.values[name], source: "file", origin });
  }
}

function readProvider(values: Record<string, unknown>, where: string, environment: Environment) {
  const table = new Table(values, where);
  const name = table.required("name");
  if (!NAME.test(name))
    throw table.error(`name: "${name}" must have 1 to 32 of the characters a to z, 0 to 9 and -.`);
  const secret = clientSecret(table, secretVariable(name), environment);
  const issuer = table.required("issuer");
  assertIssuer(table, issuer);
  const provider: OidcProvider = {
    name,
    label: table.text("label") ?? name,
    issuer,
    clientId: table.required("client_id"),
    clientSecret: secret.value,
    scopes: [...new Set(["openid", ...(table.list("scopes") ?? ["email", "profile"])])],
    allowedDomains: (table.list("allowed_domains") ?? []).map((domain) => domain.toLowerCase()),
    allowedGroups: table.list("allowed_groups") ?? [],
    groupsClaim: table.text("groups_claim") ?? "groups",
    roles: table.roles,
    create: table.flag("create"),
    trustEmail: table.flag("trust_email"),
    account: table.text("account"),
  };
  assertSafe(table, provider);
  return { provider, settings: settingsOf(provider, table, secret.variable) };
}

/** @throws StartupError for a provider that could log in the wrong people. */
function assertSafe(table: Table, provider: OidcProvider): void {
  const { account, roles, create, allowedGroups, allowedDomains, trustEmail, issuer } = provider;
  if (account === null) {
    const needy = [
      roles.size > 0 && "roles",
      create && "create",
      allowedGroups.length > 0 && "allowed_groups",
    ];
    const first = needy.find((need) => need !== false);
    if (first !== undefined)
      throw table.error(
        `${first} needs account: the user_id or e-mail address of the account that it is for.`,
      );
  } else if (!account.startsWith("usr_") && !isEmail(account)) {
    throw table.error(`account: "${account}" is neither a user_id nor an e-mail address.`);
  }
  if (create && allowedDomains.length === 0 && allowedGroups.length === 0)
    throw table.error(
      "create needs allowed_domains or allowed_groups: otherwise everyone whom the provider knows could join.",
    );
  const wrong = allowedDomains.find((domain) => !DOMAIN.test(domain));
  if (wrong !== undefined)
    throw table.error(`allowed_domains: "${wrong}" is not a domain such as example.com.`);
  if (trustEmail && SEVERAL_TENANTS.test(new URL(issuer).pathname))
    throw table.error(
      "trust_email needs the issuer of one tenant: those of other tenants choose their addresses themselves.",
    );
}

/**
 * Plain HTTP is for providers within the own network: a name that does not show that it is one needs HTTPS. What a name
 * leads to is checked by each request.
 * @throws StartupError
 */
function assertIssuer(table: Table, issuer: string): void {
  const url = /^https?:\/\//.test(issuer) ? URL.parse(issuer) : null;
  const isPlain = url?.username === "" && url.password === "" && !url.pathname.includes("/.well-known/");
  if (!isPlain || issuer.includes("?") || issuer.includes("#"))
    throw table.error(
      `issuer: "${issuer}" is not a URL such as https://accounts.example.com, as the provider's metadata names it.`,
    );
  if (url?.protocol === "http:" && !isInner(url.hostname.replace(/^\[|\]$/g, "")))
    throw table.error(
      `issuer: "${issuer}" must be an https URL: http is for loopback and private addresses.`,
    );
}

/** Whether a host can only be of the own network. */
function isInner(host: string): boolean {
  return isIP(host) === 0 ? !host.includes(".") || INNER_NAME.test(host) : !isPublicAddress(host);
}

/** The secret, from the variable, the file that a variable names, the file that the table names, or the table. */
function clientSecret(table: Table, variable: string, environment: Environment) {
  const { value, origin } = secretIn(environment, variable);
  const [text, path] = [table.text("client_secret"), table.text("client_secret_file")];
  if (text !== null && path !== null)
    throw table.error("client_secret and client_secret_file exclude each other.");
  if (value !== undefined && value !== "") return { value, variable: origin };
  const found = path === null ? text : readText(path, `${table.where}: client_secret_file`).trim();
  if (found === null || found === "")
    throw table.error(`client_secret is missing: set it, client_secret_file or ${variable}.`);
  return { value: found, variable: null };
}

function settingsOf(provider: OidcProvider, table: Table, variable: string | null): OidcSetting[] {
  const { name, label, issuer, clientId, scopes, allowedDomains, allowedGroups } = provider;
  const { groupsClaim, create, trustEmail, account, roles } = provider;
  const setting = (field: Field, value: Value): OidcSetting => ({
    name: `login.oidc.${name}.${field}`,
    value,
    source: table.has(field) ? "file" : "default",
    variable: null,
    secret: false,
  });
  return [
    setting("label", label),
    setting("issuer", issuer),
    setting("client_id", clientId),
    {
      ...setting("client_secret", "********"),
      source: variable === null ? "file" : "variable",
      variable,
      secret: true,
    },
    setting("scopes", scopes),
    setting("allowed_domains", allowedDomains),
    setting("allowed_groups", allowedGroups),
    setting("groups_claim", groupsClaim),
    {
      ...setting(
        "name",
        [...roles].map(([group, role]) => `${group}=${role}`),
      ),
      name: `login.oidc.${name}.roles`,
      source: table.has("roles") ? "file" : "default",
    },
    setting("create", create),
    setting("trust_email", trustEmail),
    setting("account", account),
  ];
}

/** The lines of an initial configuration file about providers, as comments. */
export const OIDC_EXAMPLE = `# A provider of logins by OpenID Connect. At most ${OIDC_PROVIDERS_MAX}.
# [[login.oidc]]
# name = "google"
# label = "Google"
# issuer = "https://accounts.google.com"
# client_id = "TEXT"
# client_secret_file = "FILE"
# scopes = ["openid", "email", "profile"]
# allowed_domains = []
# allowed_groups = []
# groups_claim = "groups"
# roles = {}
# create = false
# trust_email = false
# account = "TEXT"
`;
