import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { HtmlValidate } from "html-validate";
import { MAILS_PER_UNIT } from "../../../../src/areas/status-pages/subscriptions/announcements.ts";
import { ROWS_PER_PART } from "../../../../src/areas/status-pages/subscriptions/removal.ts";
import {
  ADDRESS_REQUESTS_MAX,
  CONFIRMATION_MS,
  IMPORTED_MAX,
  REPEAT_MS,
  REQUESTS_MAX,
  SUBSCRIBERS_MAX,
  UNCONFIRMED_MAX,
  UNSUBSCRIBED_MAX,
} from "../../../../src/areas/status-pages/subscriptions/subscriptions.ts";
import { MailServer } from "../../../support/mail-server.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";

const PUBLIC_URL = "https://status.acme.example";
const HOUR_MS = 60 * 60 * 1000;

let mail: MailServer;
let server: TestServer;
let account: AccountClient;
beforeAll(async () => {
  mail = await new MailServer().start();
});
afterAll(() => mail.stop());
beforeEach(async () => {
  server = await startTestServer({
    manualClock: true,
    args: ["--public-url", PUBLIC_URL],
    environment: { NINEFOLD_SMTP_URL: mail.url, NINEFOLD_MAIL_FROM: "status@acme.example" },
  });
  account = await server.account({ tier: "unlimited" });
  mail.received.length = 0;
});
afterEach(() => server.stop());

async function page(more: object = {}, slug = "acme"): Promise<string> {
  const created = await account.post("/v1/pulse/pages", { slug, title: "Acme\nShop", ...more });
  expect(created.status, created.text).toBe(201);
  return String(created.body["id"]);
}

