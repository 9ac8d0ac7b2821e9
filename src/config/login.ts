import { isRole, type Role } from "../kernel/callers/role.ts";
import { isWithin, parseRange, type Range } from "../kernel/data/addresses.ts";
import { StartupError } from "../kernel/errors.ts";
import { isEmail } from "../kernel/mail/address.ts";
import type { Values } from "./options.ts";

/** The longest name of a header, and of a group. */
const NAME_LENGTH_MAX = 255;
const HEADER = /^[A-Za-z0-9!#$%&'*+.^`|~-]{1,64}$/;
/** Most people in a configuration file: a start applies them all. */
const PEOPLE_MAX = 1_000;
const PROJECTS_MAX = 100;

/** What logs people in. Their own keys and passkeys need no setting. */
export interface LoginSettings {
  /** Whose API keys log browsers in. */
  readonly keys: "all" | "operator";
  readonly emailLinks: boolean;
  /** Null: no header logs anyone in. */
  readonly header: HeaderSettings | null;
}

/** The headers in which a trusted proxy says who its client is. */
export interface HeaderSettings {
  /** Header with the address; null: the address is that of {@link token}. */
  readonly email: string | null;
  readonly name: string | null;
  readonly groups: string | null;
  readonly separator: string;
  /** Roles by group, `*` for everyone else; empty: groups change no role. */
  readonly roles: ReadonlyMap<string, Role>;
  /** Account that the roles apply to, by id or address; null without roles. */
  readonly account: string | null;
  /** The header with a signed token, and what it must be signed for; null without one. */
  readonly token: { readonly header: string; readonly issuer: string; readonly audience: string } | null;
}

/** A person of the configuration file. */
export interface FilePerson {
  readonly email: string;
  /** Null: the person has none, or gives their own. */
  readonly name: string | null;
  /** Null: roles in single projects. */
  readonly role: Role | null;
  readonly projects: readonly { readonly projectId: string; readonly role: Role }[];
  /** Account by id or address; null: the operator's. */
  readonly account: string | null;
}

/** @throws StartupError */
export function loginOf(values: Values): LoginSettings {
  return { keys: values.login_keys, emailLinks: values.login_email_links, header: headerOf(values) };
}

function headerOf(values: Values): HeaderSettings | null {
  const {
    header_email: email,
    header_jwt: jwt,
    header_name: name,
    header_groups: groups,
    header_account: account,
    header_issuer: issuer,
    header_audience: audience,
  } = values;
  const isSet = [email, jwt, name, groups, account, issuer, audience].some((setting) => setting !== null);
  if (!isSet && values.header_roles.length === 0) return null;
  if ((email === null) === (jwt === null))
    throw new StartupError("login.header needs either email or jwt: the header with the address.");
  if (jwt !== null && (issuer === null || audience === null))
    throw new StartupError("login.header.jwt needs login.header.issuer and login.header.audience.");
  if (jwt === null && (issuer !== null || audience !== null))
    throw new StartupError("login.header.issuer and login.header.audience need login.header.jwt.");
  for (const header of [email, jwt, name, groups])
    if (header !== null && !HEADER.test(header))
      throw new StartupError(`login.header: "${header}" is not the name of a header, without _.`);
  const roles = rolesOf(values.header_roles);
  if (roles.size > 0 && groups === null)
    throw new StartupError("login.header.roles needs login.header.groups: the header with the groups.");
  if (roles.size > 0 && account === null)
    throw new StartupError("login.header.roles needs login.header.account: the account that they apply to.");
  assertNarrow(values.trust_proxy);
  const token = jwt === null ? null : { header: jwt, issuer: issuer ?? "", audience: audience ?? "" };
  return { email, name, groups, separator: values.header_groups_separator, roles, account, token };
}

/** Roles by group, of a list such as `ops=admin`. @throws StartupError */
function rolesOf(list: readonly string[]): Map<string, Role> {
  return new Map(
    list.map((pair) => {
      // A group can have an equals sign in its name, a role has none.
      const at = pair.lastIndexOf("=");
      const group = pair.slice(0, at).trim();
      const role = pair.slice(at + 1).trim();
      if (!isRole(role) || group === "" || group.length > NAME_LENGTH_MAX)
        throw new StartupError(
          `login.header.roles: "${pair}" is not a group with a role: viewer, responder, editor, admin, owner.`,
        );
      return [group, role];
    }),
  );
}

const IPV4_BITS = 32;
const IPV6_BITS = 128;
/** The widest networks that proxies can be in, whose headers say who logs in: by their prefixes. */
const WIDEST_IPV4 = 8;
const WIDEST_IPV6 = 16;

/**
 * Everyone within these ranges can log in as anyone.
 * @throws StartupError for none, and for ranges that are together wider than /8 (IPv4) or /16 (IPv6).
 */
function assertNarrow(trusted: readonly string[]): void {
  if (trusted.length === 0)
    throw new StartupError(
      "login.header needs trust_proxy: the addresses of the proxy that sends the header.",
    );
  const ranges = trusted.map((range) => parseRange(range));
  for (const [kind, bits, widest] of [
    ["ipv4", IPV4_BITS, WIDEST_IPV4],
    ["ipv6", IPV6_BITS, WIDEST_IPV6],
  ] as const) {
    const all = ranges.filter(([base]) => base.kind() === kind);
    // Two ranges are apart, or one is within the other.
    const outer = all.filter(
      (range, at) => !all.some((other, of) => of !== at && contains(other, range, of < at)),
    );
    const part = outer.reduce((sum, [, prefix]) => sum + 2 ** -Math.min(prefix, bits), 0);
    if (part <= 2 ** -widest) continue;
    throw new StartupError(
      `login.header: trust_proxy is wider than /${widest}, and everyone within it could log in as anyone. List the addresses of the proxy.`,
    );
  }
}

/** Whether a range contains another one, or equals it and comes first. */
function contains([base, bits]: Range, [inner, innerBits]: Range, isFirst: boolean): boolean {
  if (bits > innerBits || (bits === innerBits && !isFirst)) return false;
  return isWithin(inner, [[base, bits]]);
}

/** The `[[people]]` of the file at `path`. @throws StartupError */
export function readPeople(list: unknown, path: string): FilePerson[] {
  if (list === undefined) return [];
  if (!Array.isArray(list) || list.length > PEOPLE_MAX)
    throw new StartupError(`${path}: people must be tables such as [[people]], at most ${PEOPLE_MAX}.`);
  const people = list.map((person: unknown, at) => readPerson(person, `${path}: [[people]] ${at + 1}`));
  const seen = new Set<string>();
  for (const { email, account } of people) {
    const name = `${email} ${account ?? ""}`.toLowerCase();
    if (seen.has(name)) throw new StartupError(`${path}: [[people]] has ${email} twice.`);
    seen.add(name);
  }
  return people;
}

const PERSON_FIELDS = ["email", "name", "role", "projects", "account"];

function readPerson(value: unknown, where: string): FilePerson {
  const table = tableOf(value, where, PERSON_FIELDS);
  const { email, name = null, role = null, projects = "all", account = null } = table;
  if (typeof email !== "string" || !isEmail(email))
    throw new StartupError(`${where}: email must be an e-mail address.`);
  for (const [field, value] of Object.entries({ name, account }))
    if (value !== null && (typeof value !== "string" || value === "" || value.length > NAME_LENGTH_MAX))
      throw new StartupError(`${where}: ${field} must be a text.`);
  const isList = projects !== "all";
  if (isList === (role !== null))
    throw new StartupError(`${where}: needs either role or projects, a list of projects with roles.`);
  if (role !== null && !isRole(role))
    throw new StartupError(`${where}: role must be one of viewer, responder, editor, admin, owner.`);
  return {
    email,
    name: name as string | null,
    role: role as Role | null,
    projects: isList ? readProjects(projects, where) : [],
    account: account as string | null,
  };
}

function readProjects(value: unknown, where: string): FilePerson["projects"] {
  if (!Array.isArray(value) || value.length === 0 || value.length > PROJECTS_MAX)
    throw new StartupError(
      `${where}: projects must be a list of 1 to ${PROJECTS_MAX} projects such as { project_id = "proj_…", role = "editor" }.`,
    );
  const projects = value.map((item: unknown) => {
    const { project_id, role } = tableOf(item, `${where}: projects`, ["project_id", "role"]);
    if (typeof project_id !== "string" || !isRole(role) || role === "owner")
      throw new StartupError(
        `${where}: each of projects needs project_id, and role: viewer, responder, editor or admin.`,
      );
    return { projectId: project_id, role };
  });
  const twice = projects.find(
    ({ projectId }, at) => projects.findIndex((earlier) => earlier.projectId === projectId) < at,
  );
  if (twice !== undefined) throw new StartupError(`${where}: projects has ${twice.projectId} twice.`);
  return projects;
}

function tableOf(value: unknown, where: string, fields: readonly string[]): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new StartupError(`${where}: must be a table.`);
  const unknown = Object.keys(value).find((name) => !fields.includes(name));
  if (unknown !== undefined)
    throw new StartupError(`${where}: there is no field "${unknown}": ${fields.join(", ")}.`);
  return value as Record<string, unknown>;
}
