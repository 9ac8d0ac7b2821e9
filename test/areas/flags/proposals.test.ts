import { describe, expect, test } from "bun:test";
import {
  OPEN_PROPOSALS_BYTES_MAX,
  OPEN_PROPOSALS_MAX,
  PROPOSALS_PER_PROJECT_MAX,
  PROPOSALS_RETENTION_MS,
} from "../../../src/areas/flags/domain.ts";
import { HOUR_MS } from "../../../src/kernel/time/units.ts";
import type { Client } from "../../support/client.ts";
import { expectError } from "../../support/errors.ts";
import { leastMs, longestTurnMs, TURN_MS_MAX } from "../../support/processor-time.ts";
import { endpoint, type Scenario, type World } from "../../support/scenario.ts";
import { useTestServer } from "../../support/server.ts";
import { ARGS, join } from "../people/support.ts";

const server = useTestServer({ manualClock: true, args: ARGS });
const PATH = "/v1/gate/f/proposals";

function save(client: Client, fields: object = {}, flag_key = "f") {
  return client.post("/v1/gate", { flag_key, enabled: true, ...fields });
}

async function review(account: Client, isOn = true): Promise<void> {
  const [project] = (await account.get("/v1/projects")).body["projects"] as { id: string }[];
  const { status, body } = await account.patch(`/v1/projects/${project?.id}`, { review: isOn });
  expect([status, body["review"]]).toEqual([200, isOn]);
}

/** Another key of an account, with these scopes. */
async function anotherKey(account: Client, scopes: readonly string[] = ["gate:*"]): Promise<Client> {
  const { body, text } = await account.post("/v1/keys", { prefix: "sm", name: "another", scopes });
  expect(body["secret"], text).toBeString();
  return server.client(String(body["secret"]));
}

async function propose(client: Client, change: object, key = "f"): Promise<string> {
  const { status, body, text } = await client.post(`/v1/gate/${key}/proposals`, change);
  expect(status, text).toBe(201);
  return String(body["proposal_id"]);
}

const reviewed = async ({ account }: World): Promise<void> => {
  expect((await save(account)).status).toBe(201);
  await review(account);
};

/** A change that a reviewed project rejects. */
function rejected(name: string, request: Scenario["request"]): Scenario {
  return { name, before: reviewed, request, status: 403, code: "review_required" };
}

describe("a reviewed project rejects", () => {
  for (const { name, request } of [
    rejected("a save", ["POST", "/v1/gate", { flag_key: "f", enabled: true }]),
    rejected("a new flag, even if it is off", ["POST", "/v1/gate", { flag_key: "new", enabled: false }]),
    rejected("switching off with another change", [
      "POST",
      "/v1/gate",
      { flag_key: "f", enabled: false, tags: [] },
    ]),
    rejected("a deletion", ["DELETE", "/v1/gate/f"]),
    rejected("the cancellation of a scheduled change", ["DELETE", "/v1/gate/f/scheduled/chg_1"]),
  ])
    test(name, async () => {
      const account = await server.account();
      await reviewed({ server, account });
      const [method, path, body] = request;
      expectError(await account.send(method, path, body), "review_required");
      expect((await account.get("/v1/gate/f/definition")).body).toMatchObject({ enabled: true, version: 1 });
      await review(account, false);
      expect((await account.post("/v1/gate", { flag_key: "f", enabled: true, tags: ["a"] })).status).toBe(
        201,
      );
    });

  test("not switching a flag off, which is marked in the audit log", async () => {
    const account = await server.account();
    await reviewed({ server, account });
    expect((await account.post("/v1/gate", { flag_key: "f", enabled: false })).status).toBe(201);
    const { entries } = (await account.get("/v1/audit?target_type=flag")).body as { entries: object[] };
    expect(entries[0]).toMatchObject({
      action: "gate.save",
      summary: "Flag f switched off, unreviewed",
      before: { enabled: true },
      after: { enabled: false, unreviewed: true },
    });
  });

  test("switching the review off with a key without *", async () => {
    const account = await server.account();
    const key = await anotherKey(account, ["projects:*"]);
    await review(key);
    const [project] = (await account.get("/v1/projects")).body["projects"] as { id: string }[];
    const path = `/v1/projects/${project?.id}`;
    expectError(await key.patch(path, { review: false }), "forbidden");
    expect((await key.patch(path, { review: true, name: "Shop" })).body).toMatchObject({ review: true });
    await review(account, false);
    const { entries } = (await account.get("/v1/audit?target_type=project")).body as { entries: object[] };
    expect(entries[0]).toMatchObject({ before: { review: true }, after: { review: false } });
  });
});

