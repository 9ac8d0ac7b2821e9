import { describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import {
  BATCH_DELIVERIES_MAX,
  BATCH_MAX,
  PAYLOAD_ADVISED_BYTES,
} from "../../../../src/areas/relay/messages/schema.ts";
import { expectError } from "../../../support/errors.ts";
import { messagingStage } from "../messages-support.ts";

const { stage, messaging } = messagingStage();

const balance = async () => Number((await stage.account.get("/v1/meter/balance")).body["balance"]);
const post = (body: object) => stage.account.post("/v1/relay/messages", body);
const MESSAGE = { event_type: "invoice.paid", payload: { n: 1 } };

describe("a message is sent to", () => {
  test("endpoints that match by type, channels and filter", async () => {
    await messaging.endpoint("/all");
    await messaging.endpoint("/exact", { event_types: ["invoice.paid"] });
    await messaging.endpoint("/family", { event_types: ["invoice.*"] });
    await messaging.endpoint("/eu", { channels: ["eu"] });
    await messaging.endpoint("/large", { filter: { amount: { $gte: 100 } } });
    await messaging.endpoint("/own", { event_types: ["ninefold.*"] });
    const went = async (change: object): Promise<string[]> => {
      await post({ ...MESSAGE, ...change });
      await messaging.settle();
      return messaging.takenPaths();
    };
    expect(await went({})).toEqual(["/all", "/eu", "/exact", "/family"]);
    expect(await went({ event_type: "invoice" })).toEqual(["/all", "/eu"]);
    expect(await went({ event_type: "invoice.paid.late" })).toEqual(["/all", "/eu", "/family"]);
    expect(await went({ channels: ["us"] })).toEqual(["/all", "/exact", "/family"]);
    expect(await went({ channels: ["us", "eu"] })).toEqual(["/all", "/eu", "/exact", "/family"]);
    expect(await went({ event_type: "x", payload: { amount: 100 } })).toEqual(["/all", "/eu", "/large"]);
  });

  test("no endpoint of another project, and no disabled or deleted one", async () => {
    await messaging.endpoint("/mine");
    const gone = await messaging.endpoint("/gone");
    await stage.account.delete(`/v1/relay/endpoints/${gone}`);
    expect(Object.keys(await messaging.send())).toHaveLength(1);
    await stage.anew();
    expect(await messaging.send()).toEqual({});
  });
});

describe("a receiver gets", () => {
  test("an envelope, or the payload alone, with the original digits", async () => {
    await messaging.endpoint("/envelope");
    await messaging.endpoint("/raw", { format: "raw" });
    const now = stage.server.clock.now();
    const text = '{"event_type":"invoice.paid","payload":{"id":12345678901234567890,"ü":1.50}}';
    const answer = await stage.account.send("POST", "/v1/relay/messages", text);
    expect(answer.status, answer.text).toBe(201);
    await messaging.settle();
    const bodies = Object.fromEntries(stage.sink.take().map(({ path, body }) => [path, body]));
    const data = '{"id":12345678901234567890,"ü":1.50}';
    const timestamp = new Date(now).toISOString();
    expect(bodies).toEqual({
      "/raw": data,
      "/envelope": `{"type":"invoice.paid","timestamp":"${timestamp}","data":${data}}`,
    });
    const read = await stage.account.get(`/v1/relay/messages/${answer.body["message_id"]}`);
    expect(read.text).toContain(`"payload":${data}`);
  });

  test("the message's id, a signature by the endpoint's secret, its headers, and of X-Svc-* only the delivery's id", async () => {
    const secret = `whsec_${Buffer.alloc(24, 7).toString("base64")}`;
    const headers = { "X-Source": "billing", "webhook-id": "forged" };
    const id = await messaging.endpoint("/a", { secret, headers });
    const sent = await messaging.send({ n: 1 }, { message_id: "invoice-1" });
    await messaging.settle();
    const [received] = stage.sink.take();
    const get = (name: string) => received?.headers.get(name);
    expect([get("webhook-id"), get("x-svc-delivery-id"), get("x-source")]).toEqual([
      "invoice-1",
      sent[id] ?? "",
      "billing",
    ]);
    expect([get("x-svc-signature"), get("x-svc-timestamp"), get("content-type")]).toEqual([
      null,
      null,
      "application/json",
    ]);
    const signed = `invoice-1.${get("webhook-timestamp")}.${received?.body}`;
    const expected = createHmac("sha256", Buffer.alloc(24, 7)).update(signed).digest("base64");
    expect(get("webhook-signature")).toBe(`v1,${expected}`);
    expect(await stage.read(sent[id] ?? "")).toMatchObject({
      kind: "endpoint",
      event: "invoice.paid",
      endpoint_id: id,
      message_id: "invoice-1",
      status: "delivered",
      method: "POST",
      target_url: stage.sink.url("/a"),
    });
  });

  test("the same body and id in every attempt", async () => {
    await messaging.endpoint("/a", { retry_schedule: ["1m"] });
    stage.sink.answers(500, 200);
    await messaging.send();
    await messaging.settle();
    await stage.server.clock.advance(70_000);
    const [first, second] = stage.sink.take();
    expect(second?.body).toBe(first?.body ?? "");
    expect(second?.headers.get("webhook-id")).toBe(first?.headers.get("webhook-id") ?? "");
    expect(second?.headers.get("webhook-timestamp")).not.toBe(first?.headers.get("webhook-timestamp") ?? "");
  });
});

describe("POST /v1/relay/messages", () => {
  test("costs 1 credit and 1 for each delivery; without enough credits nothing is sent", async () => {
    for (const path of ["/a", "/b"]) await messaging.endpoint(path);
    const before = await balance();
    expect((await post(MESSAGE)).status).toBe(201);
    expect(await balance()).toBe(before - 3);
    await stage.account.post("/v1/meter/deduct", { amount: before - 5 });
    expectError(await post(MESSAGE), "insufficient_balance");
    expect(await balance()).toBe(2);
    await messaging.settle();
    expect(messaging.takenPaths()).toEqual(["/a", "/b"]);
    expect((await stage.account.get("/v1/relay/messages")).body.messages).toHaveLength(1);
  });

  test("returns the first message for a repeated message_id or deduplication_id, free of charge", async () => {
    await messaging.endpoint("/a");
    const body = { ...MESSAGE, message_id: "m-1", deduplication_id: "d-1" };
    const first = await post(body);
    const before = await balance();
    const second = await post({ ...MESSAGE, message_id: "m-1", payload: { other: 1 } });
    expect([second.status, second.body]).toEqual([200, { ...first.body, deduplicated: true }]);
    const third = await post({ ...MESSAGE, message_id: "m-2", deduplication_id: "d-1" });
    expect([third.status, third.body["message_id"]]).toEqual([200, "m-1"]);
    expect(await balance()).toBe(before);
    await stage.server.clock.advance(86_400_000);
    expect((await post({ ...MESSAGE, deduplication_id: "d-1" })).status).toBe(201);
    expect((await post({ ...MESSAGE, message_id: "m-1" })).status).toBe(200);
    await stage.server.clock.advance(7 * 86_400_000);
    expect((await post({ ...MESSAGE, message_id: "m-1" })).status).toBe(201);
  });

  test("deduplication ids of deliveries are separate", async () => {
    await stage.ask({ deduplication_id: "d-1" });
    expect((await post({ ...MESSAGE, deduplication_id: "d-1" })).status).toBe(201);
  });

  test("applies delay and at, and warns about a long payload", async () => {
    await messaging.endpoint("/a");
    await messaging.send({ n: 1 }, { delay: "1m" });
    await messaging.send({ n: 2 }, { at: stage.server.clock.now() + 30_000 });
    await stage.server.clock.advance(90_000);
    expect(messaging.takenNumbers()).toEqual([2, 1]);
    const sized = (bytes: number) => ({ ...MESSAGE, payload: { a: "x".repeat(bytes - 8) } });
    expect((await post(sized(PAYLOAD_ADVISED_BYTES))).body["warning"]).toBeUndefined();
    expect((await post(sized(PAYLOAD_ADVISED_BYTES + 1))).body["warning"]).toBeString();
  });

  test.each<[name: string, change: object, field: string]>([
    ["no type", { event_type: undefined }, "event_type"],
    ["a type of the server's own", { event_type: "ninefold.endpoint.failing" }, "event_type"],
    ["a type with a blank", { event_type: "a b" }, "event_type"],
    ["a type too long", { event_type: "a".repeat(129) }, "event_type"],
    ["a payload that is a list", { payload: [] }, "payload"],
    ["too many channels", { channels: Array(11).fill("a") }, "channels"],
    ["an id with a dot", { message_id: "a.b" }, "message_id"],
    ["an id too long", { message_id: "a".repeat(65) }, "message_id"],
    ["both times", { delay: "1m", at: 1 }, "at"],
    ["a delay too long", { delay: "31d" }, "delay"],
    ["an empty deduplication_id", { deduplication_id: "" }, "deduplication_id"],
  ])("400 %s", async (_, change, field) => {
    const answer = await post({ ...MESSAGE, ...change });
    expectError(answer, "validation_error");
    expect(Object.keys(answer.body["fields"] as object)).toEqual([field]);
  });

  test("accepts the longest type and id, and the most channels", async () => {
    const most = {
      event_type: "a".repeat(128),
      message_id: "b".repeat(64),
      channels: Array.from({ length: 10 }, (_, n) => `c${n}`),
    };
    expect((await post({ ...MESSAGE, ...most })).status).toBe(201);
  });
});

describe("POST /v1/relay/messages/batch", () => {
  const batch = (messages: object[]) => stage.account.post("/v1/relay/messages/batch", { messages });

  test("sends all messages in order, for their sum", async () => {
    await messaging.endpoint("/a", { max_concurrency: 1 });
    const before = await balance();
    const given = Array.from({ length: 5 }, (_, n) => ({ ...MESSAGE, payload: { n }, message_id: `m-${n}` }));
    const answer = await batch([...given, { ...MESSAGE, message_id: "m-0" }]);
    expect(answer.status, answer.text).toBe(201);
    const messages = answer.body.messages as { message_id: string; deduplicated?: boolean }[];
    expect(messages.map(({ message_id }) => message_id)).toEqual(["m-0", "m-1", "m-2", "m-3", "m-4", "m-0"]);
    expect(messages.map(({ deduplicated }) => deduplicated)).toEqual([...Array(5).fill(undefined), true]);
    expect(await balance()).toBe(before - 10);
    await messaging.settle();
    expect(messaging.takenNumbers()).toEqual([0, 1, 2, 3, 4]);
    const again = await batch(given);
    expect([again.status, await balance()]).toEqual([201, before - 10]);
  });

  test("an error in one message rejects all, and names the field", async () => {
    await messaging.endpoint("/a");
    for (const [fault, field] of [
      [{ payload: 1 }, "messages.1.payload"],
      [{ event_type: "ninefold.x" }, "messages.1.event_type"],
      [{ at: 9_999_999_999_999 }, "messages.1.at"],
    ] as const) {
      const answer = await batch([MESSAGE, { ...MESSAGE, ...fault }]);
      expectError(answer, "validation_error");
      expect(Object.keys(answer.body["fields"] as object)).toEqual([field]);
    }
    expectError(await batch([]), "validation_error");
    expectError(await batch(Array(BATCH_MAX + 1).fill(MESSAGE)), "validation_error");
    expect((await stage.account.get("/v1/relay/messages")).body.messages).toEqual([]);
    expect((await batch(Array(BATCH_MAX).fill(MESSAGE))).status).toBe(201);
  });

  test("accepts at most 10,000 deliveries", async () => {
    const endpoints = BATCH_DELIVERIES_MAX / BATCH_MAX;
    const paused = () => messaging.endpoint("/a", { state: "paused" });
    await Promise.all(Array.from({ length: endpoints }, paused));
    const one = await messaging.endpoint("/a", { state: "paused" });
    const refused = await batch(Array(BATCH_MAX).fill(MESSAGE));
    expectError(refused, "validation_error");
    expect(Object.keys(refused.body["fields"] as object)).toEqual(["messages"]);
    expect((await stage.account.get("/v1/relay/messages")).body.messages).toEqual([]);
    await stage.account.delete(`/v1/relay/endpoints/${one}`);
    const answer = await batch(Array(BATCH_MAX).fill(MESSAGE));
    const messages = answer.body.messages as { deliveries: unknown[] }[];
    expect(messages.map(({ deliveries }) => deliveries.length)).toEqual(Array(BATCH_MAX).fill(endpoints));
  });
});

describe("messages are returned", () => {
  test("in pages, newest first, filtered", async () => {
    for (let n = 0; n < 5; n += 1)
      await post({ ...MESSAGE, event_type: n % 2 === 0 ? "even" : "odd", message_id: `m-${n}` });
    const listed = async (query: string): Promise<[string[], unknown]> => {
      const { body } = await stage.account.get(`/v1/relay/messages?${query}`);
      const ids = (body.messages as { message_id: string }[]).map(({ message_id }) => message_id);
      return [ids, body["cursor"]];
    };
    const [first, cursor] = await listed("limit=3");
    expect(first).toEqual(["m-4", "m-3", "m-2"]);
    expect(await listed(`limit=3&cursor=${cursor}`)).toEqual([["m-1", "m-0"], undefined]);
    expect(await listed("event_type=odd")).toEqual([["m-3", "m-1"], undefined]);
    const [odd, more] = await listed("event_type=odd&limit=1");
    expect([odd, typeof more]).toEqual([["m-3"], "string"]);
    expect((await listed(`event_type=odd&limit=1&cursor=${more}`))[0]).toEqual(["m-1"]);
    const now = stage.server.clock.now();
    expect((await listed(`since=${now + 1}`))[0]).toEqual([]);
    expect((await listed(`until=${now + 1}&since=${now}`))[0]).toHaveLength(5);
    expectError(await stage.account.get("/v1/relay/messages?limit=0"), "validation_error");
    expectError(await stage.account.get("/v1/relay/messages?cursor=x"), "validation_error");
  });

  test("with their deliveries; deliveries are listed by endpoint and message", async () => {
    const [a, b] = [await messaging.endpoint("/a"), await messaging.endpoint("/b")];
    const first = await messaging.send({ n: 1 }, { message_id: "m-1" });
    const second = await messaging.send({ n: 2 }, { message_id: "m-2" });
    await messaging.settle();
    const { body } = await stage.account.get("/v1/relay/messages/m-1");
    expect(body).toMatchObject({ message_id: "m-1", channels: [], payload: { n: 1 } });
    expect(body["deliveries"]).toMatchObject([
      { relay_id: first[a], endpoint_id: a, status: "delivered", attempts: 1, response_status: 200 },
      { relay_id: first[b], endpoint_id: b, status: "delivered" },
    ]);
    expect(await stage.listed(`endpoint_id=${a}`)).toEqual([second[a] ?? "", first[a] ?? ""]);
    expect(await stage.listed("message_id=m-2")).toEqual([second[b] ?? "", second[a] ?? ""]);
    expect(await stage.listed(`endpoint_id=${a}&message_id=m-2`)).toEqual([second[a] ?? ""]);
    expect(await stage.listed("endpoint_id=ep_none")).toEqual([]);
    expectError(await stage.account.get("/v1/relay/messages/m-3"), "not_found");
  });
});
