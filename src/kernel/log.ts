import type { Clock } from "./time/clock.ts";
import { isoTime } from "./time/date-time.ts";

/** Severity of a log line. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** Form of a log line: a JSON object, or text for people. */
export type LogFormat = "json" | "text";

/** Values that a log line may carry. Never a secret: keys, tokens and signatures have no place here. */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** Where the server's own messages go. */
export interface Logger extends Readonly<Record<LogLevel, (message: string, fields?: LogFields) => void>> {
  /** Whether `debug` lines are written, so that others do not compute their fields. Default: false. */
  readonly isDebug?: boolean;
}

/** Which lines are written, and how. */
export interface LogSettings {
  readonly level: LogLevel;
  /** Default: `json`. */
  readonly format?: LogFormat;
}

const ORDER: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 };
/** Width of the longest level, so that messages line up. */
const LEVEL_WIDTH = 5;

/** One line per message on standard error; standard output belongs to the output of the command. */
export function createLogger(
  clock: Clock,
  { level, format = "json" }: LogSettings,
  write = writeToStderr,
): Logger {
  const lowest = ORDER[level];
  const render = format === "json" ? jsonLine : textLine;
  const at = (level: LogLevel) => (message: string, fields?: LogFields) => {
    if (ORDER[level] >= lowest) write(render(isoTime(clock.now()), level, message, fields));
  };
  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    isDebug: lowest === ORDER.debug,
  };
}

function jsonLine(time: string, level: LogLevel, message: string, fields?: LogFields): string {
  return `${JSON.stringify({ time, level, message, ...fields })}\n`;
}

/** `2026-11-23T02:35:17.000Z info  message name=value`. Texts that are more than one word are quoted as in JSON. */
function textLine(time: string, level: LogLevel, message: string, fields: LogFields = {}): string {
  const shown = Object.entries(fields).filter(([, value]) => value !== undefined);
  const parts = shown.map(([name, value]) => ` ${name}=${textOf(value ?? null)}`);
  return `${time} ${level.padEnd(LEVEL_WIDTH)} ${escaped(message)}${parts.join("")}\n`;
}

function textOf(value: string | number | boolean | null): string {
  return typeof value === "string" && !/^[\x21\x23-\x7e]+$/.test(value)
    ? JSON.stringify(value)
    : String(value);
}

/** A message stays on its line, and controls no terminal. */
function escaped(message: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is replaced
  return message.replace(/[\x00-\x1f\x7f-\x9f]/g, " ");
}

let stderr: Bun.FileSink | null = null;

/**
 * Writes in order, and keeps in memory what a slow reader has not taken yet. Where nobody reads any more, the line is dropped:
 * a log collector that ended does not end the server. Not `process.stderr`: to load its streams takes a start two milliseconds.
 */
function writeToStderr(line: string): void {
  try {
    stderr ??= Bun.stderr.writer();
    stderr.write(line);
    const flushed = stderr.flush();
    if (flushed instanceof Promise) flushed.catch(() => undefined);
  } catch {
    // The reader is gone.
  }
}

/** A text without the run of one character that it ends with. */
export function withoutTrailing(text: string, character: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === character) end -= 1;
  return text.slice(0, end);
}
