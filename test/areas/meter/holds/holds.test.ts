import { afterAll, beforeAll, expect, test } from "bun:test";
import { CAPTURES_MAX, HOLD_RETENTION_MS, HOLDS_OPEN_MAX } from "../../../../src/areas/meter/holds/holds.ts";
import {
  HOLD_METADATA_BYTES_MAX,
  HOLD_METADATA_MAX,
  HOLD_SECONDS_MAX,
} from "../../../../src/areas/meter/holds/schema.ts";
import { expectError } from "../../../support/errors.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";

let server: TestServer;
let account: AccountClient;
let meters = 0;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  account = await server.account({ balance: 100_000 });
});
afterAll(() => server.stop());

/** Creates a meter with a balance. */
class Held {
  readonly path = `/v1/meter/held-${++meters}`;

  static async with(balance: number): Promise<Held> {
    const meter = new Held();
    await meter.post("refill", { amount: balance });
    return meter;
  }
  post(path: string, body?: object) {
    return server.client(account.key).post(`${this.path}/${path}`, body);
  }
  get(path: string) {
    return server.client(account.key).get(`${this.path}/${path}`);
  }
  async state(): Promise<[balance: unknown, available: unknown, held: unknown]> {
    const { body } = await this.get("balance");
    return [body["balance"], body["available"], body["held"]];
  }
  async hold(amount: number, hold_id?: string, more: object = {}) {
    return this.post("holds", { amount, ...(hold_id === undefined ? {} : { hold_id }), ...more });
  }
}

test("a hold reduces the available credits, and a capture deducts the amount", async () => {
  const meter = await Held.with(100);
  const made = await meter.hold(60, "call-1", { metadata: { model: "large" } });
  expect(made.status).toBe(201);
  expect(made.body).toMatchObject({
    hold_id: "call-1",
    amount: 60,
    requested: 60,
    captured: 0,
    status: "open",
    balance: 100,
    available: 40,
    ended_at: null,
    metadata: { model: "large" },
  });
  const rejected = await meter.post("deduct", { amount: 50 });
  expect(expectError(rejected, "insufficient_balance")).toMatchObject({ balance: 100, available: 40 });
  const again = await meter.hold(60, "call-1");
  expect([again.status, again.body["available"]]).toEqual([200, 40]);

  const captured = await meter.post("holds/call-1/capture", { amount: 45 });
  expect(captured.body).toMatchObject({ status: "captured", captured: 45, balance: 55, available: 55 });
  const repeated = await meter.post("holds/call-1/capture", { amount: 45 });
  expect(repeated.body).toEqual(captured.body);
  expectError(await meter.post("holds/call-1/capture", { amount: 44 }), "conflict");
  expectError(await meter.post("holds/call-1/release"), "conflict");
  const { body } = await meter.get("history?limit=1");
  expect(body["entries"]).toMatchObject([{ kind: "capture", amount: -45, hold_id: "call-1" }]);
});

test("a balance cannot be reset below the held credits; a hold expires on time", async () => {
  const meter = await Held.with(55);
  await meter.hold(55, "all", { ttl_seconds: 60 });
  expect(expectError(await meter.post("reset", { balance: 10 }), "conflict")).toMatchObject({ held: 55 });
  await server.clock.advance(59_999);
  expect(await meter.state()).toEqual([55, 0, 55]);
  await server.clock.advance(1);
  expect(await meter.state()).toEqual([55, 55, 0]);
  expect((await meter.get("holds/all")).body).toMatchObject({ status: "expired", available: 55 });
  expect(expectError(await meter.post("holds/all/capture"), "conflict")).toMatchObject({ status: "expired" });
  expect((await meter.post("holds/all/release")).body).toMatchObject({ status: "expired" });
  expect((await meter.get("holds?status=open")).body["holds"]).toEqual([]);
  expect((await meter.post("deduct", { amount: 55 })).status).toBe(200);
});

