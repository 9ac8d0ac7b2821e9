import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Browser } from "playwright-core";
import { fillConsole } from "../../scripts/console/filling.ts";
import { makeChain } from "../support/receipts.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { startBrowser } from "./browser.ts";
import { Console } from "./console.ts";

/** Starting a browser takes seconds on a machine that is busy with other things. */
const TIMEOUT_MS = 120_000;

let browser: Browser;
let server: TestServer;
beforeAll(async () => {
  browser = await startBrowser();
  server = await startTestServer({ args: ["--allow-private-targets", "127.0.0.0/8"] });
  await fillConsole(server.url, server.key);
}, TIMEOUT_MS);
afterAll(async () => {
  await browser.close();
  await server.stop();
}, TIMEOUT_MS);

async function enter(key = server.key): Promise<Console> {
  return (await Console.open(browser, server)).logIn(key);
}

/** The text of the page, whatever is open over it too. */
function textOf(visit: Console): Promise<string> {
  return visit.page.evaluate<string>("document.documentElement.outerHTML");
}

describe("logging in", () => {
  test(
    "a key that opens nothing is told so, and the right one is kept nowhere",
    async () => {
      const visit = await Console.open(browser, server);
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
      expect(await textOf(visit)).not.toContain(server.key);
      await visit.page.getByRole("button", { name: "Log out" }).click();
      await visit.page.getByLabel("API key").waitFor();
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});

describe("keys", () => {
  test(
    "a new one shows its secret once; Escape asks; what was kept is gone from the page",
    async () => {
      const visit = await enter();
      const { page } = visit;
      await visit.go("keys");
      await page.getByRole("button", { name: "New key" }).click();
      await page.getByLabel("Name", { exact: true }).fill("Till");
      await page.getByRole("button", { name: "Chosen scopes" }).click();
      await page.getByLabel("gate:read").check();
      await page.getByRole("button", { name: "Create key" }).click();
      const secret = await page.locator("[data-secret]").innerText();
      expect(secret).toMatch(/^sm_\w{43}_[0-9a-f]{8}$/);
      expect((await server.client(secret).get("/v1/gate")).status).toBe(200);
      expect((await server.client(secret).post("/v1/gate", { flag_key: "x", enabled: true })).status).toBe(
        403,
      );
      await page.keyboard.press("Escape");
      expect(await page.locator("dialog").innerText()).toContain("without having kept the secret?");
      await page.getByRole("button", { name: "I have kept it" }).click();
      await page.getByRole("link", { name: "Till" }).waitFor();
      expect(await textOf(visit)).not.toContain(secret);
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "a browser key evaluates flags, and reads nothing else",
    async () => {
      const visit = await enter();
      const { page } = visit;
      await visit.go("keys");
      await page.getByRole("button", { name: "New key" }).click();
      await page.getByLabel("Name", { exact: true }).fill("Shop");
      await page.getByRole("button", { name: "Browser key" }).click();
      await page.getByText("reads nothing else").waitFor();
      await page.getByRole("button", { name: "Create key" }).click();
      const client = server.client(await page.locator("[data-secret]").innerText());
      expect((await client.post("/ofrep/v1/evaluate/flags", {})).status).toBe(200);
      expect((await client.get("/v1/gate/config")).status).toBe(403);
      await page.getByRole("button", { name: "I have kept it" }).click();
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "one for a customer gets an owner, limits and uses; it is changed, paused, and shows how it was used",
    async () => {
      const visit = await enter();
      const { page } = visit;
      await visit.go("keys?new=1");
      await page.getByLabel("Name", { exact: true }).fill("Customer");
      await page.getByLabel("Prefix").fill("till_live");
      await page.getByLabel("Scopes").fill("orders:read, items:*");
      await page.getByLabel("Owner").fill("acme-7");
      await page.getByLabel("Works from").fill("203.0.113.0/24 2001:db8::1");
      await page.getByLabel("Rate limits").fill("requests 2 60\nexports 5 3600 named owner");
      await page.getByLabel("Uses left").fill("9");
      await page.getByLabel("Refilled").selectOption("month");
      await page.getByLabel("Up to").fill("500");
      await page.getByRole("button", { name: "Create key" }).click();
      const secret = await page.locator("[data-secret]").innerText();
      await page.getByRole("button", { name: "I have kept it" }).click();
      const ask = { secret, require: ["items:read"], meta: { ip: "203.0.113.9" } };
      const verify = async () => (await server.operator.post("/v1/keys/verify", ask)).body;
      for (const left of [8, 7]) expect(await verify()).toMatchObject({ valid: true, uses_remaining: left });
      expect(await verify()).toMatchObject({ error: "rate_limited", owner_id: "acme-7" });
      const row = page.locator("tr", { hasText: "Customer" });
      await row.getByText("acme-7").waitFor();
      await page.getByRole("link", { name: "Customer" }).click();
      await page.getByRole("img", { name: "3 uses in 24 hours, 1 refused" }).waitFor();
      await page.getByRole("button", { name: "14 days" }).click();
      await page.getByRole("img", { name: "3 uses in 14 days, 1 refused" }).waitFor();
      await page.getByRole("button", { name: "Change…" }).click();
      expect(await page.getByLabel("Rate limits").inputValue()).toBe(
        "requests 2 60\nexports 5 3600 named owner",
      );
      await page.getByLabel("Rate limits").fill("requests 200 60");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("requests: 200 in 1 min").waitFor();
      await page.getByText("7, 500 every month").waitFor();
      await page.getByRole("button", { name: "Pause" }).click();
      await page.getByRole("button", { name: "Go on" }).waitFor();
      expect(await verify()).toMatchObject({ error: "disabled" });
      await page.getByRole("button", { name: "Go on" }).click();
      await page.getByRole("button", { name: "Pause" }).waitFor();
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "revoking asks, and then the key is revoked",
    async () => {
      const visit = await enter();
      const { page } = visit;
      await visit.go("keys");
      await page.getByRole("button", { name: "Revoke Mobile app" }).click();
      await page.getByRole("button", { name: "Revoke key" }).click();
      await page.locator("tr", { hasText: "Mobile app" }).getByText("revoked").waitFor();
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});

describe("trying a check", () => {
  test(
    "shows what the customer may do, takes what it says, and tells the key to nobody",
    async () => {
      const terms = { name: "Tried", prefix: "till", scopes: ["orders:*"], owner_id: "tried" };
      const made = await server.operator.post("/v1/keys", terms);
      const secret = String(made.body["secret"]);
      await server.operator.post("/v1/meter/tried/refill", { amount: 8 });
      const visit = await enter();
      const { page } = visit;
      await visit.go("check");
      await page.getByLabel("The customer’s key").fill(secret);
      await page.getByLabel("Scopes that it needs").fill("orders:read, orders:write");
      await page.getByLabel("Credits", { exact: true }).fill("5");
      await page.getByLabel("Flags").fill("new-checkout nowhere");
      const submit = page.getByRole("button", { name: "Check", exact: true });
      const answer = page.getByRole("status").filter({ hasText: "Code" });
      await submit.click();
      await answer.getByText("allowed", { exact: true }).waitFor();
      await answer.getByText("3 of meter tried").waitFor();
      expect(await answer.innerText()).toContain("nowhere: FLAG_NOT_FOUND");
      await submit.click();
      await answer.getByText("denied", { exact: true }).waitFor();
      expect(await answer.innerText()).toContain("insufficient_balance");
      await page.getByLabel("Credits are").selectOption("hold");
      await page.getByLabel("Credits", { exact: true }).fill("3");
      await submit.click();
      await answer.getByText("0 of meter tried").waitFor();
      const { body } = await server.operator.get("/v1/meter/tried/balance");
      expect(body).toMatchObject({ balance: 3, available: 0 });
      expect(await page.locator("main").innerText()).not.toContain(secret);
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});

describe("a key that may only read", () => {
  test(
    "sees what it may, and what it may not do is disabled and says why",
    async () => {
      const scopes = ["keys:read", "gate:read", "catch:read", "pulse:read", "relay:read", "projects:read"];
      const { body } = await server.operator.post("/v1/keys", { name: "Reader", prefix: "sm", scopes });
      const visit = await enter(String(body["secret"]));
      const { page } = visit;
      await visit.go("flags");
      const add = page.getByRole("button", { name: "New flag" });
      expect(await add.isDisabled()).toBe(true);
      expect(await add.getAttribute("title")).toBe("Needs the scope gate:write");
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
      expect(await page.locator("main").innerText()).toContain("no page that your key may see");
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});

describe("flags", () => {
  test(
    "are switched at once, and switched back by the message that says so",
    async () => {
      const visit = await enter();
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
    "stays text, whatever stands in it, and the raw view has its exact bytes",
    async () => {
      const visit = await enter();
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
    "deleting its bucket takes the bucket's name",
    async () => {
      const { body } = await server.operator.post("/v1/catch/buckets", { target_url: server.url });
      const id = String(body["id"]);
      const visit = await enter();
      const { page } = visit;
      await visit.go(`catch/${id}`);
      await page.getByRole("button", { name: "Delete the bucket" }).click();
      const deed = page.getByRole("button", { name: "Delete bucket" });
      expect(await deed.isDisabled()).toBe(true);
      await page.getByLabel(`Type ${id} to confirm`).fill(id);
      await deed.click();
      await page.getByRole("heading", { name: "Catch", level: 1 }).waitFor();
      expect((await server.operator.get(`/v1/catch/buckets/${id}`)).status).toBe(404);
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});

describe("meters", () => {
  test(
    "what cannot be paid is said where it was entered, and the balance stays",
    async () => {
      const visit = await enter();
      const { page } = visit;
      await visit.go("meters/customer-42");
      const before = (await server.operator.get("/v1/meter/customer-42/balance")).body["balance"];
      await page.getByRole("button", { name: "Deduct" }).click();
      await page.getByLabel("Amount").fill("99999");
      await page.locator("dialog").getByRole("button", { name: "Deduct" }).click();
      expect(await page.locator("dialog").getByRole("alert").innerText()).toContain("request");
      expect((await server.operator.get("/v1/meter/customer-42/balance")).body["balance"]).toBe(before);
      expect(visit.faults.splice(0)).toEqual([expect.stringContaining("402")]);
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});

describe("what a meter has beside its balance", () => {
  test(
    "a hold is released, and a plan is set and taken away",
    async () => {
      const visit = await enter();
      const { page } = visit;
      await visit.go("meters/customer-43");
      const read = async (path: string) => server.operator.get(`/v1/meter/customer-43/${path}`);
      expect((await read("balance")).body["held"]).toBe(360);
      await page.getByText("held 360").waitFor();
      expect(await page.getByRole("img", { name: /^Used in 30 days/ }).count()).toBe(1);
      const row = page.getByRole("row", { name: /customer-43-call-2/ });
      await row.getByRole("button", { name: "Release…" }).click();
      await page.locator("dialog").getByRole("button", { name: "Free the credits" }).click();
      await page.getByText("held 120").waitFor();
      expect((await read("holds/customer-43-call-2")).body["status"]).toBe("released");

      await page.getByText("Raised to 5,000 every month").waitFor();
      await page.getByRole("button", { name: "Change…" }).click();
      const dialog = page.locator("dialog");
      await dialog.getByLabel("Amount").fill("700");
      await dialog.getByLabel("How often").selectOption("week");
      await dialog.getByLabel("What it does").selectOption("add");
      await dialog.getByLabel("Day of the week").fill("7");
      await dialog.getByLabel("Keep at most").fill("50");
      await dialog.getByRole("button", { name: "Set the plan" }).click();
      await page.getByText("700 added every week, of what is left at most 50 kept").waitFor();
      const plan = { amount: 700, every: "week", mode: "add", day: 7, carry_max: 50 };
      expect((await read("plan")).body).toMatchObject(plan);
      await page.getByRole("button", { name: "Change…" }).click();
      await dialog.getByRole("button", { name: "Take the plan away" }).click();
      await page.getByText("It is refilled by hand.").waitFor();
      expect((await read("plan")).status).toBe(404);
      // That there is none is an answer that the browser notes.
      visit.faults.splice(0);
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
    ["a chain", lines.join("\n"), "2 receipts, 1 to 2, are one whole chain"],
    ["a chain out of order", lines.toReversed().join("\n"), "Not a whole chain"],
    ["no receipt", "hello", "The receipt is not valid"],
  ])(
    "are checked in the browser: %s",
    async (_, text, outcome) => {
      const visit = await enter();
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
    "finds every command, walks the rows, and can be switched off",
    async () => {
      const visit = await enter();
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
      await page.getByLabel("Single keys as shortcuts").uncheck();
      await page.keyboard.press("Tab");
      await page.keyboard.press("g");
      await page.keyboard.press("k");
      expect(page.url()).toEndWith("#/settings");
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "the theme is kept in this browser",
    async () => {
      const visit = await enter();
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
    "is worked in once it is chosen, and said with every request",
    async () => {
      const visit = await enter();
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
