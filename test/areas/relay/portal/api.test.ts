import { describe, expect, test } from "bun:test";
import { PORTAL_MS_MAX, PORTAL_MS_MIN } from "../../../../src/areas/relay/portal/links.ts";
import { PORTAL_ENDPOINTS_MAX } from "../../../../src/areas/relay/portal/schema.ts";
import type { Client } from "../../../support/client.ts";
import { expectError } from "../../../support/errors.ts";
import { customerOf, makeOwned, OWNER, type Owned, portalToken } from "../../../support/portal.ts";
import { endpoint, type Scenario, type World } from "../../../support/scenario.ts";
import { relayStage } from "../support.ts";

const stage = relayStage();

const PATH = "/v1/relay/portal";
const HOOKS = "https://example.com/hooks";
const NOBODYS: Owned = {
  endpoint_id: "ep_01a1fc2c30c071d9bf080e3cb4a7b202",
  relay_id: "01a1fc2c-30c0-71d9-bf08-0e3cb4a7b202",
};
const TOO_LONG = "x".repeat(65);

type Request = (owned: Owned) => Scenario["request"];

/** A scenario of a customer with an endpoint and a delivery; `before` runs after these are made. */
function byCustomer(
  request: Request,
  { before, ...rest }: Omit<Scenario, "request" | "as" | "headers">,
): Scenario {
  let owned = NOBODYS;
  let token = "";
  return {
    ...rest,
    as: "nobody",
    before: async (world) => {
      owned = await makeOwned(stage.server, world.account, stage.sink.url("/acme"));
      token = await portalToken(world.account);
      await before?.({ ...world });
    },
    get request() {
      return request(owned);
    },
    get headers() {
      return { authorization: `Bearer ${token}` };
    },
  };
}

const unknown = (request: Request): Scenario =>
  byCustomer(() => request(NOBODYS), { name: "one that does not exist", status: 404, code: "not_found" });
const tooLong = (request: Request): Scenario =>
  byCustomer(() => request({ endpoint_id: TOO_LONG, relay_id: TOO_LONG }), {
    name: "a too long id",
    status: 400,
    code: "validation_error",
  });
const noToken = (request: Request): Scenario => ({
  name: "without a token",
  as: "nobody",
  request: request(NOBODYS),
  status: 401,
  code: "unauthorized",
});
const charged = (scenario: Scenario): Scenario => Object.defineProperty(scenario, "spent", { value: 1 });
const emptied = async ({ server, account }: World): Promise<void> => {
  await server.operator.patch(`/v1/admin/accounts/${account.userId}`, { balance: 0 });
};

