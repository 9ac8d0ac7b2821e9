import { afterAll, beforeAll, expect, test } from "bun:test";
import { MISSES_MAX } from "../../../../src/areas/catch/ingestion/ingestion.ts";
import { startTestServer, type TestServer } from "../../../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

test("requests to buckets that do not exist are limited per network and minute; those to existing ones are not", async () => {
  const account = await server.account();
  const bucket = await account.post("/v1/catch/buckets", {
    target_url: "https://example.com/",
  });
  const sender = server.client(null);
  for (let at = 0; at < MISSES_MAX; at += 1) {
    const path = at % 2 === 0 ? "/v1/catch" : "/v1/in";
    expect((await sender.post(`${path}/none${at}`, "{}")).body.status).toBe("ignored");
  }
  for (const path of ["/v1/catch/none", "/v1/in/none"]) {
    const answer = await sender.post(path, "{}");
    expect([answer.status, answer.body.status]).toEqual([429, "rate_limited"]);
    expect(answer.headers.get("retry-after")).toBe("60");
  }
  expect((await sender.post(`/v1/catch/${bucket.body.id}`, "{}")).status).toBe(200);
  await server.clock.advance(60_000);
  expect((await sender.post("/v1/catch/none", "{}")).body.status).toBe("ignored");
});