describe("POST /v1/gate/{flagKey}/proposals", () => {
  const bad = (name: string, body: unknown, fields: object, code = "validation_error"): Scenario => ({
    name,
    before: reviewed,
    request: ["POST", PATH, body],
    status: 400,
    code,
    holds: { fields },
  });
  endpoint(() => server, "POST /v1/gate/{flagKey}/proposals", [
    {
      name: "a change of a flag",
      before: reviewed,
      request: ["POST", PATH, { enabled: false, tags: ["a"], comment: "Why" }],
      status: 201,
      holds: {
        flag_key: "f",
        status: "open",
        base_version: 1,
        before: { enabled: true, tags: null },
        after: { enabled: false, tags: ["a"] },
        proposed_by: { type: "key" },
        decided_by: null,
        comment: "Why",
        decision_comment: null,
        decided_at: null,
      },
      after: async ({ account }, { body }) => {
        expect(body["proposal_id"]).toMatch(/^prop_[0-9a-f]{32}$/);
        expect((await account.get("/v1/gate/f/definition")).body).toMatchObject({ enabled: true, tags: [] });
      },
    },
    {
      name: "a new flag, also in a project without review",
      request: ["POST", "/v1/gate/new/proposals", { description: "A new one" }],
      status: 201,
      holds: { base_version: null, before: null, after: { enabled: true, description: "A new one" } },
    },
    {
      name: "a deletion",
      before: reviewed,
      request: ["POST", PATH, { delete: true }],
      status: 201,
      holds: { base_version: 1, before: { enabled: true }, after: null },
    },
    bad("nothing", { comment: "x" }, { body: expect.anything() }),
    bad("a deletion with fields", { delete: true, enabled: true }, { delete: expect.anything() }),
    bad(
      "a comment that is too long",
      { enabled: true, comment: "x".repeat(1_001) },
      { comment: expect.anything() },
    ),
    bad(
      "a change that does not fit",
      { default: { variant: "x" } },
      { default: expect.anything() },
      "gate.rule_invalid",
    ),
    bad(
      "a scheduled change in the past",
      { scheduled: [{ at: "2020-01-01T00:00:00Z", set: { enabled: true } }] },
      { "scheduled[0].at": ["must be in the future"] },
      "gate.rule_invalid",
    ),
    {
      name: "the reserved key",
      request: ["POST", "/v1/gate/config/proposals", { enabled: true }],
      status: 400,
      code: "validation_error",
    },
    {
      name: "the deletion of a flag that does not exist",
      request: ["POST", PATH, { delete: true }],
      status: 404,
      code: "flag_not_found",
    },
    {
      name: "no key",
      as: "nobody",
      request: ["POST", PATH, { enabled: true }],
      status: 401,
      code: "unauthorized",
    },
    {
      name: "a large change without credits",
      account: { balance: 0 },
      request: [
        "POST",
        PATH,
        { variants: { a: "x".repeat(9_000) }, type: "string", default: { variant: "a" } },
      ],
      status: 402,
      code: "insufficient_balance",
    },
    {
      name: "an Idempotency-Key used for another request",
      headers: { "idempotency-key": "k" },
      before: ({ account }) =>
        account.post("/v1/gate", { flag_key: "g", enabled: true }, { headers: { "idempotency-key": "k" } }),
      request: ["POST", PATH, { enabled: true }],
      status: 409,
      code: "conflict",
    },
  ]);

  test("an equal one is not stored twice", async () => {
    const account = await server.account();
    const other = await anotherKey(account);
    const first = await propose(account, { enabled: false });
    expect(await propose(account, { enabled: false })).toBe(first);
    expect(await propose(other, { enabled: false })).not.toBe(first);
    expect(await propose(account, { enabled: true })).not.toBe(first);
  });

  test(`a project has ${OPEN_PROPOSALS_MAX} open ones at most`, async () => {
    const account = await server.account({ tier: "unlimited" });
    let last = "";
    for (let index = 0; index < OPEN_PROPOSALS_MAX; index += 1)
      last = await propose(account, { enabled: true }, `f${index}`);
    expectError(await account.post(PATH, { enabled: true }), "proposal_limit_exceeded");
    await account.delete(`/v1/gate/f${OPEN_PROPOSALS_MAX - 1}/proposals/${last}`);
    await propose(account, { enabled: true });
  });
});

