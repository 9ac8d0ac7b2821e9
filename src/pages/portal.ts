import { FILES } from "../../build/portal/files.js";
import type { Http } from "../kernel/http/http.ts";
import { framedPageHeaders } from "./headers.ts";
import { programPages } from "./program.ts";

/**
 * The portal, in which customers of an account manage their webhook endpoints: its page at `/portal/` and its files.
 * `origins`: those whose pages may embed it.
 */
export function portalPages(http: Http, origins: readonly string[]): void {
  const headers = framedPageHeaders(
    origins,
    "form-action 'none'",
    // No script may turn text of customers or of their servers into markup.
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  );
  programPages(http, "portal", FILES, headers);
}
