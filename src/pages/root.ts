import { ApiError } from "../kernel/errors.ts";
import type { Http } from "../kernel/http/http.ts";
import type { OpenCall } from "../kernel/http/requests/call.ts";
import type { RenderedResponse } from "../kernel/http/responses/response.ts";

/** Redirects browsers from `/` to a page, with a relative path. */
export function rootPage(http: Http, page: string): void {
  http.page("/", (call) => rootForBrowsers(call, page));
}

/** Requests that do not accept HTML get a 404. */
function rootForBrowsers({ request }: OpenCall, page: string): RenderedResponse {
  const headers = { vary: "Accept" };
  if (!(request.headers.get("accept") ?? "").includes("text/html")) {
    throw new ApiError("not_found", `There is no ${request.method} /.`, { headers });
  }
  // Relative, so that it also works behind a proxy that adds a prefix.
  return { status: 302, text: "", headers: { ...headers, location: page } };
}
