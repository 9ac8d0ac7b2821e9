import { describe, expect, test } from "bun:test";
import {
  IMPORTED_LENGTH_MAX,
  IMPORTED_TYPES_MAX,
} from "../../../../src/areas/relay/event-types/event-types.ts";
import { REFERENCE_LENGTH_MAX } from "../../../../src/areas/relay/event-types/openapi.ts";
import {
  EXAMPLE_BYTES_MAX,
  TYPE_DESCRIPTION_LENGTH_MAX,
} from "../../../../src/areas/relay/event-types/schema.ts";
import { SCHEMA_BYTES_MAX, SUBSCHEMAS_MAX } from "../../../../src/kernel/json-schema/compile.ts";
import { expectError } from "../../../support/errors.ts";
import { customerOf, OWNER, portalToken } from "../../../support/portal.ts";
import { leastMs, longestTurnMs, TURN_MS_MAX } from "../../../support/processor-time.ts";
import { endpoint, type Scenario } from "../../../support/scenario.ts";
import { messagingStage } from "../messages-support.ts";

const { stage, messaging } = messagingStage();

const PATH = "/v1/relay/event-types";
const SCHEMA = {
  type: "object",
  required: ["amount"],
  properties: { amount: { type: "number" }, items: { items: { properties: { n: { type: "integer" } } } } },
};
const TYPE = { description: "Paid in full.", schema: SCHEMA, example: { amount: 120 } };
const NAME = "invoice.paid";
const HOUR_MS = 3_600_000;

const save = (body: object = TYPE, name = NAME) => stage.account.put(`${PATH}/${name}`, body);
const send = (payload: object, change: object = {}) =>
  stage.account.post("/v1/relay/messages", { event_type: NAME, payload, ...change });
const balance = async () => (await stage.account.get("/v1/meter")).body["balance"];
const read = async (name = NAME) => (await stage.account.get(`${PATH}/${name}`)).body;
const WRONG = [{ field: "payload.amount", message: "must be a number" }];

const SCENARIOS = {
  noKey: { name: "no key", as: "nobody", status: 401, code: "unauthorized" },
  free: { name: "free", account: { balance: 0 }, code: "" },
} as const satisfies Record<string, Partial<Scenario>>;
const existing: Pick<Scenario, "before"> = {
  before: ({ account }) => account.put(`${PATH}/${NAME}`, TYPE),
};

