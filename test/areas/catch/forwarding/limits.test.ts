import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { MIGRATIONS } from "../../../../migrations/index.ts";
import { BUCKETS_IN_MEMORY_MAX, Buckets } from "../../../../src/areas/catch/buckets/buckets.ts";
import { openSettings } from "../../../../src/areas/catch/buckets/settings.ts";
import { NO_TRAFFIC } from "../../../../src/areas/catch/domain.ts";
import {
  ACCOUNT_SHARE,
  CONCURRENT_RETRIES_MAX,
  FORWARDING_BUCKETS_MAX,
  forward,
} from "../../../../src/areas/catch/forwarding/forwarder.ts";
import { bucketStore, eventStore } from "../../../../src/areas/catch/store.ts";
import type { Caller } from "../../../../src/kernel/callers/caller.ts";
import { createIds } from "../../../../src/kernel/ids.ts";
import { DEFAULT_TIERS } from "../../../../src/kernel/limits/tiers.ts";
import { ATTEMPT_TIMEOUT_MS, RESPONSE_BYTES_MAX } from "../../../../src/kernel/outbound/attempt.ts";
import { OutboundClient, type OutboundRequest } from "../../../../src/kernel/outbound/client.ts";
import { Changes } from "../../../../src/kernel/projects/changes.ts";
import { SecretDigests } from "../../../../src/kernel/secrets/secret-digest.ts";
import { createVault } from "../../../../src/kernel/secrets/vault.ts";
import { Database } from "../../../../src/kernel/storage/database.ts";
import { migrate } from "../../../../src/kernel/storage/migrate.ts";
import { Writer } from "../../../../src/kernel/storage/writer.ts";
import { ManualClock } from "../../../../src/kernel/time/clock.ts";
import { KeptLog, Scratch } from "../../../kernel/support.ts";
import { leastMs, processorMs } from "../../../support/processor-time.ts";
import { startTestServer, TEST_START_MS, type TestServer } from "../../../support/server.ts";
import { accepted, LOOPBACK_ALLOWED, newBucket, Receiver, setState } from "../support.ts";

describe("an attempt to deliver", () => {
  test("has a timeout of 15 s, reads 64 KiB of the response, follows no redirect, requires HTTPS", async () => {
    const requests: OutboundRequest[] = [];
    const outbound = {
      send: (request: OutboundRequest) => {
        requests.push(request);
        const body = new Uint8Array(0);
        return Promise.resolve({
          answered: true,
          status: 200,
          headers: {},
          body,
          truncated: false,
          address: "",
          latencyMs: 1,
          stalledMs: 0,
        });
      },
    } as unknown as OutboundClient;
    const accounts = {
      account: () => {
        throw new Error("not needed here");
      },
      signingKey: () => "sm_key",
    };
    const deps = {
      outbound,
      accounts,
      clock: new ManualClock(TEST_START_MS),
      vault: createVault(new Uint8Array(32)),
      secrets: { headers: async () => ({ "webhook-id": "evt" }) },
      events: { way: () => null },
      large: { bodyOf: () => ({ length: 0, pieceBytes: 0, pieces: () => [] }) },
    };
    const bucket = {
      ref: 1,
      id: "a-b-100000",
      account_ref: 1,
      project_ref: 1,
      name: null,
      target_url: "https://example.com/",
      provider: null,
      signing_secret: null,
      pull: false,
      live: true,
      settings: openSettings(null, {}),
      pending: 0,
      delivered: 0,
      failed: 0,
      too_large: 0,
      last_too_large_at: null,
      stored_bytes: 0,
      created_at: 0,
      updated_at: 0,
      managed_by: null,
      deleted: false,
      traffic: NO_TRAFFIC,
      idle: true,
      recent: false,
    };
    const large = { upload: null, body_bytes: null, sha256: null };
    const payload = { headers: "{}", body: new Uint8Array([1]), ...large };
    await forward(deps, bucket, { sequence: 1, provider: null, received_at: 0 }, payload);
    expect(requests[0]).toMatchObject({
      method: "POST",
      url: "https://example.com/",
      requireHttps: true,
      timeoutMs: ATTEMPT_TIMEOUT_MS,
      bodyBytesMax: RESPONSE_BYTES_MAX,
      redirectsMax: 0,
    });
    expect([ATTEMPT_TIMEOUT_MS, RESPONSE_BYTES_MAX]).toEqual([15_000, 65_536]);
  });
});

describe("concurrent attempts", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer({ manualClock: true, args: LOOPBACK_ALLOWED });
  });
  afterAll(() => server.stop());

  /** Lets targets wait for each other. Returns how many received a request before any responded. */
  async function mostAtOnce(targets: number, accountsCount: number, firstAnswer: number): Promise<number> {
    const bound = FORWARDING_BUCKETS_MAX * Math.min(1, accountsCount * ACCOUNT_SHARE);
    const accounts = await Promise.all(Array.from({ length: accountsCount }, () => server.account()));
    let asked = 0;
    let most = 0;
    let open = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const receivers = Array.from({ length: targets }, () => new Receiver());
    for (const [index, receiver] of receivers.entries()) {
      receiver.respond = async (_, number) => {
        if (number === 1 && firstAnswer !== 200) return firstAnswer;
        asked += 1;
        most = Math.max(most, asked);
        await gate;
        asked -= 1;
        return 200;
      };
      const account = accounts[index % accountsCount];
      if (account === undefined) throw new Error("no account");
      const { id } = await newBucket(account, { target_url: receiver.url });
      await accepted(server, id);
      await setState(account, id, "live");
    }
    const advanced = server.clock.advance(1_000);
    while (most < Math.min(targets, bound)) await Bun.sleep(1);
    // A further request would have arrived by now.
    await Bun.sleep(50);
    open();
    await advanced;
    for (const receiver of receivers) {
      expect(receiver.hits.length).toBe(firstAnswer === 200 ? 1 : 2);
      await receiver.stop();
    }
    return most;
  }

  test("are limited in buckets; the others follow", async () => {
    expect(await mostAtOnce(FORWARDING_BUCKETS_MAX + 3, 2, 200)).toBe(FORWARDING_BUCKETS_MAX);
  });

  test("of one account are limited to its share; the others follow", async () => {
    const share = FORWARDING_BUCKETS_MAX * ACCOUNT_SHARE;
    expect(await mostAtOnce(share + 3, 1, 200)).toBe(share);
  });

  test("are limited in retries; the others follow", async () => {
    expect(await mostAtOnce(CONCURRENT_RETRIES_MAX + 3, 2, 500)).toBe(CONCURRENT_RETRIES_MAX);
  });
});