test("a capture above the hold is rejected or capped; a partial capture keeps the rest on hold", async () => {
  const meter = await Held.with(55);
  await meter.hold(50, "over");
  expectError(await meter.post("holds/over/capture", { amount: 70 }), "invalid_request");
  expectError(
    await meter.post("holds/over/capture", { amount: 70, over: "cap", final: false }),
    "invalid_request",
  );
  const capped = await meter.post("holds/over/capture", { amount: 70, over: "cap" });
  expect(capped.body).toMatchObject({ balance: 0, captured: 55, shortfall: 15, status: "captured" });

  await meter.post("refill", { amount: 100 });
  await meter.hold(60, "stream");
  const part = await meter.post("holds/stream/capture", { amount: 20, final: false });
  expect(part.body).toMatchObject({ status: "open", amount: 40, captured: 20, balance: 80, available: 40 });
  const released = await meter.post("holds/stream/release");
  expect(released.body).toMatchObject({ status: "captured", captured: 20, available: 80 });
  await meter.hold(60, "none");
  expect((await meter.post("holds/none/capture", { amount: 0 })).body["status"]).toBe("released");
  // Repeated after a lost response.
  expect((await meter.post("holds/none/capture", { amount: 0 })).status).toBe(200);
  expectError(await meter.post("holds/none/capture", { amount: 1 }), "conflict");

  await meter.hold(10, "in-parts");
  const all = await meter.post("holds/in-parts/capture", { amount: 10, final: false });
  expect(all.body).toMatchObject({ status: "captured", captured: 10, available: 70 });
  expectError(await meter.post("holds/in-parts/capture", { amount: 10, final: false }), "conflict");
  expectError(await meter.post("holds/in-parts/extend", { ttl_seconds: 60 }), "conflict");
});

test(`a hold has ${CAPTURES_MAX} captures that leave it open, and then a final one`, async () => {
  const meter = await Held.with(100);
  await meter.hold(60, "steps");
  const { db, writer } = server.server.kernel;
  const set = db.change<[number]>(
    "UPDATE meter_holds SET captures = ? WHERE status = 1 AND hold_id = 'steps'",
  );
  await writer.submit((tx) => void set(tx, CAPTURES_MAX - 1));
  const part = { amount: 1, final: false };
  const last = await meter.post("holds/steps/capture", part);
  expect(last.body).toMatchObject({ status: "open", amount: 59, captured: 1 });
  expect(last.body).not.toHaveProperty("captures");
  expectError(await meter.post("holds/steps/capture", part), "forbidden");
  const final = await meter.post("holds/steps/capture", { amount: 9 });
  expect(final.body).toMatchObject({ status: "captured", captured: 10, balance: 90 });
});

test("repeating the request of a closed hold returns its current state", async () => {
  const meter = await Held.with(10);
  await meter.hold(10, "released-again");
  await meter.post("holds/released-again/release");
  const released = await meter.hold(10, "released-again");
  expect([released.status, released.body["status"], released.body["available"]]).toEqual([
    200,
    "released",
    10,
  ]);
  await meter.hold(10, "expired-again", { ttl_seconds: 1 });
  await server.clock.advance(1_000);
  const expired = await meter.hold(10, "expired-again", { ttl_seconds: 1 });
  expect([expired.status, expired.body["status"], expired.body["available"]]).toEqual([200, "expired", 10]);
});

test.each(["holds/seen-1", "balance", "holds", "history", "usage", "../../meter"])(
  "a clock that is set back brings no hold back that was seen as over by GET %s",
  async (look) => {
    const meter = await Held.with(10);
    const id = `seen-${meters}`;
    await meter.hold(10, id, { ttl_seconds: 60 });
    // No time passes, so that the job that expires holds does not run before the read.
    server.clock.setWall(60_000);
    const path = look === "holds/seen-1" ? `holds/${id}` : look;
    expect((await meter.get(path)).status).toBe(200);
    server.clock.setWall(-60_000);
    expect(await meter.state()).toEqual([10, 10, 0]);
    await server.restart();
    expect(await meter.state()).toEqual([10, 10, 0]);
    expect(expectError(await meter.post(`holds/${id}/capture`), "conflict")).toMatchObject({
      status: "expired",
    });
  },
);

