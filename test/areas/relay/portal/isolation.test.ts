import { beforeAll, describe, expect, test } from "bun:test";
import { LINKS_PER_OWNER_MAX } from "../../../../src/areas/relay/portal/links.ts";
import {
  PORTAL_CHARGED_PER_MINUTE,
  PORTAL_REQUESTS_PER_MINUTE,
} from "../../../../src/kernel/http/access/guard.ts";
import type { DeclaredRoute } from "../../../../src/kernel/http/api.ts";
import type { Client } from "../../../support/client.ts";
import { expectError } from "../../../support/errors.ts";
import { bodyOf, pathOf } from "../../../support/matrix.ts";
import {
  customerOf,
  makeOwned,
  OWNER,
  type Owned,
  portalToken,
  startRecovery,
} from "../../../support/portal.ts";
import { loggedIn } from "../../session/support.ts";
import { relayStage } from "../support.ts";

const stage = relayStage();
let routes: readonly DeclaredRoute[];
beforeAll(async () => {
  routes = stage.server.server.app.http.routes;
});

const PATH = "/v1/relay/portal";
const DAY_MS = 86_400_000;

const ofPortal = (): DeclaredRoute[] => {
  const found = routes.filter(({ operation }) => operation.byPortal);
  expect(found.length).toBe(17);
  return found;
};

function send(client: Client, route: DeclaredRoute, owned: Owned & { readonly resend_id?: string }) {
  return client.send(route.method, pathOf(route, { resend_id: "rsn_none", ...owned }), bodyOf(route));
}

/** A recovery that the account started. */
async function startedBy(account: Client, endpointId: string): Promise<string> {
  const started = await account.post(`/v1/relay/endpoints/${endpointId}/recover`, { since: 0 });
  return String(started.body["resend_id"]);
}

/** A key of a new project of the account. */
async function keyOfProject(account: Client, scopes: readonly string[] = ["*"]): Promise<[Client, string]> {
  const project = await account.post("/v1/projects", { name: "Shop" });
  const id = String(project.body["id"]);
  const { body } = await account.post(`/v1/projects/${id}/keys`, { prefix: "sm", name: "k", scopes });
  return [stage.server.client(String(body["secret"])), id];
}

/** A managed key of the account. */
async function managedKey(terms: object = {}): Promise<{ client: Client; id: string }> {
  const given = { prefix: "sm", name: "portal key", scopes: ["relay:*"], ...terms };
  const { body, text } = await stage.account.post("/v1/keys", given);
  if (body["secret"] === undefined) throw new Error(text);
  return { client: stage.server.client(String(body["secret"])), id: String(body["key_id"]) };
}

/** Expects that every route of the portal rejects a link. */
async function expectRejected(link: Client, code: string, status: number): Promise<void> {
  const owned = await makeOwned(stage.server, await stage.server.account(), stage.sink.url("/x"));
  for (const route of ofPortal()) {
    const answer = await send(link, route, owned);
    expect([route.operation.name, answer.status, answer.body["code"]]).toEqual([
      route.operation.name,
      status,
      code,
    ]);
  }
}

