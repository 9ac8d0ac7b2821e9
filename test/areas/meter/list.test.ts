import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { endpoint } from "../../support/scenario.ts";
import { startTestServer, TEST_START_MS, type TestServer } from "../../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

interface Item {
  readonly meter_id: string;
  readonly balance: number;
}

describe("GET /v1/meter", () => {
  endpoint(() => server, "GET /v1/meter", [
    {
      name: "a meter with its balance, and when it changed",
      status: 200,
      request: ["GET", "/v1/meter"],
      before: async ({ account }) => {
        await account.post("/v1/meter/one/refill", { amount: 5 });
        await account.post("/v1/meter/one/deduct", { amount: 2 });
      },
      holds: { meters: [{ meter_id: "one", balance: 3, available: 3 }] },
      after: (_world, { body }) => {
        const [{ updated_at } = { updated_at: "" }] = body.meters as { updated_at: string }[];
        expect(Date.parse(updated_at)).toBeGreaterThanOrEqual(TEST_START_MS);
      },
    },
    { name: "none", status: 200, request: ["GET", "/v1/meter"], body: { meters: [] } },
    {
      name: "a prefix of no id",
      status: 400,
      code: "validation_error",
      request: ["GET", "/v1/meter?prefix=a%25"],
    },
    { name: "no key", status: 401, code: "unauthorized", request: ["GET", "/v1/meter"], as: "nobody" },
  ]);

  test("by id, page by page, filtered by prefix; unchanged after a restart", async () => {
    const account = await server.account();
    const ids = ["Z", "a", "a-1", "a-10", "a-2", "a0", "aA", "a_", "b", "b-"];
    for (const [index, id] of ids.entries()) {
      await account.post(`/v1/meter/${id}/refill`, { amount: index + 1 });
    }
    const listed = async (query: string): Promise<readonly Item[]> => {
      const found: Item[] = [];
      let cursor: unknown;
      do {
        const more = cursor === undefined ? "" : `&cursor=${encodeURIComponent(String(cursor))}`;
        const { body } = await server.client(account.key).get(`/v1/meter?limit=2${query}${more}`);
        found.push(...(body.meters as Item[]));
        cursor = body.cursor;
      } while (cursor !== undefined);
      return found;
    };
    const all = await listed("");
    expect(all.map(({ meter_id, balance }) => [meter_id, balance])).toEqual(
      ids.map((id, index): [string, number] => [id, index + 1]).sort(([a], [b]) => (a < b ? -1 : 1)) as never,
    );
    expect((await listed("&prefix=a-")).map(({ meter_id }) => meter_id)).toEqual(["a-1", "a-10", "a-2"]);
    expect((await listed("&prefix=c")).map(({ meter_id }) => meter_id)).toEqual([]);
    await server.restart();
    expect(await listed("")).toEqual([...all]);
    expect((await (await server.account()).get("/v1/meter")).body).toEqual({ meters: [] });
  });
});
