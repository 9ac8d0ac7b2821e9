import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WRITTEN } from "../../codegen/method-names.ts";
import { operationAt } from "../../src/client/api.ts";
import { Ninefold } from "../../src/client/index.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { createRecorder, type Recorder } from "./support.ts";
import {
  callBuckets,
  callDeliveries,
  callEndpoints,
  callPortal,
  callSchedules,
  NOBODY_URL,
} from "./webhook-calls.ts";

let folder: string;
let server: TestServer;
let recorder: Recorder;
let nf: Ninefold;
let operator: Ninefold;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "ninefold-operations-"));
  server = await startTestServer({
    manualClock: true,
    args: ["--signup", "open", "--allow-private-targets", "127.0.0.0/8", "--backup-dir", folder],
  });
  recorder = createRecorder();
  const { key } = await server.account({ balance: 1_000 });
  nf = new Ninefold({ url: server.url, apiKey: key, fetch: recorder.fetch, retries: 0 });
  operator = nf.withKey(server.key);
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

const WITNESS_VKEY = "ninefold/witness-1+84c42f62+BBOY9ixtGkV8UbpqS189vS9p/KkyFiGNyJl+QWvRfZPK";

test("system, accounts and the operator's API", async () => {
  expect(await nf.ping()).toEqual({ pong: true });
  expect((await nf.openApi()).openapi).toBe("3.1.0");
  const ada = await nf.withKey(null).signup({ email: "ada@example.com", tier: "free" });
  expect(ada).toEqual({ user_id: expect.stringMatching(/^usr_/), api_key: expect.stringMatching(/^sm_/) });

  expect((await nf.account.refill(100)).balance).toBe(1_100);
  expect((await nf.account.deduct(1)).balance).toBe(1_099);
  expect((await nf.account.balance()).balance).toBe(1_099);
  expect((await nf.account.history().toArray()).map(({ kind }) => kind)).toEqual([
    "deduct",
    "refill",
    "grant",
  ]);

  const grace = await operator.admin.accounts.create({ email: "grace@example.com", tier: "pro" });
  expect(grace.balance).toBe(1_000_000);
  const suspended = await operator.admin.accounts.update(grace.user_id, { suspended: true });
  expect(suspended.suspended).toBe(true);
  const [newest] = await operator.admin.accounts.list().toArray();
  expect(newest?.email).toBe("grace@example.com");
  const exported = await operator.admin.accounts.export(grace.user_id);
  expect(String(exported)).toContain('"type":"end"');
  const deleted = await operator.admin.accounts.delete(grace.user_id);
  expect(deleted.user_id).toBe(grace.user_id);
  const before = server.clock.now();
  expect(await operator.admin.advanceClock(1_000)).toEqual({ now: before + 1_000 });
  expect(await operator.admin.clock()).toEqual({ now: before + 1_000 });

  const rotated = await nf.withKey(ada.api_key ?? null).account.rotateKey();
  expect((await nf.withKey(rotated.key).account.balance()).user_id).toBe(ada.user_id);
  const reset = await operator.admin.accounts.resetKey(ada.user_id);
  expect(reset).toEqual({ user_id: ada.user_id, api_key: expect.any(String), reset_at: expect.any(String) });
  await expect(nf.withKey(rotated.key).account.balance()).rejects.toMatchObject({ status: 401 });
  const last = await nf.withKey(reset.api_key).account.rotateKey({ graceHours: 0 });
  expect(last.expires_at).toBe(last.rotated_at);
});

test("the audit log, log-ins and the overview", async () => {
  await nf.flags.save({ flag_key: "audited", enabled: true });
  const [entry] = await nf.audit
    .list({ action: "gate.*" })
    .page()
    .then(({ entries }) => entries);
  expect(entry?.summary).toBe("Flag audited created, on");
  expect(await nf.audit.get(entry?.sequence ?? "")).toEqual(entry as never);
  expect((await nf.audit.export()).trimEnd().split("\n").at(-1)).toBe(JSON.stringify(entry));
  const [start] = await operator.admin.audit.list({ action: "server.start" }).toArray();
  expect((await operator.admin.audit.get(start?.sequence ?? "")).actor.type).toBe("system");
  expect(await operator.admin.audit.export({ format: "csv" })).toContain(",server.start,");
  expect((await operator.admin.createLoginLink()).url).toContain("/dashboard/#/setup/");
  expect(await nf.account.endSessions()).toEqual({ ended: 0 });
  expect((await nf.overview()).gate?.on).toBe(1);
  await nf.flags.delete("audited");
});

