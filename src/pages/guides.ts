import guides from "../../build/guides/guides.bin" with { type: "file" };
import { ApiError, knownErrors } from "../kernel/errors.ts";
import type { Http, PageHandler } from "../kernel/http/http.ts";
import { pathOf } from "../kernel/http/requests/request-target.ts";
import { asset } from "../kernel/http/responses/asset.ts";
import guidesStyle from "./docs/guides.css" with { type: "file" };
import guidesScript from "./docs/guides.js" with { type: "file" };
import { pageHeaders } from "./headers.ts";

const ROOT = "/docs/guides/";
const ERRORS = "/docs/errors/";

/** The start and end of each file after the first line of the pack that `scripts/guides.ts` makes, by its path below {@link ROOT}. */
type Places = Readonly<Record<string, readonly [start: number, end: number]>>;

const LINE_END = "\n".charCodeAt(0);

/** The guides and their indexes, at `/docs/guides/`, and their style and script. */
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
  const files = [
    ["guides.css", guidesStyle, "text/css"],
    ["guides.js", guidesScript, "text/javascript"],
  ] as const;
  for (const [name, path, type] of files) {
    const contentType = `${type}; charset=utf-8`;
    http.page(`/docs/${name}`, asset({ contentType, immutable: false, read: () => Bun.file(path).bytes() }));
  }
}

/** The place of a code in the guide to errors; empty for an unknown code. */
function anchorOf(code: string): string {
  const known: readonly string[] = knownErrors();
  return known.includes(code) ? `#${code.replaceAll(".", "")}` : "";
}

/** A handler for each file. The pack is read again when a file is compressed: most are never requested. */
async function readPages(): Promise<ReadonlyMap<string, PageHandler>> {
  const { places } = await readGuides();
  return new Map(Object.keys(places).map((name) => [name, guidePage(name)]));
}

function guidePage(name: string): PageHandler {
  const contentType = name.endsWith(".json") ? "application/json" : "text/html; charset=utf-8";
  return asset({
    contentType,
    immutable: false,
    headers: pageHeaders("form-action 'none'"),
    read: async () => {
      const { places, texts } = await readGuides();
      const [start, end] = places[name] ?? [0, 0];
      return texts.slice(start, end);
    },
  });
}

async function readGuides(): Promise<{ places: Places; texts: Uint8Array<ArrayBuffer> }> {
  const bytes = new Uint8Array(await Bun.zstdDecompress(await Bun.file(guides).bytes()));
  const line = bytes.indexOf(LINE_END);
  const places: Places = JSON.parse(new TextDecoder().decode(bytes.subarray(0, line)));
  return { places, texts: bytes.subarray(line + 1) };
}
