import { beforeEach, expect, test } from "bun:test";
import { ANYONE } from "../../src/kernel/storage/tx.ts";
import { until } from "../support/eventually.ts";
import { type AccountClient, useTestServer } from "../support/server.ts";

const server = useTestServer();
let account: AccountClient;
beforeEach(async () => {
  account = await server.account();
});

/** Whether the account's reads wait while the disk has not confirmed what `change` does. */
async function waitsFor(change: () => Promise<unknown>): Promise<boolean> {
  const { writer } = server.server.kernel;
  const disk = Promise.withResolvers<void>();
  const follower = { beforeBatch() {}, beforeCommit() {}, afterCommit() {}, confirmation: disk.promise };
  writer.follow(follower);
  const changed = change();
  await until(() => writer.confirmationFor(ANYONE) !== null);
  let isShown = false;
  const read = account.get("/v1/meter/balance").finally(() => {
    isShown = true;
  });
  // These show no stored data, and are sent later.
  for (let count = 0; count < 2; count += 1)
    expect((await server.client(null).get("/healthz")).status).toBe(200);
  const waits = !isShown;
  writer.follow({ ...follower, confirmation: null });
  disk.resolve();
  await changed;
  expect((await read).status).toBe(200);
  return waits;
}

test("what the operator changes of an account is shown to it when the disk has confirmed it", async () => {
  const path = `/v1/admin/accounts/${account.userId}`;
  expect(await waitsFor(() => server.operator.patch(path, { tier: "pro" }))).toBe(true);
});

test("requests of strangers to another account's bucket delay no other account", async () => {
  const other = await server.account();
  const bucket = await other.post("/v1/catch/buckets", { target_url: "https://example.com/" });
  const path = `/v1/in/${bucket.body["id"]}`;
  const stranger = server.client(null);
  expect(await waitsFor(() => stranger.post(path, { event: 1 }))).toBe(false);
  expect(await waitsFor(() => stranger.post(`${path}?${"x".repeat(9_000)}`, {}))).toBe(false);
});
