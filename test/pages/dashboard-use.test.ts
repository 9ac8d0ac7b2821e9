import { describe, expect, test } from "bun:test";
import { verifyBundle } from "../../src/verify/index.ts";
import { witnessOf } from "../support/checkpoints.ts";
import { eventually } from "../support/eventually.ts";
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
      await eventually(async () =>
        expect(await visit.page.getByRole("alert").innerText()).toContain(
          "This key is unknown, revoked or expired",
        ),
      );
      // The browser itself notes in its console that a request was answered with an error.
      expect(visit.faults.splice(0)).toEqual([expect.stringContaining("401")]);
      await visit.logIn(server.key);
      const kept = await visit.page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])");
      expect(kept).toBe("[{},{}]");
      await eventually(async () => expect(await visit.text()).not.toContain(server.key));
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
      await eventually(async () => expect(await add.isDisabled()).toBe(true));
      await eventually(async () =>
        expect(await add.getAttribute("title")).toBe("Requires the scope gate:write"),
      );
      await eventually(async () =>
        expect(await page.getByRole("switch", { name: "new-checkout" }).isDisabled()).toBe(true),
      );
      const links = page.getByRole("navigation", { name: "Pages" }).getByRole("link");
      await links.filter({ hasText: "failed in 24 h" }).waitFor();
      // Without the numbers of what needs attention.
      const pages = (await links.allInnerTexts()).map((text) => text.split("\n")[0]);
      expect(pages).toEqual([
        "Overview",
        "Projects",
        "Keys",
        "Customers",
        "Flags",
        "Monitors",
        "Relay",
        "Catch",
        "Settings",
      ]);
      await visit.go("meters");
      await eventually(async () =>
        expect(await page.locator("main").innerText()).toContain("This page does not exist"),
      );
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});

/** Pages of something with an id that nothing has. */
const MISSING = [
  "keys/nothing",
  "flags/nothing",
  "monitors/nothing",
  "monitors/incidents/nothing",
  "monitors/pages/nothing",
  "relay/nothing",
  "relay/endpoints/nothing",
  "relay/event-types/nothing",
  "relay/schedules/nothing",
  "catch/nothing",
  "people/psn_nothing",
  "audit/9999999",
];

