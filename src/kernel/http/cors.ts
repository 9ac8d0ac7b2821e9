import type { RenderedAnswer } from "./answer.ts";

/** Answers browsers of the origins that the operator lists; everyone else gets no CORS headers at all. */
export interface Cors {
  /** Adds the headers of an answer to a listed origin. */
  decorate(request: Request, headers: Record<string, string>): void;
  /** The answer to a preflight request of a listed origin, or null. */
  preflight(request: Request): RenderedAnswer | null;
}

/** How long a browser may remember a preflight answer, in seconds. */
const PREFLIGHT_KEPT_SECONDS = "600";
const EXPOSED = [
  "x-request-id",
  "retry-after",
  "x-ratelimit-limit",
  "x-ratelimit-remaining",
  "x-ratelimit-reset",
  "idempotent-replayed",
  "x-witness-status",
].join(", ");

/** CORS for the listed origins (exact, such as `https://app.example.com`). */
export function createCors(origins: readonly string[]): Cors {
  if (origins.length === 0) return { decorate: () => {}, preflight: () => null };
  const listed = new Set(origins);
  const allowed = (request: Request): string | null => {
    const origin = request.headers.get("origin");
    return origin !== null && listed.has(origin) ? origin : null;
  };
  return {
    decorate(request, headers) {
      // Caches must not hand one origin's answer to another, whether this one is listed or not.
      headers.vary = headers.vary === undefined ? "Origin" : `${headers.vary}, Origin`;
      const origin = allowed(request);
      if (origin === null) return;
      headers["access-control-allow-origin"] = origin;
      headers["access-control-expose-headers"] = EXPOSED;
    },
    preflight(request) {
      const wanted = request.headers.get("access-control-request-method");
      if (request.method !== "OPTIONS" || wanted === null || allowed(request) === null) return null;
      return {
        status: 204,
        text: "",
        headers: {
          "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
          "access-control-allow-headers": "authorization, content-type, idempotency-key",
          "access-control-max-age": PREFLIGHT_KEPT_SECONDS,
        },
      };
    },
  };
}
