import { afterAll, beforeAll, expect, test } from "bun:test";
import type { BrowserContextOptions, Page } from "playwright-core";
import { eventually } from "../support/eventually.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { violationsOf } from "./axe.ts";
import { closeBrowser, openContext, TIMEOUT_MS } from "./browser.ts";

const WIDE = { viewport: { width: 1280, height: 800 } };
const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({});
});
afterAll(async () => {
  await closeBrowser();
  await server.stop();
});

/** Opens a guide, uses it, and expects no error in the browser's console. */
async function visit(
  path: string,
  options: BrowserContextOptions,
  use: (page: Page) => Promise<void>,
): Promise<void> {
  const context = await openContext(options);
  const page = await context.newPage();
  const faults: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") faults.push(message.text());
  });
  page.on("pageerror", (error) => faults.push(String(error)));
  await page.goto(`${server.url}/docs/guides/${path}`);
  await use(page);
  expect(faults).toEqual([]);
  await context.close();
}

test.each([
  ["", "light", WIDE],
  ["api/notary", "dark", WIDE],
  ["api/monitors", "light", PHONE],
  ["high-availability", "dark", PHONE],
] as const)(
  "%p, %s: axe finds nothing, and nothing is wider than the window",
  async (path, colorScheme, size) => {
    await visit(path, { ...size, colorScheme }, async (page) => {
      expect(await violationsOf(page)).toEqual([]);
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(size.viewport.width);
    });
  },
  TIMEOUT_MS,
);

test(
  "the search finds a section by the words in it, by keyboard",
  async () => {
    await visit("", WIDE, async (page) => {
      await page.keyboard.press("/");
      await page.keyboard.type("circuit breaker probe");
      const found = page.locator(".results a", { hasText: "Relay: endpoints and messages" }).first();
      await found.waitFor();
      expect(await violationsOf(page)).toEqual([]);
      await found.focus();
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "Relay: endpoints and messages", level: 1 }).waitFor();
    });
  },
  TIMEOUT_MS,
);

test(
  "examples have the address of this server, and are copied without the lines that say what they print",
  async () => {
    const options = { ...WIDE, permissions: ["clipboard-read", "clipboard-write"] };
    await visit("api/locks", options, async (page) => {
      const block = page.locator(".code", { hasText: "URL=" }).first();
      expect(await block.locator("code").innerText()).toContain(`URL=${server.url}\n`);
      await block.hover();
      await block.getByRole("button", { name: "Copy" }).click();
      await eventually(async () => expect(await block.getByRole("button").innerText()).toBe("Copied"));
      const copied = String(await page.evaluate("navigator.clipboard.readText()"));
      expect(copied).toStartWith(`URL=${server.url}\n`);
      expect(copied).not.toContain("# 200");
    });
  },
  TIMEOUT_MS,
);

test(
  "on a phone without scripts, a guide is readable and its contents open",
  async () => {
    await visit("api/locks", { ...PHONE, javaScriptEnabled: false }, async (page) => {
      expect(await page.locator("main pre").first().isVisible()).toBe(true);
      expect(await page.locator("#contents").isVisible()).toBe(false);
      await page.getByRole("link", { name: "Contents" }).click();
      await page.locator("#contents").getByRole("link", { name: "Meter", exact: true }).click();
      await page.getByRole("heading", { name: "Meter", level: 1 }).waitFor();
    });
  },
  TIMEOUT_MS,
);
