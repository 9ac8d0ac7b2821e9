import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { holdLock } from "../../src/client/hold.ts";
import {
  type FetchLike,
  type HeldLock,
  type Locks,
  Ninefold,
  NinefoldError,
} from "../../src/client/index.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { apiError, startStub } from "./stub-server.ts";
import { createRecorder } from "./support.ts";

/** The shortest that the server takes: a lock that is not renewed is gone soon. */
const TTL_MS = 1_000;
/** For locks that are to be kept, on a machine that is busy with other tests. */
const SAFE_TTL_MS = 4_000;

let server: TestServer;
let key = "";
beforeAll(async () => {
  // Real time: what is tested is what the client does while time passes on both sides.
  server = await startTestServer();
  key = String((await server.account({ tier: "unlimited" })).key);
});
afterAll(() => server.stop());

function client(fetch?: FetchLike): Ninefold {
  return new Ninefold({ url: server.url, apiKey: key, fetch });
}

async function isLocked(name: string): Promise<boolean> {
  return (await client().locks.status(name)).locked;
}

/** A `fetch` whose network fails once it is told to. */
function breakable(): { fetch: FetchLike; broken: boolean } {
  const network = {
    broken: false,
    fetch: (url: string, init: RequestInit) =>
      network.broken ? Promise.reject(new TypeError("no network")) : fetch(url, init),
  };
  return network;
}

