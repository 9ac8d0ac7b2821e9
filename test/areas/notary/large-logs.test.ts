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

/** A megabyte of numbers that are exact, though `JSON.stringify` writes them otherwise. */
const MEGABYTE = `[${"1.0,".repeat(262_000)}1]`;

/** The CPU time of the process in milliseconds, which a busy machine does not lengthen: the least of some runs. */
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
  test("is rejected before anything is made of it, by a log as by a verification", async () => {
    for (const [path, body] of [
      ["/v1/witness/log", `{"log":{"a":${MEGABYTE}}}`],
      ["/v1/witness/verify", `{"receipt":${MEGABYTE}}`],
    ] as const) {
      const { fields } = expectError(await account.post(path, body), "validation_error");
      expect(fields).toEqual({ body: [`has more than ${JSON_VALUES_MAX} values`] });
    }
  });
});

describe("as many numbers as a body may have", () => {
  const most = (number: string): string =>
    `{"log":{"a":[${Array(JSON_VALUES_MAX - 3)
      .fill(number)
      .join()}]}}`;

  test("are witnessed, and the receipt is verified", async () => {
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
      expect(cpuMs(() => expect(findInexactness(text, value, "log")).toBe(null))).toBeLessThan(20);
    },
  );
});