describe("PUT /v1/relay/event-types/{name}", () => {
  const request: Scenario["request"] = ["PUT", `${PATH}/${NAME}`, TYPE];
  const rejected = (name: string, change: object, field: string): Scenario => ({
    name,
    status: 400,
    code: "validation_error",
    request: ["PUT", `${PATH}/${NAME}`, { ...TYPE, ...change }],
    after: (_, { body }) => expect(Object.keys(body["fields"] as object)).toEqual([field]),
  });
  endpoint(() => stage.server, "PUT /v1/relay/event-types/{name}", [
    {
      name: "a new type",
      request,
      status: 201,
      holds: { name: NAME, ...TYPE, enforce: false, archived: false, invalid_24h: 0 },
    },
    {
      name: "a change replaces all",
      ...existing,
      request: ["PUT", `${PATH}/${NAME}`, { enforce: true }],
      status: 200,
      holds: { name: NAME, description: null, schema: null, example: null, enforce: true },
    },
    { ...SCENARIOS.noKey, request },
    { ...SCENARIOS.free, request, status: 201 },
    {
      name: "an idempotency key of another request",
      headers: { "idempotency-key": "k" },
      before: ({ account }) => account.put(`${PATH}/${NAME}`, {}, { headers: { "idempotency-key": "k" } }),
      request,
      status: 409,
      code: "conflict",
    },
    rejected(
      "a schema with a pattern",
      { schema: { properties: { a: { pattern: "x" } } } },
      "schema.properties.a.pattern",
    ),
    rejected("a schema that is none", { schema: { type: "text" } }, "schema.type"),
    rejected("an example that the schema rejects", { example: { amount: "1" } }, "example.amount"),
    rejected("a long example", { schema: null, example: { a: "x".repeat(EXAMPLE_BYTES_MAX) } }, "example"),
    rejected("an example that is no object", { example: [1] }, "example"),
    rejected(
      "a long description",
      { description: "d".repeat(TYPE_DESCRIPTION_LENGTH_MAX + 1) },
      "description",
    ),
    {
      name: "a reserved name",
      status: 400,
      code: "validation_error",
      request: ["PUT", `${PATH}/ninefold.a`, TYPE],
    },
    {
      name: "a name with a space",
      status: 400,
      code: "validation_error",
      request: ["PUT", `${PATH}/a%20b`, TYPE],
    },
    {
      name: "more than the tier allows",
      status: 403,
      code: "event_type_limit_exceeded",
      request: ["PUT", `${PATH}/other`, {}],
      account: { tier: "free" },
      before: async ({ account, server }) => {
        for (let n = 0; n < 100; n += 1) {
          // The tier also limits requests per minute.
          if (n % 10 === 0) await server.clock.advance(60_000);
          expect((await account.put(`${PATH}/t${n}`, {})).status).toBe(201);
        }
        await server.clock.advance(60_000);
        expect((await account.put(`${PATH}/t1`, { description: "x" })).status).toBe(200);
        // An archived one makes room for one, and comes back only if there is room.
        expect((await account.delete(`${PATH}/t1`)).status).toBe(204);
        expect((await account.put(`${PATH}/t100`, {})).status).toBe(201);
        expectError(await account.put(`${PATH}/t1`, {}), "event_type_limit_exceeded");
      },
    },
  ]);

  test("digits of schema and example are kept", async () => {
    const text = '{"schema":{"minimum":12345678901234567890.5},"example":{"n":1.00000000000000000001}}';
    const { text: shown } = await stage.account.put(`${PATH}/${NAME}`, text);
    expect(shown).toContain('"schema":{"minimum":12345678901234567890.5}');
    expect((await stage.account.get(`${PATH}/${NAME}`)).text).toContain(
      '"example":{"n":1.00000000000000000001}',
    );
  });
});

describe("GET and DELETE /v1/relay/event-types", () => {
  endpoint(() => stage.server, "GET /v1/relay/event-types/{name}", [
    {
      name: "one",
      ...existing,
      request: ["GET", `${PATH}/${NAME}`],
      status: 200,
      holds: { name: NAME, ...TYPE },
    },
    { ...SCENARIOS.noKey, request: ["GET", `${PATH}/${NAME}`] },
    { name: "unknown", request: ["GET", `${PATH}/none`], status: 404, code: "not_found" },
    { name: "no name", request: ["GET", `${PATH}/a%20b`], status: 400, code: "validation_error" },
  ]);
  endpoint(() => stage.server, "GET /v1/relay/event-types", [
    {
      name: "all",
      ...existing,
      request: ["GET", PATH],
      status: 200,
      after: (_, { body }) => expect(body["event_types"]).toMatchObject([{ name: NAME }]),
    },
    { ...SCENARIOS.noKey, request: ["GET", PATH] },
    { name: "a foreign cursor", request: ["GET", `${PATH}?cursor=x`], status: 400, code: "validation_error" },
  ]);
  endpoint(() => stage.server, "DELETE /v1/relay/event-types/{name}", [
    {
      name: "archives",
      ...existing,
      request: ["DELETE", `${PATH}/${NAME}`],
      status: 204,
      after: async ({ account }) => {
        expect((await account.get(PATH)).body["event_types"]).toEqual([]);
        const archived = (await account.get(`${PATH}?archived=true`)).body["event_types"];
        expect(archived).toMatchObject([{ name: NAME, archived: true, ...TYPE }]);
        expect((await account.delete(`${PATH}/${NAME}`)).status).toBe(204);
        const back = await account.put(`${PATH}/${NAME}`, {});
        expect([back.status, back.body["archived"]]).toEqual([200, false]);
      },
    },
    { ...SCENARIOS.noKey, request: ["DELETE", `${PATH}/${NAME}`] },
    { name: "unknown", request: ["DELETE", `${PATH}/none`], status: 404, code: "not_found" },
    { name: "no name", request: ["DELETE", `${PATH}/a%20b`], status: 400, code: "validation_error" },
    {
      name: "an idempotency key of another request",
      headers: { "idempotency-key": "k" },
      before: ({ account }) => account.put(`${PATH}/${NAME}`, {}, { headers: { "idempotency-key": "k" } }),
      request: ["DELETE", `${PATH}/${NAME}`],
      status: 409,
      code: "conflict",
    },
  ]);

  test("pages are newest first, and end early for long schemas", async () => {
    for (const name of ["a", "b", "c"]) await save({}, name);
    const names = async (query: string) => {
      const { body } = await stage.account.get(`${PATH}?${query}`);
      return [(body["event_types"] as { name: string }[]).map(({ name }) => name), body["cursor"]] as const;
    };
    const [first, cursor] = await names("limit=2");
    expect(first).toEqual(["c", "b"]);
    expect(await names(`limit=2&cursor=${String(cursor)}`)).toEqual([["a"], undefined]);
    const long = { schema: { title: "x".repeat(60_000) }, example: { a: "x".repeat(60_000) } };
    for (let n = 0; n < 6; n += 1) await save(long, `long.${n}`);
    const [page, next] = await names("limit=6");
    expect(page.length).toBe(4);
    expect((await names(`limit=6&cursor=${String(next)}`))[0]).toEqual(["long.1", "long.0", "c", "b", "a"]);
  });
});