describe("endpoints and deliveries of", () => {
  /** Everything that the account sees of a customer. */
  async function seen(account: Client, owned: Owned & { readonly resend_id: string }): Promise<string> {
    const { text } = await account.get(`/v1/relay/endpoints/${owned.endpoint_id}`);
    const { body } = await account.get(`/v1/relay/resends/${owned.resend_id}`);
    expect(body["status"]).toBe("running");
    return text + (await account.get(`/v1/relay/${owned.relay_id}`)).text;
  }

  async function expectApart(account: Client, stranger: Client): Promise<void> {
    const url = stage.sink.url("/acme");
    const owned = {
      ...(await makeOwned(stage.server, account, url)),
      ...(await startRecovery(stage.server, account, url)),
    };
    const before = await seen(account, owned);
    for (const route of ofPortal()) {
      const answer = await send(stranger, route, owned);
      expect(answer.text, route.operation.name).not.toContain(owned.endpoint_id);
      if (route.path.includes(":")) expectError(answer, "not_found");
      else expect(answer.status, route.operation.name).toBeLessThan(300);
    }
    const filtered = await stranger.get(`${PATH}/deliveries?endpoint_id=${owned.endpoint_id}`);
    expect(filtered.body).toEqual({ deliveries: [] });
    expect(await seen(account, owned)).toBe(before);
  }

  test("a customer are not visible to another one", async () => {
    await expectApart(stage.account, await customerOf(stage.server, stage.account, { owner_id: "globex" }));
  });

  test("a customer are not visible to one whose owner_id begins with the same text, or differs in case", async () => {
    for (const owner_id of ["acme2", "acm", "ACME"])
      await expectApart(stage.account, await customerOf(stage.server, stage.account, { owner_id }));
  });

  test("a customer are not visible to the same owner_id in another project of the account", async () => {
    const [key] = await keyOfProject(stage.account);
    await expectApart(stage.account, await customerOf(stage.server, key));
    await expectApart(key, await customerOf(stage.server, stage.account));
  });

  test("a customer are not visible to the same owner_id in another account", async () => {
    await expectApart(stage.account, await customerOf(stage.server, await stage.server.account()));
  });

  test("the account itself are not visible to a customer", async () => {
    const { body } = await stage.account.post("/v1/relay/endpoints", { url: stage.sink.url("/own") });
    const sent = await stage.account.post("/v1/relay/messages", { event_type: "a", payload: {} });
    const [delivery] = sent.body["deliveries"] as [{ relay_id: string }];
    const owned = {
      endpoint_id: String(body["endpoint_id"]),
      relay_id: delivery.relay_id,
      resend_id: await startedBy(stage.account, String(body["endpoint_id"])),
    };
    const customer = await customerOf(stage.server, stage.account);
    for (const route of ofPortal().filter(({ path }) => path.includes(":")))
      expectError(await send(customer, route, owned), "not_found");
  });
});

test("a recovery that the account started for a customer's endpoint is not the customer's", async () => {
  const owned = await makeOwned(stage.server, stage.account, stage.sink.url("/acme"));
  const resend_id = await startedBy(stage.account, owned.endpoint_id);
  expect(resend_id).toStartWith("rsn_");
  const customer = await customerOf(stage.server, stage.account);
  expectError(await customer.get(`${PATH}/resends/${resend_id}`), "not_found");
  expectError(await customer.delete(`${PATH}/resends/${resend_id}`), "not_found");
});

describe("the token of a link", () => {
  test("opens no route of the account", async () => {
    const token = await portalToken(stage.account);
    const others = routes.filter(
      ({ operation }) => !operation.byPortal && operation.access !== "public" && !operation.forProxies,
    );
    expect(others.length).toBeGreaterThan(150);
    for (const route of others) {
      const path = route.path.replace(/:[A-Za-z_]+/g, "none");
      expectError(await stage.server.client(token).send(route.method, path), "unauthorized");
      const headers = { "x-api-key": token, "x-ninefold-key": token };
      expectError(
        await stage.server.client(null).send(route.method, path, undefined, { headers }),
        "unauthorized",
      );
    }
  });

  test("is not accepted as a session, in the query, or in another header", async () => {
    const token = await portalToken(stage.account);
    const nobody = stage.server.client(null);
    const own = { "x-ninefold-session": "1" };
    expectError(await nobody.post("/v1/session", { key: token }, { headers: own }), "unauthorized");
    expectError(await nobody.post("/v1/session", { link: token }, { headers: own }), "unauthorized");
    expectError(await nobody.get(`${PATH}?token=${token}`), "unauthorized");
    for (const name of ["cookie", "x-api-key", "x-ninefold-key"])
      expectError(await nobody.get(PATH, { headers: { [name]: token } }), "unauthorized");
  });

  test("cannot be replaced by a key or a session", async () => {
    await expectRejected(stage.account, "unauthorized", 401);
    await expectRejected(stage.server.operator, "unauthorized", 401);
    await expectRejected(await loggedIn(stage.server, stage.account.key), "unauthorized", 401);
  });

  test("is rejected in every other spelling", async () => {
    const token = await portalToken(stage.account);
    const flipped = `${token.slice(0, -1)}${token.endsWith("0") ? "1" : "0"}`;
    for (const other of [
      "",
      flipped,
      token.toUpperCase(),
      ` ${token}x`,
      `${token} `.repeat(2),
      "portal_",
      `portal_${"a".repeat(43)}_00000000`,
      "x".repeat(10_000),
      "' OR 1=1 --",
    ]) {
      const headers = { authorization: `Bearer ${other}` };
      expectError(await stage.server.client(null).get(PATH, { headers }), "unauthorized");
    }
  });

  test("is stored as a hash only", async () => {
    const token = await portalToken(stage.account);
    const rows = stage.server.server.kernel.db.all<Record<string, unknown>>(
      "SELECT * FROM relay_portal_links",
    )();
    expect(rows.length).toBeGreaterThan(0);
    for (const row of rows)
      for (const value of Object.values(row)) expect(String(value)).not.toContain(token.slice(7, 50));
  });
});

