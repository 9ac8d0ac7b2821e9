import { expect, setDefaultTimeout, test } from "bun:test";
import { importHookdeck } from "../../../../src/configuration/import/webhooks/hookdeck/hookdeck.ts";
import { type Imported, losses, useImports } from "../support.ts";
import { connection, destination, page, source } from "./hookdeck-fixture.ts";

/** Busy machines take longer. */
setDefaultTimeout(60_000);

const imports = useImports();

type Sections = Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, unknown>>>>>>;

const run = (value: unknown): Imported => imports.run((draft) => importHookdeck(draft, value));
const sections = ({ text }: Imported) => Bun.YAML.parse(text) as Sections;
const TIMEOUT = "destination shop: timeout lowered to 30 s";
const NEW_URL = "source stripe: url is new: enter the ingest_url that apply prints at the sender";
const STRIPE = source("stripe", "STRIPE", { auth: { webhook_secret_key: "whsec_of_stripe" } });
const FORWARD = { method: true, path: true, query: true, headers: ["*"] };

test("a connection: a bucket, its endpoint, the filter and the retries", async () => {
  const imported = run(
    page([
      connection(STRIPE, destination("shop", { rate_limit: 5, rate_limit_period: "second" }), [
        { type: "retry", strategy: "linear", interval: 60_000, count: 3, response_status_codes: null },
        {
          type: "filter",
          body: { data: { object: { amount: { $gte: 100 } } }, type: { $startsWith: "invoice." } },
        },
      ]),
    ]),
  );
  expect(sections(imported)["buckets"]).toEqual({
    stripe: {
      provider: "stripe",
      signing_secret: { env: "BUCKETS_STRIPE_SIGNING_SECRET" },
      verification_mode: "reject",
      state: "live",
      targets: [
        {
          endpoint: "shop",
          filter: { data: { object: { amount: { $gte: 100 } } }, type: { $startsWith: "invoice." } },
        },
      ],
      forward: FORWARD,
    },
  });
  expect(sections(imported)["endpoints"]).toEqual({
    shop: {
      url: "https://shop.example.com/hooks",
      timeout_ms: 30_000,
      max_per_second: 5,
      disable_after_hours: 0,
      signature: { scheme: "hmac-sha256-base64", header: "X-Hookdeck-Signature" },
      secret: { env: "ENDPOINTS_SHOP_SECRET" },
      retry_schedule: ["1m", "1m", "1m"],
    },
  });
  expect(losses(imported)).toEqual([TIMEOUT, NEW_URL]);
  expect(imported.text + imported.notes.join()).not.toContain("of_stripe");
  const [before, after] = await imports.apply(imported.text);
  expect(before).toHaveLength(2);
  expect(after).toEqual([]);
});

test("rules without a counterpart: what would change events pauses the endpoint", () => {
  const imported = run([
    connection(STRIPE, destination("shop"), [
      { type: "transform", transformation_id: "trs_1" },
      { type: "delay", delay: 60_000 },
      { type: "deduplicate", window: 60_000, include_fields: ["body.id"] },
      {
        type: "retry",
        strategy: "exponential",
        interval: 3_600_000,
        count: 50,
        response_status_codes: ["500-599"],
      },
    ]),
  ]);
  const { endpoints } = sections(imported);
  expect(endpoints?.["shop"]).toMatchObject({
    state: "paused",
    retry_schedule: ["1h", "2h", "4h", "8h", "16h", "24h", "24h", "24h", "24h", "24h"],
  });
  expect(losses(imported)).toEqual([
    "connection stripe -> shop: transform: not carried over: no code is run, an endpoint can have a template",
    "connection stripe -> shop: delay: not carried over: events are forwarded immediately",
    "connection stripe -> shop: deduplicate: not carried over: set deduplicate_hours of the bucket, which compares event ids",
    "connection stripe -> shop: response_status_codes: not carried over: every status but 2xx is retried",
    TIMEOUT,
    "connection stripe -> shop: retry lowered to 10 retries",
    "connection stripe -> shop: state is paused at its endpoint, which would get something else: see the notes of what is lost",
    NEW_URL,
  ]);
});

