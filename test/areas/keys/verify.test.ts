import { afterAll, beforeAll, describe } from "bun:test";
import { CLIENT_IP_LENGTH_MAX } from "../../../src/areas/keys/domain.ts";
import { endpoint, type Scenario } from "../../support/scenario.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";
import { naming } from "../projects/support.ts";
import { INVALID, makeKey } from "./support.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

const META_MESSAGE = `must be an object with the texts ip (at most ${CLIENT_IP_LENGTH_MAX} characters) and user_agent`;

describe("POST /v1/keys/verify", () => {
  const invalid = (secret: string): Scenario => ({
    name: `the secret ${JSON.stringify(secret).slice(0, 24)}`,
    request: ["POST", "/v1/keys/verify", { secret }],
    status: 200,
    body: INVALID,
    spent: 1,
  });
  const bad = (name: string, body: object, fields: object): Scenario => ({
    name,
    request: ["POST", "/v1/keys/verify", body],
    status: 400,
    code: "validation_error",
    holds: { fields },
  });
  endpoint(() => server, "POST /v1/keys/verify", [
    naming({
      name: "a key",
      make: async ({ account }) => (await makeKey(account)).secret,
      ask: (secret) => ["POST", "/v1/keys/verify", { secret }],
      status: 200,
      holds: { valid: true, project_id: null, scopes: ["orders:read"], error: null },
      spent: 1,
    }),
    naming({
      name: "a secret followed by a space",
      make: async ({ account }) => (await makeKey(account)).secret,
      ask: (secret) => ["POST", "/v1/keys/verify", { secret: `${secret} ` }],
      status: 200,
      body: INVALID,
      spent: 1,
    }),
    naming({
      name: "another account's key",
      make: async ({ server }) => (await makeKey(server.operator)).secret,
      ask: (secret) => ["POST", "/v1/keys/verify", { secret }],
      status: 200,
      body: INVALID,
      spent: 1,
    }),
    naming({
      name: "the platform key",
      make: async ({ account }) => account.key ?? "",
      ask: (secret) => ["POST", "/v1/keys/verify", { secret }],
      status: 200,
      body: INVALID,
      spent: 1,
    }),
    ...["x", " ", "acme_", "_", "acme_x_00000000", "ü".repeat(30_000), "\ud800"].map(invalid),
    ...["a", "x".repeat(CLIENT_IP_LENGTH_MAX)].map(
      (ip): Scenario => ({
        name: `meta with an ip of ${ip.length} characters`,
        request: [
          "POST",
          "/v1/keys/verify",
          { secret: "x", meta: { ip, user_agent: "u".repeat(5_000), more: 1 } },
        ],
        status: 200,
        body: { ...INVALID, warnings: ["Unknown field `meta.more`."] },
        spent: 1,
      }),
    ),
    ...[null, {}, { ip: null, user_agent: null }].map(
      (meta): Scenario => ({
        name: `meta ${JSON.stringify(meta)}`,
        request: ["POST", "/v1/keys/verify", { secret: "x", meta }],
        status: 200,
        body: INVALID,
        spent: 1,
      }),
    ),
    bad("no secret", {}, { secret: ["is required: it must be a text of at least 1 character"] }),
    ...["", 5, null].map((secret) =>
      bad(
        `the secret ${JSON.stringify(secret)}`,
        { secret },
        { secret: ["must be a text of at least 1 character"] },
      ),
    ),
    bad(
      "an ip that is too long",
      { secret: "x", meta: { ip: "x".repeat(CLIENT_IP_LENGTH_MAX + 1) } },
      {
        meta: [META_MESSAGE],
      },
    ),
    bad("meta that is a text", { secret: "x", meta: "ip" }, { meta: [META_MESSAGE] }),
    bad("a user agent that is a number", { secret: "x", meta: { user_agent: 5 } }, { meta: [META_MESSAGE] }),
    {
      name: "without a key",
      as: "nobody",
      request: ["POST", "/v1/keys/verify", { secret: "x" }],
      status: 401,
      code: "unauthorized",
    },
    {
      name: "an empty balance",
      account: { balance: 0 },
      request: ["POST", "/v1/keys/verify", { secret: "x" }],
      status: 402,
      code: "insufficient_balance",
    },
    {
      name: "an Idempotency-Key used for another body",
      headers: { "idempotency-key": "k" },
      before: async ({ account }) => {
        const { secret } = await makeKey(account);
        await account.post("/v1/keys/verify", { secret }, { headers: { "idempotency-key": "k" } });
      },
      request: ["POST", "/v1/keys/verify", { secret: "x" }],
      status: 409,
      code: "conflict",
    },
  ]);
});
