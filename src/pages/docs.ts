import license from "swagger-ui-dist/LICENSE" with { type: "file" };
import notice from "swagger-ui-dist/NOTICE" with { type: "file" };
import { version as uiVersion } from "swagger-ui-dist/package.json" with { type: "json" };
import uiStyle from "swagger-ui-dist/swagger-ui.css" with { type: "file" };
import uiScript from "swagger-ui-dist/swagger-ui-bundle.js" with { type: "file" };
import { ApiError } from "../kernel/errors.ts";
import type { RenderedAnswer } from "../kernel/http/answer.ts";
import type { OpenCall } from "../kernel/http/call.ts";
import type { Http, PageHandler } from "../kernel/http/http.ts";
import { asset } from "./asset.ts";
import pageStyle from "./docs/page.css" with { type: "file" };
import pageHtml from "./docs/page.html" with { type: "file" };
import pageScript from "./docs/page.js" with { type: "file" };

const STYLE = "text/css; charset=utf-8";
const SCRIPT = "text/javascript; charset=utf-8";
const TEXT = "text/plain; charset=utf-8";

/**
 * What the page may do: load its own scripts and styles and ask this server. No inline script or style, no other host;
 * the pictures in Swagger UI's stylesheet are data.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const PAGE_HEADERS = {
  "content-security-policy": CONTENT_SECURITY_POLICY,
  "cross-origin-opener-policy": "same-origin",
  "referrer-policy": "no-referrer",
};

/** The API's description as a page with which requests can be tried, and the way there from the root. */
export function docsPages(http: Http): void {
  http.page("/", rootForBrowsers);
  http.page(
    "/docs",
    asset({
      contentType: "text/html; charset=utf-8",
      immutable: false,
      headers: PAGE_HEADERS,
      read: readPage,
    }),
  );
  http.page("/docs/page.css", own(pageStyle, STYLE));
  http.page("/docs/page.js", own(pageScript, SCRIPT));
  http.page(`/docs/swagger-ui-${uiVersion}.css`, ofVersion(uiStyle, STYLE));
  http.page(`/docs/swagger-ui-${uiVersion}.js`, ofVersion(uiScript, SCRIPT));
  http.page(`/docs/swagger-ui-${uiVersion}-license.txt`, ofVersion(license, TEXT));
  http.page(`/docs/swagger-ui-${uiVersion}-notice.txt`, ofVersion(notice, TEXT));
}

function own(path: string, contentType: string, immutable = false): PageHandler {
  return asset({ contentType, immutable, read: () => Bun.file(path).bytes() });
}

/** Of Swagger UI: its version stands in the path. */
function ofVersion(path: string, contentType: string): PageHandler {
  return own(path, contentType, true);
}

async function readPage(): Promise<Uint8Array<ArrayBuffer>> {
  const text = await Bun.file(pageHtml).text();
  return new TextEncoder().encode(text.replaceAll("{{swagger-ui}}", `swagger-ui-${uiVersion}`));
}

/** Leads browsers from the root to the page. Programs, which do not ask for HTML, read that there is nothing there. */
function rootForBrowsers({ request }: OpenCall): RenderedAnswer {
  const headers = { vary: "Accept" };
  if (!(request.headers.get("accept") ?? "").includes("text/html")) {
    throw new ApiError("not_found", `There is no ${request.method} /.`, { headers });
  }
  // Relative, so that it also holds behind a proxy that adds a prefix.
  return { status: 302, text: "", headers: { ...headers, location: "docs" } };
}
