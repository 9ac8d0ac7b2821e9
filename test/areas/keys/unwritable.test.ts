import { expect, test } from "bun:test";
import { KeyUses } from "../../../src/areas/keys/key-uses.ts";
import { type KeyStore, keyStore } from "../../../src/areas/keys/store.ts";
import { KeptLog, storageFailure } from "../../kernel/support.ts";
import { startTestServer } from "../../support/server.ts";
import { KernelBench } from "../projects/kernel-bench.ts";

const NOT_YET = "uses of keys could not be written yet";

test("uses that could not be written are written with the next ones", async () => {
  const bench = new KernelBench();
  const log = new KeptLog();
  const store = keyStore(bench.kernel.db);
  let full = true;
  const saveUse: KeyStore["saveUse"] = (...use) => {
    if (full) throw storageFailure();
    return store.saveUse(...use);
  };
  const uses = new KeyUses({ ...store, saveUse }, { writer: bench.kernel.writer, log });
  const [first, second] = [
    { ref: 1, use: null },
    { ref: 2, use: null },
  ];
  uses.recordUse(first, 7, { ip: "203.0.113.7", ua: "curl/8.5" });
  uses.recordUse(second, 8);
  const round = uses.finish();
  uses.recordUse(first, 9, { ip: "203.0.113.9", ua: null });
  await round;
  expect(log.messages("warn")).toEqual([NOT_YET]);
  expect(store.use(1)).toBe(null);
  expect(uses.lastUseOf(1)).toEqual({ at: 9, ip: "203.0.113.9", ua: "curl/8.5" });
  full = false;
  await uses.finish();
  expect(store.use(1)).toEqual({ at: 9, ip: "203.0.113.9", ua: "curl/8.5" });
  expect(store.use(2)).toEqual({ at: 8, ip: null, ua: null });
  bench.close();
});

test("a server that cannot write its database at shutdown stops in order and logs what it could not write", async () => {
  const server = await startTestServer({ manualClock: true });
  try {
    const account = await server.account();
    const created = await account.post("/v1/keys", { prefix: "sm", name: "k", scopes: ["gate:*"] });
    const key = server.client(String(created.body["secret"]));
    for (const flag_key of ["one", "two"]) {
      await server.clock.advance(1);
      expect((await key.post("/v1/gate", { flag_key, enabled: true })).status).toBe(201);
    }
    server.server.kernel.db.execute("PRAGMA query_only = ON");
    await server.restart();
    const warnings = server.logs.filter(({ level }) => level === "warn").map(({ message }) => message);
    expect(warnings).toEqual([NOT_YET, "the last activity of projects could not be written"]);
    expect((await server.client(key.key).get("/v1/gate/two")).body).toEqual({
      enabled: true,
      flag_key: "two",
    });
  } finally {
    await server.stop();
  }
});
