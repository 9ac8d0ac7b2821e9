import { beforeEach, describe, expect, test } from "bun:test";
import { CALLBACK_BODY_BYTES_MAX } from "../../../../src/areas/relay/deliveries/exchange.ts";
import { DEDUPLICATE_HOURS_MAX } from "../../../../src/areas/relay/domain.ts";
import { expectError } from "../../../support/errors.ts";
import { relayStage } from "../support.ts";

beforeEach(() => stage.server.clock.advance(10));
const stage = relayStage();

const HOUR_MS = 3_600_000;
const advance = (ms: number) => stage.server.clock.advance(ms);
async function settle(): Promise<void> {
  for (let turn = 0; turn < 6; turn += 1) await advance(1);
}
const balance = async () => Number((await stage.account.get("/v1/meter/balance")).body["balance"]);
const setBalance = (value: number) =>
  stage.server.operator.patch(`/v1/admin/accounts/${stage.account.userId}`, { balance: value });
const callbacks = async () =>
  (await stage.account.get("/v1/relay")).body["deliveries"] as Record<string, unknown>[];
const takenAt = (path: string) => stage.sink.take().filter((one) => one.path === path);

test("callback_url receives both outcomes as a signed delivery of its own, for 1 credit", async () => {
  const before = await balance();
  const relay_id = await stage.sent({ callback_url: stage.sink.url("/done") });
  await settle();
  const [received] = takenAt("/done");
  const callback = (await callbacks()).find(({ kind }) => kind === "callback");
  expect(callback).toMatchObject({ callback_of: relay_id, status: "delivered", method: "POST", event: null });
  expect(received?.headers.get("webhook-id")).toBe(String(callback?.["relay_id"]));
  expect(received?.headers.get("webhook-signature")).toStartWith("v1,");
  const body = JSON.parse(received?.body ?? "") as Record<string, unknown>;
  expect(body).toMatchObject({ relay_id, status: "delivered", attempts: 1, error: null });
  expect(body["response"]).toMatchObject({
    status: 200,
    headers: expect.any(Object),
    body: expect.any(String),
  });
  expect(await balance()).toBe(before - 2);
  // Never a callback of a callback.
  await settle();
  expect((await callbacks()).length).toBe(2);
  expect((await stage.account.get("/v1/relay?filter=deliveries")).body["deliveries"]).toHaveLength(2);
});

test("failure_callback_url receives failures in place of callback_url, and nothing else", async () => {
  const urls = { callback_url: stage.sink.url("/done"), failure_callback_url: stage.sink.url("/failed") };
  stage.sink.answersBy(({ path }) => (path === "/hook" ? 400 : 200));
  const relay_id = await stage.sent(urls);
  await settle();
  const received = stage.sink.take();
  expect(received.map(({ path }) => path)).toEqual(["/hook", "/failed"]);
  expect(JSON.parse(received[1]?.body ?? "")).toMatchObject({
    relay_id,
    status: "failed",
    response: { status: 400 },
    error: expect.stringContaining("400"),
  });
  stage.sink.answersBy(() => 200);
  await stage.sent({ failure_callback_url: stage.sink.url("/failed") });
  await settle();
  expect(stage.sink.take().map(({ path }) => path)).toEqual(["/hook"]);
});

test("a cancelled delivery has none, and a resend calls back again", async () => {
  const { body } = await stage.ask({ callback_url: stage.sink.url("/done"), delay: "1h" });
  await stage.account.delete(`/v1/relay/${String(body["relay_id"])}`);
  await settle();
  expect(stage.sink.take()).toEqual([]);
  stage.sink.answersBy(({ path }) => (path === "/hook" ? 400 : 200));
  const relayId = await stage.sent({ callback_url: stage.sink.url("/done") });
  await settle();
  expect(takenAt("/done")).toHaveLength(1);
  stage.sink.answersBy(() => 200);
  await stage.account.post(`/v1/relay/${relayId}/resend`);
  await settle();
  expect(takenAt("/done").map(({ body: text }) => JSON.parse(text).status)).toEqual(["delivered"]);
});

