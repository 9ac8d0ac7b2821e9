import { ApiError } from "../../errors.ts";

/** The path of an absolute URL, as it was sent. */
export function pathOf(url: string): string {
  const target = targetOf(url);
  const query = target.indexOf("?");
  return query < 0 ? target : target.slice(0, query);
}

/** Path and query of an absolute URL, as they were sent. */
export function targetOf(url: string): string {
  // With a Host that makes no URL, the server hands out the target alone.
  if (url.startsWith("/")) return url;
  const authority = url.indexOf("://") + 3;
  const slash = url.indexOf("/", authority);
  return slash < 0 ? "/" : url.slice(slash);
}

/**
 * Whether the parameters of a route are those of the request's URL. Routes match the target as it was sent, whereas the
 * URL is normalized: its `.` and `..` segments are resolved, and each `\` is a `/`. A handler must not read a parameter
 * such as `..`, nor a URL of another endpoint.
 */
export function isNormalized(
  { url }: Pick<Request, "url">,
  params: Readonly<Record<string, string | undefined>>,
): boolean {
  let backslashes = 0;
  for (const name in params) {
    const value = params[name] ?? "";
    if (value === "." || value === "..") return false;
    if (value.includes("\\")) backslashes += value.split("\\").length - 1;
  }
  // Percent-encoded backslashes are part of a value.
  return backslashes === 0 || backslashes === pathOf(url).split(/%5c/i).length - 1;
}

/** A header that a request has once, or a sender and a server may each read another one (RFC 9112, sections 3.2 and 6.3). */
type SingleHeader = "Host" | "Content-Length";

/** Whether such a header is repeated, by its value: the server joins both values as `a, b`, which no single one can be. */
export function isRepeated(value: string | null): boolean {
  return value?.includes(", ") === true;
}

/** The error for a header that {@link isRepeated}. */
export function repeatedHeader(name: SingleHeader): ApiError {
  return new ApiError("invalid_request", `The request has several ${name} headers. Send one.`, {
    headers: { connection: "close" },
  });
}

/** The error for a target that is not normalized. */
export function notNormalized(): ApiError {
  return new ApiError(
    "invalid_request",
    "The path has a `.` or `..` segment or a backslash. Resolve the segments before sending the request, and encode a backslash in a value as %5C.",
  );
}
