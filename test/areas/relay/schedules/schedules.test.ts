import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { NAME_LENGTH_MAX, RETRIES_MAX } from "../../../../src/kernel/data/schema.ts";
import { DEFAULT_TIERS, NO_LIMIT, TIER_NAMES } from "../../../../src/kernel/limits/tiers.ts";
import { HEADERS_MAX } from "../../../../src/kernel/outbound/headers.ts";
import { expectError } from "../../../support/errors.ts";
import { endpoint, type Scenario, type World } from "../../../support/scenario.ts";
import {
  type AccountClient,
  startTestServer,
  TEST_START_MS,
  type TestServer,
} from "../../../support/server.ts";

const SCHEDULES = "/v1/relay/schedules";
const BODY = { cron: "30 2 * * *", target_url: "https://hooks.example.com/in" };
const DAY_MS = 86_400_000;
/** The next half past two, UTC. */
const FIRST = Date.UTC(2026, 2, 11, 2, 30);
const UNKNOWN = `sch_${"0".repeat(32)}`;
const LONG_LIST = Array.from({ length: 60 }, (_, minute) => minute).join(",");

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

async function create(account: AccountClient, change: object = {}): Promise<Record<string, unknown>> {
  const { status, body, text } = await account.post(SCHEDULES, { ...BODY, ...change });
  expect(status, text).toBe(201);
  return body;
}

/** Scenarios of rejected fields, by name. */
function refusals(request: (body: object) => Scenario["request"]): Scenario[] {
  const refused = (name: string, change: object, ...fields: string[]): Scenario => ({
    name,
    request: request(change),
    status: 400,
    code: "validation_error",
    after: (_, answer) => expect(Object.keys(answer.body["fields"] as object)).toEqual(fields),
  });
  return [
    refused("a minute too many", { cron: "61 * * * *" }, "cron"),
    refused("seconds", { cron: "0 * * * * *" }, "cron"),
    refused("four fields", { cron: "* * * *" }, "cron"),
    refused("an invalid name", { cron: "@reboot" }, "cron"),
    refused("a moment", { cron: "2026-05-01T00:00:00" }, "cron"),
    refused("no cron", { cron: "" }, "cron"),
    refused("a cron too long", { cron: `${LONG_LIST} ${LONG_LIST.slice(0, 87)} * * *` }, "cron"),
    refused("a day that never comes", { cron: "0 0 30 2 *" }, "cron"),
    refused("an unknown zone", { time_zone: "Europe/Bielefeld" }, "time_zone"),
    refused("an offset", { time_zone: "+01:00" }, "time_zone"),
    refused("a zone too long", { time_zone: "E".repeat(65) }, "time_zone"),
    refused("a private target", { target_url: "http://127.0.0.1:9/" }, "target_url"),
    refused("no method in capitals", { method: "post" }, "method"),
    refused("a payload that is no object", { payload: [1] }, "payload"),
    refused("a header's name", { headers: { "a b": "c" } }, "headers"),
    refused("headers too many", { headers: manyHeaders(HEADERS_MAX + 1) }, "headers"),
    refused("another state", { state: "disabled" }, "state"),
    refused("another missed", { missed: "all" }, "missed"),
    refused("another overlap", { overlap: "queue" }, "overlap"),
    refused("a start that is no time", { starts_at: "now" }, "starts_at"),
    refused(
      "an end before the start",
      { starts_at: FIRST + 9 * DAY_MS, ends_at: FIRST + 8 * DAY_MS },
      "ends_at",
    ),
    refused("an end before the next time", { ends_at: FIRST - 1 }, "ends_at"),
    refused("waits too many", { retry_schedule: Array(RETRIES_MAX + 1).fill("1s") }, "retry_schedule"),
    refused("a wait too long", { retry_schedule: ["25h"] }, "retry_schedule"),
    refused("a name on two lines", { name: "a\nb" }, "name"),
    refused(
      "a type of this server's own",
      { target_url: undefined, event_type: "ninefold.due" },
      "event_type",
    ),
    refused("an invalid type", { target_url: undefined, event_type: "a b" }, "event_type"),
  ];
}

function manyHeaders(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`X-H-${at}`, "v"]));
}

