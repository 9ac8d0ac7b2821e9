import license from "swagger-ui-dist/LICENSE" with { type: "file" };
import notice from "swagger-ui-dist/NOTICE" with { type: "file" };
import { version as uiVersion } from "swagger-ui-dist/package.json" with { type: "json" };
import uiStyle from "../../build/guides/swagger-ui.css.bin" with { type: "file" };
import uiScript from "../../build/guides/swagger-ui-bundle.js.bin" with { type: "file" };
import type { Http, PageHandler } from "../kernel/http/http.ts";
import { asset } from "../kernel/http/responses/asset.ts";
import pageStyle from "./docs/page.css" with { type: "file" };
import pageHtml from "./docs/page.html" with { type: "file" };
import pageScript from "./docs/page.js" with { type: "file" };
import { pageHeaders } from "./headers.ts";

const STYLE = "text/css; charset=utf-8";
const SCRIPT = "text/javascript; charset=utf-8";
const TEXT = "text/plain; charset=utf-8";

/** The API reference, in which requests can be sent. */
export function docsPages(http: Http): void {
  http.page(
    "/docs",
    asset({
      contentType: "text/html; charset=utf-8",
      immutable: false,
      headers: pageHeaders("form-action 'none'"),
      read: readPage,
    }),
  );
  http.page("/docs/page.css", pageFile(pageStyle, STYLE));
  http.page("/docs/page.js", pageFile(pageScript, SCRIPT));
  http.page(
    `/docs/swagger-ui-${uiVersion}.css`,
    ofUi(STYLE, () => readCompressed(uiStyle)),
  );
  http.page(
    `/docs/swagger-ui-${uiVersion}.js`,
    ofUi(SCRIPT, () => readCompressed(uiScript)),
  );
  http.page(
    `/docs/swagger-ui-${uiVersion}-license.txt`,
    ofUi(TEXT, () => Bun.file(license).bytes()),
  );
  http.page(
    `/docs/swagger-ui-${uiVersion}-notice.txt`,
    ofUi(TEXT, () => Bun.file(notice).bytes()),
  );
}

function pageFile(path: string, contentType: string): PageHandler {
  return asset({ contentType, immutable: false, read: () => Bun.file(path).bytes() });
}

/** Files of Swagger UI, with its version in the path. */
function ofUi(contentType: string, read: () => Promise<Uint8Array<ArrayBuffer>>): PageHandler {
  return asset({ contentType, immutable: true, read });
}

/** A file that `scripts/guides.ts` compressed. */
async function readCompressed(path: string): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await Bun.zstdDecompress(await Bun.file(path).bytes()));
}

async function readPage(): Promise<Uint8Array<ArrayBuffer>> {
  const text = await Bun.file(pageHtml).text();
  return new TextEncoder().encode(text.replaceAll("{{swagger-ui}}", `swagger-ui-${uiVersion}`));
}
