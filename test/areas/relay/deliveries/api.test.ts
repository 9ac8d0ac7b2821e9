import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  BODY_BYTES_MAX,
  DEDUPLICATION_ID_LENGTH_MAX,
  TIMEOUT_MS_MAX,
  TIMEOUT_MS_MIN,
} from "../../../../src/areas/relay/deliveries/schema.ts";
import { DELAY_MS_MAX } from "../../../../src/areas/relay/domain.ts";
import { RETRIES_MAX } from "../../../../src/kernel/data/schema.ts";
import { HEADER_VALUE_LENGTH_MAX, HEADERS_MAX } from "../../../../src/kernel/outbound/headers.ts";
import { expectError } from "../../../support/errors.ts";
import { endpoint, type Scenario } from "../../../support/scenario.ts";
import { startTestServer, TEST_START_MS, type TestServer } from "../../../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

const BODY = {
  target_url: "https://hooks.example.com/in",
  method: "POST",
  delay: "1h",
  payload: { hello: "world" },
  headers: {},
};

const base64 = (bytes: number): string => Buffer.alloc(bytes, 7).toString("base64");

function refused(name: string, change: object, field: string): Scenario {
  return {
    name,
    request: ["POST", "/v1/relay", { ...BODY, ...change }],
    status: 400,
    code: "validation_error",
    after: (_, answer) => {
      expect(Object.keys(answer.body["fields"] as object)).toEqual([field]);
    },
  };
}

