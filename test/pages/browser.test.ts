import { describe, expect, test } from "bun:test";
import type { BrowserContext, BrowserContextOptions, Locator, Page } from "playwright-core";
import { eventually } from "../support/eventually.ts";
import { IS_LONG } from "../support/long-form.ts";
import { violationsOf } from "./axe.ts";
import { openContext, TIMEOUT_MS } from "./browser.ts";
import { useConsole } from "./console.ts";

const WIDE = { viewport: { width: 1280, height: 800 } };
const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

/** Of each button that copies or saves, whether it lies over the text of its request or answer at the end of that. */
const COVERED = `[...document.querySelectorAll(".opblock.is-open :is(.curl-command, .highlight-code) :is(.copy-to-clipboard, .download-contents)")]
  .map((button) => {
    const text = button.parentElement.querySelector(".microlight");
    text.scrollTop = text.scrollHeight;
    const range = document.createRange();
    range.selectNodeContents(text);
    const own = button.getBoundingClientRect();
    return [...range.getClientRects()].some((line) =>
      line.width > 0 && line.bottom > own.top && line.top < own.bottom && line.right > own.left && line.left < own.right);
  })`;

/** Scrolls down by half a screen, and waits until that is drawn. True at the end. */
const SCROLLED = `new Promise((resolve) => {
  const before = scrollY;
  scrollBy(0, innerHeight / 2);
  setTimeout(() => requestAnimationFrame(() => resolve(scrollY === before)), 50);
})`;

const server = useConsole();

/** The operation that is tried out, and its area. */
const TRIED = "Refill a tenant meter";
const TRIED_AREA = "#/Meter";

/** The areas of the API with the summaries of their operations. */
async function areasOf(): Promise<Map<string, string[]>> {
  const { tags, paths } = (await server.client(null).get("/openapi.json")).body as {
    tags: { name: string }[];
    paths: Record<string, Record<string, { summary: string; tags: string[] }>>;
  };
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
  return new Map(
    tags.map(({ name }) => [
      name,
      operations.filter((operation) => operation.tags[0] === name).map(({ summary }) => summary),
    ]),
  );
}

/** A page and everything about it that must not be. */
class Visit {
  readonly page: Page;
  /** Errors in the console, violations of the page's policy among them, and thrown ones. */
  readonly faults: string[] = [];
  /** Requests, as method and address. */
  readonly requests: string[] = [];
  private readonly context: BrowserContext;

  private constructor(context: BrowserContext, page: Page) {
    this.context = context;
    this.page = page;
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") this.faults.push(message.text());
    });
    page.on("pageerror", (error) => this.faults.push(String(error)));
    context.on("request", (request) => {
      if (!request.url().startsWith("data:")) this.requests.push(`${request.method()} ${request.url()}`);
    });
  }

  /** Opens the page at a place, and waits until its areas are listed. */
  static async begin(options: BrowserContextOptions = {}, place = ""): Promise<Visit> {
    const context = await openContext(options);
    const visit = new Visit(context, await context.newPage());
    await visit.page.goto(`${server.url}/docs${place}`);
    await visit.page.locator("#areas li").first().waitFor();
    return visit;
  }

  /** The box of an operation, unfolded. */
  async operation(summary: string): Promise<Locator> {
    const box = this.page.locator(".opblock", { hasText: summary });
    await box.locator(".opblock-summary-control").click();
    await box.locator(".opblock-body").waitFor();
    return box;
  }

  async authorize(key: string): Promise<void> {
    await this.page.locator(".btn.authorize").click();
    // The first of the two kinds of credentials: API keys, then links of the portal.
    await this.page.locator("#auth-bearer-value").first().fill(key);
    await this.page.locator(".auth-btn-wrapper .authorize").first().click();
    await this.page.locator(".btn-done").first().click();
  }

  /** Sends what an operation's form holds, and reads status and body of the answer. */
  async tryOut(box: Locator): Promise<{ status: string; body: unknown }> {
    await box.locator(".try-out__btn").click();
    await box.locator(".execute").click();
    const answer = box.locator(".live-responses-table .response");
    await answer.first().waitFor();
    const status = await answer.locator(".response-col_status").first().innerText();
    const text = await answer.locator(".response-col_description pre").first().innerText();
    return { status: status.trim(), body: JSON.parse(text) };
  }

  /** What must hold however the page was used. */
  async expectClean(): Promise<void> {
    expect(this.faults).toEqual([]);
    const elsewhere = this.requests.filter((request) => !request.includes(` ${server.url}/`));
    expect(elsewhere).toEqual([]);
    const kept = await this.page.evaluate(
      "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])",
    );
    expect(kept).toBe('[{},{},""]');
    await this.context.close();
  }
}

/** The summaries of all operations that are drawn from top to bottom: Swagger UI draws what is in sight. */
async function drawnOn(page: Page): Promise<string[]> {
  const drawn = new Set<string>();
  for (let isEnd = false; !isEnd; ) {
    for (const text of await page.locator(".opblock-summary-description").allInnerTexts()) drawn.add(text);
    isEnd = (await page.evaluate(SCROLLED)) as boolean;
  }
  return [...drawn];
}

