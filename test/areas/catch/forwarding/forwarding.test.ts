import { describe, expect, test } from "bun:test";
import {
  BEHIND_FROM_EVENTS,
  CONCURRENT_EVENTS_MAX,
} from "../../../../src/areas/catch/forwarding/forwarder.ts";
import { RawServer } from "../../../support/raw-server.ts";
import { eventOf, eventsOf } from "../support.ts";
import { forwardingStage } from "./forwarding-stage.ts";

const stage = forwardingStage();
const { advance, live, send, statuses, counts } = stage;

const now = () => new Date(stage.server.clock.now()).toISOString();

describe("a live bucket", () => {
  test("forwards an event, and marks it as delivered", async () => {
    await live();
    const id = await send("one");
    expect(await counts()).toEqual({ pending: 1, delivered: 0, failed: 0 });
    await advance(0);
    expect(stage.receiver.texts).toEqual(["one"]);
    expect(await eventOf(stage.account, stage.bucket.id, id)).toMatchObject({
      status: "delivered",
      attempts: 1,
      response_status: 200,
      error: null,
      delivered_at: now(),
    });
    expect(await counts()).toEqual({ pending: 0, delivered: 1, failed: 0 });
    await advance(120_000);
    expect(stage.receiver.hits.length).toBe(1);
  });

  test.each([201, 204, 299])("%d is delivered", async (status) => {
    stage.receiver.respond = () => new Response(null, { status });
    await live();
    await send("one");
    await advance(0);
    expect((await eventsOf(stage.account, stage.bucket.id))[0]).toMatchObject({
      status: "delivered",
      response_status: status,
    });
  });

  test.each([300, 302, 304, 400, 404, 410, 429, 500, 503])("%d is not, and is retried", async (status) => {
    stage.receiver.respond = () => new Response(null, { status, headers: { location: "/elsewhere" } });
    await live();
    await send("one");
    await advance(0);
    expect((await eventsOf(stage.account, stage.bucket.id))[0]).toMatchObject({
      status: "pending",
      attempts: 1,
      response_status: status,
      error: `the target responded with ${status}`,
      delivered_at: null,
    });
    expect(stage.receiver.hits.length).toBe(1);
    await advance(1_000);
    expect(stage.receiver.hits.map(({ path }) => path)).toEqual([
      "/hooks?from=ninefold",
      "/hooks?from=ninefold",
    ]);
  });

  test("retries 1, 5 and 25 s after the end of the previous attempt, then the event is failed", async () => {
    stage.receiver.respond = () => 500;
    await live();
    const id = await send("one");
    await advance(0);
    for (const [delay, tries] of [
      [1_000, 1],
      [5_000, 2],
      [25_000, 3],
    ] as const) {
      expect(await eventOf(stage.account, stage.bucket.id, id)).toMatchObject({
        status: "pending",
        attempts: tries,
      });
      await advance(delay - 1);
      expect(stage.receiver.hits.length).toBe(tries);
      await advance(1);
      expect(stage.receiver.hits.length).toBe(tries + 1);
    }
    expect(await eventOf(stage.account, stage.bucket.id, id)).toMatchObject({
      status: "failed",
      attempts: 4,
      response_status: 500,
      error: "the target responded with 500",
      delivered_at: null,
    });
    expect(await counts()).toEqual({ pending: 0, delivered: 0, failed: 1 });
    await advance(24 * 3_600_000 - 1_800_000);
    expect(stage.receiver.hits.length).toBe(4);
  });

  test.each([1, 2, 3])("delivers at retry %d", async (retries) => {
    stage.receiver.respond = (_, number) => (number <= retries ? 503 : 200);
    await live();
    const id = await send("one");
    await advance(31_000);
    expect(stage.receiver.hits.length).toBe(retries + 1);
    expect(await eventOf(stage.account, stage.bucket.id, id)).toMatchObject({
      status: "delivered",
      attempts: retries + 1,
      response_status: 200,
      error: null,
    });
  });

  test("retries an unreachable target", async () => {
    await stage.receiver.stop();
    await live();
    const id = await send("one");
    await advance(31_000);
    expect(await eventOf(stage.account, stage.bucket.id, id)).toMatchObject({
      status: "failed",
      attempts: 4,
      response_status: null,
      error: expect.stringMatching(/connection/),
    });
  });

  test("retries after a closed connection, and after an invalid response", async () => {
    const raw = await new RawServer((socket, _, connection) => {
      if (connection === 1) socket.destroy();
      else socket.end("nonsense\r\n\r\n");
    }).start();
    try {
      await stage.account.patch(`/v1/catch/buckets/${stage.bucket.id}`, {
        target_url: `http://127.0.0.1:${raw.port}/`,
      });
      await live();
      const id = await send("one");
      await advance(0);
      expect((await eventOf(stage.account, stage.bucket.id, id)).error).toMatch(/closed before/);
      await advance(1_000);
      expect((await eventOf(stage.account, stage.bucket.id, id)).error).toMatch(/not HTTP/);
      expect((await eventOf(stage.account, stage.bucket.id, id)).response_status).toBeNull();
    } finally {
      raw.stop();
    }
  });

  test("sends events in order", async () => {
    await live();
    const texts = Array.from({ length: 20 }, (_, index) => `event ${index}`);
    for (const text of texts) await send(text);
    await advance(0);
    expect(stage.receiver.texts).toEqual(texts);
  });

  test("continues after a failing event", async () => {
    stage.receiver.respond = ({ body }) => (body.toString() === "bad" ? 500 : 200);
    await live();
    for (const text of ["one", "bad", "two", "three"]) await send(text);
    await advance(0);
    expect(stage.receiver.texts).toEqual(["one", "bad", "two", "three"]);
    expect(await statuses()).toEqual(["delivered", "pending", "delivered", "delivered"]);
    await advance(31_000);
    expect(await statuses()).toEqual(["delivered", "failed", "delivered", "delivered"]);
    expect(await counts()).toEqual({ pending: 0, delivered: 3, failed: 1 });
  });

  test("sends events that arrive during an attempt after it", async () => {
    let open = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    stage.receiver.respond = async (_, number) => {
      if (number === 1) await gate;
      return 200;
    };
    await live();
    await send("one");
    const advanced = advance(0);
    while (stage.receiver.hits.length === 0) await Bun.sleep(1);
    await send("two");
    await send("three");
    open();
    await advanced;
    await advance(0);
    expect(stage.receiver.texts).toEqual(["one", "two", "three"]);
    expect(await counts()).toEqual({ pending: 0, delivered: 3, failed: 0 });
  });

  test("sends several concurrently when far behind, and none twice", async () => {
    let now = 0;
    let most = 0;
    stage.receiver.respond = async () => {
      now += 1;
      most = Math.max(most, now);
      await Bun.sleep(1);
      now -= 1;
      return 200;
    };
    await live();
    const count = BEHIND_FROM_EVENTS + 20;
    const ids = await Promise.all(Array.from({ length: count }, (_, index) => send(`${index}`)));
    await advance(0);
    expect(most).toBe(CONCURRENT_EVENTS_MAX);
    expect(stage.receiver.hits.map(({ headers }) => headers.get("x-svc-event-id") ?? "").toSorted()).toEqual(
      ids.toSorted(),
    );
    expect(await counts()).toEqual({ pending: 0, delivered: count, failed: 0 });
  });
});