test("connections to one destination share an endpoint, unless their retries differ", async () => {
  const shop = destination("shop");
  const retry = { type: "retry", strategy: "linear", interval: 5_000, count: 1 };
  const paid = { type: "filter", body: { paid: true } };
  const imported = run({
    connections: page([
      connection(STRIPE, shop, [retry, paid, { type: "filter", body: { test: false } }]),
      connection(source("form"), shop, [retry]),
      connection(source("other"), shop, [], { paused_at: "2030-01-05T10:00:00.000Z" }),
      connection(source("gone"), shop, [], { disabled_at: "2030-01-05T10:00:00.000Z" }),
    ]),
    sources: page([STRIPE, source("lonely", "WEBHOOK", { allowed_http_methods: ["POST", "GET"] })]),
  });
  const { buckets, endpoints } = sections(imported);
  expect(Object.keys(endpoints ?? {})).toEqual(["shop", "shop 2"]);
  expect(endpoints?.["shop 2"]).toMatchObject({ state: "paused", retry_schedule: [] });
  expect(buckets?.["stripe"]?.["targets"]).toEqual([
    { endpoint: "shop", filter: { $and: [{ paid: true }, { test: false }] } },
  ]);
  expect(buckets?.["form"]?.["targets"]).toEqual([{ endpoint: "shop" }]);
  expect(buckets?.["lonely"]).toEqual({ state: "live", methods: ["POST", "GET"], delivery: "pull" });
  expect(losses(imported)[0]).toBe("connection gone -> shop: disabled_at: it is disabled: not carried over");
  const [, after] = await imports.apply(imported.text);
  expect(after).toEqual([]);
});

test("sources: providers, recipes, responses", async () => {
  const shop = destination("shop");
  const hmac = {
    algorithm: "sha256",
    encoding: "hex",
    header_key: "X-Acme-Signature",
    webhook_secret_key: "s3cr3t",
  };
  const imported = run([
    connection(
      source("acme", "WEBHOOK", {
        auth_type: "HMAC",
        auth: hmac,
        custom_response: { content_type: "text", body: "ok" },
      }),
      shop,
    ),
    connection(
      source("keys", "HTTP", { auth_type: "API_KEY", auth: { header_key: "X-Key", api_key: "k3y value" } }),
      shop,
    ),
    connection(
      source("basic", "HTTP", { auth_type: "BASIC_AUTH", auth: { username: "ada", password: "pa55" } }),
      shop,
    ),
    connection(source("discord", "DISCORD", { auth: { public_key: "ab".repeat(32) } }), shop),
    connection(source("slack", "SLACK"), shop),
    connection(source("meta", "WHATSAPP", { auth: { webhook_secret_key: "of meta" } }), shop),
    connection(source("wix", "WIX", { auth: { webhook_secret_key: "of wix" } }), shop),
    connection(source("md5", "HTTP", { auth_type: "HMAC", auth: { ...hmac, algorithm: "md5" } }), shop),
    connection(source("hidden", "HTTP", { auth_type: "HMAC" }), shop),
    connection(source("api", "PUBLISH_API"), shop),
  ]);
  const { buckets } = sections(imported);
  const custom = (name: string, signature: Readonly<Record<string, unknown>>) => ({
    provider: "custom",
    signature,
    signing_secret: { env: `BUCKETS_${name}_SIGNING_SECRET` },
    verification_mode: "reject",
    state: "live",
  });
  expect(buckets?.["acme"]).toMatchObject({
    ...custom("ACME", {
      header: "X-Acme-Signature",
      algorithm: "hmac-sha256",
      encoding: "hex",
      template: "{body}",
    }),
    response: { body: "ok", content_type: "text/plain" },
  });
  expect(buckets?.["keys"]).toMatchObject(custom("KEYS", { header: "X-Key", algorithm: "token" }));
  expect(buckets?.["basic"]).toMatchObject(custom("BASIC", { header: "Authorization", algorithm: "token" }));
  expect(buckets?.["discord"]).toMatchObject({ provider: "discord", state: "live" });
  expect(buckets?.["meta"]).toMatchObject({
    provider: "meta",
    challenge: { token: { env: "BUCKETS_META_CHALLENGE_TOKEN" } },
    signature: { header: "X-Hub-Signature-256", prefix: "sha256=" },
    signing_secret: { env: "BUCKETS_META_SIGNING_SECRET" },
    state: "live",
  });
  for (const name of ["slack", "wix", "md5", "hidden"])
    expect(buckets?.[name]).toMatchObject({ state: "paused" });
  expect(buckets).not.toHaveProperty("api");
  expect(imported.text + imported.notes.join()).not.toMatch(/s3cr3t|k3y|pa55|of meta|of wix/);
  expect(losses(imported).slice(0, 5)).toEqual([
    "source api: type: PUBLISH_API has no counterpart: send messages to endpoints in its place",
    "source slack: auth: has no secret: request it with include=config.auth, or set signing_secret of the bucket",
    "source wix: auth: WIX has no preset: nothing is verified until the bucket has a recipe",
    "source md5: auth: md5 is not supported: nothing is verified",
    "source hidden: auth: is not in the file: request it with include=config.auth",
  ]);
  const [, after] = await imports.apply(imported.text.replace(/^ {2}discord:\n(?: {4}.*\n)*/m, ""));
  expect(after).toEqual([]);
});

