import { expect, test } from "bun:test";
import { DAY_MS, duration, formatNumber, percent, span } from "../../src/pages/dashboard/core/format.ts";
import { FILLED_VIEWS, VIEWS, WITH_ROWS } from "../harness/console/views.ts";
import { eventually } from "../support/eventually.ts";
import { TIMEOUT_MS } from "./browser.ts";
import { Console, useFilledConsole } from "./console.ts";

const server = useFilledConsole();

/** Texts of the page that are not times, ids, code, fields or axes of charts. */
const TEXTS = `() => {
  const main = document.querySelector("main").cloneNode(true);
  const others = "time, code, pre, input, select, textarea, svg, dialog, .line-chart, .tag, .unseen, .curl";
  for (const one of main.querySelectorAll(others)) one.remove();
  const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode.textContent);
  return texts;
}`;

/** Ranges and limits that labels name. */
const LABELS = /\b(1|24|7|14|30|90) ?(h|d|hours?|days?)\b|\bHTTP [2-5]\d\d\b|\b[2-5]xx\b|\bat most \d+ KiB/g;
const NUMBER = /\d[\d,.]*\d|\d/g;

/** Every way in which the console writes something of a response. */
class Known {
  private readonly texts = new Set<string>();

  add(value: unknown): void {
    if (typeof value === "number") this.addNumber(value);
    else if (typeof value === "string") this.addText(value);
    else if (Array.isArray(value)) this.addList(value);
    else if (typeof value === "object" && value !== null) {
      for (const [name, member] of Object.entries(value)) {
        this.addText(name);
        this.add(member);
      }
    }
  }

  has(number: string): boolean {
    return this.texts.has(number);
  }

  private addText(text: string): void {
    for (const found of text.match(NUMBER) ?? []) this.texts.add(found);
    const at = Date.parse(text);
    // Ages and lengths of times are compared elsewhere.
    if (!Number.isNaN(at)) this.addAge(at);
  }

  private addAge(at: number): void {
    const age = Math.abs(Date.now() - at);
    for (const about of [-3_000, -2_000, -1_000, 0, 1_000, 2_000].map((ms) => Math.abs(age + ms)))
      this.addWords(span(about), duration(about));
  }

  private addNumber(number: number): void {
    const asPercent = percent(number);
    this.addWords(String(number), formatNumber(number), asPercent, span(number), duration(number));
    this.addWords(
      formatNumber(Math.round((number / 1024 ** 2) * 10) / 10),
      formatNumber(Math.round((number / 1024) * 10) / 10),
    );
    this.addWords(
      formatNumber(Math.round((number / 1024 ** 3) * 10) / 10),
      formatNumber(Math.round(number / 1024)),
    );
    if (number > 1_000_000_000) this.addAge(number > 100_000_000_000 ? number : number * 1_000);
  }

  private addWords(...texts: string[]): void {
    for (const text of texts) for (const found of text.match(NUMBER) ?? []) this.texts.add(found);
  }

  /** Lists are counted, by each value of a field too, and numbers are added up. */
  private addList(list: readonly unknown[]): void {
    this.addNumber(list.length);
    const sums = new Map<string, number>();
    const note = (key: string, number: number) => sums.set(key, (sums.get(key) ?? 0) + number);
    for (const one of list) {
      this.add(one);
      if (typeof one !== "object" || one === null) continue;
      for (const [name, value] of Object.entries(one)) {
        note(`${name}=${JSON.stringify(value)}`, 1);
        if (typeof value === "number") note(name, value);
      }
    }
    for (const number of sums.values()) this.addNumber(number);
  }
}

/** Numbers on the page, and those of them that no response has. */
async function numbersOf(visit: Console, responses: readonly unknown[]) {
  const known = new Known();
  // Positions, and nothing.
  for (const item of [0, 1, 2, 3]) known.add(item);
  for (const response of responses) known.add(response);
  const texts = await visit.page.evaluate<string[]>(`(${TEXTS})()`);
  const all = texts.flatMap((text) =>
    (text.replaceAll(LABELS, "").match(NUMBER) ?? []).map((number) => ({ number, text: text.trim() })),
  );
  const unknown = all.filter(({ number }) => !known.has(number));
  return { seen: all.length, unknown: unknown.map(({ number, text }) => `${number} in "${text}"`) };
}

/** Numbers that the filled console shows, at least: fewer would mean that the walk sees nothing. */
const NUMBERS_MIN = 150;

