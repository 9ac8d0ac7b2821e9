import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { expectError } from "../support/errors.ts";
import { type AccountClient, startTestServer, type TestServer } from "../support/server.ts";

let server: TestServer;
let account: AccountClient;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
  account = await server.account();
  for (let count = 0; count < 3; count += 1) {
    await account.post("/v1/meter/m/refill", { amount: 1 });
    await account.post("/v1/projects", { name: `p${count}` });
    await account.post("/v1/relay", {
      target_url: "https://example.com/",
      method: "POST",
      delay: "1h",
      payload: {},
      headers: {},
    });
  }
});
afterAll(() => server.stop());

const LISTS = ["/v1/meter/m/history", "/v1/meter/history", "/v1/projects", "/v1/relay"];

/** The account's client, at the address that the server has now. */
const client = () => server.client(account.key);

async function cursorOf(list: string): Promise<string> {
  const { body } = await client().get(`${list}?limit=1`);
  expect(body["cursor"]).toBeString();
  return String(body["cursor"]);
}

function expectRefused(answer: Awaited<ReturnType<AccountClient["get"]>>): void {
  const { error } = expectError(answer, "validation_error");
  expect(error.message).toContain("is not a cursor of this list");
}

describe.each(LISTS)("cursors of %s", (list) => {
  test("are opaque: two cursors of the same position differ and contain no numbers", async () => {
    const cursors = [await cursorOf(list), await cursorOf(list)];
    expect(cursors[0]).not.toBe(cursors[1]);
    for (const cursor of cursors) {
      expect(cursor).toMatch(/^[A-Za-z0-9_-]{40,256}$/);
      const bytes = Buffer.from(cursor, "base64url").toString("latin1");
      expect(bytes).not.toMatch(/^\[|WzE/);
    }
    const [first, second] = await Promise.all(
      cursors.map((cursor) => client().get(`${list}?limit=1&cursor=${cursor}`)),
    );
    expect({ ...first?.body, cursor: null }).toEqual({ ...second?.body, cursor: null });
  });

  test("are valid only for their list, project and account, and after a restart", async () => {
    const cursor = await cursorOf(list);
    for (const other of LISTS.filter((name) => name !== list && !bothHistories(name, list))) {
      expectRefused(await client().get(`${other}?cursor=${cursor}`));
    }
    const stranger = await server.account();
    expectRefused(await stranger.get(`${list}?cursor=${cursor}`));
    await server.restart();
    expect((await client().get(`${list}?cursor=${cursor}`)).status).toBe(200);
  });

  test("are rejected if invented, changed, cut or of an earlier version", async () => {
    const cursor = await cursorOf(list);
    const flipped = Buffer.from(cursor, "base64url");
    flipped[20] = (flipped[20] ?? 0) ^ 1;
    const bad = [
      flipped.toString("base64url"),
      cursor.slice(0, -2),
      `${cursor}!`,
      `${cursor}AAAA`,
      "x",
      Buffer.from("[5]").toString("base64url"),
    ];
    for (const one of bad) expectRefused(await client().get(`${list}?cursor=${one}`));
  });
});

/** The two ledgers are one operation. */
function bothHistories(one: string, other: string): boolean {
  return one.endsWith("/history") && other.endsWith("/history");
}

test("the cursor of keys is the created_at of the last item", async () => {
  for (const name of ["one", "two"]) {
    expect((await client().post("/v1/keys", { prefix: "acme", name, scopes: ["orders:read"] })).status).toBe(
      201,
    );
  }
  const { body } = await client().get("/v1/keys?limit=1");
  expect(body["next_cursor"]).toMatch(/^\d{4}-\d\d-\d\dT/);
  expect((await client().get(`/v1/keys?limit=1&cursor=${body["next_cursor"]}`)).status).toBe(200);
});
