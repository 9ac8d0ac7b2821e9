import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { ApiError, type ErrorCode } from "../../../../src/kernel/errors.ts";
import { IDEMPOTENCY_RETENTION_MS } from "../../../../src/kernel/http/operations/idempotency.ts";
import type { Performer } from "../../../../src/kernel/http/operations/perform.ts";
import { Reply } from "../../../../src/kernel/http/responses/response.ts";
import type { Tx } from "../../../../src/kernel/storage/tx.ts";
import { CHARGED, callerOf, FREE, outcomeOf, PerformingBench, SECRET } from "./performing.ts";

let bench: PerformingBench;
beforeEach(() => {
  bench = new PerformingBench();
});
afterEach(() => bench.close());

/** Work that writes a row and returns the number of its runs. */
let runs = 0;
beforeEach(() => {
  runs = 0;
});
function work(tx: Tx): { run: number } {
  runs += 1;
  bench.note(tx, `run ${runs}`);
  return { run: runs };
}

function perform<T extends object>(performer: Performer, what: (tx: Tx) => T): Promise<unknown> {
  return outcomeOf(bench.performing.perform(performer, what));
}

/** Work that writes, and then rejects the request. */
function refusing(code: ErrorCode): (tx: Tx) => object {
  return (tx) => {
    work(tx);
    throw new ApiError(code, "rejected by the work");
  };
}

describe("charge and work are one unit", () => {
  test("make one unit, one commit, one charge", async () => {
    expect(await perform(bench.request(CHARGED), work)).toEqual({ run: 1 });
    expect(bench.balance).toBe(99);
    expect(bench.notes).toEqual(["run 1"]);
    expect(bench.storage.writer.stats.commits).toBe(1);
    expect(bench.stored).toBe(0);
  });

  test("a free request is not charged, also with an empty balance", async () => {
    bench.charger.balances.set(1, 0);
    expect(await perform(bench.request(FREE), work)).toEqual({ run: 1 });
    expect(bench.balance).toBe(0);
  });

  test("without credits the work does not run", async () => {
    bench.charger.balances.set(1, 0);
    expect(await perform(bench.request(CHARGED), work)).toBe("insufficient_balance");
    expect(runs).toBe(0);
  });

  test.each<[ErrorCode, number]>([
    ["validation_error", 100],
    ["invalid_request", 100],
    ["insufficient_balance", 100],
    ["forbidden", 99],
    ["not_found", 99],
    ["timeout", 99],
    ["conflict", 99],
    ["rate_limit_exceeded", 100],
    ["internal_error", 100],
    ["service_unavailable", 100],
  ])("%s found by the work leaves a balance of %p, and nothing of the work", async (code, balance) => {
    expect(await perform(bench.request(CHARGED), refusing(code))).toBe(code);
    expect(bench.balance).toBe(balance);
    expect(bench.notes).toEqual([]);
  });

  test("a bug rolls back both", async () => {
    const broken = (tx: Tx): object => {
      work(tx);
      throw new TypeError("broken");
    };
    expect(await perform(bench.request(CHARGED), broken)).toBe("TypeError: broken");
    expect(bench.balance).toBe(100);
    expect(bench.notes).toEqual([]);
  });

  test("a failed commit rolls back both, and the key is unused", async () => {
    bench.storage.db.fault = "stays-open";
    expect(await perform(bench.request(CHARGED, "key"), work)).toBe("read_only");
    bench.storage.db.fault = "none";
    expect(bench.balance).toBe(100);
    expect(bench.stored).toBe(0);
    expect(await perform(bench.request(CHARGED, "key"), work)).toEqual({ run: 2 });
    expect(bench.notes).toEqual(["run 2"]);
    expect(bench.balance).toBe(99);
  });
});