test(
  "every number on every page is one of the API: a value, a count or a sum of the responses that the page has read",
  async () => {
    // Below a second, ages are shown in milliseconds, which pass while a page is read.
    const filledAt = Date.now();
    await eventually(() => expect(Date.now() - filledAt).toBeGreaterThan(1_000));
    const visit = await Console.enter(server);
    const { page } = visit;
    let responses: Promise<unknown>[] = [];
    page.on("response", (response) => {
      const isJson = response.headers()["content-type"]?.startsWith("application/json") === true;
      if (isJson) responses.push(response.json().catch(() => null));
    });
    const read = async () => Promise.all(responses);
    const found: string[] = [];
    let seen = 0;
    const look = async (view: string) => {
      await visit.settleRequests();
      const numbers = await numbersOf(visit, await read());
      seen += numbers.seen;
      found.push(...numbers.unknown.map((family) => `${view}: ${family}`));
    };
    for (const view of [...VIEWS, ...FILLED_VIEWS].filter((view) => !view.includes("?"))) {
      responses = [];
      await page.goto(`${server.url}/dashboard/?${encodeURIComponent(view)}#/${view}`);
      await page.getByRole("navigation", { name: "Pages" }).waitFor();
      await visit.settle();
      await look(view);
      const row = page.locator("main a.row").first();
      if (!WITH_ROWS.includes(view) || (await row.count()) === 0) continue;
      await row.click();
      await visit.settle();
      await look(`${view}, one`);
    }
    expect(found).toEqual([]);
    expect(seen).toBeGreaterThan(NUMBERS_MIN);
    await visit.go("monitors");
    expect((await numbersOf(visit, [])).unknown).not.toEqual([]);
  },
  TIMEOUT_MS,
);

interface Listed {
  readonly monitors: readonly {
    readonly name: string;
    readonly status: string;
    readonly active: boolean;
    readonly uptime: number | null;
    readonly type: string;
    readonly latency_ms: number | null;
  }[];
}

test(
  "lists of monitors, endpoints and customers show the numbers of each row",
  async () => {
    const { operator } = server;
    const visit = await Console.enter(server);
    const { page } = visit;
    const { monitors } = (await operator.get("/v1/pulse?details=true")).body as unknown as Listed;
    await visit.go("monitors");
    const count = (status: string) =>
      monitors.filter((monitor) => monitor.active && monitor.status === status).length;
    for (const [name, number] of [
      ["All", monitors.length],
      ["Up", count("up")],
      ["Down", count("down")],
      ["Paused", monitors.filter(({ active }) => !active).length],
    ] as const)
      await page.getByRole("button", { name: `${name} ${number}`, exact: true }).waitFor();
    for (const { name, uptime, latency_ms, type } of monitors) {
      const row = page
        .getByRole("row")
        .filter({ has: page.getByRole("link", { name: new RegExp(`^${name}`) }) });
      const text = await row.innerText();
      expect(text).toContain(percent(uptime));
      if (type !== "heartbeat") expect(text).toContain(`${latency_ms} ms`);
    }
    const { endpoints } = (await operator.get("/v1/relay/endpoints")).body as {
      endpoints: { endpoint_id: string; name: string; health: { failing_since: number | null } }[];
    };
    await visit.go("relay/endpoints");
    for (const { endpoint_id, name, health } of endpoints) {
      const { counts } = (await operator.get(`/v1/relay/endpoints/${endpoint_id}`)).body as {
        counts: { delivered_24h: number; failed_24h: number };
      };
      const row = page.getByRole("row").filter({ hasText: name });
      const finished = counts.delivered_24h + counts.failed_24h;
      const shown =
        finished === 0 ? "no deliveries" : `${counts.delivered_24h} delivered, ${counts.failed_24h} failed`;
      await eventually(async () => expect(await row.innerText()).toContain(shown));
      expect(await row.innerText()).toContain(health.failing_since === null ? "live" : "failing");
    }
    const from = new Date(Date.now() - DAY_MS).toISOString();
    const { keys } = (await operator.get("/v1/keys?owner_id=acme")).body as {
      keys: { id: string; uses: { remaining: number } | null }[];
    };
    await visit.go("customers/acme");
    for (const { id, uses } of keys) {
      const usage = await operator.get(`/v1/keys/${id}/usage?granularity=hour&from=${from}`);
      const total = (usage.body["data"] as { total: number }[]).reduce((sum, item) => sum + item.total, 0);
      const table = page.getByRole("table", { name: "Keys" });
      const uses24h = table.getByRole("cell").nth(3);
      await eventually(async () =>
        expect(await uses24h.innerText()).toStartWith(`${formatNumber(total)} uses`),
      );
      if (uses !== null) await table.getByText(`${formatNumber(uses.remaining)} uses left`).waitFor();
    }
    await visit.expectClean();
  },
  TIMEOUT_MS,
);