test("at_most; the id of another request; missing holds", async () => {
  const meter = await Held.with(10);
  const most = await meter.hold(60, "most", { at_most: true });
  expect(most.body).toMatchObject({ requested: 60, amount: 10, available: 0 });
  expect((await meter.hold(60, "most", { at_most: true })).status).toBe(200);
  expectError(await meter.hold(61, "most", { at_most: true }), "conflict");
  expectError(await meter.hold(1, undefined, { at_most: true }), "insufficient_balance");
  const other = await Held.with(60);
  expectError(await other.hold(60, "most", { at_most: true }), "conflict");
  expectError(await other.get("holds/most"), "not_found");
  expectError(await new Held().hold(1), "insufficient_balance");
});

test("20 concurrent holds on a balance for 10", async () => {
  const meter = await Held.with(100);
  const responses = await Promise.all(Array.from({ length: 20 }, () => meter.hold(10)));
  expect(responses.filter(({ status }) => status === 201)).toHaveLength(10);
  expect(await meter.state()).toEqual([100, 0, 100]);
  const { body } = await meter.get("holds?limit=6");
  const next = await meter.get(`holds?limit=6&cursor=${body["cursor"]}`);
  expect([(body["holds"] as object[]).length, (next.body["holds"] as object[]).length]).toEqual([6, 4]);
});

test("limits: TTL, metadata, open holds of a meter", async () => {
  const meter = await Held.with(5_000);
  expect((await meter.hold(1, "long", { ttl_seconds: HOLD_SECONDS_MAX })).status).toBe(201);
  expectError(await meter.hold(1, "longer", { ttl_seconds: HOLD_SECONDS_MAX + 1 }), "validation_error");
  const note = "x".repeat(HOLD_METADATA_BYTES_MAX - '{"a":""}'.length);
  expect((await meter.hold(1, "noted", { metadata: { a: note } })).status).toBe(201);
  const members = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, ""]));
  expect((await meter.hold(1, "members", { metadata: members(HOLD_METADATA_MAX) })).status).toBe(201);
  const tooMany = await meter.hold(1, "members-more", { metadata: members(HOLD_METADATA_MAX + 1) });
  expectError(tooMany, "validation_error");
  for (const value of [1, null, {}]) {
    expectError(await meter.hold(1, "no-text", { metadata: { "a\nb": value } }), "validation_error");
  }
  for (const ttl_seconds of [0, 1.5, "60"]) {
    expectError(await meter.hold(1, "ttl", { ttl_seconds }), "validation_error");
  }
  for (const amount of [0, -1]) expectError(await meter.hold(amount), "invalid_request");
  for (const amount of [1.5, "1", 2 ** 53]) {
    expectError(await meter.hold(amount as number), "validation_error");
  }
  for (const id of ["", "a b", "ü", "x".repeat(65)]) {
    expectError(await meter.hold(1, id), "validation_error");
  }
  expect((await meter.hold(1, "x".repeat(64))).status).toBe(201);
  expectError(await meter.hold(1, "noted-more", { metadata: { a: `${note}x` } }), "validation_error");
  for (let count = 4; count < HOLDS_OPEN_MAX; count += 1) expect((await meter.hold(1)).status).toBe(201);
  expectError(await meter.hold(1), "forbidden");
  await meter.post("holds/long/release");
  expect((await meter.hold(1)).status).toBe(201);
});

test("holds survive a restart; closed holds are stored for a week", async () => {
  const meter = await Held.with(100);
  await meter.hold(30, "kept");
  await meter.post("holds/kept/extend", { ttl_seconds: 3_600 });
  await server.restart();
  expect(await meter.state()).toEqual([100, 70, 30]);
  await server.clock.advance(3_600_000);
  expect((await meter.get("holds?status=expired")).body["holds"]).toHaveLength(1);
  // The row exists until the next purge.
  server.clock.setWall(HOLD_RETENTION_MS - 6 * 3_600_000);
  await server.clock.advance(1);
  expect((await meter.get("holds/kept")).status).toBe(200);
  await server.clock.advance(12 * 3_600_000);
  expectError(await meter.get("holds/kept"), "not_found");
});
