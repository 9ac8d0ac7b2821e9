import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type ApiError, ECHO_LENGTH_MAX, echoed, invalidField } from "../../src/kernel/errors.ts";
import type { DeclaredRoute } from "../../src/kernel/http/api.ts";
import { BODY_BYTES_MAX } from "../../src/kernel/http/operation.ts";
import { REJECTION_BYTES_MAX } from "../../src/kernel/http/operations/idempotency.ts";
import type { Answer } from "../support/client.ts";
import { bodyOf } from "../support/matrix.ts";
import { sendRaw } from "../support/raw-http.ts";
import { type AccountClient, startTestServer, type TestServer } from "../support/server.ts";

let server: TestServer;
let account: AccountClient;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });
  // A limit of requests would answer in place of the routes.
  account = await server.account({ tier: "unlimited" });
});
afterAll(() => server.stop());

/** More of a caller's text than any error repeats. */
const TOO_MUCH = "x".repeat(ECHO_LENGTH_MAX + 1);

function expectNoEcho(what: string, answer: Answer): void {
  if (answer.status < 400) return;
  expect({ what, echoes: answer.text.includes(TOO_MUCH), isShort: answer.text.length <= 4_096 }).toEqual({
    what,
    echoes: false,
    isShort: true,
  });
}

/** Long texts in each place of a body that a caller controls. */
function* hostileBodies(
  { operation, body }: DeclaredRoute,
  exampleBody: Record<string, unknown>,
): Generator<string> {
  const long = "x".repeat(operation.bodyLimits.bytesMax / 4);
  const names = Object.keys(body?.properties ?? {});
  for (const name of names) {
    for (const value of [long, [long], { [long]: long }, { [long]: { [long]: 1 } }, `https://${long}/`]) {
      yield JSON.stringify({ ...exampleBody, [name]: value });
    }
  }
  yield JSON.stringify({ [long]: 1 });
  yield long;
}

describe("the caller's text in an error", () => {
  test(`is at most ${ECHO_LENGTH_MAX} characters`, () => {
    expect(echoed("x".repeat(ECHO_LENGTH_MAX))).toBe("x".repeat(ECHO_LENGTH_MAX));
    expect(echoed(TOO_MUCH)).toBe(`${"x".repeat(ECHO_LENGTH_MAX)}…`);
    // On one line, as every message is.
    expect(echoed("a\nb\u2028c\u0000d")).toBe("a?b?c?d");
    const { message, details } = invalidField(TOO_MUCH, "is wrong") as ApiError;
    expect(message).toBe(`${echoed(TOO_MUCH)} is wrong`);
    expect(details.fields).toEqual({ [echoed(TOO_MUCH)]: ["is wrong"] });
  });

  test("is cut in the errors of every route", async () => {
    const routes = server.server.app.http.routes.filter(({ body }) => body !== undefined);
    expect(routes.length).toBeGreaterThan(20);
    for (const route of routes) {
      const caller = route.operation.access === "operator" ? server.operator : account;
      const path = route.path.replace(/:[A-Za-z_]+/g, "none");
      for (const body of hostileBodies(route, (bodyOf(route) ?? {}) as Record<string, unknown>)) {
        expectNoEcho(`${route.method} ${route.path}`, await caller.send(route.method, path, body));
      }
    }
  }, 60_000);

  test("is cut in paths, parameters, queries and headers", async () => {
    const long = "x".repeat(10_000);
    for (const { method, path } of server.server.app.http.routes) {
      const filled = path.replace(/:[A-Za-z_]+/g, long);
      expectNoEcho(path, await account.send(method, `${filled}?limit=${long}&cursor=${long}&before=${long}`));
      expectNoEcho(path, await account.send(method, `${filled}/${long}`));
    }
    for (const header of ["Idempotency-Key", "Authorization", long]) {
      const lines = [
        "POST /v1/meter/refill HTTP/1.1",
        "Host: test",
        `${header}: ${long}`,
        "Content-Length: 0",
      ];
      const answer = await sendRaw(server.url, [[...lines, "", ""].join("\r\n")]);
      if (answer !== null) expectNoEcho(header.slice(0, 20), answer);
    }
  });
});

test("rejections with Idempotency-Keys do not fill the disk", async () => {
  const rows = (): { n: number; bytes: number } =>
    server.server.kernel.db.one<{ n: number; bytes: number }>(
      "SELECT count(*) AS n, sum(length(answer)) AS bytes FROM idempotency",
    )() ?? { n: 0, bytes: 0 };
  const relay = { target_url: "https://127.0.0.1:9/", method: "POST", delay: "1d", payload: {} };
  const name = "x".repeat(BODY_BYTES_MAX - 1_000);
  // The tests above use up the rate limit of their account.
  const other = await server.account();
  const before = rows();
  for (let count = 0; count < 20; count += 1) {
    const options = { headers: { "idempotency-key": `full-${count}` } };
    const answer = await other.post("/v1/relay", { ...relay, headers: { [name]: "1" } }, options);
    expect(answer.status).toBe(400);
  }
  const after = rows();
  expect(after.n - before.n).toBe(20);
  expect((after.bytes - before.bytes) / 20).toBeLessThan(REJECTION_BYTES_MAX);
});
