import { join } from "node:path";
import { chromium, type Page } from "playwright-core";
import { findChromium } from "../../../scripts/steps/debian.ts";
import { fillCalmly, fillConsole } from "./filling.ts";

/** Additional monitors, and how often each is checked. */
const MONITORS = [
  ["Checkout", "/v1/ping", 38],
  ["API", "/readyz", 33],
  ["Docs", "/docs", 45],
] as const;

const WIDTH = 1180;
/** Waits until no request is in progress. */
const SETTLED_MS = 500;

/** Takes the three pictures of the README, of a new server: the overview while everything works, then the others. */
export async function takeReadmePictures(url: string, key: string, folder: string): Promise<void> {
  await fillCalmly(url, key);
  await fillMonitors(url, key);
  const browser = await chromium.launch({
    executablePath: findChromium() ?? "",
    args: ["--no-sandbox", "--disable-gpu"],
  });
  try {
    const page = await browser.newPage({ viewport: { width: WIDTH, height: 800 } });
    const picture = async (name: string, height: number): Promise<void> => {
      await page.setViewportSize({ width: WIDTH, height });
      await page.mouse.move(0, 0);
      await page.evaluate("scrollTo(0, 0)");
      await page.waitForTimeout(SETTLED_MS);
      await page.screenshot({ path: join(folder, `${name}.png`) });
    };
    await page.goto(`${url}/dashboard/`);
    await page.getByLabel("API key").fill(key);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.locator("a.card").first().waitFor();
    await picture("overview", 800);
    await fillConsole(url, key);
    await page.evaluate(`location.hash = "#/monitors"`);
    await page.locator("main .bars").nth(MONITORS.length).waitFor();
    await picture("monitors", 480);
    await openRefusedEvent(page);
    await picture("catch", 640);
  } finally {
    await browser.close();
  }
}

async function fillMonitors(url: string, key: string): Promise<void> {
  const post = async (path: string, body: object): Promise<Record<string, unknown>> => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as Record<string, unknown>;
  };
  for (const [name, path, checks] of MONITORS) {
    const { id } = await post("/v1/pulse", { url: url + path, interval: 30_000, name });
    for (let at = 0; at < checks; at += 1) await post(`/v1/pulse/${id}/check`, {});
  }
}

/** The event that its target first rejected and then accepted, with the response. */
async function openRefusedEvent(page: Page): Promise<void> {
  await page.evaluate(`location.hash = "#/catch"`);
  await page.getByRole("link", { name: "Shop payments" }).click();
  await page.locator("main a.row").nth(1).click();
  await page.getByRole("list", { name: "Attempts" }).getByRole("button").first().click();
}
