import { describe, expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import type { AccountClient } from "../support/server.ts";
import { TIMEOUT_MS } from "./browser.ts";
import { Console, useFilledConsole } from "./console.ts";

const server = useFilledConsole();

/** Long enough to see a form before its data, if it were shown. */
const SLOW_READ_MS = 200;

describe("keys", () => {
  test(
    "shows the secret of a new key once, asks before Escape discards it, and removes it from the page",
    async () => {
      const visit = await Console.enter(server);
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
      await eventually(async () =>
        expect(await page.locator("dialog").innerText()).toContain("Close without saving the secret?"),
      );
      await page.getByRole("button", { name: "I have saved it" }).click();
      await page.getByRole("link", { name: "Till" }).waitFor();
      await eventually(async () => expect(await visit.text()).not.toContain(secret));
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "creates a browser key, which only evaluates flags through OpenFeature",
    async () => {
      const visit = await Console.enter(server);
      const { page } = visit;
      await visit.go("keys");
      await page.getByRole("button", { name: "New key" }).click();
      await page.getByLabel("Name", { exact: true }).fill("Shop");
      await page.getByRole("button", { name: "Browser key" }).click();
      await page.getByText("through OpenFeature and nothing else").waitFor();
      await page.getByRole("button", { name: "Create key" }).click();
      const client = server.client(await page.locator("[data-secret]").innerText());
      expect((await client.post("/ofrep/v1/evaluate/flags", {})).status).toBe(200);
      expect((await client.get("/v1/gate/config")).status).toBe(403);
      await page.getByRole("button", { name: "I have saved it" }).click();
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "creates a customer's key with owner, limits and uses, updates and pauses it, and shows its usage",
    async () => {
      const visit = await Console.enter(server);
      const { page } = visit;
      await visit.go("keys?new=1");
      await page.getByLabel("Name", { exact: true }).fill("Customer");
      await page.getByLabel("Prefix").fill("till_live");
      await page.getByLabel("Scopes").fill("orders:read, items:*");
      await page.getByLabel("Owner").fill("acme-7");
      await page.getByLabel("Allowed IP addresses").fill("203.0.113.0/24 2001:db8::1");
      await page.getByLabel("Rate limits").fill("requests 2 60\nexports 5 3600 named owner");
      await page.getByLabel("Uses left").fill("9");
      await page.getByLabel("Refill interval").selectOption("month");
      await page.getByLabel("Refill amount").fill("500");
      await page.getByRole("button", { name: "Create key" }).click();
      const secret = await page.locator("[data-secret]").innerText();
      await page.getByRole("button", { name: "I have saved it" }).click();
      const ask = { secret, require: ["items:read"], meta: { ip: "203.0.113.9" } };
      const verify = async () => (await server.operator.post("/v1/keys/verify", ask)).body;
      for (const left of [8, 7]) expect(await verify()).toMatchObject({ valid: true, uses_remaining: left });
      expect(await verify()).toMatchObject({ error: "rate_limited", owner_id: "acme-7" });
      const row = page.locator("tr", { hasText: "Customer" });
      await row.getByText("acme-7").waitFor();
      await row.getByRole("link").first().click();
      await page.getByRole("img", { name: "3 uses in 24 hours, 1 rejected" }).waitFor();
      await page.getByRole("button", { name: "14 days" }).click();
      await page.getByRole("img", { name: "3 uses in 14 days, 1 rejected" }).waitFor();
      await page.getByRole("button", { name: "Edit…" }).click();
      await eventually(async () =>
        expect(await page.getByLabel("Rate limits").inputValue()).toBe(
          "requests 2 60\nexports 5 3600 named owner",
        ),
      );
      await page.getByLabel("Rate limits").fill("requests 200 60");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("requests: 200 in 1 min").waitFor();
      await page.getByText("7, 500 every month").waitFor();
      await page.getByRole("button", { name: "Pause" }).click();
      await page.getByRole("button", { name: "Resume" }).waitFor();
      expect(await verify()).toMatchObject({ error: "disabled" });
      await page.getByRole("button", { name: "Resume" }).click();
      await page.getByRole("button", { name: "Pause" }).waitFor();
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "have roles, which the console creates, changes and deletes once no key has them",
    async () => {
      const visit = await Console.enter(server);
      const { page } = visit;
      await visit.go("keys/roles?new=1");
      await page.getByLabel("Name", { exact: true }).fill("auditor");
      await page.getByRole("button", { name: "Continue" }).click();
      await page.getByLabel("Description").fill("Reads all documents.");
      await page.getByLabel("Permissions").fill("documents.read\nfolders.*");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByRole("link", { name: "auditor" }).click();
      await page.getByText("folders.*").last().waitFor();

      const terms = { prefix: "shop", name: "Audited", scopes: ["x"], roles: ["auditor"] };
      const { key_id, secret } = (await server.operator.post("/v1/keys", terms)).body;
      const permissions = async () =>
        (await server.operator.post("/v1/keys/verify", { secret })).body["permissions"];
      expect(await permissions()).toEqual(["documents.read", "folders.*"]);
      await page.getByRole("button", { name: "Edit…" }).click();
      await page.getByLabel("Permissions").fill("documents.read");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("Role saved").last().waitFor();
      await eventually(async () => expect(await permissions()).toEqual(["documents.read"]));

      await visit.go(`keys/${key_id}`);
      await page.getByRole("link", { name: "auditor" }).click();
      await page.getByRole("button", { name: "Delete…" }).click();
      await page.getByRole("button", { name: "Delete role" }).click();
      await page.getByText("The role auditor is in use").waitFor();
      await server.operator.delete(`/v1/keys/${key_id}`);
      await page.getByRole("button", { name: "Delete role" }).click();
      await page.getByText("Role deleted").waitFor();
      expect((await server.operator.get("/v1/keys/roles/auditor")).status).toBe(404);
    },
    TIMEOUT_MS,
  );

  test(
    "of another service are imported, and the form closes",
    async () => {
      const visit = await Console.enter(server);
      const { page } = visit;
      await visit.go("keys?import=1");
      const keys = [{ hash: "c".repeat(64), name: "From elsewhere", scopes: ["orders:read"] }];
      await page.getByLabel("Keys, as a JSON array").fill(JSON.stringify(keys));
      await page.getByRole("button", { name: "Import", exact: true }).click();
      await page.getByRole("link", { name: "From elsewhere" }).click();
      await page.getByRole("heading", { name: "From elsewhere" }).first().waitFor();
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "are filtered by state, use and project, with the last characters of each",
    async () => {
      const { body: project } = await server.operator.post("/v1/projects", { name: "Filtered" });
      const create = async (path: string, name: string) => {
        const { body } = await server.operator.post(path, { name, prefix: "sm", scopes: ["gate:read"] });
        return { id: String(body["key_id"]), secret: String(body["secret"]) };
      };
      const used = await create("/v1/keys", "Used one");
      const unused = await create("/v1/keys", "Unused one");
      const inside = await create(`/v1/projects/${project["id"]}/keys`, "Inside one");
      await server.operator.patch(`/v1/keys/${inside.id}`, { enabled: false });
      await server.operator.delete(`/v1/keys/${unused.id}`);
      expect((await server.client(used.secret).get("/v1/gate")).status).toBe(200);
      const visit = await Console.enter(server);
      const { page } = visit;
      const names = async (query: string): Promise<string[]> => {
        await visit.go(`keys?q=one&${query}`);
        await page.locator("main a.row").first().waitFor();
        await visit.settle();
        return (await page.locator("main a.row").allInnerTexts()).sort();
      };
      await eventually(async () => expect(await names("state=revoked")).toEqual(["Unused one"]));
      await eventually(async () => expect(await names("state=paused")).toEqual(["Inside one"]));
      await eventually(async () => expect(await names(`project=${project["id"]}`)).toEqual(["Inside one"]));
      await eventually(async () => expect(await names("use=unused")).toEqual(["Inside one", "Unused one"]));
      await eventually(async () => expect(await names("use=used")).toEqual(["Used one"]));
      await page
        .getByText(`…${used.secret.slice(-4)}`)
        .last()
        .waitFor();
      await page.getByRole("button", { name: "revoked" }).click();
      await page.getByText("No keys here").waitFor();
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "asks before it revokes a key",
    async () => {
      const visit = await Console.enter(server);
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

describe("testing a check", () => {
  test(
    "shows the result, really takes uses and credits, and sends the key nowhere else",
    async () => {
      const terms = { name: "Tried", prefix: "till", scopes: ["orders:*"], owner_id: "tried" };
      const created = await server.operator.post("/v1/keys", terms);
      const secret = String(created.body["secret"]);
      await server.operator.post("/v1/meter/tried/refill", { amount: 8 });
      const visit = await Console.enter(server);
      const { page } = visit;
      await visit.go("check");
      await page.getByLabel("Customer’s key").fill(secret);
      await page.getByLabel("Required scopes").fill("orders:read, orders:write");
      await page.getByLabel("Credits", { exact: true }).fill("5");
      await page.getByLabel("Flags").fill("new-checkout nowhere");
      const submit = page.getByRole("button", { name: "Check", exact: true });
      const answer = page.getByRole("status").filter({ hasText: "Code" });
      await submit.click();
      await answer.getByText("allowed", { exact: true }).waitFor();
      await answer.getByText("3 of meter tried").waitFor();
      await eventually(async () => expect(await answer.innerText()).toContain("nowhere: FLAG_NOT_FOUND"));
      await submit.click();
      await answer.getByText("rejected", { exact: true }).waitFor();
      await eventually(async () => expect(await answer.innerText()).toContain("insufficient_balance"));
      await page.getByLabel("Charge").selectOption("hold");
      await page.getByLabel("Credits", { exact: true }).fill("3");
      await submit.click();
      await answer.getByText("0 of meter tried").waitFor();
      const { body } = await server.operator.get("/v1/meter/tried/balance");
      expect(body).toMatchObject({ balance: 3, available: 0 });
      await eventually(async () => expect(await page.locator("main").innerText()).not.toContain(secret));
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});

describe("meters", () => {
  test(
    "shows the 402 next to the input and leaves the balance",
    async () => {
      const visit = await Console.enter(server);
      const { page } = visit;
      await visit.go("meters/customer-42");
      const before = (await server.operator.get("/v1/meter/customer-42/balance")).body["balance"];
      await page.getByRole("button", { name: "Deduct" }).click();
      await page.getByLabel("Amount").fill("99999");
      await page.locator("dialog").getByRole("button", { name: "Deduct" }).click();
      await eventually(async () =>
        expect(await page.locator("dialog").getByRole("alert").innerText()).toContain("request"),
      );
      expect((await server.operator.get("/v1/meter/customer-42/balance")).body["balance"]).toBe(before);
      expect(visit.faults.splice(0)).toEqual([expect.stringContaining("402")]);
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});

describe("holds and plans of a meter", () => {
  test(
    "releases a hold, and sets and deletes a plan",
    async () => {
      const visit = await Console.enter(server);
      const { page } = visit;
      await visit.go("meters/customer-43");
      const read = async (path: string) => server.operator.get(`/v1/meter/customer-43/${path}`);
      expect((await read("balance")).body["held"]).toBe(360);
      await page.getByText("held 360").waitFor();
      await page.getByRole("img", { name: /^Used in 30 days/ }).waitFor();
      const row = page.getByRole("row", { name: /customer-43-call-2/ });
      await row.getByRole("button", { name: "Release…" }).click();
      await page.locator("dialog").getByRole("button", { name: "Release" }).click();
      await page.getByText("held 120").waitFor();
      expect((await read("holds/customer-43-call-2")).body["status"]).toBe("released");

      await page.getByText("Raised to 5,000 every month").waitFor();
      await page.getByRole("button", { name: "Edit…" }).click();
      const dialog = page.locator("dialog");
      await dialog.getByLabel("Amount").fill("700");
      await dialog.getByLabel("Interval").selectOption("week");
      await dialog.getByLabel("Mode").selectOption("add");
      await dialog.getByLabel("Day of the week").fill("7");
      await dialog.getByLabel("Carry over at most").fill("50");
      await dialog.getByRole("button", { name: "Save plan" }).click();
      await page.getByText("700 added every week, carrying over at most 50").waitFor();
      const plan = { amount: 700, every: "week", mode: "add", day: 7, carry_max: 50 };
      expect((await read("plan")).body).toMatchObject(plan);
      // The plan is read once more after the change, which must not meet its deletion.
      await visit.settleRequests();
      await page.getByRole("button", { name: "Edit…" }).click();
      await dialog.getByRole("button", { name: "Delete plan" }).click();
      await page.getByText("No refill plan.").waitFor();
      expect((await read("plan")).status).toBe(404);
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "alert when the credits are low: one alert for the project, and the meter's own instead of it",
    async () => {
      const client = await accountWithMeter();
      const visit = await Console.enter(server, String(client.key));
      const { page } = visit;
      const dialog = page.locator("dialog");
      const save = async (threshold: string) => {
        await dialog.getByLabel("Below").fill(threshold);
        await dialog.getByLabel("Webhook URL").fill("https://example.com/low");
        await dialog.getByRole("button", { name: "Save alert" }).click();
        await dialog.waitFor({ state: "detached" });
      };
      await visit.go("meters/alerted");
      await page.getByText("No alert.").waitFor();
      await visit.go("meters");
      await page.getByRole("button", { name: "Low-balance alert…" }).click();
      await save("50");
      expect((await client.get("/v1/meter/alert")).body).toMatchObject({ threshold: 50 });
      await page.getByRole("link", { name: "alerted" }).click();
      await page.getByRole("link", { name: "The project’s alert" }).waitFor();
      await page.getByRole("button", { name: "Set alert…" }).click();
      await save("20");
      await page.getByText("Below 20 available credits, to https://example.com/low").waitFor();
      // The alert is read once more after the change, which must not meet its deletion.
      await visit.settleRequests();
      await page.getByRole("button", { name: "Edit…" }).click();
      await dialog.getByRole("button", { name: "Delete alert" }).click();
      // The form does not start from what the first visit read, when there was no alert.
      await page.route("**/v1/meter/alert", async (route) => {
        await Bun.sleep(SLOW_READ_MS);
        await route.continue();
      });
      await page.getByRole("link", { name: "The project’s alert" }).click();
      // Read once: the field must not appear with another value.
      expect(await dialog.getByLabel("Below").inputValue()).toBe("50");
      await page.unroute("**/v1/meter/alert");
      await dialog.getByRole("button", { name: "Delete alert" }).click();
      await dialog.waitFor({ state: "detached" });
      expect((await client.get("/v1/meter/alert")).status).toBe(404);
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "a hold is captured in part, and the account's balance shows what requests cost",
    async () => {
      const client = await accountWithMeter();
      await client.post("/v1/meter/alerted/holds", { amount: 60, hold_id: "call-1" });
      const visit = await Console.enter(server, String(client.key));
      const { page } = visit;
      const dialog = page.locator("dialog");
      await visit.go("meters/alerted");
      await page.getByRole("button", { name: "Capture…" }).click();
      await eventually(async () => expect(await dialog.getByLabel("Amount").inputValue()).toBe("60"));
      await dialog.getByLabel("Amount").fill("25");
      await dialog.getByRole("button", { name: "Capture", exact: true }).click();
      await page.getByRole("cell", { name: "capture" }).waitFor();
      await eventually(async () => {
        const { body } = await client.get("/v1/meter/alerted/balance");
        expect(body).toMatchObject({ balance: 75, available: 75 });
      });
      await visit.go("settings");
      await page.getByRole("link", { name: "history" }).click();
      await page.getByRole("cell", { name: "meter.refill · 1 request" }).waitFor();
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "a refill whose response was lost is made once, also when it is sent again; the next form makes another",
    async () => {
      await server.operator.post("/v1/meter/lossy/refill", { amount: 1 });
      const balance = async () => (await server.operator.get("/v1/meter/lossy/balance")).body["balance"];
      const visit = await Console.enter(server);
      const { page } = visit;
      await visit.go("meters/lossy");
      const dialog = page.locator("dialog");
      const open = async () => {
        await page.getByRole("button", { name: "Refill" }).first().click();
        // Typed at the keyboard once the field has the focus: it is empty, so digits are not added to an earlier number.
        await dialog.locator("input:focus").waitFor();
        await page.keyboard.type("500");
      };
      await open();
      await page.route("**/refill", async (route) => {
        await route.fetch();
        await route.abort();
      });
      await dialog.getByRole("button", { name: "Refill" }).click();
      await dialog.getByText("The server did not respond").waitFor();
      expect(await balance()).toBe(501);
      await page.unroute("**/refill");
      await dialog.getByRole("button", { name: "Refill" }).click();
      await dialog.waitFor({ state: "detached" });
      expect(await balance()).toBe(501);
      await open();
      await dialog.getByRole("button", { name: "Refill" }).click();
      await dialog.waitFor({ state: "detached" });
      expect(await balance()).toBe(1_001);
    },
    TIMEOUT_MS,
  );
});

/** An account with a meter of 100 credits. */
async function accountWithMeter(): Promise<AccountClient> {
  const account = await server.account();
  await account.post("/v1/meter/alerted/refill", { amount: 100 });
  return account;
}
