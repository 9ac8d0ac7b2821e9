import { describe, expect, test } from "bun:test";
import { copyDelivery } from "../areas/relay/support.ts";
import { eventually } from "../support/eventually.ts";
import { TIMEOUT_MS } from "./browser.ts";
import { Console, useConsole } from "./console.ts";

/** Most elements of a page: more are slow to draw. */
const ELEMENTS_MAX = 5_000;

const server = useConsole();

async function bucketWith(events: number): Promise<string> {
  const { body } = await server.operator.post("/v1/catch/buckets", {
    delivery: "pull",
    name: `of ${events}`,
  });
  const id = String(body["id"]);
  for (let at = 0; at < events; at += 1) await send(id);
  return id;
}

async function send(bucket: string): Promise<string> {
  const { body } = await server.client(null).post(`/v1/in/${bucket}`, { hello: "world" });
  return String(body["event_id"]);
}

describe("a list", () => {
  test(
    "has pages of 200 rows and few elements",
    async () => {
      const flags = Array.from({ length: 210 }, (_, at) => `flag-${String(at).padStart(3, "0")}`);
      await Promise.all(
        flags.map((flag_key) => server.operator.post("/v1/gate", { flag_key, enabled: true })),
      );
      const visit = await Console.enter(server);
      const { page } = visit;
      await visit.go("flags");
      const rows = page.locator("main tbody tr");
      await rows.nth(199).waitFor();
      await eventually(async () => expect(await rows.count()).toBe(200));
      await eventually(async () =>
        expect(await page.evaluate<number>("document.querySelectorAll('*').length")).toBeLessThan(
          ELEMENTS_MAX,
        ),
      );
      await page.getByText("1 to 200").waitFor();
      await page.getByRole("button", { name: "Next" }).click();
      await page.getByText("201 to 210").waitFor();
      await eventually(async () => expect(await rows.count()).toBe(10));
      await page.getByRole("button", { name: "Previous" }).click();
      await page.getByText("1 to 200").waitFor();
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "of 10,000 deliveries has pages of 200 rows and few elements, and counts all of them",
    async () => {
      const terms = { target_url: "http://ninefold.invalid/", method: "POST", delay: "1h" };
      const { body } = await server.operator.post("/v1/relay", terms);
      await copyDelivery(server.server.kernel, String(body["relay_id"]), 9_999, 4);
      const visit = await Console.enter(server);
      const { page } = visit;
      await visit.go("relay");
      await page.locator("main tbody tr").nth(199).waitFor();
      await page.getByRole("button", { name: "Failed 9,999" }).waitFor();
      await eventually(async () =>
        expect(await page.evaluate<number>("document.querySelectorAll('*').length")).toBeLessThan(
          ELEMENTS_MAX,
        ),
      );
      await page.getByLabel("Select all on this page").check();
      await page.getByRole("button", { name: "Select all 9,999 that match" }).waitFor();
      await page.locator("main a.row").first().click();
      await page.getByRole("button", { name: "Close details" }).waitFor();
      await eventually(async () =>
        expect(await page.evaluate<number>("document.querySelectorAll('*').length")).toBeLessThan(
          ELEMENTS_MAX,
        ),
      );
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "holds new rows back while the reader has scrolled down",
    async () => {
      const id = await bucketWith(120);
      const visit = await Console.enter(server);
      const { page } = visit;
      await visit.go(`catch/${id}`);
      const rows = page.locator("main tbody tr");
      await rows.nth(119).waitFor();
      const top = await rows.first().locator("code").first().innerText();
      await page.evaluate("scrollTo(0, 2000)");
      const sent = await send(id);
      const held = page.getByRole("button", { name: "1 new" });
      await held.waitFor({ state: "attached" });
      await eventually(async () => expect(await rows.count()).toBe(120));
      await eventually(async () => expect(await rows.first().locator("code").first().innerText()).toBe(top));
      await eventually(async () => expect(await page.evaluate<number>("scrollY")).toBeGreaterThan(1_900));
      await held.click();
      await page.getByRole("link", { name: sent }).waitFor();
      await eventually(async () => expect(await rows.count()).toBe(121));
      await eventually(async () => expect(await page.evaluate<number>("scrollY")).toBe(0));
      const next = await send(id);
      await page.getByRole("link", { name: next }).waitFor();
      await eventually(async () => expect(await held.count()).toBe(0));
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "is replaced by the details of a row on narrow screens, with a way back to the same place",
    async () => {
      const id = await bucketWith(60);
      const visit = await Console.enter(server);
      const { page } = visit;
      await page.setViewportSize({ width: 800, height: 800 });
      await visit.go(`catch/${id}?status=pending`);
      const rows = page.locator("main tbody tr");
      await rows.nth(59).waitFor();
      // As far as the click scrolls.
      await rows.nth(50).locator("a.row").hover();
      const place = await page.evaluate<number>("scrollY");
      await rows.nth(50).locator("a.row").click();
      const body = page.locator(".inspector");
      await body.waitFor();
      await eventually(async () => expect(await rows.first().isVisible()).toBe(false));
      await eventually(async () => expect((await body.boundingBox())?.y).toBeLessThan(700));
      await eventually(async () => expect(await visit.violations()).toEqual([]));
      await page.getByRole("link", { name: "Events", exact: true }).click();
      await rows.nth(50).waitFor();
      await eventually(() => expect(page.url()).toEndWith("?status=pending"));
      await eventually(async () =>
        expect(Math.abs((await page.evaluate<number>("scrollY")) - place)).toBeLessThan(50),
      );
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});
