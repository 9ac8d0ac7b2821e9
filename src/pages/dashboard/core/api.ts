import type { AnswerOf, InputOf as InputOfClient, OperationName, QueryOf } from "../../../client/api.ts";
import { OPERATIONS } from "../../../client/generated/api.ts";
import { randomUuid } from "../../../client/uuid.ts";
import { span } from "./format.ts";
import { filledPath } from "./paths.ts";
import { progressToast } from "./toasts.ts";

/** Parameters of an operation: its path parameters, query and body. */
export type InputOf<N extends OperationName> = Omit<InputOfClient<N>, "query"> & {
  readonly query?: QueryOf<N>;
};

interface AnyInput {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: object | undefined;
  readonly body?: unknown;
}

/** A request as shown to the user: what is sent and what "Copy as curl" copies. */
export interface Request {
  readonly method: string;
  /** From `/v1`, with the query. */
  readonly path: string;
  readonly body: unknown;
}

const ROUTES: Readonly<Record<string, string>> = OPERATIONS;

/** A response that is not a success, or no response. */
export class Failure extends Error {
  constructor(
    /** 0 without a response. */
    readonly status: number,
    readonly code: string,
    message: string,
    readonly requestId: string | null,
    /** With `login_required`: how the person can log in again. */
    readonly methods: readonly string[] = [],
  ) {
    super(message);
  }
}

/** Settings for all requests, set by the session. */
export const surroundings: {
  /** Project of the requests; null for the session's default project. */
  projectId: string | null;
  /** Called when the server responds that the session is not valid. */
  loggedOut: () => void;
  /** Asks for another login, which the server requires for a request. Resolves to whether the request can be sent again. */
  confirmLogin: (methods: readonly string[], path: string, init: RequestInit) => Promise<boolean>;
} = { projectId: null, loggedOut: () => undefined, confirmLogin: async () => false };

/** Address of the server: the console is one level below it. */
export const BASE_URL = new URL("..", document.baseURI).href.replace(/\/$/, "");

/** Headers without which the server ignores the session cookie. Pages of other origins cannot send them. */
export function sessionHeaders(): Record<string, string> {
  const { projectId } = surroundings;
  return { "X-Ninefold-Session": "1", ...(projectId === null ? {} : { "X-Ninefold-Project": projectId }) };
}

/** The request of an operation. */
export function requestOf<N extends OperationName>(name: N, input: InputOf<N>): Request {
  const [method = "", template = ""] = (ROUTES[name] ?? "").split(" ");
  const { params = {}, query = {}, body } = input as AnyInput;
  const path = filledPath(template, params);
  const parameters = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const search = new URLSearchParams(
    parameters.map(([key, value]): [string, string] => [key, String(value)]),
  );
  return { method, path: parameters.length === 0 ? path : `${path}?${search}`, body };
}

/**
 * Idempotency keys of changes without a response, by request: sending the same change again in its form has no second
 * effect. Cleared when a form closes, since the next form means another change.
 */
const unansweredKeys = new Map<string, string>();

/** Forgets the changes without a response. */
export function forgetUnanswered(): void {
  unansweredKeys.clear();
}

/** A proxy may have lost the response of the server. */
function hasResponded(error: unknown): boolean {
  return error instanceof Failure && error.status !== 0 && error.code !== UNKNOWN_CODE;
}

/** Digits of a number that a double may not hold. */
const LONG_NUMBER = /\d{16}/;

/** Parses a response. Integers that a double does not hold are shown with their digits, where the browser knows them. */
function parsed(text: string): unknown {
  if (!LONG_NUMBER.test(text) || !("rawJSON" in JSON)) return JSON.parse(text);
  return JSON.parse(text, (_name, value: unknown, context?: { readonly source?: string }) =>
    Number.isInteger(value) && !Number.isSafeInteger(value) && context?.source !== undefined
      ? JSON.rawJSON(context.source)
      : value,
  );
}

