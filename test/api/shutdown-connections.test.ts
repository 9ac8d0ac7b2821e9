import { expect, test } from "bun:test";
import { startTestServer } from "../support/server.ts";

test("responses that are sent during shutdown end their connection", async () => {
  const server = await startTestServer();
  const account = await server.account();
  await account.post("/v1/latch/deploy/acquire", { ttl: 60_000 });
  // It waits for the lock until the server stops.
  const waiting = account.post("/v1/latch/deploy/acquire", { timeout: 60_000 });
  while ((await account.get("/v1/latch/deploy")).body.queue_depth !== 1);
  expect((await account.get("/v1/latch/deploy")).headers.get("connection")).not.toBe("close");
  const stopped = server.stop();
  const { status, headers } = await waiting;
  expect([status, headers.get("connection")]).toEqual([503, "close"]);
  await stopped;
});
