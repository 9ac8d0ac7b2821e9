import { describe, expect, test } from "bun:test";
import type { BrowserContext, BrowserContextOptions, Locator, Page } from "playwright-core";
import { eventually } from "../support/eventually.ts";
import { IS_LONG, repeated } from "../support/long-form.ts";
import { openContext, TIMEOUT_MS } from "./browser.ts";
import { useConsole } from "./console.ts";

/**
 * Swagger UI takes seconds to draw all operations and to scroll through them, and a second for each that is unfolded: every run
 * looks at one of each area, and unfolds two. What the document says of each operation has tests without a browser.
 */
const AREAS_FOR_ONE_UNFOLDED = repeated(10, 1);

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

type Schemas = Readonly<Record<string, unknown>>;

/** The schemas that a part of a document names, and those that they name. */
function schemasIn(part: unknown, all: Schemas, found: Record<string, unknown> = {}): Schemas {
  for (const [, name = ""] of JSON.stringify(part).matchAll(/#\/components\/schemas\/(\w+)/g)) {
    if (name in found) continue;
    found[name] = all[name];
    schemasIn(all[name], all, found);
  }
  return found;
}

interface Operation {
  readonly summary: string;
  readonly tags: readonly string[];
}

/**
 * The server's document with these operations alone, and what they name: Swagger UI reads the whole document anew for
 * each operation that is unfolded.
 */
async function documentOf(isKept: (operation: Operation) => boolean): Promise<Record<string, unknown>> {
  const { body } = await server.client(null).get("/openapi.json");
  const paths = body["paths"] as Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  const own = Object.entries(paths).map(([path, methods]) => {
    return [path, Object.fromEntries(Object.entries(methods).filter(([, one]) => isKept(one)))] as const;
  });
  const shown = Object.fromEntries(own.filter(([, kept]) => Object.keys(kept).length > 0));
  const { schemas, ...components } = body["components"] as Readonly<Record<string, Schemas>>;
  const named = schemasIn([shown, components], schemas as Schemas);
  const used = new Set(
    Object.values(shown).flatMap((methods) => Object.values(methods).flatMap((one) => one.tags)),
  );
  const tags = (body["tags"] as { readonly name: string }[]).filter(({ name }) => used.has(name));
  return { ...body, tags, paths: shown, components: { ...components, schemas: named } };
}

/** Keeps the first operation of each area. */
function firstOfEach(): (operation: Operation) => boolean {
  const seen = new Set<string>();
  return ({ tags }) => {
    const isFirst = tags.some((tag) => !seen.has(tag));
    for (const tag of tags) seen.add(tag);
    return isFirst;
  };
}

/** The operation that is tried out: of many, Swagger UI would draw each again at every step. */
const TRIED = "Refill a tenant meter";
const isTried = ({ summary }: Operation): boolean => summary === TRIED;

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

  /**
   * Opens the page and waits until the API is drawn: all of it, or some. Swagger UI takes seconds for each step in
   * all of it.
   */
  static async begin(
    options: BrowserContextOptions = {},
    isKept?: (operation: Operation) => boolean,
  ): Promise<Visit> {
    const context = await openContext(options);
    const page = await context.newPage();
    if (isKept !== undefined) {
      const document = await documentOf(isKept);
      await page.route("**/openapi.json", (route) => route.fulfill({ json: document }));
    }
    const visit = new Visit(context, page);
    await page.goto(`${server.url}/docs`);
    await page.locator("#areas li").first().waitFor();
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

/** An operation unfolds with what it takes, and what it costs. */
async function expectUnfolding(box: Locator): Promise<void> {
  await box.locator(".opblock-summary-control").click();
  await eventually(async () =>
    expect(await box.locator(".code-sample code").innerText()).toStartWith("curl "),
  );
  await eventually(async () =>
    expect(await box.locator(".opblock-description-wrapper").first().innerText()).toContain("Cost "),
  );
}

/** All that is drawn from top to bottom: of a long description, Swagger UI draws what is in sight. */
async function drawnOn(page: Page): Promise<{ areas: Set<string>; summaries: Set<string> }> {
  const drawn = { areas: new Set<string>(), summaries: new Set<string>() };
  for (let isEnd = false; !isEnd; ) {
    for (const text of await page.locator(".opblock-tag a.nostyle").allInnerTexts())
      drawn.areas.add(text.trim());
    for (const text of await page.locator(".opblock-summary-description").allInnerTexts())
      drawn.summaries.add(text);
    isEnd = (await page.evaluate(SCROLLED)) as boolean;
  }
  return drawn;
}

describe("the page in a browser", () => {
  if (IS_LONG)
    test(
      "renders every area and every operation without an error",
      async () => {
        const visit = await Visit.begin();
        const { page } = visit;
        const { tags, paths } = (await server.client(null).get("/openapi.json")).body as {
          tags: { name: string }[];
          paths: Record<string, Record<string, { summary: string }>>;
        };
        const names = tags.map(({ name }) => name);
        const drawn = await drawnOn(page);
        expect([...drawn.areas]).toEqual(names);
        const summaries = Object.values(paths).flatMap((methods) =>
          Object.values(methods).map((one) => one.summary),
        );
        expect([...drawn.summaries].sort()).toEqual(summaries.sort());
        expect(drawn.summaries.size).toBeGreaterThan(60);
        // The list of areas leads to each, drawn or not.
        await page.locator("#areas a", { hasText: "Operator" }).click();
        await page.locator("#operations-tag-Operator").waitFor();
        await visit.expectClean();
      },
      TIMEOUT_MS,
    );

  test(
    "lists every area; an operation unfolds with an example request",
    async () => {
      const visit = await Visit.begin({}, firstOfEach());
      await eventually(() => expect(visit.page.url()).toBe(`${server.url}/docs`));
      const { tags } = (await server.client(null).get("/openapi.json")).body as { tags: { name: string }[] };
      const names = tags.map(({ name }) => name);
      await eventually(async () =>
        expect(await visit.page.locator("#areas a").allInnerTexts()).toEqual(names),
      );
      const boxes = await visit.page.locator(".opblock").all();
      expect(boxes.length).toBe(names.length);
      for (const box of boxes.filter((_, at) => at % AREAS_FOR_ONE_UNFOLDED === 0))
        await expectUnfolding(box);
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "sends a request with the user's key, shows the response, and does not store the key",
    async () => {
      const account = await server.account({ balance: 50 });
      const visit = await Visit.begin({ colorScheme: "dark" }, isTried);
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
      await visit.page.goto(`${server.url}/docs`);
      await visit.page.locator("#areas li").first().waitFor();
      const after = await visit.tryOut(await visit.operation(TRIED));
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
      const visit = await Visit.begin(PHONE, isTried);
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
