import { describe, expect, test } from "bun:test";
import {
  connectionDescriptors,
  connectionsToClose,
  RESERVED_DESCRIPTORS,
} from "../../../../src/kernel/http/access/connection-limit.ts";

function connection(
  descriptor: number,
  network: string,
  more: { hasSent?: boolean; silentMs?: number } = {},
) {
  return { descriptor, network, hasSent: false, silentMs: 0, ...more };
}

describe("descriptors for connections", () => {
  test("leave a reserve, of a low limit a quarter", () => {
    expect(connectionDescriptors(100)).toBe(75);
    expect(connectionDescriptors(65_536)).toBe(65_536 - RESERVED_DESCRIPTORS);
  });
});

describe("the connections that are closed", () => {
  const closed = (all: ReturnType<typeof connection>[], count: number): number[] =>
    connectionsToClose(all, count)
      .map(({ descriptor }) => descriptor)
      .sort((a, b) => a - b);

  test("are of the network that has the most, until another one has as many", () => {
    const crowd = [1, 2, 3, 4, 5].map((at) => connection(at, "192.0.2.1", { silentMs: 100 - at }));
    const few = [11, 12].map((at) => connection(at, "192.0.2.2", { silentMs: 1_000 }));
    expect(closed([...few, ...crowd], 3)).toEqual([1, 2, 3]);
    expect(closed([...few, ...crowd], 5)).toEqual([1, 2, 3, 4, 11]);
    expect(closed([...few, ...crowd], 9)).toHaveLength(7);
  });

  test("are those without a request first, then those that have been silent for longest", () => {
    const all = [
      connection(1, "a", { hasSent: true, silentMs: 9_000 }),
      connection(2, "a", { silentMs: 10 }),
      connection(3, "a", { silentMs: 20 }),
      connection(4, "a", { hasSent: true, silentMs: 1 }),
    ];
    expect(closed(all, 1)).toEqual([3]);
    expect(closed(all, 3)).toEqual([1, 2, 3]);
  });
});
