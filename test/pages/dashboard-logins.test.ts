import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { MINUTE_MS } from "../../src/kernel/time/units.ts";
import { type Deviation, HostileProvider } from "../areas/login/hostile-provider.ts";
import { settings } from "../areas/login/support.ts";
import { Scratch } from "../kernel/support.ts";
import { eventually, until } from "../support/eventually.ts";
import { MailServer } from "../support/mail-server.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { closeBrowser, openBrowser, TIMEOUT_MS } from "./browser.ts";
import { Console } from "./console.ts";

const scratch = new Scratch();
const mail = new MailServer();
const provider = new HostileProvider(() => server.clock.now());
let server: TestServer;
beforeAll(async () => {
  await Promise.all([openBrowser(), mail.start()]);
  const path = scratch.path("logins.toml");
  writeFileSync(
    path,
    'trust_proxy = ["127.0.0.1"]\n[login]\nemail_links = true\n[login.header]\nemail = "Remote-Email"\n',
  );
  server = await startTestServer({
    manualClock: true,
    args: ["--config", path, "--mail-from", "nf@ninefold.example"],
    environment: { NINEFOLD_SMTP_URL: mail.url },
    config: { oidc: [settings(provider)] },
  });
}, TIMEOUT_MS);
afterAll(async () => {
  await closeBrowser();
  await Promise.all([server.stop(), provider.stop(), mail.stop()]);
  scratch.remove();
}, TIMEOUT_MS);

/** Follows an address of the console, also one that differs from the present one in its part behind # alone. */
async function follow({ page, url }: Console, place: string): Promise<void> {
  await page.goto("about:blank");
  await page.goto(`${url}/dashboard/${place}`);
}

/** The login link in the newest mail to an address. */
async function mailedTo(email: string): Promise<string> {
  const found = () =>
    mail.received
      .filter(({ to }) => to.includes(email))
      .map(({ raw }) => /#\/login\/[\w-]{43}/.exec(raw)?.[0])
      .find((link) => link !== undefined);
  await until(async () => {
    await server.clock.advance(0);
    return found() !== undefined;
  }, "sent");
  return found() ?? "";
}

/** The provider leads back immediately, as one at which its user is logged in. */
function returnImmediately(deviation: () => Deviation): void {
  provider.responses.set("/authorize", ({ url }) =>
    Response.redirect(provider.authorize(url, deviation()), 303),
  );
}

test(
  "a link by e-mail logs in the browser that asked for it, and says so elsewhere",
  async () => {
    await server.operator.post("/v1/people", { email: "ann@example.com", name: "Ann", role: "viewer" });
    const visit = await Console.openAt(server, "#/flags");
    await visit.page.getByLabel("E-mail").fill("ann@example.com");
    await visit.page.getByRole("button", { name: "Send a login link" }).press("Enter");
    await visit.page.getByText("a link is on its way").waitFor();
    const link = await mailedTo("ann@example.com");
    const other = await Console.openAt(server, link);
    await other.page.getByRole("status").filter({ hasText: "rejected" }).waitFor();
    expect(other.page.url()).not.toContain(link);
    expect(other.faults.splice(0)).toEqual([expect.stringContaining("401")]);
    await follow(visit, link);
    await visit.page.getByRole("link", { name: /^Ann/ }).waitFor();
    expect(visit.page.url()).not.toContain(link);
    await visit.expectClean();
    await other.expectClean();
  },
  TIMEOUT_MS,
);

test(
  "the proxy's header logs in, and opens the other accounts of its address",
  async () => {
    await server.operator.post("/v1/people", { email: "bob@example.com", name: "Bob", role: "viewer" });
    const account = await server.account();
    const invited = await account.post("/v1/people", { email: "bob@example.com", role: "admin" });
    expect(invited.status).toBe(201);
    const visit = await Console.openAt(server, "");
    const { page } = visit;
    await page.setExtraHTTPHeaders({ "remote-email": "bob@example.com" });
    await page.reload();
    await page.getByRole("button", { name: "Log in through the proxy" }).press("Enter");
    await page.getByRole("navigation", { name: "Pages" }).waitFor();
    const chosen = page.getByLabel("Account", { exact: true });
    const first = await chosen.locator("option:checked").innerText();
    await page.getByRole("link", { name: /^(Bob|bob@example.com)/ }).click();
    await page.getByRole("button", { name: /^Switch to / }).press("Enter");
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    const second = await chosen.locator("option:checked").innerText();
    expect(second).not.toBe(first);
    expect(await visit.violations()).toEqual([]);
    await chosen.selectOption({ label: first });
    await eventually(async () => expect(await chosen.locator("option:checked").innerText()).toBe(first));
    await visit.settleRequests();
    await visit.expectClean();
  },
  TIMEOUT_MS,
);

test(
  "a provider logs in, leads back to the page, and confirms a dangerous action",
  async () => {
    await server.operator.post("/v1/people", { email: "cleo@example.com", name: "Cleo", role: "admin" });
    const now = () => Math.floor(server.clock.now() / 1000);
    const claims = () => ({ email: "cleo@example.com", sub: "cleo", auth_time: now() });
    const visit = await Console.openAt(server, "#/keys");
    const { page } = visit;
    let returned: Deviation["returned"] = { code: undefined, error: "access_denied" };
    returnImmediately(() => ({ claims: claims(), ...(returned && { returned }) }));
    const logIn = page.getByRole("link", { name: "Log in with Company" });
    await logIn.click();
    await page.getByText("The provider did not log you in.").waitFor();
    returned = undefined;
    await follow(visit, "#/keys");
    await logIn.press("Enter");
    await page.getByRole("heading", { name: "Keys", exact: true }).waitFor();

    await visit.go("keys?new=1");
    await page.getByLabel("Name", { exact: true }).fill("Warehouse");
    await page.getByLabel("gate:read").check();
    await server.clock.advance(16 * MINUTE_MS);
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByRole("button", { name: "Confirm with Company" }).press("Enter");
    await page.getByText("This secret is shown only once.").waitFor();
    await page.getByRole("button", { name: "I have saved it" }).click();
    await page.getByRole("link", { name: "Warehouse" }).waitFor();
    expect(visit.faults.splice(0)).toEqual([expect.stringContaining("403")]);
    visit.requests.splice(0);
    await visit.expectClean();
  },
  TIMEOUT_MS,
);
