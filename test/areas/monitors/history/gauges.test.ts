import { afterAll, beforeAll, expect, test } from "bun:test";
import { MONITORS_MEASURED_MAX } from "../../../../src/areas/monitors/history/gauges.ts";
import type { Client } from "../../../support/client.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { WebhookSink } from "../../../support/webhook-sink.ts";

let server: TestServer;
let site: WebhookSink;
let account: AccountClient;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });
  site = new WebhookSink();
  account = await server.account();
});
afterAll(async () => {
  await server.stop();
  site.stop();
});

async function lines(family: string): Promise<string[]> {
  const { text } = await server.operator.get("/metrics");
  return text.split("\n").filter((line) => line.startsWith(`${family}{`) || line.startsWith(`${family} `));
}

async function monitor(name: string, owner: Client = account): Promise<string> {
  const body = { url: site.url("/"), interval: 300_000, name };
  return String((await owner.post("/v1/pulse", body)).body["id"]);
}

test("has series of each monitor by project and name", async () => {
  const id = await monitor('Shop "A" \\ B');
  expect(await lines("ninefold_monitor_up")).toEqual([]);
  await server.clock.advance(5_000);
  const [project] = (await account.get("/v1/projects")).body["projects"] as { id: string }[];
  const labels = `{project="${project?.id}",monitor="${id}",name="Shop \\"A\\" \\\\ B",type="http"}`;
  expect(await lines("ninefold_monitor_up")).toEqual([`ninefold_monitor_up${labels} 1`]);
  expect(await lines("ninefold_monitor_degraded")).toEqual([`ninefold_monitor_degraded${labels} 0`]);
  const [latency] = await lines("ninefold_monitor_latency_seconds");
  const { latency_ms } = (await account.get(`/v1/pulse/${id}`)).body;
  expect(Number(latency?.split("} ")[1])).toBe(Number(latency_ms) / 1_000);
  const [checked] = await lines("ninefold_monitor_last_check_timestamp_seconds");
  expect(Number(checked?.split("} ")[1])).toBeGreaterThan(server.clock.now() / 1_000 - 10);
  site.answers(500);
  await account.post(`/v1/pulse/${id}/check`);
  expect(await lines("ninefold_monitor_up")).toEqual([`ninefold_monitor_up${labels} 0`]);
  await account.delete(`/v1/pulse/${id}`);
  expect(await lines("ninefold_monitor_up")).toEqual([]);
});

test("has series for 500 monitors and counts the others", async () => {
  const created: string[] = [];
  for (let count = 0; count < MONITORS_MEASURED_MAX; count += 1)
    created.push(await monitor(`m${count}`, server.operator));
  expect(await lines("ninefold_monitor_degraded")).toHaveLength(MONITORS_MEASURED_MAX);
  expect(await lines("ninefold_monitors_omitted")).toEqual(["ninefold_monitors_omitted 0"]);
  await monitor("one more", server.operator);
  const names = await lines("ninefold_monitor_degraded");
  expect(names).toHaveLength(MONITORS_MEASURED_MAX);
  expect(names.join("\n")).not.toContain("one more");
  expect(await lines("ninefold_monitors_omitted")).toEqual(["ninefold_monitors_omitted 1"]);
  await server.operator.delete(`/v1/pulse/${created[0]}`);
  expect((await lines("ninefold_monitor_degraded")).join("\n")).toContain("one more");
});