describe("withLock", () => {
  test.concurrent("holds the lock while the function runs, returns its result, and releases", async () => {
    const seen = await client().withLock("a", async (lock) => {
      expect(await isLocked("a")).toBe(true);
      expect(lock.signal.aborted).toBe(false);
      return lock;
    });
    expect(seen).toMatchObject({ key: "a", token: expect.any(String), fencingToken: expect.any(Number) });
    expect(await isLocked("a")).toBe(false);
  });

  test.concurrent("releases after an error, which it throws", async () => {
    const failing = client().withLock("b", () => {
      throw new Error("the work failed");
    });
    expect(await failing.catch((error) => error)).toEqual(new Error("the work failed"));
    expect(await isLocked("b")).toBe(false);
  });

  test.concurrent("runs one function at a time, in order, with increasing fencing tokens", async () => {
    const tokens: number[] = [];
    let inside = 0;
    const work = async ({ fencingToken }: HeldLock): Promise<void> => {
      inside += 1;
      expect(inside).toBe(1);
      await Bun.sleep(2);
      tokens.push(fencingToken);
      inside -= 1;
    };
    await Promise.all(Array.from({ length: 20 }, () => client().withLock("c", work)));
    expect(tokens).toHaveLength(20);
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
    expect(new Set(tokens).size).toBe(20);
  });

  test.concurrent("renews the lock for work that takes longer than its TTL", async () => {
    const recorder = createRecorder();
    await client(recorder.fetch).withLock(
      "d",
      async ({ signal }) => {
        await Bun.sleep(2.2 * SAFE_TTL_MS);
        expect(signal.aborted).toBe(false);
        expect(await isLocked("d")).toBe(true);
      },
      { ttlMs: SAFE_TTL_MS },
    );
    const sent = (what: string) => recorder.requests.filter(({ path }) => path.endsWith(what));
    expect(sent("/acquire")).toHaveLength(1);
    const renewals = sent("/extend");
    expect(renewals.length).toBeGreaterThanOrEqual(4);
    expect(renewals.length).toBeLessThanOrEqual(7);
    expect(new Set(renewals.map(({ body }) => JSON.parse(body ?? "{}").token)).size).toBe(1);
    expect(await isLocked("d")).toBe(false);
  });

  test.concurrent("throws if others hold the lock for too long", async () => {
    const other = await client().locks.acquire("e", { ttlMs: 30_000 });
    const error = await client()
      .withLock("e", () => "never", { waitMs: 1_000 })
      .catch((thrown) => thrown);
    expect(error).toMatchObject({ code: "timeout", status: 408 });
    expect(await client().locks.release("e", other.token)).toEqual({ status: "released" });
  });

  test.concurrent("aborts the function when a lock that cannot be renewed expires", async () => {
    const network = breakable();
    const error = await client(network.fetch)
      .withLock(
        "f",
        async ({ signal }) => {
          network.broken = true;
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
          expect(signal.reason).toMatchObject({ code: "lock_lost" });
          network.broken = false;
        },
        { ttlMs: TTL_MS },
      )
      .catch((thrown) => thrown);
    expect(error).toBeInstanceOf(NinefoldError);
    expect(error.message).toBe("The lock f was lost: it could not be renewed in time.");
  });

  test.concurrent("keeps the lock during a short outage", async () => {
    const network = breakable();
    await client(network.fetch).withLock(
      "g",
      async ({ signal }) => {
        network.broken = true;
        await Bun.sleep(0.6 * SAFE_TTL_MS);
        network.broken = false;
        await Bun.sleep(SAFE_TTL_MS);
        expect(signal.aborted).toBe(false);
      },
      { ttlMs: SAFE_TTL_MS },
    );
  });

  test.concurrent("ignores a renewal that completes during the release", async () => {
    let renewals = 0;
    const slow: FetchLike = async (url, init) => {
      const response = await fetch(url, init);
      if (!url.endsWith("/extend")) return response;
      renewals += 1;
      await Bun.sleep(300);
      return response;
    };
    const { signal } = await client(slow).withLock(
      "r",
      async (lock) => {
        while (renewals === 0) await Bun.sleep(5);
        return lock;
      },
      { ttlMs: TTL_MS },
    );
    expect(await isLocked("r")).toBe(false);
    await Bun.sleep(1.2 * TTL_MS);
    expect(signal.aborted).toBe(false);
    expect(renewals).toBe(1);
  });

  test.concurrent("detects at the next renewal that another client holds the lock", async () => {
    let thief = "";
    const error = await client()
      .withLock(
        "h",
        async ({ token, signal }) => {
          await client().locks.release("h", token);
          ({ token: thief } = await client().locks.acquire("h", { ttlMs: 30_000 }));
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
        },
        { ttlMs: 3_000 },
      )
      .catch((thrown) => thrown);
    expect(error.message).toBe("The lock h was lost: another client holds it now.");
    expect(await client().locks.release("h", thief)).toEqual({ status: "released" });
  });

  test.concurrent("reports a lock that was free in between as lost and leaves it free", async () => {
    const error = await client()
      .withLock(
        "i",
        async ({ token, signal }) => {
          await client().locks.release("i", token);
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
        },
        { ttlMs: TTL_MS },
      )
      .catch((thrown) => thrown);
    expect(error.message).toBe(
      "The lock i was lost: it had expired, and another client may have held it since.",
    );
    expect(await isLocked("i")).toBe(false);
  });

  test.concurrent("throws lock_lost also if the function succeeded", async () => {
    const work = async ({ token }: HeldLock): Promise<string> => {
      await client().locks.release("j", token);
      return "done";
    };
    const error = await client()
      .withLock("j", work)
      .catch((thrown) => thrown);
    expect(error).toMatchObject({ code: "lock_lost" });
    expect(error.message).toBe("The lock j was lost: it was no longer held when it was released.");
  });

  // Alone: it holds everyone else up, too.
  test("detects that the process was suspended for longer than the TTL", async () => {
    const error = await client()
      .withLock("k", () => Bun.sleepSync(1.3 * TTL_MS), { ttlMs: TTL_MS })
      .catch((thrown) => thrown);
    expect(error).toMatchObject({ code: "lock_lost" });
  });

  test.concurrent("cancels the wait by the caller's signal and leaves the queue", async () => {
    const other = await client().locks.acquire("l", { ttlMs: 30_000 });
    const controller = new AbortController();
    const waiting = client()
      .withLock("l", () => "never", { waitMs: 900_000, signal: controller.signal })
      .catch((thrown) => thrown);
    while ((await client().locks.status("l")).queue_depth === 0) await Bun.sleep(5);
    controller.abort("enough");
    expect(await waiting).toBe("enough");
    while ((await client().locks.status("l")).queue_depth > 0) await Bun.sleep(5);
    await client().locks.release("l", other.token);
  });

  test.concurrent("passes the signal on to the running function", async () => {
    const controller = new AbortController();
    const result = await client().withLock(
      "m",
      async ({ signal }) => {
        controller.abort("enough");
        expect(signal.reason).toBe("enough");
        return "tidied up";
      },
      { signal: controller.signal },
    );
    expect(result).toBe("tidied up");
    expect(await isLocked("m")).toBe(false);
  });
});

describe("a server that stops responding", () => {
  /** A `fetch` that grants once, late, and then hangs until it is given up. */
  function grantsOnce(afterMs: number): FetchLike {
    let asked = 0;
    return async (_, init) => {
      asked += 1;
      if (asked === 1) {
        await Bun.sleep(afterMs);
        return Response.json({ status: "acquired", token: "t", fencing_token: 7 });
      }
      return new Promise((__, reject) => {
        init.signal?.addEventListener("abort", () => reject(init.signal?.reason));
      });
    };
  }

  test.concurrent("delays a result for at most the TTL", async () => {
    expect(await client(grantsOnce(0)).withLock("k", () => "done", { ttlMs: 1_500 })).toBe("done");
  });

  test.concurrent("releases a lock whose caller cancels between grant and work", async () => {
    const controller = new AbortController();
    const [ttlMs, grantedMs] = [6_000, 2_200];
    let [worked, isOver] = [false, false];
    const end = setTimeout(() => {
      isOver = true;
    }, ttlMs);
    const unconfirmed = lateLocks(grantedMs, () => {
      queueMicrotask(() => controller.abort("enough"));
      return new Promise(() => {});
    });
    const work = () => {
      worked = true;
    };
    const late = holdLock(unconfirmed, "k", work, { ttlMs, signal: controller.signal });
    expect(await late.catch((error) => error)).toBe("enough");
    // Not only once the lock's time is over.
    expect([worked, isOver]).toEqual([false, false]);
    clearTimeout(end);
  });

  test.concurrent("does not start the work if the lock expired before it was confirmed", async () => {
    const refusing = lateLocks(1_000, () =>
      Promise.reject(new NinefoldError("busy", { code: "rate_limit_exceeded" })),
    );
    const error = await holdLock(refusing, "k", () => "never", { ttlMs: 1_000 }).catch((thrown) => thrown);
    expect(error.message).toBe("The lock k was lost: it could not be renewed in time.");
  });
});

