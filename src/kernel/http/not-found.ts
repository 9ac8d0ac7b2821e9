import { ApiError, echoed } from "../errors.ts";

/** The refusal of a request to a path that is not there, or that does not exist for its caller. */
export function noSuchPath(method: string, path: string): ApiError {
  return new ApiError("not_found", `There is no ${method} ${echoed(path)}.`);
}
