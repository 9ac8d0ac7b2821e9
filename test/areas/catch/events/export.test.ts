import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import {
  EXPORT_BYTES_MAX,
  EXPORT_EVENTS_MAX,
  exportPage,
} from "../../../../src/areas/catch/events/export.ts";
import type { EventRow } from "../../../../src/areas/catch/store.ts";
import { DEFAULT_TIERS } from "../../../../src/kernel/limits/tiers.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { accepted, balanceOf, eventOf, eventsOf, newBucket } from "../support.ts";

let server: TestServer;
beforeAll(async () => {
  const scale = { ...DEFAULT_TIERS.scale, requestsPerMinute: 1e6 };
  server = await startTestServer({ manualClock: true, config: { tiers: { ...DEFAULT_TIERS, scale } } });
});
afterAll(() => server.stop());

const hmac = (body: string) => createHmac("sha256", "s").update(body).digest("hex");

describe("a page of an export", () => {
  const page = (count: number, line: string) => {
    const rows = Array.from({ length: count }, (_, index) => ({
      sequence: index + 1,
    })) as unknown as EventRow[];
    const events = { after: (_: number, after: number, limit: number) => rows.slice(after, after + limit) };
    const all = { bucketRef: 1, since: 0, until: Number.POSITIVE_INFINITY, after: 0 };
    return exportPage(events, all, () => line, new AbortController().signal);
  };

  test(`has at most ${EXPORT_EVENTS_MAX} events`, async () => {
    expect(await page(EXPORT_EVENTS_MAX, "x")).toEqual({
      text: "x".repeat(EXPORT_EVENTS_MAX),
      through: null,
    });
    expect((await page(EXPORT_EVENTS_MAX + 1, "x")).through).toBe(EXPORT_EVENTS_MAX);
  });

  test("has a limit of bytes, and at least one event", async () => {
    const half = "x".repeat(EXPORT_BYTES_MAX / 2);
    expect((await page(2, half)).through).toBeNull();
    expect((await page(3, half)).through).toBe(2);
    expect((await page(2, `${half}${half}x`)).through).toBe(1);
  });
});

describe("lists, bytes and exports", () => {
  async function filled(): Promise<{ account: AccountClient; id: string; times: string[] }> {
    const account = await server.account();
    const { id } = await newBucket(account, { provider: "github", signing_secret: "s" });
    const times: string[] = [];
    for (const [index, type] of ["push", "ping", "push"].entries()) {
      times.push(new Date(server.clock.now()).toISOString());
      const signature = index === 2 ? "sha256=00" : `sha256=${hmac(`${index}`)}`;
      await accepted(server, id, `${index}`, { "x-hub-signature-256": signature, "x-github-event": type });
      await server.clock.advance(1_000);
    }
    return { account, id, times };
  }

  test("lists by type, verification and time", async () => {
    const { account, id, times } = await filled();
    const whole = (await eventsOf(account, id)).map((event) => event.id);
    const found = async (query: string) => {
      const { body } = await account.get(`/v1/catch/${id}/events?${query}`);
      return (body["events"] as { id: string }[]).map((event) => whole.indexOf(event.id)).reverse();
    };
    expect(await found("event_type=push")).toEqual([0, 2]);
    expect(await found("verification=valid")).toEqual([0, 1]);
    expect(await found("event_type=push&verification=invalid")).toEqual([2]);
    expect(await found(`since=${times[1]}`)).toEqual([1, 2]);
    expect(await found(`until=${times[1]}`)).toEqual([0]);
    expect(await found(`since=${times[1]}&until=${times[2]}&event_type=ping`)).toEqual([1]);
    expect(await found(`since=${times[1]}&event_type=push&limit=1`)).toEqual([2]);
    expect(await found("status=failed&provider=github")).toEqual([2]);
    expect(await found("provider=stripe")).toEqual([]);
    for (const wrong of ["since=soon", "until=soon", "verification=maybe", "event_type="])
      expect((await account.get(`/v1/catch/${id}/events?${wrong}`)).status).toBe(400);
  });

  test("raw: the exact bytes, never rendered as a page", async () => {
    const account = await server.account({ balance: 10 });
    const { id } = await newBucket(account);
    const bytes = new Uint8Array([60, 0, 255, 10]);
    const event = await accepted(server, id, bytes, { "content-type": "text/html" });
    const path = `/v1/catch/${id}/events/${event}/raw`;
    const response = await fetch(server.url + path, { headers: { authorization: `Bearer ${account.key}` } });
    expect(Buffer.from(await response.arrayBuffer()).equals(Buffer.from(bytes))).toBe(true);
    const shown = [
      "content-type",
      "content-disposition",
      "x-content-type-options",
      "content-security-policy",
    ];
    expect(shown.map((name) => response.headers.get(name))).toEqual([
      ...["application/octet-stream", "attachment", "nosniff", "sandbox"],
    ]);
    expect(await balanceOf(account)).toBe(8);
    expect((await account.get(path.replace(event, "evt_0000000000a"))).status).toBe(404);
    expect((await (await server.account()).get(path)).status).toBe(404);
  });

  test("export: complete events, oldest first, page by page", async () => {
    const { account, id, times } = await filled();
    const lines = async (query: string) => {
      const { text, headers } = await account.get(`/v1/catch/${id}/events/export?${query}`);
      const events = text
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line) as { id: string });
      return { events, next: headers.get("x-next-cursor") };
    };
    const all = (await eventsOf(account, id)).map((event) => event.id);
    const { events, next } = await lines("");
    expect(next).toBeNull();
    expect(events.map((event) => event.id)).toEqual(all);
    expect(events[0]).toEqual((await eventOf(account, id, all[0] ?? "")) as never);
    expect((await lines(`since=${times[1]}&until=${times[2]}`)).events.map((event) => event.id)).toEqual([
      all[1] ?? "",
    ]);
    expect((await lines(`cursor=${all[1]}`)).events.map((event) => event.id)).toEqual([all[2] ?? ""]);
    for (const wrong of ["cursor=x", "since=soon", "until=soon"])
      expect((await account.get(`/v1/catch/${id}/events/export?${wrong}`)).status).toBe(400);
  });

  test("export: a page ends at 8 MiB, and the cursors lead to all events", async () => {
    const account = await server.account();
    const { id } = await newBucket(account);
    const sent: string[] = [];
    for (let count = 0; count < 3; count += 1)
      sent.push(await accepted(server, id, new Uint8Array(1024 * 1024).fill(1)));
    const found: string[] = [];
    let pages = 0;
    for (let cursor: string | null = ""; cursor !== null; pages += 1) {
      const query: string = cursor === "" ? "" : `?cursor=${cursor}`;
      const { text, headers } = await account.get(`/v1/catch/${id}/events/export${query}`);
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(EXPORT_BYTES_MAX);
      found.push(
        ...text
          .split("\n")
          .filter(Boolean)
          .map((line) => String((JSON.parse(line) as { id: string }).id)),
      );
      cursor = headers.get("x-next-cursor");
    }
    expect([pages, found]).toEqual([3, sent]);
  });
});
