import type { Clock } from "./time/clock.ts";
import { isoTime } from "./time/date-time.ts";

/** Severity of a log line. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** Values that a log line may carry. Never a secret: keys, tokens and signatures have no place here. */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** Where the server's own messages go. */
export type Logger = Readonly<Record<LogLevel, (message: string, fields?: LogFields) => void>>;

const ORDER: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 };

/** One JSON object a line on standard error; standard output belongs to the output of the command. */
export function createLogger(clock: Clock, level: LogLevel, write = writeToStderr): Logger {
  const lowest = ORDER[level];
  const at = (level: LogLevel) => (message: string, fields?: LogFields) => {
    if (ORDER[level] < lowest) return;
    const time = isoTime(clock.now());
    write(`${JSON.stringify({ time, level, message, ...fields })}\n`);
  };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

function writeToStderr(line: string): void {
  process.stderr.write(line);
}

/** A text without the run of one character that it ends with. */
export function withoutTrailing(text: string, character: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === character) end -= 1;
  return text.slice(0, end);
}