describe("messages of a type", () => {
  test("that do not fit are sent and reported, on the message too, and counted for a day", async () => {
    await messaging.endpoint("/a");
    await save();
    const sent = await send({ amount: "1" });
    expect([sent.status, sent.body["schema_errors"]]).toEqual([201, WRONG]);
    await send({ amount: 1 });
    const many = await send({ items: Array(9).fill({ n: 1.5 }), amount: null });
    expect(many.body["schema_errors"]).toHaveLength(5);
    const id = String(sent.body["message_id"]);
    expect((await stage.account.get(`/v1/relay/messages/${id}`)).body["schema_errors"]).toEqual(WRONG);
    expect((await read())["invalid_24h"]).toBe(2);
    await stage.restart();
    await stage.server.clock.advance(23 * HOUR_MS);
    await send({});
    expect((await read())["invalid_24h"]).toBe(3);
    await stage.server.clock.advance(2 * HOUR_MS);
    expect((await read())["invalid_24h"]).toBe(1);
    await messaging.settle();
  });

  test("with an enforced schema are rejected, free of charge, and none of a batch is sent", async () => {
    await messaging.endpoint("/a");
    await save({ ...TYPE, enforce: true });
    const before = await balance();
    const one = await send({ amount: "1" });
    expectError(one, "validation_error");
    expect(one.body["fields"]).toEqual({ "payload.amount": ["must be a number"] });
    const good = { event_type: NAME, payload: { amount: 1 } };
    const bad = { event_type: NAME, payload: { amount: 1, items: [{}, { n: "x" }] } };
    const batch = await stage.account.post("/v1/relay/messages/batch", { messages: [good, good, good, bad] });
    expectError(batch, "validation_error");
    expect(Object.keys(batch.body["fields"] as object)).toEqual(["messages.3.payload.items.1.n"]);
    expect(await balance()).toBe(before);
    expect((await stage.account.get("/v1/relay/messages")).body["messages"]).toEqual([]);
    expect((await send({ amount: 1 })).status).toBe(201);
    expect((await read())["invalid_24h"]).toBe(0);
    await messaging.settle();
  });

  test("that is unknown or archived are not checked; a change applies to the next message", async () => {
    await save({ ...TYPE, enforce: true });
    expect((await send({}, { event_type: "other" })).status).toBe(201);
    expectError(await send({}), "validation_error");
    await stage.account.delete(`${PATH}/${NAME}`);
    const sent = await send({});
    expect([sent.status, sent.body["schema_errors"]]).toEqual([201, undefined]);
    await save({ schema: { required: ["other"] }, enforce: true });
    expectError(await send({}), "validation_error");
  });

  test("repeated by id are sent and counted once", async () => {
    await save();
    expect((await send({}, { message_id: "m-1" })).status).toBe(201);
    const again = await send({}, { message_id: "m-1" });
    expect([again.status, again.body["schema_errors"]]).toEqual([200, undefined]);
    expect((await read())["invalid_24h"]).toBe(1);
  });

  test("of a schedule that do not fit an enforced schema are skipped, with an error", async () => {
    await save({ ...TYPE, enforce: true });
    const body = { cron: "* * * * *", event_type: NAME, payload: { amount: "1" } };
    const { schedule_id: id } = (await stage.account.post("/v1/relay/schedules", body)).body;
    const path = `/v1/relay/schedules/${String(id)}`;
    await stage.server.clock.advance(60_000);
    const error = "payload.amount must be a number";
    expect((await stage.account.get(path)).body).toMatchObject({ runs: 0, skipped: 1, last_error: error });
    expectError(await stage.account.post(`${path}/run`, {}), "validation_error");
    await save(TYPE);
    await stage.server.clock.advance(60_000);
    expect((await stage.account.get(path)).body).toMatchObject({ runs: 1, skipped: 1, last_error: null });
    const [message] = (await stage.account.get("/v1/relay/messages")).body["messages"] as {
      message_id: string;
    }[];
    const sent = await stage.account.get(`/v1/relay/messages/${message?.message_id}`);
    expect(sent.body["schema_errors"]).toEqual(WRONG);
    await stage.account.delete(path);
  });

  test("have the example of their type as a test event", async () => {
    await save();
    const id = await messaging.endpoint("/a", { format: "raw" });
    await stage.account.post(`/v1/relay/endpoints/${id}/test`, { event_type: NAME });
    await messaging.settle();
    expect(stage.sink.take().map(({ body }) => body)).toEqual(['{"amount":120}']);
  });
});