describe("a link is rejected", () => {
  test("when it has expired, and its row is purged", async () => {
    const link = await customerOf(stage.server, stage.account, { expires_in: "1h" });
    await stage.server.clock.advance(3_600_000 - 1);
    expect((await link.get(PATH)).status).toBe(200);
    await stage.server.clock.advance(1);
    await expectRejected(link, "unauthorized", 401);
    await stage.server.clock.advance(8 * DAY_MS);
    const { db } = stage.server.server.kernel;
    expect(db.number("SELECT count(*) AS n FROM relay_portal_links")()).toBe(0);
  });

  test("when the customer's links are revoked, others are not", async () => {
    const link = await customerOf(stage.server, stage.account);
    const globex = await customerOf(stage.server, stage.account, { owner_id: "globex" });
    const [key] = await keyOfProject(stage.account);
    const elsewhere = await customerOf(stage.server, key);
    await stage.account.post(`${PATH}/revoke`, { owner_id: OWNER });
    await expectRejected(link, "unauthorized", 401);
    expect((await globex.get(PATH)).status).toBe(200);
    expect((await elsewhere.get(PATH)).status).toBe(200);
  });

  test("when the customer has got too many newer ones", async () => {
    const { client } = await managedKey();
    const first = await customerOf(stage.server, client);
    const second = await customerOf(stage.server, client);
    for (let count = 2; count < LINKS_PER_OWNER_MAX; count += 1) {
      if (count % 50 === 0) await stage.server.clock.advance(60_000);
      await portalToken(client);
    }
    expect((await first.get(PATH)).status).toBe(200);
    await portalToken(client);
    expectError(await first.get(PATH), "unauthorized");
    expect((await second.get(PATH)).status).toBe(200);
  });

  test("when its key is revoked, disabled, rotated out, or without the scope", async () => {
    const revoked = await managedKey();
    const disabled = await managedKey();
    const rotated = await managedKey();
    const narrowed = await managedKey();
    const links = await Promise.all(
      [revoked, disabled, rotated, narrowed].map(({ client }) => customerOf(stage.server, client)),
    );
    const [ofRevoked, ofDisabled, ofRotated, ofNarrowed] = links as [Client, Client, Client, Client];
    await stage.account.delete(`/v1/keys/${revoked.id}`);
    await stage.account.patch(`/v1/keys/${disabled.id}`, { enabled: false });
    await stage.account.post(`/v1/keys/${rotated.id}/rotate`, { grace_hours: 1 });
    await stage.account.patch(`/v1/keys/${narrowed.id}`, { scopes: ["relay:read"] });
    await expectRejected(ofRevoked, "unauthorized", 401);
    await expectRejected(ofDisabled, "unauthorized", 401);
    expect((await ofRotated.get(PATH)).status).toBe(200);
    expect((await ofNarrowed.get(`${PATH}/endpoints`)).status).toBe(200);
    const rejected = await ofNarrowed.post(`${PATH}/endpoints`, { url: "https://example.com/" });
    expectError(rejected, "forbidden");
    expect(rejected.text).not.toMatch(/scope|key|account/i);
    await stage.server.clock.advance(3_600_000);
    await expectRejected(ofRotated, "unauthorized", 401);
  });

  test("when the account's platform key is replaced and its grace period is over", async () => {
    const link = await customerOf(stage.server, stage.account, { expires_in: "7d" });
    const { body } = await stage.account.post("/v1/keys/rotate");
    expect((await link.get(PATH)).status).toBe(200);
    await stage.server.clock.advance(Date.parse(String(body["expires_at"])) - stage.server.clock.now());
    await expectRejected(link, "unauthorized", 401);
  });

  test("while the account is suspended", async () => {
    const link = await customerOf(stage.server, stage.account);
    const path = `/v1/admin/accounts/${stage.account.userId}`;
    await stage.server.operator.patch(path, { suspended: true });
    await expectRejected(link, "forbidden", 403);
    expect((await link.get(PATH)).text).not.toMatch(/scope|key|account/i);
    await stage.server.operator.patch(path, { suspended: false });
    expect((await link.get(PATH)).status).toBe(200);
  });

  test("when its project is deleted, and its row is removed", async () => {
    const [key, project] = await keyOfProject(stage.account);
    const link = await customerOf(stage.server, key);
    expect((await link.get(PATH)).status).toBe(200);
    expect((await stage.account.delete(`/v1/projects/${project}`)).status).toBeLessThan(300);
    await expectRejected(link, "unauthorized", 401);
    await stage.server.clock.advance(60_000);
    const { db } = stage.server.server.kernel;
    const left = db.number<[string]>("SELECT count(*) AS n FROM relay_portal_links WHERE project_id = ?");
    expect(left(project)).toBe(0);
  });

  test("in the unit of work that follows its revocation", async () => {
    const link = await customerOf(stage.server, stage.account);
    // Both are in one batch: the gates pass the second request before the first is carried out.
    const [revoked, added] = await Promise.all([
      stage.account.post(`${PATH}/revoke`, { owner_id: OWNER }),
      link.post(`${PATH}/endpoints`, { url: "https://example.com/late" }),
    ]);
    expect(revoked.body).toEqual({ revoked: 1 });
    const { body } = await stage.account.get(`/v1/relay/endpoints?owner_id=${OWNER}`);
    expect((body["endpoints"] as unknown[]).length).toBe(added.status === 201 ? 1 : 0);
    expectError(await link.get(PATH), "unauthorized");
  });
});