test("the server itself", async () => {
  const { name } = await operator.admin.backups.create();
  await server.clock.advance(0);
  expect((await operator.admin.backups.list().toArray()).map((backup) => backup.name)).toEqual([name]);
  expect((await operator.admin.backups.list().page()).plan?.folder).toBe(folder);
  expect((await operator.admin.status()).data_folder).toBe(server.folder);
  expect((await operator.admin.history({ hours: 1 })).step_seconds).toBe(60);
  const saved = await operator.admin.settings.update({ public_url: "https://n.example.com" });
  expect(saved).toEqual(await operator.admin.settings.get());
  expect((await operator.admin.settings.testMail("ada@example.com")).delivered).toBe(false);
  await operator.admin.settings.update({ public_url: null });
  const { options } = await operator.admin.options();
  expect(options.find((option) => option.name === "backup_dir")?.value).toBe(folder);
});

test("meters", async () => {
  const meter = nf.meter("customer-42");
  expect((await meter.balance()).balance).toBe(0);
  expect((await meter.refill(10)).balance).toBe(10);
  expect((await meter.deduct(3)).balance).toBe(7);
  expect((await meter.reset(5)).balance).toBe(5);
  const used = await meter.deduct(1).then(() => meter.refill(1));
  expect(used.balance).toBe(5);
  const { hold_id } = await meter.hold({ amount: 2 });
  expect((await meter.extend(hold_id, 60)).status).toBe("open");
  expect((await meter.holds({ status: "open" }).toArray()).map((hold) => hold.hold_id)).toEqual([hold_id]);
  expect((await meter.release(hold_id)).status).toBe("released");
  expect((await meter.getHold(hold_id)).available).toBe(5);
  const captured = await meter.capture((await meter.hold({ amount: 2 })).hold_id, { amount: 1 });
  expect(captured).toMatchObject({ status: "captured", balance: 4 });
  const amounts = (await meter.history().toArray()).map(({ amount }) => amount);
  expect(amounts).toEqual([-1, 1, -1, -2, -3, 10]);
  expect((await meter.usage({ granularity: "month" })).data).toMatchObject([{ deducted: 5, balance: 4 }]);
  expect((await nf.allMeters.usage()).data).toMatchObject([{ refilled: 11, reset: -2, entries: 6 }]);

  const plan = await meter.setPlan({ amount: 10, every: "week", day: 7 });
  expect(await meter.plan()).toEqual(plan);
  expect(await meter.deletePlan()).toEqual({ success: true });
  const alert = { threshold: 3, webhook_url: NOBODY_URL };
  expect(await meter.setAlert(alert)).toEqual({ meter_id: "customer-42", ...alert });
  expect(await nf.allMeters.setAlert(alert)).toEqual({ meter_id: null, ...alert });
  expect([await meter.alert(), await nf.allMeters.alert()]).toMatchObject([alert, alert]);
  expect([await meter.deleteAlert(), await nf.allMeters.deleteAlert()]).toEqual(
    Array.from({ length: 2 }, () => ({ success: true })),
  );
  expect((await nf.meters({ prefix: "cust" }).toArray()).map(({ balance }) => balance)).toEqual([4]);
});

test("projects and keys", async () => {
  const project = await nf.projects.create({ name: "Shop" });
  expect((await nf.projects.list().toArray()).map(({ slug }) => slug)).toEqual(["shop", "default"]);
  expect(await nf.projects.get(project.id)).toEqual(project);
  expect((await nf.projects.update(project.id, { name: "Store" })).slug).toBe("shop");

  const created = await nf.projects.createKey(project.id, { prefix: "sm", name: "shop", scopes: ["*"] });
  const inShop = nf.withKey(created.secret);
  await inShop.meter("customer-42").refill(1);
  expect((await nf.projects.overview(project.id)).resources).toMatchObject({ meters: 1, keys: 1 });

  const key = await nf.keys.create({ prefix: "acme_live", name: "Warehouse", scopes: ["orders:read"] });
  const verdict = await nf.keys.verify(key.secret, { ip: "203.0.113.7", userAgent: "curl/8.5" });
  expect(verdict).toMatchObject({
    valid: true,
    key_id: key.key_id,
    project_id: null,
    scopes: ["orders:read"],
    error: null,
  });
  expect(await nf.keys.get(key.key_id)).toMatchObject({
    last_used_ip: "203.0.113.7",
    last_used_ua: "curl/8.5",
  });
  const rotated = await nf.keys.rotate(key.key_id, { grace_hours: 48 });
  expect(rotated).toMatchObject({ old_key_id: key.key_id, grace_hours: 48 });
  expect((await nf.keys.revoke(rotated.new_key_id)).status).toBe("revoked");
  expect((await nf.keys.list().toArray()).map(({ id }) => id)).toEqual([
    rotated.new_key_id,
    key.key_id,
    created.key_id,
  ]);
  expect((await nf.projects.delete(project.id)).success).toBe(true);
});

