import { describe, expect, test } from "bun:test";
import {
  BodiesInProgress,
  LARGE_TURNS,
  PROGRESS_LIMITS,
} from "../../../../src/kernel/http/requests/bodies-in-progress.ts";
import { LargeBody, PIECE_BYTES } from "../../../../src/kernel/http/requests/large-body.ts";

type Chunk = { readonly done: boolean; readonly value?: Uint8Array };

function bodyOf(read: () => Promise<Chunk>, limits: Partial<typeof PROGRESS_LIMITS> = {}) {
  const all = new BodiesInProgress({ ...PROGRESS_LIMITS, ...limits });
  const ended: string[] = [];
  const source = {
    start: new Uint8Array(10),
    read,
    ended: async () => void ended.push("ended"),
    tooLarge: async () => new Error("too large") as never,
    cancel: () => void ended.push("cancelled"),
  };
  return {
    all,
    ended,
    body: new LargeBody(source, all.beginLarge("a", PIECE_BYTES), 25 * 1024 * 1024, null),
  };
}

describe("a large body", () => {
  test("is returned in pieces, whatever the chunks in which it arrives", async () => {
    const sizes = [PIECE_BYTES, 3, 2 * PIECE_BYTES];
    const { body, ended } = bodyOf(async () => {
      const size = sizes.shift();
      return size === undefined ? { done: true } : { done: false, value: new Uint8Array(size) };
    });
    const pieces: number[] = [];
    for (let piece = await body.next(); piece !== null; piece = await body.next()) pieces.push(piece.length);
    expect(pieces).toEqual([PIECE_BYTES, PIECE_BYTES, PIECE_BYTES, 13]);
    expect(body.size).toBe(3 * PIECE_BYTES + 13);
    body.close();
    expect(ended).toEqual(["ended"]);
  });

  test("whose sender is too slow is rejected, however often a byte arrives", async () => {
    const { body, ended } = bodyOf(
      async () => {
        await Bun.sleep(5);
        return { done: false, value: new Uint8Array(1) };
      },
      { pieceMsMax: 40 },
    );
    const rejected = await body.next().catch((error: unknown) => error);
    expect(rejected).toMatchObject({ code: "timeout", details: { headers: { connection: "close" } } });
    body.close();
    expect(ended).toEqual(["cancelled"]);
  });

  test("has a share of the limits until it ends", () => {
    const { all, body } = bodyOf(() => Promise.resolve({ done: true }), { largeOfSenderMax: 2, largeMax: 3 });
    const second = all.beginLarge("a", 1);
    expect(() => all.beginLarge("a", 1)).toThrow("Too many request bodies");
    all.beginLarge("b", 1);
    expect(() => all.beginLarge("c", 1)).toThrow("Too many request bodies");
    second.end();
    second.end();
    all.beginLarge("a", 1).end();
    body.close();
    expect(all.total).toBe(1);
  });

  test("has its turn at reading before those that began later, unless it has gone last", async () => {
    const all = new BodiesInProgress();
    const bodies = Array.from({ length: LARGE_TURNS + 2 }, (_, at) => all.beginLarge(`network ${at}`, 1));
    const order: number[] = [];
    const ends: (() => void)[] = [];
    const take = (at: number) =>
      bodies[at]?.turns.take().then((end) => {
        order.push(at);
        ends.push(end);
      });
    await Promise.all(Array.from({ length: LARGE_TURNS }, (_, at) => take(at)));
    // The last two wait, in whatever order they came, and then those that began first want to read again.
    bodies[1]?.turns.goLast();
    const later = [take(LARGE_TURNS + 1), take(LARGE_TURNS), take(1), take(0)];
    for (const end of ends.splice(0)) end();
    await Promise.all(later);
    expect(order.slice(LARGE_TURNS)).toEqual([0, LARGE_TURNS, LARGE_TURNS + 1, 1]);
  });

  test("that arrives slowly is read after others, and one that arrives quickly is not", async () => {
    for (const { chunkMs, isSlow } of [
      { chunkMs: 120, isSlow: true },
      { chunkMs: 0, isSlow: false },
    ]) {
      let went = 0;
      const chunks = [PIECE_BYTES / 2, PIECE_BYTES / 2];
      const source = {
        start: new Uint8Array(),
        read: async () => {
          await Bun.sleep(chunkMs);
          return { done: false, value: new Uint8Array(chunks.shift() ?? 0) };
        },
        ended: () => Promise.resolve(),
        tooLarge: async () => new Error("too large") as never,
        cancel: () => undefined,
      };
      const turns = {
        take: async () => () => undefined,
        goLast: () => {
          went += 1;
        },
      };
      // A fortieth of the time is a second for one, and 100 ms for the other.
      const pieceMsMax = isSlow ? 4_000 : 40_000;
      const body = new LargeBody(source, { pieceMsMax, turns, end: () => undefined }, PIECE_BYTES, null);
      expect((await body.next())?.length).toBe(PIECE_BYTES);
      expect(went).toBe(isSlow ? 1 : 0);
      body.close();
    }
  });

  test("of which nothing arrives leaves its turn to others", async () => {
    const { all } = bodyOf(() => Promise.resolve({ done: true }));
    const silent = Array.from({ length: LARGE_TURNS + 1 }, (_, at) => {
      const source = {
        start: new Uint8Array(),
        read: () =>
          at < LARGE_TURNS ? new Promise<never>(() => undefined) : Promise.resolve({ done: true }),
        ended: () => Promise.resolve(),
        tooLarge: async () => new Error("too large") as never,
        cancel: () => undefined,
      };
      return new LargeBody(source, all.beginLarge(`network ${at}`, 1), 1, null);
    });
    for (const body of silent.slice(0, LARGE_TURNS)) body.next().catch(() => undefined);
    expect(await silent.at(-1)?.next()).toBeNull();
    for (const body of silent) body.close();
  });
});