test("a link needs a key with both scopes, which the error names", async () => {
  for (const scopes of [["relay:read", "relay:write"], ["relay:*"], ["*"]]) {
    const { client } = await managedKey({ scopes });
    const link = await customerOf(stage.server, client);
    const created = await link.post(`${PATH}/endpoints`, { url: "https://example.com/" });
    expect([scopes, created.status, (await link.get(`${PATH}/endpoints`)).status]).toEqual([
      scopes,
      201,
      200,
    ]);
  }
  const { client } = await managedKey({ scopes: ["relay:write"] });
  const { balance } = (await stage.account.get("/v1/me")).body;
  const rejected = await client.post(PATH, { owner_id: OWNER });
  expectError(rejected, "forbidden");
  expect(rejected.text).toContain("relay:read and relay:write");
  expect((await stage.account.get("/v1/me")).body["balance"]).toBe(balance);
});

test("a link works from any address, though its key does not", async () => {
  const { client, id } = await managedKey();
  const customer = await customerOf(stage.server, client);
  await stage.account.patch(`/v1/keys/${id}`, { allowed_ips: ["203.0.113.1"] });
  expectError(await client.get("/v1/relay/endpoints"), "forbidden");
  expect((await customer.get(PATH)).status).toBe(200);
});

test("a link, its customer's endpoints and a revocation survive a restart", async () => {
  const kept = await portalToken(stage.account);
  const revoked = await portalToken(stage.account, { owner_id: "globex" });
  await stage.server.client(kept).post(`${PATH}/endpoints`, { url: stage.sink.url("/acme") });
  await stage.account.post(`${PATH}/revoke`, { owner_id: "globex" });
  await stage.restart();
  routes = stage.server.server.app.http.routes;
  const { body } = await stage.server.client(kept).get(`${PATH}/endpoints`);
  expect((body["endpoints"] as unknown[]).length).toBe(1);
  expectError(await stage.server.client(revoked).get(PATH), "unauthorized");
});