test("limits, uses and owners of keys", async () => {
  const terms = { prefix: "acme", name: "k", scopes: ["orders:*"], owner_id: "acme" };
  const key = await nf.keys.create(terms);
  const limit = { name: "requests", limit: 10, duration_ms: 60_000 };
  const changed = await nf.keys.patch(key.key_id, { ratelimits: [limit], uses: { remaining: 3 } });
  expect(changed).toMatchObject({ owner_id: "acme", uses: { remaining: 3 } });
  const asked = { require: ["orders:read"], cost: 2, ratelimits: [{ name: "requests", cost: 4 }] };
  const once = { idempotencyKey: crypto.randomUUID() };
  for (let turn = 0; turn < 2; turn += 1) {
    expect(await nf.keys.verify(key.secret, asked, once)).toMatchObject({
      valid: true,
      uses_remaining: 1,
      ratelimits: [{ remaining: 6 }],
    });
  }
  expect(await nf.keys.verify(key.secret, asked)).toMatchObject({ error: "usage_exceeded" });
  const usage = await nf.keys.usage(key.key_id, { granularity: "day" });
  expect(usage.data.reduce((sum, { total }) => sum + total, 0)).toBe(2);
  expect((await nf.keys.list({ owner_id: "acme" }).toArray()).map(({ id }) => id)).toEqual([key.key_id]);
  expect(await nf.keys.revokeOwned("acme")).toEqual({ revoked: 1, more: false });
});

test("a check", async () => {
  await nf.meter("acme").refill(5);
  const { secret } = await nf.keys.create({ prefix: "acme", name: "k", scopes: ["x"], owner_id: "acme" });
  const asked = { secret, require: ["x"], deduct: { amount: 5 } };
  expect(await nf.check(asked)).toMatchObject({ allowed: true, meter: { balance: 0 } });
  expect(await nf.check(asked)).toMatchObject({ allowed: false, code: "insufficient_balance", status: 402 });
  // Several: each sees those before it.
  await nf.meter("acme").refill(5);
  const { results } = await nf.check({ checks: [asked, asked, { secret: "unknown" }] });
  expect(results).toMatchObject([
    { allowed: true, meter: { balance: 0 } },
    { allowed: false, code: "insufficient_balance", status: 402 },
    { allowed: false, code: "invalid_key", status: 401 },
  ]);
  await nf.meter("acme").reset(0);
});

test("flags", async () => {
  expect(await nf.flags.save({ flag_key: "beta", enabled: true })).toEqual({
    success: true,
    flag_key: "beta",
    version: expect.any(Number),
  });
  expect(await nf.flags.evaluate("beta")).toEqual({ enabled: true, flag_key: "beta" });
  expect(await nf.flags.isEnabled("beta")).toBe(true);
  expect(await nf.flags.list().toArray()).toEqual(["beta"]);
  expect((await nf.flags.config()).flags).toEqual([{ flag_key: "beta", enabled: true }]);
  const rules = [
    { when: [{ attribute: "plan", op: "in" as const, values: ["pro"] }], serve: { variant: "on" } },
  ];
  const { version } = await nf.flags.save({ flag_key: "beta", enabled: true, rules, tags: ["team:a"] });
  const definition = await nf.flags.definition("beta");
  expect(definition).toMatchObject({ rules, tags: ["team:a"], version, stale: false });
  // Whoever has read an older one changes nothing.
  const late = nf.flags.save({ flag_key: "beta", enabled: false, if_version: version - 1 });
  await expect(late).rejects.toMatchObject({ code: "conflict", extras: { version } });
  const [whole] = (await nf.flags.config({ full: true, tag: "team:a" })).flags;
  expect(whole?.rules[0]?.when[0]?.attribute).toBe("plan");
  expect(whole?.last_evaluated_at).not.toBeNull();
  await nf.flags.save({ flag_key: "beta", enabled: true, archived: true });
  expect((await nf.flags.config()).flags).toEqual([]);
  expect((await nf.flags.config({ archived: true })).flags.map(({ flag_key }) => flag_key)).toEqual(["beta"]);
  expect(await nf.flags.delete("beta")).toEqual({ success: true });
  expect(await nf.flags.isEnabled("beta", { fallback: true })).toBe(true);
  await expect(nf.flags.isEnabled("beta")).rejects.toMatchObject({ code: "gate.feature_not_found" });
});

