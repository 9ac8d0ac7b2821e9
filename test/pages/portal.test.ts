import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { BrowserContext, Frame, Page } from "playwright-core";
import { eventually } from "../support/eventually.ts";
import { IS_LONG } from "../support/long-form.ts";
import { customerOf, portalToken } from "../support/portal.ts";
import { type AccountClient, startTestServer, type TestServer } from "../support/server.ts";
import { WebhookSink } from "../support/webhook-sink.ts";
import { closeBrowser, openBrowser, openContext, TIMEOUT_MS } from "./browser.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"];
/** Largest page with its script and style, compressed. */
const PAGE_BYTES_MAX = 25 * 1024;

/** A site that shows the link of the query in an iframe. */
function application(): Bun.Server<undefined> {
  return Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: ({ url }) => {
      const link = new URL(url).searchParams.get("link") ?? "";
      const html = `<!doctype html><html lang="en"><title>App</title><iframe title="Webhooks" width="600" height="800" src="${link}"></iframe>`;
      return new Response(html, { headers: { "content-type": "text/html" } });
    },
  });
}

let server: TestServer;
let account: AccountClient;
const sink = new WebhookSink();
const listed = application();
const unlisted = application();
const originOf = ({ port }: { readonly port: number | undefined }) => `http://127.0.0.1:${port}`;
beforeAll(async () => {
  const args = ["--allow-private-targets", "127.0.0.0/8", "--portal-origins", originOf(listed)];
  [server] = await Promise.all([startTestServer({ args }), openBrowser()]);
  account = await server.account();
}, TIMEOUT_MS);
afterAll(async () => {
  await closeBrowser();
  await server.stop();
  sink.stop();
  await listed.stop(true);
  await unlisted.stop(true);
}, TIMEOUT_MS);

/** A page in a profile of its own, and everything about it that must not be. */
class Visit {
  readonly faults: string[] = [];

  private constructor(
    readonly context: BrowserContext,
    readonly page: Page,
  ) {
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") this.faults.push(message.text());
    });
    page.on("pageerror", (error) => this.faults.push(String(error)));
  }

  static async begin(look: { colorScheme?: "light" | "dark"; width?: number } = {}): Promise<Visit> {
    const { colorScheme = "light", width = 1000 } = look;
    const context = await openContext({
      colorScheme,
      viewport: { width, height: 860 },
    });
    return new Visit(context, await context.newPage());
  }

  /** What axe finds on the page as it stands. */
  async violations(): Promise<string[]> {
    if (!(await this.page.evaluate<boolean>("'axe' in window"))) await this.page.evaluate(AXE);
    const options = JSON.stringify({ runOnly: RULES, resultTypes: ["violations"] });
    const found = await this.page.evaluate(`axe.run(${options})`);
    const { violations } = found as { violations: { id: string; nodes: { html: string }[] }[] };
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 160)}`));
  }

  async end(): Promise<void> {
    expect(this.faults).toEqual([]);
    await this.context.close();
  }
}

/** A link of a customer of its own. */
async function linkOf(owner_id: string, body: object = {}): Promise<string> {
  return `${server.url}/portal/#token=${await portalToken(account, { owner_id, ...body })}`;
}

/** Adds an endpoint, tests it, shows the secret, and resends a delivery, in a page or a frame. */
async function walk(page: Page | Frame, url: string): Promise<void> {
  await page.getByRole("button", { name: "Add endpoint" }).click();
  await page.getByLabel("URL").fill(url);
  await page.getByLabel("Description").fill("Shop <b>1</b>");
  await page.getByLabel("order.paid").check();
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("heading", { name: url }).waitFor();
  await page.getByText("Shop <b>1</b>").waitFor();

  await page.getByRole("button", { name: "Send test event" }).click();
  await page.getByText("Delivered 200").waitFor();

  await page.getByRole("button", { name: "Show secret" }).click();
  const secret = await page.getByText(/^whsec_/).textContent();
  await page.getByRole("button", { name: "Rotate secret" }).click();
  await page.getByRole("button", { name: "Really rotate?" }).click();
  await page.getByText("Events are also signed with the previous secret until").waitFor();
  await eventually(async () => expect(await page.getByText(/^whsec_/).textContent()).not.toBe(secret));
  await page.getByRole("button", { name: "Hide secret" }).click();
  await eventually(async () => expect(await page.getByText(/^whsec_/).count()).toBe(0));

  await page.getByRole("link", { name: /order\.paid/ }).click();
  await page.getByRole("heading", { name: "order.paid" }).waitFor();
  await page.getByText('"data":{"test":true}}').waitFor();
  await page.getByRole("button", { name: "Resend" }).click();
  await page.getByText("Attempt 2").waitFor();
  await page.getByText("Attempt 2").click();
  await page.getByText("webhook-signature").first().waitFor();
  await page.getByRole("link", { name: "Back to the endpoint" }).click();
  await page.getByRole("heading", { name: url }).waitFor();
}

