import { type Browser, chromium } from "playwright-core";
import { findChromium } from "../../scripts/steps/debian.ts";

/** Chromium without whatever would go out to its maker. */
const ARGUMENTS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Starts a headless Chromium with a new profile, and perhaps more arguments. @throws Error that says how to get one. */
export async function startBrowser(more: readonly string[] = []): Promise<Browser> {
  const executablePath = findChromium();
  if (executablePath === undefined)
    throw new Error("There is no Chromium. Run: scripts/test test/pages, which installs it.");
  return chromium.launch({ executablePath, headless: true, args: [...ARGUMENTS, ...more] });
}