describe("requests of a customer", () => {
  test("are audited with the portal, the customer and the key that created the link as the actor", async () => {
    const { client, id } = await managedKey();
    const customer = await customerOf(stage.server, client);
    const added = await customer.post(`${PATH}/endpoints`, { url: stage.sink.url("/acme") });
    const path = `${PATH}/endpoints/${added.body["endpoint_id"]}`;
    await customer.patch(path, { description: "x" });
    await customer.post(`${path}/secret`);
    await customer.post(`${path}/secret/rotate`, {});
    await customer.post(`${path}/test`, {});
    await customer.delete(path);
    const { body } = await stage.account.get("/v1/audit?actor=portal");
    const entries = body["entries"] as {
      action: string;
      actor: object;
      target: object;
      after: object | null;
    }[];
    expect(entries.map(({ action }) => action)).toEqual(
      ["delete", "test", "secret.rotate", "secret.reveal", "change", "create"].map(
        (name) => `relay.portal.endpoints.${name}`,
      ),
    );
    for (const { actor, target, after } of entries) {
      expect(actor).toEqual({
        type: "portal",
        key_id: id,
        key_name: "portal key",
        user_id: stage.account.userId,
        owner_id: OWNER,
      });
      expect(target).toEqual({ type: "endpoint", id: added.body["endpoint_id"] });
      expect(JSON.stringify(after)).not.toContain("whsec_");
    }
    const [created] = (await stage.account.get("/v1/audit?action=relay.portal.create")).body["entries"] as [
      { actor: object; target: object },
    ];
    expect(created).toMatchObject({
      actor: { type: "key", key_id: id, owner_id: null },
      target: { type: "portal", id: OWNER },
    });
  });

  test("are limited for each customer, and do not use up the limits of the account", async () => {
    const customer = await customerOf(stage.server, stage.account);
    const again = await customerOf(stage.server, stage.account);
    const globex = await customerOf(stage.server, stage.account, { owner_id: "globex" });
    for (let sent = 0; sent < PORTAL_REQUESTS_PER_MINUTE; sent += 1)
      expect((await (sent % 2 === 0 ? customer : again).get(PATH)).status).toBe(200);
    expectError(await customer.get(PATH), "rate_limit_exceeded");
    const rejected = await again.get(PATH);
    expectError(rejected, "rate_limit_exceeded");
    expect(Number(rejected.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await globex.get(PATH)).status).toBe(200);
    expect((await stage.account.get("/v1/relay/endpoints")).status).toBe(200);
    await stage.server.clock.advance(60_000);
    expect((await customer.get(PATH)).status).toBe(200);
  });

  test("that cost credits are limited more narrowly, in every tier", async () => {
    for (const tier of ["scale", "unlimited"]) {
      const account = await stage.server.account({ tier });
      const { endpoint_id } = await makeOwned(stage.server, account, stage.sink.url("/acme"));
      const customer = await customerOf(stage.server, account);
      const sendTest = () => customer.post(`${PATH}/endpoints/${endpoint_id}/test`, {});
      for (let sent = 0; sent < PORTAL_CHARGED_PER_MINUTE; sent += 1)
        expect((await sendTest()).status).toBe(201);
      expectError(await sendTest(), "rate_limit_exceeded");
      expect((await customer.get(PATH)).status).toBe(200);
    }
  });

  test("for a recovery count as those that cost credits", async () => {
    const { endpoint_id } = await makeOwned(stage.server, stage.account, stage.sink.url("/acme"));
    const customer = await customerOf(stage.server, stage.account);
    const counted = () =>
      customer.post(`${PATH}/endpoints/${endpoint_id}/recover`, { since: 0, dry_run: true });
    for (let sent = 0; sent < PORTAL_CHARGED_PER_MINUTE; sent += 1)
      expect((await counted()).status).toBe(200);
    expectError(await counted(), "rate_limit_exceeded");
    expect((await customer.get(PATH)).status).toBe(200);
  });

  test("ignore an Idempotency-Key: those of the project stay hidden", async () => {
    const headers = { "idempotency-key": "of the account" };
    await stage.account.post("/v1/relay/endpoints", { url: "https://example.com/" }, { headers });
    const customer = await customerOf(stage.server, stage.account);
    const add = () => customer.post(`${PATH}/endpoints`, { url: "https://example.com/" }, { headers });
    const [first, second] = [await add(), await add()];
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(first.body["endpoint_id"]).not.toBe(second.body["endpoint_id"]);
  });

  test("show nothing of what only the account sets", async () => {
    await stage.account.post("/v1/relay/endpoints", {
      url: stage.sink.url("/acme"),
      owner_id: OWNER,
      name: "hidden-name",
      metadata: { hidden: "hidden-metadata" },
      headers: { "X-Hidden": "hidden-header" },
      channels: ["hidden-channel"],
      filter: { hidden: { $exists: false } },
    });
    const customer = await customerOf(stage.server, stage.account);
    const { body } = await customer.get(`${PATH}/endpoints`);
    const [{ endpoint_id }] = body["endpoints"] as [{ endpoint_id: string }];
    const texts = [
      await customer.get(`${PATH}/endpoints`),
      await customer.get(`${PATH}/endpoints/${endpoint_id}`),
      await customer.patch(`${PATH}/endpoints/${endpoint_id}`, { description: "d" }),
    ].map(({ text }) => text);
    for (const text of texts) expect(text.toLowerCase()).not.toContain("hidden");
  });
});
