import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { DEFAULT_TIERS } from "../../src/kernel/limits/tiers.ts";
import { type ApiOperation, documentedStatuses, Explorer, isEndless, readOperations } from "./api-document.ts";
import { type FuzzedRequest, requestsFor } from "./fuzzed-requests.ts";
import { expectErrorShape, UUID_V7 } from "../support/errors.ts";
import { repeated } from "../support/long-form.ts";
import { sendRaw } from "../support/raw-http.ts";
import { type AccountClient, startTestServer, type TestServer } from "../support/server.ts";

/** Requests to each operation. */
const RUNS = repeated(12, 80);
/** A blocking operation may wait forever on a clock that does not advance. */
const WAIT_MS = 250;
/** A `.` or `..` segment, or a backslash. */
const UNRESOLVED = /\/(\.|%2e){1,2}(\/|$)|\\/i;
const ENOUGH = Number.MAX_SAFE_INTEGER - 1_000_000;
/** Operations that may change the balance of the account by more than what they cost. */
const CHANGES_BALANCE = /^(admin|meter)\./;

const operations = readOperations();

let server: TestServer;
let account: AccountClient;
beforeAll(async () => {
  // Neither rate limits nor addresses may stop the requests before they reach the code.
  const scale = {
    ...DEFAULT_TIERS.scale,
    requestsPerMinute: 1e9,
    accountRequestsPerMinute: 1e9,
    monitorRequestsPerMinute: 1e9,
    monitorBurst: 1e9,
  };
  server = await startTestServer({
    manualClock: true,
    args: [
      ...["--signup", "open", "--trust-proxy", "127.0.0.1", "--allow-private-targets", "127.0.0.0/8"],
      ...["--smtp-url", "smtp://127.0.0.1:9", "--mail-from", "fuzz@example.com"],
    ],
    config: { tiers: { ...DEFAULT_TIERS, scale } },
  });
  account = await server.account();
});
afterAll(() => server.stop());

/** The bytes of a request. */
function written(request: FuzzedRequest, key: string | null, forProxies: boolean): (string | Uint8Array)[] {
  const { method, target, headers, body } = request;
  const lines = [`${method} ${target} HTTP/1.1`, "Host: fuzz.example.com"];
  if (key !== null) lines.push(`Authorization: Bearer ${key}`);
  if (key !== null && forProxies) lines.push(`X-Ninefold-Key: ${key}`);
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  if (bytes !== null) lines.push(`Content-Length: ${bytes.length}`);
  const head = Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
  return bytes === null ? [head] : [head, bytes];
}

async function fire(operation: ApiOperation, explorer: Explorer, request: FuzzedRequest): Promise<void> {
  const key = request.authorized ? explorer.clientFor(operation).key : null;
  const waits = "408" in operation.responses || isEndless(operation);
  const answer = await sendRaw(server.url, written(request, key, operation.forProxies), waits ? WAIT_MS : undefined);
  if (answer === null && waits) return;
  if (answer === null) throw new Error("there was no response");
  expect(answer.headers.get("x-request-id")).toMatch(UUID_V7);
  // An error that is not the fault of a proxy's client is 503 there, and a replay whose target does not respond is 500.
  const isTold =
    (operation.forProxies && answer.status === 503) || answer.text.includes('"code":"catch.replay_failed"');
  if (!isTold) expect(answer.status, answer.text).toBeLessThan(500);
  const [path = ""] = request.target.split("?");
  const method = request.method === "HEAD" ? "GET" : request.method;
  // A path that is not normalized matches no operation: without a key it is 401, with one 400.
  const statuses = UNRESOLVED.test(path) ? [400, 401] : documentedStatuses(operations, method, path);
  expect([...statuses], `${request.method} ${request.target} → ${answer.text}`).toContain(answer.status);
  const isPlain = answer.headers.get("content-type")?.startsWith("text/plain") === true;
  if (isPlain) expect(Object.keys(operation.responses[answer.status]?.content ?? {})).toEqual(["text/plain"]);
  else if (answer.status >= 400 && request.method !== "HEAD") expectErrorShape(answer);
}

test.each(operations.map((operation) => [operation.operationId, operation] as const))(
  "any request to %s gets a documented response and no 5xx",
  async (_, operation) => {
    // The test may invalidate its key.
    const own = operation.operationId === "keys.platform.rotate" ? await server.account() : account;
    const explorer = new Explorer(operations, server, own);
    const values = await explorer.pathValues(operation);
    const refill = () => server.operator.patch(`/v1/admin/accounts/${account.userId}`, { balance: ENOUGH });
    await refill();
    await fc.assert(
      fc.asyncProperty(requestsFor(operation, values), async (request) => {
        // Other operations only cost credits, of which there are enough.
        if (CHANGES_BALANCE.test(operation.operationId)) await refill();
        await fire(operation, explorer, request);
      }),
      // Each request changes the server: a smaller one that fails, or does not, says little. The error prints the seed.
      { numRuns: RUNS, endOnFailure: true },
    );
    expect(server.logs.filter(({ level }) => level === "error")).toEqual([]);
  },
);
