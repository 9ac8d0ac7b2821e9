import { describe, expect, test } from "bun:test";
import { Cleanup } from "../harness/processes/cleanup.ts";
import { NINEFOLD_COMMAND } from "../harness/processes/server-process.ts";
import { judge } from "../harness/recover/judge.ts";
import type { Arrival, EndpointRecord, Kill, RecoverTerms } from "../harness/recover/record.ts";
import { describeRecover, runRecover } from "../harness/recover/run.ts";

/** The short form of `scripts/harness recover`. */
test("recoveries over kills: each message arrives, oldest first, and is delivered once; failing keys hold themselves alone", async () => {
  const cleanup = new Cleanup();
  try {
    const result = await runRecover({
      command: NINEFOLD_COMMAND,
      folder: cleanup.folder("recover"),
      endpoints: 2,
      messages: 500,
      keys: 250,
      failingKeys: 3,
      perSecond: 100,
      kills: 3,
      seed: 20_261_129,
    });
    console.log(describeRecover(result));
    expect(result.problems).toEqual([]);
    expect(result.kills).toBe(3);
  } finally {
    await cleanup.run();
  }
}, 600_000);

describe("the comparison", () => {
  const TERMS: RecoverTerms = {
    failingKeys: new Set(["b"]),
    attemptsMax: 2,
    orderWaitMs: 100,
    concurrency: 2,
    perSecond: 1,
  };
  const KILLS: readonly Kill[] = [{ at: 405, startedAt: 450, readyAt: 500 }];
  const arrival = (id: string, at: number): Arrival => ({ id, at, isRejected: id === "2" || id === "5" });
  /** The keys a to c, twice; b fails, message 4 is in flight at the kill, and 6 is held until 5 has had its time. */
  const GOOD: EndpointRecord = {
    messages: ["a", "b", "c", "a", "b", "c"].map((key, at) => ({ id: String(at + 1), key })),
    arrivals: [
      ...[arrival("1", 100), arrival("2", 200), arrival("3", 300), arrival("2", 350), arrival("4", 400)],
      ...[arrival("4", 500), arrival("5", 600), arrival("6", 605), arrival("5", 700)],
    ],
    runs: [{ messages: 6, status: "done", matched: 6, resent: 6, skipped: 0 }],
    deliveries: ["1", "2", "3", "4", "5", "6"].map((messageId) =>
      messageId === "2" || messageId === "5"
        ? { messageId, status: "failed", attempts: 2, firstAttemptAt: Number(messageId) * 100 }
        : { messageId, status: "delivered", attempts: 1 },
    ),
  };
  const problemsOf = (change: Partial<EndpointRecord>, kills = KILLS) =>
    judge({ ...GOOD, ...change }, kills, TERMS).problems;
  const without = (id: string) => GOOD.arrivals.filter((one) => one.id !== id);

  test("accepts what is right, and measures it", () => {
    expect(judge(GOOD, KILLS, TERMS)).toEqual({
      problems: [],
      repeated: 1,
      overtaken: 0,
      longestPauseMs: 200,
    });
  });

  const [first] = GOOD.deliveries;
  const later = (id: string, status: string, attempts: number) =>
    GOOD.deliveries.map((one) => (one.messageId === id ? { ...one, status, attempts } : one));

  test.each<[string, Partial<EndpointRecord>, string, (readonly Kill[])?]>([
    ["a message that is lost", { arrivals: without("3") }, "3 has not arrived"],
    ["a held message that is lost", { arrivals: without("5") }, "5 has not arrived"],
    ["a message of nobody", { arrivals: [...GOOD.arrivals, arrival("7", 800)] }, "7 was never sent"],
    ["a delivery that is missing", { deliveries: GOOD.deliveries.slice(1) }, "1 has the deliveries []"],
    [
      "a second delivery",
      { deliveries: [...GOOD.deliveries, ...(first === undefined ? [] : [first])] },
      "1 has the deliveries [delivered after 1, delivered after 1]",
    ],
    [
      "an attempt too many",
      { deliveries: later("3", "delivered", 2) },
      "3 has the deliveries [delivered after 2]",
    ],
    ["a delivery that is not finished", { deliveries: later("6", "scheduled", 0) }, "6 has the deliveries"],
    ["an attempt too few of a failing key", { deliveries: later("5", "failed", 1) }, "5 has the deliveries"],
    [
      "a repeated request without a kill",
      { arrivals: [...GOOD.arrivals, arrival("6", 800)] },
      "6 arrived twice without a kill",
    ],
    ["a kill that did not happen", {}, "4 arrived twice without a kill", []],
    [
      "more repeated requests than were in flight",
      {
        arrivals: [...GOOD.arrivals, ...["1", "3"].map((id) => arrival(id, 510))].sort((a, b) => a.at - b.at),
      },
      "kill 1 repeated 3 requests of 2",
    ],
    [
      "a key out of order",
      { arrivals: [...GOOD.arrivals.filter(({ at }) => at !== 100), arrival("1", 800)] },
      "4 arrived before 1",
    ],
    [
      "old messages that are overtaken",
      {
        arrivals: [
          ...["2", "4", "3", "1"].map((id, at) => arrival(id, at * 10)),
          arrival("5", 50),
          arrival("6", 60),
        ],
      },
      "arrived before 2 older messages",
    ],
    [
      "a held message that goes too early",
      {
        deliveries: GOOD.deliveries.map((one) =>
          one.messageId === "5" ? { ...one, firstAttemptAt: 299 } : one,
        ),
      },
      "5 was not held for 100 ms",
    ],
    [
      "a recovery that has sent too few",
      { runs: [{ messages: 6, status: "done", matched: 6, resent: 5, skipped: 1 }] },
      "matched 6, sent 5, skipped 1",
    ],
    [
      "a recovery that has matched too few",
      { runs: [{ messages: 6, status: "done", matched: 5, resent: 5, skipped: 0 }] },
      "matched 5",
    ],
    [
      "a recovery that was cancelled",
      { runs: [{ messages: 6, status: "cancelled", matched: 6, resent: 6, skipped: 0 }] },
      "is cancelled",
    ],
  ])("notices %s", (_, change, problem, kills = KILLS) => {
    expect(problemsOf(change, kills).join("\n")).toContain(problem);
  });
});
