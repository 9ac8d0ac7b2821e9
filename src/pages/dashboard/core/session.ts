import { effect, signal } from "@preact/signals";
import type { ProjectItem, Session } from "../../../client/generated/api.ts";
import { call, Failure, surroundings } from "./api.ts";
import { place, replacePlace } from "./route.ts";

/** Who is logged in; null for nobody, undefined until the server has said. */
export const session = signal<Session | null | undefined>(undefined);
/** Why nobody is logged in, where there is something to say. */
export const logInNote = signal<string | null>(null);
/** The projects that the reader can work in. */
export const projects = signal<readonly ProjectItem[]>([]);
/** The project that is worked in; null for the account's default one. */
export const projectId = signal<string | null>(null);

const KEPT_PROJECT = "ninefold.project";

surroundings.loggedOut = () => {
  if (session.value) logInNote.value = "Your session has ended. Log in again.";
  session.value = null;
};
effect(() => {
  surroundings.projectId = projectId.value;
});

/** Asks who is logged in; a set-up link in the address is exchanged first, and leaves it. */
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

/** Forgets who was logged in, once the server has. */
export function forget(): void {
  logInNote.value = null;
  projectId.value = null;
  projects.value = [];
  session.value = null;
}

/** Works in another project from now on. */
export function chooseProject(id: string | null): void {
  projectId.value = id;
  if (id === null) localStorage.removeItem(KEPT_PROJECT);
  else localStorage.setItem(KEPT_PROJECT, id);
}

/** Whether the session has a scope. */
export function may(scope: string): boolean {
  const scopes = session.value?.scopes ?? [];
  const [area] = scope.split(":");
  return scopes.some((one) => one === "*" || one === scope || one === `${area}:*`);
}

/** Whether the session can work in any project of its account: others work in the project of their key only. */
export function mayChooseProject(): boolean {
  return session.value?.project_id === null && session.value.scopes.includes("*");
}

/** Reads the list of projects again. */
export async function readProjects(): Promise<void> {
  if (!may("projects:read")) return;
  projects.value = (await call("projects.list", { query: { limit: 100 } })).projects;
}

async function begin(found: Session): Promise<void> {
  logInNote.value = null;
  const kept = localStorage.getItem(KEPT_PROJECT);
  session.value = found;
  await readProjects().catch(() => undefined);
  const isThere = projects.value.some(({ id }) => id === kept);
  projectId.value = mayChooseProject() && isThere ? kept : null;
}

/** What to say of an error. */
export function messageOf(error: unknown): string {
  return error instanceof Failure || error instanceof Error ? error.message : String(error);
}