describe("POST /v1/relay/event-types/import", () => {
  const IMPORT = `${PATH}/import`;
  const webhook = (json: object, more: object = {}) => ({
    post: { summary: "Paid.", requestBody: { content: { "application/json": json } }, ...more },
  });
  const OPENAPI = {
    openapi: "3.1.0",
    webhooks: {
      "invoice.paid": webhook({ schema: { $ref: "#/components/schemas/Invoice" }, example: { amount: 1 } }),
      tree: { $ref: "#/components/pathItems/tree" },
      "bad name": webhook({ schema: {} }),
      form: { post: { requestBody: { content: { "text/plain": {} } } } },
      pattern: webhook({ schema: { pattern: "x" } }),
      wrong: webhook({ schema: { required: ["a"] }, example: {} }),
      away: webhook({ schema: { $ref: "https://example.com/a" } }),
    },
    components: {
      schemas: {
        Invoice: { required: ["amount"], properties: { amount: { $ref: "#/components/schemas/Amount" } } },
        Amount: { type: "number" },
        Node: { properties: { children: { items: { $ref: "#/components/schemas/Node" } } } },
      },
      pathItems: { tree: webhook({ schema: { $ref: "#/components/schemas/Node" } }) },
    },
  };
  const skipped = ["bad name", "form", "pattern", "wrong", "away"];
  const request: Scenario["request"] = ["POST", IMPORT, { openapi: OPENAPI }];
  endpoint(() => stage.server, `POST ${IMPORT}`, [
    {
      name: "creates types, with everything that they refer to",
      request,
      // The two messages.
      spent: 2,
      status: 200,
      holds: { created: ["invoice.paid", "tree"], updated: [], unchanged: [] },
      after: async ({ account }, { body }) => {
        expect((body["skipped"] as { name: string }[]).map(({ name }) => name)).toEqual(skipped);
        const { body: paid } = await account.get(`${PATH}/${NAME}`);
        expect(paid).toMatchObject({ description: "Paid.", example: { amount: 1 }, enforce: false });
        const send = (payload: object, event_type: string) =>
          account.post("/v1/relay/messages", { event_type, payload });
        expect((await send({ amount: "1" }, NAME)).body["schema_errors"]).toEqual(WRONG);
        expect((await send({ children: [{ children: [] }] }, "tree")).body["schema_errors"]).toBeUndefined();
        const again = await account.post(IMPORT, { openapi: OPENAPI });
        expect(again.body).toMatchObject({ created: [], updated: [], unchanged: ["invoice.paid", "tree"] });
        await account.put(`${PATH}/${NAME}`, { enforce: true });
        expect((await account.post(IMPORT, { openapi: OPENAPI })).body["updated"]).toEqual(["invoice.paid"]);
        expect((await account.get(`${PATH}/${NAME}`)).body).toMatchObject({
          enforce: true,
          description: "Paid.",
        });
      },
    },
    {
      name: "a dry run changes nothing",
      request: ["POST", IMPORT, { openapi: OPENAPI, dry_run: true }],
      status: 200,
      holds: { created: ["invoice.paid", "tree"] },
      after: async ({ account }) => expect((await account.get(PATH)).body["event_types"]).toEqual([]),
    },
    { ...SCENARIOS.noKey, request },
    { ...SCENARIOS.free, request, status: 200 },
    { name: "no document", request: ["POST", IMPORT, {}], status: 400, code: "validation_error" },
    {
      name: "an idempotency key of another request",
      headers: { "idempotency-key": "k" },
      before: ({ account }) => account.post(IMPORT, { openapi: {} }, { headers: { "idempotency-key": "k" } }),
      request,
      status: 409,
      code: "conflict",
    },
  ]);
});