test("flags for a context", async () => {
  await nf.flags.save({ flag_key: "resolved", enabled: true });
  const on = { key: "resolved", value: true, variant: "on", reason: "STATIC", metadata: {} };
  expect(await nf.flags.resolve("resolved", { targetingKey: "user-1" })).toEqual(on as never);
  const { flags, eventStreams } = await nf.flags.resolveAll({});
  expect({ flags, streams: eventStreams?.length }).toEqual({ flags: [on as never], streams: 1 });
  const theme = { dark: true };
  const one = { enabled: true, default: { variant: "it" } };
  await nf.flags.save({ ...one, flag_key: "text", type: "string", variants: { it: "a" } });
  await nf.flags.save({ ...one, flag_key: "count", type: "number", variants: { it: 3 } });
  await nf.flags.save({ ...one, flag_key: "theme", type: "object", variants: { it: theme } });
  expect(await nf.flags.boolean("resolved", {}, false)).toBe(true);
  expect(await nf.flags.string("text", {}, "b")).toBe("a");
  expect(await nf.flags.number("count", {}, 0)).toBe(3);
  expect(await nf.flags.object("theme", {}, {})).toEqual(theme);
  // Another type, or no such flag: the fallback.
  expect(await nf.flags.boolean("text", {}, false)).toBe(false);
  expect(await nf.flags.string("count", {}, "b")).toBe("b");
  expect(await nf.flags.number("theme", {}, 7)).toBe(7);
  expect(await nf.flags.object("text", {}, theme)).toBe(theme);
  expect(await nf.flags.object<readonly number[]>("theme", {}, [7])).toEqual([7]);
  expect(await nf.flags.string("none", {}, "b")).toBe("b");
  for (const flag of ["text", "count", "theme"]) await nf.flags.delete(flag);
  await nf.flags.delete("resolved");
  await expect(nf.flags.resolve("resolved", {})).rejects.toMatchObject({ code: "gate.feature_not_found" });
});

test("locks", async () => {
  const lock = await nf.locks.acquire("invoice:42", { ttlMs: 30_000 });
  expect(lock).toMatchObject({ status: "acquired", key: "invoice:42", reentrant: false });
  expect(await nf.locks.status("invoice:42")).toMatchObject({ locked: true, ttl_remaining: 30_000 });
  expect(await nf.locks.release("invoice:42", lock.token)).toEqual({ status: "released" });
  const hung = await nf.locks.acquire("invoice:43");
  expect((await nf.locks.list().toArray()).map(({ key }) => key)).toEqual(["invoice:43"]);
  expect(await nf.locks.extend("invoice:43", hung.token, 60_000)).toMatchObject({
    status: "extended",
    fencing_token: hung.fencing_token,
  });
  expect(await nf.locks.forceRelease("invoice:43", hung.fencing_token)).toEqual({ status: "released" });
});

test("monitors", async () => {
  const { id } = await nf.monitors.create({ url: NOBODY_URL, interval: 60_000 });
  expect((await nf.monitors.get(id)).status).toBe("unknown");
  expect((await nf.monitors.update(id, { active: false })).active).toBe(false);
  expect((await nf.monitors.check(id)).status).toBe("down");
  expect((await nf.monitors.list({ status: "down" }).toArray()).map(({ monitor_id }) => monitor_id)).toEqual([
    id,
  ]);
  const [check] = await nf.monitors.history(id).toArray();
  expect(check).toMatchObject({ status: "down", manual: true });
  expect((await nf.monitors.history(id).page()).uptime["24h"]).toBe(0);
  const { series } = await nf.monitors.history(id, { range: "24h" }).page();
  expect(series?.buckets).toMatchObject([{ checks: 1, up: 0, latency_ms: null }]);
  expect(await nf.monitors.delete(id)).toEqual({ deleted: true });

  await nf.monitors.renewPingKey();
  const beat = await nf.monitors.create({ type: "heartbeat", slug: "nightly" });
  const rid = crypto.randomUUID();
  await nf.monitors.ping(beat.ping_url ?? "", { says: "start", rid });
  await nf.monitors.ping(beat.ping_slug_url ?? "", { body: "42 files", rid });
  await nf.monitors.ping(beat.ping_url ?? "", { says: 3 });
  const { pings } = await nf.monitors.pings(beat.id);
  expect(pings.map(({ kind, exit, body }) => [kind, exit, body])).toEqual([
    ["fail", 3, null],
    ["success", null, "42 files"],
    ["start", null, null],
  ]);
  await expect(nf.monitors.ping(`/ping/${id}`)).rejects.toMatchObject({ status: 404 });
  await expect(nf.monitors.ping("https://example.com/p/x")).rejects.toThrow(
    new TypeError("pingUrl must be the ping_url or ping_slug_url of a heartbeat, with /ping/"),
  );
});

