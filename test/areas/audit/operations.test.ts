import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DeclaredRoute } from "../../../src/kernel/http/api.ts";
import type { Client } from "../../support/client.ts";
import { bodyOf, makeResource, pathOf, queryOf, segmentOf } from "../../support/matrix.ts";
import { customerOf, makeOwned, OWNER, startRecovery } from "../../support/portal.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import { WebhookSink } from "../../support/webhook-sink.ts";

/**
 * Changes with another record, or without a lasting effect: ledgers, the locks' fencing tokens, deliveries,
 * receipts, the history of checks.
 */
const NOT_AUDITED: ReadonlySet<string> = new Set([
  ...["meter.holds.create", "meter.holds.capture", "meter.holds.release", "meter.holds.extend"],
  ...[
    "meter.deduct",
    "meter.refill",
    "latch.acquire",
    "latch.extend",
    "latch.release",
    "relay.schedule",
    "witness.log",
  ],
  ...["relay.messages.send", "relay.messages.batch", "relay.endpoints.test"],
  // Options of passkeys, an invitation that is read, and a login link whose login is audited.
  ...[
    "people.me.passkeys.options",
    "session.passkey.options",
    "session.invitation.read",
    "session.email.create",
  ],
  // By visitors and other servers, who are no callers.
  // Its entry is that of the change, by nobody who is known.
  "monitors.links.use",
  ...["status.subscribe", "status.subscription_change", "witness.peer.add"],
  ...[
    "monitors.check",
    "monitors.channels.test",
    "admin.settings.test_mail",
    // By probes, which are no callers.
    "probe.results.create",
    "monitors.ping",
    "keys.verify",
    "witness.verify",
    "catch.ingest",
    "catch.events.ack",
    "catch.in",
    "ofrep.evaluate",
    "ofrep.bulk",
    "gate.preview",
    "relay.endpoints.preview",
    "check",
  ],
]);

let server: TestServer;
let sink: WebhookSink;
let backups: string;
let routes: readonly DeclaredRoute[];
beforeAll(async () => {
  backups = mkdtempSync(join(tmpdir(), "ninefold-audit-"));
  const args = ["--allow-private-targets", "127.0.0.0/8", "--signup", "open", "--backup-dir", backups];
  server = await startTestServer({ manualClock: true, args });
  sink = new WebhookSink();
  routes = server.server.app.http.routes;
});
afterAll(async () => {
  await server.stop();
  sink.stop();
  rmSync(backups, { recursive: true });
});

const audited = () => routes.filter(({ operation }) => operation.audit !== "no");

test("every change is audited, except those with another record", () => {
  const changes = routes.filter(({ method }) => method !== "GET");
  const without = changes
    .filter(({ operation }) => operation.audit === "no")
    .map(({ operation }) => operation.name);
  expect(without.sort()).toEqual([...NOT_AUDITED].sort());
  const reads = audited().filter(({ method }) => method === "GET");
  expect(reads.map(({ operation }) => operation.name)).toEqual(["admin.accounts.export"]);
});

interface Entry {
  readonly sequence: string;
  readonly action: string;
  readonly actor: { readonly type: string };
  readonly before: object | null;
  readonly after: object | null;
  readonly request_id: string;
}

async function entries(): Promise<readonly Entry[]> {
  const { body } = await server.operator.get("/v1/admin/audit?limit=100");
  // The server's background work continues meanwhile.
  return (body.entries as Entry[]).filter(({ actor }) => actor.type !== "system");
}

function newestOf([newest]: readonly Entry[]): number {
  return Number(newest?.sequence ?? 0);
}

async function failedDelivery(client: AccountClient): Promise<string> {
  const delivery = { target_url: "http://127.0.0.1:9/", method: "POST", delay: "0s", retry_schedule: [] };
  const { body } = await client.post("/v1/relay", delivery);
  await server.clock.advance(0);
  return String(body["relay_id"]);
}

/** What a route requires in addition to a resource of its area and its example. */
const PREPARED: Readonly<Record<string, (client: AccountClient, params: Record<string, string>) => unknown>> =
  {
    // Of somebody else.
    "gate.proposals.approve": async (client, params) => {
      const terms = { prefix: "sm", name: "another", scopes: ["gate:*"] };
      const { body } = await client.post("/v1/keys", terms);
      const other = server.client(String(body["secret"]));
      const proposed = await other.post(`/v1/gate/${params["flagKey"]}/proposals`, { tags: ["approved"] });
      params["proposal_id"] = String(proposed.body["proposal_id"]);
    },
    // An event is replayed from an active bucket to a target that responds.
    "catch.events.replay": (client, { bucket_id }) =>
      client.patch(`/v1/catch/buckets/${bucket_id}`, { state: "live", target_url: sink.url() }),
    // A bucket that is not active yet.
    "catch.buckets.update": (client, { bucket_id }) =>
      client.patch(`/v1/catch/buckets/${bucket_id}`, { state: "paused" }),
    // A running one: it has something to send.
    "catch.replays.stop": async (client, params) => {
      const { body } = await client.post(`/v1/catch/${params["bucket_id"]}/replays`, {});
      params["replay_id"] = String(body["replay_id"]);
    },
    "meter.alert.project.delete": (client) =>
      client.put("/v1/meter/alert", { threshold: 1, webhook_url: "https://127.0.0.1:9/" }),
    "relay.resend": async (client, params) => {
      params["relay_id"] = await failedDelivery(client);
    },
    // One with a failed delivery.
    "relay.messages.resend": async (client, params) => {
      await client.post("/v1/relay/endpoints", { url: "http://127.0.0.1:9/", retry_schedule: [] });
      const message = { event_type: "a", payload: {} };
      params["message_id"] = String((await client.post("/v1/relay/messages", message)).body["message_id"]);
      await server.clock.advance(0);
    },
    // One that was created after a message.
    "relay.endpoints.recover": async (client, params) => {
      await client.post("/v1/relay/messages", { event_type: "a", payload: {} });
      await server.clock.advance(1);
      const { body } = await client.post("/v1/relay/endpoints", { url: "http://127.0.0.1:9/" });
      params["endpoint_id"] = String(body["endpoint_id"]);
    },
    // A running one: it has something to send.
    "relay.portal.resends.stop": async (client, params) => {
      Object.assign(params, await startRecovery(server, client, sink.url("/acme")));
    },
    "relay.resends.stop": async (client, params) => {
      await failedDelivery(client);
      params["resend_id"] = String((await client.post("/v1/relay/resend", { since: 0 })).body["resend_id"]);
    },
    // Without a key of the owner there is no change.
    "witness.tlog.set": (client) => client.post("/v1/witness/sys/init"),
    "witness.witnesses.set": (client) => client.post("/v1/witness/sys/init"),
    "witness.index.set": (client) => client.post("/v1/witness/sys/init"),
    "keys.revoke_owned": (client) =>
      client.post("/v1/keys", { prefix: "acme", name: "k", scopes: ["x"], owner_id: "acme" }),
    "relay.portal.revoke": (client) => client.post("/v1/relay/portal", { owner_id: OWNER }),
    "projects.delete": (client) => client.post("/v1/projects", { name: "Another" }),
  };

