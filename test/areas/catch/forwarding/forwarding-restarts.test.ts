import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { AccountClient } from "../../../support/server.ts";
import { accepted, bucketOf, eventOf, eventsOf, newBucket, Receiver, setState } from "../support.ts";
import { forwardingStage } from "./forwarding-stage.ts";

const stage = forwardingStage();
const { advance, live, send, statuses, counts } = stage;

/** The account's client with the server's new address. */
function reconnected({ key, userId, email }: AccountClient): AccountClient {
  return new AccountClient(stage.server.url, key ?? "", userId, email);
}

describe("across a restart", () => {
  const restart = async () => {
    await stage.server.restart();
    stage.account = reconnected(stage.account);
  };

  test("pending events of a live bucket are forwarded in order, once", async () => {
    await live();
    for (const text of ["one", "two", "three"]) await send(text);
    await restart();
    expect(stage.receiver.hits).toEqual([]);
    await send("four");
    await advance(0);
    expect(stage.receiver.texts).toEqual(["one", "two", "three", "four"]);
    await advance(60_000);
    expect(stage.receiver.hits.length).toBe(4);
    expect(await counts()).toEqual({ pending: 0, delivered: 4, failed: 0 });
  });

  test("retries keep their time and number", async () => {
    stage.receiver.respond = () => 500;
    await live();
    const id = await send("one");
    await advance(0);
    await restart();
    await advance(999);
    expect(stage.receiver.hits.length).toBe(1);
    await advance(1);
    expect(stage.receiver.hits.length).toBe(2);
    await restart();
    await advance(4_999);
    expect(stage.receiver.hits.length).toBe(2);
    await advance(25_001);
    expect(stage.receiver.hits.length).toBe(4);
    expect(await eventOf(stage.account, stage.bucket.id, id)).toMatchObject({
      status: "failed",
      attempts: 4,
    });
  });

  test("a retry that was due while the server was down is made at the start", async () => {
    stage.receiver.respond = (_, number) => (number === 1 ? 500 : 200);
    await live();
    await send("one");
    await advance(0);
    await stage.server.server.stop();
    await advance(3_600_000);
    await stage.server.start();
    stage.account = reconnected(stage.account);
    await advance(0);
    expect(stage.receiver.hits.length).toBe(2);
    expect(await statuses()).toEqual(["delivered"]);
  });

  test("a bucket stays paused, and its backlog waits", async () => {
    await send("one");
    await restart();
    await advance(60_000);
    expect(stage.receiver.hits).toEqual([]);
    await live();
    await restart();
    await advance(0);
    expect(stage.receiver.texts).toEqual(["one"]);
  });
});

/** A random sequence of steps of one bucket. */
class Life {
  readonly target = new Receiver();
  readonly sent: string[] = [];
  private broken = false;
  private constructor(
    private client: AccountClient,
    readonly bucketId: string,
  ) {}

  static async begin(): Promise<Life> {
    const owner = await stage.server.account();
    const { id } = await newBucket(owner);
    const life = new Life(owner, id);
    life.target.respond = () => (life.broken ? 500 : 200);
    await owner.patch(`/v1/catch/buckets/${id}`, { target_url: life.target.url });
    return life;
  }

  readonly steps = {
    send: async () => this.sent.push(await accepted(stage.server, this.bucketId, `${this.sent.length}`)),
    live: () => setState(this.client, this.bucketId, "live"),
    pause: () => setState(this.client, this.bucketId, "paused"),
    break: () => {
      this.broken = true;
    },
    repair: () => {
      this.broken = false;
    },
    second: () => advance(1_000),
    minute: () => advance(60_000),
    restart: async () => {
      await stage.server.restart();
      this.client = reconnected(this.client);
    },
  };

  /** Finishes all events, and checks them. */
  async end(): Promise<void> {
    await this.steps.live();
    await this.steps.minute();
    await this.target.stop();
    const events = await eventsOf(this.client, this.bucketId);
    expect(events.map((event) => event.id)).toEqual(this.sent);
    const attempt = this.target.hits.map(({ headers }) => headers.get("x-svc-event-id"));
    for (const { id, status, attempts } of events) {
      expect(status).not.toBe("pending");
      expect(attempt.filter((event) => event === id).length).toBe(attempts);
      if (status === "failed") expect(attempts).toBe(4);
    }
    const failed = events.filter(({ status }) => status === "failed").length;
    const { events: counted } = await bucketOf(this.client, this.bucketId);
    expect(counted).toEqual({ pending: 0, delivered: events.length - failed, failed });
  }
}

describe("any sequence of events, pauses, failures and restarts", () => {
  const names = [
    "send",
    "send",
    "send",
    "live",
    "pause",
    "break",
    "repair",
    "second",
    "minute",
    "restart",
  ] as const;

  test("leaves every event delivered or failed, with correct attempts and counts", async () => {
    const steps = fc.array(fc.constantFrom(...names), { maxLength: 25 });
    await fc.assert(
      fc.asyncProperty(steps, async (taken) => {
        const life = await Life.begin();
        for (const name of taken) await life.steps[name]();
        await life.end();
      }),
      { numRuns: 25 },
    );
    expect(stage.server.logs.filter(({ level }) => level === "error")).toEqual([]);
  }, 60_000);
});
