import { afterEach, beforeEach, expect, test } from "bun:test";
import { CREDENTIALS_IN_MEMORY_MAX, PlatformCredentials } from "../../../src/areas/accounts/credentials.ts";
import { AccountLedger } from "../../../src/areas/accounts/ledger.ts";
import { ACCOUNTS_IN_MEMORY_MAX, Accounts } from "../../../src/areas/accounts/registry.ts";
import { AccountStore } from "../../../src/areas/accounts/store.ts";
import { openProjectDirectory } from "../../../src/areas/projects/index.ts";
import { keyDigestHex } from "../../../src/kernel/secrets/key-format.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";

const IN_MEMORY = 5;
const MADE = 30;

let server: TestServer;
let made: AccountClient[];
beforeEach(async () => {
  server = await startTestServer({ manualClock: true });
  made = [];
  for (let index = 0; index < MADE; index += 1) made.push(await server.account({ balance: 100 + index }));
});
afterEach(() => server.stop());

/** The parts of the area anew on the server's kernel, with room for few. */
function smallArea(inMemoryMax?: number) {
  const { kernel } = server.server;
  const store = new AccountStore(kernel.db);
  const accounts = new Accounts(store, openProjectDirectory(kernel), inMemoryMax);
  const room = inMemoryMax === undefined ? {} : { inMemoryMax };
  const credentials = new PlatformCredentials({ ...kernel, store, accounts, ...room });
  return {
    ...{ kernel, accounts, credentials },
    ledger: new AccountLedger(store, accounts, kernel.writer),
  };
}

function registryOf(owner: object, name: string): { size: number; actorsMax: number } {
  return Reflect.get(owner, name) as { size: number; actorsMax: number };
}

test("accounts and keys in memory are those in use, up to a bound; the others are found all the same", async () => {
  const { kernel, accounts, credentials, ledger } = smallArea(IN_MEMORY);
  for (let round = 1; round <= 3; round += 1) {
    for (const [index, { key, userId }] of made.entries()) {
      const caller = credentials.authenticate(keyDigestHex(String(key)));
      expect(caller?.account.userId).toBe(userId);
      if (caller === null) throw new Error("the key is unknown");
      await kernel.writer.submit((tx) => ledger.charge(tx, caller.account, "meter.refill", 1));
      expect(accounts.get(caller.account.ref).balance).toBe(100 + index - round);
    }
    expect(registryOf(accounts, "actors").size).toBe(IN_MEMORY);
    expect(registryOf(credentials, "cache").size).toBe(IN_MEMORY);
  }
});

test("a key whose account left memory works on the account as it is now", async () => {
  const { accounts, credentials } = smallArea(IN_MEMORY);
  const [first] = made;
  const digest = keyDigestHex(String(first?.key));
  const before = credentials.authenticate(digest);
  const store = new AccountStore(server.server.kernel.db);
  for (const { userId } of made.slice(1)) accounts.get(store.accountByUserId(userId)?.ref ?? 0);
  const after = credentials.authenticate(digest);
  expect(after?.account.userId).toBe(first?.userId as string);
  expect(after?.account).not.toBe(before?.account as never);
});

test("there is room for as many as documented unless said otherwise", () => {
  const { accounts, credentials } = smallArea();
  expect(registryOf(accounts, "actors").actorsMax).toBe(ACCOUNTS_IN_MEMORY_MAX);
  expect(registryOf(credentials, "cache").actorsMax).toBe(CREDENTIALS_IN_MEMORY_MAX);
});
