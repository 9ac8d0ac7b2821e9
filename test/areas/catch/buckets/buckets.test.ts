import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { SIGNING_SECRET_LENGTH_MAX } from "../../../../src/areas/catch/domain.ts";
import type { Answer } from "../../../support/client.ts";
import { expectError } from "../../../support/errors.ts";
import { endpoint, type World } from "../../../support/scenario.ts";
import { startTestServer, TEST_START_MS, type TestServer } from "../../../support/server.ts";
import { type BucketBody, bucketOf, ingest, type Made, makeEvent, newBucket, scenario } from "../support.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

const BUCKETS = "/v1/catch/buckets";
const TARGET = "https://hooks.example.com/in";
const START = new Date(TEST_START_MS).toISOString();
const ID = /^[a-z]+-[a-z]+-[1-9]\d{5}$/;
const NOBODYS = "brave-otter-314159";
const MEMBERS = [
  ..."auto_confirm challenge created_at deduplicate_hours delivery events forward has_signing_secret hint id ingest_url invalid_status last_too_large_at".split(
    " ",
  ),
  ..."methods name overload_status previous_expires_at provider response retention_hours retry_schedule signature".split(
    " ",
  ),
  ..."state target_url targets too_large updated_at verification_mode".split(" "),
];

/** The only field in an error, with its message. */
function expectField({ body }: Answer, field: string, message: RegExp): void {
  const fields = body["fields"] as Record<string, string[]>;
  expect(Object.keys(fields)).toEqual([field]);
  expect(fields[field]?.join()).toMatch(message);
}

const made: Made = { bucketId: "", eventId: "" };
const makeBucket = (terms: object = {}) => ({
  before: async ({ account }: World) => {
    made.bucketId = (await newBucket(account, terms)).id;
  },
});

describe("POST /v1/catch/buckets", () => {
  const invalid = (name: string, body: object, field: string, message: RegExp) =>
    ({
      name,
      request: ["POST", BUCKETS, body],
      status: 400,
      code: "validation_error",
      after: (_: World, answer: Answer) => expectField(answer, field, message),
    }) as const;
  const unsupported = (name: string, provider: unknown) =>
    ({
      name,
      request: ["POST", BUCKETS, { target_url: TARGET, provider }],
      status: 400,
      code: "catch.provider_unsupported",
    }) as const;
  endpoint(() => server, "POST /v1/catch/buckets", [
    {
      name: "only a target: paused, without provider and secret",
      request: ["POST", BUCKETS, { target_url: TARGET }],
      status: 201,
      holds: {
        target_url: TARGET,
        provider: null,
        has_signing_secret: false,
        state: "paused",
        created_at: START,
        updated_at: START,
        events: { pending: 0, delivered: 0, failed: 0 },
      },
      after: (_, { body }) => {
        expect(Object.keys(body).sort()).toEqual(MEMBERS);
        expect(body["id"]).toMatch(ID);
      },
    },
    ...(["stripe", "github", "shopify", "svix"] as const).map(
      (provider) =>
        ({
          name: `${provider} with a secret, which is never shown`,
          request: ["POST", BUCKETS, { target_url: TARGET, provider, signing_secret: "whsec_very-secret" }],
          status: 201,
          holds: { provider, has_signing_secret: true },
          lacks: ["very-secret"],
        }) as const,
    ),
    {
      name: "null means none",
      request: ["POST", BUCKETS, { target_url: TARGET, provider: null, signing_secret: null }],
      status: 201,
      holds: { provider: null, has_signing_secret: false },
    },
    {
      name: "the longest secret",
      request: [
        "POST",
        BUCKETS,
        { target_url: TARGET, signing_secret: "s".repeat(SIGNING_SECRET_LENGTH_MAX) },
      ],
      status: 201,
      holds: { has_signing_secret: true },
    },
    {
      name: "unknown fields are ignored; the state is paused unless it is given",
      request: ["POST", BUCKETS, { target_url: TARGET, events: 7 }],
      status: 201,
      holds: { state: "paused" },
    },
    invalid("no target", {}, "target_url", /^is required: it must be an https URL/),
    invalid("a target that is no text", { target_url: 7 }, "target_url", /^must be an https URL/),
    invalid(
      "a target that is no URL",
      { target_url: "example.com" },
      "target_url",
      /must be an http or https URL/,
    ),
    invalid(
      "plain HTTP",
      { target_url: "http://example.com/" },
      "target_url",
      /^must be an https URL: .*--allow-private-targets/,
    ),
    invalid("another scheme", { target_url: "ftp://example.com/" }, "target_url", /must be an http or https/),
    invalid("credentials in the URL", { target_url: "https://a:b@example.com/" }, "target_url", /user name/),
    invalid("a loopback address", { target_url: "https://127.0.0.1/" }, "target_url", /public address/),
    invalid("a private address", { target_url: "https://10.1.2.3/" }, "target_url", /public address/),
    invalid("a name of this machine", { target_url: "https://localhost/" }, "target_url", /public address/),
    invalid(
      "the cloud's metadata",
      { target_url: "https://169.254.169.254/" },
      "target_url",
      /public address/,
    ),
    invalid("IPv6 loopback", { target_url: "https://[::1]/" }, "target_url", /public address/),
    invalid("a target too long", { target_url: `https://e.com/${"x".repeat(2048)}` }, "target_url", /./),
    invalid("an empty secret", { target_url: TARGET, signing_secret: "" }, "signing_secret", /1 to 512/),
    invalid(
      "a secret too long",
      { target_url: TARGET, signing_secret: "s".repeat(SIGNING_SECRET_LENGTH_MAX + 1) },
      "signing_secret",
      /1 to 512/,
    ),
    invalid(
      "a secret that is no text",
      { target_url: TARGET, signing_secret: 7 },
      "signing_secret",
      /string/,
    ),
    invalid("a provider that is no text", { target_url: TARGET, provider: 7 }, "provider", /string/),
    unsupported("a provider that nobody knows", "nobody"),
    unsupported("a provider in capitals", "Stripe"),
    unsupported("an empty provider", ""),
    unsupported("a name from JavaScript", "constructor"),
    {
      name: "no key",
      as: "nobody",
      request: ["POST", BUCKETS, { target_url: TARGET }],
      status: 401,
      code: "unauthorized",
    },
    {
      name: "one more than the tier allows",
      account: { tier: "free" },
      before: ({ account }) => newBucket(account),
      request: ["POST", BUCKETS, { target_url: TARGET }],
      status: 403,
      code: "bucket_limit_exceeded",
    },
    {
      name: "an Idempotency-Key of a request with another body",
      before: ({ account }) =>
        account.post(BUCKETS, { target_url: TARGET }, { headers: { "idempotency-key": "k" } }),
      headers: { "idempotency-key": "k" },
      request: ["POST", BUCKETS, { target_url: `${TARGET}/other` }],
      status: 409,
      code: "conflict",
    },
  ]);
});

