import { ApiError } from "../kernel/errors.ts";
import type { Http } from "../kernel/http/http.ts";
import type { OpenCall } from "../kernel/http/requests/call.ts";
import type { RenderedResponse } from "../kernel/http/responses/response.ts";

/** Leads browsers from the root to a page, by its path relative to the root. */
export function rootPage(http: Http, page: string): void {
  http.page("/", (call) => rootForBrowsers(call, page));
}

/** Programs, which do not ask for HTML, read that there is nothing there. */
function rootForBrowsers({ request }: OpenCall, page: string): RenderedResponse {
  const headers = { vary: "Accept" };
  if (!(request.headers.get("accept") ?? "").includes("text/html")) {
    throw new ApiError("not_found", `There is no ${request.method} /.`, { headers });
  }
  // Relative, so that it also holds behind a proxy that adds a prefix.
  return { status: 302, text: "", headers: { ...headers, location: page } };
}