describe("under an Idempotency-Key", () => {
  test("a repeat gets the first response, is not charged and changes nothing", async () => {
    const first = bench.request(CHARGED, "key");
    expect(await perform(first, work)).toEqual({ run: 1 });
    expect(bench.storage.writer.stats.commits).toBe(1);
    for (let repeat = 0; repeat < 3; repeat += 1) {
      expect(await perform(bench.request(CHARGED, "key"), work)).toEqual({
        replayed: { status: 200, body: { run: 1 } },
      });
    }
    expect(bench.balance).toBe(99);
    expect(bench.notes).toEqual(["run 1"]);
  });

  test("status and headers of a response are stored", async () => {
    await bench.performing.perform(
      bench.request(CHARGED, "key"),
      () => new Reply(202, { a: 1 }, { "x-own": "yes" }),
    );
    const repeat = bench.performing.perform(bench.request(CHARGED, "key"), work);
    await expect(repeat).rejects.toMatchObject({
      response: { status: 202, text: '{"a":1}', headers: { "x-own": "yes" } },
    });
  });

  test("of two requests in one batch, the second repeats the first", async () => {
    const both = await Promise.all([
      perform(bench.request(CHARGED, "key"), work),
      perform(bench.request(CHARGED, "key"), work),
    ]);
    expect(both).toEqual([{ run: 1 }, { replayed: { status: 200, body: { run: 1 } } }]);
    expect(bench.balance).toBe(99);
  });

  test("the same key with another request gets 409, and the stored response stays", async () => {
    await perform(bench.request(CHARGED, "key"), work);
    expect(await perform(bench.request(CHARGED, "key", { body: '{"a":2}' }), work)).toBe("conflict");
    expect(await perform(bench.request(CHARGED, "key"), work)).toMatchObject({ replayed: { status: 200 } });
    expect(runs).toBe(1);
    expect(bench.balance).toBe(99);
  });

  test("keys belong to the account: two accounts can use the same one", async () => {
    expect(await perform(bench.request(CHARGED, "key"), work)).toEqual({ run: 1 });
    expect(await perform(bench.request(CHARGED, "key", { caller: callerOf(2) }), work)).toEqual({ run: 2 });
  });

  test("another credential of the account gets the stored response, unless it has a secret", async () => {
    const other = { caller: callerOf(1, "managed:9") };
    await perform(bench.request(CHARGED, "plain"), work);
    expect(await perform(bench.request(CHARGED, "plain", other), work)).toMatchObject({
      replayed: { status: 200 },
    });
    await perform(bench.request(SECRET, "secret"), work);
    expect(await perform(bench.request(SECRET, "secret", other), work)).toBe("conflict");
    expect(await perform(bench.request(SECRET, "secret"), work)).toMatchObject({ replayed: { status: 200 } });
    expect(runs).toBe(2);
  });

  test.each<[ErrorCode, number, number]>([
    ["validation_error", 400, 100],
    ["insufficient_balance", 402, 100],
    ["forbidden", 403, 99],
    ["not_found", 404, 99],
    ["conflict", 409, 99],
  ])("a rejection with %s is stored with its charge and repeated", async (code, status, balance) => {
    expect(await perform(bench.request(CHARGED, "key"), refusing(code))).toBe(code);
    expect(bench.balance).toBe(balance);
    const repeat = await perform(bench.request(CHARGED, "key"), work);
    expect(repeat).toMatchObject({ replayed: { status, body: { code, request_id: "request-1" } } });
    expect(bench.balance).toBe(balance);
    expect(bench.notes).toEqual([]);
  });

  test("a 402 is stored", async () => {
    bench.charger.balances.set(1, 0);
    expect(await perform(bench.request(CHARGED, "key"), work)).toBe("insufficient_balance");
    bench.charger.balances.set(1, 50);
    expect(await perform(bench.request(CHARGED, "key"), work)).toMatchObject({ replayed: { status: 402 } });
    expect(await perform(bench.request(CHARGED, "new key"), work)).toEqual({ run: 1 });
  });

  test.each<ErrorCode>(["unauthorized", "rate_limit_exceeded", "internal_error", "service_unavailable"])(
    "%s is not stored: a repeat is a new attempt",
    async (code) => {
      expect(await perform(bench.request(CHARGED, "key"), refusing(code))).toBe(code);
      expect(bench.stored).toBe(0);
      runs = 0;
      expect(await perform(bench.request(CHARGED, "key"), work)).toEqual({ run: 1 });
      expect(bench.notes).toEqual(["run 1"]);
    },
  );

  test("a response is stored for 24 hours to the millisecond, then the key is unused", async () => {
    await perform(bench.request(CHARGED, "key"), work);
    await bench.storage.clock.advance(IDEMPOTENCY_RETENTION_MS - 1);
    expect(await perform(bench.request(CHARGED, "key"), work)).toMatchObject({ replayed: { status: 200 } });
    await bench.storage.clock.advance(1);
    expect(await perform(bench.request(CHARGED, "key", { body: "other" }), work)).toEqual({ run: 2 });
    expect(await perform(bench.request(CHARGED, "key", { body: "other" }), work)).toMatchObject({
      replayed: { body: { run: 2 } },
    });
  });

  test("the file contains the response sealed for its account and key", async () => {
    await perform(bench.request(CHARGED, "key"), () => ({ text: "a readable text" }));
    const [row] = bench.storage.rows<{ answer: Uint8Array }>("SELECT answer FROM idempotency");
    const sealed = row?.answer ?? new Uint8Array();
    expect(Buffer.from(sealed).includes("readable")).toBe(false);
    expect(bench.vault.open(sealed, "idempotency:usr_1:key")).toContain("a readable text");
    expect(() => bench.vault.open(sealed, "idempotency:usr_2:key")).toThrow();
  });

  test("the hourly purge removes exactly the expired responses, in slices", async () => {
    const store = (key: string) => perform(bench.request(FREE, key), () => ({}));
    await Promise.all(Array.from({ length: 1_001 }, (_, index) => store(`old ${index}`)));
    await bench.storage.clock.advance(IDEMPOTENCY_RETENTION_MS);
    await store("new");
    const purge = () => bench.storage.writer.submit((tx) => bench.answers.purge(tx));
    expect(await purge()).toBe(0);
    expect(bench.stored).toBe(1_002);
    await bench.storage.clock.advance(1);
    expect(await purge()).toBe(500);
    expect(bench.stored).toBe(502);
    expect(await purge()).toBe(500);
    expect(await purge()).toBe(1);
    expect(bench.stored).toBe(1);
  });
});
