import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import fc from "fast-check";
import { BEHIND_FROM_EVENTS, EVENTS_AT_ONCE_MAX } from "../../../src/areas/catch/forwarder.ts";
import { RawServer } from "../../support/raw-server.ts";
import { AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import {
  accepted,
  type BucketBody,
  bucketOf,
  eventOf,
  eventsOf,
  type Hit,
  LOOPBACK_ALLOWED,
  newBucket,
  Receiver,
  setState,
  stripeSignature,
} from "./support.ts";

let server: TestServer;
let receiver: Receiver;
let account: AccountClient;
let bucket: BucketBody;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true, args: LOOPBACK_ALLOWED });
});
afterAll(() => server.stop());
beforeEach(async () => {
  receiver = new Receiver();
  account = await server.account();
  bucket = await newBucket(account, { target_url: receiver.url });
});
afterEach(() => receiver.stop());

const advance = (ms: number) => server.clock.advance(ms);
const live = () => setState(account, bucket.id, "live");
const paused = () => setState(account, bucket.id, "paused");
const send = (body: string) => accepted(server, bucket.id, body);
const statuses = async () => (await eventsOf(account, bucket.id)).map(({ status }) => status);
const counts = async () => (await bucketOf(account, bucket.id)).events;
const now = () => new Date(server.clock.now()).toISOString();

