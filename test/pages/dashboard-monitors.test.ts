import { afterAll, beforeAll, expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import { WebhookSink } from "../support/webhook-sink.ts";
import { TIMEOUT_MS } from "./browser.ts";
import { Console, useConsole } from "./console.ts";

const server = useConsole({ args: ["--allow-private-targets", "127.0.0.0/8"] });
let sink: WebhookSink;
beforeAll(() => {
  sink = new WebhookSink();
  sink.answersBy(({ path }) => (path === "/search" ? 500 : 200));
});
afterAll(() => sink.stop());

test(
  "monitors are listed worst first in groups that fold, searched, paused and grouped by many",
  async () => {
    const account = await server.account();
    for (const [name, group] of [
      ["Shop", "Public"],
      ["Blog", "Public"],
      ["Search", "Inner"],
      ["Docs", "Inner"],
    ] as const) {
      const terms = { url: sink.url(`/${name.toLowerCase()}`), interval: 300_000, name, group };
      const { body } = await account.post("/v1/pulse", { ...terms, consecutive_threshold: 1 });
      await account.post(`/v1/pulse/${body["id"]}/check`);
    }
    const visit = await Console.enter(server, String(account.key));
    const { page } = visit;
    await visit.go("monitors");
    const names = async () =>
      (await page.locator("main a.row").allInnerTexts()).map((text) => text.split("\n")[0]);
    await eventually(async () => expect(await names()).toEqual(["Search", "Docs", "Blog", "Shop"]));
    const inner = page.getByRole("button", { name: /^Inner/ });
    expect(await inner.innerText()).toContain("1 down, 1 up");
    await inner.click();
    await eventually(async () => expect(await names()).toEqual(["Blog", "Shop"]));
    await page.getByLabel("Search monitors").fill("sea");
    // A search shows the rows of folded groups.
    await eventually(async () => expect(await names()).toEqual(["Search"]));
    await page.getByRole("button", { name: "Down 1", exact: true }).waitFor();
    await page.getByLabel("Search monitors").fill("");
    await page.getByLabel("Order").selectOption("name");
    await eventually(async () => expect(await names()).toEqual(["Blog", "Docs", "Search", "Shop"]));
    await page.getByLabel("Select Blog").check();
    await page.getByLabel("Select Docs").check();
    await page.getByRole("region", { name: "Selection" }).getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Paused 2", exact: true }).waitFor();
    await page.getByLabel("Select Shop").check();
    await page.getByLabel("Group", { exact: true }).fill("Inner");
    await page.getByRole("button", { name: "Set group" }).click();
    await page.getByText("1 monitor moved to Inner").waitFor();
    const { monitors } = (await account.get("/v1/pulse")).body as {
      monitors: { name: string; active: boolean; group: string | null }[];
    };
    expect(monitors.map(({ name, active, group }) => [name, active, group]).sort()).toEqual([
      ["Blog", false, "Public"],
      ["Docs", false, "Inner"],
      ["Search", true, "Inner"],
      ["Shop", true, "Inner"],
    ]);
    await visit.expectClean();
  },
  TIMEOUT_MS,
);
