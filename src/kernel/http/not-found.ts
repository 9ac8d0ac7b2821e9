import { ApiError } from "../errors.ts";

/** Longest piece of a caller's own text that an error message repeats. */
const ECHO_LENGTH_MAX = 100;

/** The refusal of a request to a path that is not there, or that does not exist for its caller. */
export function noSuchPath(method: string, path: string): ApiError {
  return new ApiError("not_found", `There is no ${method} ${shorten(path)}.`);
}

function shorten(text: string): string {
  return text.length <= ECHO_LENGTH_MAX ? text : `${text.slice(0, ECHO_LENGTH_MAX)}…`;
}
