import type { Http, PageHandler } from "../kernel/http/http.ts";
import { pathOf } from "../kernel/http/requests/request-target.ts";
import { type AssetSource, asset } from "../kernel/http/responses/asset.ts";

/** A built file of a program for browsers: a file's name changes with its content, except that of the page. */
export interface ProgramFile {
  readonly name: string;
  readonly path: string;
}

const PAGE = "index.html";

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
};

/** Serves a program for browsers: its page at `/name/` with these headers, and its files below. */
export function programPages(
  http: Http,
  program: string,
  files: readonly ProgramFile[],
  headers: Readonly<Record<string, string>>,
): void {
  for (const file of files) {
    const served = asset(sourceOf(file, headers));
    if (file.name !== PAGE) http.page(`/${program}/${file.name}`, served);
    else for (const path of [`/${program}`, `/${program}/`]) http.page(path, behindSlash(program, served));
  }
}

/**
 * Redirects to the address with a trailing slash, on which the page's relative addresses depend. The runtime routes
 * both addresses to the same handler, so the URL of the request decides.
 */
function behindSlash(program: string, page: PageHandler): PageHandler {
  return (call) => {
    if (pathOf(call.request.url).endsWith("/")) return page(call);
    // Relative, so that it also works behind a proxy that adds a prefix.
    return { status: 302, text: "", headers: { location: `${program}/` } };
  };
}

function sourceOf({ name, path }: ProgramFile, headers: Readonly<Record<string, string>>): AssetSource {
  const isPage = name === PAGE;
  const contentType = CONTENT_TYPES[name.slice(name.lastIndexOf(".") + 1)] ?? "application/octet-stream";
  return {
    contentType,
    immutable: !isPage,
    ...(isPage ? { headers } : {}),
    read: () => Bun.file(path).bytes(),
  };
}
