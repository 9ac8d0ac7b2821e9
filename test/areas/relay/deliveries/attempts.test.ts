import { describe, expect, test } from "bun:test";
import {
  STORED_BODY_BYTES_MAX,
  STORED_HEADER_BYTES_MAX,
} from "../../../../src/areas/relay/deliveries/exchange.ts";
import { type Attempt, relayStage } from "../support.ts";

const stage = relayStage();

/** The first attempt of a delivery to a target with this response. */
async function attempt(answer: Response, change: object = {}): Promise<Attempt> {
  stage.sink.answers(answer);
  const [first] = (await stage.read(await stage.sent(change))).attempt_log;
  if (first === undefined) throw new Error("no attempt was made");
  return first;
}

describe("an attempt", () => {
  test("records request and response", async () => {
    const answer = new Response("thanks ☃", { status: 202, headers: { "X-Trace": "abc" } });
    const found = await attempt(answer, { headers: { "X-Source": "billing", "User-Agent": "Acme/1" } });
    const [received] = stage.sink.take();
    const header = (name: string) => received?.headers.get(name) as string;
    expect(found.request_headers).toEqual({
      "Content-Type": "application/json",
      "X-Source": "[secret]",
      "User-Agent": "Acme/1",
      "X-Svc-Timestamp": header("x-svc-timestamp"),
      "X-Svc-Signature": header("x-svc-signature"),
      "X-Svc-Delivery-Id": header("x-svc-delivery-id"),
      "X-Ninefold-Hops": "1",
      "webhook-id": header("webhook-id"),
      "webhook-timestamp": header("webhook-timestamp"),
      "webhook-signature": header("webhook-signature"),
    });
    expect(found.response_headers).toMatchObject({ "x-trace": "abc" });
    expect(found).toMatchObject({
      response_status: 202,
      response_body: "thanks ☃",
      remote_address: "127.0.0.1",
    });
    expect(found).not.toHaveProperty("response_body_base64");
  });

  test("stores no secret of either side", async () => {
    const body = { Authorization: "Bearer hidden-1", "X-Api-Key": "hidden-2", Cookie: "hidden-3" };
    const answer = new Response("ok", { headers: { "Set-Cookie": "hidden-4", "X-Auth-Token": "hidden-5" } });
    const found = await attempt(answer, { headers: body });
    expect(stage.sink.take()[0]?.headers.get("authorization")).toBe("Bearer hidden-1");
    expect(JSON.stringify(found)).not.toContain("hidden");
    expect(found.request_headers).toMatchObject({ Authorization: "[secret]", Cookie: "[secret]" });
    expect(found.response_headers).toMatchObject({ "set-cookie": "[secret]", "x-auth-token": "[secret]" });
    for (const name of ["ninefold.db", "ninefold.db-wal"]) {
      const bytes = Buffer.from(await Bun.file(`${stage.server.folder}/${name}`).arrayBuffer());
      expect(bytes.includes("hidden-")).toBe(false);
    }
  });

  test("without a response records none", async () => {
    const id = await stage.sent({ target_url: "http://127.0.0.1:9/", retry_schedule: [] });
    const delivery = await stage.read(id);
    expect(delivery).toMatchObject({ status: "failed", attempts: 1 });
    expect(delivery.attempt_log[0]).toMatchObject({
      response_status: null,
      response_headers: null,
      response_body: null,
      remote_address: null,
      request_headers: { "webhook-id": id },
    });
  });

  test("with an empty response records an empty text", async () => {
    expect(await attempt(new Response(null, { status: 204 }))).toMatchObject({ response_body: "" });
  });

  test("without a body, or with bytes, has the matching content type", async () => {
    const get = await attempt(new Response(""), { method: "GET" });
    expect(get.request_headers).toMatchObject({ "Content-Type": "application/json" });
    const bytes = { payload: undefined, body_base64: "AP8=" };
    const raw = await attempt(new Response(""), bytes);
    expect(raw.request_headers).toMatchObject({ "Content-Type": "application/octet-stream" });
    const named = await attempt(new Response(""), { ...bytes, headers: { "content-type": "text/xml" } });
    expect(named.request_headers).toMatchObject({ "content-type": "text/xml" });
    expect(stage.sink.take().map(({ headers }) => headers.get("content-type"))).toEqual([
      "application/json",
      "application/octet-stream",
      "text/xml",
    ]);
  });
});

