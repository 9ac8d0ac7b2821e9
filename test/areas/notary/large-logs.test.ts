import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { findInexactness, JSON_VALUES_MAX } from "../../../src/json-text.ts";
import { expectError } from "../../support/errors.ts";
import { leastMs, processorMs, TURN_MS_MAX } from "../../support/processor-time.ts";
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
    `such as %s are compared within ${TURN_MS_MAX} ms`,
    async (number) => {
      const text = most(number);
      const value: unknown = JSON.parse(text);
      const compare = () => processorMs(() => expect(findInexactness(text, value, "log")).toBe(null));
      expect(await leastMs(TURN_MS_MAX, compare)).toBeLessThanOrEqual(TURN_MS_MAX);
    },
  );
});