describe("an import", () => {
  const IMPORT = `${PATH}/import`;
  const hook = (schema: object, example?: object) => ({
    post: { requestBody: { content: { "application/json": { schema, example } } } },
  });
  const imported = async (openapi: object) => {
    const { status, text, body } = await stage.account.post(IMPORT, { openapi });
    expect(status, text).toBe(200);
    const { created, skipped } = body as { created: string[]; skipped: { name: string; reason: string }[] };
    return { created, skipped };
  };
  const numbered = (count: number, of: (at: number) => [name: string, value: object]) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => of(at)));
  /** Each schema refers to the next one. */
  const chain = (length: number) => ({
    parts: numbered(length, (at) => [`a${at}`, at + 1 === length ? {} : { $ref: `#/parts/a${at + 1}` }]),
    webhooks: { chain: hook({ $ref: "#/parts/a0" }) },
  });
  const wide = (length: number) => ({
    parts: numbered(length, (at) => [`a${at}`, {}]),
    webhooks: {
      wide: hook({ allOf: Array.from({ length }, (_, at) => ({ $ref: `#/parts/a${at}` })) }),
    },
  });

  test("follows a chain of references to the limit of subschemas, and not beyond", async () => {
    expect((await imported(chain(SUBSCHEMAS_MAX))).created).toEqual(["chain"]);
    const [skipped] = (await imported(chain(SUBSCHEMAS_MAX + 1))).skipped;
    expect(skipped?.reason).toContain(`more than ${SUBSCHEMAS_MAX} references`);
  });

  test("of references with the same last name has all that they lead to", async () => {
    const parts = { a: { x: { const: 1 } }, b: { x: { const: 2 } }, schema0: { const: 3 }, "": { const: 4 } };
    const references = ["#/parts/a/x", "#/parts/schema0", "#/parts/b/x", "#/parts/"];
    const names = references.map((_, at) => `p${at}`);
    const properties = Object.fromEntries(names.map((name, at) => [name, { $ref: references[at] }]));
    await imported({ parts, webhooks: { same: hook({ properties }) } });
    const send = (payload: object) =>
      stage.account.post("/v1/relay/messages", { event_type: "same", payload });
    expect((await send({ p0: 1, p1: 3, p2: 2, p3: 4 })).body["schema_errors"]).toBeUndefined();
    expect((await send({ p0: 0, p1: 0, p2: 0, p3: 0 })).body["schema_errors"]).toHaveLength(4);
  });

  test("skips what is beyond a number of types, or shares too much of the document", async () => {
    const shared = { part: hook({ title: "x".repeat(SCHEMA_BYTES_MAX / 2) }) };
    const of = (count: number, name: string, webhook: object) =>
      imported({ ...shared, webhooks: numbered(count, (at) => [`${name}.${at}`, webhook]) });
    const many = await of(IMPORTED_TYPES_MAX + 1, "many", hook({}));
    expect(many.created).toHaveLength(IMPORTED_TYPES_MAX);
    expect(many.skipped).toEqual([{ name: `many.${IMPORTED_TYPES_MAX}`, reason: expect.any(String) }]);
    const count = IMPORTED_LENGTH_MAX / (SCHEMA_BYTES_MAX / 2);
    const large = await of(count + 2, "large", { $ref: "#/part" });
    expect([large.created.length, large.skipped.map(({ name }) => name)]).toEqual([
      count,
      [`large.${count}`, `large.${count + 1}`],
    ]);
    const long = `#/${"x".repeat(REFERENCE_LENGTH_MAX)}`;
    const { skipped } = await imported({ webhooks: { long: hook({ $ref: long }) } });
    expect(skipped[0]?.reason).toContain("reference of more than");
  });

  test.each([
    ["a chain of references", () => chain(20_000)],
    ["many references", () => wide(12_000)],
    [
      "the most types",
      (run: number) => ({ webhooks: numbered(IMPORTED_TYPES_MAX, (at) => [`m.${run}.${at}`, hook({})]) }),
    ],
    [
      "many types that share a large schema",
      (run: number) => ({
        part: hook({ title: "x".repeat(4_000) }),
        webhooks: numbered(2_000, (at) => [`s.${run}.${at}`, { $ref: "#/part" }]),
      }),
    ],
  ])("does not hold up other requests: %s", async (_, documentOf) => {
    let run = 0;
    const least = await leastMs(TURN_MS_MAX, async () => {
      stage.account = await stage.server.account({ tier: "unlimited" });
      run += 1;
      const openapi = documentOf(run);
      return longestTurnMs(() => imported(openapi));
    });
    expect(least).toBeLessThan(TURN_MS_MAX);
  });
});

