import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { accountBalancesCheck } from "../../../src/areas/accounts/backup-check.ts";
import { AccountLedger, Accounts, UNWRITTEN_ACCOUNTS_MAX } from "../../../src/areas/accounts/ledger.ts";
import { accountStore } from "../../../src/areas/accounts/store.ts";
import { openProjectDirectory } from "../../../src/areas/projects/index.ts";
import { storageFailure } from "../../kernel/support.ts";
import { expectError } from "../../support/errors.ts";
import { readLedger } from "../../support/ledger.ts";
import { bodyOf, makeResource, pathOf, queryOf, scopedRoutes, segmentOf } from "../../support/matrix.ts";
import { scrape } from "../../support/metrics.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import { makeKey } from "../keys/support.ts";

const HOUR_MS = 60 * 60 * 1000;
const READ_ONLY = "PRAGMA query_only = ON";
const WRITABLE = "PRAGMA query_only = OFF";

let server: TestServer;
let account: AccountClient;
beforeEach(async () => {
  server = await startTestServer({ manualClock: true, args: ["--allow-private-targets", "all"] });
  account = await server.account({ balance: 1_000 });
  await account.post("/v1/gate", { flag_key: "f", enabled: true });
});
afterEach(() => server.stop());

const kernel = () => server.server.kernel;
const commits = () => kernel().writer.stats.commits;
const commit = () => kernel().writer.submit(() => undefined);
const evaluate = (key = "f") => account.get(`/v1/gate/${key}`);

async function balance(): Promise<unknown> {
  return (await account.get("/v1/meter/balance")).body.balance;
}

/** The stored balance, and the stored number of charged evaluations. */
function written(): { balance: number; count: number } {
  const rows = kernel().db.all<{ balance: number; count: number }, [string]>(
    `SELECT balance, coalesce(sum(count), 0) AS count FROM accounts
     LEFT JOIN account_entries ON account_ref = ref AND operation = 'gate.evaluate' WHERE user_id = ?`,
  )(account.userId);
  return rows[0] as { balance: number; count: number };
}

/** The charges in the ledger; the sum of their amounts is the balance. */
async function ledger(): Promise<object[]> {
  const entries = await readLedger(account, "/v1/meter/history");
  expect(entries.reduce((sum, { amount }) => sum + amount, 0)).toBe((await balance()) as number);
  return entries
    .filter(({ kind }) => kind === "charge")
    .map(({ operation, count, amount }) => ({ operation, count, amount }));
}

test("every metered read returns without a commit, and its charge is visible immediately", async () => {
  const reads = scopedRoutes(server).filter(
    ({ operation: { access, cost } }) => access.endsWith(":read") && cost > 0,
  );
  expect(reads.map(({ operation }) => operation.name).toSorted()).toEqual([
    ...["catch.events.export", "catch.events.get", "catch.events.list", "catch.events.raw", "catch.stream"],
    ...["gate.config", "gate.evaluate", "gate.preview"],
    ...[
      "keys.get",
      "keys.list",
      "keys.usage",
      "keys.verify",
      "monitors.channels.list",
      "monitors.channels.read",
      "monitors.history",
      "monitors.incidents.list",
      "monitors.incidents.read",
      "monitors.list",
      "monitors.maintenance.list",
      "monitors.maintenance.read",
      "monitors.pages.list",
      "monitors.pages.read",
      "monitors.pings",
      "monitors.probes.list",
      "monitors.probes.read",
      "monitors.read",
    ],
    ...["ofrep.bulk", "ofrep.evaluate"],
  ]);
  for (const route of reads) {
    const path = pathOf(route, await makeResource(segmentOf(route), account)) + queryOf(route);
    await commit();
    const [before, committed] = [(await balance()) as number, commits()];
    const answer = await account.send(route.method, path, bodyOf(route));
    expect([answer.status, commits()], answer.text).toEqual([200, committed]);
    expect(await balance()).toBe(before - 1);
    const { operation } = route;
    expect(await ledger()).toContainEqual(
      expect.objectContaining({ operation: operation.name, amount: expect.any(Number) }),
    );
  }
});

test("the next commit of any request writes the charge", async () => {
  const before = written();
  for (let count = 0; count < 5; count += 1) expect((await evaluate()).status).toBe(200);
  expect(written()).toEqual(before);
  expect((await server.operator.post("/v1/meter/refill", { amount: 1 })).status).toBe(200);
  expect(written()).toEqual({ balance: before.balance - 5, count: 5 });
});

