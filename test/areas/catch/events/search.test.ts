import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  EventSearch,
  SEARCH_MS_MAX,
  SEARCHED_EVENTS_MAX,
  type SearchTerms,
  SLICES_MIN,
} from "../../../../src/areas/catch/events/search.ts";
import type { EventRow } from "../../../../src/areas/catch/store.ts";
import { SLICE_MS } from "../../../../src/kernel/background/time-slices.ts";
import { leastMs, longestTurnMs, TURN_MS_MAX } from "../../../support/processor-time.ts";
import { endpoint } from "../../../support/scenario.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { accepted, type EventBody, type Made, newBucket, scenario } from "../support.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

const created: Made = { bucketId: "", eventId: "" };

describe("GET /v1/catch/{bucket_id}/events?q=", () => {
  const path = ({ bucketId }: Made, query: string) => `/v1/catch/${bucketId}/events?${query}`;
  const before = async ({ account }: { account: AccountClient }): Promise<void> => {
    created.bucketId = (await newBucket(account)).id;
    created.eventId = await accepted(server, created.bucketId, '{"note":"Größe XL"}', {
      "X-Shop": "Number 42",
    });
    await accepted(server, created.bucketId, "something else");
  };
  const found = (name: string, q: string) =>
    scenario(created, {
      name,
      before,
      request: (of) => ["GET", path(of, `q=${encodeURIComponent(q)}`)],
      status: 200,
      spent: 1,
      holds: ({ eventId }) => ({ events: [{ id: eventId }], cursor: null }),
      after: (_, { body }) => expect(body["partial"]).toBeUndefined(),
    });
  const refused = (name: string, query: string, code = "validation_error") =>
    scenario(created, { name, before, request: (of) => ["GET", path(of, query)], status: 400, code });
  endpoint(() => server, "GET /v1/catch/{bucket_id}/events", [
    found("in the body, whatever its case", "größe xL"),
    found("a piece of a word", "öß"),
    found("in a header's name", "x-SHOP"),
    found("in a header with its value", "x-shop: NUMBER 42"),
    scenario(created, {
      name: "no match",
      before,
      request: (of) => ["GET", path(of, "q=nowhere")],
      status: 200,
      spent: 1,
      body: () => ({ events: [], cursor: null }),
    }),
    refused("an empty text", "q="),
    refused("a text of 101 characters", `q=${"x".repeat(101)}`),
    refused("an unknown provider", "q=x&provider=nobody", "catch.provider_unsupported"),
    refused("a cursor of nobody", "q=x&cursor=abc"),
    {
      name: "no key",
      as: "nobody",
      request: ["GET", "/v1/catch/a-b-1/events?q=x"],
      status: 401,
      code: "unauthorized",
    },
    scenario(created, {
      name: "no credits",
      account: { balance: 2 },
      before,
      request: (of) => ["GET", path(of, "q=x")],
      status: 402,
      code: "insufficient_balance",
    }),
    {
      name: "a bucket that does not exist",
      request: ["GET", "/v1/catch/a-b-1/events?q=x"],
      status: 404,
      code: "catch.bucket_not_found",
      spent: 1,
    },
  ]);
});

describe("a search", () => {
  let account: AccountClient;
  let bucketId: string;
  const ids: string[] = [];
  const search = async (query: string) =>
    (await account.get(`/v1/catch/${bucketId}/events?${query}`)).body as {
      events: EventBody[];
      cursor: string | null;
      partial?: true;
    };
  const idsIn = ({ events }: { events: EventBody[] }) => events.map(({ id }) => id);
  beforeAll(async () => {
    account = await server.account();
    bucketId = (await newBucket(account)).id;
    for (let number = 0; number < 30; number += 1) {
      const headers = number % 2 === 0 ? { "stripe-signature": "t=1,v1=0" } : {};
      const even = number % 3 === 0 ? "every third" : "another";
      ids.unshift(await accepted(server, bucketId, `${even} ${number}`, headers));
    }
  });
  const third = () => ids.filter((_, index) => (29 - index) % 3 === 0);

  test("returns matches newest first, page by page, each once", async () => {
    const seen: string[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const from: string = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
      const page = await search(`q=EVERY+third&limit=4${from}`);
      expect(page.events.length).toBeLessThanOrEqual(4);
      seen.push(...idsIn(page));
      ({ cursor } = page);
    }
    expect(seen).toEqual(third());
  });

  test("can be combined with provider and status", async () => {
    const page = await search("q=every+third&provider=stripe&status=pending");
    expect(idsIn(page)).toEqual(third().filter((id) => (29 - ids.indexOf(id)) % 2 === 0));
    expect(idsIn(await search("q=every+third&status=delivered"))).toEqual([]);
  });

  test("accepts any 100 characters", async () => {
    const body = `${"😀".repeat(99)}x`;
    const id = await accepted(server, bucketId, `{"a":"${body}"}`);
    expect(idsIn(await search(`q=${encodeURIComponent(body)}`))).toEqual([id]);
  });

  test("does not find encrypted values, nor their ciphertext", async () => {
    const id = await accepted(server, bucketId, "{}", {
      authorization: "Bearer swordfish",
      "x-plain": "trout",
    });
    expect(idsIn(await search("q=trout"))).toEqual([id]);
    expect(idsIn(await search("q=swordfish"))).toEqual([]);
    expect(idsIn(await search(`q=${encodeURIComponent("sealed")}`))).toEqual([]);
  });

  test("includes bodies that are not text", async () => {
    const bytes = Buffer.concat([Buffer.from([0xff, 0xfe, 0]), Buffer.from("needle"), Buffer.from([0x80])]);
    const id = await accepted(server, bucketId, bytes);
    expect(idsIn(await search("q=Needle"))).toEqual([id]);
  });

  test("of another account's bucket finds nothing", async () => {
    const other = await server.account();
    expect((await other.get(`/v1/catch/${bucketId}/events?q=third`)).status).toBe(404);
  });
});