describe("the page", () => {
  test(
    "adds an endpoint, tests it, shows and rotates its secret, lists deliveries, resends, pauses and deletes",
    async () => {
      const visit = await Visit.begin();
      const { page } = visit;
      const requests: string[] = [];
      page.on("request", (request) => requests.push(request.url()));
      await page.goto(await linkOf("walker", { event_types: ["order.paid", "order.refunded"] }));
      await walk(page, sink.url("/walker"));
      expect(sink.take().length).toBe(2);

      await page.getByRole("button", { name: "Edit" }).click();
      await page.getByLabel("order.paid").uncheck();
      await page.getByLabel("order.refunded").check();
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("order.refunded").waitFor();
      await page.getByRole("button", { name: "Pause" }).click();
      await page.getByText("Paused").waitFor();
      await page.getByRole("button", { name: "Resume" }).click();
      await page.getByText("Active").waitFor();
      await page.getByRole("link", { name: "All endpoints" }).click();
      await page.getByRole("link", { name: /walker/ }).click();
      await page.getByRole("button", { name: "Delete" }).click();
      await page.getByRole("button", { name: "Really delete?" }).click();
      await page.getByText("You have no endpoints yet").waitFor();

      expect(requests.every((url) => url.startsWith(`${server.url}/`))).toBe(true);
      expect(requests.filter((url) => url.includes("portal_"))).toEqual([]);
      await eventually(async () => expect(await visit.context.cookies()).toEqual([]));
      const { body } = await account.get("/v1/relay/endpoints?owner_id=walker");
      expect(body["endpoints"]).toEqual([]);
      await visit.end();
    },
    TIMEOUT_MS,
  );

  test(
    "counts and replays what an endpoint missed, and stops it",
    async () => {
      const send = (n: number) =>
        account.post("/v1/relay/messages", { event_type: "a", owner_id: "misses", payload: { n } });
      for (const n of [1, 2]) await send(n);
      const customer = await customerOf(server, account, { owner_id: "misses" });
      await customer.post("/v1/relay/portal/endpoints", { url: sink.url("/misses") });
      const visit = await Visit.begin();
      const { page } = visit;
      await page.goto(await linkOf("misses"));
      await page.getByRole("link", { name: /misses/ }).click();
      await page.getByRole("button", { name: "Replay missing" }).click();
      await page.getByRole("button", { name: "Count" }).click();
      await page.getByText("2 events missing.").waitFor();
      await eventually(async () => expect(await visit.violations()).toEqual([]));
      const since = await page.getByLabel("Since").inputValue();
      await page.getByLabel("Until").fill(since);
      await page.getByRole("button", { name: "Count" }).waitFor();
      await page.getByLabel("Until").fill("");
      await page.getByLabel("Speed").selectOption("1");
      await page.getByRole("button", { name: "Count" }).click();
      await page.getByRole("button", { name: "Replay 2 events" }).click();
      await page.getByText(/Replay (running|finished)/).waitFor();
      await page.getByText("Replay finished: 2 of 2 sent").waitFor();
      await eventually(async () => expect(await visit.violations()).toEqual([]));
      await page.getByRole("button", { name: "Close" }).click();
      await eventually(async () => expect(await page.getByText("Replay finished").count()).toBe(0));
      await eventually(async () => expect(await page.getByText("Delivered 200").count()).toBe(2));

      for (let n = 0; n < 30; n += 1) await send(n);
      await customer.post("/v1/relay/portal/endpoints", { url: sink.url("/second") });
      await page.getByRole("link", { name: "All endpoints" }).click();
      await page.getByRole("link", { name: /second/ }).click();
      await page.getByRole("button", { name: "Replay missing" }).click();
      await page.getByLabel("Speed").selectOption("1");
      await page.getByRole("button", { name: "Count" }).click();
      await page.getByRole("button", { name: "Replay 32 events" }).click();
      await page.getByText(/Replay running: \d+ of 32 sent/).waitFor();
      await page.reload();
      await page.getByText(/Replay running: \d+ of 32 sent/).waitFor();
      await page.getByRole("button", { name: "Stop" }).click();
      await page.getByText(/Replay stopped: \d+ of 32 sent/).waitFor();
      sink.take();
      await visit.end();
    },
    TIMEOUT_MS,
  );

  test(
    "removes the token from the address, and keeps it for a reload of the tab only",
    async () => {
      const visit = await Visit.begin();
      const { page } = visit;
      await page.goto(await linkOf("reloads"));
      await page.getByRole("button", { name: "Add endpoint" }).waitFor();
      await eventually(() => expect(page.url()).toBe(`${server.url}/portal/`));
      await eventually(async () => expect(await page.content()).not.toContain("portal_"));
      await page.reload();
      await page.getByRole("button", { name: "Add endpoint" }).waitFor();
      const other = await visit.context.newPage();
      await other.goto(`${server.url}/portal/`);
      await other.getByText("This link has expired").waitFor();
      await visit.context.close();
    },
    TIMEOUT_MS,
  );

  test(
    "requests confirmation before a link of another customer takes over, and names both",
    async () => {
      const visit = await Visit.begin();
      const { page } = visit;
      const globex = await linkOf("globex");
      const open = async (link: string) => page.evaluate(`location.href = ${JSON.stringify(link)}`);
      await page.goto(await linkOf("initech"));
      await page.getByRole("button", { name: "Add endpoint" }).click();
      await page.getByLabel("Description").fill("half entered");
      await open(globex);
      await page.getByText("in use for initech. The link that was opened is for globex.").waitFor();
      await eventually(async () => expect(await page.getByLabel("Description").isVisible()).toBe(false));
      expect(page.url()).not.toContain("token");
      await eventually(async () => expect(await visit.violations()).toEqual([]));
      await page.getByRole("button", { name: "Stay" }).click();
      expect(await page.getByLabel("Description").inputValue()).toBe("half entered");
      await page.getByLabel("URL").fill(sink.url("/initech"));
      await page.getByRole("button", { name: "Add", exact: true }).click();
      await page.getByRole("heading", { name: sink.url("/initech") }).waitFor();
      const { body } = await account.get("/v1/relay/endpoints?owner_id=initech");
      expect((body["endpoints"] as unknown[]).length).toBe(1);

      // Also when the address of the whole page is opened in this tab.
      await page.goto(`${server.url}/portal/?again${globex.slice(globex.indexOf("#"))}`);
      await page.getByText("in use for initech").waitFor();
      await page.getByRole("button", { name: "Switch" }).click();
      await page.getByText("You have no endpoints yet").waitFor();

      // A newer link of the same customer needs no question.
      await open(await linkOf("globex"));
      await page.getByRole("button", { name: "Add endpoint" }).waitFor();
      await eventually(async () => expect(await page.getByText("Another link").count()).toBe(0));
      await open(`${server.url}/portal/#token=portal_unknown`);
      await page.getByText("It has expired or was revoked. The page is still open for globex.").waitFor();
      await page.getByRole("button", { name: "Stay" }).click();
      await page.getByRole("button", { name: "Add endpoint" }).waitFor();

      // Nothing is in use when the link has ended.
      await account.post("/v1/relay/portal/revoke", { owner_id: "globex" });
      await open(await linkOf("initech"));
      await page.getByRole("link", { name: /initech/ }).waitFor();
      await visit.context.close();
    },
    TIMEOUT_MS,
  );

  test(
    "says when its link is revoked, and names the error of a field",
    async () => {
      const visit = await Visit.begin();
      const { page } = visit;
      await page.goto(await linkOf("revoked"));
      await page.getByRole("button", { name: "Add endpoint" }).click();
      await page.getByLabel("URL").fill("http://10.0.0.1/");
      await page.getByRole("button", { name: "Add", exact: true }).click();
      await page.getByRole("alert").getByText("url", { exact: true }).waitFor();
      await account.post("/v1/relay/portal/revoke", { owner_id: "revoked" });
      await page.getByRole("button", { name: "Add", exact: true }).click();
      await page.getByRole("alert").getByText("revoked or expired").waitFor();
      await page.reload();
      await page.getByText("This link has expired. Open this page again where you found it.").waitFor();
      await visit.context.close();
    },
    TIMEOUT_MS,
  );

  test("is small: page, script and style together", async () => {
    const names = [
      "",
      ...(await (await fetch(`${server.url}/portal/`)).text()).matchAll(/(?:src|href)="\.\/([^"]+)"/g),
    ];
    expect(names.length).toBe(3);
    let bytes = 0;
    for (const name of names.map((name) => (typeof name === "string" ? name : (name[1] ?? "")))) {
      const answer = await fetch(`${server.url}/portal/${name}`, {
        headers: { "accept-encoding": "identity" },
      });
      expect(answer.status).toBe(200);
      bytes += Bun.gzipSync(new Uint8Array(await answer.arrayBuffer())).length;
    }
    expect(bytes).toBeLessThan(PAGE_BYTES_MAX);
  });

  test("has a strict policy that names the listed origin, and redirects to its slash", async () => {
    const { headers } = await fetch(`${server.url}/portal/`);
    const policy = (headers.get("content-security-policy") ?? "").split("; ");
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self'");
    expect(policy).toContain("style-src 'self'");
    expect(policy).toContain("require-trusted-types-for 'script'");
    expect(policy).toContain(`frame-ancestors ${originOf(listed)}`);
    expect(headers.get("referrer-policy")).toBe("no-referrer");
    const redirect = await fetch(`${server.url}/portal`, { redirect: "manual" });
    expect([redirect.status, redirect.headers.get("location")]).toEqual([302, "portal/"]);
  });

  test("can be embedded by nobody unless an origin is listed", async () => {
    const other = await startTestServer();
    const policy = (await fetch(`${other.url}/portal/`)).headers.get("content-security-policy");
    expect(policy).toContain("frame-ancestors 'none'");
    await other.stop();
  });
});