test("the history includes unwritten charges in the right order, page by page", async () => {
  await evaluate();
  await commit();
  await evaluate();
  await account.get("/v1/gate/config");
  const all = await readLedger(account, "/v1/meter/history");
  expect(all.map(({ operation, count }) => [operation, count])).toEqual([
    ["gate.config", 1],
    ["gate.evaluate", 2],
    [undefined, undefined],
  ]);
  expect(await readLedger(account, "/v1/meter/history", 1)).toEqual(all);
  await commit();
  expect(await readLedger(account, "/v1/meter/history", 1)).toEqual(all);
});

test("an orderly stop writes every charge", async () => {
  for (let count = 0; count < 7; count += 1) await evaluate();
  await server.restart();
  const { status, body } = await server.client(account.key).get("/v1/meter/balance");
  expect([status, body.balance]).toEqual([200, 993]);
  expect(written()).toEqual({ balance: 993, count: 7 });
});

describe("the cost of a rejected request", () => {
  test("a 404 of the operation is charged", async () => {
    expectError(await evaluate("absent"), "gate.feature_not_found");
    expect(await ledger()).toEqual([{ operation: "gate.evaluate", count: 1, amount: -1 }]);
  });

  test("a 400 before the operation is free of charge, without a ledger entry", async () => {
    expectError(await account.get("/v1/keys?cursor=x"), "validation_error");
    expectError(await account.post("/v1/keys/verify", {}), "validation_error");
    await commit();
    expect([await balance(), await ledger()]).toEqual([1_000, []]);
  });

  test("402 precedes errors of the operation, and contains the balance", async () => {
    await account.post("/v1/meter/deduct", { amount: 999 });
    expect((await evaluate()).status).toBe(200);
    const answer = await evaluate("absent");
    expectError(answer, "insufficient_balance");
    expect(answer.body).toMatchObject({ balance: 0, user_id: account.userId });
  });
});

test("402 is exact for concurrent reads and changes: 100 credits are 100 requests", async () => {
  const { secret } = await makeKey(account);
  await account.post("/v1/meter/deduct", { amount: 899 });
  expect(await balance()).toBe(100);
  const requests = Array.from({ length: 400 }, (_, index) => {
    if (index % 4 === 0) return account.post(`/v1/meter/m${index}/refill`, { amount: 1 });
    if (index % 4 === 1) return account.post("/v1/keys/verify", { secret });
    return evaluate(index % 4 === 2 ? "f" : "absent");
  });
  const statuses = (await Promise.all(requests)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 402)).toHaveLength(300);
  expect(statuses.filter((status) => status === 200 || status === 404)).toHaveLength(100);
  expect(await balance()).toBe(0);
  await commit();
  expect(written().balance).toBe(0);
  await ledger();
});

test("under an Idempotency-Key a read waits for its commit; the repeat is free of charge", async () => {
  const { secret } = await makeKey(account);
  await commit();
  const [before, committed] = [(await balance()) as number, commits()];
  const ask = () => account.post("/v1/keys/verify", { secret }, { headers: { "idempotency-key": "once" } });
  const first = await ask();
  expect([first.status, first.body.valid]).toEqual([200, true]);
  expect([commits(), written().balance]).toEqual([committed + 1, before - 1]);
  const repeat = await ask();
  expect(repeat.headers.get("idempotent-replayed")).toBe("true");
  expect([repeat.body, await balance()]).toEqual([first.body, before - 1]);
});

describe("a batch that fails", () => {
  test("at its COMMIT, with charges of reads and of changes, keeps the charges of the reads", async () => {
    await commit();
    let failing = true;
    // After the hook that writes the charges.
    kernel().writer.beforeCommit(() => {
      if (failing) throw storageFailure();
    });
    for (let count = 0; count < 3; count += 1) expect((await evaluate()).status).toBe(200);
    const refused = await Promise.all([
      account.post("/v1/meter/m/refill", { amount: 1 }),
      account.post("/v1/keys/verify", { secret: "x" }, { headers: { "idempotency-key": "k" } }),
      account.post("/v1/meter/m/refill", { amount: 1 }),
    ]);
    for (const answer of refused) expectError(answer, "read_only");
    expect([await balance(), written()]).toEqual([997, { balance: 1_000, count: 0 }]);
    failing = false;
    expect((await server.operator.post("/v1/meter/refill", { amount: 1 })).status).toBe(200);
    expect(written()).toEqual({ balance: 997, count: 3 });
    expect(await ledger()).toEqual([{ operation: "gate.evaluate", count: 3, amount: -3 }]);
  });

  test("leaves the charges of reads to the next batch; reads wait until then, and none is charged twice", async () => {
    await commit();
    for (let count = 0; count < 3; count += 1) expect((await evaluate()).status).toBe(200);
    kernel().db.execute(READ_ONLY);
    expectError(await account.post("/v1/meter/m/refill", { amount: 1 }), "read_only");
    expect(await balance()).toBe(997);
    // At most one second of charges may be in memory while the disk fails.
    expectError(await evaluate(), "read_only");
    expect([await balance(), written().balance]).toEqual([997, 1_000]);
    expect((await account.get("/v1/meter/m/balance")).status).toBe(200);
    kernel().db.execute(WRITABLE);
    expect((await evaluate()).status).toBe(200);
    expect(written()).toEqual({ balance: 996, count: 4 });
    const committed = commits();
    expect((await evaluate()).status).toBe(200);
    expect(commits()).toBe(committed);
    expect(await ledger()).toEqual([{ operation: "gate.evaluate", count: 5, amount: -5 }]);
    const name = "ninefold_credits_charged_total";
    expect((await scrape(server.operator)).find(name, { operation: "gate.evaluate" })).toBe(5);
  });
});