describe("POST /v1/relay", () => {
  endpoint(() => server, "POST /v1/relay", [
    {
      name: "a delivery",
      request: ["POST", "/v1/relay", BODY],
      status: 201,
      holds: { scheduled_for: TEST_START_MS + 3_600_000, status: "scheduled" },
      after: (_, answer) => expect(answer.body["relay_id"]).toMatch(UUID),
      spent: 1,
    },
    ...["GET", "PUT", "PATCH", "DELETE"].map(
      (method): Scenario => ({
        name: method,
        request: ["POST", "/v1/relay", { ...BODY, method }],
        status: 201,
        spent: 1,
      }),
    ),
    {
      name: "no delay",
      request: ["POST", "/v1/relay", { ...BODY, delay: "0s" }],
      status: 201,
      holds: { scheduled_for: TEST_START_MS, status: "scheduled" },
      spent: 1,
    },
    {
      name: "without payload or headers",
      request: ["POST", "/v1/relay", { target_url: BODY.target_url, method: "POST", delay: "1h" }],
      status: 201,
      spent: 1,
    },
    {
      name: "the longest delay",
      request: ["POST", "/v1/relay", { ...BODY, delay: "30d" }],
      status: 201,
      holds: { scheduled_for: TEST_START_MS + 30 * 86_400_000 },
      spent: 1,
    },
    {
      name: "the maximum number of headers, of the maximum length",
      request: [
        "POST",
        "/v1/relay",
        {
          ...BODY,
          headers: Object.fromEntries(
            Array.from({ length: HEADERS_MAX }, (_, number) => [
              `X-${number}`,
              "v".repeat(HEADER_VALUE_LENGTH_MAX),
            ]),
          ),
        },
      ],
      status: 201,
      spent: 1,
    },
    {
      name: "the latest possible time instead of a delay",
      request: ["POST", "/v1/relay", { ...BODY, delay: undefined, at: TEST_START_MS + DELAY_MS_MAX }],
      status: 201,
      holds: { scheduled_for: TEST_START_MS + DELAY_MS_MAX },
      spent: 1,
    },
    {
      name: "a past time, which means now",
      request: ["POST", "/v1/relay", { ...BODY, delay: undefined, at: 0 }],
      status: 201,
      holds: { scheduled_for: TEST_START_MS },
      spent: 1,
    },
    {
      name: "the largest body in base64",
      request: ["POST", "/v1/relay", { ...BODY, payload: undefined, body_base64: base64(BODY_BYTES_MAX) }],
      status: 201,
      spent: 1,
    },
    {
      name: "the longest retry schedule, and the shortest timeout",
      request: [
        "POST",
        "/v1/relay",
        {
          ...BODY,
          retry_schedule: [...Array(7).fill("1d"), ...Array(13).fill("0s")],
          timeout_ms: TIMEOUT_MS_MIN,
        },
      ],
      status: 201,
      spent: 1,
    },
    {
      name: "no retry, and the longest timeout",
      request: ["POST", "/v1/relay", { ...BODY, retry_schedule: [], timeout_ms: TIMEOUT_MS_MAX }],
      status: 201,
      spent: 1,
    },
    {
      name: "the longest deduplication id",
      request: ["POST", "/v1/relay", { ...BODY, deduplication_id: "☃".repeat(DEDUPLICATION_ID_LENGTH_MAX) }],
      status: 201,
      spent: 1,
    },
    {
      name: "a used deduplication id, free of charge",
      before: ({ account }) => account.post("/v1/relay", { ...BODY, deduplication_id: "one" }),
      request: [
        "POST",
        "/v1/relay",
        { ...BODY, delay: "2h", payload: { another: 1 }, deduplication_id: "one" },
      ],
      status: 200,
      holds: { scheduled_for: TEST_START_MS + 3_600_000, status: "scheduled", deduplicated: true },
    },
    refused("a delay and a time", { at: TEST_START_MS }, "at"),
    refused("a time too far ahead", { delay: undefined, at: TEST_START_MS + DELAY_MS_MAX + 1 }, "at"),
    refused("a time as a text", { delay: undefined, at: "2030-01-01T00:00:00Z" }, "at"),
    refused("a negative time", { delay: undefined, at: -1 }, "at"),
    refused("a payload and a body", { body_base64: "AA==" }, "body_base64"),
    ...["A", "AA", "AA=", "AB==", "AA==\n", "a_b-", " "].map((body_base64) =>
      refused(`a body that is no base64: ${body_base64}`, { payload: undefined, body_base64 }, "body_base64"),
    ),
    refused(
      "a body in base64 that is too large",
      { payload: undefined, body_base64: base64(BODY_BYTES_MAX + 1) },
      "body_base64",
    ),
    refused("one wait too many", { retry_schedule: Array(RETRIES_MAX + 1).fill("1s") }, "retry_schedule"),
    refused("a wait too long", { retry_schedule: ["86401s"] }, "retry_schedule"),
    refused("waits too long together", { retry_schedule: [...Array(7).fill("24h"), "1s"] }, "retry_schedule"),
    refused("an invalid wait", { retry_schedule: ["5s", "soon"] }, "retry_schedule"),
    refused("a wait as a number", { retry_schedule: [5] }, "retry_schedule.0"),
    refused("a time too short", { timeout_ms: TIMEOUT_MS_MIN - 1 }, "timeout_ms"),
    refused("a time too long", { timeout_ms: TIMEOUT_MS_MAX + 1 }, "timeout_ms"),
    refused("an empty deduplication id", { deduplication_id: "" }, "deduplication_id"),
    refused(
      "a deduplication id that is too long",
      { deduplication_id: "d".repeat(DEDUPLICATION_ID_LENGTH_MAX + 1) },
      "deduplication_id",
    ),
    refused("no target", { target_url: undefined }, "target_url"),
    refused("a target that is no URL", { target_url: "example.com" }, "target_url"),
    refused("a target that is a file", { target_url: "file:///etc/passwd" }, "target_url"),
    refused("a private target", { target_url: "http://10.0.0.1/" }, "target_url"),
    refused("a target that is this machine", { target_url: "http://localhost:9909/" }, "target_url"),
    refused("a target with credentials", { target_url: "https://u:p@example.com/" }, "target_url"),
    refused("no method", { method: undefined }, "method"),
    refused("an unknown method", { method: "TRACE" }, "method"),
    refused("a method in small letters", { method: "post" }, "method"),
    refused("no delay", { delay: undefined }, "delay"),
    refused("a delay past 30 days", { delay: "31d" }, "delay"),
    refused("a delay in weeks", { delay: "1w" }, "delay"),
    refused("a delay as a number", { delay: 60 }, "delay"),
    refused("a payload that is null", { payload: null }, "payload"),
    refused("a payload that is a list", { payload: [] }, "payload"),
    refused("a payload that is a text", { payload: "text" }, "payload"),
    refused("headers that are null", { headers: null }, "headers"),
    refused("headers that are a list", { headers: [] }, "headers"),
    refused("a header that is a number", { headers: { "X-A": 1 } }, "headers.X-A"),
    refused("a header name with a space", { headers: { "X A": "1" } }, "headers"),
    refused("an empty header name", { headers: { "": "1" } }, "headers"),
    refused("a header value with a line break", { headers: { "X-A": "1\r\nX-B: 2" } }, "headers.X-A"),
    refused(
      "a header value that is too long",
      { headers: { "X-A": "v".repeat(HEADER_VALUE_LENGTH_MAX + 1) } },
      "headers.X-A",
    ),
    refused(
      "one header too many",
      {
        headers: Object.fromEntries(
          Array.from({ length: HEADERS_MAX + 1 }, (_, number) => [`X-${number}`, ""]),
        ),
      },
      "headers",
    ),
    { name: "no key", as: "nobody", request: ["POST", "/v1/relay", BODY], status: 401, code: "unauthorized" },
    {
      name: "no credits",
      account: { balance: 0 },
      request: ["POST", "/v1/relay", BODY],
      status: 402,
      code: "insufficient_balance",
    },
    {
      name: "an Idempotency-Key used for another delivery",
      request: ["POST", "/v1/relay", BODY],
      headers: { "idempotency-key": "once" },
      before: ({ account }) =>
        account.post("/v1/relay", { ...BODY, delay: "2h" }, { headers: { "idempotency-key": "once" } }),
      status: 409,
      code: "conflict",
    },
  ]);
});

