import { batch, effect, signal } from "@preact/signals";
import type { ProjectItem, Session } from "../../../client/generated/api.ts";
import { call, Failure, surroundings } from "./api.ts";
import { mayLeave } from "./drafts.ts";
import { addressProject, DEFAULT_PROJECT, go, href, place, projectSegment, replacePlace } from "./route.ts";
import { errorToast } from "./toasts.ts";

/** The session; null when logged out, undefined until the server has responded. */
export const session = signal<Session | null | undefined>(undefined);
/** Why the user is logged out, if there is a message. */
export const logInNote = signal<string | null>(null);
/** Projects that the user can open. */
export const projects = signal<readonly ProjectItem[]>([]);
/** The current project; null for the account's default project. */
export const projectId = signal<string | null>(null);

const STORED_PROJECT = "ninefold.project";

surroundings.loggedOut = () => {
  if (session.value) logInNote.value = "Your session has expired. Log in again.";
  session.value = null;
};
effect(() => {
  surroundings.projectId = projectId.value;
});
effect(() => {
  const several = projects.value.length > 1;
  projectSegment.value = mayChooseProject() ? (projectId.value ?? (several ? DEFAULT_PROJECT : null)) : null;
});
// The project of the address is the current one; an address without a project gets the current one.
effect(() => {
  const named = addressProject.value;
  if (!session.value || !mayChooseProject()) return;
  if (named !== undefined) projectId.value = named === DEFAULT_PROJECT ? null : named;
  else if (projectSegment.value !== null) {
    const { page, rest, query } = place.value;
    replacePlace(href([page, ...rest], Object.fromEntries(query)));
  }
});

/** Reads the session. A set-up link in the address is exchanged first and removed from the address. */
export async function openSession(): Promise<void> {
  const { page, rest } = place.value;
  const [link] = rest;
  if (page === "setup" && link !== undefined) {
    replacePlace("#/");
    try {
      await begin(await call("session.create", { body: { link } }));
      return;
    } catch (error) {
      logInNote.value = messageOf(error);
    }
  }
  try {
    const found = (await call("session.read", {})).session;
    if (found === null) session.value = null;
    else await begin(found);
  } catch (error) {
    logInNote.value ??= messageOf(error);
    session.value = null;
  }
}

/** Exchanges a key for a session. @throws Failure */
export async function logIn(key: string): Promise<void> {
  await begin(await call("session.create", { body: { key } }));
}

/** Ends the session. */
export async function logOut(): Promise<void> {
  await call("session.end", {});
  forget();
}

/** Clears the session after the server has ended it. */
export function forget(): void {
  logInNote.value = null;
  projectId.value = null;
  projects.value = [];
  session.value = null;
}

/** Switches to another project. */
export function chooseProject(id: string | null, page = place.value.page): void {
  if (!mayLeave()) return;
  if (id === null) localStorage.removeItem(STORED_PROJECT);
  else localStorage.setItem(STORED_PROJECT, id);
  projectSegment.value = id ?? DEFAULT_PROJECT;
  go([page]);
}

/** Whether the session has a scope. */
export function may(scope: string): boolean {
  const scopes = session.value?.scopes ?? [];
  const [area] = scope.split(":");
  return scopes.some((granted) => granted === "*" || granted === scope || granted === `${area}:*`);
}

/**
 * Whether the session can open every project of its account; other sessions are limited to the project of their key.
 */
export function mayChooseProject(): boolean {
  return session.value?.project_id === null && session.value.scopes.includes("*");
}

/** The name of a project; the id of one that the session cannot open. */
export function projectName(id: string): string {
  return projects.value.find((project) => project.id === id)?.name ?? id;
}

/** Reads the list of projects again. */
export async function readProjects(): Promise<void> {
  projects.value = await listProjects();
}

async function listProjects(): Promise<readonly ProjectItem[]> {
  return may("projects:read") ? (await call("projects.list", { query: { limit: 100 } })).projects : [];
}

async function begin(found: Session): Promise<void> {
  logInNote.value = null;
  const stored = localStorage.getItem(STORED_PROJECT);
  session.value = found;
  const all = await listProjects().catch(() => []);
  batch(() => {
    const isStored = addressProject.value === undefined && all.some(({ id }) => id === stored);
    if (!mayChooseProject()) projectId.value = null;
    else if (isStored) projectId.value = stored;
    projects.value = all;
  });
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