/** Events in memory that contain their number; the newest has the largest. */
function eventsTo(count: number) {
  const looked: number[] = [];
  return {
    looked,
    page: (_: number, __: object, before: number, limit: number) => {
      const newest = Math.min(before - 1, count);
      return Array.from({ length: Math.max(0, Math.min(limit, newest)) }, (_, index) => ({
        sequence: newest - index,
      })) as unknown as EventRow[];
    },
    payload: (sequence: number) => {
      looked.push(sequence);
      return { headers: "{}", body: Buffer.from(`number ${sequence}.`), ...NOT_LARGE };
    },
  };
}

const ALL: SearchTerms = {
  bucketRef: 1,
  filter: { provider: null, status: null },
  text: "nowhere",
  before: Number.MAX_SAFE_INTEGER,
  from: 0,
  limit: 20,
  matches: () => true,
};
const NO_PIECES = { startOf: () => new Uint8Array() };
const NOT_LARGE = { upload: null, body_bytes: null, sha256: null };
const NOBODY_LEFT = new AbortController().signal;

describe("a search ends", () => {
  test(`after ${SEARCHED_EVENTS_MAX} events, and returns whether there are more`, async () => {
    const still = () => 0;
    const whole = eventsTo(SEARCHED_EVENTS_MAX);
    const none = { rows: [], through: null, isPartial: false };
    expect(await new EventSearch(whole, NO_PIECES, still).find(ALL, NOBODY_LEFT)).toEqual(none);
    expect(whole.looked).toHaveLength(SEARCHED_EVENTS_MAX);
    const more = eventsTo(SEARCHED_EVENTS_MAX + 1);
    const partial = { rows: [], through: 2, isPartial: true };
    expect(await new EventSearch(more, NO_PIECES, still).find(ALL, NOBODY_LEFT)).toEqual(partial);
    expect(
      await new EventSearch(more, NO_PIECES, still).find(
        { ...ALL, text: "number 1.", before: 2 },
        NOBODY_LEFT,
      ),
    ).toEqual({
      rows: [{ sequence: 1 } as EventRow],
      through: null,
      isPartial: false,
    });
  });

  test(`after ${SEARCH_MS_MAX} ms, and continues from there`, async () => {
    // Each reading of the clock takes a millisecond.
    let now = 0;
    const clock = () => (now += 1);
    const events = eventsTo(1_000);
    const found = await new EventSearch(events, NO_PIECES, clock).find(ALL, NOBODY_LEFT);
    expect(found.isPartial).toBe(true);
    expect(now).toBeLessThanOrEqual(SEARCH_MS_MAX + SLICE_MS + 1);
    expect(found.through).toBe(1_000 - events.looked.length + 1);
    expect(events.looked.length).toBeGreaterThan(SEARCH_MS_MAX / 2);
  });

  test("only after some events, however short the time is", async () => {
    let now = 0;
    const clock = () => (now += 10 * SEARCH_MS_MAX);
    const events = eventsTo(SLICES_MIN + 2);
    const found = await new EventSearch(events, NO_PIECES, clock).find(ALL, NOBODY_LEFT);
    expect(found).toEqual({ rows: [], through: 3, isPartial: true });
  });

  test("once its page is full, without being partial", async () => {
    const found = await new EventSearch(eventsTo(50), NO_PIECES).find(
      { ...ALL, text: "number", limit: 20 },
      NOBODY_LEFT,
    );
    expect(found.rows.map(({ sequence }) => sequence)).toEqual(
      Array.from({ length: 20 }, (_, at) => 50 - at),
    );
    expect(found).toMatchObject({ through: 31, isPartial: false });
  });

  test("when its client disconnects", async () => {
    const left = AbortSignal.abort();
    let now = 0;
    const events = eventsTo(1_000);
    await new EventSearch(events, NO_PIECES, () => (now += 1)).find(ALL, left);
    expect(events.looked.length).toBeLessThanOrEqual(SLICE_MS);
  });
});

describe("concurrent searches", () => {
  test("take turns, and do not hold the event loop", async () => {
    const body = Buffer.alloc(20_000, "aaaaaaaaab");
    const slow = { ...eventsTo(3_000), payload: () => ({ headers: "{}", body, ...NOT_LARGE }) };
    const searching = new EventSearch(slow, NO_PIECES);
    const text = `${"a".repeat(90)}bb`;
    const find = () => searching.find({ ...ALL, text }, NOBODY_LEFT);
    const turn = () => longestTurnMs(() => Promise.all(Array.from({ length: 20 }, find)));
    // Twenty slices in one turn of the event loop would take 80 ms.
    expect(await leastMs(TURN_MS_MAX, turn)).toBeLessThanOrEqual(TURN_MS_MAX);
  });
});
