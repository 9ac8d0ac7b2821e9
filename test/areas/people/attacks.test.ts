import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { CHALLENGE_MS } from "../../../src/areas/people/domain.ts";
import { expectError } from "../../support/errors.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";
import { SoftwareAuthenticator } from "./authenticator.ts";
import { ARGS, invite, join, ORIGIN, PersonBrowser, tokenOf } from "./support.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true, args: ARGS });
});
afterAll(() => server.stop());

type Options = { readonly challenge: string };

async function loginOptions(browser: PersonBrowser): Promise<Options> {
  return (await browser.post("/v1/session/passkey/options")).body["options"] as Options;
}

/** The text of an error without what differs in every response. */
function textOf({ status, body }: { status: number; body: object }): string {
  return JSON.stringify([status, { ...body, request_id: "" }]);
}

describe("a login by passkey is rejected, always in the same way", () => {
  test("for another origin, host, type, purpose or signature, without verification, expired, replayed or unknown", async () => {
    const account = await server.account();
    const ann = await join(server, account, { role: "owner" });
    const eve = await join(server, account, { role: "viewer" });
    const errors = new Set<string>();
    const attempt = async (make: (options: Options) => object | Promise<object>) => {
      const browser = new PersonBrowser(server);
      const credential = await make(await loginOptions(browser));
      const answer = await browser.post("/v1/session/passkey", { credential });
      expect([answer.status, browser.cookie]).toEqual([401, ""]);
      errors.add(textOf(answer));
    };
    await attempt((options) => ann.authenticator.get(options, { origin: "https://evil.example" }));
    await attempt((options) => ann.authenticator.get(options, { rpId: "evil.example" }));
    await attempt((options) => ann.authenticator.get(options, { verified: false }));
    await attempt((options) => ann.authenticator.get(options, { type: "webauthn.create" }));
    await attempt((options) => ann.authenticator.get(options, { challenge: "A".repeat(43) }));
    await attempt((options) => new SoftwareAuthenticator(ORIGIN).get(options));
    // The id of another's passkey, with one's own signature.
    await attempt((options) => {
      const { id, rawId } = ann.authenticator.get(options);
      return { ...eve.authenticator.get(options), id, rawId };
    });
    // The challenge of a registration.
    await attempt(async () => {
      const { body } = await eve.post("/v1/people/me/passkeys/options");
      return ann.authenticator.get(body["options"] as Options);
    });
    await attempt(async (options) => {
      await server.clock.advance(CHALLENGE_MS + 1_000);
      return ann.authenticator.get(options);
    });
    const browser = new PersonBrowser(server);
    const credential = ann.authenticator.get(await loginOptions(browser));
    expect((await browser.post("/v1/session/passkey", { credential })).status).toBe(201);
    const replayed = await new PersonBrowser(server).post("/v1/session/passkey", { credential });
    expect(replayed.status).toBe(401);
    errors.add(textOf(replayed));
    expect(errors.size).toBe(1);
  });

  test("if the counter does not rise, which the log of the account has, up to 10 a minute", async () => {
    const account = await server.account();
    const ann = await join(server, account, { role: "owner" });
    expect((await ann.logInByPasskey({ counter: 5 })).status).toBe(201);
    for (const counter of [5, 4, 0]) expect((await ann.logInByPasskey({ counter })).status).toBe(401);
    await server.clock.advance(0);
    const { body } = await account.get("/v1/audit?action=session.refused");
    const refused = { target: { type: "person", id: ann.personId }, after: { method: "passkey" } };
    expect(body["entries"]).toMatchObject([refused, refused, refused]);
    expect((await ann.logInByPasskey({ counter: 6 })).status).toBe(201);
  });

  test("of a disabled or deleted person, whose sessions end", async () => {
    const account = await server.account();
    const ann = await join(server, account, { role: "editor" });
    const path = `/v1/people/${ann.personId}`;
    expect((await account.patch(path, { disabled: true })).status).toBe(200);
    expectError(await ann.get("/v1/gate"), "unauthorized");
    const again = new PersonBrowser(server);
    const credential = ann.authenticator.get(await loginOptions(again));
    expectError(await again.post("/v1/session/passkey", { credential }), "unauthorized");
    await account.patch(path, { disabled: false });
    expectError(await ann.get("/v1/gate"), "unauthorized");
    expect((await ann.logInByPasskey()).status).toBe(201);
    expect((await account.delete(path)).status).toBe(200);
    expectError(await ann.get("/v1/gate"), "unauthorized");
  });
});

