import { afterAll, beforeAll, expect, test } from "bun:test";
import { type FetchLike, Ninefold, type Used } from "../../src/client/index.ts";
import { eventually } from "../support/eventually.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

let server: TestServer;
let key: string | null = null;
let meters = 0;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  key = (await server.account({ balance: 1_000 })).key;
});
afterAll(() => server.stop());

/** A client with a meter of its own that holds 100, whose answers may get lost. */
async function begin(lost: (path: string) => boolean = () => false) {
  const asked: string[] = [];
  const through: FetchLike = async (url, init) => {
    const { pathname } = new URL(url);
    asked.push(pathname.split("/").at(-1) ?? "");
    const answer = await fetch(url, init);
    if (lost(pathname)) throw new TypeError("the connection broke");
    return answer;
  };
  const nf = new Ninefold({ url: server.url, apiKey: key, fetch: through, retries: 0 });
  meters += 1;
  const meter = nf.meter(`reserve-${meters}`);
  await meter.refill(100);
  const state = async () => {
    const { balance, held } = await meter.balance();
    return [balance, held];
  };
  return { nf, meter, asked, state };
}

const using = (used: number) => async (): Promise<Used<string>> => ({ used, result: "done" });

test("captures the used amount and returns the result", async () => {
  const { nf, meter, state } = await begin();
  const seen = await nf.reserve(meter.id, { amount: 60 }, ({ available, status }) => ({
    used: 45,
    result: [available, status],
  }));
  expect(seen).toEqual([40, "open"]);
  expect(await state()).toEqual([55, 0]);
  // As much as is available, where it used more.
  await nf.reserve(meter.id, { amount: 10 }, using(70));
  expect(await state()).toEqual([0, 0]);
});

test("releases the hold if the function throws immediately or later", async () => {
  const { nf, meter, state, asked } = await begin();
  const failing = nf.reserve(meter.id, { amount: 60 }, async () => Promise.reject(new Error("later")));
  await expect(failing).rejects.toThrow("later");
  const atOnce = nf.reserve(meter.id, { amount: 60 }, () => {
    throw new Error("at once");
  });
  await expect(atOnce).rejects.toThrow("at once");
  expect(await state()).toEqual([100, 0]);
  expect(asked.filter((name) => name === "capture")).toEqual([]);
});

test("does not run the function without enough credits", async () => {
  const { nf, meter } = await begin();
  let ran = false;
  const poor = nf.reserve(meter.id, { amount: 101 }, () => {
    ran = true;
    return { used: 1, result: null };
  });
  await expect(poor).rejects.toMatchObject({ code: "insufficient_balance", extras: { available: 100 } });
  expect(ran).toBe(false);
});

test("does not release after a capture whose response was lost", async () => {
  const { nf, meter, asked, state } = await begin((path) => path.endsWith("/capture"));
  await expect(nf.reserve(meter.id, { amount: 60 }, using(45))).rejects.toMatchObject({
    code: "connection_failed",
  });
  expect(asked).not.toContain("release");
  expect(await state()).toEqual([55, 0]);
  const [hold] = await meter.holds().toArray();
  expect(hold).toMatchObject({ status: "captured", captured: 45 });
});

test("releases a hold whose response was lost in the background, unless its id was given", async () => {
  const { nf, meter, asked, state } = await begin((path) => path.endsWith("/holds"));
  await expect(nf.reserve(meter.id, { amount: 60 }, using(1))).rejects.toThrow();
  await eventually(async () => expect(await state()).toEqual([100, 0]));
  asked.length = 0;
  const body = { amount: 60, hold_id: `given-${meters}` };
  await expect(nf.reserve(meter.id, body, using(1))).rejects.toThrow();
  await Bun.sleep(20);
  expect(asked).not.toContain("release");
  expect(await state()).toEqual([100, 60]);
});

test("does not run for a closed hold; deducts the amount of a hold that expires meanwhile", async () => {
  const { nf, meter, state } = await begin();
  const body = { amount: 60, hold_id: `late-${meters}`, ttl_seconds: 60 };
  const late = await nf.reserve(meter.id, body, async () => {
    await server.clock.advance(60_000);
    return { used: 45, result: "late" };
  });
  expect(late).toBe("late");
  expect(await state()).toEqual([55, 0]);
  expect((await meter.history().toArray())[0]).toMatchObject({ kind: "deduct", amount: -45 });
  await expect(nf.reserve(meter.id, body, using(1))).rejects.toMatchObject({
    code: "conflict",
    extras: { status: "expired" },
  });
  expect(await state()).toEqual([55, 0]);
});
