import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { UsageError } from "../../config/command-line.ts";
import { errorCode, StartupError } from "../../kernel/errors.ts";
import { headerError, isOwnHeader, type RequestHeaders } from "../../kernel/outbound/headers.ts";
import type { Arguments } from "../arguments.ts";

/** Longest timeout of the target, in seconds: an hour, for debugging. */
const TIMEOUT_S_MAX = 3_600;
/** Default timeout of the target, in seconds. */
const TIMEOUT_S = 30;
/** Format of a position: an event id or one of two words. */
const POSITION = /^(?:now|beginning|evt_[0-9a-v]{11})$/;

/** Options of `listen`. */
export interface ListenOptions {
  /** Null: a bucket is created for this session. */
  readonly bucketId: string | null;
  /** Null: events are only printed. */
  readonly forwardTo: string | null;
  /** Whether the event's path and query are appended to the target URL. */
  readonly keepsPath: boolean;
  readonly timeoutMs: number;
  readonly headers: RequestHeaders;
  readonly after: string;
  /** File of the cursor; null to store none. */
  readonly resume: string | null;
  readonly acknowledges: boolean;
  /** Number of events after which it exits; null for no limit. */
  readonly once: number | null;
  readonly eventType: string | null;
  readonly skipsInvalid: boolean;
  readonly prints: "none" | "headers" | "body";
  readonly isJson: boolean;
}

/** Reads the options. @throws UsageError for a conflict between options. */
export function listenOptions(args: Arguments): ListenOptions {
  const [bucketId = null] = args.words;
  const creates = args.has("--create");
  const resume = args.text("--resume");
  const forwardTo = args.text("--forward-to");
  const acknowledges = args.has("--ack");
  if (creates && (bucketId !== null || resume !== null))
    throw new UsageError(
      "--create creates a bucket for this session and cannot be combined with BUCKET or --resume.",
    );
  if (!creates && bucketId === null) throw new UsageError("listen needs BUCKET, or --create.");
  if (acknowledges && forwardTo === null)
    throw new UsageError("--ack requires --forward-to: it reports the response of the target.");
  if (args.has("--keep-path") && forwardTo === null)
    throw new UsageError("--keep-path requires --forward-to: it appends to that URL.");
  const after = args.text("--after") ?? "now";
  if (!POSITION.test(after)) throw new UsageError("--after must be now, beginning or an event id.");
  return {
    bucketId,
    resume,
    acknowledges,
    forwardTo: forwardTo === null ? null : targetOf(forwardTo),
    keepsPath: args.has("--keep-path"),
    timeoutMs: 1_000 * atLeastOne(args, "--timeout", TIMEOUT_S, TIMEOUT_S_MAX),
    headers: headersOf(args.texts("--header")),
    after: creates ? "beginning" : after,
    once: args.text("--once") === null ? null : atLeastOne(args, "--once", 1, Number.MAX_SAFE_INTEGER),
    eventType: args.text("--event-type"),
    skipsInvalid: args.has("--skip-invalid"),
    prints: (args.text("--print") ?? "none") as ListenOptions["prints"],
    isJson: args.has("--json"),
  };
}

function atLeastOne(args: Arguments, flag: string, usual: number, most: number): number {
  const value = args.integer(flag) ?? usual;
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
      if (isOwnHeader(name)) throw new UsageError(`--header cannot be ${name}: it is set for each request.`);
      if (headerError(name, value) === null) return [name, value];
      throw new UsageError("--header must be a name and a value, such as 'X-Tenant: acme'.");
    }),
  );
}

/** The cursor stored in a file; null if the file does not exist. @throws StartupError */
export function readCursor(file: string): string | null {
  let text: string;
  try {
    text = readFileSync(file, "utf8").trim();
  } catch (error) {
    if (errorCode(error) === "ENOENT") return null;
    throw new StartupError(`${file} cannot be read: ${errorCode(error)}.`);
  }
  // Not "now", which would be a different position at each start.
  if (text === "now" || !POSITION.test(text))
    throw new StartupError(`${file} exists and does not contain a cursor. Use another file.`);
  return text;
}

/** Stores a cursor atomically. @throws StartupError */
export function writeCursor(file: string, cursor: string): void {
  const temporary = `${file}.${process.pid}.new`;
  try {
    writeFileSync(temporary, `${cursor}\n`, { mode: 0o600 });
    renameSync(temporary, file);
  } catch (error) {
    throw new StartupError(`${file} cannot be written: ${errorCode(error)}.`);
  }
}