/** The stores on a separate database. */
function openStores(scratch: Scratch) {
  const db = new Database(scratch.path("catch.db"), "normal");
  migrate(db, MIGRATIONS);
  const clock = new ManualClock(TEST_START_MS);
  const writer = new Writer(db, clock, new KeptLog());
  return { db, writer, store: bucketStore(db), events: eventStore(db) };
}

describe("buckets in memory", () => {
  test("have a limit, and correct counts beyond it", async () => {
    const scratch = new Scratch();
    const { db, writer, store, events } = openStores(scratch);
    const outbound = new OutboundClient([]);
    try {
      const vault = createVault(new Uint8Array(32));
      const ids = createIds(() => TEST_START_MS);
      let reads = 0;
      const find: typeof store.find = (id) => {
        reads += 1;
        return store.find(id);
      };
      const deps = {
        store: { ...store, find },
        events,
        vault,
        digests: new SecretDigests(vault),
        ids,
        writer,
        outbound,
        tiers: DEFAULT_TIERS,
        changes: new Changes(),
        publicUrl: () => null,
        accounts: {} as never,
        endpoints: {} as never,
      };
      const buckets = new Buckets(deps, { wentLive: () => undefined }, 3);
      const made: string[] = [];
      for (let number = 0; number < 20; number += 1) {
        const bucket = await writer.submit((tx) =>
          buckets.create(tx, { account: { ref: 1, tier: "unlimited" }, project: { ref: 1 } } as Caller, {
            target_url: `https://e.com/${number}`,
            provider: "stripe",
            signing_secret: `secret-${number}`,
          }),
        );
        made.push(bucket.id);
      }
      reads = 0;
      for (const id of made) buckets.find(id);
      expect(reads).toBeGreaterThanOrEqual(20 - 3);
      // Its counts change while others evict it from memory.
      for (let round = 0; round < 3; round += 1) {
        for (const id of made) {
          await writer.submit((tx) => {
            const bucket = buckets.find(id);
            if (bucket !== undefined) buckets.count(tx, bucket, null, "pending");
          });
        }
      }
      for (const [number, id] of made.entries()) {
        expect(buckets.find(id)).toMatchObject({
          target_url: `https://e.com/${number}`,
          signing_secret: `secret-${number}`,
          provider: "stripe",
          pending: 3,
          delivered: 0,
          failed: 0,
        });
      }
      reads = 0;
      for (let round = 0; round < 5; round += 1) buckets.find(made[0] ?? "");
      expect(reads).toBeLessThanOrEqual(1);
      expect(BUCKETS_IN_MEMORY_MAX).toBe(20_000);
    } finally {
      outbound.close();
      writer.close();
      db.close();
      scratch.remove();
    }
  });
});

describe("100,000 events in a bucket", () => {
  /** Maximum time of a page in the server. */
  const PAGE_MS_MAX = 5;
  const EVENTS = 100_000;

  test("any page is read within 5 ms, whatever the filter", async () => {
    const scratch = new Scratch();
    const { db, writer, events } = openStores(scratch);
    try {
      const body = new Uint8Array(200);
      for (let from = 0; from < EVENTS; from += 5_000) {
        await writer.submit((tx) => {
          for (let number = from; number < from + 5_000; number += 1) {
            // Rare events are far apart: a search that scans the others would be slow.
            const status = number % 20_000 === 7 ? "failed" : "pending";
            events.insert(
              tx,
              1,
              number + 1,
              { status, error: null },
              {
                provider: number % 10_000 === 3 ? "svix" : "stripe",
                verification: "none",
                headers: "{}",
                body,
                large: null,
                way: { method: null, path: null, query: null, remote_address: null },
                event_type: null,
                provider_event_id: null,
              },
            );
          }
        });
      }
      const filters = [
        { provider: null, status: null },
        { provider: null, status: "failed" },
        { provider: "svix", status: null },
        { provider: "svix", status: "failed" },
        { provider: "github", status: "pending" },
        { provider: null, status: "pending" },
      ] as const;
      const counts = [101, 5, 10, 0, 0, 101];
      for (const [index, filter] of filters.entries()) {
        for (const before of [EVENTS + 1, EVENTS / 2, 200]) {
          const reading = () => processorMs(() => events.page(1, filter, before, 101));
          expect(await leastMs(PAGE_MS_MAX, reading), JSON.stringify(filter)).toBeLessThanOrEqual(
            PAGE_MS_MAX,
          );
        }
        expect(events.page(1, filter, EVENTS + 1, 101).length).toBe(counts[index] ?? -1);
      }
    } finally {
      writer.close();
      db.close();
      scratch.remove();
    }
  }, 60_000);
});
