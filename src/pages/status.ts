import { hash } from "node:crypto";
import type { Http } from "../kernel/http/http.ts";
import { asset } from "../kernel/http/responses/asset.ts";
import style from "./status.css" with { type: "text" };

/** Characters of the digest in a file name. */
const NAME_LENGTH = 10;

/** Name of the status pages' stylesheet. It changes with the content. Slugs of pages contain no dot. */
export const STATUS_STYLE = `style-${hash("sha256", style, "hex").slice(0, NAME_LENGTH)}.css`;

/** The stylesheet of status pages. */
export function statusStylePage(http: Http): void {
  const read = async () => new TextEncoder().encode(style);
  http.page(
    `/status/${STATUS_STYLE}`,
    asset({ contentType: "text/css; charset=utf-8", immutable: true, read }),
  );
}
