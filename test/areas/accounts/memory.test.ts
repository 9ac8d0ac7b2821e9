import { afterEach, beforeEach, expect, test } from "bun:test";
import { CREDENTIALS_IN_MEMORY_MAX, PlatformCredentials } from "../../../src/areas/accounts/credentials.ts";
import { ACCOUNTS_IN_MEMORY_MAX, AccountLedger, Accounts } from "../../../src/areas/accounts/ledger.ts";
import { accountStore } from "../../../src/areas/accounts/store.ts";
import { openProjectDirectory } from "../../../src/areas/projects/index.ts";
import { keyDigestHex } from "../../../src/kernel/secrets/key-format.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";

const IN_MEMORY = 5;
const MADE = 30;
const PROJECT = { ref: 1, id: "proj_of_this_test" };

let server: TestServer;
let created: AccountClient[];
beforeEach(async () => {
  server = await startTestServer({ manualClock: true });
  created = [];
  for (let index = 0; index < MADE; index += 1) created.push(await server.account({ balance: 100 + index }));
});
afterEach(() => server.stop());

/** New parts of the area on the server's kernel, with little space in memory, counting their reads of the database. */
function smallArea(inMemoryMax?: number) {
  const { kernel } = server.server;
  const looked = { up: 0 };
  const counted = <Args extends unknown[], Row>(find: (...args: Args) => Row) => {
    return (...args: Args): Row => {
      looked.up += 1;
      return find(...args);
    };
  };
  const found = accountStore(kernel.db);
  const store = { ...found, account: counted(found.account), keyWithDigest: counted(found.keyWithDigest) };
  const accounts = new Accounts(store, openProjectDirectory(kernel), inMemoryMax);
  const credentials = new PlatformCredentials(store, accounts, kernel, inMemoryMax);
  return { kernel, accounts, credentials, looked, ledger: new AccountLedger(store, accounts, kernel) };
}

test("memory contains the recently used accounts and keys up to a limit; the others are read when needed", async () => {
  const { kernel, accounts, credentials, looked, ledger } = smallArea(IN_MEMORY);
  for (let round = 1; round <= 3; round += 1) {
    for (const [index, { key, userId }] of created.entries()) {
      const caller = credentials.authenticate(keyDigestHex(String(key)));
      expect(caller?.account.userId).toBe(userId);
      if (caller === null) throw new Error("the key is unknown");
      await kernel.writer.submit((tx) => ledger.charge(tx, caller.account, "meter.refill", 1));
      expect(accounts.get(caller.account.ref).balance).toBe(100 + index - round);
    }
  }
  // What is used repeatedly stays in memory while there is space for all of it.
  const digests = created.map(({ key }) => keyDigestHex(String(key)));
  const lookUps = (keys: number): number => {
    for (let pass = 1; pass <= 5; pass += 1) {
      looked.up = 0;
      for (const digest of digests.slice(0, keys)) expect(credentials.authenticate(digest)).not.toBeNull();
    }
    return looked.up;
  };
  expect(lookUps(IN_MEMORY)).toBe(0);
  expect(lookUps(IN_MEMORY + 1)).toBeGreaterThan(0);
});

test("a key whose account was dropped from memory uses the current account", async () => {
  const { accounts, credentials } = smallArea(IN_MEMORY);
  const [first] = created;
  const digest = keyDigestHex(String(first?.key));
  const before = credentials.authenticate(digest)?.account;
  const store = accountStore(server.server.kernel.db);
  for (const { userId } of created.slice(1)) accounts.get(store.refOfUser(userId));
  const after = credentials.authenticate(digest);
  expect(after?.account.userId).toBe(first?.userId as string);
  expect(after?.account).not.toBe(before as never);
});

test("the default limits are the documented ones", () => {
  const { kernel } = server.server;
  const looked = { up: 0 };
  const row = accountStore(kernel.db).account(1);
  if (row === null) throw new Error("there is no account");
  const store = {
    ...accountStore(kernel.db),
    account: (ref: number) => {
      looked.up += 1;
      return { ...row, ref };
    },
    keyWithDigest: (digest: Uint8Array) => {
      looked.up += 1;
      return { id: Buffer.from(digest).readUInt32BE(), account_ref: 1, expires_at: null };
    },
  };
  const projects = { createDefault: () => PROJECT, defaultOf: () => PROJECT };
  /** One more than the limit replaces the first that was not used again. */
  const fill = (most: number, use: (number: number) => void): void => {
    looked.up = 0;
    for (let number = 1; number <= most; number += 1) use(number);
    use(1);
    expect(looked.up).toBe(most);
    use(most + 1);
    use(1);
    expect(looked.up).toBe(most + 1);
    use(2);
    expect(looked.up).toBe(most + 2);
  };
  const accounts = new Accounts(store, projects);
  fill(ACCOUNTS_IN_MEMORY_MAX, (ref) => accounts.get(ref));
  const small = new Accounts(accountStore(kernel.db), projects);
  const credentials = new PlatformCredentials(store, small, kernel);
  const digestOf = (number: number) => number.toString(16).padStart(8, "0");
  fill(CREDENTIALS_IN_MEMORY_MAX, (number) => credentials.authenticate(digestOf(number)));
});