describe("GET /v1/relay/portal/event-types", () => {
  const PORTAL = "/v1/relay/portal/event-types";
  let token = "";
  test("lists the described types that the link offers, wildcards included", async () => {
    await save();
    await save({ ...TYPE, enforce: true }, "order.paid");
    await save(TYPE, "order.refunded");
    await save(TYPE, "internal.secret");
    await stage.account.delete(`${PATH}/order.refunded`);
    const offered = async (event_types: readonly string[]) => {
      const customer = await customerOf(stage.server, stage.account, { owner_id: OWNER, event_types });
      const { status, body } = await customer.get(PORTAL);
      expect(status).toBe(200);
      return body["event_types"] as object[];
    };
    expect(await offered(["order.*", NAME, "none"])).toEqual([
      { name: "order.paid", ...TYPE },
      { name: NAME, ...TYPE },
    ]);
    expect(await offered([])).toEqual([]);
  });

  endpoint(() => stage.server, `GET ${PORTAL}`, [
    { ...SCENARIOS.noKey, request: ["GET", PORTAL] },
    {
      name: "by a link",
      as: "nobody",
      request: ["GET", PORTAL],
      status: 200,
      get headers() {
        return { authorization: `Bearer ${token}` };
      },
      before: async ({ account }) => {
        token = await portalToken(account);
      },
    },
    { name: "by a key", request: ["GET", PORTAL], status: 401, code: "unauthorized" },
    {
      name: "a foreign cursor",
      as: "nobody",
      request: ["GET", `${PORTAL}?cursor=x`],
      status: 400,
      code: "validation_error",
      get headers() {
        return { authorization: `Bearer ${token}` };
      },
      before: async ({ account }) => {
        token = await portalToken(account);
      },
    },
  ]);
});
