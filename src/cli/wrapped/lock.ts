import { type Api, type JsonObject, RejectedRequest } from "../../api/http-api.ts";
import { UsageError } from "../../config/command-line.ts";
import { msOfText } from "../../kernel/data/duration-text.ts";
import { monotonicMs, realDelay } from "../../kernel/time/clock.ts";
import { pathSegment, withApi } from "../api.ts";
import type { Arguments } from "../arguments.ts";
import { printError } from "../output.ts";
import { type Child, runChild } from "./child.ts";

/** The exit code when the lock is not acquired: EX_TEMPFAIL. */
const EXIT_NOT_ACQUIRED = 75;
/** The lock is extended when this share of its time has passed. */
const EXTEND_SHARE = 1 / 3;
/** Wait before a failed extension is repeated. */
const RETRY_MS = 500;
/** The command is stopped so long before the lock may expire. */
const MARGIN_MS = 500;
/** Time between SIGTERM and SIGKILL. */
const KILL_MS = 10_000;
/** Default TTL, and the limits of the API for both durations. */
const TTL_MS = 60_000;
const DURATION_MS_MIN = 1_000;
const DURATION_MS_MAX = 900_000;

/** `ninefold lock KEY -- COMMAND`: runs a command while it holds a lock. Resolves to its exit code, or 75. */
export function lock(args: Arguments): Promise<number> {
  const [key = ""] = args.words;
  const path = `/v1/latch/${pathSegment("KEY", key)}`;
  const ttl = durationOf(args, "--ttl") ?? TTL_MS;
  const timeout = args.text("--wait") === "0" ? 0 : (durationOf(args, "--wait") ?? DURATION_MS_MIN);
  return withApi(args, async (api) => {
    const token = crypto.randomUUID();
    const held = await acquire(api, path, { ttl, timeout, token });
    if (held === null) {
      printError(`ninefold: the lock ${key} is held by another process.`);
      return EXIT_NOT_ACQUIRED;
    }
    const child = runChild(args.rest, {
      environment: { NINEFOLD_FENCING_TOKEN: String(held["fencing_token"]) },
    });
    const ending = new AbortController();
    const extending = keepExtending(api, path, { ttl, token, child }, ending.signal);
    const code = await child.ended;
    ending.abort();
    // An extension in progress must not follow the release.
    await extending;
    await release(api, path, token);
    return code;
  });
}

/** Null if it is held by others. @throws StartupError */
async function acquire(api: Api, path: string, terms: JsonObject): Promise<JsonObject | null> {
  try {
    return await api.send("POST", `${path}/acquire`, terms);
  } catch (error) {
    if (error instanceof RejectedRequest && error.status === 408) return null;
    throw error;
  }
}

interface Held {
  readonly ttl: number;
  readonly token: string;
  readonly child: Child;
}

/** Extends a lock until the command has ended. Stops the command before the lock may expire without an extension. */
async function keepExtending(
  api: Api,
  path: string,
  { ttl, token, child }: Held,
  ended: AbortSignal,
): Promise<void> {
  let until = monotonicMs() + ttl;
  let pause = ttl * EXTEND_SHARE;
  while (!ended.aborted) {
    await pauseUnless(ended, Math.min(pause, Math.max(0, until - MARGIN_MS - monotonicMs())));
    if (ended.aborted) return;
    const begun = monotonicMs();
    const left = until - MARGIN_MS - begun;
    if (left <= 0) return stop(child, ended, "it could not be extended in time");
    const attempt = extend(api, path, { ttl, token });
    const loss = await Promise.race([attempt, pauseUnless(ended, left)]);
    if (ended.aborted) {
      await attempt;
      return;
    }
    if (loss === undefined) pause = RETRY_MS;
    else if (loss !== null) return stop(child, ended, loss);
    else {
      until = begun + ttl;
      pause = ttl * EXTEND_SHARE;
    }
  }
}

/** Extends a lock. Resolves to null, to why it is lost, or to undefined if there was no such response. */
async function extend(api: Api, path: string, terms: JsonObject): Promise<string | null | undefined> {
  try {
    await api.send("POST", `${path}/extend`, terms);
    return null;
  } catch (error) {
    const status = error instanceof RejectedRequest ? error.status : null;
    if (status === 403) return "another process holds it";
    return status === 404 ? "it has expired" : undefined;
  }
}

async function stop(child: Child, ended: AbortSignal, why: string): Promise<void> {
  printError(`ninefold: the lock is lost: ${why}. The command is stopped.`);
  child.kill("SIGTERM");
  await pauseUnless(ended, KILL_MS);
  if (!ended.aborted) child.kill("SIGKILL");
}

/** Ends after a time, or with the command. */
function pauseUnless(ended: AbortSignal, ms: number): Promise<undefined> {
  return new Promise((resolve) => {
    const end = () => resolve(undefined);
    ended.addEventListener("abort", end, { once: true });
    void realDelay(ms).then(end);
  });
}

/** A lock that is not released expires. */
async function release(api: Api, path: string, token: string): Promise<void> {
  await api.send("POST", `${path}/release`, { token }).catch(() => undefined);
}

/** @throws UsageError */
function durationOf(args: Arguments, flag: string): number | null {
  const text = args.text(flag);
  if (text === null) return null;
  const value = msOfText(text);
  if (value >= DURATION_MS_MIN && value <= DURATION_MS_MAX) return value;
  throw new UsageError(`${flag} must be from 1s to 15m, such as 30s.`);
}
