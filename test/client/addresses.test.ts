import { describe, expect, test } from "bun:test";
import { Ninefold, NinefoldError } from "../../src/client/index.ts";
import { freePort } from "../harness/processes/ports.ts";
import { apiError, type StubAnswer, startStub } from "./stub-server.ts";

const KEY = `sm_${"a".repeat(43)}_0123abcd`;
const BALANCE = { body: { balance: 7, meter_id: "m" } };
const CUT: StubAnswer = { instead: "cut" };
/** A node that follows, and knows nobody that leads. */
const FOLLOWS = apiError(503, "service_unavailable", { "Retry-After": "0" });
const UNKNOWN = apiError(503, "service_unavailable", { "Retry-After": "0" }, { outcome: "unknown" });

function followerOf(leader: string): StubAnswer {
  return apiError(503, "service_unavailable", { "Retry-After": "1", "Ninefold-Leader": leader });
}

/** An address at which nobody listens. */
function nobody(): string {
  return `http://127.0.0.1:${freePort()}`;
}

describe("a client with several addresses", () => {
  test("goes past addresses that cannot be connected to, also with what must not be repeated", async () => {
    using leader = await startStub(BALANCE);
    const nf = new Ninefold({ url: [nobody(), nobody(), leader.url], apiKey: KEY, retries: 0 });
    await nf.meter("m").deduct(1, { idempotencyKey: null });
    expect(leader.requests).toHaveLength(1);
  });

  test("goes past nodes that follow, to the one that they name, and stays there", async () => {
    using leader = await startStub(BALANCE);
    using other = await startStub(FOLLOWS);
    using first = await startStub(followerOf(`${leader.url}/`));
    const nf = new Ninefold({ url: [first.url, other.url, leader.url], apiKey: KEY, retries: 0 });
    await nf.meter("m").deduct(1, { idempotencyKey: null });
    await nf.meter("m").balance();
    expect([first, other, leader].map(({ requests }) => requests.length)).toEqual([1, 0, 2]);
  });

  test("sends no key to an address that only a node names", async () => {
    using stranger = await startStub(BALANCE);
    using first = await startStub(followerOf(stranger.url));
    using leader = await startStub(BALANCE);
    const nf = new Ninefold({ url: [first.url, leader.url], apiKey: KEY, retries: 0 });
    await nf.meter("m").balance();
    expect(stranger.requests).toEqual([]);
    expect(leader.requests).toHaveLength(1);
  });

  test("reports a cluster in which nobody leads, with its retries and the wait that it names", async () => {
    using first = await startStub(FOLLOWS);
    using second = await startStub(FOLLOWS);
    const nf = new Ninefold({ url: [first.url, second.url], apiKey: KEY, retries: 3 });
    const error = await nf
      .meter("m")
      .balance()
      .catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code: "service_unavailable", status: 503, leader: null });
    expect([first.requests.length, second.requests.length]).toEqual([2, 2]);
  });

  test.each<[name: string, first: StubAnswer, call: (nf: Ninefold) => Promise<unknown>, isRepeated: boolean]>(
    [
      ["a change with a key, connection broken", CUT, (nf) => nf.meter("m").deduct(1), true],
      ["a read, connection broken", CUT, (nf) => nf.meter("m").balance(), true],
      [
        "a change without a key, connection broken",
        CUT,
        (nf) => nf.meter("m").deduct(1, { idempotencyKey: null }),
        false,
      ],
      ["a change with a key, outcome unknown", UNKNOWN, (nf) => nf.meter("m").deduct(1), true],
      [
        "a change without a key, outcome unknown",
        UNKNOWN,
        (nf) => nf.meter("m").deduct(1, { idempotencyKey: null }),
        false,
      ],
      [
        "a change without a key, rejected",
        FOLLOWS,
        (nf) => nf.meter("m").deduct(1, { idempotencyKey: null }),
        true,
      ],
    ],
  )("%s", async (_name, first, call, isRepeated) => {
    using one = await startStub(first);
    using two = await startStub(BALANCE);
    const nf = new Ninefold({ url: [one.url, two.url], apiKey: KEY, retries: 1 });
    const outcome = await call(nf).then(
      () => null,
      (error: unknown) => error,
    );
    expect(one.requests).toHaveLength(1);
    expect(two.requests).toHaveLength(isRepeated ? 1 : 0);
    if (isRepeated) expect(outcome).toBeNull();
    else expect(outcome).toBeInstanceOf(NinefoldError);
    expect(two.requests.map(({ idempotencyKey }) => idempotencyKey)).toEqual(
      isRepeated ? one.requests.map(({ idempotencyKey }) => idempotencyKey) : [],
    );
  });

  test("stays where it is after errors of the request", async () => {
    using one = await startStub(apiError(402, "insufficient_balance"));
    using two = await startStub(BALANCE);
    const nf = new Ninefold({ url: [one.url, two.url], apiKey: KEY, retries: 1 });
    for (let call = 0; call < 2; call += 1)
      await nf
        .meter("m")
        .deduct(1)
        .catch(() => undefined);
    expect([one.requests.length, two.requests.length]).toEqual([2, 0]);
  });

  test("moves on once for requests that fail together", async () => {
    using one = await startStub(followerOf("http://127.0.0.1:1"));
    using two = await startStub(BALANCE);
    using three = await startStub(BALANCE);
    const nf = new Ninefold({ url: [one.url, two.url, three.url], apiKey: KEY, retries: 0 });
    await Promise.all(Array.from({ length: 10 }, () => nf.meter("m").balance()));
    expect([two.requests.length, three.requests.length]).toEqual([10, 0]);
  });

  test("gives its addresses to the client of another key", async () => {
    using leader = await startStub(BALANCE);
    const nf = new Ninefold({ url: [nobody(), leader.url], apiKey: null, retries: 0 }).withKey(KEY);
    await nf.meter("m").balance();
    expect(leader.requests[0]?.authorization).toBe(`Bearer ${KEY}`);
  });

  test("rejects a list that is empty, or has an invalid address", () => {
    expect(() => new Ninefold({ url: [], apiKey: KEY })).toThrow("url is missing");
    expect(() => new Ninefold({ url: ["http://127.0.0.1:1", "n2"], apiKey: KEY })).toThrow('not "n2"');
  });
});
