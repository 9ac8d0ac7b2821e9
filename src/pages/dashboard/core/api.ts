import type { AnswerOf, InputOf as InputOfClient, OperationName, QueryOf } from "../../../client/api.ts";
import { OPERATIONS } from "../../../client/generated/api.ts";
import { filledPath } from "./paths.ts";

/** What an operation takes: whichever of path, query and body it has. */
export type InputOf<N extends OperationName> = Omit<InputOfClient<N>, "query"> & {
  readonly query?: QueryOf<N>;
};

interface AnyInput {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: object | undefined;
  readonly body?: unknown;
}

/** A request in words: what is sent, and what "Copy as curl" gives. */
export interface Request {
  readonly method: string;
  /** From `/v1` on, with its query. */
  readonly path: string;
  readonly body: unknown;
}

const ROUTES: Readonly<Record<string, string>> = OPERATIONS;

/** An answer that is no success, or none at all. */
export class Failure extends Error {
  constructor(
    /** 0 when there was no answer. */
    readonly status: number,
    readonly code: string,
    message: string,
    readonly requestId: string | null,
  ) {
    super(message);
  }
}

/** What goes along with each request; the session's part of the application sets it. */
export const surroundings: {
  /** The project that requests work in, unless it is the session's own. */
  projectId: string | null;
  /** Called when the server says that nobody is logged in. */
  loggedOut: () => void;
} = { projectId: null, loggedOut: () => undefined };

/** Where the server is: the console lies one level below. */
export const BASE_URL = new URL("..", document.baseURI).href.replace(/\/$/, "");

/** The headers that make the cookie count; a page of another origin cannot send them. */
export function sessionHeaders(): Record<string, string> {
  const { projectId } = surroundings;
  return { "X-Ninefold-Session": "1", ...(projectId === null ? {} : { "X-Ninefold-Project": projectId }) };
}

/** An operation as the request that it is. */
export function requestOf<N extends OperationName>(name: N, input: InputOf<N>): Request {
  const [method = "", template = ""] = (ROUTES[name] ?? "").split(" ");
  const { params = {}, query = {}, body } = input as AnyInput;
  const path = filledPath(template, params);
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  const search = new URLSearchParams(given.map(([key, value]): [string, string] => [key, String(value)]));
  return { method, path: given.length === 0 ? path : `${path}?${search}`, body };
}

/** Calls an operation. @throws Failure */
export async function call<N extends OperationName>(
  name: N,
  input: InputOf<N>,
  signal?: AbortSignal,
): Promise<AnswerOf<N>> {
  const { method, path, body } = requestOf(name, input);
  const json = body === undefined ? {} : { "Content-Type": "application/json" };
  const response = await send(path, {
    method,
    headers: { ...sessionHeaders(), ...json },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  });
  const text = await response.text();
  return (text === "" ? undefined : JSON.parse(text)) as AnswerOf<N>;
}

/** Sends a request to this server. @throws Failure for anything but a success. */
export async function send(path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(BASE_URL + path, { credentials: "same-origin", ...init });
  } catch (error) {
    if (init.signal?.aborted === true) throw error;
    throw new Failure(0, "unreachable", "The server does not answer. Is it running?", null);
  }
  if (response.ok) return response;
  const failure = await failureOf(response);
  const isLogIn = init.method === "POST" && path === "/v1/session";
  if (failure.status === 401 && !isLogIn) surroundings.loggedOut();
  throw failure;
}

interface ErrorBody {
  readonly error?: { readonly code?: string; readonly message?: string; readonly request_id?: string };
}

async function failureOf(response: Response): Promise<Failure> {
  const text = await response.text();
  let body: ErrorBody = {};
  try {
    body = JSON.parse(text);
  } catch {
    // Not of this server: a proxy in between has its own pages.
  }
  const {
    code = "error",
    message = `The server answered ${response.status}.`,
    request_id,
  } = body.error ?? {};
  return new Failure(response.status, code, message, request_id ?? response.headers.get("x-request-id"));
}
