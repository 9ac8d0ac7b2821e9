import { expect } from "bun:test";
import type { Ninefold } from "../../src/client/index.ts";
import type { TestServer } from "../support/server.ts";

/** Nothing listens there. */
export const NOBODY_URL = "https://127.0.0.1:9/";

/** Calls everything that has to do with deliveries. */
export async function callDeliveries(nf: Ninefold, server: TestServer): Promise<void> {
  const body = {
    target_url: NOBODY_URL,
    method: "POST",
    delay: "1h",
    payload: { a: 1 },
    headers: {},
  } as const;
  const { relay_id } = await nf.relay.schedule(body);
  expect((await nf.relay.list({ status: "scheduled" }).toArray()).map((item) => item.relay_id)).toEqual([
    relay_id,
  ]);
  expect((await nf.relay.get(relay_id)).attempt_log).toEqual([]);
  expect(await nf.relay.body(relay_id)).toEqual({ body: '{"a":1}', size_bytes: 7 });
  expect((await nf.relay.stats()).counts).toMatchObject({ scheduled: 1, failed: 0 });
  expect(await nf.relay.cancel(relay_id)).toEqual({ relay_id, status: "cancelled" });

  const once = { ...body, delay: "0s", retry_schedule: [], deduplication_id: "one" } as const;
  const failing = await nf.relay.schedule(once);
  expect(await nf.relay.schedule(once)).toEqual({ ...failing, deduplicated: true } as never);
  await server.clock.advance(0);
  expect((await nf.relay.list({ error: "network" }).toArray()).map((item) => item.relay_id)).toEqual([
    failing.relay_id,
  ]);
  expect(await nf.relay.resendFailed({ since: 0, dry_run: true })).toEqual({ matched: 1 });
  const resend = await nf.relay.resendFailed({ since: 0 });
  if (!("resend_id" in resend)) throw new Error("only counted");
  expect(await nf.relay.resendProgress(resend.resend_id)).toMatchObject({ status: "running", matched: 1 });
  expect((await nf.relay.stopResend(resend.resend_id)).status).toBe("cancelled");
  expect(await nf.relay.resend(failing.relay_id)).toEqual({
    relay_id: failing.relay_id,
    status: "scheduled",
  });

  const { secret } = await nf.relay.secret();
  const rotated = await nf.relay.rotateSecret();
  expect(rotated.previous_expires_at).toBe(server.clock.now() + 86_400_000);
  expect((await nf.relay.rotateSecret({ grace_hours: 0, secret })).secret).toBe(secret);
}

/** The same with schedules. */
export async function callSchedules(nf: Ninefold): Promise<void> {
  const schedule = await nf.relay.schedules.create({
    name: "nightly",
    cron: "@daily",
    target_url: NOBODY_URL,
  });
  const { schedule_id } = schedule;
  expect(schedule.next_runs).toHaveLength(5);
  expect(await nf.relay.schedules.get(schedule_id)).toEqual(schedule);
  const listed = await nf.relay.schedules.list({ name: "nightly" }).toArray();
  expect(listed.map((item) => item.schedule_id)).toEqual([schedule_id]);
  expect((await nf.relay.schedules.update(schedule_id, { state: "paused" })).next_run_at).toBeNull();
  const run = await nf.relay.schedules.run(schedule_id);
  expect((await nf.relay.get(String(run.relay_id))).schedule_id).toBe(schedule_id);
  await nf.relay.schedules.delete(schedule_id);
  expect(await nf.relay.schedules.list().toArray()).toEqual([]);
}

/** The same with endpoints and messages. */
export async function callEndpoints(nf: Ninefold): Promise<void> {
  const { endpoints, messages } = nf.relay;
  const created = await endpoints.create({ url: NOBODY_URL, name: "books", state: "paused" });
  const id = created.endpoint_id;
  expect(created.secret).toMatch(/^whsec_/);
  expect((await endpoints.list({ state: "paused" }).toArray()).map(({ name }) => name)).toEqual(["books"]);
  expect((await endpoints.update(id, { description: "Bookkeeping" })).description).toBe("Bookkeeping");
  expect((await endpoints.rotateSecret(id)).secret).not.toBe(created.secret);
  expect((await endpoints.test(id)).message_id).toMatch(/^msg_/);
  expect((await endpoints.get(id)).counts).toEqual({ waiting: 1, delivered_24h: 0, failed_24h: 0 });

  expect(await endpoints.recover(id, { since: 0, dry_run: true })).toEqual({ matched: 0 });

  const message = { event_type: "invoice.paid", payload: { n: 1 }, message_id: "m-1" };
  expect((await messages.send(message)).deliveries.map(({ endpoint_id }) => endpoint_id)).toEqual([id]);
  expect((await messages.sendMany([message])).messages[0]?.deduplicated).toBe(true);
  expect((await messages.list({ event_type: "invoice.paid" }).toArray()).length).toBe(1);
  expect((await messages.get("m-1")).payload).toEqual({ n: 1 });
  expect(await messages.resend("m-1")).toEqual({ resent: 0 });
  expect(await endpoints.delete(id)).toBeUndefined();
}

