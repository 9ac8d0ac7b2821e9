import { expect, test } from "bun:test";
import fc from "fast-check";
import type { Answer } from "../../support/client.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";
import {
  type AcquiredLock,
  depth,
  lockFrom,
  type PendingAcquire,
  release,
  startAcquire,
  waitForDepth,
} from "./support.ts";

/** Far above the normal duration, so that the test does not fail on a busy machine. */
const TIMEOUT_MS = 60_000;
const KEYS = ["red", "green", "blue"] as const;

/** A step of a client. `key` and `pick` are reduced to existing locks and requests. */
type Step =
  | {
      readonly do: "acquire";
      readonly key: number;
      readonly ttl: number;
      readonly timeout: number;
      readonly token: boolean;
    }
  | { readonly do: "reacquire"; readonly key: number; readonly ttl: number }
  | { readonly do: "release"; readonly key: number }
  | { readonly do: "wrong-release" | "disconnect"; readonly key: number; readonly pick: number }
  | { readonly do: "advance"; readonly ms: number }
  | { readonly do: "restart" };

/** A request in the model. */
interface Request {
  readonly client: number;
  readonly ttl: number;
  readonly token: string | null;
  readonly deadline: number;
}

type Outcome = "granted" | "timeout" | "stopped";

/** The guarantees of locks: one holder, first come first served, leases and waits expire on time. */
class Model {
  readonly locks = new Map<string, { client: number; ends: number; queue: Request[] }>();
  readonly outcomes: { client: number; key: string; outcome: Outcome }[] = [];
  now = 0;

  acquire(key: string, client: number, ttl: number, timeout: number, token: string | null): boolean {
    const lock = this.locks.get(key);
    if (lock !== undefined) lock.queue.push({ client, ttl, token, deadline: this.now + timeout });
    else this.locks.set(key, { client, ends: this.now + ttl, queue: [] });
    return lock === undefined;
  }

  end(key: string): void {
    const lock = this.locks.get(key);
    const next = lock?.queue.shift();
    if (lock === undefined || next === undefined) {
      this.locks.delete(key);
      return;
    }
    this.locks.set(key, { client: next.client, ends: this.now + next.ttl, queue: lock.queue });
    this.outcomes.push({ client: next.client, key, outcome: "granted" });
  }

  advance(ms: number): void {
    const until = this.now + ms;
    for (let due = this.due(until); due !== undefined; due = this.due(until)) {
      this.now = due.at;
      due.run();
    }
    this.now = until;
  }

  /** All waiters are rejected; held locks stay held. */
  restart(): void {
    for (const [key, { queue }] of this.locks) {
      for (const { client } of queue.splice(0)) this.outcomes.push({ client, key, outcome: "stopped" });
    }
  }

  private due(until: number): { at: number; run: () => void } | undefined {
    const timers = [...this.locks].flatMap(([key, { ends, queue }]) => [
      { at: ends, run: () => this.end(key) },
      ...queue.map(({ client, deadline }) => ({
        at: deadline,
        run: () => {
          queue.splice(
            queue.findIndex((one) => one.client === client),
            1,
          );
          this.outcomes.push({ client, key, outcome: "timeout" });
        },
      })),
    ]);
    return timers.filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0];
  }
}

const STATUS = { granted: 200, timeout: 408, stopped: 503 } as const;

/** Runs the server and the model side by side. */
class Run {
  private readonly server: TestServer;
  private readonly prefix: string;
  private readonly model = new Model();
  private readonly pending = new Map<number, PendingAcquire>();
  private readonly held = new Map<string, AcquiredLock>();
  private clients = 0;

  constructor(server: TestServer, prefix: string) {
    this.server = server;
    this.prefix = prefix;
  }

  async take(step: Step): Promise<void> {
    if (step.do === "advance") {
      this.model.advance(step.ms);
      await this.server.clock.advance(step.ms);
    } else if (step.do === "restart") {
      this.model.restart();
      await this.server.restart();
    } else {
      await this.act(step, KEYS[step.key % KEYS.length] ?? "red");
    }
    await this.compareOutcomes();
    await this.compareStates();
  }

  /** Ends the remaining waits. */
  async finish(): Promise<void> {
    for (const one of this.pending.values()) one.disconnect();
    for (const key of KEYS) await waitForDepth(this.server.operator, this.prefix + key, 0);
  }

  private async act(step: Exclude<Step, { do: "advance" | "restart" }>, key: string): Promise<void> {
    if (step.do === "acquire") return this.acquire(step, key);
    if (step.do === "disconnect") return this.disconnect(step.pick, key);
    const held = this.held.get(key);
    const lock = this.model.locks.get(key);
    const { operator } = this.server;
    const path = this.prefix + key;
    if (step.do === "wrong-release") {
      const token = step.pick % 2 === 0 ? crypto.randomUUID() : `${held?.token}x`;
      expect((await release(operator, path, token)).status).toBe(lock === undefined ? 404 : 403);
    } else if (step.do === "release") {
      const response = await release(operator, path, held?.token ?? "");
      expect(response.status).toBe(lock === undefined ? 404 : 200);
      this.model.end(key);
    } else if (step.do === "reacquire" && held !== undefined && lock !== undefined) {
      lock.ends = this.model.now + step.ttl;
      const response = await operator.post(`/v1/latch/${path}/acquire`, { ttl: step.ttl, token: held.token });
      const expiresAt = this.server.clock.now() + step.ttl;
      expect(lockFrom(response)).toEqual({ ...held, expiresAt, reentrant: true });
    }
  }

