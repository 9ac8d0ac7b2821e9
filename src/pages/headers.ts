/**
 * What every page may do: load its own scripts and styles and ask this server. No inline script or style, no other host;
 * pictures in stylesheets are data.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
];

/** The headers of a page; `more` are its own parts of the policy. */
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
