import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { RelayIds } from "../../../../src/areas/relay/deliveries/ids.ts";
import { uuidToBytes } from "../../../../src/kernel/data/uuid.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";

const BODY = {
  target_url: "https://example.com/hook",
  method: "POST",
  delay: "1h",
  payload: {},
  headers: {},
};
const REF_MAX = 2 ** 40 - 1;

const key = (byte: number) => new Uint8Array(32).fill(byte);
const tail = (id: string) => Number.parseInt(id.slice(-10), 16);

describe("ids of deliveries", () => {
  const ids = new RelayIds(key(1));
  const anyTime = fc.integer({ min: 0, max: 2 ** 48 - 1 });

  test("property: identify every row, and are UUIDs", () => {
    const row = fc.oneof(fc.integer({ min: 1, max: 1_000 }), fc.integer({ min: 1, max: REF_MAX }));
    fc.assert(
      fc.property(anyTime, row, (time, ref) => {
        const uuid = Bun.randomUUIDv7("hex", time);
        const id = ids.idOf(uuid, ref);
        expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
        expect(id.slice(0, -10)).toBe(uuid.slice(0, -10));
        expect(ids.refsOf(id)[0]).toBe(ref);
        expect(new RelayIds(key(1)).refsOf(id)[0]).toBe(ref);
      }),
    );
  });

  test("do not reveal consecutive rows at different times", () => {
    const rows = Array.from({ length: 1_000 }, (_, row) => row + 1);
    const tails = rows.map((ref) => tail(ids.idOf(Bun.randomUUIDv7("hex", ref), ref)));
    expect(rows.filter((ref, at) => tails[at] === ref)).toEqual([]);
    const small = tails.filter((value, at) => Math.abs(value - (tails[at - 1] ?? 0)) < 2 ** 20);
    expect(small).toEqual([]);
    const rising = tails.filter((value, at) => value > (tails[at - 1] ?? 0));
    expect(rising.length).toBeGreaterThan(400);
    expect(rising.length).toBeLessThan(600);
  });

  test("depend on the key", () => {
    const uuid = Bun.randomUUIDv7("hex", 1);
    expect(tail(new RelayIds(key(2)).idOf(uuid, 7))).not.toBe(tail(ids.idOf(uuid, 7)));
  });
});

describe("on a server", () => {
  let server: TestServer;
  let account: AccountClient;
  beforeAll(async () => {
    server = await startTestServer({ manualClock: true });
    account = await server.account();
  });
  afterAll(() => server.stop());

  async function schedule(): Promise<string> {
    const { body } = await server.client(account.key).post("/v1/relay", BODY);
    return String(body["relay_id"]);
  }

  function rowOf(id: string): number {
    const { db } = server.server.kernel;
    const rows = db.number<[Uint8Array]>("SELECT ref AS n FROM relays WHERE relay_id = ?");
    return rows(uuidToBytes(id));
  }

  test("an id hides the number of its row, and identifies it also after a restart", async () => {
    const created: string[] = [];
    for (let time = 0; time < 5; time += 1) {
      created.push(await schedule());
      await server.clock.advance(1);
    }
    for (const id of created) expect(tail(id)).not.toBe(rowOf(id));
    const steps = created.slice(1).map((id, at) => tail(id) - tail(created[at] ?? ""));
    expect(steps).not.toContain(1);
    await server.restart();
    for (const id of created) {
      const answer = await server.client(account.key).get(`/v1/relay/${id}`);
      expect(answer.body).toMatchObject({ relay_id: id, status: "scheduled" });
    }
  });

  test("an id of an earlier version still works", async () => {
    const id = await schedule();
    const ref = rowOf(id);
    const before = id.slice(0, -10) + ref.toString(16).padStart(10, "0");
    const { db } = server.server.kernel;
    const hex = Buffer.from(uuidToBytes(before)).toString("hex");
    db.execute(`UPDATE relays SET relay_id = x'${hex}' WHERE ref = ${ref}`);
    const client = server.client(account.key);
    expect((await client.get(`/v1/relay/${before}`)).body).toMatchObject({ relay_id: before });
    expect((await client.get(`/v1/relay/${id}`)).status).toBe(404);
    expect((await client.delete(`/v1/relay/${before.toUpperCase()}`)).body).toMatchObject({
      status: "cancelled",
    });
  });
});
