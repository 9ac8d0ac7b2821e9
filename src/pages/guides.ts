import guides from "../../build/guides/guides.txt" with { type: "file" };
import { ApiError, knownErrors } from "../kernel/errors.ts";
import type { Http, PageHandler } from "../kernel/http/http.ts";
import { pathOf } from "../kernel/http/requests/request-target.ts";
import { asset } from "../kernel/http/responses/asset.ts";
import guidesStyle from "./docs/guides.css" with { type: "file" };
import { pageHeaders } from "./headers.ts";

const ROOT = "/docs/guides/";
const ERRORS = "/docs/errors/";

/** Every guide as HTML, by its path below {@link ROOT}; rendered by `scripts/guides.ts`. */
type Guides = Readonly<Record<string, string>>;

/** The guides, at `/docs/guides/`, and their style. */
export function guidePages(http: Http): void {
  let pages: Promise<ReadonlyMap<string, PageHandler>> | null = null;
  const serve: PageHandler = async (call) => {
    const path = pathOf(call.request.url);
    // Relative, so that it also works behind a proxy that adds a prefix. The links of a page depend on its slash.
    if (path === "/docs/guides") return { status: 302, text: "", headers: { location: "guides/" } };
    pages ??= readPages();
    const page = (await pages).get(path.slice(ROOT.length));
    if (page === undefined)
      throw new ApiError("not_found", "There is no such guide. GET /docs/guides/ lists all.");
    return page(call);
  };
  // The addresses that errors name. An unknown code leads to the list of all.
  const explain: PageHandler = (call) => {
    const code = pathOf(call.request.url).slice(ERRORS.length);
    return { status: 302, text: "", headers: { location: `../guides/errors${anchorOf(code)}` } };
  };
  http.page(`${ERRORS}:code`, explain);
  for (const path of ["/docs/guides", ROOT, `${ROOT}:page`, `${ROOT}:page/:below`]) http.page(path, serve);
  http.page(
    "/docs/guides.css",
    asset({
      contentType: "text/css; charset=utf-8",
      immutable: false,
      read: () => Bun.file(guidesStyle).bytes(),
    }),
  );
}

/** The place of a code in the guide to errors; empty for an unknown code. */
function anchorOf(code: string): string {
  const known: readonly string[] = knownErrors();
  return known.includes(code) ? `#${code.replaceAll(".", "")}` : "";
}

/** A handler for each guide. The texts are read again when one is compressed: most are never requested. */
async function readPages(): Promise<ReadonlyMap<string, PageHandler>> {
  const names = Object.keys(await readGuides());
  return new Map(names.map((name) => [name, guidePage(name)]));
}

function guidePage(name: string): PageHandler {
  return asset({
    contentType: "text/html; charset=utf-8",
    immutable: false,
    headers: pageHeaders("form-action 'none'"),
    read: async () => new TextEncoder().encode((await readGuides())[name]),
  });
}

function readGuides(): Promise<Guides> {
  return Bun.file(guides).json();
}
