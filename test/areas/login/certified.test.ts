import { afterAll, beforeAll, expect, test } from "bun:test";
import { startTestServer, type TestServer } from "../../support/server.ts";
import { ARGS, invite, ORIGIN } from "../people/support.ts";
import { CertifiedProvider, ProviderBrowser } from "./certified-provider.ts";
import { LoginBrowser, settings } from "./support.ts";

const provider = new CertifiedProvider();
let server: TestServer;
beforeAll(async () => {
  await provider.start(["sso", "roles"].map((name) => `${ORIGIN}/login/oidc/${name}/callback`));
  const oidc = [
    settings(provider),
    settings(provider, {
      name: "roles",
      scopes: ["openid", "email", "profile", "groups"],
      account: "team@example.com",
      create: true,
      allowedGroups: ["staff"],
      roles: new Map([
        ["staff", "viewer"],
        ["ops", "admin"],
      ]),
    }),
  ];
  server = await startTestServer({ args: ARGS, config: { oidc } });
});
afterAll(async () => {
  await server.stop();
  await provider.stop();
});

test("a person logs in at a certified provider, whose claims are those of UserInfo, and confirms it there", async () => {
  await invite(await server.account(), { email: "ann@company.example", role: "owner" });
  const [browser, there] = [new LoginBrowser(server), new ProviderBrowser("ann@company.example")];
  expect(await browser.comeBack(await there.authorize(await browser.begin()))).toBe("/dashboard/");
  const first = await browser.session();
  expect(first).toMatchObject({
    method: "oidc",
    person: { email: "ann@company.example", name: "Ann Other" },
  });
  expect(there.forms).toEqual(["login", "consent"]);
  // The provider knows the browser still, but is asked for a new login.
  const back = await there.authorize(
    await browser.begin("sso", "?step_up=true&return_to=/dashboard/%23/people"),
  );
  expect(there.forms.slice(2)).toContain("login");
  expect(await browser.comeBack(back)).toBe("/dashboard/#/people");
  expect((await browser.session())?.["session_id"]).toBe(first?.["session_id"] as number);
});

test("groups of a certified provider give roles, and let people in", async () => {
  await server.account({ email: "team@example.com" });
  provider.groups.set("bob@company.example", ["staff", "ops"]);
  const [bob, eve] = [new LoginBrowser(server), new LoginBrowser(server)];
  const at = (browser: LoginBrowser, email: string) =>
    browser.begin("roles").then((url) => new ProviderBrowser(email).authorize(url));
  expect(await bob.comeBack(await at(bob, "bob@company.example"))).toBe("/dashboard/");
  expect(await bob.session()).toMatchObject({ person: { email: "bob@company.example", role: "admin" } });
  expect(await eve.comeBack(await at(eve, "eve@company.example"))).toContain("error=refused");
});