/** The same with portal links, and what a customer can do with one. */
export async function callPortal(nf: Ninefold): Promise<void> {
  const { url } = await nf.relay.portal.create({ owner_id: "acme", expires_in: "1h" });
  const { portal } = nf.withKey(url.slice(url.indexOf("=") + 1)).relay;
  expect((await portal.get()).owner_id).toBe("acme");
  const created = await portal.endpoints.create({ url: NOBODY_URL });
  const id = created.endpoint_id;
  expect((await portal.endpoints.list().toArray()).map(({ endpoint_id }) => endpoint_id)).toEqual([id]);
  expect((await portal.endpoints.update(id, { state: "paused" })).state).toBe("paused");
  expect((await portal.endpoints.get(id)).counts.waiting).toBe(0);
  expect((await portal.endpoints.secret.reveal(id)).secret).toBe(created.secret);
  expect((await portal.endpoints.secret.rotate(id)).secret).not.toBe(created.secret);
  const { relay_id } = await portal.endpoints.test(id);
  expect((await portal.deliveries.list().toArray()).map((one) => one.relay_id)).toEqual([relay_id]);
  expect((await portal.deliveries.body(relay_id)).body).toContain('"data":{"test":true}}');
  await nf.relay.cancel(relay_id);
  expect((await portal.deliveries.get(relay_id)).status).toBe("cancelled");
  await expect(portal.deliveries.resend(relay_id)).rejects.toMatchObject({ code: "conflict" });
  expect(await portal.endpoints.recover(id, { since: 0, dry_run: true })).toEqual({ matched: 0 });
  await portal.endpoints.update(id, { state: "live" });
  const started = await portal.endpoints.recover(id, { since: 0 });
  const resendId = "resend_id" in started ? started.resend_id : "";
  expect(await portal.resendProgress(resendId)).toMatchObject({ status: "done", matched: 0 });
  expect((await portal.stopResend(resendId)).status).toBe("done");
  await portal.endpoints.delete(id);
  expect(await nf.relay.portal.revoke({ owner_id: "acme" })).toEqual({ revoked: 1 });
}

/** The same with buckets and their events. */
export async function callBuckets(nf: Ninefold, server: TestServer): Promise<void> {
  const bucket = await nf.catch.buckets.create({ target_url: NOBODY_URL });
  const sent = await nf.catch.send(bucket.id, '{"hello":"there"}', { headers: { "x-own": "1" } });
  expect(sent).toMatchObject({ status: "accepted", verification: "none" });
  const eventId = String(sent.event_id);
  expect((await nf.catch.buckets.list().toArray()).map(({ id }) => id)).toEqual([bucket.id]);
  expect((await nf.catch.buckets.get(bucket.id)).events).toEqual({ pending: 1, delivered: 0, failed: 0 });
  expect((await nf.catch.events.list(bucket.id).toArray()).map(({ id }) => id)).toEqual([eventId]);
  expect((await nf.catch.events.list(bucket.id, { q: "THERE" }).toArray()).map(({ id }) => id)).toEqual([
    eventId,
  ]);
  expect(await nf.catch.events.list(bucket.id, { q: "elsewhere" }).toArray()).toEqual([]);
  const event = await nf.catch.events.get(bucket.id, eventId);
  expect(event.attempt_log).toEqual([]);
  expect(event.payload).toEqual({ hello: "there" });
  expect(event.headers["x-own"]).toBe("1");
  expect(new TextDecoder().decode(await nf.catch.events.raw(bucket.id, eventId))).toBe('{"hello":"there"}');
  await expect(nf.catch.events.raw(bucket.id, "evt_0")).rejects.toMatchObject({
    code: "catch.event_not_found",
  });
  const exported: string[] = [];
  for await (const { id } of nf.catch.events.export(bucket.id, { since: "2020-01-01T00:00:00Z" }))
    exported.push(id);
  expect(exported).toEqual([eventId]);
  await expect(nf.catch.events.replay(bucket.id, eventId)).rejects.toMatchObject({ code: "bucket_paused" });
  const below = await nf.catch.sendIn(bucket.id, "hi", { headers: { "x-own": "2" } });
  expect((await nf.catch.events.get(bucket.id, String(below.event_id))).method).toBe("POST");
  const deeper = await nf.catch.sendIn(bucket.id, "hi", { below: "/orders?shop=1" });
  const { path, query } = await nf.catch.events.get(bucket.id, String(deeper.event_id));
  expect([path, query]).toEqual(["/orders", "shop=1"]);
  expect((await nf.catch.buckets.update(bucket.id, { state: "live" })).state).toBe("live");
  const replay = await nf.catch.replays.start(bucket.id, { status: "pending" });
  if (!("replay_id" in replay)) throw new Error("that was no dry run");
  expect(await nf.catch.replays.start(bucket.id, { dry_run: true })).toEqual({ matched: 3 });
  expect((await nf.catch.replays.get(bucket.id, replay.replay_id)).status).toBe("running");
  expect((await nf.catch.replays.stop(bucket.id, replay.replay_id)).status).toBe("cancelled");
  await nf.catch.buckets.update(bucket.id, { delivery: "pull", target_url: null });
  const page = await nf.catch.events.stream(bucket.id, { after: "beginning" });
  expect(page.events).toHaveLength(3);
  expect([page.events[0]?.id, page.cursor]).toEqual([eventId, page.events[2]?.id ?? ""]);
  expect((await nf.catch.events.acknowledge(bucket.id, eventId, { result: "delivered" })).status).toBe(
    "delivered",
  );
  const later = new Date(server.clock.now() + 1_000);
  expect(await nf.catch.events.deleteBefore(bucket.id, later)).toEqual({ deleted_count: 3 });
  expect(await nf.catch.buckets.delete(bucket.id)).toBeUndefined();
}