describe("a live bucket", () => {
  test("sends an event on, and says so of it", async () => {
    await live();
    const id = await send("one");
    expect(await counts()).toEqual({ pending: 1, delivered: 0, failed: 0 });
    await advance(0);
    expect(receiver.texts).toEqual(["one"]);
    expect(await eventOf(account, bucket.id, id)).toMatchObject({
      status: "delivered",
      attempts: 1,
      response_status: 200,
      error: null,
      delivered_at: now(),
    });
    expect(await counts()).toEqual({ pending: 0, delivered: 1, failed: 0 });
    await advance(120_000);
    expect(receiver.hits.length).toBe(1);
  });

  test.each([201, 204, 299])("%d is delivered", async (status) => {
    receiver.respond = () => new Response(null, { status });
    await live();
    await send("one");
    await advance(0);
    expect((await eventsOf(account, bucket.id))[0]).toMatchObject({
      status: "delivered",
      response_status: status,
    });
  });

  test.each([300, 302, 304, 400, 404, 410, 429, 500, 503])(
    "%d is not, and is tried again",
    async (status) => {
      receiver.respond = () => new Response(null, { status, headers: { location: "/elsewhere" } });
      await live();
      await send("one");
      await advance(0);
      expect((await eventsOf(account, bucket.id))[0]).toMatchObject({
        status: "pending",
        attempts: 1,
        response_status: status,
        error: `the target answered with status ${status}`,
        delivered_at: null,
      });
      expect(receiver.hits.length).toBe(1);
      await advance(1_000);
      expect(receiver.hits.map(({ path }) => path)).toEqual(["/hooks?from=ninefold", "/hooks?from=ninefold"]);
    },
  );

  test("retries after 1, 5 and 25 s from the end of the try before, then the event has failed", async () => {
    receiver.respond = () => 500;
    await live();
    const id = await send("one");
    await advance(0);
    for (const [delay, tries] of [
      [1_000, 1],
      [5_000, 2],
      [25_000, 3],
    ] as const) {
      expect(await eventOf(account, bucket.id, id)).toMatchObject({ status: "pending", attempts: tries });
      await advance(delay - 1);
      expect(receiver.hits.length).toBe(tries);
      await advance(1);
      expect(receiver.hits.length).toBe(tries + 1);
    }
    expect(await eventOf(account, bucket.id, id)).toMatchObject({
      status: "failed",
      attempts: 4,
      response_status: 500,
      error: "the target answered with status 500",
      delivered_at: null,
    });
    expect(await counts()).toEqual({ pending: 0, delivered: 0, failed: 1 });
    await advance(24 * 3_600_000 - 1_800_000);
    expect(receiver.hits.length).toBe(4);
  });

  test.each([1, 2, 3])("delivered at try %d after the first", async (retries) => {
    receiver.respond = (_, number) => (number <= retries ? 503 : 200);
    await live();
    const id = await send("one");
    await advance(31_000);
    expect(receiver.hits.length).toBe(retries + 1);
    expect(await eventOf(account, bucket.id, id)).toMatchObject({
      status: "delivered",
      attempts: retries + 1,
      response_status: 200,
      error: null,
    });
  });

  test("a target that is not there is tried like any other", async () => {
    await receiver.stop();
    await live();
    const id = await send("one");
    await advance(31_000);
    expect(await eventOf(account, bucket.id, id)).toMatchObject({
      status: "failed",
      attempts: 4,
      response_status: null,
      error: expect.stringMatching(/connection/),
    });
  });

  test("a connection that breaks off, and an answer that is none", async () => {
    const raw = await new RawServer((socket, _, connection) => {
      if (connection === 1) socket.destroy();
      else socket.end("nonsense\r\n\r\n");
    }).start();
    try {
      await account.patch(`/v1/catch/buckets/${bucket.id}`, { target_url: `http://127.0.0.1:${raw.port}/` });
      await live();
      const id = await send("one");
      await advance(0);
      expect((await eventOf(account, bucket.id, id)).error).toMatch(/closed before/);
      await advance(1_000);
      expect((await eventOf(account, bucket.id, id)).error).toMatch(/not HTTP/);
      expect((await eventOf(account, bucket.id, id)).response_status).toBeNull();
    } finally {
      raw.stop();
    }
  });

  test("events arrive in their order", async () => {
    await live();
    const texts = Array.from({ length: 20 }, (_, index) => `event ${index}`);
    for (const text of texts) await send(text);
    await advance(0);
    expect(receiver.texts).toEqual(texts);
  });

  test("a failing event lets the next ones pass", async () => {
    receiver.respond = ({ body }) => (body.toString() === "bad" ? 500 : 200);
    await live();
    for (const text of ["one", "bad", "two", "three"]) await send(text);
    await advance(0);
    expect(receiver.texts).toEqual(["one", "bad", "two", "three"]);
    expect(await statuses()).toEqual(["delivered", "pending", "delivered", "delivered"]);
    await advance(31_000);
    expect(await statuses()).toEqual(["delivered", "failed", "delivered", "delivered"]);
    expect(await counts()).toEqual({ pending: 0, delivered: 3, failed: 1 });
  });

  test("what comes in while another one is on its way follows it", async () => {
    let open = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    receiver.respond = async (_, number) => {
      if (number === 1) await gate;
      return 200;
    };
    await live();
    await send("one");
    const advanced = advance(0);
    while (receiver.hits.length === 0) await Bun.sleep(1);
    await send("two");
    await send("three");
    open();
    await advanced;
    await advance(0);
    expect(receiver.texts).toEqual(["one", "two", "three"]);
    expect(await counts()).toEqual({ pending: 0, delivered: 3, failed: 0 });
  });

  test("far behind, it takes several at once, and none twice", async () => {
    let now = 0;
    let most = 0;
    receiver.respond = async () => {
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
    expect(most).toBe(EVENTS_AT_ONCE_MAX);
    expect(receiver.hits.map(({ headers }) => headers.get("x-svc-event-id") ?? "").toSorted()).toEqual(
      ids.toSorted(),
    );
    expect(await counts()).toEqual({ pending: 0, delivered: count, failed: 0 });
  });
});

describe("a paused bucket", () => {
  test("keeps its events, and sends them on in their order when it goes live", async () => {
    for (const text of ["one", "two", "three", "four"]) await send(text);
    await advance(3_600_000);
    expect(receiver.hits).toEqual([]);
    expect(await counts()).toEqual({ pending: 4, delivered: 0, failed: 0 });
    await live();
    await advance(0);
    expect(receiver.texts).toEqual(["one", "two", "three", "four"]);
    expect(await counts()).toEqual({ pending: 0, delivered: 4, failed: 0 });
  });

  test("a large backlog goes one by one, however far behind", async () => {
    let now = 0;
    let most = 0;
    receiver.respond = async () => {
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
    expect(receiver.texts).toEqual(texts);
    expect(most).toBe(1);
  });

  test("an event that fails does not hold up the backlog behind it", async () => {
    receiver.respond = ({ body }) => (body.toString().startsWith("bad") ? 500 : 200);
    for (const text of ["bad 1", "good 1", "bad 2", "good 2"]) await send(text);
    await live();
    await advance(0);
    expect(receiver.texts).toEqual(["bad 1", "good 1", "bad 2", "good 2"]);
    expect(await statuses()).toEqual(["pending", "delivered", "pending", "delivered"]);
    await advance(1_000);
    expect(receiver.texts.slice(4)).toEqual(["bad 1", "bad 2"]);
    await advance(30_000);
    expect(await statuses()).toEqual(["failed", "delivered", "failed", "delivered"]);
  });

  test("pausing keeps what waits for a retry; going live goes on where it was", async () => {
    receiver.respond = () => 500;
    await live();
    const id = await send("one");
    await advance(0);
    await paused();
    await advance(60_000);
    expect(receiver.hits.length).toBe(1);
    expect(await eventOf(account, bucket.id, id)).toMatchObject({ status: "pending", attempts: 1 });
    await send("two");
    await live();
    await advance(0);
    expect(receiver.texts).toEqual(["one", "one", "two"]);
    expect((await eventOf(account, bucket.id, id)).attempts).toBe(2);
    receiver.respond = () => 200;
    await advance(5_000);
    expect(receiver.texts.slice(3)).toEqual(["two", "one"]);
    expect(await statuses()).toEqual(["delivered", "delivered"]);
  });

  test("paused and live again before the retry is due: it is tried then, once", async () => {
    receiver.respond = (_, number) => (number === 1 ? 500 : 200);
    await live();
    await send("one");
    await advance(0);
    await paused();
    await live();
    await advance(999);
    expect(receiver.hits.length).toBe(1);
    await advance(1);
    expect(receiver.hits.length).toBe(2);
    await advance(60_000);
    expect(receiver.hits.length).toBe(2);
    expect(await statuses()).toEqual(["delivered"]);
  });

  test("pausing in the middle of a backlog stops it there", async () => {
    receiver.respond = async (_, number) => {
      if (number === 2) await paused();
      return 200;
    };
    for (const text of ["one", "two", "three", "four"]) await send(text);
    await live();
    await advance(0);
    expect(receiver.texts).toEqual(["one", "two"]);
    expect(await statuses()).toEqual(["delivered", "delivered", "pending", "pending"]);
    await live();
    await advance(0);
    expect(receiver.texts).toEqual(["one", "two", "three", "four"]);
  });

  test("paused and live again while an event is on its way: nothing is sent twice or left behind", async () => {
    receiver.respond = async (_, number) => {
      if (number === 2) {
        await paused();
        await live();
      }
      return 200;
    };
    for (const text of ["one", "two", "three"]) await send(text);
    await live();
    await advance(0);
    expect(receiver.texts).toEqual(["one", "two", "three"]);
    expect(await counts()).toEqual({ pending: 0, delivered: 3, failed: 0 });
  });
});

describe("what is never sent on", () => {
  test("an event whose signature is not valid, though the bucket is live", async () => {
    await account.patch(`/v1/catch/buckets/${bucket.id}`, { signing_secret: "s", state: "live" });
    const wrong = { "stripe-signature": stripeSignature(server, "wrong", "{}") };
    const right = { "stripe-signature": stripeSignature(server, "s", "{ }") };
    await accepted(server, bucket.id, "{}", wrong);
    await accepted(server, bucket.id, "{ }", right);
    await advance(60_000);
    expect(receiver.texts).toEqual(["{ }"]);
    expect(await statuses()).toEqual(["failed", "delivered"]);
  });

  test("events of a bucket that is deleted while they wait", async () => {
    receiver.respond = () => 500;
    await live();
    await send("one");
    await send("two");
    await advance(0);
    expect(receiver.hits.length).toBe(2);
    await account.delete(`/v1/catch/buckets/${bucket.id}`);
    await advance(120_000);
    expect(receiver.hits.length).toBe(2);
    expect(server.logs.filter(({ level }) => level === "error")).toEqual([]);
  });

  test("an event that is deleted while it waits for its retry", async () => {
    receiver.respond = () => 500;
    await live();
    await send("one");
    await advance(0);
    const answer = await account.delete(`/v1/catch/${bucket.id}/events?before=2099-01-01T00:00:00Z`);
    expect(answer.body).toEqual({ deleted_count: 1 });
    await advance(120_000);
    expect(receiver.hits.length).toBe(1);
    expect(await counts()).toEqual({ pending: 0, delivered: 0, failed: 0 });
  });
});

describe("where it goes", () => {
  test("to the target that the bucket has when its turn comes", async () => {
    const other = new Receiver();
    try {
      await send("one");
      await account.patch(`/v1/catch/buckets/${bucket.id}`, { target_url: other.url, state: "live" });
      await advance(0);
      expect(receiver.texts).toEqual([]);
      expect(other.texts).toEqual(["one"]);
    } finally {
      await other.stop();
    }
  });

  test("never to an address that is not permitted, also when only its name's address shows it", async () => {
    const strict = await startTestServer({ manualClock: true });
    try {
      const owner = await strict.account();
      // A name that resolves to loopback is only seen to when it is resolved.
      const { id } = await newBucket(owner, { target_url: "https://localtest.invalid/" });
      const event = await accepted(strict, id, "one");
      await setState(owner, id, "live");
      await strict.clock.advance(31_000);
      const { status, response_status, error } = await eventOf(owner, id, event);
      expect({ status, response_status }).toEqual({ status: "failed", response_status: null });
      expect(error).toMatch(/resolved|public address/);
    } finally {
      await strict.stop();
    }
  });
});

describe("what is sent", () => {
  const signatureOf = (hit: Hit | undefined) => hit?.headers.get("x-svc-signature") ?? "";

  test("the exact bytes by POST, the content type, and a signature that can be verified", async () => {
    await live();
    const bytes = new Uint8Array([0, 255, 10, 13, 34, 128]);
    await advance(123);
    const receivedAt = server.clock.now();
    const id = await accepted(server, bucket.id, bytes, { "content-type": "application/x-anything; a=1" });
    await advance(2_345);
    const [hit] = receiver.hits;
    expect(hit?.method).toBe("POST");
    expect(hit?.body.equals(Buffer.from(bytes))).toBe(true);
    expect(hit?.headers.get("content-type")).toBe("application/x-anything; a=1");
    expect(hit?.headers.get("user-agent")).toBe("Svc-Relay/1.0");
    expect(hit?.headers.get("x-svc-event-id")).toBe(id);
    expect(hit?.headers.get("x-svc-timestamp")).toBe(String(receivedAt));
    const [, seconds, hex] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(signatureOf(hit)) ?? [];
    expect(Number(seconds)).toBe(Math.floor(receivedAt / 1000));
    const expected = createHmac("sha256", account.key ?? "")
      .update(`${seconds}.`)
      .update(bytes)
      .digest("hex");
    expect(hex).toBe(expected);
  });

  test("an empty body, and none of a content type where none came", async () => {
    await live();
    await server.client(null).send("POST", `/v1/catch/${bucket.id}`);
    await advance(0);
    expect(receiver.hits[0]?.body.length).toBe(0);
    expect(receiver.hits[0]?.headers.has("content-type")).toBe(false);
  });

  test("the provider's own headers and nobody else's", async () => {
    await account.patch(`/v1/catch/buckets/${bucket.id}`, { state: "live" });
    await accepted(server, bucket.id, "{}", {
      "x-hub-signature-256": "sha256=00",
      "x-github-event": "push",
      "x-github-delivery": "d-1",
      "stripe-signature-not": "x",
      authorization: "Bearer theirs",
      cookie: "a=b",
      "x-svc-event-id": "forged",
      "x-svc-signature": "forged",
      "user-agent": "GitHub-Hookshot/1",
      "x-custom": "1",
    });
    await advance(0);
    const names = [...(receiver.hits[0]?.headers.keys() ?? [])].filter((name) => !name.startsWith("x-svc-"));
    expect(names.toSorted()).toEqual([
      ...["accept-encoding", "connection", "content-length", "content-type", "host", "user-agent"],
      ...["x-github-delivery", "x-github-event", "x-hub-signature-256"],
    ]);
    expect(receiver.hits[0]?.headers.get("x-svc-event-id")).toMatch(/^evt_/);
    expect(signatureOf(receiver.hits[0])).toMatch(/^t=\d+,v1=[0-9a-f]{64}$/);
  });

  test("Stripe's, Shopify's and Svix's signature headers go along", async () => {
    await live();
    const sets: Record<string, string>[] = [
      { "stripe-signature": "t=1,v1=0" },
      { "x-shopify-hmac-sha256": "AAAA", "x-shopify-topic": "orders/create" },
      { "svix-id": "msg_1", "svix-timestamp": "1", "svix-signature": "v1,AAAA" },
    ];
    for (const headers of sets) await accepted(server, bucket.id, "{}", headers);
    await advance(0);
    for (const [index, headers] of sets.entries()) {
      for (const [name, value] of Object.entries(headers)) {
        expect(receiver.hits[index]?.headers.get(name)).toBe(value);
      }
    }
  });

  test("headers that cannot be sent are left out, and the event goes", async () => {
    await live();
    const headers = { "stripe-signature": "x".repeat(5_000), "content-type": "text/\u00e9" };
    await accepted(server, bucket.id, "one", headers);
    await advance(0);
    expect(receiver.texts).toEqual(["one"]);
    expect(receiver.hits[0]?.headers.has("stripe-signature")).toBe(false);
    expect(receiver.hits[0]?.headers.has("content-type")).toBe(false);
  });

  test("the signature is made with the account's newest key", async () => {
    await live();
    const rotated = await account.post("/v1/keys/rotate");
    await send("one");
    await advance(0);
    const seconds = /^t=(\d+)/.exec(signatureOf(receiver.hits[0]))?.[1];
    const expected = createHmac("sha256", String(rotated.body["key"])).update(`${seconds}.one`).digest("hex");
    expect(signatureOf(receiver.hits[0])).toBe(`t=${seconds},v1=${expected}`);
  });
});

/** The same account at the server's new address. */
function reconnected({ key, userId, email }: AccountClient): AccountClient {
  return new AccountClient(server.url, key ?? "", userId, email);
}

describe("across a restart", () => {
  const restart = async () => {
    await server.restart();
    account = reconnected(account);
  };

  test("what was pending in a live bucket is sent on, in order, once", async () => {
    await live();
    for (const text of ["one", "two", "three"]) await send(text);
    await restart();
    expect(receiver.hits).toEqual([]);
    await send("four");
    await advance(0);
    expect(receiver.texts).toEqual(["one", "two", "three", "four"]);
    await advance(60_000);
    expect(receiver.hits.length).toBe(4);
    expect(await counts()).toEqual({ pending: 0, delivered: 4, failed: 0 });
  });

  test("retries keep their time and number", async () => {
    receiver.respond = () => 500;
    await live();
    const id = await send("one");
    await advance(0);
    await restart();
    await advance(999);
    expect(receiver.hits.length).toBe(1);
    await advance(1);
    expect(receiver.hits.length).toBe(2);
    await restart();
    await advance(4_999);
    expect(receiver.hits.length).toBe(2);
    await advance(25_001);
    expect(receiver.hits.length).toBe(4);
    expect(await eventOf(account, bucket.id, id)).toMatchObject({ status: "failed", attempts: 4 });
  });

  test("a retry that fell due while the server was down is made at the start", async () => {
    receiver.respond = (_, number) => (number === 1 ? 500 : 200);
    await live();
    await send("one");
    await advance(0);
    await server.server.stop();
    await advance(3_600_000);
    await server.start();
    account = reconnected(account);
    await advance(0);
    expect(receiver.hits.length).toBe(2);
    expect(await statuses()).toEqual(["delivered"]);
  });

  test("a paused bucket stays so, and its backlog waits", async () => {
    await send("one");
    await restart();
    await advance(60_000);
    expect(receiver.hits).toEqual([]);
    await live();
    await restart();
    await advance(0);
    expect(receiver.texts).toEqual(["one"]);
  });
});

/** One bucket's life, a step at a time. */
class Life {
  readonly target = new Receiver();
  readonly sent: string[] = [];
  private broken = false;
  private constructor(
    private client: AccountClient,
    readonly bucketId: string,
  ) {}

  static async begin(): Promise<Life> {
    const owner = await server.account();
    const { id } = await newBucket(owner);
    const life = new Life(owner, id);
    life.target.respond = () => (life.broken ? 500 : 200);
    await owner.patch(`/v1/catch/buckets/${id}`, { target_url: life.target.url });
    return life;
  }

  readonly steps = {
    send: async () => this.sent.push(await accepted(server, this.bucketId, `${this.sent.length}`)),
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
      await server.restart();
      this.client = reconnected(this.client);
    },
  };

  /** Lets everything come to its end, and checks it. */
  async end(): Promise<void> {
    await this.steps.live();
    await this.steps.minute();
    await this.target.stop();
    const events = await eventsOf(this.client, this.bucketId);
    expect(events.map((event) => event.id)).toEqual(this.sent);
    const tried = this.target.hits.map(({ headers }) => headers.get("x-svc-event-id"));
    for (const { id, status, attempts } of events) {
      expect(status).not.toBe("pending");
      expect(tried.filter((event) => event === id).length).toBe(attempts);
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

  test("ends with every event delivered or failed, tried as often as it says, and counted right", async () => {
    const steps = fc.array(fc.constantFrom(...names), { maxLength: 25 });
    await fc.assert(
      fc.asyncProperty(steps, async (taken) => {
        const life = await Life.begin();
        for (const name of taken) await life.steps[name]();
        await life.end();
      }),
      { numRuns: 25 },
    );
    expect(server.logs.filter(({ level }) => level === "error")).toEqual([]);
  }, 30_000);
});
