import { afterAll, beforeAll, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { BrowserContext, Cookie, Page } from "playwright-core";
import { realDelay } from "../../src/kernel/time/clock.ts";
import { fillConsole } from "../harness/console/filling.ts";
import { IS_LONG } from "../support/long-form.ts";
import { TestServer, type TestServerOptions } from "../support/server.ts";
import { closeBrowser, LEFT_PAGES, openBrowser, openContext, TIMEOUT_MS } from "./browser.ts";

/** What axe looks for: WCAG 2.1 AA and its own best practice. */
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"];
/** Nobody reads what passes, and the console frames nothing: without both a look takes a sixth less. */
const AXE_OPTIONS = { runOnly: RULES, resultTypes: ["violations"], iframes: false, preload: false };

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What axe finds, one a line; null where axe is not loaded. */
const FIND_VIOLATIONS = `async (options, isNavigationOnce) => {
  if (!("axe" in window)) return null;
  const navigation = "nav[aria-label=Pages]";
  const isKnown = isNavigationOnce && window.isNavigationChecked === true;
  const { violations } = await axe.run(isKnown ? { exclude: [navigation] } : document, options);
  window.isNavigationChecked ||= isNavigationOnce && document.querySelector(navigation) !== null;
  return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ": " + html.slice(0, 160)));
}`;

/** Letters of words that no column has to break. */
const SHORT_WORD = 10;

/** Short words of cells that have more than one line. */
const BROKEN_WORDS = `[...document.querySelectorAll("td, th")].flatMap((cell) => {
  const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  const broken = [];
  const range = document.createRange();
  for (let text = texts.nextNode(); text !== null; text = texts.nextNode())
    for (const { 0: word, index } of text.data.matchAll(/(?<!\\S)[\\p{L}\\p{N}]{2,${SHORT_WORD}}(?=$|[\\s,.:;])/gu)) {
      range.setStart(text, index);
      range.setEnd(text, index + word.length);
      const tops = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
      if (tops.size > 1) broken.push(word);
    }
  return broken;
})`;

/** Longer than a change takes to be read again. */
const REQUEST_PAUSE_MS = 300;

/** The cookies of sessions, by server and key. */
const LOGGED_IN = new Map<string, Cookie[]>();

/**
 * Waits until everything on the page has been read, and that has been drawn. In the page, since each look from outside takes
 * longer than what it looks for.
 */
const SETTLE = `() => new Promise((resolve) => {
  const isSettled = () => document.querySelector(".loading") === null && document.querySelector("h1") !== null;
  const drawn = new MessageChannel();
  const changed = new MutationObserver(() => drawn.port2.postMessage(null));
  let settled = 0;
  // Between its code and its data, a page is empty for a moment: it has to be settled in two turns.
  drawn.port1.onmessage = () => {
    settled = isSettled() ? settled + 1 : 0;
    if (settled === 1) drawn.port2.postMessage(null);
    if (settled !== 2) return;
    changed.disconnect();
    drawn.port1.close();
    resolve();
  };
  changed.observe(document, { subtree: true, childList: true, attributes: true });
  drawn.port2.postMessage(null);
})`;

/** Sets the address, and waits until the page has been drawn for it: what was there before is gone. */
const GO = `(place) => new Promise((resolve) => {
  if (new URL(place, location).href === location.href) return resolve();
  // A message comes after the rendering, also when the clock of the page stands still.
  const drawn = new MessageChannel();
  drawn.port1.onmessage = () => resolve();
  addEventListener("hashchange", () => drawn.port2.postMessage(null), { once: true });
  location.hash = place;
})`;

/** A page that reads nothing, where a visit begins: the overview, which reads everything, is drawn where a test looks at it. */
const FIRST_PLACE = "nowhere";

/** What visits and their tests listen to. */
const LISTENED = ["console", "pageerror", "request", "dialog"] as const;

const VIEWPORT = { width: 1280, height: 860 };

/** How a browser is set. */
export interface Look {
  readonly colorScheme?: "light" | "dark";
  readonly width?: number;
}

/** The console in a browser, and everything about it that must not be. */
export class Console {
  /** Errors in the console, violations of the page's policy among them, and thrown ones. */
  readonly faults: string[] = [];
  /** Requests, as method and address. */
  readonly requests: string[] = [];
  /** Whether the next visit may take over its page. */
  private isPlain = false;

  private constructor(
    readonly server: TestServer,
    readonly context: BrowserContext,
    readonly page: Page,
    private readonly colorScheme: "light" | "dark",
    /** Address of the server as the browser knows it. */
    readonly url = server.url,
  ) {
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") this.faults.push(message.text());
    });
    page.on("pageerror", (error) => this.faults.push(String(error)));
    page.on("request", (request) => {
      if (!request.url().startsWith("data:")) this.requests.push(`${request.method()} ${request.url()}`);
    });
  }

  /** Opens the console, where nobody is logged in. */
  static async open(server: TestServer, look: Look = {}): Promise<Console> {
    const opened = await Console.openPage(server, look);
    await opened.page.goto(`${server.url}/dashboard/`);
    await opened.page.getByLabel("API key").waitFor();
    return opened;
  }

  /** Opens an address of the console at `localhost`, where passkeys work, in a profile of its own. */
  static async openAt(server: TestServer, place: string, look: Look = {}): Promise<Console> {
    const page = await Console.newPage(look);
    const url = server.url.replace("127.0.0.1", "localhost");
    const opened = new Console(server, page.context(), page, look.colorScheme ?? "light", url);
    await page.goto(`${url}/dashboard/${place}`);
    await opened.settle();
    return opened;
  }

  /** Opens an empty page in an empty profile. */
  private static async openPage(server: TestServer, look: Look = {}): Promise<Console> {
    const isPlain = Object.keys(look).length === 0;
    const left = isPlain ? LEFT_PAGES.pop() : undefined;
    const page = left?.isClosed() === false ? left : await Console.newPage(look);
    const opened = new Console(server, page.context(), page, look.colorScheme ?? "light");
    opened.isPlain = isPlain;
    return opened;
  }

  private static async newPage(look: Look): Promise<Page> {
    const { colorScheme = "light", width = VIEWPORT.width } = look;
    // A colour on its way to another is neither.
    const context = await openContext({
      colorScheme,
      reducedMotion: "reduce",
      viewport: { ...VIEWPORT, width },
    });
    return context.newPage();
  }

  /**
   * Opens the console logged in, as the operator unless with another key, with nothing of earlier visits. A key logs in once
   * for each server: its other visits share that session, since logins are limited.
   */
  static async enter(server: TestServer, key = server.key): Promise<Console> {
    const saved = `${server.url} ${key}`;
    const cookies = LOGGED_IN.get(saved);
    if (cookies === undefined) {
      const opened = await (await Console.open(server)).logIn(key);
      LOGGED_IN.set(saved, await opened.context.cookies());
      return opened;
    }
    const opened = await Console.openPage(server);
    await opened.context.addCookies(cookies);
    await opened.page.goto(`${server.url}/dashboard/#/${FIRST_PLACE}`);
    await opened.page.getByRole("navigation", { name: "Pages" }).waitFor();
    return opened;
  }

  /** Ends the visit. A plain profile is emptied for the next visit. */
  private async leave(): Promise<void> {
    const { context, page } = this;
    if (!this.isPlain || context.pages().length > 1) {
      await context.close();
      return;
    }
    for (const event of LISTENED) page.removeAllListeners(event);
    // No page of the console is open meanwhile: it would read again what other tests change.
    await page.goto(`${this.server.url}/v1/ping`);
    await page.evaluate("localStorage.clear(); sessionStorage.clear()");
    await page.unrouteAll();
    await context.clearPermissions();
    await context.clearCookies();
    if (page.viewportSize()?.width !== VIEWPORT.width) await page.setViewportSize(VIEWPORT);
    LEFT_PAGES.push(page);
  }

  /** Logs in with a key. */
  async logIn(key: string): Promise<this> {
    await this.page.getByLabel("API key").fill(key);
    await this.page.getByRole("button", { name: "Log in" }).click();
    await this.page.getByRole("navigation", { name: "Pages" }).waitFor();
    return this;
  }

  /** Goes to a page by its address, and waits until it is drawn. */
  async go(place: string): Promise<void> {
    await this.page.evaluate(`(${GO})(${JSON.stringify(`#/${place}`)}).then(${SETTLE})`);
  }

  /**
   * Replaces the clock of the page and loads the page again. A clock shows 1970 until its time is set, so it is installed
   * while no script runs.
   */
  async installClock(time = Date.now()): Promise<void> {
    // It stays replaced.
    this.isPlain = false;
    const address = this.page.url();
    await this.page.goto("about:blank");
    await this.page.clock.install({ time });
    await this.page.goto(address);
    await this.page.getByRole("navigation", { name: "Pages" }).waitFor();
  }

  /** Waits until everything on the page has been read. */
  async settle(): Promise<void> {
    await this.page.evaluate(`(${SETTLE})()`);
  }

  /** Waits until the page has sent no request for a while: what a change caused to be read again has been read. */
  async settleRequests(): Promise<void> {
    let sent = -1;
    while (sent !== this.requests.length) {
      sent = this.requests.length;
      await realDelay(REQUEST_PAUSE_MS);
    }
  }

  /** The text of the page, whatever is open over it too. */
  text(): Promise<string> {
    return this.page.evaluate<string>("document.documentElement.outerHTML");
  }

  /**
   * What axe finds on the page as it stands. The navigation is the same on every page and a third of the work: outside of the
   * long form, a document's first look includes it, and the others do not.
   */
  violations(): Promise<string[]> {
    return this.found(AXE_OPTIONS, !IS_LONG);
  }

  /** What axe finds in the page's other colours, those of night by day: of its rules one alone hangs on them. */
  async violationsInOtherColours(): Promise<string[]> {
    const other = this.colorScheme === "light" ? "dark" : "light";
    await this.page.emulateMedia({ colorScheme: other });
    const found = await this.found({ ...AXE_OPTIONS, runOnly: ["color-contrast"] });
    await this.page.emulateMedia({ colorScheme: this.colorScheme });
    return found.map((violation) => `${other}: ${violation}`);
  }

  /** What axe finds of things too small to hit with a finger: the one rule that depends on the width alone. */
  smallTargets(): Promise<string[]> {
    const options = { ...AXE_OPTIONS, runOnly: ["target-size"], rules: { "target-size": { enabled: true } } };
    return this.found(options);
  }

  private async found(options: object, isNavigationOnce = false): Promise<string[]> {
    const look = `(${FIND_VIOLATIONS})(${JSON.stringify(options)}, ${isNavigationOnce})`;
    const found = await this.page.evaluate<string[] | null>(look);
    if (found !== null) return found;
    await this.page.evaluate(AXE);
    return this.page.evaluate<string[]>(look);
  }

  /** How much wider the page is than the window. */
  async overflow(): Promise<number> {
    return this.page.evaluate<number>("document.documentElement.scrollWidth - innerWidth");
  }

  /** Words in tables that are broken over lines, although they are short: their column is too narrow. */
  async brokenWords(): Promise<string[]> {
    return this.page.evaluate<string[]>(BROKEN_WORDS);
  }

  /** What must hold however the console was used. */
  async expectClean(): Promise<void> {
    expect(this.faults).toEqual([]);
    const elsewhere = this.requests.filter((request) => !request.includes(` ${this.url}/`));
    expect(elsewhere).toEqual([]);
    await this.leave();
  }
}

/** A server whose console the tests of a file use, and the browser for it. */
export function useConsole(options: TestServerOptions = {}): TestServer {
  const server = new TestServer(options);
  beforeAll(async () => {
    await Promise.all([openBrowser(), server.start()]);
  }, TIMEOUT_MS);
  afterAll(async () => {
    await closeBrowser();
    await server.stop();
  }, TIMEOUT_MS);
  return server;
}

/** The same with something of every kind on the server. */
export function useFilledConsole(): TestServer {
  const server = useConsole({ args: ["--allow-private-targets", "127.0.0.0/8"] });
  beforeAll(() => fillConsole(server.url, server.key), TIMEOUT_MS);
  return server;
}
