import { BASE_URL, type Request } from "./api.ts";
import { curlLine } from "./shell.ts";

/** A request to this server as a curl command. */
export function curlOf(request: Request): string {
  return curlLine(BASE_URL, request);
}
