import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { EMAIL_LINK_MS, EMAIL_LINKS_MAX, EMAIL_LINKS_WINDOW_MS } from "../../../src/areas/session/domain.ts";
import { Scratch } from "../../kernel/support.ts";
import { expectError } from "../../support/errors.ts";
import { until } from "../../support/eventually.ts";
import { MailServer } from "../../support/mail-server.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";
import { Browser } from "./support.ts";

const scratch = new Scratch();
const mail = new MailServer();
let server: TestServer;
beforeAll(async () => {
  await mail.start();
  const path = scratch.path("email.toml");
  writeFileSync(path, 'trust_proxy = ["127.0.0.1"]\n[login]\nemail_links = true\n');
  server = await startTestServer({
    manualClock: true,
    args: ["--config", path, "--mail-from", "nf@ninefold.example"],
    environment: { NINEFOLD_SMTP_URL: mail.url },
  });
});
afterAll(async () => {
  await server.stop();
  await mail.stop();
  scratch.remove();
});

/** A browser with a jar for the cookie that binds links to it, beside that of the session. */
class MailBrowser extends Browser {
  bound = "";

  override async send(...[method, path, body, options]: Parameters<Browser["send"]>) {
    const cookie = [this.cookie, this.bound].filter((one) => one !== "").join("; ");
    const headers = { ...options?.headers, ...(cookie === "" ? {} : { cookie }) };
    const before = this.cookie;
    const answer = await super.send(method, path, body, { ...options, headers });
    const [set = ""] = answer.headers.getSetCookie();
    if (/^[^=]+_email=/.test(set)) {
      this.bound = set.split(";")[0] ?? "";
      this.cookie = before;
    }
    return answer;
  }

  request(email: string) {
    return this.post("/v1/session/email", { email });
  }

  open(link: string) {
    return this.post("/v1/session", { email_link: link });
  }
}

/** The token of the newest mail to an address, once there are so many. */
async function linkTo(email: string, count = 1): Promise<string> {
  const of = () => mail.received.filter(({ to }) => to.includes(email));
  await until(async () => {
    await server.clock.advance(0);
    return of().length >= count;
  }, "sent");
  return /\/dashboard\/#\/login\/([\w-]{43})/.exec(of().at(-1)?.raw ?? "")?.[1] ?? "none";
}

async function invited(email: string, role = "editor") {
  const account = await server.account();
  const { body } = await account.post("/v1/people", { email, role });
  return { account, id: String(body["person_id"]) };
}

