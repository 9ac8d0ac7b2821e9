import { describe, expect, test } from "bun:test";
import { onAbort } from "../../src/client/abort.ts";
import { Ninefold } from "../../src/client/index.ts";
import { startStub } from "./stub-server.ts";

/** A signal that counts the listeners on it. */
function counted(): { controller: AbortController; listeners: () => number; most: () => number } {
  const controller = new AbortController();
  const { signal } = controller;
  let [now, most] = [0, 0];
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...given: Parameters<typeof add>) => {
    now += 1;
    most = Math.max(most, now);
    add(...given);
  };
  signal.removeEventListener = (...given: Parameters<typeof remove>) => {
    now -= 1;
    remove(...given);
  };
  return { controller, listeners: () => now, most: () => most };
}

describe("a signal", () => {
  test("has one listener for any number of requests, and none after them", async () => {
    using stub = await startStub({});
    const nf = new Ninefold({ url: stub.url, apiKey: null });
    const { controller, listeners, most } = counted();
    const { signal } = controller;
    await Promise.all(Array.from({ length: 20 }, () => nf.ping({ signal })));
    expect([most(), listeners()]).toEqual([1, 0]);
    await nf.ping({ signal });
    expect([most(), listeners()]).toEqual([1, 0]);
  });

  test("aborts every request in progress once", () => {
    const { controller } = counted();
    const called: string[] = [];
    const forget = onAbort(controller.signal, () => called.push("a"));
    onAbort(controller.signal, () => called.push("b"));
    onAbort(controller.signal, () => called.push("c"));
    forget();
    forget();
    controller.abort();
    controller.abort();
    onAbort(controller.signal, () => called.push("late"));
    expect(called).toEqual(["b", "c"]);
  });
});

test("an aborted call throws its reason and returns no fallback", async () => {
  using stub = await startStub({ instead: "cut" });
  const nf = new Ninefold({ url: stub.url, apiKey: null, retries: 0 });
  const reason = await nf.ping().catch((error) => error);
  expect(reason.code).toBe("connection_failed");
  const asked = nf.flags.isEnabled("beta", { fallback: true, signal: AbortSignal.abort(reason) });
  expect(await asked.catch((error) => error)).toBe(reason);
});
