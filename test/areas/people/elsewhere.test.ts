import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { expectError } from "../../support/errors.ts";
import { until } from "../../support/eventually.ts";
import { MailServer } from "../../support/mail-server.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";
import { ARGS, invite, join, PersonBrowser } from "./support.ts";

const mail = new MailServer();
let server: TestServer;
beforeAll(async () => {
  await mail.start();
  server = await startTestServer({ manualClock: true, args: ARGS });
});
afterAll(async () => {
  await server.stop();
  await mail.stop();
});

describe("keys of a person whose role changes", () => {
  test("continue to work, and a warning lists them, unless they are revoked", async () => {
    const account = await server.account();
    const ann = await join(server, account, { role: "admin" });
    const key = await ann.post("/v1/keys", { prefix: "sm", name: "k", scopes: ["meter:read"] });
    const at = `/v1/people/${ann.personId}`;
    expect((await account.patch(at, { name: "Ann" })).body["warnings"]).toBeUndefined();
    const changed = await account.patch(at, { role: "viewer" });
    expect(changed.body["warnings"]).toEqual([expect.stringContaining(String(key.body["key_id"]))]);
    const client = server.client(String(key.body["secret"]));
    expect((await client.get("/v1/meter")).status).toBe(200);
    const disabled = await account.patch(`${at}?revoke_keys=true`, { disabled: true });
    expect(disabled.body).toMatchObject({ status: "disabled" });
    expect(disabled.body["warnings"]).toBeUndefined();
    expectError(await client.get("/v1/meter"), "unauthorized");
  });
});

describe("people who are no admins", () => {
  test("see names, but no addresses of others, in the audit log and in incidents", async () => {
    const account = await server.account();
    const ann = await join(server, account, { email: "ann.secret@example.com", role: "editor", name: "Ann" });
    const bob = await join(server, account, { email: "bob.secret@example.com", role: "viewer" });
    const incident = await ann.post("/v1/pulse/incidents", {
      title: "Down",
      message: "We look.",
      public: true,
    });
    const updated = await ann.post(`/v1/pulse/incidents/${incident.body["id"]}/updates`, {
      status: "identified",
      message: "A cable.",
    });
    expect(updated.body["updates"]).toMatchObject([{ author: "Ann" }, { author: "Ann" }]);
    await account.patch(`/v1/people/${ann.personId}`, { role: "responder" });
    for (const path of ["/v1/audit?limit=100", "/v1/audit/export", "/v1/overview"]) {
      const { status, text } = await bob.get(path);
      expect(status).toBe(200);
      expect(text).not.toContain("ann.secret@example.com");
      expect((await account.get(path)).text).toContain("ann.secret@example.com");
    }
    const entries = (await bob.get(`/v1/audit?actor=${ann.personId}`)).body["entries"] as {
      actor: Record<string, unknown>;
    }[];
    expect(entries[0]?.actor).toMatchObject({ person_id: ann.personId, name: "Ann" });
    expect(entries[0]?.actor).not.toContainKey("email");
  });

  test("are named in incidents without an address, and on no status page", async () => {
    const account = await server.account();
    const cy = await join(server, account, { email: "cy.secret@example.com", role: "responder" });
    const incident = await account.post("/v1/pulse/incidents", { title: "Down", message: "x", public: true });
    const at = `/v1/pulse/incidents/${incident.body["id"]}`;
    expect(incident.body["updates"]).toMatchObject([{ author: account.userId }]);
    const update = { status: "monitoring", message: "Better." };
    expect((await cy.post(`${at}/updates`, update)).body["updates"]).toMatchObject([
      {},
      { author: "cy.secret" },
    ]);
    expect((await cy.post(`${at}/acknowledge`)).body["acknowledged_by"]).toBe("cy.secret");
    await account.post("/v1/pulse/pages", { slug: "people-acme", title: "Acme" });
    for (const path of ["", "/feed.atom", "/calendar.ics", "/summary.json"])
      expect((await server.client(null).get(`/status/people-acme${path}`)).text).not.toContain("cy.secret");
  });
});

test("the use of the link of an active person is mailed to them", async () => {
  const other = await startTestServer({
    manualClock: true,
    args: [...ARGS, "--mail-from", "nf@ninefold.example"],
    environment: { NINEFOLD_SMTP_URL: mail.url },
  });
  try {
    const mails = () => mail.received.filter(({ to }) => to.includes("dan@example.com"));
    const link = async (count: number) => {
      await until(async () => {
        await other.clock.advance(0);
        return mails().length === count;
      }, "sent");
      return /https:\S+\/dashboard\/#\/invitation\/[\w-]{43}/.exec(mails().at(-1)?.raw ?? "")?.[0] ?? "";
    };
    const { person_id } = await invite(other.operator, { email: "dan@example.com", role: "admin" });
    await new PersonBrowser(other).accept(await link(1));
    await other.operator.post(`/v1/people/${person_id}/invitation`);
    await new PersonBrowser(other).accept(await link(2));
    await link(3);
    expect(mails()[2]?.raw).toContain("Your passkeys were replaced");
  } finally {
    await other.stop();
  }
});
