import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { NAME_LENGTH_MAX } from "../../../src/kernel/data/schema.ts";
import type { Answer } from "../../support/client.ts";
import { expectError } from "../../support/errors.ts";
import { type AccountClient, startTestServer, TEST_START_MS, type TestServer } from "../../support/server.ts";

let server: TestServer;
let account: AccountClient;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  account = await server.account();
});
afterAll(() => server.stop());

const BODY = { url: "https://site.example.com:8443/health", interval: 300_000 };

const create = (change: object, by = account): Promise<Answer> =>
  by.post("/v1/pulse", { ...BODY, ...change });
const created = async (change: object, by = account): Promise<string> => {
  const { status, body, text } = await create(change, by);
  expect([status, text]).toEqual([201, expect.any(String)]);
  return String(body["id"]);
};
const found = async (query: string, by = account): Promise<unknown[]> => {
  const { body } = await by.get(`/v1/pulse?${query}`);
  expect(body["cursor"]).toBeUndefined();
  return (body["monitors"] as { monitor_id: string }[]).map(({ monitor_id }) => monitor_id);
};

describe("a monitor's name", () => {
  test("is by default the host with its port, which lists do not find", async () => {
    const id = await created({});
    expect((await account.get(`/v1/pulse/${id}`)).body["name"]).toBe("site.example.com:8443");
    expect(await found("name=site.example.com:8443")).toEqual([]);
  });

  test("finds the monitor, also with other filters, only in its project", async () => {
    const id = await created({ name: "Shop ü" });
    expect(await found(`name=${encodeURIComponent("Shop ü")}`)).toEqual([id]);
    expect(await found(`name=${encodeURIComponent("Shop ü")}&status=unknown&limit=1`)).toEqual([id]);
    expect(await found(`name=${encodeURIComponent("Shop ü")}&status=down`)).toEqual([]);
    expect(await found(`name=${encodeURIComponent("Shop ü")}&active=true`)).toEqual([id]);
    expect(await found(`name=${encodeURIComponent("Shop ü")}&active=false`)).toEqual([]);
    expect(await found("name=shop")).toEqual([]);
    const other = await server.account();
    expect(await found(`name=${encodeURIComponent("Shop ü")}`, other)).toEqual([]);
    expect(await created({ name: "Shop ü" }, other)).not.toBe(id);
  });

  test("is unique in its project: 409 identifies the other monitor, for creation and update", async () => {
    const id = await created({ name: "taken" });
    const error = expectError(await create({ name: "taken" }), "monitor_name_taken");
    expect(error).toMatchObject({ monitor_id: id });
    expect(error.error.message).toContain(id);
    const other = await created({ name: "free" });
    const put = (change: object) => account.put(`/v1/pulse/${other}`, change);
    expectError(await put({ name: "taken" }), "monitor_name_taken");
    expect((await put({ name: "free", timeout: 2_000 })).body).toMatchObject({
      name: "free",
      timeout: 2_000,
    });
    // Given up, changed or deleted, it is free again.
    expect((await account.put(`/v1/pulse/${id}`, { name: null })).body["name"]).toBe("site.example.com:8443");
    expect((await put({ name: "taken" })).body["name"]).toBe("taken");
    await account.delete(`/v1/pulse/${other}`);
    await created({ name: "taken" });
  });

  test("in use is reported before the limit of monitors", async () => {
    const full = await server.account({ tier: "free" });
    for (let number = 0; number < 10; number += 1) await created({ name: `${number}` }, full);
    expectError(await create({ name: "3" }, full), "monitor_name_taken");
    expectError(await create({ name: "10" }, full), "monitor_limit_exceeded");
  });

  test("has 1 to 100 characters on one line", async () => {
    await created({ name: "🔔".repeat(NAME_LENGTH_MAX) });
    const wrong = [
      "",
      "x".repeat(NAME_LENGTH_MAX + 1),
      "a\nb",
      "a\rb",
      "a\u0000b",
      "a\u2028b",
      "a\u0085b",
      7,
    ];
    for (const name of wrong) {
      expectError(await create({ name }), "validation_error");
      expectError(
        await account.get(`/v1/pulse?name=${encodeURIComponent(String(name))}`.replace("=7", "=")),
        "validation_error",
      );
    }
  });
});

test("settings are returned by get and list, headers only by name", async () => {
  const reader = await server.account();
  const body = {
    url: "https://a.example.com/",
    name: "all",
    method: "POST",
    body: "{}",
    timeout: 2_000,
    interval: 60_000,
    consecutive_threshold: 3,
    cooldown_ms: 60_000,
    notify_recovery: true,
    webhook_url: "https://hooks.example.com/in",
    email_alert: false,
  };
  const id = await created({ ...body, headers: { Authorization: "Bearer secret", "X-Probe": "1" } }, reader);
  const expected = {
    monitor_id: id,
    ...body,
    header_names: ["Authorization", "X-Probe"],
    type: "http",
    depends_on: null,
    flapping: false,
    maintenance: false,
    active: true,
    status: "unknown",
    latency_ms: null,
    last_checked_at: null,
    consecutive_failures: 0,
    channels: null,
    incident_id: null,
    created_at: TEST_START_MS / 1_000,
    updated_at: TEST_START_MS / 1_000,
  };
  const one = await reader.get(`/v1/pulse/${id}`);
  expect(one.body).toMatchObject(expected);
  const list = await reader.get("/v1/pulse");
  expect(list.body["monitors"]).toEqual([one.body]);
  expect(one.text + list.text).not.toContain("Bearer");
  await reader.put(`/v1/pulse/${id}`, { active: false, headers: null });
  expect((await reader.get(`/v1/pulse/${id}`)).body).toMatchObject({ active: false, header_names: [] });
});
