import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { findInexactness, JSON_VALUES_MAX } from "../../../src/json-text.ts";
import { expectError } from "../../support/errors.ts";
import type { AccountClient } from "../../support/server.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

let server: TestServer;
let account: AccountClient;
beforeAll(async () => {
  server = await startTestServer();
  account = await server.account();
  await account.post("/v1/witness/sys/init");
});
afterAll(() => server.stop());

/** A megabyte of exact numbers that `JSON.stringify` writes in another form. */
const MEGABYTE = `[${"1.0,".repeat(262_000)}1]`;

/** Minimum CPU time of several runs in milliseconds, which is independent of the machine's load. */
function cpuMs(work: () => unknown): number {
  const runs = Array.from({ length: 5 }, () => {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  });
  return Math.min(...runs);
}

describe("a megabyte of numbers", () => {
  test("is rejected before it is parsed, in a log and in a verification", async () => {
    for (const [path, body] of [
      ["/v1/witness/log", `{"log":{"a":${MEGABYTE}}}`],
      ["/v1/witness/verify", `{"receipt":${MEGABYTE}}`],
    ] as const) {
      const { fields } = expectError(await account.post(path, body), "validation_error");
      expect(fields).toEqual({ body: [`has more than ${JSON_VALUES_MAX} values`] });
    }
  });
});

/** The fastest of at most so many runs is judged. */
const RUNS_MAX = 50;

describe("the maximum of numbers in a body", () => {
  const most = (number: string): string =>
    `{"log":{"a":[${Array(JSON_VALUES_MAX - 3)
      .fill(number)
      .join()}]}}`;

  test("is logged, and its receipt is verified", async () => {
    const { status, body } = await account.post("/v1/witness/log", most("1.0"));
    expect(status).toBe(200);
    expect((body.log as { a: number[] }).a).toHaveLength(JSON_VALUES_MAX - 3);
    expectError(await account.post("/v1/witness/log", most("1.0").replace("[", "[1,")), "validation_error");
  });

  test.each(["1.0", "1.5E+10", "1.0000000000000000", "1e2"])(
    "such as %s are compared within 20 ms",
    (number) => {
      const text = most(number);
      const value: unknown = JSON.parse(text);
      const compare = () => cpuMs(() => expect(findInexactness(text, value, "log")).toBe(null));
      // On a busy machine it takes some runs until the code is compiled.
      const times = [compare()];
      while (times.length < RUNS_MAX && Math.min(...times) >= 20) times.push(compare());
      expect(Math.min(...times)).toBeLessThan(20);
    },
  );
});
