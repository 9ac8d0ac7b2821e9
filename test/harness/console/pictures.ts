import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { findChromium } from "../../../scripts/steps/debian.ts";
import { SET_BUCKET, VIEWS, WITH_ROWS } from "./views.ts";

/** Options of the pictures. */
export interface Pictures {
  readonly url: string;
  readonly key: string;
  readonly folder: string;
  /** Prefix of the files' names. */
  readonly name: string;
  /** Pages by their addresses; all of them when it is empty. */
  readonly pages: readonly string[];
}

const LOOKS = [
  ["wide-light", 1280, 860, "light"],
  ["wide-dark", 1280, 860, "dark"],
  ["narrow-light", 390, 844, "light"],
  ["narrow-dark", 390, 844, "dark"],
] as const;

/** Waits until no request is in progress, so that the page is complete. */
const SETTLED_MS = 350;

/** Takes the pictures. Resolves to their number. */
export async function takePictures(pictures: Pictures): Promise<number> {
  mkdirSync(pictures.folder, { recursive: true });
  const executablePath = findChromium();
  if (executablePath === undefined)
    throw new Error("There is no Chromium. Run: scripts/test test/pages, which installs it.");
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
  try {
    let taken = 0;
    for (const look of LOOKS) taken += await takeLook(browser, pictures, look);
    return taken;
  } finally {
    await browser.close();
  }
}

async function takeLook(browser: Browser, pictures: Pictures, look: (typeof LOOKS)[number]): Promise<number> {
  const [name, width, height, colorScheme] = look;
  const page = await browser.newPage({ viewport: { width, height }, colorScheme });
  page.on("pageerror", (error) => console.error(`${page.url()}: ${error}`));
  const picture = async (what: string): Promise<void> => {
    await page.waitForTimeout(SETTLED_MS);
    const file = `${what.replaceAll(/\W+/g, "-")}-${pictures.name}-${name}.png`;
    await page.screenshot({ path: join(pictures.folder, file), fullPage: true });
  };
  await page.goto(`${pictures.url}/dashboard/`);
  await page.getByLabel("API key").waitFor();
  await picture("log-in");
  await page.getByLabel("API key").fill(pictures.key);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.locator("nav").waitFor();
  const pages = pictures.pages.length === 0 ? VIEWS : pictures.pages;
  let taken = 1;
  for (const one of pages) {
    await page.evaluate(`location.hash = "#/${one}"`);
    await picture(one);
    taken += 1;
    if (WITH_ROWS.includes(one) && (await openRow(page))) {
      await picture(`${one}-one`);
      taken += 1;
    }
    if (one === "catch" && (await openRow(page, 1))) {
      await picture("catch-event");
      await page.getByRole("button", { name: "Body", exact: true }).click();
      await picture("catch-event-body");
      await page.goBack();
      await page.goBack();
      await page.getByRole("link", { name: SET_BUCKET }).click();
      await picture("catch-set");
      await page.getByRole("button", { name: "Edit…" }).click();
      await picture("catch-settings");
      await page.keyboard.press("Escape");
      taken += 4;
    }
  }
  await page.keyboard.press("Control+K");
  await picture("palette");
  await page.close();
  return taken + 1;
}

async function openRow(page: Page, at = 0): Promise<boolean> {
  const row = page.locator("main a.row").nth(at);
  if ((await row.count()) === 0) return false;
  await row.click();
  await page.waitForTimeout(SETTLED_MS);
  return true;
}
