import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Answer, Client } from "../support/client.ts";
import { expectError } from "../support/errors.ts";
import { type AccountClient, startTestServer, type TestServer } from "../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true });
});
afterAll(() => server.stop());

const REFILL = "/v1/meter/m/refill";
const KEYED = { headers: { "idempotency-key": "order-7" } };
const refill = (client: Client, amount = 5): Promise<Answer> => client.post(REFILL, { amount }, KEYED);

const isReplay = (answer: Answer): boolean => answer.headers.get("idempotent-replayed") === "true";

async function create(account: Client, path: string, body: object, name: string): Promise<string> {
  const answer = await account.post(path, body);
  if (answer.status >= 300) throw new Error(answer.text);
  return String(answer.body[name]);
}

/** A client of one project of an account. */
async function bound(account: AccountClient, projectId: string): Promise<Client> {
  const terms = { prefix: "sm", name: "k", scopes: ["*"] };
  return new Client(server.url, await create(account, `/v1/projects/${projectId}/keys`, terms, "secret"));
}

/** The oldest project is the default one. */
async function defaultProjectOf(account: Client): Promise<string> {
  const { body } = await account.get("/v1/projects");
  return (body.projects as { id: string }[]).at(-1)?.id ?? "";
}

describe("an Idempotency-Key belongs to its project", () => {
  test("two projects of an account can use the same key", async () => {
    const account = await server.account();
    const staging = await bound(account, await create(account, "/v1/projects", { name: "Staging" }, "id"));
    expect((await refill(account)).body.balance).toBe(5);
    const first = await refill(staging);
    expect({ replayed: isReplay(first), balance: first.body.balance }).toEqual({
      replayed: false,
      balance: 5,
    });
    expect(isReplay(await refill(staging))).toBe(true);
    expect(isReplay(await refill(account))).toBe(true);
    const other = await bound(account, await create(account, "/v1/projects", { name: "Other" }, "id"));
    expect((await refill(other, 9)).body.balance).toBe(9);
    for (const client of [account, staging]) {
      expect((await client.get("/v1/meter/m/balance")).body.balance).toBe(5);
    }
  });

  test("the key of an account's credential is that of its default project", async () => {
    for (const accountFirst of [true, false]) {
      const account = await server.account();
      const production = await bound(account, await defaultProjectOf(account));
      const [first, second] = accountFirst ? [account, production] : [production, account];
      expect(isReplay(await refill(first))).toBe(false);
      expect(isReplay(await refill(second))).toBe(true);
      expectError(await refill(second, 6), "conflict");
      expect((await account.get("/v1/meter/m/balance")).body.balance).toBe(5);
    }
  });

  test("the account's keys stay with it when another project becomes the default", async () => {
    const account = await server.account({ balance: 100 });
    const next = await create(account, "/v1/projects", { name: "Next" }, "id");
    const bystander = await bound(account, next);
    expect((await refill(bystander)).body.balance).toBe(5);
    const own = { headers: { "idempotency-key": "own" } };
    const first = await account.post("/v1/meter/refill", { amount: 7 }, own);
    expect((await account.delete(`/v1/projects/${await defaultProjectOf(account)}`)).status).toBe(200);
    expect(await defaultProjectOf(account)).toBe(next);
    const again = await account.post("/v1/meter/refill", { amount: 7 }, own);
    expect({ replayed: isReplay(again), text: again.text }).toEqual({ replayed: true, text: first.text });
    expect(isReplay(await refill(bystander))).toBe(true);
  });

  test("a key used in an earlier default project is unused in the new one", async () => {
    const account = await server.account();
    const staging = await bound(account, await create(account, "/v1/projects", { name: "Staging" }, "id"));
    expect((await account.post("/v1/meter/m/refill", { amount: 100 })).body.balance).toBe(100);
    expect((await refill(account)).body.balance).toBe(105);
    expect((await account.delete(`/v1/projects/${await defaultProjectOf(account)}`)).status).toBe(200);
    const first = await refill(staging);
    expect({ replayed: isReplay(first), balance: first.body.balance }).toEqual({
      replayed: false,
      balance: 5,
    });
    expect((await refill(staging)).body.balance).toBe(5);
    // The caller of the earlier request gets its response again.
    expect((await refill(account)).body.balance).toBe(105);
  });

  test("concurrent requests with one key have one effect per project", async () => {
    const account = await server.account();
    const staging = await bound(account, await create(account, "/v1/projects", { name: "Staging" }, "id"));
    const answers = await Promise.all([account, staging, account, staging].map((client) => refill(client)));
    expect(answers.filter((answer) => !isReplay(answer))).toHaveLength(2);
    expect(answers.map(({ body }) => body.balance)).toEqual([5, 5, 5, 5]);
  });
});