/** Sends a form, as a browser does. */
async function send(path: string, fields: Record<string, string>) {
  const response = await fetch(`${server.url}/status/${path}`, {
    method: "POST",
    body: new URLSearchParams(fields),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** Subscribes, an hour after the last one, so that the limit of the network is not reached. */
async function subscribe(email: string, slug = "acme") {
  await server.clock.advance(HOUR_MS);
  return send(`${slug}/subscribe`, { email });
}

/** Lets due e-mails be sent, checks their number, and returns them. */
async function mails(count: number) {
  await server.clock.advance(0);
  expect(mail.received).toHaveLength(count);
  return mail.received.splice(0);
}

const subscribers = () => server.server.kernel.db.all("SELECT * FROM status_subscribers")();
const confirmedCount = () =>
  server.server.kernel.db.number(
    "SELECT count(*) AS n FROM status_subscribers WHERE confirmed_at IS NOT NULL",
  )();

const unsubscribed = () => server.server.kernel.db.number("SELECT count(*) AS n FROM status_unsubscribed")();

/** Stores the subscribers `u<from>@x.example` to `u<to>@x.example` of every page. */
function fill(from: number, to: number, confirmedAt: number | null) {
  server.server.kernel.db.execute(
    `WITH RECURSIVE n(i) AS (SELECT ${from} UNION ALL SELECT i + 1 FROM n WHERE i < ${to})
     INSERT INTO status_subscribers (page_ref, account_ref, project_ref, email, created_at, confirmed_at)
     SELECT ref, account_ref, project_ref, 'u' || i || '@x.example', ${server.clock.now()}, ${confirmedAt} FROM n, status_pages`,
  );
}

/** The path of the link in an e-mail, below `/status/`. */
function linkIn({ raw }: { readonly raw: string }): string {
  const [, path] = new RegExp(`${PUBLIC_URL}/status/(\\S+/subscription\\?token=[\\w-]+)`).exec(raw) ?? [];
  if (path === undefined) throw new Error(`no link: ${raw}`);
  return path;
}

async function confirmed(email: string, slug = "acme"): Promise<string> {
  await subscribe(email, slug);
  const [message] = await mails(1);
  if (message === undefined) throw new Error("no e-mail");
  const link = linkIn(message);
  expect((await send(link, { action: "confirm" })).status).toBe(200);
  return link;
}

describe("importing", () => {
  const importOf = (pageId: string, subscribers: readonly object[]) =>
    account.post(`/v1/pulse/pages/${pageId}/subscribers/import`, { subscribers });

  test("adds confirmed subscribers without an e-mail; they get one for each incident, and can unsubscribe", async () => {
    const id = await page();
    await confirmed("ada@example.com");
    await subscribe("cleo@example.com");
    await mails(1);
    const given = ["ANN@example.com ", "ada@example.com", "no address", "cleo@example.com"];
    const imported = await importOf(
      id,
      given.map((email) => ({ email, confirmed_at: "2025-02-01T12:00:00Z" })),
    );
    expect([imported.status, imported.body]).toEqual([
      200,
      { imported: 2, known: 1, rejected: [{ index: 2, reason: "invalid_address" }] },
    ]);
    await mails(0);
    const stored = subscribers() as Record<string, unknown>[];
    expect(stored.map(({ email, confirmed_at }) => [email, confirmed_at])).toEqual([
      ["ada@example.com", expect.any(Number)],
      ["cleo@example.com", Date.parse("2025-02-01T12:00:00Z")],
      ["ann@example.com", Date.parse("2025-02-01T12:00:00Z")],
    ]);
    expect(stored.map(({ imported_at }) => imported_at !== null)).toEqual([false, true, true]);
    const past = { title: "Old", public: true, started_at: "2026-01-01T00:00:00Z" };
    for (const silent of [past, { title: "Of a file", public: true, managed_by: "apply" }])
      expect((await account.post("/v1/pulse/incidents", silent)).status).toBe(201);
    await mails(0);
    await account.post("/v1/pulse/incidents", { title: "Payments fail", public: true });
    const sent = await mails(3);
    const ann = sent.find(({ raw }) => raw.includes("ann@example.com"));
    expect((await send(linkIn(ann ?? { raw: "" }), { action: "unsubscribe" })).status).toBe(200);
    expect(confirmedCount()).toBe(2);
    const entries = (await account.get("/v1/audit?action=monitors.pages.subscribers.import")).body["entries"];
    const [{ sequence }] = entries as [{ sequence: string }];
    const entry = (await account.get(`/v1/audit/${sequence}`)).body;
    expect(entry["after"]).toEqual({ imported: 2, known: 1, rejected: 1 });
  });

  test("does not add who has unsubscribed, until they subscribe again", async () => {
    const id = await page();
    const other = await page({}, "other");
    const [ann, bob] = ["ann@example.com", "bob@example.com"];
    const link = await confirmed(ann);
    expect((await send(link, { action: "unsubscribe" })).status).toBe(200);
    const both = [{ email: "Ann@Example.com" }, { email: bob }];
    const rejected = [{ index: 0, reason: "unsubscribed" }];
    expect((await importOf(id, both)).body).toEqual({ imported: 1, known: 0, rejected });
    expect((await importOf(id, both)).body).toEqual({ imported: 0, known: 1, rejected });
    expect((await importOf(other, both)).body).toEqual({ imported: 2, known: 0, rejected: [] });
    await server.clock.advance(REPEAT_MS);
    await confirmed(ann);
    expect((await importOf(id, both)).body).toEqual({ imported: 0, known: 2, rejected: [] });
    expect(unsubscribed()).toBe(0);
  });

  test("remembers the last addresses that have unsubscribed, as long as the page exists", async () => {
    const id = await page();
    const first = { email: "first@example.com" };
    expect((await send(await confirmed(first.email), { action: "unsubscribe" })).status).toBe(200);
    server.server.kernel.db.execute(
      `WITH RECURSIVE n (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM n WHERE n < ${UNSUBSCRIBED_MAX})
       INSERT INTO status_unsubscribed (page_ref, project_ref, digest) SELECT page_ref, project_ref, randomblob(16) FROM status_unsubscribed, n`,
    );
    expect(unsubscribed()).toBe(UNSUBSCRIBED_MAX);
    expect((await importOf(id, [first])).body).toMatchObject({ imported: 0 });
    expect((await send(await confirmed("last@example.com"), { action: "unsubscribe" })).status).toBe(200);
    expect(unsubscribed()).toBe(UNSUBSCRIBED_MAX);
    expect((await importOf(id, [first])).body).toMatchObject({ imported: 1 });
    expect((await account.delete(`/v1/pulse/pages/${id}`)).status).toBe(200);
    await server.clock.advance(1);
    expect(unsubscribed()).toBe(0);
  });

  test("goes with its page in parts, also after a restart, and that of other pages stays", async () => {
    const id = await page();
    const link = await confirmed("ann@example.com");
    expect((await send(await confirmed("bob@example.com"), { action: "unsubscribe" })).status).toBe(200);
    const { db } = server.server.kernel;
    db.execute(
      `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${2 * ROWS_PER_PART})
       INSERT INTO status_unsubscribed (page_ref, project_ref, digest) SELECT page_ref, project_ref, randomblob(16) FROM status_unsubscribed, n`,
    );
    await page({}, "other");
    fill(1, ROWS_PER_PART, 1);
    const subscribers = () =>
      server.server.kernel.db.number("SELECT count(*) AS n FROM status_subscribers")();
    expect([subscribers(), unsubscribed()]).toEqual([2 * ROWS_PER_PART + 1, 2 * ROWS_PER_PART + 1]);
    expect((await account.delete(`/v1/pulse/pages/${id}`)).status).toBe(200);
    expect([subscribers(), unsubscribed()]).toEqual([ROWS_PER_PART + 1, 2 * ROWS_PER_PART + 1]);
    // It is not there for anyone, though the rest of it is still stored.
    expect((await send(link, { action: "unsubscribe" })).status).toBe(404);
    await server.restart();
    await server.clock.advance(1);
    expect([subscribers(), unsubscribed()]).toEqual([ROWS_PER_PART, 0]);
  });

  test("has a limit for a request and for a page, and is for pages of the project", async () => {
    const id = await page();
    fill(1, SUBSCRIBERS_MAX - 1, 1);
    const many = (count: number) =>
      Array.from({ length: count }, (_, index) => ({ email: `v${index}@x.example` }));
    const { body } = await importOf(id, many(2));
    expect(body).toEqual({ imported: 1, known: 0, rejected: [{ index: 1, reason: "page_full" }] });
    expect((await importOf(id, many(IMPORTED_MAX))).status).toBe(200);
    for (const wrong of [
      many(IMPORTED_MAX + 1),
      [],
      [{ email: "a@x.example", confirmed_at: "2027-01-01T00:00:00Z" }],
    ])
      expect((await importOf(id, wrong)).status).toBe(400);
    const other = await server.account({ tier: "unlimited" });
    const foreign = await other.post(`/v1/pulse/pages/${id}/subscribers/import`, { subscribers: many(1) });
    expect(foreign.status).toBe(404);
  });
});

describe("subscribing", () => {
  test("takes effect when the link in the e-mail is confirmed", async () => {
    await page();
    expect((await server.client(null).get("/status/acme")).text).toContain(
      '<a href="acme/subscribe">By e-mail</a>',
    );
    const form = await server.client(null).get("/status/acme/subscribe");
    expect(Object.fromEntries(form.headers)).toMatchObject({
      "content-security-policy":
        "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
    });
    const asked = await subscribe("Ada@Example.com");
    expect([asked.status, asked.text.includes("Check your inbox")]).toEqual([202, true]);
    const [message] = await mails(1);
    expect(message).toMatchObject({ to: ["ada@example.com"], from: "status@acme.example" });
    expect(message?.raw).toContain("Subject: [Acme Shop] Confirm your subscription");
    const link = linkIn(message ?? { raw: "" });
    const opened = await server.client(null).get(`/status/${link}`);
    expect(opened.text).toContain("Confirm your subscription");
    const done = await send(link, { action: "confirm" });
    expect([done.status, done.text.includes("<h2>Subscribed</h2>")]).toEqual([200, true]);
    expect((await server.client(null).get(`/status/${link}`)).text).toContain("Unsubscribe");
    for (const { text } of [form, asked, opened, done]) {
      const { results } = await new HtmlValidate({ extends: ["html-validate:standard"] }).validateString(
        text,
      );
      expect(results.flatMap(({ messages }) => messages)).toEqual([]);
    }
  });

  test.each([
    "",
    "ada",
    "ada@",
    "a b@example.com",
    "ada@example.com\nbcc: x@example.com",
    `${"a".repeat(250)}@x.example`,
  ])("rejects %j", async (email) => {
    await page();
    const { status, text } = await send("acme/subscribe", { email });
    expect([status, text.includes("This is not a valid e-mail address.")]).toEqual([400, true]);
    expect(subscribers()).toEqual([]);
  });

  test("reveals nothing about an address: one that has subscribed gets the same response, and no e-mail", async () => {
    await page();
    const first = await subscribe("ada@example.com");
    const [message] = await mails(1);
    await send(linkIn(message ?? { raw: "" }), { action: "confirm" });
    const again = await subscribe("ADA@example.com");
    expect([again.status, again.text]).toEqual([202, first.text]);
    expect(mail.received).toEqual([]);
  });

  test("sends an unconfirmed address another e-mail after REPEAT_MS, not before", async () => {
    await page();
    await send("acme/subscribe", { email: "ada@example.com" });
    await mails(1);
    await server.clock.advance(REPEAT_MS - 1);
    await send("acme/subscribe", { email: "ada@example.com" });
    await server.clock.advance(1);
    expect(mail.received).toEqual([]);
    await send("acme/subscribe", { email: "ada@example.com" });
    expect(await mails(1)).toHaveLength(1);
  });

  test("has a limit per address over all pages, which nobody sees", async () => {
    for (let count = 0; count < ADDRESS_REQUESTS_MAX + 1; count += 1) {
      await page({}, `page-${count}`);
      expect((await send(`page-${count}/subscribe`, { email: "ada@example.com" })).status).toBe(202);
    }
    await mails(ADDRESS_REQUESTS_MAX);
  });

  test("has a limit per network", async () => {
    await page();
    for (let count = 0; count < REQUESTS_MAX; count += 1)
      expect((await send("acme/subscribe", { email: `u${count}@example.com` })).status).toBe(202);
    const limited = await send("acme/subscribe", { email: "more@example.com" });
    expect([limited.status, Number(limited.headers.get("retry-after"))]).toEqual([429, 3_600]);
    await mails(REQUESTS_MAX);
  });

  test.each([
    ["unconfirmed", UNCONFIRMED_MAX, null],
    ["confirmed", SUBSCRIBERS_MAX, 1],
  ])("has a limit of %s addresses of a page: %d", async (_, max, confirmedAt) => {
    await page();
    fill(1, max - 1, confirmedAt);
    expect((await send("acme/subscribe", { email: "ada@example.com" })).status).toBe(202);
    const [message] = await mails(1);
    fill(max, max, confirmedAt);
    expect((await send("acme/subscribe", { email: "bob@example.com" })).status).toBe(429);
    if (confirmedAt === null) return;
    // The page filled up after the e-mail was sent.
    await send(linkIn(message ?? { raw: "" }), { action: "confirm" });
    expect(confirmedCount()).toBe(SUBSCRIBERS_MAX);
    expect((await send(linkIn(message ?? { raw: "" }), { action: "confirm" })).text).toContain(
      "Not subscribed",
    );
  });

  test("is not offered without a mail server or a public URL, on an unpublished page, or on none", async () => {
    const id = await page();
    await account.patch(`/v1/pulse/pages/${id}`, { published: false });
    for (const slug of ["acme", "none"]) {
      expect((await server.client(null).get(`/status/${slug}/subscribe`)).status).toBe(404);
      expect((await send(`${slug}/subscribe`, { email: "ada@example.com" })).status).toBe(404);
    }
    await server.stop();
    server = await startTestServer({ manualClock: true, args: ["--public-url", PUBLIC_URL] });
    account = await server.account();
    await page();
    expect((await server.client(null).get("/status/acme/subscribe")).status).toBe(404);
    expect((await server.client(null).get("/status/acme/subscription")).status).toBe(404);
    expect((await send("acme/subscription", {})).status).toBe(404);
    expect((await server.client(null).get("/status/acme")).text).not.toContain("By e-mail");
  });
});

describe("links", () => {
  test("expire unconfirmed after a day, and their address is removed", async () => {
    await page();
    await subscribe("ada@example.com");
    const [message] = await mails(1);
    const link = linkIn(message ?? { raw: "" });
    await server.clock.advance(CONFIRMATION_MS);
    expect((await server.client(null).get(`/status/${link}`)).status).toBe(200);
    await server.clock.advance(1);
    expect((await server.client(null).get(`/status/${link}`)).status).toBe(404);
    expect((await send(link, { action: "confirm" })).status).toBe(404);
    await server.clock.advance(HOUR_MS);
    expect(subscribers()).toEqual([]);
  });

  test("work after the slug has changed, on a hidden page, and under any page's address", async () => {
    const id = await page();
    await page({}, "other");
    const link = await confirmed("ada@example.com");
    const token = link.slice(link.indexOf("token="));
    await account.patch(`/v1/pulse/pages/${id}`, { slug: "renamed", published: false });
    for (const path of [link, `other/subscription?${token}`, `renamed/subscription?${token}`]) {
      const { status, text } = await server.client(null).get(`/status/${path}`);
      expect([status, text.includes("<title>Your subscription: Acme\nShop</title>")]).toEqual([200, true]);
    }
    expect((await send(link, {})).text).toContain("<h2>Unsubscribed</h2>");
  });

  test("cannot be forged", async () => {
    await page();
    const link = await confirmed("ada@example.com");
    const token = link.slice(link.indexOf("token=") + 6);
    for (const path of [`acme/subscription?token=${token.slice(0, -2)}AA`, "acme/subscription"]) {
      expect((await server.client(null).get(`/status/${path}`)).status).toBe(404);
      expect((await send(path, { action: "unsubscribe" })).status).toBe(404);
    }
    expect(subscribers()).toHaveLength(1);
  });

  test("unsubscribe with the button, and with one click of a mail client", async () => {
    await page();
    for (const fields of [{ action: "unsubscribe" }, { "List-Unsubscribe": "One-Click" }]) {
      const link = await confirmed("ada@example.com");
      expect((await send(link, fields as Record<string, string>)).text).toContain("<h2>Unsubscribed</h2>");
      expect(subscribers()).toEqual([]);
      expect((await send(link, { action: "confirm" })).status).toBe(404);
    }
  });
});

describe("incidents", () => {
  test("are announced when they are opened, updated and resolved, with a link to unsubscribe", async () => {
    await page();
    const link = await confirmed("ada@example.com");
    const incident = {
      title: "Checkout\nis slow",
      message: "We look into it.",
      impact: "degraded",
      public: true,
    };
    const { body } = await account.post("/v1/pulse/incidents", incident);
    const [opened] = await mails(1);
    expect(opened?.raw).toContain("Subject: [Acme Shop] Investigating: Checkout is slow");
    expect(opened?.raw).toContain("Degraded performance");
    expect(opened?.raw).toContain("We look into it.");
    expect(opened?.raw).toContain(`${PUBLIC_URL}/status/acme/incidents/${body["id"]}`);
    expect(opened?.raw).toMatch(
      /List-Unsubscribe:\s+<https:\/\/status\.acme\.example\/status\/acme\/subscription\?token=/,
    );
    expect(opened?.raw).toContain("List-Unsubscribe-Post: List-Unsubscribe=One-Click");
    const updates = `/v1/pulse/incidents/${body["id"]}/updates`;
    await account.post(updates, { status: "identified", message: "A disk is full." });
    expect((await mails(1))[0]?.raw).toContain("A disk is full.");
    await account.post(updates, { status: "resolved" });
    const [resolved] = await mails(1);
    expect(resolved?.raw).toContain("Subject: [Acme Shop] Resolved: Checkout is slow");
    await send(link, {});
    await account.post("/v1/pulse/incidents", incident);
    await server.clock.advance(HOUR_MS);
    expect(mail.received).toEqual([]);
  });

  test("that a page does not show are not announced, until they are made public", async () => {
    await page();
    await confirmed("ada@example.com");
    const { body } = await account.post("/v1/pulse/incidents", { title: "Internal" });
    await server.clock.advance(HOUR_MS);
    expect(mail.received).toEqual([]);
    await account.patch(`/v1/pulse/incidents/${body["id"]}`, { public: true });
    expect((await mails(1))[0]?.raw).toContain("Internal");
    // Hidden and published again: the subscribers know of it.
    for (const isPublic of [false, true])
      await account.patch(`/v1/pulse/incidents/${body["id"]}`, { public: isPublic });
    const { body: old } = await account.post("/v1/pulse/incidents", { title: "Old" });
    await account.post(`/v1/pulse/incidents/${old["id"]}/updates`, { status: "resolved" });
    await account.patch(`/v1/pulse/incidents/${old["id"]}`, { public: true });
    await account.patch(`/v1/pulse/incidents/${body["id"]}`, { title: "Renamed" });
    await server.clock.advance(HOUR_MS);
    expect(mail.received).toEqual([]);
  });

  test("of another project are not announced", async () => {
    await page();
    await confirmed("ada@example.com");
    const other = await server.account();
    await other.post("/v1/pulse/incidents", { title: "Theirs", public: true });
    await server.clock.advance(HOUR_MS);
    expect(mail.received).toEqual([]);
  });

  test("are announced to each subscriber once, over more than one unit of work", async () => {
    await page();
    const count = MAILS_PER_UNIT + 1;
    fill(1, count, 1);
    await account.post("/v1/pulse/incidents", { title: "Slow", public: true });
    const sent = await mails(count);
    await server.clock.advance(HOUR_MS);
    expect(mail.received).toEqual([]);
    expect(new Set(sent.map(({ to }) => to[0])).size).toBe(count);
  }, 60_000);
});

test("deleting a page or its project removes the subscribers", async () => {
  const id = await page();
  await confirmed("ada@example.com");
  await account.delete(`/v1/pulse/pages/${id}`);
  expect(subscribers()).toEqual([]);
});
