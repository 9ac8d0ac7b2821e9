import { signal } from "@preact/signals";
import { randomUuid } from "../../../client/uuid.ts";
import { BASE_URL, send, sessionHeaders, surroundings } from "./api.ts";
import { newSession } from "./login.ts";
import { usePasskey } from "./passkeys.ts";
import { session } from "./session.ts";

/** A dangerous request that waits for another login of the person. */
interface Waiting {
  readonly methods: readonly string[];
  readonly path: string;
  readonly init: RequestInit;
  readonly resolve: (isConfirmed: boolean) => void;
}

/** The requests that wait for another login; the dialog is open while there are any. */
export const waiting = signal<readonly Waiting[]>([]);

surroundings.confirmLogin = (methods, path, init) =>
  new Promise((resolve) => {
    waiting.value = [...waiting.peek(), { methods, path, init, resolve }];
  });

/** Ends the dialog: the requests are sent again, or fail. */
export function settle(isConfirmed: boolean): void {
  const all = waiting.peek();
  waiting.value = [];
  for (const { resolve } of all) resolve(isConfirmed);
}

/** Confirms the login by a passkey. @throws Failure, Error with a message for the user */
export async function confirmByPasskey(): Promise<void> {
  const before = session.peek()?.person?.person_id;
  const found = await newSession("/passkey", { credential: await usePasskey({ isAutofill: false }) });
  session.value = found;
  if (found.person?.person_id === before) settle(true);
  // Somebody else has logged in: what waits was not meant by them.
  else location.reload();
}

/** A request that is repeated after the browser has returned from a provider. Stored in this tab until then. */
interface Stored {
  readonly method: string;
  readonly path: string;
  readonly body: string | null;
  readonly person: string | undefined;
  readonly at: number;
}

const STORED = "ninefold.step-up";
/** Longest time at a provider after which the request is still repeated. */
const STORED_MS = 10 * 60_000;

/** Leaves for a provider, which asks for a login and leads back to this page. */
export function confirmByProvider(url: string): void {
  const [first] = waiting.peek();
  if (first !== undefined) {
    const { method = "GET", body } = first.init;
    const stored: Stored = {
      method,
      path: first.path,
      body: typeof body === "string" ? body : null,
      person: session.peek()?.person?.person_id,
      at: Date.now(),
    };
    sessionStorage.setItem(STORED, JSON.stringify(stored));
  }
  location.assign(`${providerUrl(url)}&step_up=true`);
}

/** The address of a provider's login that leads back to this page. */
export function providerUrl(url: string): string {
  return `${BASE_URL}${url}?return_to=${encodeURIComponent(location.href.slice(BASE_URL.length))}`;
}

/**
 * Repeats the request for which the browser left for a provider, within ten minutes. Resolves to its
 * response; null without one. @throws Failure
 */
export async function resume(): Promise<{ readonly method: string; readonly answer: unknown } | null> {
  const text = sessionStorage.getItem(STORED);
  sessionStorage.removeItem(STORED);
  const person = session.peek()?.person;
  if (text === null || person === undefined) return null;
  const { method, path, body, person: asked, at }: Stored = JSON.parse(text);
  if (asked !== person.person_id || Date.now() - at > STORED_MS) return null;
  if (method === "GET") return { method, answer: null };
  const headers = {
    ...sessionHeaders(),
    "Content-Type": "application/json",
    "Idempotency-Key": randomUuid(),
  };
  const response = await send(path, { method, headers, ...(body === null ? {} : { body }) });
  const answer = await response.text();
  return { method, answer: answer === "" ? null : JSON.parse(answer) };
}