test("destinations: what their receivers expect of a request", async () => {
  const to = (name: string, config: Readonly<Record<string, unknown>>) =>
    connection(STRIPE, destination(name, config));
  const imported = run(
    page(
      [
        to("signed", {
          auth_type: "CUSTOM_SIGNATURE",
          auth: { key: "X-Shop-Signature", signing_secret: "s3cr3t of shop" },
        }),
        to("bearer", {
          auth_type: "BEARER_TOKEN",
          auth: { token: "t0ken" },
          rate_limit: 30,
          rate_limit_period: "minute",
        }),
        to("basic", { auth_type: "BASIC_AUTH", auth: { username: "ada", password: "pa55" } }),
        to("header", { auth_type: "API_KEY", auth: { key: "X-Key", api_key: "k3y", to: "header" } }),
        to("query", { auth_type: "API_KEY", auth: { key: "key", api_key: "k3y", to: "query" } }),
        to("oauth", { auth_type: "OAUTH2_CLIENT_CREDENTIALS", auth: { client_id: "a" } }),
        to("put", { http_method: "PUT", rate_limit: 100, rate_limit_period: "concurrent" }),
        connection(STRIPE, destination("laptop", { path: "/hooks" }, "CLI")),
      ],
      "web_next",
    ),
  );
  const { buckets, endpoints } = sections(imported);
  expect(endpoints?.["signed"]).toMatchObject({ signature: { header: "X-Shop-Signature" } });
  expect(endpoints?.["bearer"]).toMatchObject({
    headers: { Authorization: { env: "ENDPOINTS_BEARER_AUTHORIZATION" } },
    max_per_second: 1,
  });
  expect(endpoints?.["basic"]).toMatchObject({ headers: { Authorization: {} } });
  expect(endpoints?.["header"]).toMatchObject({ headers: { "X-Key": {} } });
  expect(endpoints?.["query"]).toMatchObject({ url: { env: "ENDPOINTS_QUERY_URL" } });
  expect(endpoints?.["oauth"]).toMatchObject({ state: "paused" });
  expect(endpoints?.["put"]).toMatchObject({ state: "paused", max_concurrency: 64 });
  expect(buckets?.["stripe"]).toMatchObject({ forward: FORWARD });
  expect(imported.text + imported.notes.join()).not.toMatch(/s3cr3t|t0ken|pa55|k3y/);
  expect(losses(imported).slice(0, 5)).toEqual([
    "destination laptop: type: CLI is not carried over: use ninefold listen",
    "Hookdeck connections: pagination: there are further pages: request them with next, and import all items in one list",
    "destination oauth: auth: OAUTH2_CLIENT_CREDENTIALS is not supported",
    "destination put: http_method: PUT is not supported: POST is sent",
    "source stripe: connections: their destinations forward methods and paths differently: all do as the first",
  ]);
  const [, after] = await imports.apply(imported.text);
  expect(after).toEqual([]);
});

test.each([
  [7, 'The connections of Hookdeck must be a list, or {"models": […]}'],
  [[7], "connection must be an object."],
  [[{ source: 7 }], "A connection of Hookdeck must have its source."],
  [[{ source: {}, destination: 7 }], "destination must be an object."],
])("%j is rejected", (value, message) => {
  expect(() => run(value)).toThrow(message);
});
