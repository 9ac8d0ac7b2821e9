import { expect, test } from "bun:test";
import { PORTAL_PER_SECOND_MAX } from "../../../../src/areas/relay/portal/schema.ts";
import {
  PORTAL_INTERVAL_MS,
  PORTAL_MATCHED_MAX,
  PORTAL_RUNS_MAX,
} from "../../../../src/areas/relay/resends/recoveries.ts";
import type { Client } from "../../../support/client.ts";
import { expectError } from "../../../support/errors.ts";
import { customerOf, OWNER } from "../../../support/portal.ts";
import { messagingStage } from "../messages-support.ts";

const { stage, messaging } = messagingStage();

const PATH = "/v1/relay/portal";

/** An endpoint that a customer adds. */
async function added(customer: Client, path: string): Promise<string> {
  const { body } = await customer.post(`${PATH}/endpoints`, { url: stage.sink.url(path) });
  return String(body["endpoint_id"]);
}

const recover = (customer: Client, id: string, body: object) =>
  customer.post(`${PATH}/endpoints/${id}/recover`, body);

test("a customer counts and replays what its endpoint missed of its own messages, and follows it", async () => {
  const customer = await customerOf(stage.server, stage.account);
  for (const n of [1, 2]) await messaging.send({ n }, { owner_id: OWNER });
  await messaging.send({ n: 3 }, { owner_id: "globex" });
  await messaging.send({ n: 4 });
  const id = await added(customer, "/acme");
  const counted = await recover(customer, id, { since: 0, dry_run: true });
  expect([counted.status, counted.body]).toEqual([200, { matched: 2 }]);
  const started = await recover(customer, id, { since: 0 });
  expect([started.status, started.body["matched"]]).toEqual([202, 2]);
  await messaging.settle();
  expect(messaging.takenNumbers("/acme")).toEqual([1, 2]);
  const resend_id = String(started.body["resend_id"]);
  const { body } = await customer.get(`${PATH}/resends/${resend_id}`);
  expect(Object.keys(body).sort()).toEqual(
    ["created_at", "error", "finished_at", "matched", "resend_id", "resent", "skipped", "status"].sort(),
  );
  expect(body).toMatchObject({ resend_id, status: "done", matched: 2, resent: 2, skipped: 0, error: null });
  const [entry] = (await stage.account.get("/v1/audit?actor=portal")).body["entries"] as [object];
  expect(entry).toMatchObject({
    action: "relay.portal.endpoints.recover",
    actor: { type: "portal", owner_id: OWNER },
    target: { type: "resend", id: resend_id },
  });
});

test("a customer has one recovery per hour and endpoint, which it can stop, at most at the portal's rate", async () => {
  const customer = await customerOf(stage.server, stage.account);
  for (const n of [1, 2, 3]) await messaging.send({ n }, { owner_id: OWNER });
  const [a, b] = [await added(customer, "/a"), await added(customer, "/b")];
  expectError(
    await recover(customer, a, { since: 0, per_second: PORTAL_PER_SECOND_MAX + 1 }),
    "validation_error",
  );
  const first = await recover(customer, a, { since: 0, per_second: PORTAL_PER_SECOND_MAX });
  expect(first.status).toBe(202);
  expectError(await recover(customer, a, { since: 0 }), "conflict");
  expect((await recover(customer, b, { since: 0, dry_run: true })).body).toEqual({ matched: 3 });
  const path = `${PATH}/resends/${String(first.body["resend_id"])}`;
  const running = async (id: string) => (await customer.get(`${PATH}/endpoints/${id}`)).body["recovery_id"];
  expect([await running(a), await running(b)]).toEqual([first.body["resend_id"], undefined]);
  expect((await customer.delete(path)).body).toMatchObject({ status: "cancelled" });
  expect(await running(a)).toBeUndefined();
  expect((await recover(customer, b, { since: 0 })).status).toBe(202);
  expectError(await recover(customer, a, { since: 0 }), "conflict");
  await stage.server.clock.advance(PORTAL_INTERVAL_MS - 1);
  expectError(await recover(customer, a, { since: 0 }), "conflict");
  await stage.server.clock.advance(1);
  expect((await recover(customer, a, { since: 0 })).status).toBe(202);
  await messaging.settle();
  const ofAccount = await stage.account.post(`/v1/relay/endpoints/${a}/recover`, { since: 0 });
  expect(ofAccount.status).toBe(202);
  // The customer could neither read nor stop it.
  expect(await running(a)).toBeUndefined();
  await stage.account.delete(`/v1/relay/resends/${String(ofAccount.body["resend_id"])}`);
  await customer.patch(`${PATH}/endpoints/${a}`, { state: "paused" });
  expectError(await recover(customer, a, { since: 0 }), "conflict");
});

test("customers leave the account some of its resends", async () => {
  const own = await messaging.endpoint("/own");
  const endpoints: [Client, string][] = [];
  for (let number = 0; number <= PORTAL_RUNS_MAX; number += 1) {
    const owner_id = `customer-${number}`;
    const customer = await customerOf(stage.server, stage.account, { owner_id });
    await messaging.send({ n: number }, { owner_id });
    endpoints.push([customer, await added(customer, `/${owner_id}`)]);
  }
  const statuses: number[] = [];
  for (const [customer, id] of endpoints) {
    const answer = await recover(customer, id, { since: 0 });
    statuses.push(answer.status);
    if (answer.status === 409) expect(answer.text).not.toMatch(/project|resends/);
  }
  expect(statuses).toEqual([...Array<number>(PORTAL_RUNS_MAX).fill(202), 409]);
  const started = await stage.account.post(`/v1/relay/endpoints/${own}/recover`, { since: 0 });
  expect(started.status).toBe(202);
});

test("a recovery that ends without credits says nothing of the account", async () => {
  const customer = await customerOf(stage.server, stage.account);
  await messaging.send({ n: 1 }, { owner_id: OWNER });
  const id = await added(customer, "/poor");
  await stage.server.operator.patch(`/v1/admin/accounts/${stage.account.userId}`, { balance: 0 });
  const { body } = await recover(customer, id, { since: 0 });
  await messaging.settle();
  const ended = await customer.get(`${PATH}/resends/${String(body["resend_id"])}`);
  expect(ended.body).toMatchObject({ status: "cancelled", error: "no more can be sent now" });
  expect(ended.text).not.toMatch(/credit|account/);
});

test("a customer's recovery sends at most a thousand messages, and says that there are more", async () => {
  const customer = await customerOf(stage.server, stage.account);
  await stage.server.operator.patch(`/v1/admin/accounts/${stage.account.userId}`, { balance: 10_000 });
  const messages = Array.from({ length: 91 }, (_, n) => ({
    event_type: "order.paid",
    payload: { n },
    owner_id: OWNER,
  }));
  for (let sent = 0; sent <= PORTAL_MATCHED_MAX; sent += messages.length)
    expect((await stage.account.post("/v1/relay/messages/batch", { messages })).status).toBe(201);
  const id = await added(customer, "/many");
  const body = { since: 0, dry_run: true };
  expect((await recover(customer, id, body)).body).toEqual({ matched: PORTAL_MATCHED_MAX, more: true });
  const ofAccount = await stage.account.post(`/v1/relay/endpoints/${id}/recover`, body);
  expect(ofAccount.body).toEqual({ matched: 1_001 });
});
