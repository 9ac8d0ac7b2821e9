import { currentToken } from "./session.ts";

/** A rejected request. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** Messages by field. */
    readonly fields: Readonly<Record<string, readonly string[]>> = {},
  ) {
    super(message);
  }
}

interface ErrorBody {
  readonly error?: { readonly message?: string };
  readonly fields?: Readonly<Record<string, readonly string[]>>;
}

/**
 * Sends a request to the routes of the portal. `path` begins after `/v1/relay/portal`. `token`: of the link in use by default.
 * @throws Problem
 */
export async function send<T>(
  method: string,
  path: string,
  body?: object,
  token: string = currentToken(),
): Promise<T> {
  // Relative, so that it also works behind a proxy that adds a prefix.
  const response = await fetch(`../v1/relay/portal${path}`, {
    method,
    credentials: "omit",
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  }).catch(() => null);
  if (response === null) throw new Problem(0, "The server cannot be reached. Try again.");
  const text = await response.text();
  const parsed = parse(text);
  if (response.ok) return parsed as T;
  const { error, fields } = (parsed ?? {}) as ErrorBody;
  throw new Problem(response.status, error?.message ?? `The request failed (${response.status}).`, fields);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** A query string of the given values. */
export function queryOf(values: Readonly<Record<string, string | undefined>>): string {
  const present = Object.entries(values).filter((entry): entry is [string, string] => !!entry[1]);
  return present.length === 0 ? "" : `?${new URLSearchParams(present)}`;
}