describe("the stored body of a response", () => {
  test.each([
    ["as much as is stored", "x".repeat(STORED_BODY_BYTES_MAX), STORED_BODY_BYTES_MAX],
    ["more", "x".repeat(STORED_BODY_BYTES_MAX + 1), STORED_BODY_BYTES_MAX],
    ["a character that is cut", `${"x".repeat(STORED_BODY_BYTES_MAX - 1)}☃`, STORED_BODY_BYTES_MAX - 1],
    ["64 KiB", "x".repeat(65_536), STORED_BODY_BYTES_MAX],
  ])("%s", async (_, text, length) => {
    expect((await attempt(new Response(text))).response_body).toBe(text.slice(0, length));
  });

  test("is base64 when it is not text, also when the cut splits a character", async () => {
    for (const bytes of [Buffer.of(0xff, 0, 1), Buffer.from("☃").subarray(0, 2)]) {
      const found = await attempt(new Response(bytes));
      expect(found).toMatchObject({ response_body: null, response_body_base64: bytes.toString("base64") });
    }
  });
});

test("the first headers of a response are stored, up to the limit", async () => {
  const headers = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`x-${at}`, "v".repeat(100)]));
  const found = await attempt(new Response("", { headers }));
  const kept = JSON.stringify(found.response_headers);
  expect(kept.length).toBeLessThanOrEqual(STORED_HEADER_BYTES_MAX);
  expect(kept.length).toBeGreaterThan(STORED_HEADER_BYTES_MAX - 200);
});

describe("settings of a delivery", () => {
  test("retries after its delays, varied by a tenth, then it fails", async () => {
    stage.sink.answersBy(() => 503);
    const id = await stage.sent({ retry_schedule: ["2m", "0s"] });
    await stage.server.clock.advance(3_600_000);
    const delivery = await stage.read(id);
    expect(delivery).toMatchObject({ status: "failed", attempts: 3, retry_schedule: ["2m", "0s"] });
    const at = delivery.attempt_log.map(({ started_at }) => started_at);
    const waits = at.map((time, number) => time - (at[number - 1] ?? time));
    expect(waits[1]).toBeGreaterThanOrEqual(108_000);
    expect(waits[1]).toBeLessThanOrEqual(132_000);
    expect(waits[2]).toBe(0);
  });

  test("makes one attempt without delays", async () => {
    stage.sink.answersBy(() => 503);
    const id = await stage.sent({ retry_schedule: [] });
    expect(await stage.read(id)).toMatchObject({ status: "failed", attempts: 1, retry_schedule: [] });
  });

  test("has its timeout", async () => {
    stage.sink.answersBy(() => Bun.sleep(1_500).then(() => new Response()));
    const id = await stage.sent({ timeout_ms: 1_000, retry_schedule: [] });
    expect(await stage.read(id)).toMatchObject({
      status: "failed",
      timeout_ms: 1_000,
      error: "timeout: no complete response within 1000 ms",
    });
    expect(await stage.read(await stage.sent({ timeout_ms: 5_000 }))).toMatchObject({ status: "delivered" });
  });

  test("sends its exact bytes, also after a restart", async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, at) => at));
    let got: ArrayBuffer | null = null;
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: async (request) => {
        got = await request.arrayBuffer();
        return new Response();
      },
    });
    try {
      const terms = { target_url: String(server.url), delay: "5s", payload: undefined };
      const { body } = await stage.ask({ ...terms, body_base64: bytes.toString("base64") });
      await stage.restart();
      await stage.server.clock.advance(5_000);
      expect(await stage.read(String(body["relay_id"]))).toMatchObject({ status: "delivered" });
      expect(Buffer.from(got ?? new ArrayBuffer(0))).toEqual(bytes);
    } finally {
      await server.stop(true);
    }
  });

  test("sends no body with GET", async () => {
    await stage.sent({ method: "GET", payload: undefined, body_base64: "AP8=" });
    expect(stage.sink.take().map(({ body }) => body)).toEqual([""]);
  });
});