/** Locks that are granted late, and renewed as it is said. */
function lateLocks(afterMs: number, renew: () => Promise<never>): Locks {
  const locks: Pick<Locks, "acquire" | "extend" | "release"> = {
    acquire: async (name) => {
      await Bun.sleep(afterMs);
      return {
        ...({ status: "acquired", token: "t", fencing_token: 1, key: name } as const),
        reentrant: false,
        expires_at: 0,
      };
    },
    extend: renew,
    release: async () => ({ status: "released" }),
  };
  return locks as Locks;
}

describe("acquire", () => {
  test.concurrent("retries with the same token after a lost response and gets the same lock", async () => {
    let lost = 0;
    const forgetful: FetchLike = async (url, init) => {
      const response = await fetch(url, init);
      if (lost > 0) return response;
      lost += 1;
      await response.text();
      throw new TypeError("the connection broke");
    };
    const lock = await client(forgetful).locks.acquire("n");
    expect(lock.reentrant).toBe(true);
    expect(await client().locks.release("n", lock.token)).toEqual({ status: "released" });
  });

  test.concurrent("continues to wait through an outage, for the remaining time", async () => {
    const down = { instead: "cut" } as const;
    const granted = {
      body: { status: "acquired", token: "t", fencing_token: 1, key: "k", reentrant: false },
    };
    using stub = await startStub(down, apiError(503, "service_unavailable"), down, granted);
    const nf = new Ninefold({ url: stub.url, apiKey: key, retries: 1 });
    expect(await nf.locks.acquire("k", { waitMs: 60_000 })).toMatchObject({ fencing_token: 1 });
    const bodies = stub.requests.map(({ body }) => JSON.parse(body));
    expect(bodies).toHaveLength(4);
    expect(new Set(bodies.map(({ token }) => token)).size).toBe(1);
    const waits = bodies.map(({ timeout }) => timeout);
    expect(waits[0]).toBe(60_000);
    expect(waits).toEqual([...waits].sort((a, b) => b - a));
    expect(waits[3]).toBeLessThan(60_000 - 250 - 500 - 1_000);
  });

  test.concurrent("releases the lock after an acquire without a response", async () => {
    using stub = await startStub({ instead: "cut" });
    const nf = new Ninefold({ url: stub.url, apiKey: key, retries: 0 });
    expect(await nf.locks.acquire("k").catch((error) => error)).toMatchObject({ code: "connection_failed" });
    while (stub.requests.length < 2) await Bun.sleep(5);
    const [acquire, release] = stub.requests;
    expect(release?.path).toBe("/v1/latch/k/release");
    expect(JSON.parse(release?.body ?? "").token).toBe(JSON.parse(acquire?.body ?? "").token);
  });

  test.concurrent("releases after a response of a proxy, but not after a rejection or an unsent request", async () => {
    using stub = await startStub({ status: 504, body: "" }, {}, apiError(408, "timeout"));
    const nf = new Ninefold({ url: stub.url, apiKey: key, retries: 0 });
    await nf.locks.acquire("k").catch(() => {});
    while (stub.requests.length < 2) await Bun.sleep(5);
    expect(await nf.locks.acquire("k").catch((error) => error)).toMatchObject({ code: "timeout" });
    await nf.locks.acquire("k", { signal: AbortSignal.abort("enough") }).catch(() => {});
    await Bun.sleep(50);
    const ends = stub.requests.map(({ path }) => path.split("/").at(-1));
    expect(ends).toEqual(["acquire", "release", "acquire"]);
  });

  test.concurrent("does not release a token of the caller", async () => {
    using stub = await startStub({ instead: "cut" });
    const nf = new Ninefold({ url: stub.url, apiKey: key, retries: 0 });
    await nf.locks.acquire("k", { token: crypto.randomUUID() }).catch(() => {});
    await Bun.sleep(50);
    expect(stub.requests).toHaveLength(1);
  });
});
