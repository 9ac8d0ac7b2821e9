import { afterAll, beforeAll, describe, expect } from "bun:test";
import {
  ENVIRONMENT_LENGTH_MAX,
  NAME_LENGTH_MAX,
  PREFIX_LENGTH_MAX,
  SCOPE_LENGTH_MAX,
  SCOPES_MAX,
} from "../../../src/areas/keys/domain.ts";
import { METADATA_LENGTH_MAX } from "../../../src/kernel/data/schema.ts";
import { endpoint, type Scenario, type World } from "../../support/scenario.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";
import { defaultProjectOf, makeProject, naming } from "../projects/support.ts";
import { termsOf, UNBOUND } from "./support.ts";

const NOW = "2026-03-10T12:00:00.000Z";
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

async function keyCount({ account }: World): Promise<number> {
  const answer = await server.server.kernel.db.one<{ count: number }, [string]>(
    "SELECT count(*) AS count FROM keys WHERE account_ref = (SELECT ref FROM accounts WHERE user_id = ?)",
  )(account.userId);
  return answer?.count ?? 0;
}

/** Expects this number of keys of the account. */
function leaves(count: number): NonNullable<Scenario["after"]> {
  return async (world) => expect(await keyCount(world)).toBe(count);
}

const LONGEST = "🔑";
const ANY_TERMS: [name: string, more: Record<string, unknown>][] = [
  ["the required fields", {}],
  ["environment and metadata", { environment: "live", metadata: { customer: "42" } }],
  ["metadata whose name has a line break", { metadata: { "a\nb": "c" } }],
  ["an expiry", { expires_at: "2026-03-10T12:00:00.001Z" }],
  ["null for optional fields", { environment: null, metadata: null, expires_at: null }],
  ["the longest prefix", { prefix: "a_0".repeat(11).slice(0, PREFIX_LENGTH_MAX) }],
  ["the longest name", { name: LONGEST.repeat(NAME_LENGTH_MAX) }],
  ["the longest environment", { environment: LONGEST.repeat(ENVIRONMENT_LENGTH_MAX) }],
  ["the longest scope", { scopes: [LONGEST.repeat(SCOPE_LENGTH_MAX)] }],
  [
    "as many scopes as a key can have",
    { scopes: Array.from({ length: SCOPES_MAX }, (_, at) => `scope-${at}`) },
  ],
  ["the longest metadata", { metadata: { k: "x".repeat(METADATA_LENGTH_MAX - 8) } }],
  ["a Bearer credential", { prefix: "sm", scopes: ["meter:read", "gate:*", "*"] }],
];

/** Scenarios of a creation on one of the two paths. */
function createdKeys(make: (world: World) => Promise<string>, project: "null" | "its own"): Scenario[] {
  return ANY_TERMS.map(([name, more]) => {
    let path = "";
    return naming({
      name,
      make: async (world) => {
        path = await make(world);
        return path;
      },
      ask: () => ["POST", path, termsOf(more)],
      status: 201,
      // And one credit for reading it again.
      spent: 2,
      after: async ({ account }, { body }) => {
        const terms = termsOf(more);
        for (const optional of ["environment", "metadata"])
          if (terms[optional] === null) delete terms[optional];
        const projectId = project === "null" ? null : (path.split("/")[3] ?? "");
        expect(body).toEqual({
          key_id: expect.stringMatching(UUID_V7),
          secret: expect.stringMatching(new RegExp(`^${terms["prefix"]}_[0-9A-Za-z]{43}_[0-9a-f]{8}$`)),
          expires_at: null,
          ...UNBOUND,
          ...terms,
          project_id: projectId,
          created_at: NOW,
        });
        const { key_id, secret, ...rest } = body;
        const read = await server.operator.get(`/v1/keys/${key_id}`);
        expect(read.status).toBe(404);
        const shown = {
          ...rest,
          id: key_id,
          masked_secret: `${terms["prefix"]}_...`,
          revoked_at: null,
          last_used_at: null,
        };
        const mine = await account.get(`/v1/keys/${key_id}`);
        expect(mine.body).toEqual({ ...shown, last4: String(secret).slice(-4) });
      },
    });
  });
}

const SCOPES_MESSAGE = `must be a list of 1 to ${SCOPES_MAX} texts`;
const DATE_MESSAGE = "must be an RFC 3339 date-time, such as 2030-01-31T12:00:00Z";
const PREFIX_MESSAGE = `must be 1 to ${PREFIX_LENGTH_MAX} lower-case letters, digits or underscores`;
const ENVIRONMENT_MESSAGE = `must be a text of 1 to ${ENVIRONMENT_LENGTH_MAX} characters`;

