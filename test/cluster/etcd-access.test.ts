import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { openCommitLog } from "../../src/cluster/cluster.ts";
import { type ClusterNode, type CommitLog, EngineUnavailable } from "../../src/cluster/commit-log.ts";
import { EtcdPut } from "../../src/cluster/engines/etcd-put.ts";
import { extraAuthorities } from "../../src/kernel/outbound/authorities.ts";
import { OutboundClient } from "../../src/kernel/outbound/client.ts";
import { type Engine, startEtcd } from "../harness/failover/engines.ts";
import { Cleanup } from "../harness/processes/cleanup.ts";
import { CertificateAuthority } from "../support/certificates.ts";

const START_MS_MAX = 120_000;
const LEASE_MS = 600_000;
const NODE: ClusterNode = { id: "node-a", advertise: null };
/** With characters that a URL escapes. */
const PASSWORD = "p@ss:w/rd";

const cleanup = new Cleanup();
const authority = new CertificateAuthority();
let engine: Engine;
let extraCaPath: string;
const open: CommitLog[] = [];
afterAll(async () => {
  for (const log of open) log.close();
  await cleanup.run();
  authority.remove();
});

/** An etcd with TLS, whose user `ninefold` may do what the guide grants it. */
beforeAll(async () => {
  const folder = cleanup.folder("etcd-tls");
  const { cert, key } = authority.issue("etcd", "IP:127.0.0.1");
  const files = { certificate: join(folder, "etcd.pem"), key: join(folder, "etcd.key") };
  extraCaPath = join(folder, "ca.pem");
  writeFileSync(files.certificate, cert);
  writeFileSync(files.key, key);
  writeFileSync(extraCaPath, authority.pem);
  engine = await startEtcd(cleanup, 1, files);
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const call = async (path: string, body: object): Promise<void> => {
    const response = await fetch(`${engine.url.replace("etcds", "https")}/v3/auth/${path}`, {
      method: "POST",
      body: JSON.stringify(body),
      tls: { rejectUnauthorized: false },
    });
    expect(await response.text()).toContain("header");
  };
  await call("user/add", { name: "root", password: "root" });
  await call("user/grant", { user: "root", role: "root" });
  await call("role/add", { name: "ninefold" });
  const perm = { permType: "READWRITE", key: base64("ninefold/"), range_end: base64("ninefold0") };
  await call("role/grant", { name: "ninefold", perm });
  await call("user/add", { name: "ninefold", password: PASSWORD });
  await call("user/grant", { user: "ninefold", role: "ninefold" });
  await call("enable", {});
}, START_MS_MAX);

function logOf(password: string | null, caPath: string | null = extraCaPath): CommitLog {
  const credentials = password === null ? "" : `ninefold:${encodeURIComponent(password)}@`;
  const url = engine.url.replace("://", `://${credentials}`);
  const log = openCommitLog({
    url,
    cell: "main",
    leaseMs: LEASE_MS,
    advertise: null,
    isTrusted: false,
    extraCaPath: caPath,
  });
  open.push(log);
  return log;
}

/** Repeats a call that a busy machine delays. */
async function confirmed<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof EngineUnavailable) || !error.message.includes("within")) throw error;
    }
  }
}

test(
  "a user with the keys of Ninefold does all that a node does, also after a restart of etcd",
  async () => {
    const log = logOf(PASSWORD);
    await log.prepare();
    const epoch = (await confirmed(() => log.tryLead(NODE, LEASE_MS, 1))) ?? 0;
    expect(epoch).toBeGreaterThan(0);
    const append = (seq: number) =>
      confirmed(() => log.append({ seq, epoch, parts: [Buffer.alloc(10), Buffer.from(`entry ${seq}`)] }));
    await append(1);
    const woken = Promise.withResolvers<void>();
    const cancel = log.watch(1, woken.resolve);
    await append(2);
    await woken.promise;
    cancel();
    // It has forgotten the token.
    const [node] = engine.nodes;
    await node?.kill();
    node?.start();
    await node?.ready();
    await append(3);
    expect(await confirmed(() => log.renew(NODE, epoch, LEASE_MS))).toBe(true);
    await confirmed(() => log.trim(1));
    expect(await confirmed(() => log.range())).toEqual({ first: 2, last: 3 });
    const report = { ...NODE, applied: 3, synced: 3, schema: 1, at: 1 };
    await confirmed(() => log.report(report));
    expect(await confirmed(() => log.nodes())).toEqual([report]);
    await confirmed(() => log.askToHandOver(epoch));
    expect(await confirmed(() => log.isAskedToHandOver(epoch))).toBe(true);
    await confirmed(() => log.release(NODE, epoch));
    await confirmed(() => log.reset());
    expect(await confirmed(() => log.range())).toBeNull();
  },
  START_MS_MAX,
);

test("gRPC has the user and the certificate authority, too", async () => {
  const url = engine.url.replace("etcds", "https");
  const response = await fetch(`${url}/v3/auth/authenticate`, {
    method: "POST",
    body: JSON.stringify({ name: "ninefold", password: PASSWORD }),
    tls: { rejectUnauthorized: false },
  });
  const { token } = (await response.json()) as { token: string };
  const put = async (known: string | null, name: string) => {
    const client = new OutboundClient(["all"], extraAuthorities(known));
    const puts = new EtcdPut((to) => client.openHttp2(to, START_MS_MAX));
    try {
      return await puts.put({ url, token }, Buffer.from(name), Buffer.from("value"));
    } finally {
      puts.close();
      client.close();
    }
  };
  expect(await put(extraCaPath, "ninefold/put")).toBe(true);
  await expect(put(extraCaPath, "other/put")).rejects.toThrow("rejected");
  await expect(put(null, "ninefold/other")).rejects.toThrow("UNABLE_TO_VERIFY_LEAF_SIGNATURE");
});

test.each([
  ["a wrong password", "wrong", true, "authentication failed"],
  ["no user", null, true, "user name is empty"],
  ["a certificate of an unknown authority", PASSWORD, false, "UNABLE_TO_VERIFY_LEAF_SIGNATURE"],
])("%s is rejected", async (_, password, knowsAuthority, message) => {
  const log = logOf(password, knowsAuthority ? extraCaPath : null);
  await expect(confirmed(() => log.prepare().then(() => log.range()))).rejects.toThrow(message);
});
