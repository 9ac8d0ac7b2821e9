import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  INVITATION_MS,
  INVITATIONS_PER_ADDRESS,
  INVITATIONS_PER_DAY,
} from "../../../src/areas/people/domain.ts";
import { STEP_UP_MS } from "../../../src/kernel/http/operation.ts";
import { DAY_MS } from "../../../src/kernel/time/units.ts";
import { expectError } from "../../support/errors.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";
import { newestOf } from "../audit/support.ts";
import { ARGS, invite, join, PersonBrowser, tokenOf } from "./support.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true, args: ARGS });
});
afterAll(() => server.stop());

describe("invitations", () => {
  test("a person accepts one with a passkey, and is who the audit log names", async () => {
    const account = await server.account();
    const invited = await invite(account, { email: "Ann@Example.com", name: "Ann", role: "editor" });
    expect(invited).toMatchObject({
      email: "Ann@Example.com",
      role: "editor",
      projects: "all",
      status: "invited",
    });
    const ann = await new PersonBrowser(server).accept(String(invited["invitation_url"]));
    const { session } = (await ann.get("/v1/session")).body as { session: Record<string, unknown> };
    expect(session).toMatchObject({
      user_id: account.userId,
      key_id: null,
      method: "invitation",
      person: {
        person_id: invited["person_id"],
        email: "Ann@Example.com",
        name: "Ann",
        role: "editor",
        projects: "all",
      },
      accounts: [],
    });
    expect((await ann.post("/v1/gate", { flag_key: "of-ann", enabled: true })).status).toBe(201);
    expect((await newestOf(account)).actor).toMatchObject({
      type: "person",
      person_id: invited["person_id"],
      email: "Ann@Example.com",
      name: "Ann",
      session_id: session["session_id"],
      key_id: null,
    });
    const found = await account.get(`/v1/audit?actor=${invited["person_id"]}`);
    expect((found.body["entries"] as unknown[]).length).toBeGreaterThan(0);
    expect((await account.get(`/v1/people/${invited["person_id"]}`)).body).toMatchObject({
      status: "active",
      login_methods: ["passkey"],
    });
  });

  test("401, the same for unknown, used, replaced and expired ones", async () => {
    const account = await server.account();
    const first = await invite(account, { role: "viewer" });
    const again = await account.post(`/v1/people/${first["person_id"]}/invitation`);
    const browser = new PersonBrowser(server);
    await browser.accept(String(again.body["invitation_url"]));
    const late = await invite(account, { role: "viewer" });
    const rejected = [first["invitation_url"], again.body["invitation_url"], "x", "A".repeat(43)].map(
      tokenOf,
    );
    await server.clock.advance(INVITATION_MS);
    const bodies: string[] = [];
    for (const token of [...rejected, tokenOf(late["invitation_url"])]) {
      const { status, body } = await new PersonBrowser(server).post("/v1/session/invitation", { token });
      expect(status).toBe(401);
      bodies.push(JSON.stringify({ ...body, request_id: "" }));
    }
    expect(new Set(bodies).size).toBe(1);
  });

  test("429 above the limits of an address and of an account", async () => {
    const account = await server.account();
    const person = await invite(account, { role: "viewer" });
    const again = () => account.post(`/v1/people/${person["person_id"]}/invitation`);
    for (let sent = 1; sent < INVITATIONS_PER_ADDRESS; sent += 1) expect((await again()).status).toBe(201);
    expectError(await again(), "rate_limit_exceeded");
    const other = await server.account();
    for (let sent = 0; sent < INVITATIONS_PER_DAY; sent += 1) await invite(other, { role: "viewer" });
    expectError(
      await other.post("/v1/people", { email: "more@example.com", role: "viewer" }),
      "rate_limit_exceeded",
    );
    await server.clock.advance(DAY_MS);
    await invite(other, { role: "viewer" });
  });
});

describe("passkeys", () => {
  test("log in, step up, and keep the session", async () => {
    const account = await server.account();
    const ann = await join(server, account, { role: "admin" });
    const before = ((await ann.get("/v1/session")).body["session"] as Record<string, unknown>)["session_id"];
    const create = () => ann.post("/v1/keys", { prefix: "sm", name: "k", scopes: ["meter:read"] });
    expect((await create()).body["created_by"]).toBe(ann.personId);
    await server.clock.advance(STEP_UP_MS);
    const refused = await create();
    expectError(refused, "login_required");
    expect(refused.body["methods"]).toEqual(["passkey"]);
    const stepped = await ann.logInByPasskey();
    expect(stepped.status).toBe(201);
    expect(stepped.body["session_id"]).toBe(before);
    expect((await create()).status).toBe(201);
  });

  test("the same Idempotency-Key works after the login", async () => {
    const account = await server.account();
    const ann = await join(server, account, { role: "admin" });
    await server.clock.advance(STEP_UP_MS);
    const create = () =>
      ann.post(
        "/v1/keys",
        { prefix: "sm", name: "k", scopes: ["meter:read"] },
        { headers: { "idempotency-key": "one" } },
      );
    expectError(await create(), "login_required");
    await ann.logInByPasskey();
    expect((await create()).status).toBe(201);
  });
});