describe("a registration is rejected with 400", () => {
  test("for another origin or host, without verification, and for the challenge of another person", async () => {
    const account = await server.account();
    const [ann, eve] = [
      await join(server, account, { role: "viewer" }),
      await join(server, account, { role: "viewer" }),
    ];
    const options = async (person: PersonBrowser) =>
      (await person.post("/v1/people/me/passkeys/options")).body["options"] as Options;
    const add = (credential: object) => ann.post("/v1/people/me/passkeys", { credential });
    const made = () => new SoftwareAuthenticator(ORIGIN);
    expectError(
      await add(made().create(await options(ann), { origin: "https://evil.example" })),
      "validation_error",
    );
    expectError(await add(made().create(await options(ann), { rpId: "evil.example" })), "validation_error");
    expectError(await add(made().create(await options(ann), { verified: false })), "validation_error");
    expectError(await add(made().create(await options(eve))), "validation_error");
    expectError(await add(made().create(await loginOptions(ann))), "validation_error");
    const second = made().create(await options(ann));
    expect((await add(second)).status).toBe(201);
    expectError(await add(second), "validation_error");
    expectError(await add(ann.authenticator.create(await options(ann))), "conflict");
  });
});

describe("nobody rises", () => {
  test("above their own role, and nobody touches somebody above them or their own role", async () => {
    const account = await server.account();
    const owner = await join(server, account, { role: "owner" });
    const admin = await join(server, account, { role: "admin" });
    const path = `/v1/people/${owner.personId}`;
    expectError(await admin.post("/v1/people", { email: "x@example.com", role: "owner" }), "forbidden");
    expectError(await admin.patch(path, { role: "viewer" }), "forbidden");
    expectError(await admin.patch(path, { disabled: true }), "forbidden");
    expectError(await admin.delete(path), "forbidden");
    expectError(await admin.delete(`${path}/sessions`), "forbidden");
    expectError(await admin.post(`${path}/invitation`), "forbidden");
    expectError(await admin.patch(`/v1/people/${admin.personId}`, { role: "owner" }), "forbidden");
    expectError(await admin.post("/v1/keys", { prefix: "sm", name: "k", scopes: ["*"] }), "forbidden");
    expectError(await admin.post("/v1/keys/rotate"), "forbidden");
    // Without e-mail, the link of an active person is for owners.
    const viewer = await join(server, account, { role: "viewer" });
    expectError(await admin.post(`/v1/people/${viewer.personId}/invitation`), "forbidden");
    const { body } = await owner.post(`/v1/people/${viewer.personId}/invitation`);
    const other = await new PersonBrowser(server).accept(String(body["invitation_url"]));
    expect((await other.get("/v1/gate")).status).toBe(200);
    expectError(await viewer.get("/v1/gate"), "unauthorized");
    expect((await viewer.logInByPasskey()).status).toBe(401);
  });

  test("a managed key with * cannot change people", async () => {
    const account = await server.account();
    const { body } = await account.post("/v1/keys", { prefix: "sm", name: "all", scopes: ["*"] });
    const managed = server.client(String(body["secret"]));
    expect((await managed.get("/v1/people")).status).toBe(200);
    expectError(await managed.post("/v1/people", { email: "x@example.com", role: "viewer" }), "forbidden");
    for (const scope of ["people:write", "people:*"]) {
      expectError(
        await account.post("/v1/keys", { prefix: "sm", name: "k", scopes: [scope] }),
        "validation_error",
      );
    }
  });

  test("the last active owner stays one, for everyone", async () => {
    const account = await server.account();
    const owner = await join(server, account, { role: "owner" });
    await invite(account, { role: "owner" });
    const path = `/v1/people/${owner.personId}`;
    for (const change of [{ role: "admin" }, { disabled: true }])
      expectError(await account.patch(path, change), "conflict");
    expectError(await account.delete(path), "conflict");
    await join(server, account, { role: "owner" });
    expect((await account.delete(path)).status).toBe(200);
  });
});