const BAD_TERMS: [more: Record<string, unknown>, field: string, message: string | null][] = [
  ...["", "A", "a-b", "ü", "a b", "a\n", "x".repeat(PREFIX_LENGTH_MAX + 1), 5, null].map(
    (prefix): [Record<string, unknown>, string, string] => [{ prefix }, "prefix", PREFIX_MESSAGE],
  ),
  ...["", `${"x".repeat(NAME_LENGTH_MAX)}x`, 5, null].map(
    (name): [Record<string, unknown>, string, string] => [
      { name },
      "name",
      "must be a text of 1 to 255 characters",
    ],
  ),
  [{ scopes: [] }, "scopes", SCOPES_MESSAGE],
  [{ scopes: Array.from({ length: SCOPES_MAX + 1 }, (_, at) => `s${at}`) }, "scopes", SCOPES_MESSAGE],
  [{ scopes: "*" }, "scopes", SCOPES_MESSAGE],
  [{ scopes: [5] }, "scopes", null],
  [{ scopes: [""] }, "scopes", null],
  [{ scopes: ["x".repeat(SCOPE_LENGTH_MAX + 1)] }, "scopes", null],
  [{ environment: "" }, "environment", ENVIRONMENT_MESSAGE],
  [{ environment: "x".repeat(ENVIRONMENT_LENGTH_MAX + 1) }, "environment", ENVIRONMENT_MESSAGE],
  [{ metadata: { k: 5 } }, "metadata", null],
  [{ metadata: { "a\nb": 5 } }, "metadata", null],
  [{ metadata: ["a"] }, "metadata", "must be an object of texts"],
  [
    { metadata: { k: "x".repeat(METADATA_LENGTH_MAX - 7) } },
    "metadata",
    "must have at most 16384 characters as JSON",
  ],
  ...["tomorrow", "2026-03-11", "2026-02-30T00:00:00Z", 1_800_000_000, ""].map(
    (expires_at): [Record<string, unknown>, string, string] => [{ expires_at }, "expires_at", DATE_MESSAGE],
  ),
  [{ expires_at: NOW }, "expires_at", "must be in the future"],
  [{ expires_at: "2026-03-10T13:59:59+02:00" }, "expires_at", "must be in the future"],
  ...[
    "read",
    "meter:delete",
    "meter:",
    ":read",
    "meter:read:x",
    "Meter:read",
    "admin:read",
    "**",
    "accounts:*",
  ].map((scope): [Record<string, unknown>, string, string] => [
    { prefix: "sm", scopes: ["meter:read", scope] },
    "scopes",
    `of a key with the prefix sm must be *, or read, write or * of an area, such as meter:read; "${scope}" is not`,
  ]),
];

/** Requests that a creation rejects, on either path. */
function refusedKeys(make: (world: World) => Promise<string>): Scenario[] {
  const bad = BAD_TERMS.map(([more, field, message]) =>
    naming({
      name: JSON.stringify(more).slice(0, 60),
      make,
      ask: (path) => ["POST", path, termsOf(more)],
      status: 400,
      code: "validation_error",
      after: async (world, { body }) => {
        const fields = body.fields as Record<string, string[]>;
        const names = Object.keys(fields);
        expect(names.every((name) => name === field || name.startsWith(`${field}.`))).toBe(true);
        if (message !== null) expect(fields).toEqual({ [field]: [message] });
        await leaves(0)(world, {} as never);
      },
    }),
  );
  const required = ["prefix", "name", "scopes"].map((field) =>
    naming({
      name: `no ${field}`,
      make,
      ask: (path) => ["POST", path, termsOf({ [field]: undefined })],
      status: 400,
      code: "validation_error",
      after: (_, { body }) => expect(Object.keys(body.fields as object)).toEqual([field]),
    }),
  );
  return [
    ...bad,
    ...required,
    naming({
      name: "without a key",
      as: "nobody",
      make,
      ask: (path) => ["POST", path, termsOf()],
      status: 401,
      code: "unauthorized",
    }),
    naming({
      name: "no credit to pay with: nothing is made",
      account: { balance: 0 },
      make,
      ask: (path) => ["POST", path, termsOf()],
      status: 402,
      code: "insufficient_balance",
      after: leaves(0),
    }),
    naming({
      name: "an Idempotency-Key used for another body",
      headers: { "idempotency-key": "k" },
      make: async (world) => {
        const path = await make(world);
        await world.account.post(path, termsOf(), { headers: { "idempotency-key": "k" } });
        return path;
      },
      ask: (path) => ["POST", path, termsOf({ name: "another" })],
      status: 409,
      code: "conflict",
      after: leaves(1),
    }),
  ];
}

const onAccount = async (): Promise<string> => "/v1/keys";
const onProject = async ({ account }: World): Promise<string> =>
  `/v1/projects/${await makeProject(account)}/keys`;

describe("POST /v1/keys", () => {
  endpoint(() => server, "POST /v1/keys", [...createdKeys(onAccount, "null"), ...refusedKeys(onAccount)]);
});

describe("POST /v1/projects/{id}/keys", () => {
  endpoint(() => server, "POST /v1/projects/{id}/keys", [
    ...createdKeys(onProject, "its own"),
    ...refusedKeys(onProject),
    {
      name: "no such project",
      request: ["POST", "/v1/projects/proj_absent/keys", termsOf()],
      status: 404,
      code: "not_found",
      spent: 1,
    },
    naming({
      name: "another account's project",
      make: ({ server }) => defaultProjectOf(server.operator),
      ask: (id) => ["POST", `/v1/projects/${id}/keys`, termsOf()],
      status: 404,
      code: "not_found",
      spent: 1,
      after: leaves(0),
    }),
  ]);
});