test(
  "a page of something that does not exist says so once, under its heading, and shows nothing else of it",
  async () => {
    const visit = await Console.enter(server);
    const { page } = visit;
    for (const place of MISSING) {
      await visit.go(place);
      expect(await page.locator("main h1").count(), place).toBe(1);
      const said = page.locator("main").getByText(/There is no .* with this|not found/);
      await said.first().waitFor();
      expect(await said.count(), place).toBe(1);
      expect(await page.locator("main").innerText(), place).not.toMatch(/No outages|Check now/);
    }
    // The browser reports each 404.
    visit.faults.length = 0;
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

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
      await page.getByRole("button", { name: "Body", exact: true }).click();
      await eventually(async () =>
        expect(await page.locator(".inspector pre").innerText()).toContain("<script>alert(1)</script>"),
      );
      await eventually(async () => expect(await page.locator(".inspector script").count()).toBe(0));
      await page.getByRole("button", { name: "Raw" }).click();
      await eventually(() => expect(page.url()).toEndWith("?tab=raw"));
      await eventually(async () =>
        expect(await page.locator(".inspector pre").innerText()).toStartWith(
          '{"id":"evt_5","type":"invoice.paid"',
        ),
      );
      await page.reload();
      await eventually(async () =>
        expect(await page.locator(".inspector pre").innerText()).toStartWith('{"id":"evt_5"'),
      );
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
      await eventually(async () => expect(await confirm.isDisabled()).toBe(true));
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

  test(
    "are verified in the browser, without a request",
    async () => {
      const visit = await Console.enter(server);
      const { page } = visit;
      await visit.go("notary?view=verify");
      const sent = () => visit.requests.filter((request) => request.startsWith("POST")).length;
      const before = sent();
      for (const [text, outcome] of [
        [lines[0] ?? "", "The receipt is valid"],
        [(lines[0] ?? "").replace("paid", "lost"), "The receipt is not valid"],
        [lines.join("\n"), "2 receipts, 1 to 2, form a complete chain"],
        [lines.toReversed().join("\n"), "Not a complete chain"],
        ["hello", "The receipt is not valid"],
      ] as const) {
        await page.getByLabel("Receipts", { exact: true }).fill(text);
        await page.getByRole("button", { name: "Verify", exact: true }).last().click();
        await eventually(async () =>
          expect(await page.locator(".outcome .status").innerText()).toBe(outcome),
        );
      }
      expect(sent()).toBe(before);
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});

test(
  "the notary shows its checkpoint, and downloads a bundle that verifies offline",
  async () => {
    await server.operator.post("/v1/witness/sys/init");
    await server.operator.post("/v1/witness/log", { log: { event: "invoice.paid" } });
    const visit = await Console.enter(server);
    const { page } = visit;
    await visit.go("notary/1");
    await page.getByRole("heading", { name: "Checkpoint", exact: true }).waitFor();
    await page.locator(".facts", { hasText: "ninefold/wc_" }).waitFor();
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Download bundle" }).click(),
    ]);
    expect(file.suggestedFilename()).toBe("receipt-1.bundle.json");
    expect(verifyBundle(await Bun.file(await file.path()).text()).valid).toBe(true);
    const witnesses = page.locator(".panel", { has: page.getByRole("heading", { name: "Witnesses" }) });
    await witnesses.getByRole("button", { name: "Edit…" }).click();
    const field = page.getByRole("textbox", { name: "Witnesses" });
    await field.fill(`https://127.0.0.1:9/w ${witnessOf(8).vkey} A friend`);
    await page.getByRole("button", { name: "Save witnesses" }).click();
    await witnesses.getByText("A friend").waitFor();
    await witnesses.getByText("Nothing cosigned yet").waitFor();
    await witnesses.getByRole("button", { name: "Edit…" }).click();
    await field.fill("");
    await page.getByRole("button", { name: "Save witnesses" }).click();
    await witnesses.getByText("A witness confirms").waitFor();
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

describe("the keyboard", () => {
  test(
    "finds every command, moves through rows, and can be turned off",
    async () => {
      const visit = await Console.enter(server);
      const { page } = visit;
      await page.keyboard.press("Control+K");
      await page.locator("[role=combobox]:focus").waitFor();
      await page.keyboard.type("go to keys");
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "Keys", level: 1 }).waitFor();
      await page.locator("main a.row").first().waitFor();
      const find = async (text: string, option: string): Promise<void> => {
        await page.keyboard.press("Control+K");
        await page.locator("[role=combobox]:focus").waitFor();
        await page.keyboard.type(text);
        await page.locator("[role=option][aria-selected=true]", { hasText: option }).waitFor();
        await page.keyboard.press("Enter");
      };
      await find("endpoints", "Go to Endpoints");
      await page.getByRole("heading", { name: "Endpoints", level: 1 }).waitFor();
      const part = page.getByRole("navigation", { name: "Pages" }).locator("[aria-current=page]");
      await eventually(async () => expect(await part.innerText()).toBe("Endpoints"));
      await find("nightly rep", "Nightly report");
      await page.getByRole("heading", { name: "Nightly report", level: 1 }).waitFor();
      await eventually(async () => expect(await part.innerText()).toBe("All monitors"));
      await find("customer-4", "customer-42");
      await page.getByRole("heading", { name: "customer-42", level: 1 }).waitFor();
      await visit.go("keys");
      await page.locator("main a.row").first().waitFor();
      await page.keyboard.press("j");
      await page.keyboard.press("j");
      await eventually(async () =>
        expect(await page.evaluate<string>("document.activeElement.innerText")).toBe(
          await page.locator("main a.row").nth(1).innerText(),
        ),
      );
      await page.keyboard.press("/");
      await page.locator("input[type=search]:focus").waitFor();
      await page.keyboard.type("gf");
      await eventually(async () => expect(await page.getByLabel("Search keys").inputValue()).toBe("gf"));
      await page.getByLabel("Search keys").blur();
      await page.keyboard.press("g");
      await page.keyboard.press("f");
      await page.getByRole("heading", { name: "Flags", level: 1 }).waitFor();
      await visit.go("settings");
      await page.getByLabel("Single-key shortcuts").uncheck();
      await page.keyboard.press("Tab");
      await page.keyboard.press("g");
      await page.keyboard.press("k");
      await eventually(() => expect(page.url()).toEndWith("/settings"));
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
      await eventually(async () => expect(await ground()).toBe(dark));
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});

describe("messages", () => {
  test(
    "a rate limit is waited out visibly; errors stay until they are closed",
    async () => {
      const visit = await Console.enter(server);
      const { page } = visit;
      await visit.installClock();
      const once = { times: 1 };
      const headers = { "retry-after": "20" };
      await page.route(
        "**/v1/gate/config*",
        (route) => route.fulfill({ status: 429, headers, body: "{}" }),
        once,
      );
      await page.evaluate("location.hash = '#/flags'");
      const limited = page.getByText("Rate limit reached. Waiting for 20 s.");
      await limited.waitFor();
      await page.clock.runFor(20_000);
      await page.getByRole("switch", { name: "new-checkout" }).waitFor();
      await limited.waitFor({ state: "detached" });

      await page.route("**/v1/gate", (route) =>
        route.fulfill({ status: 429, headers: { "retry-after": "3600" }, body: "{}" }),
      );
      await page.getByRole("switch", { name: "beta-search" }).click();
      const error = page.getByRole("alert").filter({ hasText: "status 429" });
      await error.waitFor();
      await page.unroute("**/v1/gate");
      await page.getByRole("switch", { name: "beta-search" }).click();
      const switched = page.getByText(/^beta-search is o/);
      await switched.waitFor();
      await page.clock.runFor(60_000);
      await switched.waitFor({ state: "detached" });
      await error.getByRole("button", { name: "Dismiss" }).click();
      await error.waitFor({ state: "detached" });
      expect(visit.faults.splice(0).every((fault) => fault.includes("429"))).toBe(true);
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});

describe("a form with changes", () => {
  test(
    "is left by Escape or a link only after a confirmation",
    async () => {
      const visit = await Console.enter(server);
      const { page } = visit;
      const questions: string[] = [];
      let agrees = false;
      page.on("dialog", (question) => {
        questions.push(question.message());
        void (agrees ? question.accept() : question.dismiss());
      });
      await visit.go("monitors?new=1");
      await page.getByLabel("Name", { exact: true }).fill("Half a monitor");
      await page.keyboard.press("Escape");
      await page.evaluate("location.hash = '#/flags'");
      await page.waitForURL(/\/monitors/);
      await eventually(async () =>
        expect(await page.getByLabel("Name", { exact: true }).inputValue()).toBe("Half a monitor"),
      );
      expect(questions).toEqual(["Discard your changes?", "Discard your changes?"]);
      agrees = true;
      await page.keyboard.press("Escape");
      await page.locator("dialog").waitFor({ state: "detached" });
      await visit.go("monitors?new=1");
      await page.getByLabel("Name", { exact: true }).waitFor();
      await page.keyboard.press("Escape");
      await page.locator("dialog").waitFor({ state: "detached" });
      expect(questions).toHaveLength(3);
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});

describe("another project", () => {
  test(
    "is sent with every request once it is selected, and is part of the address",
    async () => {
      const visit = await Console.enter(server);
      const { page } = visit;
      const asked = page.waitForRequest((request) => request.headers()["x-ninefold-project"] !== undefined);
      await visit.go("flags");
      await page.getByLabel("Project").selectOption({ label: "Shop" });
      const project = (await asked).headers()["x-ninefold-project"] ?? "";
      expect(project).toMatch(/^proj_/);
      await page.waitForURL(new RegExp(`#/${project}/flags$`));
      await eventually(async () =>
        expect(await page.getByRole("link", { name: "Keys", exact: true }).getAttribute("href")).toBe(
          `#/${project}/keys`,
        ),
      );
      const shared = page.url();
      await page.getByLabel("Project").selectOption({ label: "Default project" });
      await page.waitForURL(/#\/default\/flags$/);

      // Someone else's browser, in which no project has been selected.
      const other = await Console.enter(server);
      const opened = other.page.waitForRequest((request) => request.url().includes("/v1/gate/config"));
      await other.page.goto("about:blank");
      await other.page.goto(shared);
      expect((await opened).headers()["x-ninefold-project"]).toBe(project);
      await other.page.locator("main h1").waitFor();
      await eventually(async () =>
        expect(await other.page.getByLabel("Project", { exact: true }).inputValue()).toBe(project),
      );
      await other.expectClean();
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "that a key cannot open is named as such",
    async () => {
      const { body: made } = await server.operator.post("/v1/projects", { name: "Elsewhere" });
      const { body } = await server.operator.post(`/v1/projects/${made["id"]}/keys`, {
        name: "Inside",
        prefix: "sm",
        scopes: ["*"],
      });
      const visit = await Console.enter(server, String(body["secret"]));
      await visit.page.evaluate("location.hash = '#/proj_00000000000000000000/flags'");
      await visit.page.getByRole("heading", { name: "Project not available" }).first().waitFor();
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});
