import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { UsageError } from "../config/command-line.ts";
import { errorCode, StartupError } from "../kernel/errors.ts";
import { headerError, type RequestHeaders } from "../kernel/outbound/headers.ts";
import type { Given } from "./arguments.ts";

/** Longest time that a target may have for an answer, in seconds: an hour with a debugger. */
const TIMEOUT_S_MAX = 3_600;
/** The same unless given. */
const TIMEOUT_S = 30;
/** What a position is: an event's id, or one of two words. */
const POSITION = /^(?:now|beginning|evt_[0-9a-v]{11})$/;

/** What `listen` was told. */
export interface ListenOptions {
  /** Null: a bucket is made for this session. */
  readonly bucketId: string | null;
  /** Null: events are only printed. */
  readonly forwardTo: string | null;
  /** Whether what stood behind the bucket's address is put behind the target's. */
  readonly keepsPath: boolean;
  readonly timeoutMs: number;
  readonly headers: RequestHeaders;
  readonly after: string;
  /** Where the cursor is kept; null for nowhere. */
  readonly resume: string | null;
  readonly acknowledges: boolean;
  /** Events after which it ends; null for never. */
  readonly once: number | null;
  readonly eventType: string | null;
  readonly skipsInvalid: boolean;
  readonly prints: "none" | "headers" | "body";
  readonly isJson: boolean;
}

/** Reads them. @throws UsageError for what does not go together. */
export function listenOptions(given: Given): ListenOptions {
  const [bucketId = null] = given.words;
  const creates = given.has("--create");
  const resume = given.text("--resume");
  const forwardTo = given.text("--forward-to");
  const acknowledges = given.has("--ack");
  if (creates && (bucketId !== null || resume !== null))
    throw new UsageError(
      "--create makes a bucket for this session: it goes with no BUCKET, and with no --resume.",
    );
  if (!creates && bucketId === null) throw new UsageError("listen needs BUCKET, or --create.");
  if (acknowledges && forwardTo === null)
    throw new UsageError("--ack goes with --forward-to: it reports what that answers.");
  if (given.has("--keep-path") && forwardTo === null)
    throw new UsageError("--keep-path goes with --forward-to: it adds to that.");
  const after = given.text("--after") ?? "now";
  if (!POSITION.test(after)) throw new UsageError("--after must be now, beginning or an event's id.");
  return {
    bucketId,
    resume,
    acknowledges,
    forwardTo: forwardTo === null ? null : targetOf(forwardTo),
    keepsPath: given.has("--keep-path"),
    timeoutMs: 1_000 * atLeastOne(given, "--timeout", TIMEOUT_S, TIMEOUT_S_MAX),
    headers: headersOf(given.texts("--header")),
    after: creates ? "beginning" : after,
    once: given.text("--once") === null ? null : atLeastOne(given, "--once", 1, Number.MAX_SAFE_INTEGER),
    eventType: given.text("--event-type"),
    skipsInvalid: given.has("--skip-invalid"),
    prints: (given.text("--print") ?? "none") as ListenOptions["prints"],
    isJson: given.has("--json"),
  };
}

function atLeastOne(given: Given, flag: string, usual: number, most: number): number {
  const value = given.integer(flag) ?? usual;
  if (value >= 1 && value <= most) return value;
  throw new UsageError(`${flag} must be an integer from 1 to ${most}.`);
}

function targetOf(text: string): string {
  const url = URL.parse(text);
  if (url !== null && /^https?:$/.test(url.protocol) && `${url.username}${url.password}` === "")
    return url.href;
  throw new UsageError("--forward-to must be a URL such as http://localhost:3000/hook.");
}

function headersOf(lines: readonly string[]): RequestHeaders {
  return Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(":");
      const [name, value] = [line.slice(0, Math.max(0, colon)), line.slice(colon + 1).trim()];
      if (headerError(name, value) === null) return [name, value];
      throw new UsageError("--header must be a name and a value, such as 'X-Tenant: acme'.");
    }),
  );
}

/** The cursor that a file keeps; null when there is no file yet. @throws StartupError */
export function readCursor(file: string): string | null {
  let text: string;
  try {
    text = readFileSync(file, "utf8").trim();
  } catch (error) {
    if (errorCode(error) === "ENOENT") return null;
    throw new StartupError(`${file} cannot be read: ${errorCode(error)}.`);
  }
  // Not "now": it would be another moment each time.
  if (text === "now" || !POSITION.test(text))
    throw new StartupError(`${file} is there and holds no cursor: name another file.`);
  return text;
}

/** Keeps a cursor: a kill at any moment leaves the last one or this one. @throws StartupError */
export function writeCursor(file: string, cursor: string): void {
  const beside = `${file}.${process.pid}.new`;
  try {
    writeFileSync(beside, `${cursor}\n`, { mode: 0o600 });
    renameSync(beside, file);
  } catch (error) {
    throw new StartupError(`${file} cannot be written: ${errorCode(error)}.`);
  }
}
