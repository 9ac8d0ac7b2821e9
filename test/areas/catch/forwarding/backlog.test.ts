import { describe, expect, test } from "bun:test";
import { BEHIND_FROM_EVENTS } from "../../../../src/areas/catch/forwarding/forwarder.ts";
import { accepted, eventOf, stripeSignature } from "../support.ts";
import { forwardingStage } from "./forwarding-stage.ts";

const stage = forwardingStage();
const { advance, live, paused, send, statuses, counts } = stage;

describe("a paused bucket", () => {
  test("stores its events, and forwards them in order when it goes live", async () => {
    for (const text of ["one", "two", "three", "four"]) await send(text);
    await advance(3_600_000);
    expect(stage.receiver.hits).toEqual([]);
    expect(await counts()).toEqual({ pending: 4, delivered: 0, failed: 0 });
    await live();
    await advance(0);
    expect(stage.receiver.texts).toEqual(["one", "two", "three", "four"]);
    expect(await counts()).toEqual({ pending: 0, delivered: 4, failed: 0 });
  });

  test("sends a large backlog one by one", async () => {
    let now = 0;
    let most = 0;
    stage.receiver.respond = async () => {
      now += 1;
      most = Math.max(most, now);
      await Bun.sleep(0);
      now -= 1;
      return 200;
    };
    const texts = Array.from({ length: BEHIND_FROM_EVENTS + 30 }, (_, index) => `${index}`);
    for (const text of texts) await send(text);
    await live();
    await advance(0);
    expect(stage.receiver.texts).toEqual(texts);
    expect(most).toBe(1);
  });

  test("continues its backlog after a failed event", async () => {
    stage.receiver.respond = ({ body }) => (body.toString().startsWith("bad") ? 500 : 200);
    for (const text of ["bad 1", "good 1", "bad 2", "good 2"]) await send(text);
    await live();
    await advance(0);
    expect(stage.receiver.texts).toEqual(["bad 1", "good 1", "bad 2", "good 2"]);
    expect(await statuses()).toEqual(["pending", "delivered", "pending", "delivered"]);
    await advance(1_000);
    expect(stage.receiver.texts.slice(4)).toEqual(["bad 1", "bad 2"]);
    await advance(30_000);
    expect(await statuses()).toEqual(["failed", "delivered", "failed", "delivered"]);
  });

  test("keeps events that wait for a retry, and continues when it goes live", async () => {
    stage.receiver.respond = () => 500;
    await live();
    const id = await send("one");
    await advance(0);
    await paused();
    await advance(60_000);
    expect(stage.receiver.hits.length).toBe(1);
    expect(await eventOf(stage.account, stage.bucket.id, id)).toMatchObject({
      status: "pending",
      attempts: 1,
    });
    await send("two");
    await live();
    await advance(0);
    expect(stage.receiver.texts).toEqual(["one", "one", "two"]);
    expect((await eventOf(stage.account, stage.bucket.id, id)).attempts).toBe(2);
    stage.receiver.respond = () => 200;
    await advance(5_000);
    expect(stage.receiver.texts.slice(3)).toEqual(["two", "one"]);
    expect(await statuses()).toEqual(["delivered", "delivered"]);
  });

  test("that goes live before a retry is due makes it once, at its time", async () => {
    stage.receiver.respond = (_, number) => (number === 1 ? 500 : 200);
    await live();
    await send("one");
    await advance(0);
    await paused();
    await live();
    await advance(999);
    expect(stage.receiver.hits.length).toBe(1);
    await advance(1);
    expect(stage.receiver.hits.length).toBe(2);
    await advance(60_000);
    expect(stage.receiver.hits.length).toBe(2);
    expect(await statuses()).toEqual(["delivered"]);
  });

  test("stops in the middle of a backlog", async () => {
    stage.receiver.respond = async (_, number) => {
      if (number === 2) await paused();
      return 200;
    };
    for (const text of ["one", "two", "three", "four"]) await send(text);
    await live();
    await advance(0);
    expect(stage.receiver.texts).toEqual(["one", "two"]);
    expect(await statuses()).toEqual(["delivered", "delivered", "pending", "pending"]);
    await live();
    await advance(0);
    expect(stage.receiver.texts).toEqual(["one", "two", "three", "four"]);
  });

  test("that goes live while an event is in flight sends nothing twice and omits nothing", async () => {
    stage.receiver.respond = async (_, number) => {
      if (number === 2) {
        await paused();
        await live();
      }
      return 200;
    };
    for (const text of ["one", "two", "three"]) await send(text);
    await live();
    await advance(0);
    expect(stage.receiver.texts).toEqual(["one", "two", "three"]);
    expect(await counts()).toEqual({ pending: 0, delivered: 3, failed: 0 });
  });
});

describe("events that are never forwarded", () => {
  test("an event with an invalid signature, although the bucket is live", async () => {
    await stage.account.patch(`/v1/catch/buckets/${stage.bucket.id}`, { signing_secret: "s", state: "live" });
    const wrong = { "stripe-signature": stripeSignature(stage.server, "wrong", "{}") };
    const right = { "stripe-signature": stripeSignature(stage.server, "s", "{ }") };
    await accepted(stage.server, stage.bucket.id, "{}", wrong);
    await accepted(stage.server, stage.bucket.id, "{ }", right);
    await advance(60_000);
    expect(stage.receiver.texts).toEqual(["{ }"]);
    expect(await statuses()).toEqual(["failed", "delivered"]);
  });

  test("pending events of a deleted bucket", async () => {
    stage.receiver.respond = () => 500;
    await live();
    await send("one");
    await send("two");
    await advance(0);
    expect(stage.receiver.hits.length).toBe(2);
    await stage.account.delete(`/v1/catch/buckets/${stage.bucket.id}`);
    await advance(120_000);
    expect(stage.receiver.hits.length).toBe(2);
    expect(stage.server.logs.filter(({ level }) => level === "error")).toEqual([]);
  });

  test("an event that is deleted before its retry", async () => {
    stage.receiver.respond = () => 500;
    await live();
    await send("one");
    await advance(0);
    const answer = await stage.account.delete(
      `/v1/catch/${stage.bucket.id}/events?before=2099-01-01T00:00:00Z`,
    );
    expect(answer.body).toEqual({ deleted_count: 1 });
    await advance(120_000);
    expect(stage.receiver.hits.length).toBe(1);
    expect(await counts()).toEqual({ pending: 0, delivered: 0, failed: 0 });
  });
});
