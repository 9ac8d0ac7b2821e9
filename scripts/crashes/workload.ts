import type { Answer, WireRequest } from "../processes/connection.ts";
import type { Random } from "./random.ts";

/** The status of a response that says: nothing was changed. What it rejected must never be found. */
export const UNAVAILABLE = 503;

/** Wait between two looks at what is to come to its end. */
const LOOK_MS = 20;

/** A request of a workload. The key goes into its Authorization header. */
export interface TargetRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  /** Null: none is sent. */
  readonly key: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
  readonly idempotencyKey?: string;
}

/** The server under load, across its restarts. */
export interface Target {
  readonly operatorKey: string;
  /** Its data folder, for looking at the file itself. */
  readonly folder: string;
  /** Sends a request. Null: no whole answer came, so whether it was carried out is in doubt. */
  send(request: TargetRequest): Promise<Answer | null>;
  /** Sends a request that must be acknowledged. @throws Error when it is not. */
  ask(request: TargetRequest): Promise<Answer>;
}

/** What a workload has seen since the last verification. */
export interface Tally {
  readonly acknowledged: number;
  readonly inDoubt: number;
  /** How many of those in doubt turned out to have happened. */
  readonly happened: number;
}

/**
 * One area's load under crashes. It keeps its own record of what it sent and what was acknowledged, and compares
 * that with what the server says after the restart.
 */
export interface Workload {
  readonly name: string;
  /** How often it acts, relative to the others. */
  readonly weight: number;
  /** Makes what it works on. Called once, on a server that nobody kills. */
  prepare(target: Target): Promise<void>;
  /** One step. Many run at once. It must not throw when a response is missing, nor send again by itself. */
  act(target: Target, random: Random): Promise<void>;
  /** After a restart: what differs from the record, a line each. Retries what is in doubt where that must be safe. */
  verify(target: Target): Promise<string[]>;
  /** Counts since the last call. */
  takeTally(): Tally;
}

/** What the records of workloads begin with: counts, and lines about what differs. */
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

/** What the record of a load on one account begins with: its key, and requests that must be carried out. */
export abstract class RecordedOfAccount extends Recorded {
  protected key = "";

  /** The body of a success. @throws Error when there is none. */
  protected async ask(
    target: Target,
    method: TargetRequest["method"],
    path: string,
    body?: object,
  ): Promise<Record<string, unknown>> {
    const answer = await target.ask({ method, path, key: this.key, ...(body === undefined ? {} : { body }) });
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
    return bodyOf(answer);
  }
}

/** What a look shows once it has come to its end, or what it still shows when the time is over. */
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
 * Makes an account and returns its key: of tier scale with a balance, or of the unlimited one, which pays nothing
 * and has no bound of projects.
 */
export async function createAccount(
  target: Target,
  email: string,
  balance: number | "unlimited",
): Promise<string> {
  const terms = balance === "unlimited" ? { tier: balance } : { tier: "scale", balance };
  const request = { method: "POST", path: "/v1/admin/accounts", key: target.operatorKey } as const;
  const answer = await target.ask({ ...request, body: { email, ...terms } });
  if (answer.status !== 201) throw new Error(`no account: ${answer.text}`);
  return String(bodyOf(answer)["api_key"]);
}

/** The request as it goes over the wire. */
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
export function bodyOf(answer: Answer): Record<string, unknown> {
  try {
    return JSON.parse(answer.text) as Record<string, unknown>;
  } catch {
    return {};
  }
}