describe("the list", () => {
  test("is newest first, in pages, by status, without those of other projects", async () => {
    const account = await server.account();
    const other = await server.account();
    await other.post("/v1/relay", BODY);
    const ids: string[] = [];
    for (let number = 0; number < 5; number += 1) {
      ids.unshift(String((await account.post("/v1/relay", BODY)).body["relay_id"]));
    }
    await account.delete(`/v1/relay/${ids[1]}`);
    const list = async (query: string) => {
      const { body } = await account.get(`/v1/relay${query}`);
      const deliveries = body["deliveries"] as { relay_id: string }[];
      return {
        ids: deliveries.map(({ relay_id }) => relay_id),
        cursor: body["cursor"] as string | undefined,
      };
    };
    expect(await list("")).toEqual({ ids, cursor: undefined });
    expect((await list("?status=cancelled")).ids).toEqual([ids[1] ?? ""]);
    expect((await list("?status=scheduled")).ids).toEqual(ids.filter((_, at) => at !== 1));
    expect((await list("?status=delivering")).ids).toEqual([]);
    expect((await list("?filter=pulse")).ids).toEqual([]);
    const first = await list("?limit=2");
    const second = await list(`?limit=2&cursor=${first.cursor}`);
    const third = await list(`?limit=2&cursor=${second.cursor}`);
    expect([...first.ids, ...second.ids, ...third.ids]).toEqual(ids);
    expect(third.cursor).toBe(undefined);
    expect((await list("?limit=5")).cursor).toBe(undefined);
  });

  for (const query of [
    "since=x",
    "until=-1",
    "error=lost",
    "event_type=",
    `event_type=${"e".repeat(129)}`,
    "limit=0",
    "limit=101",
    "limit=x",
    "status=lost",
    "filter=all",
    "cursor=%25",
    "cursor=WyJhIl0",
  ]) {
    test(`400 ${query}`, async () => {
      const account = await server.account();
      expectError(await account.get(`/v1/relay?${query}`), "validation_error");
    });
  }

  test("reading, listing and cancelling are free of charge", async () => {
    const account = await server.account({ balance: 1 });
    const { body } = await account.post("/v1/relay", BODY);
    const path = `/v1/relay/${body["relay_id"]}`;
    for (const answer of [
      await account.get("/v1/relay"),
      await account.get(path),
      await account.delete(path),
    ]) {
      expect(answer.status).toBe(200);
    }
    expect((await account.get("/v1/meter/balance")).body["balance"]).toBe(0);
  });
});

describe("one delivery", () => {
  test("is returned as requested", async () => {
    const account = await server.account();
    const { body } = await account.post("/v1/relay", { ...BODY, method: "PUT" });
    const answer = await account.get(`/v1/relay/${body["relay_id"]}`);
    expect(answer.body).toEqual({
      relay_id: body["relay_id"],
      kind: "scheduled",
      event: null,
      monitor_id: null,
      schedule_id: null,
      endpoint_id: null,
      message_id: null,
      bucket_id: null,
      event_id: null,
      waiting_for: null,
      callback_of: null,
      target_url: BODY.target_url,
      method: "PUT",
      status: "scheduled",
      attempts: 0,
      response_status: null,
      error: null,
      scheduled_for: TEST_START_MS + 3_600_000,
      next_attempt_at: TEST_START_MS + 3_600_000,
      finished_at: null,
      created_at: TEST_START_MS,
      retry_schedule: null,
      timeout_ms: null,
      callback_url: null,
      failure_callback_url: null,
      attempt_log: [],
    });
  });

  test("is cancelled, and cancelling again returns the same", async () => {
    const account = await server.account();
    const { body } = await account.post("/v1/relay", BODY);
    const path = `/v1/relay/${body["relay_id"]}`;
    for (let turn = 0; turn < 2; turn += 1) {
      const answer = await account.delete(path);
      expect([answer.status, answer.body]).toEqual([
        200,
        { relay_id: body["relay_id"], status: "cancelled" },
      ]);
    }
    expect((await account.get(path)).body).toMatchObject({ status: "cancelled", finished_at: TEST_START_MS });
  });

  test("404 for another account's delivery, an unknown one, and an invalid id", async () => {
    const [account, other] = [await server.account(), await server.account()];
    const { body } = await account.post("/v1/relay", BODY);
    for (const id of [body["relay_id"], "0190a0a0-0000-7000-8000-000000000000", "x", "%00", "..%2F"]) {
      expectError(await other.get(`/v1/relay/${id}`), "not_found");
      expectError(await other.delete(`/v1/relay/${id}`), "not_found");
    }
    expect((await account.get(`/v1/relay/${body["relay_id"]}`)).body["status"]).toBe("scheduled");
  });
});

test("custom headers and keys are not in plain text in the database file", async () => {
  const account = await server.account();
  await account.post("/v1/relay", { ...BODY, headers: { Authorization: "Bearer not-for-everyone" } });
  for (const name of ["ninefold.db", "ninefold.db-wal"]) {
    const bytes = Buffer.from(await Bun.file(`${server.folder}/${name}`).arrayBuffer());
    expect(bytes.includes("not-for-everyone")).toBe(false);
  }
});
