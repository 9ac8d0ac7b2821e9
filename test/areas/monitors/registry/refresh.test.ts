import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../../../harness/processes/ports.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";

const DAY = 24 * 3_600_000;
/** For tests of many days. */
const TIMEOUT_MS = 60_000;

/** What the host of the list responds. */
let list: () => Response;
let reads = 0;
/** Where the list is from, at the next start. */
let source: string[] = [];
let host: ReturnType<typeof Bun.serve>;
let server: TestServer;
let account: AccountClient;

beforeAll(() => {
  host = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname === "/dns.json") {
        reads += 1;
        return list();
      }
      const events = [{ eventAction: "expiration", eventDate: "2036-01-01" }];
      return Response.json({ objectClassName: "domain", handle: pathname, events });
    },
  });
});
afterAll(() => {
  host.stop(true);
});
beforeEach(async () => {
  reads = 0;
  list = () => listOf("com");
  source = [`http://127.0.0.1:${host.port}/dns.json`];
  const port = String(freePort());
  server = await startTestServer({
    manualClock: true,
    get args() {
      return ["--port", port, "--allow-private-targets", "loopback", "--rdap-bootstrap", ...source];
    },
  });
  account = await server.account({ tier: "pro" });
});
afterEach(async () => {
  await server.stop();
});

/** A list that knows one suffix, of a length if one is given. */
function listOf(suffix: string, bytes = 0): Response {
  const services = [[[suffix], [`http://127.0.0.1:${host.port}/`]]];
  return new Response(JSON.stringify({ services }).padEnd(bytes));
}

async function create(name = "example.com"): Promise<string> {
  const { status, body } = await account.post("/v1/pulse", { type: "domain", host: name });
  expect(status).toBe(201);
  return String((body as { id: string }).id);
}

/** Status and error of a monitor after a check by hand. */
async function checked(id: string): Promise<unknown> {
  await account.post(`/v1/pulse/${id}/check`);
  const { status, error } = (await account.get(`/v1/pulse/${id}`)).body as Record<string, unknown>;
  return error ?? status;
}

async function days(count: number): Promise<void> {
  for (let day = 0; day < count; day += 1) await server.clock.advance(DAY);
}

test(
  "a list at a URL is read for the first check, and again every 30 days while there is a domain monitor",
  async () => {
    await days(31);
    expect(reads).toBe(0);
    const id = await create();
    expect(await checked(id)).toBe("up");
    expect(reads).toBe(1);
    await days(29);
    expect(reads).toBe(1);
    list = () => listOf("net");
    await days(2);
    expect(reads).toBe(2);
    expect(await checked(id)).toBe("domain: the registry of example.com has no RDAP server");
    expect(await checked(await create("example.net"))).toBe("up");
    await account.delete(`/v1/pulse/${id}`);
    await days(30);
    expect(reads).toBe(3);
    const { monitors } = (await account.get("/v1/pulse")).body as { monitors: { monitor_id: string }[] };
    for (const { monitor_id } of monitors) await account.delete(`/v1/pulse/${monitor_id}`);
    await days(31);
    expect(reads).toBe(3);
  },
  TIMEOUT_MS,
);

test.each([
  ["an error", () => new Response("", { status: 503 })],
  ["no list", () => new Response("<html>")],
  ["more than 256 KiB", () => listOf("com", 256 * 1_024 + 1)],
] as const)(
  "after %s the last list is used, and it is read again a day later",
  async (_name, response) => {
    const id = await create();
    expect(await checked(id)).toBe("up");
    list = response;
    await days(31);
    const failed = reads;
    expect(failed).toBeGreaterThan(1);
    expect(await checked(id)).toBe("up");
    await days(1);
    expect(reads).toBe(failed + 1);
    list = () => listOf("com", 256 * 1_024);
    await days(1);
    expect(reads).toBe(failed + 2);
    await days(29);
    expect(reads).toBe(failed + 2);
    expect(server.logs.some(({ message }) => message.includes("the last one is used"))).toBe(true);
  },
  TIMEOUT_MS,
);

test(
  "a list is refreshed also if the server started with a file before",
  async () => {
    const file = join(server.folder, "dns.json");
    writeFileSync(file, await listOf("com").text());
    const url = source;
    source = [file];
    await server.restart();
    const id = await create();
    expect([await checked(id), reads]).toEqual(["up", 0]);
    source = url;
    await server.restart();
    expect(await checked(id)).toBe("up");
    expect(reads).toBe(1);
    await days(31);
    expect(reads).toBe(2);
  },
  TIMEOUT_MS,
);

test("without any list a check is unknown, and the next one reads it", async () => {
  list = () => new Response("", { status: 503 });
  const id = await create();
  expect(await checked(id)).toBe("domain: the list of RDAP servers cannot be read");
  list = () => listOf("com");
  expect(await checked(id)).toBe("up");
});