describe("large proposals", () => {
  const values = Array.from({ length: 100 }, (_, at) => `value-${at}-${"v".repeat(80)}`);
  const change = (name: string) => ({
    description: name,
    rules: [0, 1, 2, 3, 4].map(() => ({
      when: [{ attribute: name, op: "in", values }],
      serve: { variant: "on" },
    })),
  });
  /** Makes as many as the project can have open, and returns their ids. */
  async function fill(account: Client): Promise<string[]> {
    const ids: string[] = [];
    for (let index = 0; index < OPEN_PROPOSALS_MAX; index += 1) {
      const { status, body } = await account.post(PATH, change(`n${index}`));
      if (status !== 201) break;
      ids.push(String(body["proposal_id"]));
    }
    return ids;
  }

  test("of a project have 2 MiB together at most, and a deletion counts what it deletes", async () => {
    const account = await server.account({ tier: "unlimited" });
    expect((await save(account, change("before"))).status).toBe(201);
    const ids = await fill(account);
    // Each is stored as the change, and as the fields before and after it.
    const bytes = 3 * Buffer.byteLength(JSON.stringify(change("n0")));
    expect(ids.length).toBe(Math.floor(OPEN_PROPOSALS_BYTES_MAX / bytes));
    const { error } = expectError(await account.post(PATH, change("more")), "proposal_limit_exceeded");
    expect(error.message).toContain(`more than ${OPEN_PROPOSALS_BYTES_MAX} bytes`);
    expectError(await account.post(PATH, { delete: true }), "proposal_limit_exceeded");
    for (const id of ids.slice(0, 2)) await account.delete(`${PATH}/${id}`);
    await propose(account, { delete: true });
    await propose(account, change("another"));
  });

  test("are listed without holding up other requests", async () => {
    const account = await server.account({ tier: "unlimited" });
    await save(account, change("before"));
    for (let index = 0; index < 100; index += 1)
      await account.delete(`${PATH}/${await propose(account, change(`n${index}`))}`);
    const least = await leastMs(TURN_MS_MAX, () =>
      longestTurnMs(async () => {
        const { body } = await account.get(`${PATH}?limit=100`);
        expect((body["proposals"] as object[]).length).toBeGreaterThan(0);
      }),
    );
    expect(least).toBeLessThan(TURN_MS_MAX);
  });

  test("are outdated together without holding up other requests", async () => {
    const least = await leastMs(TURN_MS_MAX, async () => {
      const account = await server.account({ tier: "unlimited" });
      await save(account);
      const [first] = await fill(account);
      const other = await anotherKey(account);
      return longestTurnMs(async () => {
        expect((await other.post(`${PATH}/${first}/approve`)).status).toBe(200);
      });
    });
    expect(least).toBeLessThan(TURN_MS_MAX);
  });
});