/** Bodies that depend on existing objects. */
const BODIES: Readonly<Record<string, (client: AccountClient) => Promise<object>>> = {
  "witness.accept_fork": async (client) => {
    const { chain_id } = (await client.post("/v1/witness/sys/init")).body;
    const { db, writer } = server.server.kernel;
    const fork = db.change<[string]>("UPDATE chains SET fork = ? WHERE ref = (SELECT max(ref) FROM chains)");
    await writer.submit((tx) => fork(tx, JSON.stringify({ by: "the storage", seen: 9 })));
    return { chain_id };
  },
  // The examples only count.
  "relay.endpoints.recover": async () => ({ since: 0 }),
  "relay.portal.endpoints.recover": async () => ({ since: 0 }),
  "latch.force": async (client) => {
    const [held] = (await client.get("/v1/latch")).body.locks as { fencing_token: number }[];
    return { fencing_token: held?.fencing_token };
  },
};

/** Whether only people can call it, or only of those who have logged in: the tests of people cover these. */
function isOfPeople(name: string): boolean {
  return (
    name.startsWith("people.me.") || name === "people.identities.delete" || name === "people.sessions.end"
  );
}

/** Sends a request to an audited route, with credentials that it accepts. */
async function carryOut(route: DeclaredRoute, headers: Record<string, string>) {
  const { name, access, byPortal } = route.operation;
  const account = await server.account({ tier: "unlimited", balance: 100 });
  const own: Client = access === "operator" ? server.operator : account;
  const client = byPortal ? await customerOf(server, account) : own;
  const segment = segmentOf(route);
  const params: Record<string, string> =
    segment === "admin"
      ? { user_id: account.userId }
      : byPortal
        ? { ...(await makeOwned(server, account, sink.url("/acme"))) }
        : route.path.includes(":")
          ? { ...(await makeResource(segment, account)) }
          : {};
  await PREPARED[name]?.(account, params);
  const body = (await BODIES[name]?.(account)) ?? bodyOf(route);
  const before = await entries();
  const path = pathOf(route, params) + queryOf(route);
  const send = () => client.send(route.method, path, body, { headers });
  return { before, send, account };
}

describe("exactly one entry", () => {
  test("per audited operation, none for its repeat under an Idempotency-Key", async () => {
    expect(audited().length).toBeGreaterThan(20);
    for (const [index, route] of audited().entries()) {
      const { name } = route.operation;
      if (route.path.startsWith("/v1/session") || isOfPeople(name)) continue;
      // Of what only a verified sender or a failed check makes: see the tests of Amazon SNS and of later alerts.
      if (name === "catch.events.confirm" || name === "monitors.incidents.snooze") continue;
      const headers = { "idempotency-key": `audit-${index}`, "user-agent": "audit-test/1.0" };
      const { before, send } = await carryOut(route, route.operation.idempotent ? headers : {});
      const answer = await send();
      expect(answer.status, `${name}: ${answer.text}`).toBeLessThan(300);
      const added = (await entries()).filter(({ sequence }) => Number(sequence) > newestOf(before));
      expect(
        added.map(({ action }) => action),
        name,
      ).toEqual([name]);
      expect(added[0]?.request_id, name).toBe(answer.headers.get("x-request-id") ?? "");
      const hasChange = added[0]?.before !== null || added[0]?.after !== null;
      expect(hasChange, name).toBe(route.method !== "GET");
      // A read has no effect that a repeat could double.
      if (!route.operation.idempotent || route.method === "GET") continue;
      const repeat = await send();
      expect(repeat.headers.get("idempotent-replayed"), name).toBe("true");
      expect((await entries())[0]?.sequence, name).toBe(added[0]?.sequence as string);
    }
  }, 60_000);

  test("and none for a rejected operation", async () => {
    const poor = await server.account({ balance: 0 });
    const [newest] = await entries();
    for (const route of audited()) {
      if (route.operation.access === "public" || route.operation.cost === 0) continue;
      const answer = await poor.send(
        route.method,
        pathOf(route, new Proxy({}, { get: () => "none" })),
        bodyOf(route),
      );
      expect(answer.status, route.operation.name).toBeGreaterThanOrEqual(400);
    }
    expect((await entries())[0]?.sequence).toBe(newest?.sequence as string);
  });
});
