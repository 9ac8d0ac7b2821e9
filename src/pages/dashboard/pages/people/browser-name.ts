/** Names of browsers by what their user agent has; the first that matches counts, since others are named along. */
const BROWSERS: readonly (readonly [token: RegExp, name: string])[] = [
  [/\bEdgA?\//, "Edge"],
  [/\bOPR\//, "Opera"],
  [/\bFirefox\/|\bFxiOS\//, "Firefox"],
  [/\bHeadlessChrome\/|\bChrome\/|\bCriOS\//, "Chrome"],
  [/\bSafari\//, "Safari"],
];

const SYSTEMS: readonly (readonly [token: RegExp, name: string])[] = [
  [/\biPhone\b/, "iPhone"],
  [/\biPad\b/, "iPad"],
  [/\bAndroid\b/, "Android"],
  [/\bWindows\b/, "Windows"],
  [/\bMac OS X\b/, "macOS"],
  [/\bCrOS\b/, "ChromeOS"],
  [/\bLinux\b/, "Linux"],
];

/** A browser in words, by its user agent: `Firefox on Linux`. */
export function browserOf(userAgent: string | null): string {
  if (userAgent === null) return "Unknown browser";
  const nameIn = (all: typeof BROWSERS): string | undefined =>
    all.find(([token]) => token.test(userAgent))?.[1];
  const browser = nameIn(BROWSERS);
  const system = nameIn(SYSTEMS);
  if (browser === undefined) return userAgent.slice(0, NAME_LENGTH_MAX);
  return system === undefined ? browser : `${browser} on ${system}`;
}

/** Most characters of a user agent of which nothing is known. */
const NAME_LENGTH_MAX = 40;
