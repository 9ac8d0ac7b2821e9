import { expect, setDefaultTimeout, test } from "bun:test";
import { importConvoy } from "../../../../src/configuration/import/webhooks/convoy/convoy.ts";
import { type Imported, losses, useImports } from "../support.ts";
import { endpoint, filterConfig, page, project, response, source, subscription } from "./convoy-fixture.ts";

/** Busy machines take longer. */
setDefaultTimeout(60_000);

const imports = useImports();

type Sections = Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, unknown>>>>>>;

const run = (value: unknown): Imported => imports.run((draft) => importConvoy(draft, value));
const sections = ({ text }: Imported) => Bun.YAML.parse(text) as Sections;

test("an outgoing project: endpoints with the types, filter and retries of their subscriptions", async () => {
  const imported = run({
    project: project(),
    endpoints: page([
      endpoint("billing", {
        rate_limit: 600,
        rate_limit_duration: 60,
        authentication: {
          type: "api_key",
          api_key: { header_name: "X-Api-Key", header_value: "k3y of billing" },
        },
      }),
    ]),
    subscriptions: page([
      subscription("invoices", "billing", {
        filter_config: filterConfig(["invoice.paid", "invoice.failed"], {
          body: { "amount.value": { $gte: 100 }, currency: { $neq: "USD" }, "customer.vip": true },
        }),
        retry_config: { type: "exponential", duration: 10, retry_count: 3 },
      }),
    ]),
  });
  expect(sections(imported)["endpoints"]).toEqual({
    billing: {
      url: "https://billing.example.com/hooks",
      owner_id: "acme",
      timeout_ms: 10_000,
      max_per_second: 10,
      disable_after_hours: 0,
      format: "raw",
      headers: { "X-Api-Key": { env: "ENDPOINTS_BILLING_X_API_KEY" } },
      signature: { scheme: "hmac-sha256-hex", header: "X-Convoy-Signature" },
      secret: { env: "ENDPOINTS_BILLING_SECRET" },
      event_types: ["invoice.paid", "invoice.failed"],
      filter: { "/amount/value": { $gte: 100 }, currency: { $ne: "USD" }, "/customer/vip": true },
      retry_schedule: ["10s", "20s", "40s"],
    },
  });
  expect(losses(imported)).toEqual([]);
  expect(imported.text + imported.notes.join()).not.toContain("of billing");
  const [before, after] = await imports.apply(imported.text);
  expect(before).toHaveLength(1);
  expect(after).toEqual([]);
});

test("event types with their schemas; those of no use any more are archived", async () => {
  const schema = {
    $schema: "http://json-schema.org/draft-07/schema#",
    $id: "https://example.com/invoice.json",
    type: "object",
    required: ["id"],
    properties: { id: { type: "string", pattern: "^in_" }, pattern: { type: "string" } },
    examples: [{ id: "in_1042" }],
  };
  const imported = run({
    project: project(),
    endpoints: page([]),
    event_types: response([
      { uid: "et-0", name: "*", category: "", json_schema: null, description: "", deprecated_at: null },
      {
        uid: "et-1",
        name: "invoice.paid",
        category: "",
        json_schema: schema,
        description: "Paid.",
        deprecated_at: null,
      },
      {
        uid: "et-2",
        name: "old",
        category: "billing",
        json_schema: {},
        description: "",
        deprecated_at: "2030-01-05T10:00:00Z",
      },
      { uid: "et-3", name: "two words", category: "", json_schema: {}, description: "", deprecated_at: null },
    ]),
  });
  expect(sections(imported)["event_types"]).toEqual({
    "invoice.paid": {
      description: "Paid.",
      schema: {
        type: "object",
        required: ["id"],
        properties: { id: { type: "string" }, pattern: { type: "string" } },
        examples: [{ id: "in_1042" }],
      },
      example: { id: "in_1042" },
    },
    old: { archived: true },
  });
  expect(losses(imported)).toEqual([
    "event type two words: name: has other characters than letters, digits, `_`, `.` and `-`, or begins with ninefold.",
    "event type invoice.paid: schema: $id, pattern are not carried over: the rest of the schema is",
    "event type old: category: not carried over",
  ]);
  const [, after] = await imports.apply(imported.text);
  expect(after).toEqual([]);
});