describe("GET /v1/catch/buckets", () => {
  endpoint(() => server, "GET /v1/catch/buckets", [
    { name: "none", request: ["GET", BUCKETS], status: 200, body: { buckets: [] } },
    {
      name: "an invalid name",
      request: ["GET", `${BUCKETS}?name=a%0Ab`],
      status: 400,
      code: "validation_error",
    },
    { name: "no key", as: "nobody", request: ["GET", BUCKETS], status: 401, code: "unauthorized" },
  ]);

  test("newest first, without deleted ones and those of others", async () => {
    const [account, other] = [await server.account(), await server.account()];
    const ids: string[] = [];
    for (let count = 0; count < 4; count += 1) ids.push((await newBucket(account)).id);
    await newBucket(other);
    await account.delete(`${BUCKETS}/${ids[1]}`);
    const { body } = await account.get(BUCKETS);
    expect((body["buckets"] as BucketBody[]).map(({ id }) => id)).toEqual([
      ids[3],
      ids[2],
      ids[0],
    ] as string[]);
  });
});

describe("GET /v1/catch/buckets/{bucket_id}", () => {
  endpoint(() => server, "GET /v1/catch/buckets/{bucket_id}", [
    scenario(made, {
      name: "with the numbers of its events",
      before: (world) => makeEvent(made, world),
      request: ({ bucketId }) => ["GET", `${BUCKETS}/${bucketId}`],
      status: 200,
      holds: ({ bucketId }) => ({ id: bucketId, events: { pending: 1, delivered: 0, failed: 0 } }),
    }),
    {
      name: "a bucket that does not exist",
      request: ["GET", `${BUCKETS}/${NOBODYS}`],
      status: 404,
      code: "catch.bucket_not_found",
    },
    {
      name: "an invalid id",
      request: ["GET", `${BUCKETS}/%00`],
      status: 404,
      code: "catch.bucket_not_found",
    },
    {
      name: "a too long id",
      request: ["GET", `${BUCKETS}/${"x".repeat(65)}`],
      status: 400,
      code: "validation_error",
    },
    {
      name: "no key",
      as: "nobody",
      request: ["GET", `${BUCKETS}/${NOBODYS}`],
      status: 401,
      code: "unauthorized",
    },
  ]);
});