describe("many proposals", () => {
  test(`a new one replaces the oldest decided one after ${PROPOSALS_PER_PROJECT_MAX}, and never an open one`, async () => {
    const account = await server.account({ tier: "unlimited" });
    const oldest = await propose(account, { enabled: true }, "open");
    const first = await propose(account, { enabled: true });
    await account.delete(`${PATH}/${first}`);
    const withdrawn = async (): Promise<void> => {
      const id = await propose(account, { enabled: true });
      expect((await account.delete(`${PATH}/${id}`)).status).toBe(200);
    };
    for (let count = 2; count < PROPOSALS_PER_PROJECT_MAX; count += 1) await withdrawn();
    expect((await account.get(`${PATH}/${first}`)).status).toBe(200);
    await withdrawn();
    expectError(await account.get(`${PATH}/${first}`), "not_found");
    expect((await account.get(`/v1/gate/open/proposals/${oldest}`)).body["status"]).toBe("open");
  }, 60_000);

  test("a page of large ones is short, and all pages together have each once", async () => {
    const account = await server.account({ tier: "unlimited" });
    const values = Array.from({ length: 100 }, (_, at) => `value-${at}`);
    const rules = Array.from({ length: 40 }, (_, at) => ({
      name: `rule ${at}`,
      when: [{ attribute: "plan", op: "in", values }],
      serve: { variant: "on" },
    }));
    const proposed = new Set<string>();
    for (let at = 0; at < 20; at += 1)
      proposed.add(await propose(account, { enabled: true, rules }, `f${at}`));
    const listed: string[] = [];
    let cursor = "";
    do {
      const page = await account.get(`/v1/gate/config/proposals?limit=100${cursor}`);
      expect(page.text.length).toBeLessThan(400_000);
      listed.push(...(page.body["proposals"] as { proposal_id: string }[]).map((item) => item.proposal_id));
      cursor = page.body["cursor"] === undefined ? "" : `&cursor=${page.body["cursor"]}`;
    } while (cursor !== "");
    expect(listed.toSorted()).toEqual([...proposed].toSorted());
    expect(listed).toHaveLength(proposed.size);
  });
});