test("what receivers do not expect pauses their endpoint; one without a subscription stays without messages", async () => {
  const imported = run({
    project: project({
      signature: { header: "X-Billing-Signature", versions: [{ hash: "SHA512", encoding: "hex" }] },
      meta_event: { is_enabled: true },
    }),
    endpoints: page([endpoint("sha512"), endpoint("unused")], true),
    subscriptions: page([subscription("all", "sha512")]),
  });
  const { endpoints } = sections(imported);
  expect(endpoints?.["sha512"]).toMatchObject({ state: "paused" });
  expect(endpoints?.["sha512"]).not.toHaveProperty("signature");
  expect(endpoints?.["unused"]).toMatchObject({ state: "paused" });
  expect(losses(imported)).toEqual([
    "project: signature: hash: SHA512 is not supported: receivers must verify by Standard Webhooks",
    "project: meta_event: not carried over: endpoints can subscribe to notices, such as ninefold.endpoint.disabled",
    "Convoy endpoints: pagination: there are further pages: request them with next_page_cursor, and import all items in one list",
    "endpoint sha512: state is paused, since its receiver would get something else: see the notes of what is lost",
    "endpoint unused: state is paused: it has no subscription, so that it received nothing",
  ]);
  const [, after] = await imports.apply(imported.text);
  expect(after).toEqual([]);
});

test.each([
  [
    "headers",
    { headers: { "x-tenant": "acme" } },
    "subscription s: filter: headers: filters read the body only",
  ],
  [
    "an expression",
    { body: { type: { $regex: "^in" } } },
    "subscription s: filter: body: $regex has no counterpart",
  ],
  [
    "items of a list",
    { body: { "lines.$.sku": "a" } },
    "subscription s: filter: body: lines.$.sku has no counterpart",
  ],
  [
    "a list as a value",
    { body: { sku: ["a"] } },
    "subscription s: filter: body: a list without an operator has no counterpart",
  ],
])("a filter with %s pauses the endpoint, and excludes nothing", (_, filter, note) => {
  const imported = run({
    project: project(),
    endpoints: [endpoint("shop")],
    subscriptions: [subscription("s", "shop", { filter_config: filterConfig(["*"], filter) })],
  });
  const { endpoints } = sections(imported);
  expect(endpoints?.["shop"]).toMatchObject({ state: "paused" });
  expect(endpoints?.["shop"]).not.toHaveProperty("filter");
  expect(imported.notes[0]).toBe(note);
});

test("several subscriptions of one endpoint become endpoints of their own", () => {
  const imported = run({
    project: project(),
    endpoints: [endpoint("shop", { status: "paused", slack_webhook_url: "https://hooks.example.com/1" })],
    subscriptions: [
      subscription("orders", "shop", {
        filter_config: filterConfig(["order.*"], {}),
        delivery_mode: "at_most_once",
      }),
      subscription("refunds", "shop", { function: "function transform(p) { return p }" }),
      subscription("developer", "shop", { type: "cli" }),
      subscription("gone", "elsewhere"),
    ],
  });
  const { endpoints } = sections(imported);
  expect(endpoints?.["orders"]).toMatchObject({
    event_types: ["order.*"],
    retry_schedule: [],
    state: "paused",
  });
  expect(endpoints?.["refunds"]).toMatchObject({ state: "paused" });
  expect(losses(imported)).toEqual([
    "subscription developer: type: cli is not carried over: use ninefold listen",
    "subscription gone: endpoint_metadata: is no endpoint of the file",
    "endpoint shop: slack_webhook_url: not carried over",
    "subscription refunds: function: not carried over: no code is run, an endpoint can have a template",
    "endpoint shop: subscriptions are an endpoint each, with the subscription's name",
    "endpoint shop: state is paused, since its receiver would get something else: see the notes of what is lost",
  ]);
});

