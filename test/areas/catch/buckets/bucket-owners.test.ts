import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { DEFAULT_TIERS } from "../../../../src/kernel/limits/tiers.ts";
import { expectError } from "../../../support/errors.ts";
import { startTestServer, type TestServer } from "../../../support/server.ts";
import { accepted, bucketOf, eventsOf, type Made, newBucket, setState } from "../support.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

const BUCKETS = "/v1/catch/buckets";
const TARGET = "https://hooks.example.com/in";
const NOBODYS = "brave-otter-314159";

const _made: Made = { bucketId: "", eventId: "" };

describe("the number of buckets", () => {
  test.each(["free", "starter", "pro", "scale"] as const)(
    "tier %s: has the documented limit",
    async (tier) => {
      const account = await server.account({ tier });
      await server.operator.patch(`/v1/admin/accounts/${account.userId}`, { tier: "unlimited" });
      const { buckets } = DEFAULT_TIERS[tier];
      expect(buckets).toBe({ free: 1, starter: 5, pro: 25, scale: 100 }[tier]);
      const ids: string[] = [];
      // Created without a rate limit; counted under the tier.
      while (ids.length < buckets) ids.push((await newBucket(account)).id);
      await server.operator.patch(`/v1/admin/accounts/${account.userId}`, { tier });
      expectError(await account.post(BUCKETS, { target_url: TARGET }), "bucket_limit_exceeded");
      await account.delete(`${BUCKETS}/${ids[0]}`);
      expect((await account.post(BUCKETS, { target_url: TARGET })).status).toBe(201);
      expectError(await account.post(BUCKETS, { target_url: TARGET }), "bucket_limit_exceeded");
    },
  );

  test("concurrent requests do not exceed the limit", async () => {
    const account = await server.account({ tier: "starter" });
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => account.post(BUCKETS, { target_url: TARGET })),
    );
    expect(answers.filter(({ status }) => status === 201).length).toBe(5);
    expect(answers.filter(({ status }) => status === 403).length).toBe(7);
    expect(((await account.get(BUCKETS)).body["buckets"] as unknown[]).length).toBe(5);
  });

  test("a repeat under an Idempotency-Key creates no second bucket", async () => {
    const account = await server.account();
    const options = { headers: { "idempotency-key": "once" } };
    const first = await account.post(BUCKETS, { target_url: TARGET }, options);
    const again = await account.post(BUCKETS, { target_url: TARGET }, options);
    expect(again.body).toEqual(first.body);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(((await account.get(BUCKETS)).body["buckets"] as unknown[]).length).toBe(1);
  });
});

describe("a bucket of another account", () => {
  test("looks like one that does not exist, in every operation, and is not changed", async () => {
    const [owner, stranger] = [await server.account(), await server.account()];
    const { id } = await newBucket(owner, { signing_secret: "s" });
    const event = await accepted(server, id);
    const before = await bucketOf(owner, id);
    const attempts: [string, string, object?][] = [
      ["GET", `${BUCKETS}/${id}`],
      ["PATCH", `${BUCKETS}/${id}`, { state: "live" }],
      ["DELETE", `${BUCKETS}/${id}`],
      ["GET", `/v1/catch/${id}/events`],
      ["GET", `/v1/catch/${id}/events/${event}`],
      ["POST", `/v1/catch/${id}/events/${event}/replay`],
      ["DELETE", `/v1/catch/${id}/events?before=2099-01-01T00:00:00Z`],
    ];
    for (const [method, path, body] of attempts) {
      const answer = await stranger.send(method, path, body);
      expectError(answer, "catch.bucket_not_found");
      const absent = await stranger.send(method, path.replace(id, NOBODYS), body);
      expect(answer.body["error"]).toEqual(absent.body["error"] as object);
    }
    expect(await bucketOf(owner, id)).toEqual(before);
    expect((await eventsOf(owner, id)).map((found) => found.id)).toEqual([event]);
  });

  test("an event of one bucket is not found in another", async () => {
    const account = await server.account();
    const [first, second] = [await newBucket(account), await newBucket(account)];
    const event = await accepted(server, first.id);
    await setState(account, second.id, "live");
    expectError(await account.get(`/v1/catch/${second.id}/events/${event}`), "catch.event_not_found");
    expectError(await account.post(`/v1/catch/${second.id}/events/${event}/replay`), "catch.event_not_found");
  });
});

describe("the signing secret", () => {
  test("is not in plain text in the database file", async () => {
    const account = await server.account();
    const secret = `whsec_${"clear-text-would-show-".repeat(3)}`;
    const { id } = await newBucket(account, { signing_secret: secret });
    await account.patch(`${BUCKETS}/${id}`, { signing_secret: `${secret}-changed` });
    await server.restart();
    const files = await Array.fromAsync(new Bun.Glob("*").scan(server.folder));
    expect(files).toContain("ninefold.db");
    for (const file of files) {
      const bytes = Buffer.from(await Bun.file(`${server.folder}/${file}`).arrayBuffer());
      expect({ file, found: bytes.includes("clear-text-would-show") }).toEqual({ file, found: false });
    }
  });
});
