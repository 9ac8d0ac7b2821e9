import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { PAGE_LOG_BYTES_MAX } from "../../../src/areas/notary/service.ts";
import { expectError } from "../../support/errors.ts";
import { endpoint, type World } from "../../support/scenario.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

async function logs(account: AccountClient, count: number): Promise<unknown[]> {
  await account.post("/v1/witness/sys/init");
  const receipts: unknown[] = [];
  for (let n = 1; n <= count; n += 1)
    receipts.push((await account.post("/v1/witness/log", { log: { n } })).body);
  return receipts;
}

describe("GET /v1/witness/receipts", () => {
  const bad = (name: string, query: string) => ({
    name,
    request: ["GET", `/v1/witness/receipts?${query}`] as const,
    status: 400,
    code: "validation_error",
  });
  endpoint(() => server, "GET /v1/witness/receipts", [
    {
      name: "empty without a chain",
      request: ["GET", "/v1/witness/receipts"],
      status: 200,
      body: { receipts: [] },
    },
    {
      name: "empty for an empty chain",
      before: ({ account }: World) => logs(account, 0),
      request: ["GET", "/v1/witness/receipts"],
      status: 200,
      body: { receipts: [] },
    },
    bad("a limit of 0", "limit=0"),
    bad("a limit of 101", "limit=101"),
    bad("a limit that is no number", "limit=many"),
    bad("an invalid cursor", "cursor=x"),
    bad("a cursor past the end", `cursor=${btoa("[1]")}`),
    bad("a cursor before the beginning", `cursor=${btoa("[0]")}`),
    {
      name: "no key",
      as: "nobody",
      request: ["GET", "/v1/witness/receipts"],
      status: 401,
      code: "unauthorized",
    },
  ]);

  test("are listed newest first, page by page, equal to the log responses", async () => {
    const account = await server.account();
    const given = await logs(account, 7);
    for (const limit of [1, 2, 3, 7, 100]) {
      const listed: unknown[] = [];
      let path = `/v1/witness/receipts?limit=${limit}`;
      for (;;) {
        const { body } = await account.get(path);
        const receipts = body.receipts as unknown[];
        listed.push(...receipts);
        if (body.cursor === undefined) break;
        expect(receipts).toHaveLength(limit);
        path = `/v1/witness/receipts?limit=${limit}&cursor=${body.cursor}`;
      }
      expect(listed).toEqual(given.toReversed());
    }
  });

  test("a page has 50 receipts by default", async () => {
    const account = await server.account();
    await logs(account, 51);
    const { body } = await account.get("/v1/witness/receipts");
    expect(body.receipts).toHaveLength(50);
    expect((await account.get(`/v1/witness/receipts?cursor=${body.cursor}`)).body.receipts).toHaveLength(1);
  });

  test("a page ends with the receipt that exceeds its size", async () => {
    const account = await server.account();
    await logs(account, 1);
    const text = "x".repeat(PAGE_LOG_BYTES_MAX / 4);
    for (let n = 0; n < 5; n += 1) await account.post("/v1/witness/log", { log: { text } });
    const { body } = await account.get("/v1/witness/receipts");
    expect((body.receipts as { sequence_id: string }[]).map((receipt) => receipt.sequence_id)).toEqual([
      "6",
      "5",
      "4",
      "3",
    ]);
    const rest = await account.get(`/v1/witness/receipts?cursor=${body.cursor}`);
    expect((rest.body.receipts as { sequence_id: string }[]).map((receipt) => receipt.sequence_id)).toEqual([
      "2",
      "1",
    ]);
    expect(rest.body.cursor).toBeUndefined();
  });
});

describe("GET /v1/witness/receipts/{sequence_id}", () => {
  const at = (position: string) => ["GET", `/v1/witness/receipts/${position}`] as const;
  endpoint(() => server, "GET /v1/witness/receipts/{sequence_id}", [
    {
      name: "equal to the log response",
      before: async (world: World) => {
        given = (await logs(world.account, 3))[1];
      },
      request: at("2"),
      status: 200,
      after: (_, { body }) => {
        expect(body).toEqual(given as Record<string, unknown>);
      },
    },
    {
      name: "past the end",
      before: ({ account }: World) => logs(account, 1),
      request: at("2"),
      status: 404,
      code: "not_found",
    },
    { name: "without a chain", request: at("1"), status: 404, code: "not_found" },
    {
      name: "a number above the largest position",
      request: at("99999999999999999999"),
      status: 404,
      code: "not_found",
    },
    { name: "zero", request: at("0"), status: 400, code: "validation_error" },
    { name: "a leading zero", request: at("01"), status: 400, code: "validation_error" },
    { name: "a word", request: at("last"), status: 400, code: "validation_error" },
    { name: "21 digits", request: at("1".repeat(21)), status: 400, code: "validation_error" },
    { name: "no key", as: "nobody", request: at("1"), status: 401, code: "unauthorized" },
  ]);
  let given: unknown;
});

describe("GET /v1/witness/pubkey/{chainId}", () => {
  test("200 without a key", async () => {
    const account = await server.account();
    const { chain_id, publicKey } = (await account.post("/v1/witness/sys/init")).body;
    const response = await server.client(null).get(`/v1/witness/pubkey/${chain_id}`);
    expect({ status: response.status, body: response.body }).toEqual({
      status: 200,
      body: publicKey as never,
    });
  });

  test.each(["wc_00000000000000000000000000000000", "x", "%00"])("404 no chain has the id %s", async (id) => {
    expectError(await server.client(null).get(`/v1/witness/pubkey/${id}`), "not_found");
  });
});

describe("accounts", () => {
  test("see only their own receipts, numbered separately", async () => {
    const [first, second] = [await server.account(), await server.account()];
    await logs(first, 3);
    await logs(second, 1);
    expect((await second.get("/v1/witness/receipts")).body.receipts).toHaveLength(1);
    expect((await second.get("/v1/witness/receipts/2")).status).toBe(404);
    expect((await first.get("/v1/witness/receipts/1")).body.public_key).not.toEqual(
      (await second.get("/v1/witness/receipts/1")).body.public_key as object,
    );
  });
});