describe("in an iframe", () => {
  test(
    "of a listed origin it works like in a tab",
    async () => {
      const visit = await Visit.begin();
      const link = await linkOf("framed", { event_types: ["order.paid"] });
      await visit.page.goto(`${originOf(listed)}/?link=${encodeURIComponent(link)}`);
      const frame = visit.page.frames().find((frame) => frame.url().startsWith(`${server.url}/portal/`));
      if (frame === undefined) throw new Error("the page was not embedded");
      await walk(frame, sink.url("/framed"));
      await frame.getByRole("button", { name: "Show secret" }).click();
      await frame.getByRole("button", { name: "Copy signing secret" }).click();
      await frame.getByText(/^(?:Copied|Select and copy it manually)$/).waitFor();
      expect(sink.take().length).toBe(2);
      await visit.context.close();
    },
    TIMEOUT_MS,
  );

  test(
    "of another origin the browser does not show it",
    async () => {
      const visit = await Visit.begin();
      const link = await linkOf("unlisted");
      await visit.page.goto(`${originOf(unlisted)}/?link=${encodeURIComponent(link)}`);
      const frame = visit.page.frames().find((frame) => frame !== visit.page.mainFrame());
      expect(visit.faults.join()).toContain("frame-ancestors");
      await eventually(async () => expect(await frame?.getByRole("button").count()).toBe(0));
      await visit.context.close();
    },
    TIMEOUT_MS,
  );
});