test("an incoming project: buckets that deliver to endpoints, and verify as the sources do", async () => {
  const hmac = { header: "X-Acme-Signature", hash: "SHA512", secret: "s3cr3t of acme", encoding: "base64" };
  const of = (name: string) => ({ source_metadata: { uid: `src-${name}` } });
  const imported = run({
    project: project(),
    endpoints: [endpoint("orders", { owner_id: "" })],
    subscriptions: [
      subscription("large", "orders", {
        ...of("acme"),
        filter_config: filterConfig(["*"], { body: { amount: { $gt: 100 } } }),
      }),
      subscription("code", "orders", of("github")),
      subscription("keys", "orders", { ...of("keys"), function: "function transform(p) { return p }" }),
    ],
    sources: page([
      source("acme", {
        verifier: { type: "hmac", hmac },
        idempotency_keys: ["request.header.X-Acme-Id"],
        event_type_location: "request.body.event.type",
        custom_response: { body: "ok", content_type: "text/plain" },
        forward_headers: ["X-Acme-Id"],
      }),
      source("github", {
        provider: "github",
        verifier: { type: "hmac", hmac: { ...hmac, secret: "g1thub secret" } },
      }),
      source("keys", {
        verifier: { type: "api_key", api_key: { header_name: "X-Key", header_value: "k3y value" } },
      }),
      source("basic", {
        verifier: { type: "basic_auth", basic_auth: { username: "ada", password: "pa55" } },
        body_function: "function transform(p) { return p }",
      }),
      source("queue", { type: "pub_sub" }),
    ]),
  });
  const { buckets, endpoints } = sections(imported);
  expect(buckets).toEqual({
    acme: {
      provider: "custom",
      signing_secret: { env: "BUCKETS_ACME_SIGNING_SECRET" },
      signature: {
        header: "X-Acme-Signature",
        algorithm: "hmac-sha512",
        encoding: "base64",
        template: "{body}",
        event_id: "header:X-Acme-Id",
        event_type: "/event/type",
      },
      deduplicate_hours: 24,
      verification_mode: "reject",
      state: "live",
      response: { body: "ok", content_type: "text/plain" },
      forward: { headers: ["X-Acme-Id"] },
      targets: [{ endpoint: "orders", filter: { amount: { $gt: 100 } } }],
    },
    github: {
      provider: "github",
      signing_secret: { env: "BUCKETS_GITHUB_SIGNING_SECRET" },
      verification_mode: "reject",
      state: "live",
      targets: [{ endpoint: "orders" }],
    },
    keys: {
      provider: "custom",
      signing_secret: { env: "BUCKETS_KEYS_SIGNING_SECRET" },
      signature: { header: "X-Key", algorithm: "token" },
      verification_mode: "reject",
      state: "live",
      targets: [{ endpoint: "orders 2" }],
    },
    basic: {
      provider: "custom",
      signing_secret: { env: "BUCKETS_BASIC_SIGNING_SECRET" },
      signature: { header: "Authorization", algorithm: "token" },
      verification_mode: "reject",
      state: "paused",
      delivery: "pull",
    },
  });
  expect(Object.keys(endpoints ?? {})).toEqual(["orders", "orders 2"]);
  expect(endpoints?.["orders 2"]).toMatchObject({ state: "paused" });
  expect(imported.text + imported.notes.join()).not.toMatch(/s3cr3t|g1thub|k3y|pa55/);
  const found = losses(imported);
  expect(found).toContain("source queue: type: pub_sub is not supported");
  expect(found).toContain("url is new: enter the ingest_url that apply prints at the sender: 4 sources");
  expect(found).toContain("source acme: idempotency_keys are remembered for 24 hours");
  const [, after] = await imports.apply(imported.text);
  expect(after).toEqual([]);
});

test("an endpoint of an early version, and a verification that does not exist here", () => {
  const imported = run({
    endpoints: [
      {
        uid: "a",
        title: "early",
        target_url: "https://example.com/early",
        http_timeout: "2m",
        rate_limit: 90,
        rate_limit_duration: "1m",
        secrets: [
          { value: "the secret of before", expires_at: "2030-01-05T10:00:00Z" },
          { value: "the secret of now" },
        ],
        support_email: "ada@example.com",
      },
    ],
    sources: [
      source("md5", {
        verifier: { type: "hmac", hmac: { header: "X-A", hash: "MD5", secret: "x", encoding: "hex" } },
      }),
    ],
  });
  expect(sections(imported)["endpoints"]?.["early"]).toMatchObject({
    url: "https://example.com/early",
    timeout_ms: 30_000,
    max_per_second: 1,
  });
  expect(sections(imported)["buckets"]?.["md5"]).toMatchObject({ state: "paused", delivery: "pull" });
  expect(losses(imported)).toEqual([
    "endpoint early: secrets: only the one without an end is carried over, others are in their grace time",
    "endpoint early: support_email: not carried over",
    "source md5: verifier: md5 is not supported: nothing is verified",
    "project: signature is assumed to be X-Convoy-Signature, in hexadecimal: add the project to the file if it has another one",
    "endpoint early: http_timeout lowered to 30 s",
    "endpoint early: rate_limit is 1 per second",
    "endpoint early: state is paused: it has no subscription, so that it received nothing",
    "source md5: delivery is pull: no subscription takes its events, they are stored until they are fetched",
    "source md5: state is paused: events are stored, and forwarded when you set it to live",
    "source md5: url is new: enter the ingest_url that apply prints at the sender",
  ]);
});

test.each([
  [[], 'The file of Convoy must be {"project"'],
  [{ endpoints: 7 }, 'The endpoints of Convoy must be a list, or {"content": […]}'],
  [{ endpoints: [7] }, "endpoint must be an object."],
  [{ endpoints: [{ name: 7 }] }, "endpoint: name must be a text."],
])("%j is rejected", (value, message) => {
  expect(() => run(value)).toThrow(message);
});
