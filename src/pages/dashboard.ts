import { FILES } from "../../build/dashboard/files.js";
import type { Http, PageHandler } from "../kernel/http/http.ts";
import { pathOf } from "../kernel/http/requests/request-target.ts";
import { type AssetSource, asset } from "../kernel/http/responses/asset.ts";
import { pageHeaders } from "./headers.ts";

const PAGE = "index.html";

/** Forms are sent by script only. Trusted Types: no script may turn text from webhooks or logs into markup. */
const HEADERS = pageHeaders(
  "form-action 'self'",
  // For the preview of a status page next to its settings.
  "frame-src 'self'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
);

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
};

/** The console: its page at `/dashboard/` and its files. A file's name changes with its content. */
export function dashboardPages(http: Http): void {
  for (const file of FILES) {
    if (file.name !== PAGE) http.page(`/dashboard/${file.name}`, asset(sourceOf(file)));
    else
      for (const path of ["/dashboard", "/dashboard/"]) http.page(path, behindSlash(asset(sourceOf(file))));
  }
}

/**
 * Redirects to the address with a trailing slash, on which the page's relative addresses depend. The runtime routes
 * both addresses to the same handler, so the URL of the request decides.
 */
function behindSlash(page: PageHandler): PageHandler {
  return (call) => {
    if (pathOf(call.request.url).endsWith("/")) return page(call);
    // Relative, so that it also works behind a proxy that adds a prefix.
    return { status: 302, text: "", headers: { location: "dashboard/" } };
  };
}

function sourceOf({ name, path }: (typeof FILES)[number]): AssetSource {
  const isPage = name === PAGE;
  const contentType = CONTENT_TYPES[name.slice(name.lastIndexOf(".") + 1)] ?? "application/octet-stream";
  const headers = isPage ? { headers: HEADERS } : {};
  return { contentType, immutable: !isPage, ...headers, read: () => Bun.file(path).bytes() };
}
