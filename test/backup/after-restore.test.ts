import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { fencingFloor, TOKENS_BEYOND_BACKUP, TOKENS_PER_MS_MAX } from "../../src/areas/locks/backup-check.ts";
import { below } from "../../src/kernel/data/backup-check.ts";
import type { Client } from "../support/client.ts";
import { BackupStage, ninefold, TIMEOUT_MS } from "./support.ts";

const stage = new BackupStage();
afterAll(() => stage.close());

const GRANTS = 1_500;

/** Acquires and releases a lock `times` times; returns the last token. */
async function grant(client: Client, times: number): Promise<number> {
  let last = 0;
  for (let time = 0; time < times; time += 1) {
    const { status, body } = await client.post("/v1/latch/key/acquire", {});
    expect(status).toBe(200);
    const token = Number(body["fencing_token"]);
    expect(token).toBeGreaterThan(last);
    last = token;
    expect((await client.post("/v1/latch/key/release", { token: body["token"] })).status).toBe(200);
  }
  return last;
}

test(
  "fencing tokens rise above every issued one, also after repeated restores of the same backup",
  async () => {
    const copy = stage.path("copy.db");
    let server = await stage.start();
    let highest = await grant(stage.client(server), 3);
    expect((await ninefold(["backup", copy, "--data", stage.path("data")])).code).toBe(0);
    // More than one range of reserved tokens.
    highest = await grant(stage.client(server), GRANTS);
    for (let restore = 0; restore < 3; restore += 1) {
      await server.stop("SIGKILL");
      expect((await ninefold(["restore", copy, "--data", stage.path("data"), "--force"])).code).toBe(0);
      server = await stage.start();
      const client = stage.client(server);
      const first = await grant(client, 1);
      expect(first).toBeGreaterThan(highest);
      expect(Number.isSafeInteger(first)).toBe(true);
      highest = await grant(client, 20);
    }
    // With tokens as large as they are now, everything else about a lock works as before.
    const client = stage.client(server);
    const held = await client.post("/v1/latch/held/acquire", { ttl: 60_000 });
    await server.stop();
    server = await stage.start();
    const again = await stage.client(server).post("/v1/latch/held/acquire", { token: held.body["token"] });
    expect(again.body).toMatchObject({ reentrant: true, fencing_token: held.body["fencing_token"] });
    expect(
      (await stage.client(server).post("/v1/latch/held/release", { token: held.body["token"] })).status,
    ).toBe(200);
  },
  TIMEOUT_MS,
);

describe("the floor of fencing tokens", () => {
  const now = Date.UTC(2026, 10, 21);

  test("rises with time, faster than tokens can be issued", () => {
    expect(fencingFloor(1_000, now)).toBe(now * TOKENS_PER_MS_MAX);
    const floor = fencingFloor(1_000, now);
    for (const laterMs of [1, 1_000, 86_400_000]) {
      const handedOut = laterMs * TOKENS_PER_MS_MAX - 1;
      expect(fencingFloor(1_000, now + laterMs)).toBeGreaterThan(floor + handedOut);
    }
  });

  test("is far above the backup's number if the clock is behind it", () => {
    const ahead = now * TOKENS_PER_MS_MAX;
    expect(fencingFloor(ahead - 1, now)).toBe(ahead);
    expect(fencingFloor(ahead, now)).toBe(ahead + TOKENS_BEYOND_BACKUP);
    expect(fencingFloor(ahead + 5, now)).toBe(ahead + 5 + TOKENS_BEYOND_BACKUP);
  });

  test("stays an integer that JSON represents exactly", () => {
    expect(fencingFloor(Number.MAX_SAFE_INTEGER - 1, now)).toBe(Number.MAX_SAFE_INTEGER);
    expect(fencingFloor(0, Date.UTC(2255, 0, 1))).toBeLessThan(Number.MAX_SAFE_INTEGER);
  });
});

