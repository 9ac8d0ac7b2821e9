import { FILES } from "../../build/dashboard/files.js";
import type { Http } from "../kernel/http/http.ts";
import { pageHeaders } from "./headers.ts";
import { programPages } from "./program.ts";

/** Forms are sent by script only. Trusted Types: no script may turn text from webhooks or logs into markup. */
const HEADERS = pageHeaders(
  "form-action 'self'",
  // For the preview of a status page next to its settings.
  "frame-src 'self'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
);

/** The console: its page at `/dashboard/` and its files. */
export function dashboardPages(http: Http): void {
  programPages(http, "dashboard", FILES, HEADERS);
}