describe("POST /v1/relay/schedules", () => {
  const request = (change: object): Scenario["request"] => ["POST", SCHEDULES, { ...BODY, ...change }];
  const fill = async ({ account }: World) => {
    for (let count = 0; count < DEFAULT_TIERS.free.schedules; count += 1) await create(account);
  };
  endpoint(() => server, "POST /v1/relay/schedules", [
    {
      name: "a schedule with its defaults",
      request: request({}),
      status: 201,
      holds: {
        ...BODY,
        name: null,
        time_zone: "UTC",
        method: "POST",
        event_type: null,
        payload: {},
        headers: {},
        state: "live",
        missed: "once",
        overlap: "allow",
        starts_at: null,
        ends_at: null,
        retry_schedule: null,
        next_run_at: FIRST,
        last_run_at: null,
        last_relay_id: null,
        runs: 0,
        skipped: 0,
        created_at: TEST_START_MS,
        updated_at: TEST_START_MS,
        next_runs: [0, 1, 2, 3, 4].map((days) => FIRST + days * DAY_MS),
      },
      after: (_, answer) => expect(answer.body["schedule_id"]).toMatch(/^sch_[0-9a-f]{32}$/),
    },
    {
      name: "all fields at their limits",
      request: request({
        name: "n".repeat(NAME_LENGTH_MAX),
        time_zone: "America/New_York",
        method: "PUT",
        headers: { ...manyHeaders(HEADERS_MAX - 1), Authorization: "Bearer hidden" },
        state: "paused",
        missed: "skip",
        overlap: "skip",
        retry_schedule: Array(RETRIES_MAX).fill("1s"),
        payload: { n: 1 },
        starts_at: FIRST,
        ends_at: FIRST + 9 * DAY_MS,
      }),
      status: 201,
      holds: { state: "paused", next_run_at: null, next_runs: [], payload: { n: 1 } },
      lacks: ["hidden"],
    },
    { name: "the longest cron", request: request({ cron: `${LONG_LIST} * * * *` }), status: 201 },
    { name: "a macro as the expression", request: request({ cron: "@hourly" }), status: 201 },
    ...refusals(request),
    { name: "no cron", request: request({ cron: undefined }), status: 400, code: "validation_error" },
    { name: "no target", request: request({ target_url: undefined }), status: 400, code: "validation_error" },
    {
      name: "a target and a message",
      request: request({ event_type: "report.due" }),
      status: 400,
      code: "validation_error",
    },
    { name: "no key", as: "nobody", request: request({}), status: 401, code: "unauthorized" },
    {
      name: "a taken name",
      before: ({ account }) => create(account, { name: "nightly" }),
      request: request({ name: "nightly" }),
      status: 409,
      code: "schedule_name_taken",
    },
  ]);

  test("the limits are the documented ones, and apply to each project", async () => {
    expect(TIER_NAMES.map((tier) => DEFAULT_TIERS[tier].schedules)).toEqual([5, 20, 200, 2_000, NO_LIMIT]);
    const account = await server.account({ tier: "free" });
    await fill({ server, account });
    const project = await account.post("/v1/projects", { name: "Shop" });
    const terms = { prefix: "sm", name: "k", scopes: ["*"] };
    const key = await account.post(`/v1/projects/${project.body.id}/keys`, terms);
    expect((await server.client(String(key.body.secret)).post(SCHEDULES, BODY)).status).toBe(201);
    expectError(await account.post(SCHEDULES, BODY), "schedule_limit_exceeded");
  });

  test("numbers of the payload keep their digits", async () => {
    const account = await server.account();
    const { key, url } = { key: account.key, url: `${server.url}${SCHEDULES}` };
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const body = `{"cron":"@daily","target_url":"https://example.com/","payload":{"n":12345678901234567890}}`;
    const answer = await fetch(url, { method: "POST", headers, body });
    expect(answer.status).toBe(201);
    expect(await answer.text()).toContain('"payload":{"n":12345678901234567890}');
  });
});

