import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { SAVE_BYTES_PER_CREDIT } from "../../../../src/areas/flags/domain.ts";
import { expectError } from "../../../support/errors.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { newestOf } from "../../audit/support.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());

const BALANCE = 100;
const newAccount = (): Promise<AccountClient> => server.account({ balance: BALANCE });

/** Fields of a flag with a definition of this many bytes of JSON. */
function definitionOf(bytes: number, letter = "x") {
  const definition = { type: "object", variants: { a: { t: "" } }, default: { variant: "a" } } as const;
  const around = { enabled: true, description: null, archived: false, ...definition };
  const text = letter.repeat(bytes - JSON.stringify(around).length);
  return { ...definition, variants: { a: { t: text } } };
}

async function balanceOf(client: AccountClient): Promise<number> {
  const { body } = await client.get("/v1/meter/balance");
  return Number(body.balance);
}

async function save(client: AccountClient, fields: object) {
  const saved = await client.post("/v1/gate", { flag_key: "f", enabled: true, ...fields });
  expect(saved.status, saved.text).toBe(201);
  return saved;
}

describe("the price of a save", () => {
  test("changes of at most 4 KiB are free of charge, each started 4 KiB beyond costs 1 credit", async () => {
    const client = await newAccount();
    for (const [bytes, balance] of [
      [SAVE_BYTES_PER_CREDIT, BALANCE],
      [SAVE_BYTES_PER_CREDIT + 1, BALANCE - 1],
      [2 * SAVE_BYTES_PER_CREDIT, BALANCE - 2],
      [2 * SAVE_BYTES_PER_CREDIT + 1, BALANCE - 4],
    ] as const) {
      await save(client, { flag_key: `f${bytes}`, ...definitionOf(bytes) });
      expect(await balanceOf(client)).toBe(balance);
    }
  });

  test("only changed fields count: a large flag is switched without credits", async () => {
    const client = await newAccount();
    const large = definitionOf(3 * SAVE_BYTES_PER_CREDIT);
    await save(client, large);
    expect(await balanceOf(client)).toBe(BALANCE - 2);
    await save(client, large);
    await save(client, { enabled: false });
    await save(client, { ...large, enabled: true, tags: ["t"] });
    expect(await balanceOf(client)).toBe(BALANCE - 2);
    await save(client, definitionOf(3 * SAVE_BYTES_PER_CREDIT, "y"));
    expect(await balanceOf(client)).toBe(BALANCE - 4);
  });

  test("without the credits a large save is rejected and changes nothing", async () => {
    const client = await server.account({ balance: 0 });
    await save(client, { tags: ["t"] });
    const rejected = await client.post("/v1/gate", {
      flag_key: "f",
      enabled: true,
      ...definitionOf(2 * SAVE_BYTES_PER_CREDIT),
    });
    expectError(rejected, "insufficient_balance");
    expect((await client.get("/v1/gate/f/definition")).body).toMatchObject({ version: 1, type: "boolean" });
    expect((await newestOf(client)).summary).toBe("Flag f created, on");
  });
});

describe("off_variant", () => {
  test("null is stored as a value", async () => {
    const client = await newAccount();
    await save(client, {});
    const saved = await save(client, { enabled: false, off_variant: null });
    expect(saved.body.version).toBe(2);
    expect((await client.get("/v1/gate/f/definition")).body.off_variant).toBeNull();
    const evaluated = await client.post("/ofrep/v1/evaluate/flags/f", { context: {} });
    expect(evaluated.body).toMatchObject({ key: "f", reason: "DISABLED" });
    expect(evaluated.body).not.toHaveProperty("value");
    expect(await newestOf(client)).toMatchObject({
      before: { enabled: true, off_variant: "off" },
      after: { enabled: false, off_variant: null },
    });
    expect((await save(client, { enabled: false, off_variant: null })).body.version).toBe(2);
  });

  test("null is stored even without a default variant", async () => {
    const client = await newAccount();
    const colors = { type: "string", variants: { a: "A" }, default: { variant: "a" } };
    await save(client, colors);
    expect((await save(client, { off_variant: null })).body.version).toBe(2);
    await save(client, { type: null, variants: null, default: null });
    expect((await client.get("/v1/gate/f/definition")).body.off_variant).toBeNull();
  });

  test("the fields of an audit entry restore what its change replaced", async () => {
    const client = await newAccount();
    await save(client, { tags: ["t"] });
    await save(client, { off_variant: null, tags: ["u"] });
    const { before } = await newestOf(client);
    await save(client, { ...before });
    expect((await client.get("/v1/gate/f/definition")).body).toMatchObject({
      off_variant: "off",
      tags: ["t"],
    });
  });
});
