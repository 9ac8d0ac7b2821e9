import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { accepted, newBucket } from "../areas/catch/support.ts";
import { type AccountClient, startTestServer, type TestServer } from "../support/server.ts";
import { ninefold } from "./run.ts";

/** Eight of them are more than a page of an export. */
const LARGE = 1_000_000;

let server: TestServer;
let account: AccountClient;
let environment: Record<string, string>;
let id: string;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());
beforeEach(async () => {
  account = await server.account();
  environment = { NINEFOLD_API_KEY: String(account.key), NINEFOLD_URL: server.url };
  id = (await newBucket(account)).id;
});

const exported = (...args: string[]) => ninefold(["catch", "export", ...args], { environment });
const payloads = (out: string) =>
  out
    .split("\n")
    .slice(0, -1)
    .map((line) => Buffer.from(JSON.parse(line).payload_base64, "base64").toString("utf8"));

test("prints all events completely, oldest first, as the API returns them", async () => {
  for (const body of ['{"n": 1.10}', "two", "\u202e\u0007"]) await accepted(server, id, body);
  const { code, out, error } = await exported(id);
  expect([code, error]).toEqual([0, ""]);
  expect(payloads(out)).toEqual(['{"n": 1.10}', "two", "\u202e\u0007"]);
  expect(out).toBe((await account.get(`/v1/catch/${id}/events/export`)).text);
  expect((await exported((await newBucket(account)).id)).out).toBe("");
});

test("prints the events of a time range", async () => {
  const times: string[] = [];
  for (const body of ["one", "two", "three"]) {
    times.push(new Date(server.clock.now()).toISOString());
    await accepted(server, id, body);
    await server.clock.advance(1_000);
  }
  const [, second = "", third = ""] = times;
  expect(payloads((await exported(id, "--since", second)).out)).toEqual(["two", "three"]);
  const local = second.replace("Z", "+00:00");
  expect(payloads((await exported(id, "--since", local, "--until", third)).out)).toEqual(["two"]);
  const refused = await exported(id, "--since", "yesterday");
  expect([refused.code, refused.out]).toEqual([1, ""]);
  expect(refused.error).toContain("since");
});

test("prints all pages", async () => {
  const bodies = Array.from({ length: 8 }, (_, at) => `${at}`.padEnd(LARGE, "x"));
  for (const body of bodies) await accepted(server, id, body);
  const next = (await account.get(`/v1/catch/${id}/events/export`)).headers.get("x-next-cursor");
  expect(next).not.toBeNull();
  const { code, out } = await exported(id);
  expect(code).toBe(0);
  expect(payloads(out).map((body) => [body.length, body[0]])).toEqual(bodies.map((body) => [LARGE, body[0]]));
});

test("reports rejected requests and servers that are not Ninefold", async () => {
  expect(await exported("nobody-knows-000000")).toMatchObject({ code: 1, out: "" });
  expect((await exported("nobody-knows-000000")).error).toContain("(404)");
  expect((await exported("..")).code).toBe(2);
  expect((await exported()).code).toBe(2);
  let status = 500;
  const other = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("no", { status }) });
  for (status of [500, 200]) {
    const { code, out, error } = await exported(id, "--url", other.url.origin);
    expect([code, out, error]).toEqual([1, "", expect.stringContaining("is not a Ninefold server")]);
  }
  await other.stop(true);
});

test("stops at an export without an end", async () => {
  const fetch = () =>
    new Response("{}\n", { headers: { "content-type": "application/x-ndjson", "x-next-cursor": "again" } });
  const other = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch });
  const { code, out, error } = await exported(id, "--url", other.url.origin);
  expect([code, out]).toEqual([1, "{}\n{}\n"]);
  expect(error).toContain("returned the same cursor twice");
  await other.stop(true);
});

test("works on the folder of a stopped server, as its operator", async () => {
  const own = await newBucket(server.operator);
  await accepted(server, own.id, "kept");
  await server.server.stop();
  const { code, out, error } = await ninefold(["catch", "export", own.id, "--data", server.folder]);
  expect([code, error]).toEqual([0, ""]);
  expect(payloads(out)).toEqual(["kept"]);
  const refused = await ninefold(["catch", "export", id, "--data", server.folder]);
  expect(refused).toMatchObject({ code: 1, out: "" });
  expect(refused.error).toContain("(404)");
  await server.start();
});
