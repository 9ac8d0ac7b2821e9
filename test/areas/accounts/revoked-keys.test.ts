import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { isBearerKey } from "../../../src/kernel/secrets/key-format.ts";
import type { Client } from "../../support/client.ts";
import { expectError } from "../../support/errors.ts";
import { endpoint, USER_ID } from "../../support/scenario.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import { makeBearer, termsOf } from "../keys/support.ts";

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;
const RESET = `/v1/admin/accounts/${USER_ID}/reset-key`;

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

/** Rotates, and returns a client with the new key. */
async function rotated(client: Client, body: object = {}): Promise<Client> {
  const answer = await client.post("/v1/keys/rotate", body);
  expect(answer.status, answer.text).toBe(200);
  return server.client(String(answer.body.key));
}

/** Every request that creates, changes or revokes a key. */
function changesOfKeys(keyId: string, project: string): [string, string, object?][] {
  return [
    ["POST", "/v1/keys/rotate"],
    ["POST", "/v1/keys/rotate", { grace_hours: 0 }],
    ["POST", "/v1/keys", termsOf({ prefix: "sm", scopes: ["*"] })],
    ["POST", "/v1/keys", termsOf()],
    ["POST", `/v1/projects/${project}/keys`, termsOf({ prefix: "sm", scopes: ["*"] })],
    ["POST", `/v1/keys/${keyId}/rotate`, {}],
    ["DELETE", `/v1/keys/${keyId}`],
  ];
}

async function status(client: Client): Promise<number> {
  return (await client.get("/v1/meter/balance")).status;
}

describe("a platform key in its grace period", () => {
  test("serves requests but cannot change keys, also after a restart, until it expires", async () => {
    const thief = await server.account();
    const { id, secret } = await makeBearer(thief, ["meter:read"]);
    const project = String((await thief.post("/v1/projects", { name: "Shop" })).body.id);
    const owner = await rotated(thief, { grace_hours: 2 });
    const tried = async () => {
      for (const [method, path, body] of changesOfKeys(id, project)) {
        const { error } = expectError(await thief.send(method, path, body), "forbidden");
        expect(error.message).toContain("Use the newest platform key.");
      }
    };
    await tried();
    expect((await thief.post("/v1/meter/m/refill", { amount: 1 })).status).toBe(200);
    expect((await thief.get(`/v1/keys/${id}`)).status).toBe(200);
    await server.restart();
    const again = server.client(thief.key);
    expect((await again.post("/v1/keys", termsOf())).status).toBe(403);
    await server.clock.advance(HOUR_MS);
    // Its attempts do not affect the owner, who rotates and changes keys as usual.
    const newest = await rotated(server.client(owner.key));
    expect((await newest.delete(`/v1/keys/${id}`)).status).toBe(200);
    expect(await status(server.client(secret))).toBe(401);
    await server.clock.advance(HOUR_MS);
    expect([await status(again), await status(newest)]).toEqual([401, 200]);
  });

  test("cannot create a key by a request whose body arrives after the key was replaced", async () => {
    const account = await server.account();
    const text = JSON.stringify(termsOf({ prefix: "sm", scopes: ["*"] }));
    const bytes = new TextEncoder().encode(text);
    let newest = account as Client;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(bytes.subarray(0, 1)),
      pull: async (controller) => {
        newest = await rotated(account);
        controller.enqueue(bytes.subarray(1));
        controller.close();
      },
    });
    const headers = { authorization: `Bearer ${account.key}` };
    const answer = await fetch(`${server.url}/v1/keys`, { method: "POST", headers, body });
    expect(answer.status).toBe(403);
    expect((await newest.get("/v1/keys")).body.keys).toEqual([]);
  });

  test("of the operator cannot create accounts, reset keys or grant the tier unlimited", async () => {
    const separateServer = await startTestServer({ manualClock: true });
    try {
      const account = await separateServer.account();
      const old = separateServer.operator;
      const { body } = await old.post("/v1/keys/rotate");
      const itself = `/v1/admin/accounts/${account.userId}`;
      const terms = { email: "thief@example.com", tier: "unlimited" };
      for (const [method, path, sent] of [
        ["POST", "/v1/admin/accounts", terms],
        ["POST", `${itself}/reset-key`],
        ["PATCH", itself, { tier: "unlimited" }],
      ] as const) {
        expectError(await old.send(method, path, sent), "forbidden");
        const newest = separateServer.client(String(body.key));
        expect((await newest.send(method, path, sent)).status).toBeLessThan(300);
      }
      expect((await old.get("/v1/admin/accounts")).status).toBe(200);
    } finally {
      await separateServer.stop();
    }
  });
});

test("a revoked key stays revoked when the wall clock is set back", async () => {
  const separateServer = await startTestServer({ manualClock: true });
  try {
    const [account, other] = [await separateServer.account(), await separateServer.account()];
    await separateServer.operator.post(RESET.replace(USER_ID, account.userId));
    expect((await other.post("/v1/keys/rotate", { grace_hours: 0 })).status).toBe(200);
    separateServer.clock.setWall(-HOUR_MS);
    expect(await Promise.all([account, other].map(status))).toEqual([401, 401]);
  } finally {
    await separateServer.stop();
  }
});

