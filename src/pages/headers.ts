/**
 * Content security policy of all pages: their own scripts and styles, and requests to this server. No inline scripts
 * or styles and no other hosts; images in stylesheets are data URLs.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
];

/** The headers of a page; `more` are additional directives of its policy. */
export function pageHeaders(
  formAction: string,
  ...more: readonly string[]
): Readonly<Record<string, string>> {
  const policy = [...POLICY, formAction, "frame-ancestors 'none'", ...more];
  return {
    "content-security-policy": policy.join("; "),
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
  };
}