test("without a response, response is null and error says why", async () => {
  const relay_id = await stage.sent({
    target_url: "http://127.0.0.1:9/",
    retry_schedule: [],
    callback_url: stage.sink.url("/done"),
  });
  await settle();
  const [received] = takenAt("/done");
  expect(JSON.parse(received?.body ?? "")).toEqual({
    relay_id,
    status: "failed",
    attempts: 1,
    response: null,
    error: expect.any(String),
  });
});

test("a long body is cut to 64 KiB, and one that is not text is base64", async () => {
  const bodies = new Map<string, Uint8Array | string>([
    ["/long", "x".repeat(CALLBACK_BODY_BYTES_MAX + 1)],
    ["/whole", "x".repeat(CALLBACK_BODY_BYTES_MAX)],
    ["/bytes", new Uint8Array([255, 0, 1])],
  ]);
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: ({ url }) =>
      new Response(bodies.get(new URL(url).pathname), {
        headers: { "set-cookie": "session=1", "content-type": "text/plain" },
      }),
  });
  try {
    const found: Record<string, Record<string, unknown>> = {};
    for (const path of bodies.keys()) {
      await stage.sent({
        target_url: `http://127.0.0.1:${server.port}${path}`,
        callback_url: stage.sink.url("/done"),
      });
      await settle();
      found[path] = JSON.parse(takenAt("/done")[0]?.body ?? "").response;
    }
    const body = "x".repeat(CALLBACK_BODY_BYTES_MAX);
    expect(found["/long"]).toMatchObject({ body, truncated: true, headers: { "set-cookie": "[secret]" } });
    expect(found["/whole"]?.["body"] === body && found["/whole"]["truncated"] === undefined).toBe(true);
    expect(found["/bytes"]).toMatchObject({ body: null, body_base64: "/wAB" });
  } finally {
    await server.stop(true);
  }
});

test("it is retried by the schedule of Standard Webhooks, also over a restart", async () => {
  stage.sink.answersBy(({ path }) => (path === "/done" ? 500 : 200));
  await stage.sent({ callback_url: stage.sink.url("/done") });
  await settle();
  expect(takenAt("/done")).toHaveLength(1);
  await stage.restart();
  await advance(6_000);
  expect(takenAt("/done")).toHaveLength(1);
  stage.sink.answersBy(() => 200);
  await advance(6 * 60_000);
  expect(takenAt("/done")).toHaveLength(1);
  expect(await callbacks()).toMatchObject([{ status: "delivered", attempts: 3 }, {}]);
});

test("without credits the callback has failed, and can be resent", async () => {
  await stage.ask({ callback_url: stage.sink.url("/done") });
  await setBalance(0);
  await settle();
  const callback = (await callbacks()).find(({ kind }) => kind === "callback");
  expect(callback).toMatchObject({ status: "failed", attempts: 0, error: "the account has no credits left" });
  expect(takenAt("/done")).toEqual([]);
  await setBalance(10);
  await stage.account.post(`/v1/relay/${String(callback?.["relay_id"])}/resend`);
  await settle();
  expect(takenAt("/done")).toHaveLength(1);
});

test("both URLs are checked, and shown without what may be a secret", async () => {
  const body = { target_url: stage.sink.url("/hook"), method: "POST", delay: "0s" };
  for (const field of ["callback_url", "failure_callback_url"]) {
    const answer = await stage.account.post("/v1/relay", { ...body, [field]: "ftp://example.com" });
    expect(Object.keys(expectError(answer, "validation_error").fields ?? {})).toEqual([field]);
  }
  const origin = new URL(stage.sink.url("/")).origin;
  for (const [url, shown] of [
    ["/done", `${origin}/done`],
    ["/done?token=1", `${origin}/[secret]`],
    ["/T012345/abcdefgh01234567", `${origin}/[secret]`],
  ] as const) {
    const relayId = String((await stage.ask({ callback_url: origin + url })).body["relay_id"]);
    expect(await stage.read(relayId)).toMatchObject({ callback_url: shown, failure_callback_url: null });
  }
});

