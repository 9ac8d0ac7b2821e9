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

/** The headers of a page that no other page may embed; `more` are additional directives of its policy. */
export function pageHeaders(
  formAction: string,
  ...more: readonly string[]
): Readonly<Record<string, string>> {
  return framedPageHeaders([], formAction, ...more);
}

/** The same of a page that pages of these origins may embed. */
export function framedPageHeaders(
  origins: readonly string[],
  formAction: string,
  ...more: readonly string[]
): Readonly<Record<string, string>> {
  const ancestors = origins.length === 0 ? "'none'" : origins.join(" ");
  const policy = [...POLICY, formAction, `frame-ancestors ${ancestors}`, ...more];
  return {
    "content-security-policy": policy.join("; "),
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
  };
}
