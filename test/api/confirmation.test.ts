import { expect, test } from "bun:test";
import { ANYONE } from "../../src/kernel/storage/tx.ts";
import { until } from "../support/eventually.ts";
import { useTestServer } from "../support/server.ts";

const server = useTestServer();

test("what the operator changes of an account is shown to it when the disk has confirmed it", async () => {
  const account = await server.account();
  const { writer } = server.server.kernel;
  const disk = Promise.withResolvers<void>();
  const follower = { beforeBatch() {}, beforeCommit() {}, afterCommit() {}, confirmation: disk.promise };
  writer.follow(follower);
  const path = `/v1/admin/accounts/${account.userId}`;
  const changed = server.operator.patch(path, { tier: "scale" });
  await until(() => writer.confirmationFor(ANYONE) !== null);
  let isShown = false;
  const read = account.get("/v1/meter/balance").finally(() => {
    isShown = true;
  });
  // Shows no stored data, and is sent later.
  expect((await server.client(null).get("/healthz")).status).toBe(200);
  expect((await server.client(null).get("/healthz")).status).toBe(200);
  expect(isShown).toBe(false);
  writer.follow({ ...follower, confirmation: null });
  disk.resolve();
  expect([(await changed).status, (await read).status]).toEqual([200, 200]);
});