test("after the wall clock is set back by an hour, unwritten charges of that hour are found", async () => {
  const other = await server.account({ balance: 10 });
  const { writer, db } = kernel();
  const store = accountStore(db);
  const accounts = new Accounts(store, openProjectDirectory(kernel()));
  const alone = new AccountLedger(store, accounts, kernel());
  const actor = accounts.get(store.refOfUser(other.userId));
  // In one turn of the event loop: listeners of the clock may cause a commit.
  for (const hours of [0, 1, -1, 1]) {
    server.clock.setWall(hours * HOUR_MS);
    writer.runInMemory((tx) => alone.charge(tx, actor, "gate.evaluate", 1));
  }
  await commit();
  const charges = store
    .entriesBefore(actor.ref, Number.MAX_SAFE_INTEGER, 9)
    .filter(({ kind }) => kind === "charge");
  expect(charges.map(({ amount, count }) => [amount, count])).toEqual([
    [-2, 2],
    [-2, 2],
  ]);
  expect(store.account(actor.ref)?.balance).toBe(6);
});

test("accounts with unwritten charges stay in memory, whatever their number", async () => {
  const IN_MEMORY = 3;
  const created = await Promise.all(Array.from({ length: 20 }, () => server.account({ balance: 10 })));
  const store = accountStore(kernel().db);
  const accounts = new Accounts(store, openProjectDirectory(kernel()), IN_MEMORY);
  const small = new AccountLedger(store, accounts, kernel());
  const refs = created.map(({ userId }) => store.refOfUser(userId));
  for (let round = 1; round <= 3; round += 1) {
    for (const ref of refs) {
      kernel().writer.runInMemory((tx) => small.charge(tx, accounts.get(ref), "gate.evaluate", 1));
    }
    for (const ref of refs) expect(accounts.get(ref).balance).toBe(10 - round);
  }
  await commit();
  for (const ref of refs) expect(store.account(ref)?.balance).toBe(7);
  // Once written they can be dropped and read again unchanged.
  for (const ref of [...refs, ...refs]) expect(accounts.get(ref).balance).toBe(7);
  expect(accounts.touched.size).toBe(0);
  const problems: string[] = [];
  const rows = <Row>(sql: string) => kernel().db.all<Row>(sql)();
  const db = { rows, get: <Row>(sql: string) => rows<Row>(sql)[0] ?? null };
  await accountBalancesCheck.run(
    db as never,
    { add: (problem: string) => problems.push(problem) } as never,
    async () => {},
  );
  expect(problems).toEqual([]);
});

test("charges of many accounts are written early, so that no batch takes long", async () => {
  await commit();
  const store = accountStore(kernel().db);
  const first = store.highestRef() + 1;
  const project = { ref: 1, id: "proj_of_this_test" };
  const projects = { createDefault: () => project, defaultOf: () => project };
  const many = new AccountLedger(store, new Accounts(store, projects), kernel());
  const refs = Array.from({ length: UNWRITTEN_ACCOUNTS_MAX }, (_, index) => first + index);
  await kernel().writer.submit((tx) => {
    for (const ref of refs) {
      const row = {
        ref,
        userId: `usr_${ref}`,
        email: `${ref}@example.com`,
        emailFolded: `${ref}@example.com`,
      };
      const rest = {
        tier: "scale",
        balance: 5,
        suspended: 0,
        deletedAt: null,
        rotatedAt: null,
        createdAt: 0,
        month: 0,
      } as const;
      store.insert(tx, { ...row, ...rest, oldestKey: 0, newestKey: 0 });
    }
  });
  const read = (ref: number) =>
    kernel().writer.runInMemory((tx) => many.charge(tx, { ref, tier: "scale" } as never, "gate.evaluate", 1));
  const committed = commits();
  for (const ref of refs.slice(1)) read(ref);
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  expect(commits()).toBe(committed);
  read(first);
  while (commits() === committed) await new Promise((resolve) => setImmediate(resolve));
  for (const ref of refs) expect(store.account(ref)?.balance).toBe(4);
});
