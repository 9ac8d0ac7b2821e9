import { afterEach, expect, test } from "bun:test";
import { StandbyServer } from "../../src/cluster/standby.ts";
import type { MonitoringAccess } from "../../src/kernel/http/system-routes.ts";

const FOLLOWER = {
  leader: { id: "a", advertise: "https://a.internal:9909", epoch: 7 },
  lag: 2,
  position: { log: null, epoch: 7, seq: 40 },
};

const running: StandbyServer[] = [];
afterEach(async () => {
  for (const server of running.splice(0)) await server.stop();
});

function standby(access: MonitoringAccess, leader: typeof FOLLOWER.leader | null = FOLLOWER.leader): string {
  const server = new StandbyServer(
    { host: "127.0.0.1", port: 0, tls: null },
    { ...FOLLOWER, leader },
    access,
  );
  running.push(server);
  return `http://127.0.0.1:${server.port}`;
}

test("a follower says who leads, and does nothing", async () => {
  const url = standby("loopback");
  const change = await fetch(`${url}/v1/meter/m/deduct`, { method: "POST", body: "{}" });
  expect(change.status).toBe(503);
  expect(change.headers.get("ninefold-leader")).toBe("https://a.internal:9909");
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
  const ready = await fetch(`${url}/readyz`);
  expect(ready.status).toBe(503);
  expect(await ready.json()).toEqual({
    status: "unavailable",
    role: "follower",
    leader: "https://a.internal:9909",
    lag: 2,
    seq: 40,
  });
});

test("its metrics are those of its cluster", async () => {
  const values = async (url: string) =>
    (await (await fetch(`${url}/metrics`)).text()).split("\n").filter((line) => /^ninefold/.test(line));
  const rest = ["ninefold_cluster_position 40", "ninefold_cluster_lag_entries 2"];
  expect(await values(standby("loopback"))).toEqual([
    "ninefold_cluster_leader 0",
    "ninefold_cluster_epoch 7",
    ...rest,
  ]);
  expect(await values(standby("loopback", null))).toEqual(["ninefold_cluster_leader 0", ...rest]);
});

test("they are for those whom metrics_access names", async () => {
  const statusOf = async (access: MonitoringAccess, headers: Record<string, string> = {}) =>
    (await fetch(`${standby(access)}/metrics`, { headers })).status;
  const byProxy = { "x-forwarded-for": "203.0.113.7" };
  expect(await statusOf("loopback", byProxy)).toBe(503);
  expect(await statusOf("health")).toBe(200);
  expect(await statusOf("health", byProxy)).toBe(503);
  expect(await statusOf("public", byProxy)).toBe(200);
  expect(await statusOf("operator")).toBe(503);
});
