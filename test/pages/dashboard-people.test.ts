import { describe, expect, test } from "bun:test";
import { MINUTE_MS } from "../../src/kernel/time/units.ts";
import { eventually } from "../support/eventually.ts";
import { TIMEOUT_MS } from "./browser.ts";
import { Console, useConsole } from "./console.ts";
import { joinConsole, placeOf } from "./people.ts";
import { VirtualAuthenticator } from "./virtual-authenticator.ts";

const server = useConsole({ manualClock: true });

/** What is wrong with the page as it stands, at its width and on a phone. */
async function troubles(visit: Console): Promise<string[]> {
  const { page } = visit;
  const found = await visit.violations();
  const size = page.viewportSize();
  await page.setViewportSize({ width: 390, height: 844 });
  const small = await visit.smallTargets();
  const overflow = await visit.overflow();
  if (size !== null) await page.setViewportSize(size);
  return [...found, ...small, ...(overflow > 0 ? [`${overflow} px too wide`] : [])];
}

describe("the first start", () => {
  test(
    "leads by the operator's link to a passkey, with which the operator logs in from then on",
    async () => {
      const { body } = await server.operator.post("/v1/admin/login-links", {});
      const visit = await Console.openAt(server, "#/nowhere");
      const { page } = visit;
      const device = await VirtualAuthenticator.connect(page);
      await page.goto("about:blank");
      await page.goto(`${visit.url}/dashboard/${placeOf(body["url"])}`);
      await page.getByRole("heading", { name: "Create your passkey" }).waitFor();
      await visit.settle();
      expect(await troubles(visit)).toEqual([]);
      await page.getByLabel("Your e-mail").fill("ada@example.com");
      await page.getByLabel("Your name").fill("Ada");
      await page.getByRole("button", { name: "Continue" }).click();

      await page.getByRole("heading", { name: /^Join / }).waitFor();
      expect(await troubles(visit)).toEqual([]);
      expect(await page.getByLabel("Your name").inputValue()).toBe("Ada");
      await page.getByRole("button", { name: "Create passkey" }).click();
      await page.getByRole("navigation", { name: "Pages" }).waitFor();
      await page.getByRole("link", { name: /^Ada/ }).waitFor();
      expect(await device.size()).toBe(1);
      expect(page.url()).not.toContain("invitation");

      await page.getByRole("button", { name: "Log out" }).click();
      const login = page.getByRole("button", { name: "Log in with a passkey" });
      await login.waitFor();
      expect(await page.getByLabel("API key").count()).toBe(0);
      expect(await troubles(visit)).toEqual([]);
      // By the keyboard alone.
      await login.focus();
      await page.keyboard.press("Enter");
      await page.getByRole("navigation", { name: "Pages" }).waitFor();
      await page.getByRole("link", { name: /^Ada/ }).waitFor();
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});

/** The response to a dangerous request of a person who logs in at a provider. */
const REQUIRED = { error: { code: "login_required", message: "Log in again." }, methods: ["oidc"] };

/** Longer than a login counts for dangerous actions. */
const LONG_AFTER_MS = 16 * MINUTE_MS;

describe("people", () => {
  test(
    "are invited by a link that is shown once, and see and may do what their role permits",
    async () => {
      const { operator } = server;
      const shop = String((await operator.post("/v1/projects", { name: "Shop" })).body["id"]);
      const ann = await joinConsole(server, { email: "ann@example.com", name: "Ann", role: "admin" });
      const { page } = ann.visit;
      await ann.visit.go("people?new=1");
      await page.getByLabel("E-mail").fill("bob@example.com");
      await page.getByLabel("Name", { exact: true }).fill("Bob");
      expect(await page.getByRole("option", { name: "owner (above your role)" }).isDisabled()).toBe(true);
      await page.getByRole("button", { name: "Single projects" }).click();
      await page.getByLabel("Role in Shop").selectOption("responder");
      await ann.visit.settle();
      expect(await troubles(ann.visit)).toEqual([]);
      await page.getByRole("dialog").getByRole("button", { name: "Invite" }).click();
      const link = await page.locator("[data-secret]").innerText();
      expect(await troubles(ann.visit)).toEqual([]);
      await page.getByRole("button", { name: "Done" }).click();
      await page.getByRole("link", { name: /^Bob/ }).waitFor();
      expect(await ann.visit.text()).not.toContain(link);
      expect(await troubles(ann.visit)).toEqual([]);

      const bob = await joinConsole(server, link);
      const other = bob.visit.page;
      await eventually(() => expect(other.url()).toContain(shop));
      for (const title of ["People", "Keys", "Backups"])
        expect(await other.getByRole("link", { name: title, exact: true }).count()).toBe(0);
      await bob.visit.go(`${shop}/flags`);
      const create = other.getByRole("button", { name: "New flag" });
      expect(await create.isDisabled()).toBe(true);
      expect(await create.getAttribute("title")).toBe("Requires the role editor; yours is responder");
      // A changed role takes effect on the open page.
      const { people } = (await operator.get("/v1/people?status=active")).body as {
        people: { person_id: string; name: string }[];
      };
      const id = people.find(({ name }) => name === "Bob")?.person_id;
      const editor = { projects: [{ project_id: shop, role: "editor" }] };
      expect((await operator.patch(`/v1/people/${id}`, editor)).status).toBe(200);
      await eventually(async () => expect(await create.isDisabled()).toBe(false));
      await bob.visit.go("default/flags");
      await other.getByText("You have no role in this project.").waitFor();

      await page.getByRole("link", { name: /^Bob/ }).click();
      await page.getByText("Shop: editor").waitFor();
      await ann.visit.settle();
      expect(await troubles(ann.visit)).toEqual([]);
      await page.getByRole("button", { name: "Disable…" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Disable person" }).click();
      await page.getByRole("button", { name: "Enable" }).waitFor();
      await other.evaluate(`location.hash = "#/${shop}/monitors"`);
      await other.getByText("Your session has expired.").waitFor();
      await page.getByRole("button", { name: "Delete…" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Delete person" }).click();
      await eventually(async () => expect(await page.getByRole("link", { name: /^Bob/ }).count()).toBe(0));
      bob.visit.faults.splice(0);
      await ann.visit.expectClean();
      await bob.visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "confirm a dangerous action by a passkey, after which it is carried out, or cancel it",
    async () => {
      const { visit, device, id } = await joinConsole(server, { email: "eve@example.com", role: "admin" });
      const { page } = visit;
      await visit.go("keys?new=1");
      await page.getByLabel("Name", { exact: true }).fill("Warehouse");
      await page.getByLabel("gate:read").check();
      await server.clock.advance(LONG_AFTER_MS);
      const submit = page.getByRole("button", { name: "Create key" });
      await submit.click();
      const dialog = page.getByRole("dialog", { name: "Confirm that it is you" });
      await dialog.getByRole("button", { name: "Cancel" }).click();
      await page.getByRole("alert").getByText("login within the last 15 minutes").waitFor();

      await submit.click();
      await dialog.waitFor();
      await visit.settle();
      expect(await troubles(visit)).toEqual([]);
      await device.recognize(false);
      await dialog.getByRole("button", { name: "Use a passkey" }).click();
      await page.getByRole("alert").getByText("No passkey was used").waitFor();
      await device.recognize(true);
      await dialog.getByRole("button", { name: "Use a passkey" }).press("Enter");
      await page.getByText("This secret is shown only once.").waitFor();
      const { keys } = (await server.operator.get(`/v1/keys?created_by=${id}`)).body as { keys: unknown[] };
      expect(keys).toHaveLength(1);
      expect(visit.faults.splice(0).every((fault) => fault.includes("403"))).toBe(true);
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "confirm it at their provider, which leads back to the page, where the request is repeated",
    async () => {
      const { visit, id } = await joinConsole(server, { email: "sso@example.com", role: "admin" });
      const { page } = visit;
      const provider = { type: "oidc", name: "Example", url: "/login/oidc/example" };
      // A provider that returns immediately: what it does is tested with real ones.
      await page.route("**/v1/session", async (route) => {
        const response = await route.fetch();
        const body = await response.json();
        await route.fulfill({ response, json: { ...body, login: { methods: [provider] } } });
      });
      const asked: URL[] = [];
      await page.route("**/v1/keys", (route) =>
        route.request().method() === "GET" || asked.length > 0
          ? route.continue()
          : route.fulfill({ status: 403, json: REQUIRED }),
      );
      await page.route("**/login/oidc/example?*", async (route) => {
        const url = new URL(route.request().url());
        asked.push(url);
        const location = visit.url + String(url.searchParams.get("return_to"));
        await route.fulfill({ status: 303, headers: { location } });
      });
      await page.reload();
      await visit.go("keys?new=1");
      await page.getByLabel("Name", { exact: true }).fill("Provided");
      await page.getByLabel("gate:read").check();
      await page.getByRole("button", { name: "Create key" }).click();
      await page.getByRole("button", { name: "Confirm with Example" }).click();
      await page.getByText("This secret is shown only once.").waitFor();
      expect(asked.map(({ searchParams }) => searchParams.get("step_up"))).toEqual(["true"]);
      const { keys } = (await server.operator.get(`/v1/keys?created_by=${id}`)).body as { keys: unknown[] };
      expect(keys).toHaveLength(1);
      visit.faults.splice(0);
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "name, add and remove their passkeys, and end their sessions",
    async () => {
      const { visit, device } = await joinConsole(server, { email: "fay@example.com", role: "viewer" });
      const { page } = visit;
      await page.getByRole("link", { name: /^fay@example.com/ }).click();
      await page.getByRole("heading", { name: "Profile" }).waitFor();
      await visit.settle();
      expect(await troubles(visit)).toEqual([]);
      await page.getByRole("button", { name: "Add a passkey" }).click();
      await page.getByText("This device has a passkey of yours already.").waitFor();
      await page.getByRole("alert").getByRole("button", { name: "Dismiss" }).click();
      // Another device.
      await device.clear();
      await page.getByRole("button", { name: "Add a passkey" }).click();
      await page.getByLabel("Name", { exact: true }).fill("Phone");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByRole("button", { name: "Remove Phone" }).waitFor();
      await page.getByRole("button", { name: "Remove Passkey 1" }).click();
      await page.getByRole("button", { name: "Remove passkey", exact: true }).click();
      await eventually(async () =>
        expect(await page.getByRole("button", { name: "Remove Passkey 1" }).count()).toBe(0),
      );
      await page.getByRole("button", { name: "Change name…" }).click();
      await page.getByLabel("Name", { exact: true }).fill("Fay");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByRole("link", { name: /^Fay/ }).waitFor();
      await page.getByRole("table", { name: "Sessions" }).getByRole("button").click();
      await page.getByRole("button", { name: "Log in with a passkey" }).waitFor();
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});

describe("the login page", () => {
  test(
    "offers passkeys as suggestions of a field, and says why a login did not work",
    async () => {
      const { visit } = await joinConsole(server, { email: "gil@example.com", role: "viewer" });
      const { page } = visit;
      await page.getByRole("button", { name: "Log out" }).click();
      await page.getByRole("button", { name: "Use an API key" }).click();
      // The device agrees to the suggestion, as its user would by choosing it.
      await page.getByRole("navigation", { name: "Pages" }).waitFor();
      await page.getByRole("button", { name: "Log out" }).click();
      await page.getByRole("button", { name: "Log in with a passkey" }).waitFor();
      for (const [code, text] of [
        ["denied", "The provider did not log you in."],
        ["expired", "This login took too long"],
        ["refused", "This login is not permitted."],
        ["provider", "The provider could not be reached"],
      ]) {
        await page.goto("about:blank");
        await page.goto(`${visit.url}/dashboard/#/login?error=${code}`);
        await page.getByRole("status").getByText(String(text)).waitFor();
        expect(page.url()).not.toContain("error");
      }
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "offers every way that the server names, each as it is",
    async () => {
      const visit = await Console.openAt(server, "#/nowhere");
      const { page } = visit;
      const methods = [
        { type: "passkey" },
        { type: "oidc", name: "Example", url: "/login/oidc/example" },
        { type: "header" },
        { type: "email" },
        { type: "key" },
      ];
      await page.route("**/v1/session", (route) =>
        route.request().method() === "GET"
          ? route.fulfill({ json: { session: null, login: { methods } } })
          : route.continue(),
      );
      const sent: unknown[] = [];
      await page.route("**/v1/session/email", (route) => {
        sent.push(route.request().postDataJSON());
        return route.fulfill({ status: 202, json: {} });
      });
      await page.goto("about:blank");
      await page.goto(`${visit.url}/dashboard/#/monitors`);
      await page.getByRole("button", { name: "Log in with a passkey" }).waitFor();
      expect(await troubles(visit)).toEqual([]);
      const provider = page.getByRole("link", { name: "Log in with Example" });
      expect(await provider.getAttribute("href")).toBe(
        `${visit.url}/login/oidc/example?return_to=${encodeURIComponent("/dashboard/#/monitors")}`,
      );
      await page.getByRole("button", { name: "Log in through the proxy" }).waitFor();
      await page.getByLabel("E-mail").fill("ann@example.com");
      await page.getByRole("button", { name: "Send a login link" }).click();
      await page.getByRole("status").getByText("If ann@example.com is the address").waitFor();
      expect(sent).toEqual([{ email: "ann@example.com" }]);
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});

describe("an invitation", () => {
  test(
    "says why no passkey can be created at an IP address, and leads to localhost",
    async () => {
      const { body } = await server.operator.post("/v1/people", { email: "hal@example.com", role: "viewer" });
      const visit = await Console.open(server, { width: 390 });
      const { page } = visit;
      await page.goto(`${server.url}/dashboard/${placeOf(body["invitation_url"])}`);
      await page.getByRole("heading", { name: /^Join / }).waitFor();
      await page.getByText("Passkeys need a host name with HTTPS").waitFor();
      expect(await page.getByRole("button", { name: "Create passkey" }).count()).toBe(0);
      expect(await page.getByRole("link", { name: "Open it at localhost" }).getAttribute("href")).toBe(
        page.url().replace("127.0.0.1", "localhost"),
      );
      expect(await troubles(visit)).toEqual([]);
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );

  test(
    "that is not valid says so, and leads to the login page",
    async () => {
      const visit = await Console.openAt(server, "#/invitation/none");
      const { page } = visit;
      await page.getByText("This link does not work any more").waitFor();
      expect(await troubles(visit)).toEqual([]);
      await page.getByRole("link", { name: "Go to the login page" }).click();
      await page.getByRole("button", { name: "Log in with a passkey" }).waitFor();
      expect(visit.faults.splice(0)).toEqual([expect.stringContaining("401")]);
      await visit.expectClean();
    },
    TIMEOUT_MS,
  );
});
