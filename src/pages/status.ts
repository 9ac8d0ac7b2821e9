import { hash } from "node:crypto";
import type { Http } from "../kernel/http/http.ts";
import { asset } from "../kernel/http/responses/asset.ts";
import style from "./status.css" with { type: "text" };

/** Characters of a digest that tell two versions of a file apart. */
const NAME_LENGTH = 10;

/** What the stylesheet of status pages is called: its name changes with its content. No page has a dot in its name. */
export const STATUS_STYLE = `style-${hash("sha256", style, "hex").slice(0, NAME_LENGTH)}.css`;

/** The stylesheet of status pages, which stands beside them. */
export function statusStylePage(http: Http): void {
  const read = async () => new TextEncoder().encode(style);
  http.page(
    `/status/${STATUS_STYLE}`,
    asset({ contentType: "text/css; charset=utf-8", immutable: true, read }),
  );
}
