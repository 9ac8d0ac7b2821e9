import { batch, effect } from "@preact/signals";
import type { ProjectItem, Session } from "../../../client/generated/api.ts";
import { call, send, sessionHeaders, surroundings } from "./api.ts";
import { mayLeave } from "./drafts.ts";
import { addressProject, DEFAULT_PROJECT, go, href, place, projectSegment, replacePlace } from "./route.ts";
import {
  logInNote,
  loginMethods,
  mayCall,
  mayChooseProject,
  messageOf,
  ownProjects,
  projectId,
  projects,
  session,
} from "./session.ts";
import { errorToast } from "./toasts.ts";

const STORED_PROJECT = "ninefold.project";

surroundings.loggedOut = () => {
  if (!session.value) return;
  logInNote.value = "Your session has expired. Log in again.";
  session.value = null;
  void readMethods();
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
  if (named !== undefined) projectId.value = named === DEFAULT_PROJECT ? defaultProject() : named;
  else if (projectSegment.value !== null) {
    const { page, rest, query } = place.value;
    replacePlace(href([page, ...rest], Object.fromEntries(query)));
  }
});

/** The project that is open before another one is chosen; null for the account's default project. */
function defaultProject(): string | null {
  return session.value?.person === undefined ? null : (ownProjects()?.[0] ?? null);
}

/** What a redirect of a provider reports, by its code. */
const ERRORS: Readonly<Record<string, string>> = {
  denied: "The provider did not log you in. Try again, or log in another way.",
  expired: "This login took too long, or was started in another browser. Try again.",
  refused:
    "This login is not permitted. Ask an admin of the account to invite the e-mail address that the provider knows.",
  provider:
    "The provider could not be reached, or its response was not valid. Try again later. The server’s log has the reason.",
};

/** What opened the console. */
export type Opening = "session" | "link";

/**
 * Reads the session. A login link in the address is exchanged first and removed from the address. Resolves to how the
 * session was opened.
 */
export async function openSession(): Promise<Opening> {
  const { page, rest, query } = place.value;
  const [token] = rest;
  const code = page === "login" ? query.get("error") : null;
  if ((page === "setup" || page === "login") && (token !== undefined || code !== null)) replacePlace("#/");
  if (code !== null) logInNote.value = ERRORS[code] ?? "This login did not work. Try again.";
  if ((page === "setup" || page === "login") && token !== undefined) {
    try {
      await logIn("", page === "setup" ? { link: token } : { email_link: token });
      void readMethods();
      return "link";
    } catch (error) {
      logInNote.value = messageOf(error);
    }
  }
  try {
    const { session: found, login } = await call("session.read", {});
    loginMethods.value = login.methods;
    if (found === null) session.value = null;
    else {
      // A login that failed while another session continues, such as a step-up.
      if (logInNote.value !== null) errorToast(logInNote.value);
      await begin(found);
    }
  } catch (error) {
    logInNote.value ??= messageOf(error);
    session.value = null;
  }
  return "session";
}

/** Reads the session again: the role of a person, or the scopes of a key, may have changed. @throws Failure */
export async function refreshSession(): Promise<void> {
  const found = (await call("session.read", {})).session;
  const before = session.peek();
  // The same one would draw everything again.
  if (found !== null && before && JSON.stringify(found) !== JSON.stringify(before)) session.value = found;
}

/** Reads the ways to log in again: they change with the first passkey. */
async function readMethods(): Promise<void> {
  loginMethods.value = (await call("session.read", {})).login.methods;
}

/** Logs in: `path` is that of the way to log in, below `/v1/session`. @throws Failure */
export async function logIn(path: "" | "/passkey", body: object): Promise<void> {
  await begin(await newSession(path, body));
}

/** Accepts an invitation, and leaves its page, which could not be read again. @throws Failure */
export async function acceptInvitation(body: object): Promise<void> {
  const found = await newSession("/invitation/accept", body);
  await batch(() => {
    replacePlace("#/");
    return begin(found);
  });
}

/** Sends a login. @throws Failure */
export async function newSession(path: string, body: object): Promise<Session> {
  return (await post(path, body)).json();
}

/** Has a login link sent to an address, if a person has it. @throws Failure */
export async function sendLink(email: string): Promise<void> {
  await post("/email", { email });
}

function post(path: string, body: object): Promise<Response> {
  const headers = { ...sessionHeaders(), "Content-Type": "application/json" };
  return send(`/v1/session${path}`, { method: "POST", headers, body: JSON.stringify(body) });
}

/** Switches to another account that this login opens. @throws Failure */
export async function switchAccount(userId: string): Promise<void> {
  const found = await newSession("/account", { user_id: userId });
  localStorage.removeItem(STORED_PROJECT);
  batch(() => {
    forget();
    session.value = found;
  });
  go(["overview"]);
  await begin(found);
}

/** Ends the session. */
export async function logOut(): Promise<void> {
  await call("session.end", {});
  forget();
  await readMethods();
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

/** Reads the list of projects again. */
export async function readProjects(): Promise<void> {
  projects.value = await listProjects();
}

async function listProjects(): Promise<readonly ProjectItem[]> {
  return mayCall("projects.list") ? (await call("projects.list", { query: { limit: 100 } })).projects : [];
}

async function begin(found: Session): Promise<void> {
  logInNote.value = null;
  const stored = localStorage.getItem(STORED_PROJECT);
  batch(() => {
    session.value = found;
    // People with roles in single projects have no default project.
    const permitted = found.person === undefined ? null : ownProjects();
    if (addressProject.value === undefined && permitted !== null)
      projectId.value = permitted.find((id) => id === stored) ?? permitted[0] ?? null;
  });
  const all = await listProjects().catch(() => []);
  batch(() => {
    const isStored = addressProject.value === undefined && all.some(({ id }) => id === stored);
    if (!mayChooseProject()) projectId.value = null;
    else if (isStored) projectId.value = stored;
    projects.value = all;
  });
}