/** Calls an operation. @throws Failure */
export async function call<N extends OperationName>(
  name: N,
  input: InputOf<N>,
  signal?: AbortSignal,
): Promise<AnswerOf<N>> {
  const { method, path, body } = requestOf(name, input);
  const json = body === undefined ? {} : { "Content-Type": "application/json" };
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const change = method === "GET" ? null : `${method} ${path} ${sent.body ?? ""}`;
  const key = change === null ? null : (unansweredKeys.get(change) ?? randomUuid());
  const init = {
    method,
    headers: { ...sessionHeaders(), ...json, ...(key === null ? {} : { "Idempotency-Key": key }) },
    ...sent,
    ...(signal === undefined ? {} : { signal }),
  };
  if (change !== null && key !== null) unansweredKeys.set(change, key);
  let text: string;
  try {
    const response = await send(path, init);
    text = await response.text();
    if (change !== null) unansweredKeys.delete(change);
  } catch (error) {
    if (change !== null && hasResponded(error)) unansweredKeys.delete(change);
    throw error;
  }
  return (text === "" ? undefined : parsed(text)) as AnswerOf<N>;
}

/** Longest time that a request waits for a rate limit. Longer waits are an error, which says how long they are. */
const RATE_WAIT_MAX_MS = 60_000;

/** The code of a request that requires a recent login. It was not carried out, and can be repeated after one. */
const LOGIN_REQUIRED = "login_required";

/**
 * Sends a request to this server. A request over a rate limit is sent again when the server permits it, for up to
 * `waitMaxMs`, one that requires a recent login after it. @throws Failure for any response but a success.
 */
export async function send(path: string, init: RequestInit, waitMaxMs = RATE_WAIT_MAX_MS): Promise<Response> {
  for (let waited = 0; ; ) {
    const response = await sendOnce(path, init);
    if (response.ok) return response;
    const waitMs = response.status === 429 ? Number(response.headers.get("retry-after")) * 1_000 : 0;
    if (waitMs > 0 && waited + waitMs <= waitMaxMs) {
      await waitForRate(waitMs, init.signal);
      waited += waitMs;
      continue;
    }
    const failure = await failureOf(response);
    if (failure.code === LOGIN_REQUIRED && (await surroundings.confirmLogin(failure.methods, path, init)))
      continue;
    const isLogIn = init.method === "POST" && path.startsWith("/v1/session");
    if (failure.status === 401 && !isLogIn) surroundings.loggedOut();
    throw failure;
  }
}

async function sendOnce(path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(BASE_URL + path, { credentials: "same-origin", ...init });
  } catch (error) {
    if (init.signal?.aborted === true) throw error;
    throw new Failure(0, "unreachable", "The server did not respond. Check that it is running.", null);
  }
}

let waiting = 0;
let note: ReturnType<typeof progressToast> | null = null;

/** All waiting requests share one message. */
async function waitForRate(ms: number, signal: AbortSignal | null | undefined): Promise<void> {
  const text = `Rate limit reached. Waiting for ${span(ms)}.`;
  if (note === null) note = progressToast(text);
  else note(text);
  waiting += 1;
  await pause(ms, signal);
  waiting -= 1;
  if (waiting > 0) return;
  note?.(null);
  note = null;
}

/** Waits, until `signal` is aborted. */
export function pause(ms: number, signal?: AbortSignal | null): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** The code of a response that is not an error of this server, such as one of a proxy. */
const UNKNOWN_CODE = "error";

interface ErrorBody {
  readonly error?: {
    readonly code?: string;
    readonly message?: string;
    readonly request_id?: string;
  };
  readonly methods?: readonly string[];
}

async function failureOf(response: Response): Promise<Failure> {
  const text = await response.text();
  let body: ErrorBody = {};
  try {
    body = JSON.parse(text);
  } catch {
    // Not a response of this server: a proxy responded.
  }
  const {
    code = UNKNOWN_CODE,
    message = `The server returned status ${response.status}.`,
    request_id = response.headers.get("x-request-id"),
  } = body.error ?? {};
  return new Failure(response.status, code, message, request_id, body.methods);
}