describe("a role in a project", () => {
  test("counts in that project only, and nothing of the account is visible", async () => {
    const account = await server.account();
    const shop = String((await account.post("/v1/projects", { name: "Shop" })).body["id"]);
    const other = String((await account.post("/v1/projects", { name: "Other" })).body["id"]);
    const ann = await join(server, account, { projects: [{ project_id: shop, role: "editor" }] });
    expectError(await ann.get("/v1/gate"), "forbidden");
    const projects = (await ann.get("/v1/projects")).body["projects"] as { id: string }[];
    expect(projects.map(({ id }) => id)).toEqual([shop]);
    ann.headers["x-ninefold-project"] = other;
    expectError(await ann.get("/v1/gate"), "not_found");
    ann.headers["x-ninefold-project"] = shop;
    expect((await ann.post("/v1/gate", { flag_key: "of-the-shop", enabled: true })).status).toBe(201);
    for (const path of ["/v1/people", "/v1/meter/balance", "/v1/keys"])
      expectError(await ann.get(path), "forbidden");
    expectError(await ann.post("/v1/projects", { name: "New" }), "forbidden");
    const stays = { projects: [{ project_id: other, role: "viewer" }] };
    expect((await account.patch(`/v1/people/${ann.personId}`, stays)).status).toBe(200);
    expectError(await ann.get("/v1/gate"), "not_found");
  });
});

test("an invitation that an admin created makes nobody an owner", async () => {
  const account = await server.account();
  const admin = await join(server, account, { role: "admin" });
  const { person_id, invitation_url } = await invite(admin, { role: "viewer" });
  const token = tokenOf(invitation_url);
  expect((await account.patch(`/v1/people/${person_id}`, { role: "admin" })).status).toBe(200);
  expect((await admin.post("/v1/session/invitation", { token })).status).toBe(200);
  const { body } = await account.patch(`/v1/people/${person_id}`, { role: "owner" });
  expect(body["invitation_expires_at"]).toBeNull();
  expectError(await admin.post("/v1/session/invitation", { token }), "unauthorized");
  expectError(await admin.post(`/v1/people/${person_id}/invitation`), "forbidden");
  const renewed = await account.post(`/v1/people/${person_id}/invitation`);
  expect((await new PersonBrowser(server).accept(String(renewed.body["invitation_url"]))).cookie).not.toBe(
    "",
  );
});

test("an open stream ends when its person is disabled, and goes on after a step-up", async () => {
  const account = await server.account();
  const ann = await join(server, account, { role: "editor" });
  const open = async () => {
    const headers = { ...ann.headers, cookie: ann.cookie, accept: "text/event-stream" };
    const response = await fetch(`${server.url}/v1/changes`, { headers });
    expect(response.status).toBe(200);
    const reader = response.body?.getReader();
    let isOver = false;
    const drained = (async () => {
      while ((await reader?.read())?.done === false);
      isOver = true;
    })();
    return { drained, isOver: () => isOver };
  };
  const stream = await open();
  expect((await ann.logInByPasskey()).status).toBe(201);
  await server.clock.advance(30_000);
  expect(stream.isOver()).toBe(false);
  await account.patch(`/v1/people/${ann.personId}`, { disabled: true });
  await server.clock.advance(30_000);
  await stream.drained;
});

test("a login makes a new session and ends the previous one of the browser", async () => {
  const account = await server.account();
  const ann = await join(server, account, { role: "viewer" });
  const bob = await join(server, account, { role: "viewer" });
  const before = ann.cookie;
  const { body } = await ann.post("/v1/session/passkey/options");
  const credential = bob.authenticator.get(body["options"] as Options);
  expect((await ann.post("/v1/session/passkey", { credential })).status).toBe(201);
  expect(ann.cookie).not.toBe(before);
  ann.cookie = before;
  expectError(await ann.get("/v1/gate"), "unauthorized");
});