describe("a link", () => {
  const create = (body: object): Scenario["request"] => ["POST", PATH, body];
  const rejected = (name: string, change: object): Scenario => ({
    name,
    request: create({ owner_id: OWNER, ...change }),
    status: 400,
    code: "validation_error",
    after: (_, { body }) =>
      expect(Object.keys(body["fields"] as object)[0]?.split(".")[0]).toBe(Object.keys(change)[0] ?? ""),
  });
  endpoint(() => stage.server, "POST /v1/relay/portal", [
    {
      name: "for a day by default",
      request: create({ owner_id: OWNER }),
      status: 201,
      spent: 1,
      after: ({ server }, { body, headers }) => {
        expect(body).toEqual({
          url: expect.stringMatching(/^http:\/\/.+\/portal\/#token=portal_[A-Za-z0-9]{43}_[0-9a-f]{8}$/),
          expires_at: server.clock.now() + 86_400_000,
        });
        expect(headers.get("cache-control")).toBe("no-store");
      },
    },
    ...[
      ["the shortest lifetime", "60s", PORTAL_MS_MIN] as const,
      ["the longest lifetime", "7d", PORTAL_MS_MAX] as const,
    ].map(
      ([name, expires_in, ms]): Scenario => ({
        name,
        request: create({ owner_id: OWNER, expires_in }),
        status: 201,
        spent: 1,
        after: ({ server }, { body }) => expect(body["expires_at"]).toBe(server.clock.now() + ms),
      }),
    ),
    rejected("a too short lifetime", { expires_in: "59s" }),
    rejected("a too long lifetime", { expires_in: "604801s" }),
    rejected("a lifetime without a unit", { expires_in: "60" }),
    rejected("a lifetime with very many digits", { expires_in: `${"9".repeat(12)}d` }),
    rejected("no owner_id", { owner_id: null }),
    rejected("an owner_id with a blank", { owner_id: "a b" }),
    rejected("invalid event types", { event_types: ["a b"] }),
    rejected("notices", { event_types: ["ninefold.*"] }),
    { name: "no key", as: "nobody", request: create({}), status: 401, code: "unauthorized" },
    {
      name: "no credits",
      account: { balance: 0 },
      request: create({ owner_id: OWNER }),
      status: 402,
      code: "insufficient_balance",
    },
    {
      name: "an Idempotency-Key of another request",
      status: 409,
      code: "conflict",
      request: create({ owner_id: OWNER }),
      headers: { "idempotency-key": "used" },
      before: ({ account }) =>
        account.post("/v1/relay/endpoints", { url: HOOKS }, { headers: { "idempotency-key": "used" } }),
    },
  ]);

  test("that is requested again under an Idempotency-Key is the same", async () => {
    const headers = { "idempotency-key": "portal" };
    const [first, second] = [
      await stage.account.post(PATH, { owner_id: OWNER }, { headers }),
      await stage.account.post(PATH, { owner_id: OWNER }, { headers }),
    ];
    expect(second.body).toEqual(first.body);
  });

  test("expires with its key", async () => {
    const expires_at = new Date(stage.server.clock.now() + 3_600_000).toISOString();
    const terms = { prefix: "sm", name: "k", scopes: ["relay:*"], expires_at };
    const { body } = await stage.account.post("/v1/keys", terms);
    const link = await stage.server.client(String(body["secret"])).post(PATH, { owner_id: OWNER });
    expect(link.body["expires_at"]).toBe(Date.parse(expires_at));
  });
});

describe("the revocation of a customer's links", () => {
  const revoke = (body: object): Scenario["request"] => ["POST", `${PATH}/revoke`, body];
  endpoint(() => stage.server, "POST /v1/relay/portal/revoke", [
    {
      name: "with two links",
      request: revoke({ owner_id: OWNER }),
      status: 200,
      body: { revoked: 2 },
      before: async ({ account }) => {
        await portalToken(account);
        await portalToken(account);
        await portalToken(account, { owner_id: "globex" });
      },
    },
    { name: "without links", request: revoke({ owner_id: OWNER }), status: 200, body: { revoked: 0 } },
    { name: "without an owner_id", request: revoke({}), status: 400, code: "validation_error" },
    { name: "without a key", as: "nobody", request: revoke({}), status: 401, code: "unauthorized" },
    {
      name: "an Idempotency-Key of another request",
      status: 409,
      code: "conflict",
      request: revoke({ owner_id: OWNER }),
      headers: { "idempotency-key": "used" },
      before: ({ account }) =>
        account.post("/v1/relay/endpoints", { url: HOOKS }, { headers: { "idempotency-key": "used" } }),
    },
  ]);
});

describe("the page's link", () => {
  const read: Request = () => ["GET", PATH];
  endpoint(() => stage.server, "GET /v1/relay/portal", [
    byCustomer(read, {
      name: "as it was created",
      status: 200,
      holds: { owner_id: OWNER, event_types: [], endpoints_max: PORTAL_ENDPOINTS_MAX },
    }),
    noToken(read),
  ]);

  test("has the event types that it was created with", async () => {
    const customer = await customerOf(stage.server, stage.account, { event_types: ["order.paid"] });
    expect((await customer.get(PATH)).body["event_types"]).toEqual(["order.paid"]);
  });
});

const ENDPOINTS = `${PATH}/endpoints`;

describe("the customer's endpoints", () => {
  const list: Request = () => ["GET", ENDPOINTS];
  endpoint(() => stage.server, "GET /v1/relay/portal/endpoints", [
    byCustomer(list, { name: "one", status: 200, holds: { endpoints: [{ state: "live" }] } }),
    byCustomer(() => ["GET", `${ENDPOINTS}?limit=101`], {
      name: "a too large page",
      status: 400,
      code: "validation_error",
    }),
    noToken(list),
  ]);
  const create =
    (body: unknown): Request =>
    () => ["POST", ENDPOINTS, body];
  endpoint(() => stage.server, "POST /v1/relay/portal/endpoints", [
    byCustomer(create({ url: HOOKS, description: "Shop", event_types: ["order.*"] }), {
      name: "with a description and types",
      status: 201,
      holds: { url: HOOKS, description: "Shop", event_types: ["order.*"], state: "live" },
      after: async ({ account }, { body, headers }) => {
        expect(body["secret"]).toMatch(/^whsec_/);
        expect(headers.get("cache-control")).toBe("no-store");
        const { body: seen } = await account.get(`/v1/relay/endpoints/${body["endpoint_id"]}`);
        expect(seen).toMatchObject({ owner_id: OWNER, notify_email: false, metadata: {}, name: null });
      },
    }),
    byCustomer(
      create({ url: HOOKS, owner_id: "globex", name: "n", headers: { a: "b" }, metadata: { a: "b" } }),
      {
        name: "with fields that only the account sets, which are ignored",
        status: 201,
        after: async ({ account }, { body }) => {
          const { body: seen } = await account.get(`/v1/relay/endpoints/${body["endpoint_id"]}`);
          expect(seen).toMatchObject({ owner_id: OWNER, name: null, headers: {}, metadata: {} });
        },
      },
    ),
    ...[
      ["a script as its URL", { url: "javascript:alert(1)" }],
      ["a file as its URL", { url: "file:///etc/passwd" }],
      ["a private address", { url: "http://10.0.0.1/" }],
      ["an address of a cloud's metadata", { url: "http://169.254.169.254/latest" }],
      ["a URL with a password", { url: "https://a:b@example.com/" }],
      ["no URL", {}],
      ["notices", { url: HOOKS, event_types: ["ninefold.*"] }],
      ["one notice", { url: HOOKS, event_types: ["ninefold.endpoint.failing"] }],
      ["a description that is too long", { url: HOOKS, description: "x".repeat(501) }],
      ["invalid types", { url: HOOKS, event_types: ["<script>"] }],
      ["a list in place of an object", []],
    ].map(([name, body]) =>
      byCustomer(create(body), { name: String(name), status: 400, code: "validation_error" }),
    ),
    byCustomer(create({ url: HOOKS, description: "x".repeat(70_000) }), {
      name: "a body that is too large",
      status: 413,
      code: "request_too_large",
    }),
    byCustomer(create({ url: HOOKS }), {
      name: "the project's limit, without the account's tier",
      account: { tier: "free" },
      status: 403,
      code: "endpoint_limit_exceeded",
      lacks: ["tier"],
      before: ({ account }) => account.post("/v1/relay/endpoints", { url: HOOKS }),
    }),
    noToken(create({ url: HOOKS })),
  ]);
});

describe("an endpoint of the customer", () => {
  const at =
    (method: string, suffix = "", body?: unknown): Request =>
    ({ endpoint_id }) => [method, `${ENDPOINTS}/${endpoint_id}${suffix}`, body];
  const read = at("GET");
  endpoint(() => stage.server, "GET /v1/relay/portal/endpoints/{endpoint_id}", [
    byCustomer(read, {
      name: "with its health and counts",
      status: 200,
      holds: { state: "live", health: { breaker: "closed" }, counts: { delivered_24h: 1 } },
    }),
    unknown(read),
    tooLong(read),
    noToken(read),
  ]);
  const change = (body: object) => at("PATCH", "", body);
  endpoint(() => stage.server, "PATCH /v1/relay/portal/endpoints/{endpoint_id}", [
    byCustomer(change({ description: "d", event_types: ["a"], state: "paused" }), {
      name: "description, types and state",
      status: 200,
      holds: { description: "d", event_types: ["a"], state: "paused" },
    }),
    byCustomer(change({ owner_id: "globex", headers: { a: "b" }, metadata: { a: "b" }, name: "n" }), {
      name: "fields that only the account sets, which are ignored",
      status: 200,
      after: async ({ account }, { body }) => {
        const { body: seen } = await account.get(`/v1/relay/endpoints/${body["endpoint_id"]}`);
        expect(seen).toMatchObject({ owner_id: OWNER, name: null, headers: {}, metadata: {} });
      },
    }),
    byCustomer(change({ state: "disabled" }), { name: "a state", status: 400, code: "validation_error" }),
    byCustomer(change({ event_types: ["ninefold.*"] }), {
      name: "notices",
      status: 400,
      code: "validation_error",
    }),
    byCustomer(change({ url: "https://elsewhere.example.com/hooks" }), {
      name: "another origin of one with headers of the account",
      status: 409,
      code: "conflict",
      lacks: ["scope", "key", "X-Token"],
      before: async ({ account }) => {
        const { body } = await account.get(`/v1/relay/endpoints?owner_id=${OWNER}`);
        const [first] = body["endpoints"] as Owned[];
        await account.patch(`/v1/relay/endpoints/${first?.endpoint_id}`, {
          headers: { "X-Token": "secret" },
        });
      },
    }),
    byCustomer(change({ url: "http://10.0.0.1/" }), {
      name: "a private address",
      status: 400,
      code: "validation_error",
    }),
    byCustomer(change({ description: "x".repeat(70_000) }), {
      name: "a body that is too large",
      status: 413,
      code: "request_too_large",
    }),
    unknown(change({})),
    noToken(change({})),
  ]);
  endpoint(() => stage.server, "DELETE /v1/relay/portal/endpoints/{endpoint_id}", [
    byCustomer(at("DELETE"), { name: "the customer's own", status: 204 }),
    unknown(at("DELETE")),
    tooLong(at("DELETE")),
    noToken(at("DELETE")),
  ]);
  const reveal = at("POST", "/secret");
  endpoint(() => stage.server, "POST /v1/relay/portal/endpoints/{endpoint_id}/secret", [
    byCustomer(reveal, {
      name: "the customer's own",
      status: 200,
      holds: { previous: [] },
      after: (_, { body, headers }) => {
        expect(body["secret"]).toMatch(/^whsec_/);
        expect(headers.get("cache-control")).toBe("no-store");
      },
    }),
    unknown(reveal),
    tooLong(reveal),
    noToken(reveal),
  ]);
  const rotate = (body: object) => at("POST", "/secret/rotate", body);
  endpoint(() => stage.server, "POST /v1/relay/portal/endpoints/{endpoint_id}/secret/rotate", [
    charged(byCustomer(rotate({ grace_hours: 1 }), { name: "the customer's own", status: 200 })),
    byCustomer(rotate({ secret: "x" }), {
      name: "an invalid secret",
      status: 400,
      code: "validation_error",
    }),
    byCustomer(rotate({ secret: "x".repeat(70_000) }), {
      name: "a body that is too large",
      status: 413,
      code: "request_too_large",
    }),
    charged(unknown(rotate({}))),
    noToken(rotate({})),
    byCustomer(rotate({}), {
      name: "without credits of the account, whose balance is not shown",
      status: 503,
      code: "service_unavailable",
      lacks: ["balance", "usr_", "credit"],
      before: emptied,
    }),
  ]);
  const send = (body: object) => at("POST", "/test", body);
  endpoint(() => stage.server, "POST /v1/relay/portal/endpoints/{endpoint_id}/test", [
    charged(byCustomer(send({ event_type: "order.paid" }), { name: "the customer's own", status: 201 })),
    byCustomer(send({ event_type: "a b" }), {
      name: "an invalid type",
      status: 400,
      code: "validation_error",
    }),
    byCustomer(send({ event_type: "ninefold.endpoint.disabled" }), {
      name: "a reserved type",
      status: 400,
      code: "validation_error",
    }),
    byCustomer(send({ event_type: "x".repeat(70_000) }), {
      name: "a body that is too large",
      status: 413,
      code: "request_too_large",
    }),
    charged(unknown(send({}))),
    noToken(send({})),
    charged(
      byCustomer(send({}), {
        name: "a disabled one",
        status: 409,
        code: "conflict",
        before: async ({ account }) => {
          stage.sink.answersBy(() => 410);
          await account.post("/v1/relay/messages", { event_type: "a", payload: {}, owner_id: OWNER });
          for (let turn = 0; turn < 6; turn += 1) await stage.server.clock.advance(1);
        },
      }),
    ),
    byCustomer(send({}), {
      name: "without credits of the account",
      status: 503,
      code: "service_unavailable",
      lacks: ["balance", "usr_", "credit"],
      before: emptied,
    }),
  ]);

  test("is added up to the limit of a customer", async () => {
    const customer = await customerOf(stage.server, stage.account);
    const add = () => customer.post(ENDPOINTS, { url: HOOKS });
    for (let count = 0; count < PORTAL_ENDPOINTS_MAX; count += 1) expect((await add()).status).toBe(201);
    expectError(await add(), "endpoint_limit_exceeded");
    const globex = await customerOf(stage.server, stage.account, { owner_id: "globex" });
    expect((await globex.post(ENDPOINTS, { url: HOOKS })).status).toBe(201);
  });
});

const DELIVERIES = `${PATH}/deliveries`;
/** Bodies that the customer's server has received. */
let sent: string[] = [];

describe("the customer's deliveries", () => {
  const list =
    (query = ""): Request =>
    () => ["GET", `${DELIVERIES}${query}`];
  endpoint(() => stage.server, "GET /v1/relay/portal/deliveries", [
    byCustomer(list(), {
      name: "one",
      status: 200,
      holds: { deliveries: [{ event_type: "order.paid", status: "delivered", attempts: 1 }] },
    }),
    byCustomer(list("?status=failed"), { name: "no failed one", status: 200, body: { deliveries: [] } }),
    byCustomer(list("?endpoint_id=ep_none"), {
      name: "none of another endpoint",
      status: 200,
      body: { deliveries: [] },
    }),
    byCustomer(list("?status=lost"), { name: "an unknown status", status: 400, code: "validation_error" }),
    byCustomer(list("?cursor=none"), { name: "a foreign cursor", status: 400, code: "validation_error" }),
    noToken(list()),
  ]);
  const read: Request = ({ relay_id }) => ["GET", `${DELIVERIES}/${relay_id}`];
  endpoint(() => stage.server, "GET /v1/relay/portal/deliveries/{relay_id}", [
    byCustomer(read, {
      name: "with payload and attempts",
      status: 200,
      holds: { payload: { n: 1 }, status: "delivered", attempt_log: [{ attempt: 1, response_status: 200 }] },
    }),
    unknown(read),
    tooLong(read),
    noToken(read),
  ]);
  const body: Request = ({ relay_id }) => ["GET", `${DELIVERIES}/${relay_id}/body`];
  endpoint(() => stage.server, "GET /v1/relay/portal/deliveries/{relay_id}/body", [
    byCustomer(body, {
      name: "the bytes that were sent",
      status: 200,
      before: () => {
        sent = stage.sink.take().map((one) => one.body);
      },
      after: (_, { body: shown }) =>
        expect(shown).toEqual({ body: sent.at(-1), size_bytes: Buffer.byteLength(sent.at(-1) ?? "") }),
    }),
    unknown(body),
    tooLong(body),
    noToken(body),
  ]);

  test("show the bytes in the format of the endpoint, and none of a deleted one", async () => {
    const customer = await customerOf(stage.server, stage.account);
    const raw = { url: stage.sink.url("/raw"), owner_id: OWNER, format: "raw" };
    const created = await stage.account.post("/v1/relay/endpoints", raw);
    const payload = '{"big": 12345678901234567890, "text": "\\u00e9"}';
    const message = await stage.account.send(
      "POST",
      "/v1/relay/messages",
      `{"event_type": "a", "owner_id": "${OWNER}", "payload": ${payload}}`,
    );
    const [delivery] = message.body["deliveries"] as { relay_id: string }[];
    for (let turn = 0; turn < 6; turn += 1) await stage.server.clock.advance(1);
    const path = `${DELIVERIES}/${delivery?.relay_id}/body`;
    const [received] = stage.sink.take();
    expect((await customer.get(path)).body["body"]).toBe(received?.body ?? "");
    expect(received?.body).toBe('{"big":12345678901234567890,"text":"é"}');
    await stage.account.delete(`/v1/relay/endpoints/${created.body["endpoint_id"]}`);
    expect((await customer.get(path)).body).toEqual({ body: null, size_bytes: null });
  });

  const resend: Request = ({ relay_id }) => ["POST", `${DELIVERIES}/${relay_id}/resend`];
  endpoint(() => stage.server, "POST /v1/relay/portal/deliveries/{relay_id}/resend", [
    charged(
      byCustomer(resend, {
        name: "a delivered one",
        status: 202,
        holds: { status: "scheduled" },
        after: async () => {
          stage.sink.take();
          for (let turn = 0; turn < 6; turn += 1) await stage.server.clock.advance(1);
          expect(stage.sink.take().map(({ path }) => path)).toEqual(["/acme"]);
        },
      }),
    ),
    charged(
      byCustomer(resend, {
        name: "one that is not finished",
        status: 409,
        code: "conflict",
        before: async ({ account }) => {
          const { body } = await account.get("/v1/relay?limit=1");
          const [{ relay_id, endpoint_id }] = body["deliveries"] as [Record<string, string>];
          await account.patch(`/v1/relay/endpoints/${endpoint_id}`, { state: "paused" });
          const customer = await customerOf(stage.server, account);
          expect((await customer.post(`${DELIVERIES}/${relay_id}/resend`)).status).toBe(202);
        },
      }),
    ),
    charged(
      byCustomer(resend, {
        name: "one that the account has cancelled",
        status: 409,
        code: "conflict",
        before: async ({ account }) => {
          const { body } = await account.get("/v1/relay?limit=1");
          const [{ relay_id, endpoint_id }] = body["deliveries"] as [Record<string, string>];
          await account.patch(`/v1/relay/endpoints/${endpoint_id}`, { state: "paused" });
          const customer = await customerOf(stage.server, account);
          await customer.post(`${DELIVERIES}/${relay_id}/resend`);
          expect((await account.delete(`/v1/relay/${relay_id}`)).status).toBe(200);
        },
      }),
    ),
    charged(
      byCustomer(resend, {
        name: "one whose endpoint was deleted",
        status: 409,
        code: "conflict",
        before: async ({ account }) => {
          const { body } = await account.get("/v1/relay/endpoints");
          const [{ endpoint_id }] = body["endpoints"] as [Record<string, string>];
          expect((await account.delete(`/v1/relay/endpoints/${endpoint_id}`)).status).toBe(204);
        },
      }),
    ),
    charged(unknown(resend)),
    tooLong(resend),
    noToken(resend),
    byCustomer(resend, {
      name: "without credits of the account",
      status: 503,
      code: "service_unavailable",
      lacks: ["balance", "usr_", "credit"],
      before: emptied,
    }),
  ]);

  test("show no headers that the account has given the endpoint", async () => {
    const { endpoint_id } = await makeOwned(stage.server, stage.account, stage.sink.url("/acme"));
    const headers = { "X-Internal-Gateway": "a", Authorization: "b", Accept: "text/plain" };
    await stage.account.patch(`/v1/relay/endpoints/${endpoint_id}`, { headers });
    const customer = await customerOf(stage.server, stage.account);
    const { relay_id } = (await customer.post(`${ENDPOINTS}/${endpoint_id}/test`, {})).body;
    for (let turn = 0; turn < 6; turn += 1) await stage.server.clock.advance(1);
    const namesFor = async (client: Client, path: string): Promise<string[]> => {
      const { attempt_log } = (await client.get(`${path}/${relay_id}`)).body;
      const [{ request_headers }] = attempt_log as [{ request_headers: object }];
      return Object.keys(request_headers);
    };
    const seen = await namesFor(stage.account, "/v1/relay");
    expect(seen).toEqual(expect.arrayContaining(Object.keys(headers)));
    const shown = await namesFor(customer, DELIVERIES);
    expect(shown).toEqual(seen.filter((name) => !(name in headers)));
    expect(shown).toEqual(expect.arrayContaining(["Content-Type", "User-Agent", "webhook-signature"]));
  });

  test("are in pages, and include test events", async () => {
    const { endpoint_id } = await makeOwned(stage.server, stage.account, stage.sink.url("/acme"));
    const customer: Client = await customerOf(stage.server, stage.account);
    const sent = await customer.post(`${ENDPOINTS}/${endpoint_id}/test`, {});
    const first = await customer.get(`${DELIVERIES}?limit=1`);
    expect(first.body["deliveries"]).toMatchObject([
      { relay_id: sent.body["relay_id"], event_type: "webhook.test" },
    ]);
    const second = await customer.get(`${DELIVERIES}?limit=1&cursor=${first.body["cursor"]}`);
    expect(second.body["deliveries"]).toMatchObject([{ event_type: "order.paid" }]);
  });
});
