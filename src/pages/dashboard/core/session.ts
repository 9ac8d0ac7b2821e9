import { signal } from "@preact/signals";
import type { OperationName } from "../../../client/api.ts";
import { ACCESS } from "../../../client/generated/access.ts";
import type { CurrentSession, ProjectItem, Session, SessionPerson } from "../../../client/generated/api.ts";
import { Failure } from "./api.ts";
import { errorToast } from "./toasts.ts";

/** The session; null when logged out, undefined until the server has responded. */
export const session = signal<Session | null | undefined>(undefined);
/** Why the user is logged out, if there is a message. */
export const logInNote = signal<string | null>(null);
/** Ways to log in, in the order in which the login page offers them. */
export const loginMethods = signal<CurrentSession["login"]["methods"]>([]);
/** Projects that the user can open. */
export const projects = signal<readonly ProjectItem[]>([]);
/** The current project; null for the account's default project. */
export const projectId = signal<string | null>(null);

/** Roles of people, each with everything that the ones before it may do. */
export const ROLES = ["viewer", "responder", "editor", "admin", "owner"] as const;
/** One of {@link ROLES}. */
export type Role = (typeof ROLES)[number];

/** Whether a role may do what another one may. */
export function isAtLeast(role: Role, least: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(least);
}

/** Who may call an operation. */
interface Access {
  readonly scope: string;
  /** The least role of people; undefined for none. */
  readonly role: Role | undefined;
  readonly isOfAccount: boolean;
}

const ACCESS_OF = new Map<string, Access>();
for (const [group, names] of Object.entries(ACCESS)) {
  const [scope = "", least, account] = group.split(" ");
  const role = ROLES.find((name) => name === least);
  for (const operation of names)
    ACCESS_OF.set(operation, { scope, role, isOfAccount: account !== undefined });
}

/** Why the session cannot call an operation, as the reader is told; null if it can. */
export function whyNot(operation: OperationName): string | null {
  const who = session.value;
  const access = ACCESS_OF.get(operation);
  if (access === undefined) return null;
  if (!who) return "Log in first";
  const { person } = who;
  const { scope, role, isOfAccount } = access;
  if (person !== undefined) {
    if (role === undefined) return "Only keys can do this";
    if (isOfAccount && person.role === null) return "Requires a role for the whole account";
    const current = roleOf(person);
    if (!isAtLeast(current, role)) return `Requires the role ${role}; yours is ${current}`;
  }
  if (scope === "operator") return who.operator ? null : "Only the operator can do this";
  if (person !== undefined || scope === "any") return null;
  if (scope === "people:write" && who.key_id !== null) return "Requires the platform key, or a person";
  if (hasScope(scope)) return null;
  return `Requires the scope ${scope}`;
}

/** Whether the session can call an operation. */
export function mayCall(operation: OperationName): boolean {
  return whyNot(operation) === null;
}

/** The role of a person in the current project. */
function roleOf({ role, projects: roles }: SessionPerson): Role {
  if (role !== null || roles === "all") return role ?? "viewer";
  return roles.find(({ project_id }) => project_id === projectId.value)?.role ?? "viewer";
}

/** The role of the user for the account: keys that reach people act as owners. */
export function accountRole(): Role {
  const person = session.value?.person;
  return person === undefined ? "owner" : (person.role ?? "viewer");
}

function hasScope(scope: string): boolean {
  const scopes = session.value?.scopes ?? [];
  const [area] = scope.split(":");
  return scopes.some((granted) => granted === "*" || granted === scope || granted === `${area}:*`);
}

/** Whether the session can give a scope to a key: only owners give everything. */
export function mayGive(scope: string): boolean {
  const person = session.value?.person;
  if (scope === "*" && person !== undefined) return roleOf(person) === "owner";
  return hasScope(scope);
}

/** The only projects that the session can open; null for every project of its account. */
export function ownProjects(): readonly string[] | null {
  const who = session.value;
  if (!who) return [];
  if (who.person !== undefined)
    return who.person.projects === "all" ? null : who.person.projects.map(({ project_id }) => project_id);
  return who.project_id === null ? null : [who.project_id];
}

/** Whether the session can open several projects. */
export function mayChooseProject(): boolean {
  const who = session.value;
  if (who?.person !== undefined) return ownProjects() === null || (ownProjects()?.length ?? 0) > 0;
  return who?.project_id === null && who.scopes.includes("*");
}

/** Who did something, as the API names them: of the account's platform key, which has no name, the address of the account. */
export function nameOfActor(actor: string): string {
  const who = session.value;
  return who && actor === who.user_id ? who.email : actor;
}

/** The name of a project; the id of one that the session cannot open. */
export function projectName(id: string): string {
  return projects.value.find((project) => project.id === id)?.name ?? id;
}

/** The message for an error. */
export function messageOf(error: unknown): string {
  return error instanceof Failure || error instanceof Error ? error.message : String(error);
}

/** Shows an error until the user closes it, with the request's id, which the server's log contains. */
export function showError(error: unknown): void {
  const id = error instanceof Failure ? error.requestId : null;
  errorToast(messageOf(error) + (id === null ? "" : ` (request ${id})`));
}