test("a secret in the URL of a callback is shown nowhere, and cannot be searched for", async () => {
  const secret = "t0ken-0123456789abcdef";
  stage.sink.answersBy(({ path }) => (path.startsWith("/done") ? 410 : 200));
  const relayId = await stage.sent({ callback_url: stage.sink.url(`/done/${secret}`) });
  await settle();
  expect(takenAt(`/done/${secret}`)).toHaveLength(1);
  const shown = `${new URL(stage.sink.url("/")).origin}/[secret]`;
  const [callback] = await callbacks();
  expect(callback).toMatchObject({ kind: "callback", callback_of: relayId, target_url: shown });
  const overview = await stage.account.get("/v1/overview?details=true");
  expect(overview.body).toMatchObject({ relay: { failing: [{ target_url: shown, failed: 1 }] } });
  await stage.account.post("/v1/relay/schedules", {
    cron: "* * * * *",
    target_url: stage.sink.url("/hook"),
    failure_callback_url: stage.sink.url(`/done/${secret}`),
  });
  const of = async (path: string) => (await stage.account.get(path)).text;
  const account = await stage.server.operator.get(`/v1/admin/accounts/${stage.account.userId}/export`);
  expect(account.text).toContain(shown);
  const texts = [
    overview.text,
    account.text,
    await of(`/v1/relay/${String(callback?.["relay_id"])}`),
    await of("/v1/relay/schedules"),
    await of("/v1/audit"),
    await of(`/v1/relay?q=${secret.slice(0, 8)}`),
  ];
  for (const text of texts) expect(text).not.toContain(secret);
  expect(texts.at(-1)).toBe('{"deliveries":[]}');
});

test("runs of schedules with a target_url call back", async () => {
  const created = await stage.account.post("/v1/relay/schedules", {
    cron: "* * * * *",
    target_url: stage.sink.url("/hook"),
    callback_url: stage.sink.url("/done?token=secret"),
  });
  expect(created.body["callback_url"]).toBe(`${new URL(stage.sink.url("/")).origin}/[secret]`);
  const path = `/v1/relay/schedules/${String(created.body["schedule_id"])}`;
  await stage.account.post(`${path}/run`);
  await settle();
  expect(takenAt("/done?token=secret").length + stage.sink.take().length).toBeGreaterThan(0);
  const wrong = await stage.account.patch(path, { callback_url: "ftp://example.com" });
  expectError(wrong, "validation_error");
  expect((await stage.account.patch(path, { callback_url: null })).body["callback_url"]).toBeNull();
  await stage.account.delete(path);
});

describe("deduplication: content", () => {
  const ask = async (change: object = {}) => (await stage.ask({ deduplication: "content", ...change })).body;

  test("compares method, URL and body within deduplicate_hours, and not headers, time or callbacks", async () => {
    const first = await ask({ deduplicate_hours: 2 });
    const same = { headers: { "X-A": "1" }, delay: "5m", callback_url: stage.sink.url("/done") };
    expect(await ask({ ...same, deduplicate_hours: 2 })).toMatchObject({
      relay_id: first["relay_id"],
      deduplicated: true,
    });
    const others = [
      { payload: { n: 2 } },
      { method: "PUT" },
      { target_url: stage.sink.url("/other") },
      { payload: undefined, body_base64: Buffer.from('{"n": 1}').toString("base64") },
    ];
    for (const other of others) expect((await ask(other))["deduplicated"]).toBeUndefined();
    await advance(2 * HOUR_MS);
    expect((await ask({ deduplicate_hours: 2 }))["deduplicated"]).toBeUndefined();
  });

  test("deduplicate_hours also lengthens deduplication_id, up to a week", async () => {
    const id = { deduplication: undefined, deduplication_id: "a" };
    const first = await ask(id);
    await advance(25 * HOUR_MS);
    expect(await ask({ ...id, deduplicate_hours: 48 })).toMatchObject({ relay_id: first["relay_id"] });
    expect((await ask(id))["deduplicated"]).toBeUndefined();
  });

  test("rejects settings that contradict each other", async () => {
    const body = { target_url: stage.sink.url("/hook"), method: "POST", delay: "0s" };
    for (const wrong of [
      { deduplication: "content", deduplication_id: "a" },
      { deduplication: "other" },
      { deduplicate_hours: 2 },
      { deduplication: "content", deduplicate_hours: 0 },
      { deduplication: "content", deduplicate_hours: DEDUPLICATE_HOURS_MAX + 1 },
    ])
      expectError(await stage.account.post("/v1/relay", { ...body, ...wrong }), "validation_error");
  });
});
