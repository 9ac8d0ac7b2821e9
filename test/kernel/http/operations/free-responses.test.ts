import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { ApiError } from "../../../../src/kernel/errors.ts";
import { FREE_RESPONSE_BYTES, freeBytesMax } from "../../../../src/kernel/http/operations/free-responses.ts";
import { REJECTION_BYTES_MAX } from "../../../../src/kernel/http/operations/idempotency.ts";
import type { AcrossNetwork } from "../../../../src/kernel/http/operations/perform.ts";
import type { Tx } from "../../../../src/kernel/storage/tx.ts";
import { CHARGED, callerOf, FREE, outcomeOf, PerformingBench } from "./performing.ts";

/** Maximum bytes of stored responses of a tier with one request per minute, the tier of the bench. */
const BOUND = freeBytesMax(1);
const HOUR_MS = 60 * 60 * 1000;

let bench: PerformingBench;
let runs = 0;
beforeEach(() => {
  bench = new PerformingBench();
  runs = 0;
});
afterEach(() => bench.close());

/** Work whose response has about this number of bytes. */
const answering =
  (bytes: number) =>
  (_tx: Tx): object => {
    runs += 1;
    return { text: "x".repeat(bytes) };
  };

const perform = (operation: typeof FREE | typeof CHARGED, key: string, work = answering(1), ref = 1) =>
  outcomeOf(bench.performing.perform(bench.request(operation, key, { caller: callerOf(ref) }), work));

/** Fills an account's space completely: the last response exceeds it. */
async function fill(): Promise<number> {
  let count = 0;
  for (let bytes = 0; bytes < BOUND; bytes += 100_000) {
    count += 1;
    expect(await perform(FREE, `fill ${count}`, answering(100_000))).not.toBeString();
  }
  return count;
}

describe("responses that an account stores free of charge", () => {
  test("are limited by its tier: a day of usual responses at its rate", () => {
    expect(BOUND).toBe(24 * 60 * FREE_RESPONSE_BYTES);
  });

  test("above the limit a free request with a new key is rejected before its work, and accepted without a key", async () => {
    const filled = await fill();
    expect(await perform(FREE, "one more")).toBe("rate_limit_exceeded");
    expect(runs).toBe(filled);
    expect(await outcomeOf(bench.performing.perform(bench.request(FREE), answering(1)))).toEqual({
      text: "x",
    });
    expect(await perform(FREE, "of another account", answering(1), 2)).toEqual({ text: "x" });
  });

  test("above the limit repeats get their responses, and paid responses are stored", async () => {
    await fill();
    const done = runs;
    expect(await perform(FREE, "fill 1")).toMatchObject({ replayed: { status: 200 } });
    expect(await perform(CHARGED, "paid")).toEqual({ text: "x" });
    expect(await perform(CHARGED, "paid")).toMatchObject({ replayed: { status: 200 } });
    expect(runs).toBe(done + 1);
  });

  test("above the limit rejections are not stored: a repeat is evaluated again", async () => {
    const refusing = (): object => {
      runs += 1;
      throw new ApiError("validation_error", "no");
    };
    expect(await perform(CHARGED, "kept", refusing)).toBe("validation_error");
    expect(await perform(CHARGED, "kept", refusing)).toMatchObject({ replayed: { status: 400 } });
    await fill();
    runs = 0;
    expect(await perform(CHARGED, "not kept", refusing)).toBe("validation_error");
    expect(await perform(CHARGED, "not kept", refusing)).toBe("validation_error");
    expect(runs).toBe(2);
    expect(bench.balance).toBe(100);
  });

  test("above the limit a paid rejection is stored", async () => {
    await fill();
    const missing = (): object => {
      throw new ApiError("not_found", "nobody");
    };
    expect(await perform(CHARGED, "404", missing)).toBe("not_found");
    expect(await perform(CHARGED, "404", missing)).toMatchObject({ replayed: { status: 404 } });
    expect(bench.balance).toBe(99);
  });

  test("count refunded requests, and reject more of them before the network is used", async () => {
    let calls = 0;
    const phases: AcrossNetwork<null, null, object> = {
      claim: () => null,
      outside: async () => {
        calls += 1;
        return null;
      },
      settle: (tx, _claim, _result, refund) => {
        refund();
        return answering(100_000)(tx);
      },
    };
    const across = (key: string) =>
      outcomeOf(bench.performing.performAcross(bench.request(CHARGED, key), phases));
    for (let bytes = 0; bytes < BOUND; bytes += 100_000) await across(`refunded ${bytes}`);
    const done = calls;
    expect(await across("one more")).toBe("rate_limit_exceeded");
    expect(calls).toBe(done);
    expect(bench.balance).toBe(100);
  });

  test("are reset when the responses expire", async () => {
    await fill();
    await bench.storage.clock.advance(24 * HOUR_MS);
    expect(await perform(FREE, "too early")).toBe("rate_limit_exceeded");
    await bench.storage.clock.advance(HOUR_MS);
    expect(await perform(FREE, "in time")).toEqual({ text: "x" });
    await bench.storage.writer.submit((tx) => bench.free.purge(tx));
    expect(bench.storage.rows("SELECT 1 FROM free_answers")).toHaveLength(1);
  });

  test("are not counted for an account without limits", async () => {
    const caller = callerOf(1);
    const operator = { ...caller, account: { ...caller.account, tier: "unlimited" as const } };
    for (let bytes = 0; bytes < 2 * BOUND; bytes += 100_000) {
      const request = bench.request(FREE, `key ${bytes}`, { caller: operator });
      expect(await outcomeOf(bench.performing.perform(request, answering(100_000)))).not.toBeString();
    }
    expect(bench.storage.rows("SELECT 1 FROM free_answers")).toHaveLength(0);
  });
});

describe("the length of a rejection", () => {
  const refusing = (length: number) => (): object => {
    throw new ApiError("validation_error", "x".repeat(length));
  };
  const around = JSON.stringify({
    error: { code: "validation_error", message: "", docs: "/docs/errors/validation_error" },
    code: "validation_error",
    request_id: "request-1",
  }).length;

  test(`${REJECTION_BYTES_MAX} bytes are stored, one more is not`, async () => {
    await perform(CHARGED, "short", refusing(REJECTION_BYTES_MAX - around));
    expect(bench.stored).toBe(1);
    await perform(CHARGED, "long", refusing(REJECTION_BYTES_MAX - around + 1));
    expect(bench.stored).toBe(1);
    expect(await perform(CHARGED, "long", refusing(1))).toBe("validation_error");
  });
});