describe("hostile texts", () => {
  test(
    "of the provider and of the customer's server stay texts",
    async () => {
      const markup = `<img src=x onerror="document.title='hacked'"><script>document.title='hacked'</script>`;
      sink.answersBy(() => new Response(markup, { status: 500, headers: { "x-markup": "<b>1</b>" } }));
      const customer = await customerOf(server, account, { owner_id: "hostile" });
      const created = await customer.post("/v1/relay/portal/endpoints", {
        url: sink.url("/hostile"),
        description: markup,
      });
      await account.post("/v1/relay/messages", { event_type: "a", owner_id: "hostile", payload: { markup } });
      const visit = await Visit.begin();
      const { page } = visit;
      await page.goto(await linkOf("hostile"));
      await page.getByText(markup).waitFor();
      await page.getByRole("link", { name: /hostile/ }).click();
      await page.getByRole("heading", { name: sink.url("/hostile") }).waitFor();
      await page.getByRole("link", { name: /^a/ }).click();
      await page.getByText("Attempt 1").click();
      await page.locator("details pre", { hasText: markup }).waitFor();
      await eventually(async () => expect(await page.title()).toBe("Webhooks"));
      await eventually(async () => expect(await page.locator("img, b").count()).toBe(0));
      await page.goto(`${server.url}/portal/#/endpoints/${encodeURIComponent("../../../signup?")}`);
      await page.getByRole("alert").waitFor();
      sink.answersBy(() => 200);
      expect(created.status).toBe(201);
      await visit.context.close();
    },
    TIMEOUT_MS,
  );
});