describe("a login link by e-mail", () => {
  test("logs in the browser that requested it, once, and accepts the invitation", async () => {
    const { account, id } = await invited("ann@example.com");
    const ann = new MailBrowser(server);
    const { methods } = (await ann.get("/v1/session")).body["login"] as { methods: object[] };
    expect(methods).toContainEqual({ type: "email" });
    const requested = await ann.request("ANN@example.com");
    expect(requested.status).toBe(202);
    expect(requested.headers.getSetCookie()[0]).toMatch(
      /^ninefold_\w+_email=[\w-]{43}; HttpOnly; SameSite=Strict; Path=\/; Max-Age=900$/,
    );
    // That of the invitation comes first.
    const link = await linkTo("ann@example.com", 2);
    const eve = new MailBrowser(server);
    expectError(await eve.open(link), "unauthorized");
    await eve.request("eve@example.com");
    expectError(await eve.open(link), "unauthorized");
    const opened = await ann.open(link);
    expect(opened.status).toBe(201);
    expect(opened.body).toMatchObject({
      method: "email",
      user_id: account.userId,
      person: { person_id: id },
    });
    expect((await ann.get("/v1/gate")).status).toBe(200);
    expectError(await ann.open(link), "unauthorized");
  });

  test("opens the other accounts of its address", async () => {
    const first = await invited("bob@example.com");
    const second = await invited("bob@example.com");
    const bob = new MailBrowser(server);
    await bob.request("bob@example.com");
    const { body } = await bob.open(await linkTo("bob@example.com", 3));
    const [other] = body["accounts"] as { user_id: string }[];
    expect(new Set([body["user_id"], other?.user_id])).toEqual(
      new Set([first.account.userId, second.account.userId]),
    );
    expect((await bob.post("/v1/session/account", { user_id: other?.user_id })).body["user_id"]).toBe(
      String(other?.user_id),
    );
  });

  test("ends after 15 minutes; several work in one browser", async () => {
    await invited("cy@example.com");
    const cy = new MailBrowser(server);
    await cy.request("cy@example.com");
    const first = await linkTo("cy@example.com", 2);
    const { bound } = cy;
    await cy.request("cy@example.com");
    expect(cy.bound).toBe(bound);
    const second = await linkTo("cy@example.com", 3);
    expect((await cy.open(first)).status).toBe(201);
    await server.clock.advance(EMAIL_LINK_MS);
    expectError(await cy.open(second), "unauthorized");
  });

  test("responds to unknown and disabled addresses as to known ones, and sends nothing", async () => {
    const { account, id } = await invited("dan@example.com");
    await account.patch(`/v1/people/${id}`, { disabled: true });
    await linkTo("dan@example.com");
    const before = mail.received.length;
    const browser = new MailBrowser(server);
    const known = await new MailBrowser(server).request("ann@example.com");
    for (const email of ["nobody@example.com", "dan@example.com"]) {
      const unknown = await browser.request(email);
      expect([unknown.status, Object.keys(unknown.body)]).toEqual([202, Object.keys(known.body)]);
      expect([...unknown.headers.keys()].sort()).toEqual([...known.headers.keys()].sort());
    }
    await linkTo("ann@example.com", 3);
    await server.clock.advance(0);
    expect(mail.received.slice(before).map(({ to }) => to)).toEqual([["ann@example.com"]]);
    expectError(await browser.request("no address"), "validation_error");
  });

  test("is sent 5 times an hour to an address, and 5 times for a network", async () => {
    await server.clock.advance(EMAIL_LINKS_WINDOW_MS);
    await invited("fay@example.com");
    const statuses: number[] = [];
    for (let sent = 0; sent <= EMAIL_LINKS_MAX; sent += 1)
      statuses.push((await new MailBrowser(server).request("fay@example.com")).status);
    expect(new Set(statuses)).toEqual(new Set([202]));
    await linkTo("fay@example.com", EMAIL_LINKS_MAX + 1);
    const one = new MailBrowser(server);
    for (let sent = 0; sent < EMAIL_LINKS_MAX; sent += 1) await one.request(`nobody-${sent}@example.com`);
    expectError(await one.request("fay@example.com"), "rate_limit_exceeded");
    await server.clock.advance(0);
    // With the mail of the invitation.
    expect(mail.received.filter(({ to }) => to.includes("fay@example.com"))).toHaveLength(
      EMAIL_LINKS_MAX + 1,
    );
    await server.clock.advance(EMAIL_LINKS_WINDOW_MS);
    expect((await one.request("fay@example.com")).status).toBe(202);
  });

  test("needs a page of the server, and is no login without the console or the setting", async () => {
    const other = new MailBrowser(server);
    other.headers["x-ninefold-session"] = "";
    expectError(await other.request("ann@example.com"), "forbidden");
    const plain = await startTestServer();
    try {
      expectError(await new MailBrowser(plain).request("ann@example.com"), "not_found");
      expectError(await new MailBrowser(plain).open("a".repeat(43)), "unauthorized");
      expectError(
        await new MailBrowser(plain).post("/v1/session", { email_link: "x", proxy: true }),
        "validation_error",
      );
    } finally {
      await plain.stop();
    }
  });
});

test("without the console only keys log in", async () => {
  const off = await startTestServer({ args: ["--dashboard", "off"] });
  try {
    const browser = new MailBrowser(off);
    expect((await browser.get("/v1/session")).body["login"]).toEqual({ methods: [{ type: "key" }] });
    for (const path of ["/email", "/passkey", "/passkey/options", "/invitation", "/invitation/accept"])
      expect((await browser.post(`/v1/session${path}`, { email: "a@b.c", token: "x" })).status).toBe(404);
    expect((await fetch(`${off.url}/login/oidc/x`)).status).toBe(404);
    expectError(await browser.post("/v1/session/account", { user_id: "usr_x" }), "not_found");
    expectError(await browser.open("x"), "not_found");
    expectError(await browser.post("/v1/session", { proxy: true }), "not_found");
    expect((await browser.post("/v1/session", { key: off.key })).status).toBe(201);
  } finally {
    await off.stop();
  }
});