test(
  "restores the state of the backup: revoked keys work again, and responses stored under an Idempotency-Key are lost",
  async () => {
    const copy = stage.path("other.db");
    let server = await stage.start("other");
    const operator = stage.client(server);
    const created = await operator.post("/v1/keys", { prefix: "sm", name: "k", scopes: ["*"] });
    expect((await ninefold(["backup", copy, "--data", stage.path("other")])).code).toBe(0);
    await operator.delete(`/v1/keys/${created.body["key_id"]}`);
    const headers = { "idempotency-key": "once" };
    await operator.post("/v1/meter/m/refill", { amount: 5 }, { headers });
    await server.stop();
    expect((await ninefold(["restore", copy, "--data", stage.path("other"), "--force"])).code).toBe(0);
    server = await stage.start("other");
    const client = stage.client(server);
    const verified = await client.post("/v1/keys/verify", { secret: created.body["secret"] });
    expect(verified.body["valid"]).toBe(true);
    const repeated = await client.post("/v1/meter/m/refill", { amount: 5 }, { headers });
    expect(repeated.headers.get("idempotent-replayed")).toBeNull();
    expect(repeated.body["balance"]).toBe(5);
  },
  TIMEOUT_MS,
);

test(
  "reports the number of pending deliveries, and the endpoints with deliveries on hold",
  async () => {
    const server = await stage.start("waiting");
    const client = stage.client(server);
    const body = { target_url: "https://example.com/", method: "POST", delay: "1h", payload: {} };
    expect((await client.post("/v1/relay", body)).status).toBe(201);
    const ids: string[] = [];
    for (const name of ["paused", "silent", "back", "disabled", "deleted"]) {
      const endpoint = { url: "https://example.com/", name, event_types: [name], state: "paused" };
      ids.push(String((await client.post("/v1/relay/endpoints", endpoint)).body["endpoint_id"]));
      await client.post("/v1/relay/messages", { event_type: name, payload: {} });
    }
    await client.post("/v1/relay/messages", { event_type: "silent", payload: {} });
    await server.stop();
    // Other states at the time of a backup, some of them temporary.
    const db = new Database(join(stage.path("waiting"), "ninefold.db"));
    db.run("UPDATE relay_endpoints SET state = 1, breaker = 1 WHERE name = 'silent'");
    db.run("UPDATE relay_endpoints SET state = 1 WHERE name = 'back'");
    db.run("UPDATE relay_endpoints SET state = 3 WHERE name = 'disabled'");
    db.run("UPDATE relay_endpoints SET state = 4 WHERE name = 'deleted'");
    db.close();
    const copy = stage.path("waiting.db");
    expect((await ninefold(["backup", copy, "--data", stage.path("waiting")])).code).toBe(0);
    const { code, out } = await ninefold(["restore", copy, "--data", stage.path("elsewhere")]);
    expect(code).toBe(0);
    expect(out).toContain(
      "\nsending   1 webhooks and e-mails were pending: those sent since the backup are sent again (webhooks under the same X-Svc-Delivery-Id)\n",
    );
    const [, held] = out.split("\nheld      ");
    expect(held?.split("\n").slice(0, 6)).toEqual([
      "6 webhooks waited for 5 endpoints to accept them: those sent since the backup are sent again (under the same X-Svc-Delivery-Id)",
      `          ${ids[0]} is paused and receives them when it is live: 1`,
      `          ${ids[1]} did not respond and receives them when it does: 2`,
      `          ${ids[2]} receives them when the server starts: 1`,
      `          ${ids[3]} is disabled or deleted and receives none of them: 1`,
      `          ${ids[4]} is disabled or deleted and receives none of them: 1`,
    ]);
  },
  TIMEOUT_MS,
);

test("reports the first twenty items by name and the number of the others", () => {
  const lines = Array.from({ length: 21 }, (_, at) => `line ${at}`);
  expect(below(lines.slice(0, 20))).toEqual(lines.slice(0, 20).map((line) => `          ${line}`));
  expect(below(lines).slice(19)).toEqual(["          line 19", "          … and 1 more"]);
});
