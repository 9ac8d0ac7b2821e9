import type { Clock } from "./clock.ts";

/** Severity of a log line. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** Values that a log line may carry. Never a secret: keys, tokens and signatures have no place here. */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** Where the server's own messages go. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

const ORDER: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 };

/** One JSON object a line on standard error; standard output belongs to the command's own answer. */
export function createLogger(clock: Clock, level: LogLevel, write = writeToStderr): Logger {
  const lowest = ORDER[level];
  const emit = (at: LogLevel, message: string, fields?: LogFields): void => {
    if (ORDER[at] < lowest) return;
    write(
      `${JSON.stringify({ time: new Date(clock.now()).toISOString(), level: at, message, ...fields })}\n`,
    );
  };
  return {
    debug: (message, fields) => emit("debug", message, fields),
    info: (message, fields) => emit("info", message, fields),
    warn: (message, fields) => emit("warn", message, fields),
    error: (message, fields) => emit("error", message, fields),
  };
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
