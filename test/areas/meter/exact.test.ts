import { expect, test } from "bun:test";
import { startTestServer } from "../../support/server.ts";
import { runExact } from "./exact-run.ts";

/** The short form; `scripts/harness exact` runs it at any size (default: 100,000 deductions from 50,000). */
const SIZE = { clients: 64, deducts: 2_000, balance: 1_000 };

test("64 clients deduct 2,000 times from 1,000, with retries: exactly 1,000 succeed", async () => {
  const server = await startTestServer();
  try {
    const result = await runExact(server.url, server.key, SIZE);
    expect(result).toMatchObject({
      succeeded: 1_000,
      rejected: 1_000,
      wrong: [],
      balanceAfter: 0,
      ledgerDeducts: 1_000,
    });
    // Otherwise no request was repeated, and the test would prove little.
    expect(result.requests).toBeGreaterThan(SIZE.deducts * 1.2);
    expect(result.cut).toBeGreaterThan(0);
    expect(server.logs.filter(({ level }) => level === "error")).toEqual([]);
  } finally {
    await server.stop();
  }
});