  private async acquire(step: Extract<Step, { do: "acquire" }>, key: string): Promise<void> {
    const client = this.clients++;
    const token = step.token ? crypto.randomUUID() : null;
    const { ttl, timeout } = step;
    const waiters = this.model.locks.get(key)?.queue.length ?? 0;
    const body = { ttl, timeout, ...(token === null ? {} : { token }) };
    const pending = startAcquire(this.server.operator, this.prefix + key, body);
    if (this.model.acquire(key, client, ttl, timeout, token)) {
      this.granted(key, await pending.response, token, ttl);
    } else {
      this.pending.set(client, pending);
      await waitForDepth(this.server.operator, this.prefix + key, waiters + 1);
    }
  }

  private async disconnect(pick: number, key: string): Promise<void> {
    const queue = this.model.locks.get(key)?.queue ?? [];
    const [gone] = queue.splice(pick % Math.max(1, queue.length), 1);
    if (gone === undefined) return;
    this.pending.get(gone.client)?.disconnect();
    this.pending.delete(gone.client);
    await waitForDepth(this.server.operator, this.prefix + key, queue.length);
  }

  /** Expects exactly these requests to have responses; all others still wait. */
  private async compareOutcomes(): Promise<void> {
    for (const { client, key, outcome } of this.model.outcomes.splice(0)) {
      const response = await this.pending.get(client)?.response;
      this.pending.delete(client);
      expect(response?.status).toBe(STATUS[outcome]);
      if (outcome === "granted" && response !== undefined) this.granted(key, response, null, null);
    }
    for (const one of this.pending.values()) expect(one.settled()).toBe(null);
  }

  private granted(key: string, response: Answer, token: string | null, ttl: number | null): void {
    const held = lockFrom(response);
    expect(held.key).toBe(this.prefix + key);
    expect(held.reentrant).toBe(false);
    if (token !== null) expect(held.token).toBe(token);
    if (ttl !== null) expect(held.expiresAt).toBe(this.server.clock.now() + ttl);
    expect(held.fencingToken).toBeGreaterThan(this.held.get(key)?.fencingToken ?? 0);
    this.held.set(key, held);
  }

  private async compareStates(): Promise<void> {
    for (const key of KEYS) {
      const lock = this.model.locks.get(key);
      const { body } = await this.server.operator.get(`/v1/latch/${this.prefix}${key}`);
      expect(body).toEqual(
        lock === undefined
          ? { locked: false, queue_depth: 0, ttl_remaining: null }
          : {
              locked: true,
              queue_depth: lock.queue.length,
              ttl_remaining: lock.ends - this.model.now,
              mode: "exclusive",
              holders: 1,
            },
      );
    }
  }
}

const key = fc.nat(KEYS.length - 1);
// Leases expire at even milliseconds and waits at odd ones, because their order within a millisecond is undefined.
const ttl = fc.constantFrom(1_000, 2_000, 3_500, 10_000);
const timeout = ttl.map((ms) => ms + 1);
const pick = fc.nat(10);

/** Steps of one kind; the name stays a literal type. */
function steps<Name extends Step["do"], Fields>(
  weight: number,
  name: Name,
  fields: { [Field in keyof Fields]: fc.Arbitrary<Fields[Field]> },
): { weight: number; arbitrary: fc.Arbitrary<Fields & { do: Name }> } {
  return { weight, arbitrary: fc.record(fields).map((values) => ({ ...(values as Fields), do: name })) };
}

const step: fc.Arbitrary<Step> = fc.oneof(
  steps(8, "acquire", { key, ttl, timeout, token: fc.boolean() }),
  steps(2, "reacquire", { key, ttl }),
  steps(3, "release", { key }),
  steps(1, "wrong-release", { key, pick }),
  steps(2, "disconnect", { key, pick }),
  steps(4, "advance", { ms: fc.constantFrom(2, 500, 1_000, 1_500, 4_000) }),
  steps(1, "restart", {}),
);

test(
  "random histories: the holders, the order and the times of the model",
  async () => {
    const server = await startTestServer({ manualClock: true });
    let run = 0;
    try {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 80, size: "max" }), async (history) => {
          const world = new Run(server, `run-${run++}:`);
          try {
            for (const one of history) await world.take(one);
          } finally {
            await world.finish();
          }
        }),
        { numRuns: 20 },
      );
      expect(await depth(server.operator, "none")).toBe(0);
    } finally {
      await server.stop();
    }
  },
  TIMEOUT_MS,
);