describe("PATCH /v1/relay/schedules/{schedule_id}", () => {
  const patched = async (account: AccountClient, id: unknown, change: object) => {
    const answer = await account.patch(`${SCHEDULES}/${id}`, change);
    expect(answer.status, answer.text).toBe(200);
    return answer.body;
  };

  test("changes only the given fields", async () => {
    const account = await server.account();
    const before = await create(account, { name: "a", payload: { n: 1 }, headers: { "X-A": "b" } });
    const id = before["schedule_id"];
    expect(await patched(account, id, {})).toEqual(before);
    const at = { cron: "0 9 * * *", time_zone: "Europe/Berlin" };
    const after = await patched(account, id, at);
    const next = Date.UTC(2026, 2, 11, 8);
    // Summer time begins on the 29th of March.
    const next_runs = [0, 1, 2, 3, 4].map((days) => next + days * DAY_MS);
    expect(after).toEqual({ ...before, ...at, next_run_at: next, next_runs });
    const cleared = { name: null, headers: {}, payload: {}, retry_schedule: null };
    expect(await patched(account, id, cleared)).toEqual({ ...after, ...cleared, secret_digest: undefined });
    const bounds = { starts_at: next + DAY_MS, ends_at: next + 2 * DAY_MS };
    const bounded = await patched(account, id, bounds);
    expect(bounded).toMatchObject({ ...bounds, next_runs: [next + DAY_MS, next + 2 * DAY_MS] });
    const open = await patched(account, id, { starts_at: null, ends_at: null });
    expect(open["next_runs"]).toEqual(next_runs);
  });

  test("has no next run while paused, and the next one from now when live again", async () => {
    const account = await server.account();
    const { schedule_id } = await create(account);
    const paused = await patched(account, schedule_id, { state: "paused" });
    expect(paused).toMatchObject({ state: "paused", next_run_at: null, next_runs: [] });
    expect(await patched(account, schedule_id, { cron: "0 3 * * *" })).toMatchObject({ next_run_at: null });
    const live = await patched(account, schedule_id, { state: "live" });
    expect(live["next_run_at"]).toBe(Date.UTC(2026, 2, 11, 3));
  });

  test("400 for each invalid field, as at creation, without a change", async () => {
    const account = await server.account({ tier: "unlimited" });
    const before = await create(account);
    const path = `${SCHEDULES}/${before["schedule_id"]}`;
    for (const { name, request, code, after } of refusals((body) => ["PATCH", path, body])) {
      const answer = await account.patch(path, request[2]);
      expect([name, answer.status]).toEqual([name, 400]);
      expectError(answer, code ?? "");
      await after?.({ server, account }, answer);
    }
    expect((await account.get(path)).body).toEqual(before);
  });

  test("409 identifies the schedule with the name; null frees it", async () => {
    const account = await server.account();
    const first = await create(account, { name: "a" });
    const second = await create(account, { name: "b" });
    const taken = await account.patch(`${SCHEDULES}/${second["schedule_id"]}`, { name: "a" });
    expect(expectError(taken, "schedule_name_taken")).toMatchObject({ schedule_id: first["schedule_id"] });
    await patched(account, first["schedule_id"], { name: null });
    await patched(account, second["schedule_id"], { name: "a" });
  });
});

describe("a schedule in a path", () => {
  const REQUESTS: readonly (readonly [method: string, path: string, body: object | undefined])[] = [
    ["GET", "", undefined],
    ["PATCH", "", { name: "x" }],
    ["DELETE", "", undefined],
    ["POST", "/run", undefined],
  ];
  test.each(REQUESTS)("%s …/{schedule_id}%s: 400, 401, 404", async (method, end, body) => {
    const [owner, stranger] = [await server.account(), await server.account()];
    const own = await create(owner);
    for (const id of [UNKNOWN, "x", own["schedule_id"]])
      expectError(await stranger.send(method, `${SCHEDULES}/${id}${end}`, body), "not_found");
    const nobody = server.client(null);
    expectError(await nobody.send(method, `${SCHEDULES}/${UNKNOWN}${end}`, body), "unauthorized");
    const long = `${SCHEDULES}/${"x".repeat(65)}${end}`;
    expectError(await owner.send(method, long, body), "validation_error");
    expect((await owner.get(`${SCHEDULES}/${own["schedule_id"]}`)).body).toEqual(own);
  });

  test("POST …/run: 402 without credits", async () => {
    const account = await server.account({ balance: 0 });
    const { schedule_id } = await create(account);
    expectError(await account.post(`${SCHEDULES}/${schedule_id}/run`), "insufficient_balance");
  });
});

test("GET /v1/relay/schedules: by name; without payloads", async () => {
  const account = await server.account();
  for (const name of ["a", "b", "c"]) await create(account, { name, payload: { n: 1 } });
  const list = async (query: string) =>
    (await account.get(`${SCHEDULES}?${query}`)).body["schedules"] as { name: string }[];
  expect((await list("name=b")).map(({ name }) => name)).toEqual(["b"]);
  expect(await list("name=d")).toEqual([]);
  expect((await list("limit=2")).some((item) => "payload" in item)).toBe(false);
  for (const query of ["limit=0", "limit=101"])
    expectError(await account.get(`${SCHEDULES}?${query}`), "validation_error");
  expectError(await server.client(null).get(SCHEDULES), "unauthorized");
});