describe("the page in a browser", () => {
  if (IS_LONG)
    test(
      "renders every area with its operations, and no other, without an error",
      async () => {
        const visit = await Visit.begin();
        for (const [name, summaries] of await areasOf()) {
          await visit.page.locator("#areas a").getByText(name, { exact: true }).click();
          await visit.page.locator(`[id="operations-tag-${name.replaceAll(" ", "_")}"]`).waitFor();
          expect([name, (await drawnOn(visit.page)).sort()]).toEqual([name, summaries.sort()]);
        }
        await visit.expectClean();
      },
      TIMEOUT_MS,
    );

  test(
    "begins with the introduction and the areas; the address of an operation unfolds it with an example request and its guides",
    async () => {
      const visit = await Visit.begin();
      const names = [...(await areasOf()).keys()];
      expect(await visit.page.locator("#areas a").allInnerTexts()).toEqual(names);
      expect(await visit.page.locator("#overview dt").allInnerTexts()).toEqual(names);
      await visit.page.getByText("Every error has the same body").waitFor();
      expect(await visit.page.locator(".opblock").count()).toBe(0);
      await visit.page.goto(`${server.url}/docs#/Monitors/monitors.create`);
      const box = visit.page.locator(".opblock.is-open");
      await eventually(async () =>
        expect(await box.locator(".code-sample code").innerText()).toStartWith("curl "),
      );
      expect(await box.locator(".opblock-description-wrapper").first().innerText()).toContain("Cost ");
      expect(await visit.page.title()).toBe("Monitors · Ninefold API");
      await box.locator(".guides a", { hasText: "Cron jobs" }).click();
      await visit.page.getByRole("heading", { name: "Cron jobs", level: 1 }).waitFor();
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test.each([
    ["", "light", WIDE],
    ["#/Monitors/monitors.create", "dark", PHONE],
    ["#/Monitors/monitors.create", "light", WIDE],
  ] as const)(
    "%p, %s: axe finds nothing, and nothing is wider than the window",
    async (place, colorScheme, size) => {
      const visit = await Visit.begin({ ...size, colorScheme }, place);
      if (place !== "") await visit.page.locator(".opblock.is-open .code-sample code").first().waitFor();
      expect(await violationsOf(visit.page)).toEqual([]);
      expect(await visit.page.evaluate("document.documentElement.scrollWidth")).toBe(size.viewport.width);
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "finds operations of all areas, and leads to them",
    async () => {
      const visit = await Visit.begin();
      await visit.page.getByLabel("Find an operation").fill("post refill tenant");
      await visit.page.locator("#found a", { hasText: TRIED }).click();
      await visit.page.locator(".opblock.is-open", { hasText: TRIED }).waitFor();
      expect(await visit.page.locator("[aria-current]").allTextContents()).toEqual(["Meter"]);
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "sends a request with the user's key, shows the response, and does not store the key",
    async () => {
      const account = await server.account({ balance: 50 });
      const visit = await Visit.begin({ colorScheme: "dark" }, TRIED_AREA);
      await eventually(async () =>
        expect(await visit.page.locator("html").getAttribute("class")).toBe("dark-mode"),
      );
      await visit.authorize(account.key ?? "");
      const refill = await visit.operation(TRIED);
      expect(await visit.tryOut(refill)).toEqual({
        status: "200",
        body: { balance: 1000, meter_id: "customer-42" },
      });
      expect(visit.requests.at(-1)).toBe(`POST ${server.url}/v1/meter/customer-42/refill`);
      expect((await account.get("/v1/meter/customer-42/balance")).body["balance"]).toBe(1000);
      await visit.page.reload();
      await visit.page.locator("#areas li").first().waitFor();
      // The address names the operation, so it is unfolded again.
      const again = visit.page.locator(".opblock.is-open", { hasText: TRIED });
      await again.locator(".opblock-body").waitFor();
      const after = await visit.tryOut(again);
      expect(after.status).toBe("401");
      // The browser itself notes in its console that a request was answered with an error.
      expect(visit.faults.splice(0)).toEqual([expect.stringContaining("401")]);
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "shows a response within the width of a phone, without a button over it",
    async () => {
      const visit = await Visit.begin(PHONE, TRIED_AREA);
      const box = await visit.operation(TRIED);
      expect((await visit.tryOut(box)).status).toBe("401");
      expect(visit.faults.splice(0)).toEqual([expect.stringContaining("401")]);
      await eventually(async () => expect(await visit.page.evaluate(COVERED)).toEqual([false, false, false]));
      const answer = await box.locator(".live-responses-table .highlight-code").first().boundingBox();
      expect(answer?.width).toBeGreaterThan((PHONE.viewport.width * 2) / 3);
      await eventually(async () =>
        expect(await visit.page.evaluate("document.documentElement.scrollWidth")).toBe(PHONE.viewport.width),
      );
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});