describe("a managed key that expires", () => {
  test("cannot rotate the platform key and, as the operator's, cannot create accounts, reset keys or grant the tier unlimited", async () => {
    const separateServer = await startTestServer({ manualClock: true });
    try {
      const victim = await separateServer.account();
      const expires_at = new Date(separateServer.clock.now() + DAY_MS).toISOString();
      const terms = termsOf({ prefix: "sm", scopes: ["*"] });
      const ending = separateServer.client(
        String((await separateServer.operator.post("/v1/keys", { ...terms, expires_at })).body.secret),
      );
      const endless = separateServer.client(
        String((await separateServer.operator.post("/v1/keys", terms)).body.secret),
      );
      const itself = `/v1/admin/accounts/${victim.userId}`;
      for (const [method, path, sent] of [
        ["POST", "/v1/admin/accounts", { email: "a@example.com", tier: "free" }],
        ["POST", `${itself}/reset-key`],
        ["PATCH", itself, { tier: "unlimited" }],
        ["POST", "/v1/keys/rotate"],
      ] as const) {
        const { error } = expectError(await ending.send(method, path, sent), "forbidden");
        expect(error.message).toMatch(/key (expires|ends)/);
        expect((await endless.send(method, path, sent)).status, path).toBeLessThan(300);
      }
      // Requests that create no key still work.
      expect((await ending.patch(itself, { tier: "pro", balance: 5 })).body).toMatchObject({ tier: "pro" });
    } finally {
      await separateServer.stop();
    }
  });
});

describe("POST /v1/admin/accounts/{user_id}/reset-key", () => {
  endpoint(() => server, "POST /v1/admin/accounts/{user_id}/reset-key", [
    {
      name: "all platform keys are revoked, and the new one works; managed keys are not affected",
      as: "operator",
      before: ({ account }) => remember(account),
      request: ["POST", RESET],
      status: 200,
      after: async ({ account }, { body }) => {
        expect(Object.keys(body).sort()).toEqual(["api_key", "reset_at", "user_id"]);
        expect(body.user_id).toBe(account.userId);
        expect(body.reset_at).toBe(new Date(server.clock.now()).toISOString());
        expect(isBearerKey(String(body.api_key))).toBe(true);
        const fresh = server.client(String(body.api_key));
        expect(await Promise.all([account, second, managed, fresh].map(status))).toEqual([
          401, 401, 200, 200,
        ]);
        await server.restart();
        const keys = [account, second, managed, fresh].map(({ key }) => server.client(key));
        expect(await Promise.all(keys.map(status))).toEqual([401, 401, 200, 200]);
        // The key was rotated within the last hour: the reset works nevertheless.
        expect((await server.client(fresh.key).post("/v1/keys/rotate")).status).toBe(200);
      },
      spent: 1,
    },
    {
      name: "the key of a suspended account",
      as: "operator",
      before: ({ account }) =>
        server.operator.patch(`/v1/admin/accounts/${account.userId}`, { suspended: true }),
      request: ["POST", RESET],
      status: 200,
      after: async ({ account }, { body }) => {
        expect(await status(account)).toBe(401);
        expect(await status(server.client(String(body.api_key)))).toBe(403);
      },
    },
    {
      name: "a user id that is too long",
      as: "operator",
      request: ["POST", `/v1/admin/accounts/${"x".repeat(65)}/reset-key`],
      status: 400,
      code: "validation_error",
    },
    { name: "without a key", as: "nobody", request: ["POST", RESET], status: 401, code: "unauthorized" },
    {
      name: "with the key of another account",
      request: ["POST", RESET],
      status: 403,
      code: "forbidden",
      lacks: ["api_key", "sm_"],
    },
    {
      name: "an account that does not exist",
      as: "operator",
      request: ["POST", "/v1/admin/accounts/usr_00000000000000000000/reset-key"],
      status: 404,
      code: "not_found",
    },
    {
      name: "an Idempotency-Key used for another request",
      as: "operator",
      headers: { "idempotency-key": "reset" },
      before: () =>
        server.operator.post("/v1/meter/refill", { amount: 1 }, { headers: { "idempotency-key": "reset" } }),
      request: ["POST", RESET],
      status: 409,
      code: "conflict",
    },
  ]);

  let second: Client;
  let managed: Client;
  async function remember(account: AccountClient): Promise<void> {
    managed = server.client((await makeBearer(account, ["meter:read"])).secret);
    second = await rotated(account);
    expect(await Promise.all([account, second, managed].map(status))).toEqual([200, 200, 200]);
    await server.operator.patch(`/v1/admin/accounts/${account.userId}`, { balance: 100 });
  }

  test("an Idempotency-Key returns the same key again", async () => {
    const account = await server.account();
    const path = RESET.replace(USER_ID, account.userId);
    const options = { headers: { "idempotency-key": "same" } };
    const first = await server.operator.post(path, undefined, options);
    const again = await server.operator.post(path, undefined, options);
    expect(again.body).toEqual(first.body);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(await status(server.client(String(first.body.api_key)))).toBe(200);
  });

  test("of concurrent resets the last key works, and deliveries are signed with it", async () => {
    const account = await server.account();
    const path = RESET.replace(USER_ID, account.userId);
    const answers = await Promise.all(Array.from({ length: 5 }, () => server.operator.post(path)));
    const clients = answers.map(({ body }) => server.client(String(body.api_key)));
    const found = await Promise.all(clients.map(status));
    expect(found.filter((item) => item === 200)).toHaveLength(1);
    expect(found.filter((item) => item === 401)).toHaveLength(4);
  });

  test("of the operator: the older keys are revoked, the new one works", async () => {
    const separateServer = await startTestServer({ manualClock: true });
    try {
      const { body } = await separateServer.operator.get("/v1/admin/accounts");
      const [{ user_id: itself } = { user_id: "" }] = body.accounts as { user_id: string }[];
      const reset = await separateServer.operator.post(`/v1/admin/accounts/${itself}/reset-key`);
      expect(reset.status).toBe(200);
      expectError(await separateServer.operator.get("/v1/admin/accounts"), "unauthorized");
      expect((await separateServer.client(String(reset.body.api_key)).get("/v1/admin/accounts")).status).toBe(
        200,
      );
    } finally {
      await separateServer.stop();
    }
  });
});
