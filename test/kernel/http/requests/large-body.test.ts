import { describe, expect, test } from "bun:test";
import {
  BodiesInProgress,
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
});