test("deliveries", () => callDeliveries(nf, server));
test("schedules", () => callSchedules(nf));
test("endpoints and messages", () => callEndpoints(nf));
test("the portal", () => callPortal(nf));
test("buckets and their events", () => callBuckets(nf, server));

test("the notary", async () => {
  const chain = await nf.notary.init();
  if (!chain.success) throw new Error("the chain was there already");
  expect(await nf.notary.init()).toEqual({ success: false, chain_id: chain.chain_id });
  const receipt = await nf.notary.log({ event: "invoice.paid", amount: 4200 });
  expect(receipt).toMatchObject({ sequence_id: "1", public_key: chain.publicKey });
  expect((await nf.notary.verify(receipt)).valid).toBe(true);
  expect(await nf.notary.checkpoint()).toMatchObject({ size: 1, cosignatures: [] });
  const proof = await nf.notary.inclusionProof({ sequence_id: "1" });
  expect(await nf.notary.receipts.bundle(1)).toMatchObject({ receipt, checkpoint: proof.checkpoint });
  expect(await Array.fromAsync(nf.notary.export())).toEqual([receipt]);
  expect((await nf.notary.consistencyProof({ from: 0 })).to).toBe(1);
  await expect(nf.notary.acceptFork(chain.chain_id)).rejects.toMatchObject({ code: "conflict" });
  const witnesses = [{ url: "https://witness.example/w", vkey: WITNESS_VKEY }];
  expect((await nf.notary.witnesses.set({ witnesses })).witnesses).toMatchObject(witnesses);
  expect((await nf.notary.witnesses.get()).witnesses).toMatchObject(witnesses);
  await nf.notary.witnesses.set({ witnesses: [] });
  await expect(nf.notary.peer.get()).rejects.toMatchObject({ code: "not_found" });
  expect((await nf.notary.publish({ public: true })).path).toEndWith(chain.chain_id);
  expect(await nf.notary.receipts.get(1)).toEqual(receipt);
  expect(await nf.notary.receipts.list().toArray()).toEqual([receipt]);
  expect(await nf.withKey(null).notary.publicKey(chain.chain_id)).toEqual(chain.publicKey);
  const storage = {
    endpoint: NOBODY_URL,
    bucket: "receipts",
    region: "eu-central-1",
    accessKeyId: "AKIAIOSFODNN7EXAMPLE",
    secretAccessKey: "wJalrXUtnFEMI-K7MDENG",
  };
  expect(await nf.notary.storage.configure(storage)).toEqual({ success: true, configured: true });
  expect((await nf.notary.storage.get()).bucket).toBe("receipts");
  expect(await nf.notary.index.set({ fields: ["/event"] })).toMatchObject({
    fields: ["/event"],
    retain_days: 0,
  });
  expect(await nf.notary.index.get()).toMatchObject({ fields: ["/event"] });
  const redacted = await nf.notary.receipts.redact(1, { reason: "asked by the customer" });
  expect(redacted.receipt).toMatchObject({ sequence_id: "1", content_hash: receipt.content_hash });
});

test("request sends any request and returns the complete response", async () => {
  const { status, body, requestId, headers } = await nf.request("POST", "/v1/meter/raw/refill", {
    amount: 2,
  });
  expect({ status, body }).toEqual({ status: 200, body: { balance: 2, meter_id: "raw" } });
  expect(headers.get("x-request-id")).toBe(requestId);
  expect(await nf.request("HEAD", "/v1/ping")).toMatchObject({ status: 200, body: undefined });
  await expect(nf.request("GET", "/v1/nothing")).rejects.toMatchObject({ code: "not_found", status: 404 });
});

test("every method with code of its own was called", () => {
  const called = recorder.requests.map(({ method, path }) => operationAt(method, path));
  expect(Object.keys(WRITTEN).filter((id) => !called.some((name) => name === id))).toEqual([]);
});