describe("PATCH /v1/catch/buckets/{bucket_id}", () => {
  const path = ({ bucketId }: Made) => `${BUCKETS}/${bucketId}`;
  const changed = (name: string, change: object, holds: object, terms: object = {}) =>
    scenario(made, {
      name,
      ...makeBucket(terms),
      request: (of) => ["PATCH", path(of), change],
      status: 200,
      holds: () => holds,
    });
  const refused = (name: string, change: object, field: string, message: RegExp) =>
    scenario(made, {
      name,
      ...makeBucket(),
      request: (of) => ["PATCH", path(of), change],
      status: 400,
      code: "validation_error",
      after: (_, answer) => expectField(answer, field, message),
    });
  endpoint(() => server, "PATCH /v1/catch/buckets/{bucket_id}", [
    changed("live", { state: "live" }, { state: "live" }),
    changed("paused already", { state: "paused" }, { state: "paused" }),
    changed("another target", { target_url: `${TARGET}/2` }, { target_url: `${TARGET}/2`, state: "paused" }),
    changed("a secret", { signing_secret: "s" }, { has_signing_secret: true }),
    changed(
      "no secret any more",
      { signing_secret: null },
      { has_signing_secret: false },
      { signing_secret: "s" },
    ),
    changed(
      "omitted fields stay unchanged",
      { state: "live" },
      { target_url: TARGET, provider: "github", has_signing_secret: true },
      { provider: "github", signing_secret: "s" },
    ),
    changed("nothing", {}, { state: "paused", target_url: TARGET, updated_at: START }),
    changed(
      "the provider cannot be changed",
      { provider: "svix" },
      { provider: "github" },
      { provider: "github" },
    ),
    refused("another state", { state: "stopped" }, "state", /one of paused, live/),
    refused("a state that is no text", { state: true }, "state", /one of paused, live/),
    refused("no target", { target_url: null }, "target_url", /https URL/),
    refused("a private target", { target_url: "https://192.168.0.1/" }, "target_url", /public address/),
    refused(
      "a target without TLS",
      { target_url: "http://example.com/" },
      "target_url",
      /^must be an https URL: .*--allow-private-targets/,
    ),
    refused("an empty secret", { signing_secret: "" }, "signing_secret", /1 to 512/),
    {
      name: "a bucket that does not exist",
      request: ["PATCH", `${BUCKETS}/${NOBODYS}`, { state: "live" }],
      status: 404,
      code: "catch.bucket_not_found",
    },
    {
      name: "no key",
      as: "nobody",
      request: ["PATCH", `${BUCKETS}/${NOBODYS}`, {}],
      status: 401,
      code: "unauthorized",
    },
    scenario(made, {
      name: "an Idempotency-Key of a request with another body",
      before: async ({ account }) => {
        made.bucketId = (await newBucket(account)).id;
        const options = { headers: { "idempotency-key": "k" } };
        await account.patch(path(made), { state: "live" }, options);
      },
      headers: { "idempotency-key": "k" },
      request: (of) => ["PATCH", path(of), { state: "paused" }],
      status: 409,
      code: "conflict",
    }),
  ]);

  test("updates updated_at, and survives a restart", async () => {
    const account = await server.account();
    const { id } = await newBucket(account, { signing_secret: "s", provider: "stripe" });
    const { created_at } = await bucketOf(account, id);
    await server.clock.advance(1_000);
    const { body } = await account.patch(`${BUCKETS}/${id}`, { state: "live", target_url: `${TARGET}/2` });
    const after = new Date(Date.parse(created_at) + 1_000).toISOString();
    expect(body).toMatchObject({ created_at, updated_at: after, state: "live" });
    await server.restart();
    // The port differs.
    const ingest_url = `${server.url}/v1/in/${id}`;
    expect((await server.client(account.key).get(`${BUCKETS}/${id}`)).body).toEqual({ ...body, ingest_url });
  });
});

describe("DELETE /v1/catch/buckets/{bucket_id}", () => {
  endpoint(() => server, "DELETE /v1/catch/buckets/{bucket_id}", [
    scenario(made, {
      name: "with its events",
      before: (world) => makeEvent(made, world),
      request: ({ bucketId }) => ["DELETE", `${BUCKETS}/${bucketId}`],
      status: 204,
      spent: 1,
      after: async ({ account }, { text }) => {
        expect(text).toBe("");
        expectError(await account.get(`${BUCKETS}/${made.bucketId}`), "catch.bucket_not_found");
        // The search for a bucket that does not exist is charged.
        expectError(await account.get(`/v1/catch/${made.bucketId}/events`), "catch.bucket_not_found");
        expect(await ingest(server, made.bucketId)).toEqual({ status: "ignored", verification: "none" });
      },
    }),
    scenario(made, {
      name: "a deleted bucket",
      before: async ({ account }) => {
        made.bucketId = (await newBucket(account)).id;
        await account.delete(`${BUCKETS}/${made.bucketId}`);
      },
      request: ({ bucketId }) => ["DELETE", `${BUCKETS}/${bucketId}`],
      status: 404,
      code: "catch.bucket_not_found",
    }),
    {
      name: "a too long id",
      request: ["DELETE", `${BUCKETS}/${"x".repeat(65)}`],
      status: 400,
      code: "validation_error",
    },
    {
      name: "no key",
      as: "nobody",
      request: ["DELETE", `${BUCKETS}/${NOBODYS}`],
      status: 401,
      code: "unauthorized",
    },
    scenario(made, {
      name: "an Idempotency-Key of a request to another bucket",
      before: async ({ account }) => {
        const options = { headers: { "idempotency-key": "k" } };
        await account.delete(`${BUCKETS}/${(await newBucket(account)).id}`, options);
        made.bucketId = (await newBucket(account)).id;
      },
      headers: { "idempotency-key": "k" },
      request: ({ bucketId }) => ["DELETE", `${BUCKETS}/${bucketId}`],
      status: 409,
      code: "conflict",
    }),
  ]);
});
