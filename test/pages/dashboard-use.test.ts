import { describe, expect, test } from "bun:test";
import { makeChain } from "../support/receipts.ts";
import { TIMEOUT_MS } from "./browser.ts";
import { Console, useFilledConsole } from "./console.ts";

const server = useFilledConsole();

describe("logging in", () => {
  test(
    "rejects an invalid key, and does not store a valid one",
    async () => {
      const visit = await Console.open(server);
      await visit.page.getByLabel("API key").fill("sm_wrong");
      await visit.page.getByRole("button", { name: "Log in" }).click();
      expect(await visit.page.getByRole("alert").innerText()).toContain(
        "This key is unknown, revoked or expired",
      );
      // The browser itself notes in its console that a request was answered with an error.
      expect(visit.faults.splice(0)).toEqual([expect.stringContaining("401")]);
      await visit.logIn(server.key);
      const kept = await visit.page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])");
      expect(kept).toBe("[{},{}]");
      expect(await visit.text()).not.toContain(server.key);
      await visit.page.getByRole("button", { name: "Log out" }).click();
      await visit.page.getByLabel("API key").waitFor();
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});

describe("a key that may only read", () => {
  test(
    "sees what its scopes allow; other actions are disabled with the reason",
    async () => {
      const scopes = ["keys:read", "gate:read", "catch:read", "pulse:read", "relay:read", "projects:read"];
      const { body } = await server.operator.post("/v1/keys", { name: "Reader", prefix: "sm", scopes });
      const visit = await Console.enter(server, String(body["secret"]));
      const { page } = visit;
      await visit.go("flags");
      const add = page.getByRole("button", { name: "New flag" });
      expect(await add.isDisabled()).toBe(true);
      expect(await add.getAttribute("title")).toBe("Requires the scope gate:write");
      expect(await page.getByRole("switch", { name: "new-checkout" }).isDisabled()).toBe(true);
      const pages = await page.getByRole("navigation", { name: "Pages" }).getByRole("link").allInnerTexts();
      expect(pages).toEqual([
        "Overview",
        "Projects",
        "Keys",
        "Flags",
        "Monitors",
        "Relay",
        "Catch",
        "Settings",
      ]);
      await visit.go("meters");
      expect(await page.locator("main").innerText()).toContain("This page does not exist");
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});

describe("flags", () => {
  test(
    "are switched immediately, and switched back from the message",
    async () => {
      const visit = await Console.enter(server);
      const { page } = visit;
      await visit.go("flags");
      const state = async (): Promise<unknown> =>
        (await server.operator.get("/v1/gate/beta-search")).body["enabled"];
      await page.getByRole("switch", { name: "beta-search" }).click();
      await page.getByText("beta-search is on").waitFor();
      expect(await state()).toBe(true);
      await page.getByRole("button", { name: "Undo" }).click();
      await page.locator("[role=switch][aria-label=beta-search][aria-checked=false]").waitFor();
      expect(await state()).toBe(false);
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});

describe("a webhook's body", () => {
  test(
    "is shown as text, and the raw view has the exact bytes",
    async () => {
      const visit = await Console.enter(server);
      const { page } = visit;
      await visit.go("catch");
      await page.getByRole("link", { name: "Shop payments" }).click();
      await page.locator("main a.row").first().click();
      expect(await page.locator(".inspector pre").innerText()).toContain("<script>alert(1)</script>");
      expect(await page.locator(".inspector script").count()).toBe(0);
      await page.getByRole("button", { name: "Raw" }).click();
      expect(page.url()).toEndWith("?tab=raw");
      expect(await page.locator(".inspector pre").innerText()).toStartWith(
        '{"id":"evt_5","type":"invoice.paid"',
      );
      await page.reload();
      expect(await page.locator(".inspector pre").innerText()).toStartWith('{"id":"evt_5"');
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "deleting a bucket requires typing its name",
    async () => {
      const { body } = await server.operator.post("/v1/catch/buckets", { target_url: server.url });
      const id = String(body["id"]);
      const visit = await Console.enter(server);
      const { page } = visit;
      await visit.go(`catch/${id}`);
      await page.getByRole("button", { name: "Delete…" }).click();
      const confirm = page.getByRole("button", { name: "Delete bucket" });
      expect(await confirm.isDisabled()).toBe(true);
      await page.getByLabel(`Type ${id} to confirm`).fill(id);
      await confirm.click();
      await page.getByRole("heading", { name: "Catch", level: 1 }).waitFor();
      expect((await server.operator.get(`/v1/catch/buckets/${id}`)).status).toBe(404);
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});

describe("the notary's receipts", () => {
  const chain = makeChain([{ event: "invoice.paid" }, { event: "invoice.refunded" }]);
  const lines = chain.map((receipt) => JSON.stringify(receipt));

  test.each([
    ["one", lines[0] ?? "", "The receipt is valid"],
    ["one that was changed", (lines[0] ?? "").replace("paid", "lost"), "The receipt is not valid"],
    ["a chain", lines.join("\n"), "2 receipts, 1 to 2, form a complete chain"],
    ["a chain out of order", lines.toReversed().join("\n"), "Not a complete chain"],
    ["no receipt", "hello", "The receipt is not valid"],
  ])(
    "are verified in the browser: %s",
    async (_, text, outcome) => {
      const visit = await Console.enter(server);
      const { page } = visit;
      await visit.go("notary?view=verify");
      const before = visit.requests.filter((request) => request.startsWith("POST")).length;
      await page.getByLabel("Receipts", { exact: true }).fill(text);
      await page.getByRole("button", { name: "Verify", exact: true }).last().click();
      await page.locator(".outcome .status").waitFor();
      expect(await page.locator(".outcome .status").innerText()).toBe(outcome);
      expect(visit.requests.filter((request) => request.startsWith("POST"))).toHaveLength(before);
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});

describe("the keyboard", () => {
  test(
    "finds every command, moves through rows, and can be turned off",
    async () => {
      const visit = await Console.enter(server);
      const { page } = visit;
      await page.keyboard.press("Control+K");
      await page.getByRole("combobox", { name: "Command" }).waitFor();
      await page.keyboard.type("go to keys");
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "Keys", level: 1 }).waitFor();
      await page.locator("main a.row").first().waitFor();
      await page.keyboard.press("j");
      await page.keyboard.press("j");
      expect(await page.evaluate<string>("document.activeElement.textContent")).toBe(
        await page.locator("main a.row").nth(1).innerText(),
      );
      await page.keyboard.press("/");
      await page.keyboard.type("gf");
      expect(await page.getByLabel("Search keys").inputValue()).toBe("gf");
      await page.getByLabel("Search keys").blur();
      await page.keyboard.press("g");
      await page.keyboard.press("f");
      await page.getByRole("heading", { name: "Flags", level: 1 }).waitFor();
      await visit.go("settings");
      await page.getByLabel("Single-key shortcuts").uncheck();
      await page.keyboard.press("Tab");
      await page.keyboard.press("g");
      await page.keyboard.press("k");
      expect(page.url()).toEndWith("#/settings");
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "stores the theme in the browser",
    async () => {
      const visit = await Console.enter(server);
      const { page } = visit;
      const ground = (): Promise<string> =>
        page.evaluate<string>("getComputedStyle(document.documentElement).backgroundColor");
      const light = await ground();
      await visit.go("settings");
      await page.getByRole("button", { name: "dark" }).click();
      const dark = await ground();
      expect(dark).not.toBe(light);
      await page.reload();
      await page.getByRole("heading", { name: "Settings", level: 1 }).waitFor();
      expect(await ground()).toBe(dark);
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});

describe("another project", () => {
  test(
    "is sent with every request once it is selected",
    async () => {
      const visit = await Console.enter(server);
      const { page } = visit;
      const asked = page.waitForRequest((request) => request.headers()["x-ninefold-project"] !== undefined);
      await visit.go("flags");
      await page.getByLabel("Project").selectOption({ label: "Shop" });
      expect((await asked).headers()["x-ninefold-project"]).toMatch(/^proj_/);
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});
