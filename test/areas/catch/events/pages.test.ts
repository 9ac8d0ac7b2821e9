import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { DETECTED_PROVIDERS, EVENT_STATUSES } from "../../../../src/areas/catch/domain.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import {
  accepted,
  bucketOf,
  type EventBody,
  eventsOf,
  LOOPBACK_ALLOWED,
  type Made,
  newBucket,
  Receiver,
  setState,
} from "../support.ts";

let server: TestServer;
let receiver: Receiver;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true, args: LOOPBACK_ALLOWED });
  receiver = new Receiver();
});
afterAll(async () => {
  await receiver.stop();
  await server.stop();
});

const _made: Made = { bucketId: "", eventId: "" };

describe("pages", () => {
  const headersOf = {
    stripe: { "stripe-signature": "t=1,v1=0" },
    github: { "x-hub-signature-256": "sha256=0" },
    shopify: { "x-shopify-hmac-sha256": "0" },
    svix: { "svix-signature": "v1,0", "svix-id": "1", "svix-timestamp": "1" },
    none: {},
  } as const;
  let account: AccountClient;
  let bucketId: string;
  /** In order of receipt: oldest first. */
  let all: EventBody[];

  beforeAll(async () => {
    account = await server.account();
    bucketId = (await newBucket(account, { target_url: receiver.url })).id;
    // A bucket with a secret marks unsigned events as failed; the receiver accepts the others.
    const names = Object.keys(headersOf) as (keyof typeof headersOf)[];
    const send = async (count: number): Promise<void> => {
      for (let index = 0; index < count; index += 1) {
        await accepted(server, bucketId, `${index}`, headersOf[names[index % 5] ?? "none"]);
      }
    };
    await send(13);
    await setState(account, bucketId, "live");
    await server.clock.advance(0);
    await setState(account, bucketId, "paused");
    await account.patch(`/v1/catch/buckets/${bucketId}`, { signing_secret: "secret" });
    await send(12);
    await account.patch(`/v1/catch/buckets/${bucketId}`, { signing_secret: null });
    await send(17);
    all = await eventsOf(account, bucketId);
  });

  test("match the bucket's counts", async () => {
    const count = (status: string) => all.filter((event) => event.status === status).length;
    const { events } = await bucketOf(account, bucketId);
    expect(events).toEqual({
      pending: count("pending"),
      delivered: count("delivered"),
      failed: count("failed"),
    });
    expect(Object.values(events)).toEqual([19, 13, 10]);
    expect(new Set(all.map(({ provider }) => provider))).toEqual(new Set([...DETECTED_PROVIDERS, null]));
  });

  test("have 20 events by default, newest first, to the last one", async () => {
    const first = await account.get(`/v1/catch/${bucketId}/events`);
    const firstIds = (first.body["events"] as EventBody[]).map(({ id }) => id);
    expect(firstIds).toEqual(
      all
        .map(({ id }) => id)
        .toReversed()
        .slice(0, 20),
    );
    const second = await account.get(
      `/v1/catch/${bucketId}/events?limit=22&cursor=${String(first.body["cursor"])}`,
    );
    expect((second.body["events"] as EventBody[]).map(({ id }) => id)).toEqual(
      all
        .map(({ id }) => id)
        .toReversed()
        .slice(20),
    );
    expect(second.body["cursor"]).toBeNull();
  });

  test("return every matching event once and in order, for any filter and page size", async () => {
    const filters = [undefined, ...EVENT_STATUSES].flatMap((status) =>
      [undefined, ...DETECTED_PROVIDERS].map((provider) => ({ status, provider })),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...filters),
        fc.integer({ min: 3, max: 50 }),
        async (filter, limit) => {
          const { status, provider } = filter;
          const query = [`limit=${limit}`];
          if (status !== undefined) query.push(`status=${status}`);
          if (provider !== undefined) query.push(`provider=${provider}`);
          const seen: string[] = [];
          for (let cursor: unknown = ""; cursor !== null; ) {
            const { body } = await account.get(
              `/v1/catch/${bucketId}/events?${query.join("&")}${cursor === "" ? "" : `&cursor=${String(cursor)}`}`,
            );
            const events = body["events"] as EventBody[];
            expect(events.length).toBeLessThanOrEqual(limit);
            seen.push(...events.map(({ id }) => id));
            cursor = body["cursor"];
          }
          const wanted = all.filter(
            (event) =>
              (status === undefined || event.status === status) &&
              (provider === undefined || event.provider === provider),
          );
          expect(seen).toEqual(wanted.map(({ id }) => id).toReversed());
        },
      ),
      { numRuns: 60 },
    );
  });

  test("are not shifted by new events", async () => {
    const first = await account.get(`/v1/catch/${bucketId}/events?limit=5`);
    const late = await accepted(server, bucketId, "late");
    const second = await account.get(
      `/v1/catch/${bucketId}/events?limit=5&cursor=${String(first.body["cursor"])}`,
    );
    const ids = (second.body["events"] as EventBody[]).map(({ id }) => id);
    expect(ids).toEqual(
      all
        .map(({ id }) => id)
        .toReversed()
        .slice(5, 10),
    );
    expect(ids).not.toContain(late);
  });
});
