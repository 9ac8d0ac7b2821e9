import { afterEach, beforeEach, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { unpack } from "../../../kept/archive.ts";
import { Receiver, receiverUrl, serverAt } from "../../../kept/world.ts";
import { Client } from "../../../support/client.ts";
import { accepted, bucketOf, eventOf, setState } from "../support.ts";
import type { KeptForwards } from "./kept/read.ts";

const HOUR_MS = 3_600_000;
const kept = JSON.parse(readFileSync(join(import.meta.dir, "kept/forwards.json"), "utf8")) as KeptForwards;

let receiver: Receiver;
let server: ReturnType<typeof serverAt>;
let account: Client;

beforeEach(async () => {
  receiver = new Receiver();
  server = serverAt(kept.at, receiver);
  unpack(join(import.meta.dir, "kept/forwards.tar.zst"), server.makeFolder());
  server.key = kept.operatorKey;
  await server.start();
  account = new Client(server.url, kept.key);
});
afterEach(async () => {
  await server.stop();
  await receiver.stop();
});

const idOf = (bucket: string): string => kept.buckets[bucket] ?? "";
const namesAt = (path: string): string[] =>
  receiver.at(path).map(({ body }) => (JSON.parse(body) as { name: string }).name);
const event = (bucket: string, name: string) => eventOf(account, idOf(bucket), kept.events[name] ?? "");

const BUCKET_OF = { p: "paused", q: "queued", r: "retrying", s: "scheduled", y: "replaying" } as const;

test("events are shown as the earlier version showed them", async () => {
  for (const [name, view] of Object.entries(kept.views))
    expect(await event(BUCKET_OF[name[0] as keyof typeof BUCKET_OF], name)).toMatchObject(view as object);
});

test("queued events are sent first, in order, and once", async () => {
  await accepted(server, idOf("queued"), '{"name":"q4"}');
  await server.time.advance(0);
  expect(namesAt("/queued")).toEqual(["q1", "q2", "q3", "q4"]);
  await server.time.advance(HOUR_MS);
  expect(receiver.at("/queued").length).toBe(4);
  expect((await bucketOf(account, idOf("queued"))).events).toEqual({ pending: 0, delivered: 4, failed: 0 });
});

test("a paused bucket waits, then sends its backlog in order, before a new event", async () => {
  await server.time.advance(HOUR_MS);
  expect(receiver.at("/paused")).toEqual([]);
  await setState(account, idOf("paused"), "live");
  await accepted(server, idOf("paused"), '{"name":"p4"}');
  await server.time.advance(0);
  expect(namesAt("/paused")).toEqual(["p1", "p2", "p3", "p4"]);
  const [first] = receiver.at("/paused");
  expect(Object.fromEntries(first?.headers ?? [])).toMatchObject({
    "content-type": "application/json",
    "x-github-event": "push",
    "x-svc-event-id": kept.events["p1"] ?? "",
    "webhook-id": kept.events["p1"] ?? "",
  });
});

test("retries keep their times and their number", async () => {
  const before = await event("retrying", "r1");
  expect(before.attempts).toBe(2);
  const due = Date.parse(before.next_attempt_at ?? "") - kept.at;
  await server.time.advance(due - 1);
  expect(receiver.at("/broken/retrying")).toEqual([]);
  await server.time.advance(1);
  expect(receiver.at("/broken/retrying").length).toBe(1);
  await server.time.advance(HOUR_MS);
  expect(receiver.at("/broken/retrying").length).toBe(2);
  expect(await event("retrying", "r1")).toMatchObject({ status: "failed", attempts: 4 });
});

test("a retry of a bucket's own schedule goes to its current target, once", async () => {
  const target_url = receiverUrl("/mended");
  expect((await account.patch(`/v1/catch/buckets/${idOf("scheduled")}`, { target_url })).status).toBe(200);
  await server.time.advance(4 * HOUR_MS);
  expect(namesAt("/mended")).toEqual(["s1"]);
  expect(await event("scheduled", "s1")).toMatchObject({ status: "delivered", attempts: 2 });
});

test("with targets in place of target_url, what is pending reaches the endpoint once, in order", async () => {
  const created = await account.post("/v1/relay/endpoints", {
    url: receiverUrl("/endpoint"),
    max_concurrency: 1,
  });
  const targets = [{ endpoint_id: String(created.body["endpoint_id"]) }];
  for (const bucket of ["queued", "paused", "retrying", "scheduled"]) {
    const path = `/v1/catch/buckets/${idOf(bucket)}`;
    const changed = await account.patch(path, { target_url: null, targets, state: "live" });
    expect(changed.status).toBe(200);
  }
  await server.time.advance(4 * HOUR_MS);
  const names = namesAt("/endpoint");
  expect(names.filter((name) => name.startsWith("q"))).toEqual(["q1", "q2", "q3"]);
  expect(names.filter((name) => name.startsWith("p"))).toEqual(["p1", "p2", "p3"]);
  expect(names.slice(-2)).toEqual(["r1", "s1"]);
  expect(names.length).toBe(8);
  for (const path of ["/queued", "/paused", "/broken/retrying", "/broken/scheduled"])
    expect(receiver.at(path)).toEqual([]);
  for (const [name, bucket] of Object.entries({
    q3: "queued",
    p1: "paused",
    r1: "retrying",
    s1: "scheduled",
  }))
    expect((await event(bucket, name)).status).toBe("delivered");
});

test("a running bulk replay sends the remaining events once", async () => {
  await server.time.advance(HOUR_MS);
  // The folder has 5 events: each was delivered once and is replayed once.
  expect(receiver.at("/replaying").length + kept.replayed).toBe(10);
  const { body } = await account.get(`/v1/catch/${idOf("replaying")}/replays/${kept.replayId}`);
  expect(body).toMatchObject({ status: "done", matched: 5, delivered: 5, failed: 0, skipped: 0 });
});