describe("a decision", () => {
  test("by somebody else applies the change, with an entry of the audit log", async () => {
    const account = await server.account();
    await reviewed({ server, account });
    const other = await anotherKey(account);
    const id = await propose(other, { enabled: false, tags: ["a"] });
    expectError(await other.post(`${PATH}/${id}/approve`), "own_proposal");
    const approved = await account.post(`${PATH}/${id}/approve`);
    expect([approved.status, approved.body]).toMatchObject([
      200,
      { proposal_id: id, status: "applied", decided_by: { type: "key", key_id: null } },
    ]);
    expect((await account.get("/v1/gate/f/definition")).body).toMatchObject({
      enabled: false,
      tags: ["a"],
      version: 2,
    });
    expectError(await account.post(`${PATH}/${id}/approve`), "conflict");
    expectError(await account.post(`${PATH}/${id}/reject`, {}), "conflict");
    expectError(await account.delete(`${PATH}/${id}`), "conflict");
    const { entries } = (await account.get("/v1/audit?target_type=flag")).body as { entries: object[] };
    expect(entries).toMatchObject([
      {
        action: "gate.proposals.approve",
        summary: "Flag f switched off, as proposed",
        after: { tags: ["a"] },
      },
      { action: "gate.proposals.create", summary: "Change of flag f proposed", after: { proposal_id: id } },
      { action: "gate.save" },
    ]);
  });

  test("creates and deletes flags, and schedules changes in the name of who approves", async () => {
    const account = await server.account();
    await review(account);
    const other = await anotherKey(account);
    const at = new Date(server.clock.now() + HOUR_MS).toISOString();
    const made = await propose(other, { tags: ["a"], scheduled: [{ at, set: { enabled: false } }] });
    expect((await account.post(`${PATH}/${made}/approve`)).status).toBe(200);
    expect((await account.get("/v1/gate/f/definition")).body).toMatchObject({
      enabled: true,
      scheduled: [{ at, by: { key_id: null } }],
    });
    await server.clock.advance(HOUR_MS);
    expect((await account.get("/v1/gate/f")).body["enabled"]).toBe(false);
    const gone = await propose(other, { delete: true });
    expect((await account.post(`${PATH}/${gone}/approve`)).status).toBe(200);
    expect((await account.get("/v1/gate")).body).toEqual({ flags: [] });
  });

  test("on a flag that has changed is a conflict, and the proposal outdated", async () => {
    const account = await server.account();
    const other = await anotherKey(account);
    await save(account);
    const ids = [await propose(other, { enabled: false }), await propose(other, { tags: ["a"] })];
    const created = await propose(other, { enabled: true }, "new");
    await save(account, { description: "d" });
    await save(account, {}, "new");
    for (const id of ids) expectError(await account.post(`${PATH}/${id}/approve`), "conflict");
    expectError(await account.post(`/v1/gate/new/proposals/${created}/approve`), "conflict");
    const list = (await account.get("/v1/gate/config/proposals?status=outdated")).body as {
      proposals: object[];
    };
    expect(list.proposals).toHaveLength(3);
    expect((await account.get(`${PATH}/${ids[0]}`)).body).toMatchObject({
      status: "outdated",
      decided_by: null,
    });
    // One of two is approved: the other is outdated.
    const [one, two] = [await propose(other, { enabled: false }), await propose(other, { tags: ["b"] })];
    expect((await account.post(`${PATH}/${one}/approve`)).status).toBe(200);
    expectError(await account.post(`${PATH}/${two}/approve`), "conflict");
  });

  test("rejects with a comment, or withdraws", async () => {
    const account = await server.account();
    const other = await anotherKey(account);
    const [one, two] = [await propose(other, { enabled: false }), await propose(other, { enabled: true })];
    expect((await account.post(`${PATH}/${one}/reject`, { comment: "No" })).body).toMatchObject({
      status: "rejected",
      decision_comment: "No",
      decided_by: { key_id: null },
    });
    expect((await other.delete(`${PATH}/${two}`)).body).toMatchObject({ status: "withdrawn" });
    const { entries } = (await account.get("/v1/audit?target_type=flag&limit=2")).body as {
      entries: object[];
    };
    expect(entries).toMatchObject([
      { action: "gate.proposals.withdraw", summary: "Change of flag f withdrawn" },
      { action: "gate.proposals.reject", after: { proposal_id: one, status: "rejected", comment: "No" } },
    ]);
    for (const path of [`${PATH}/prop_1`, `/v1/gate/g/proposals/${one}`])
      expectError(await account.get(path), "not_found");
    for (const action of ["approve", "reject"])
      expectError(await account.post(`${PATH}/prop_1/${action}`, {}), "not_found");
    expectError(await account.delete(`${PATH}/prop_1`), "not_found");
  });

  test("by a rotated key is one by the same, and by another one of the account is not", async () => {
    const account = await server.account();
    const { body } = await account.post("/v1/keys", { prefix: "sm", name: "k", scopes: ["gate:*"] });
    const key = server.client(String(body["secret"]));
    const id = await propose(key, { enabled: true });
    const rotated = await account.post(`/v1/keys/${body["key_id"]}/rotate`, {});
    const next = server.client(String(rotated.body["new_secret"]));
    const again = await account.post(`/v1/keys/${rotated.body["new_key_id"]}/rotate`, {});
    const last = server.client(String(again.body["new_secret"]));
    for (const client of [key, next, last])
      expectError(await client.post(`${PATH}/${id}/approve`), "own_proposal");
    expect((await (await anotherKey(account)).post(`${PATH}/${id}/approve`)).status).toBe(200);
  });
});

