import type { HttpResponse, WireRequest } from "../processes/connection.ts";
import type { Random } from "./random.ts";

/** Status of a response for which nothing was changed. A rejected change must never be found. */
export const UNAVAILABLE = 503;

/** Interval of polls for an expected end. */
const LOOK_MS = 20;

/** A request of a workload. The key is sent in its Authorization header. */
export interface TargetRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  /** Null: no body. */
  readonly key: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
  readonly idempotencyKey?: string;
}

/** The server under load, across its restarts. */
export interface Target {
  readonly operatorKey: string;
  /** Its data folder, for checks of the file. */
  readonly folder: string;
  /** Sends a request. Null: no complete response, so it is in doubt whether it was carried out. */
  send(request: TargetRequest): Promise<HttpResponse | null>;
  /** Sends a request that must be acknowledged. @throws Error if it is not */
  ask(request: TargetRequest): Promise<HttpResponse>;
}

/** Counts of a workload since the last verification. */
export interface Tally {
  readonly acknowledged: number;
  readonly inDoubt: number;
  /** Number of requests in doubt that had happened. */
  readonly happened: number;
}

/**
 * One area's load under crashes. It records what it sent and what was acknowledged, and compares
 * the record with the server after the restart.
 */
export interface Workload {
  readonly name: string;
  /** Weight of its steps, relative to the others. */
  readonly weight: number;
  /** Creates its resources. Called once, on a server that is not killed. */
  prepare(target: Target): Promise<void>;
  /** One step; many run concurrently. It must not throw without a response, and must not retry by itself. */
  act(target: Target, random: Random): Promise<void>;
  /** After a restart: the differences from the record, one per line. Retries requests in doubt if that must be safe. */
  verify(target: Target): Promise<string[]>;
  /** Counts since the last call. */
  takeTally(): Tally;
}

/** The base of all records: counts, and lines about differences. */
export abstract class Recorded {
  protected readonly problems: string[] = [];
  protected counts = { acknowledged: 0, inDoubt: 0, happened: 0 };

  /** Counts since the last call. */
  takeTally(): Tally {
    const { counts } = this;
    this.counts = { acknowledged: 0, inDoubt: 0, happened: 0 };
    return counts;
  }
}

/** The base of a record for one account: its key, and requests that must be carried out. */
export abstract class RecordedOfAccount extends Recorded {
  protected key = "";

  /** The body of a success. @throws Error without one */
  protected async ask(
    target: Target,
    method: TargetRequest["method"],
    path: string,
    body?: object,
  ): Promise<Record<string, unknown>> {
    const response = await target.ask({
      method,
      path,
      key: this.key,
      ...(body === undefined ? {} : { body }),
    });
    if (response.status >= 300) throw new Error(`${method} ${path}: ${response.status} ${response.text}`);
    return bodyOf(response);
  }

  /** The items of all pages of a list. */
  protected async askAll<Item>(target: Target, path: string, name: string): Promise<Item[]> {
    const items: Item[] = [];
    let after = "";
    for (;;) {
      const { [name]: page, cursor } = await this.ask(target, "GET", `${path}?limit=100${after}`);
      items.push(...(page as Item[]));
      if (cursor === undefined) return items;
      after = `&cursor=${encodeURIComponent(String(cursor))}`;
    }
  }
}

/** Polls until a condition holds or the time is over, and returns the last result. */
export async function settled<T>(
  withinMs: number,
  look: () => Promise<T>,
  isOver: (seen: T) => boolean,
): Promise<T> {
  const end = Date.now() + withinMs;
  for (;;) {
    const seen = await look();
    if (isOver(seen) || Date.now() > end) return seen;
    await Bun.sleep(LOOK_MS);
  }
}

/**
 * Creates an account and returns its key: of the tier scale with a balance, or of the tier unlimited, which is not
 * charged and has no limit of projects.
 */
export async function createAccount(
  target: Target,
  email: string,
  balance: number | "unlimited",
): Promise<string> {
  const terms = balance === "unlimited" ? { tier: balance } : { tier: "scale", balance };
  const request = { method: "POST", path: "/v1/admin/accounts", key: target.operatorKey } as const;
  const response = await target.ask({ ...request, body: { email, ...terms } });
  if (response.status !== 201) throw new Error(`no account: ${response.text}`);
  return String(bodyOf(response)["api_key"]);
}

/** The request as it is sent. */
export function toWire(request: TargetRequest): WireRequest {
  const { method, path, key, body, idempotencyKey } = request;
  const headers: Record<string, string> = { ...request.headers };
  if (key !== null) headers["Authorization"] = `Bearer ${key}`;
  if (idempotencyKey !== undefined) headers["Idempotency-Key"] = idempotencyKey;
  if (body === undefined) return { method, path, headers };
  headers["Content-Type"] = "application/json";
  return { method, path, headers, body: JSON.stringify(body) };
}

/** The members of a response's body; none when it is not a JSON object. */
export function bodyOf(response: HttpResponse): Record<string, unknown> {
  try {
    return JSON.parse(response.text) as Record<string, unknown>;
  } catch {
    return {};
  }
}