/** Every run has each theme and width once; the long form all of their combinations. */
const LOOKS = IS_LONG
  ? (["light", "dark"] as const).flatMap((colorScheme) =>
      [1280, 360].map((width) => [colorScheme, width] as const),
    )
  : ([
      ["light", 1280],
      ["dark", 360],
    ] as const);

test.each(LOOKS)(
  "%s, %d px: no findings of axe and no horizontal scrolling in any view",
  async (colorScheme, width) => {
    const owner_id = `look-${colorScheme}-${width}`;
    const customer = await customerOf(server, account, { owner_id });
    const url = sink.url(`/${"a-long-path-without-a-blank".repeat(5)}`);
    const { body } = await customer.post("/v1/relay/portal/endpoints", { url, description: "Shop" });
    const id = String(body["endpoint_id"]);
    const paused = await customer.post("/v1/relay/portal/endpoints", { url: sink.url("/paused") });
    await customer.patch(`/v1/relay/portal/endpoints/${paused.body["endpoint_id"]}`, { state: "paused" });
    sink.answersBy(() => 410);
    const sent = await customer.post(`/v1/relay/portal/endpoints/${id}/test`, {});
    const visit = await Visit.begin({ colorScheme, width });
    const { page } = visit;
    const expectFine = async (view: string): Promise<void> => {
      await eventually(async () => expect([view, await visit.violations()]).toEqual([view, []]));
      await eventually(async () =>
        expect([
          view,
          await page.evaluate<number>("document.documentElement.scrollWidth - innerWidth"),
        ]).toEqual([view, 0]),
      );
    };
    await page.goto(await linkOf(owner_id, { event_types: ["order.paid", "x".repeat(128)] }));
    await page.getByText("Disabled").waitFor();
    await expectFine("endpoints");
    await page.getByRole("button", { name: "Add endpoint" }).click();
    await expectFine("form");
    await page.getByRole("link", { name: /without-a-blank/ }).click();
    await page.getByRole("button", { name: "Show secret" }).click();
    await page.getByText(/^whsec_/).waitFor();
    await page.getByText("Failed 410").waitFor();
    await expectFine("endpoint");
    await page.goto(`${server.url}/portal/#/deliveries/${sent.body["relay_id"]}`);
    await page.getByText("Attempt 1").click();
    await expectFine("delivery");
    await account.post("/v1/relay/portal/revoke", { owner_id });
    await page.reload();
    await page.getByText("This link has expired").waitFor();
    await expectFine("expired");
    sink.answersBy(() => 200);
    // The browser reports the rejected request itself.
    expect(visit.faults.filter((fault) => !fault.includes("401"))).toEqual([]);
    await visit.context.close();
  },
  TIMEOUT_MS,
);