test("lists have pages, by flag and status; proposals are stored for a year", async () => {
  const account = await server.account();
  const ids = [];
  for (let index = 0; index < 5; index += 1) ids.unshift(await propose(account, { tags: [`t${index}`] }));
  const other = await propose(account, { enabled: true }, "g");
  const page = async (path: string) => {
    const { body } = await account.get(path);
    const { proposals, cursor } = body as { proposals: { proposal_id: string }[]; cursor?: string };
    return { ids: proposals.map(({ proposal_id }) => proposal_id), cursor };
  };
  const first = await page(`${PATH}?limit=3`);
  expect(first.ids).toEqual(ids.slice(0, 3));
  expect(await page(`${PATH}?limit=3&cursor=${first.cursor}`)).toEqual({
    ids: ids.slice(3),
    cursor: undefined,
  });
  expect((await page("/v1/gate/config/proposals")).ids).toEqual([other, ...ids]);
  await account.delete(`${PATH}/${ids[0]}`);
  expect((await page("/v1/gate/config/proposals?status=withdrawn")).ids).toEqual([ids[0] ?? ""]);
  expect((await page(`${PATH}?status=open`)).ids).toEqual(ids.slice(1));
  expectError(await account.get(`${PATH}?status=none`), "validation_error");
  const { db } = server.server.kernel;
  db.execute(`UPDATE flag_proposals SET created_at = created_at - ${PROPOSALS_RETENTION_MS}`);
  await server.clock.advance(2 * HOUR_MS);
  expect(db.number("SELECT count(*) AS n FROM flag_proposals")()).toBe(0);
});

test("a key that another key has created is that key, and that of a person is the person", async () => {
  const account = await server.account({ tier: "unlimited" });
  const ann = await join(server, account, { email: "ann@example.com", role: "admin" });
  const other = await anotherKey(account);
  for (const [holder, key] of [
    [ann, await anotherKey(ann, ["gate:*", "keys:*"])],
    [null, await anotherKey(account, ["gate:*", "keys:*"])],
  ] as const) {
    const second = await anotherKey(key, ["gate:*", "keys:*"]);
    const third = await anotherKey(second);
    const { keys } = (await second.get("/v1/keys?limit=2")).body as { keys: { id: string }[] };
    const rotated = await second.post(`/v1/keys/${keys[1]?.id}/rotate`, {});
    const again = server.client(String(rotated.body["new_secret"]));
    const all = [key, second, third, again, await anotherKey(again), ...(holder === null ? [] : [holder])];
    for (const proposer of all) {
      const id = await propose(proposer, { tags: [crypto.randomUUID().slice(0, 8)] });
      for (const approver of all) expectError(await approver.post(`${PATH}/${id}/approve`), "own_proposal");
      expect((await other.post(`${PATH}/${id}/approve`)).status).toBe(200);
    }
  }
});

test("a person cannot approve what they, or a key that they have created, propose", async () => {
  const account = await server.account({ tier: "unlimited" });
  const ann = await join(server, account, { email: "ann@example.com", role: "admin" });
  const bob = await join(server, account, { email: "bob@example.com", role: "editor" });
  const id = await propose(ann, { enabled: true });
  expectError(await ann.post(`${PATH}/${id}/approve`), "own_proposal");
  const key = await anotherKey(ann);
  expectError(await key.post(`${PATH}/${id}/approve`), "own_proposal");
  const ofKey = await propose(key, { tags: ["a"] });
  expectError(await ann.post(`${PATH}/${ofKey}/approve`), "own_proposal");
  expect((await bob.post(`${PATH}/${id}/approve`)).body).toMatchObject({
    status: "applied",
    proposed_by: { type: "person", email: "ann@example.com" },
    decided_by: { type: "person", email: "bob@example.com" },
  });
});
