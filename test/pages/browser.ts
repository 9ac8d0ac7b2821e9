import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from "playwright-core";
import { findChromium } from "../../scripts/steps/debian.ts";

/** A name as in a local network: plain HTTP there is no secure context, unlike that of this machine itself. */
export const NAME = "ninefold.lan";

/** Chromium without whatever would go out to its maker. */
const ARGUMENTS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  `--host-resolver-rules=MAP ${NAME} 127.0.0.1`,
];

/** Starting a browser, and drawing a large page, take a minute on a machine that is busy with many other things. */
export const TIMEOUT_MS = 300_000;
/** Longest wait for one thing on a page. */
const STEP_TIMEOUT_MS = 90_000;

let opened: Promise<Browser> | undefined;

/**
 * Pages that visits have left, with plain profiles that are empty: the next visit takes one over with its process, which has
 * the program compiled, also in another file. A page in a process of its own takes several times as much processor time to load.
 */
export const LEFT_PAGES: Page[] = [];

/**
 * The headless Chromium of the process of tests: what a test opens in it is a context of its own, with a new
 * profile. @throws Error that says how to get one.
 */
export function openBrowser(): Promise<Browser> {
  opened ??= startBrowser().then((browser) => {
    // Bun ends the processes of a test that takes too long; the next test gets another browser.
    browser.on("disconnected", () => {
      opened = undefined;
    });
    return browser;
  });
  return opened;
}

/** A new profile in the browser. */
export async function openContext(options: BrowserContextOptions = {}): Promise<BrowserContext> {
  const context = await (await openBrowser()).newContext(options);
  context.setDefaultTimeout(STEP_TIMEOUT_MS);
  return context;
}

/**
 * Ends it, after a file's last test: when a process of tests ends, nothing of ours runs that could remove its folders. Where the
 * run removes them, only what the file opened is closed, but for {@link LEFT_PAGES}: the browser is there for the process's next
 * file, and ends when the process does.
 */
export async function closeBrowser(): Promise<void> {
  const browser = await opened;
  if (process.env["NINEFOLD_TEST_KEEP_BROWSER"] === "1") {
    const left = new Set(LEFT_PAGES.map((page) => page.context()));
    const used = browser?.contexts().filter((context) => !left.has(context)) ?? [];
    await Promise.all(used.map((context) => context.close()));
    return;
  }
  LEFT_PAGES.length = 0;
  await browser?.close();
  opened = undefined;
}

async function startBrowser(): Promise<Browser> {
  const executablePath = findChromium();
  if (executablePath === undefined)
    throw new Error("There is no Chromium. Run: scripts/test test/pages, which installs it.");
  return chromium.launch({ executablePath, headless: true, args: ARGUMENTS, timeout: STEP_TIMEOUT_MS });
}
