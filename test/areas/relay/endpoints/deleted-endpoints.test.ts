import { describe, expect, test } from "bun:test";
import { PORTAL_ENDPOINTS_MAX } from "../../../../src/areas/relay/portal/schema.ts";
import type { Client } from "../../../support/client.ts";
import { expectError } from "../../../support/errors.ts";
import { customerOf, OWNER } from "../../../support/portal.ts";
import { messagingStage } from "../messages-support.ts";

const { stage, messaging } = messagingStage();

const DAY_MS = 86_400_000;
const PATH = "/v1/relay/endpoints";
const PORTAL = "/v1/relay/portal/endpoints";

/** What is stored of all endpoints. */
function stored() {
  const { db } = stage.server.server.kernel;
  return db.all<Record<string, unknown>>("SELECT * FROM relay_endpoints ORDER BY ref")();
}

function highestStored(): number {
  return Math.max(0, ...stored().map(({ ref }) => Number(ref)));
}

/** Adds an endpoint, sends it a test event, and deletes it. */
async function churn(client: Client, path: string): Promise<number> {
  const created = await client.post(path, { url: stage.sink.url("/churned") });
  if (created.status !== 201) return created.status;
  const id = String(created.body["endpoint_id"]);
  expect((await client.post(`${path}/${id}/test`, {})).status).toBe(201);
  await messaging.settle();
  return (await client.delete(`${path}/${id}`)).status;
}

describe("a deleted endpoint", () => {
  test("without deliveries is removed immediately, and its number is not used again", async () => {
    const before = stored().length;
    const endpointId = await messaging.endpoint("/a", { headers: { "X-Source": "s" }, metadata: { a: "1" } });
    const ref = highestStored();
    expect((await stage.account.delete(`${PATH}/${endpointId}`)).status).toBe(204);
    expect(stored().length).toBe(before);
    await stage.restart();
    await messaging.endpoint("/b");
    expect(highestStored()).toBeGreaterThan(ref);
  });

  test("with deliveries leaves its URL for them, and nothing else", async () => {
    const large = {
      metadata: { note: "x".repeat(16_000) },
      headers: { "X-Large": "h".repeat(4_000) },
      description: "d".repeat(500),
      event_types: ["invoice.paid"],
      filter: { n: 1 },
    };
    const endpointId = await messaging.endpoint("/a", large);
    await messaging.send();
    await messaging.settle();
    expect((await stage.account.delete(`${PATH}/${endpointId}`)).status).toBe(204);
    const row = stored().find((one) => one["endpoint_id"] === endpointId);
    expect(row).toMatchObject({
      name: null,
      metadata: null,
      headers: null,
      terms: JSON.stringify({ url: stage.sink.url("/a") }),
    });
    expect(JSON.stringify(row).length).toBeLessThan(1_000);
    const { body } = await stage.account.get(`/v1/relay?endpoint_id=${endpointId}`);
    expect(body["deliveries"]).toMatchObject([{ endpoint_id: endpointId, target_url: stage.sink.url("/a") }]);
    await stage.restart();
    expect((await stage.account.get(PATH)).body["endpoints"]).toEqual([]);
  });

  test("with deliveries counts towards the limit of its project for a day", async () => {
    const account = await stage.server.account({ tier: "free" });
    for (let number = 0; number < 2; number += 1) expect(await churn(account, PATH)).toBe(204);
    const rejected = await account.post(PATH, { url: stage.sink.url("/c") });
    expectError(rejected, "endpoint_limit_exceeded");
    expect(rejected.text).toContain("2 deleted in the last 24 hours");
    await stage.server.clock.advance(DAY_MS);
    expect((await account.post(PATH, { url: stage.sink.url("/c") })).status).toBe(201);
  });

  test("with deliveries counts towards the limit of its customer for a day, and not towards that of others", async () => {
    const customer = await customerOf(stage.server, stage.account, { expires_in: "7d" });
    const globex = await customerOf(stage.server, stage.account, { owner_id: "globex" });
    for (let number = 0; number < PORTAL_ENDPOINTS_MAX; number += 1) {
      if (number % 10 === 0) await stage.server.clock.advance(60_000);
      expect(await churn(customer, PORTAL)).toBe(204);
    }
    const rejected = await customer.post(PORTAL, { url: stage.sink.url("/c") });
    expectError(rejected, "endpoint_limit_exceeded");
    expect(rejected.text).not.toMatch(/tier|account/);
    expect((await globex.post(PORTAL, { url: stage.sink.url("/c") })).status).toBe(201);
    await stage.server.clock.advance(DAY_MS);
    expect((await customer.post(PORTAL, { url: stage.sink.url("/c") })).status).toBe(201);
    const { body } = await stage.account.get(`${PATH}?owner_id=${OWNER}`);
    expect((body["endpoints"] as unknown[]).length).toBe(1);
  });

  test("without deliveries does not count", async () => {
    const customer = await customerOf(stage.server, stage.account);
    for (let number = 0; number <= PORTAL_ENDPOINTS_MAX; number += 1) {
      const created = await customer.post(PORTAL, { url: stage.sink.url("/c") });
      expect(created.status).toBe(201);
      expect((await customer.delete(`${PORTAL}/${created.body["endpoint_id"]}`)).status).toBe(204);
    }
  });
});
