import { afterEach, expect, test } from "bun:test";
import { EngineErrors } from "../../src/cluster/commit-log.ts";
import { StandbyServer } from "../../src/cluster/standby.ts";
import type { MonitoringAccess } from "../../src/kernel/http/system-routes.ts";

const FOLLOWER = {
  leader: { id: "a", advertise: "https://a.internal:9909", epoch: 7 },
  lag: 2,
  elections: 3,
  position: { log: null, epoch: 7, seq: 40 },
};

const running: StandbyServer[] = [];
afterEach(async () => {
  for (const server of running.splice(0)) await server.stop();
});

function standby(
  access: MonitoringAccess,
  leader: typeof FOLLOWER.leader | null = FOLLOWER.leader,
  change: { readonly lag?: null; readonly position?: null } = {},
): string {
  const server = new StandbyServer(
    { host: "127.0.0.1", port: 0, tls: null },
    { ...FOLLOWER, leader, ...change },
    access,
    new EngineErrors(),
  );
  running.push(server);
  return `http://127.0.0.1:${server.port}`;
}

test("a follower says who leads, and does nothing", async () => {
  const url = standby("loopback");
  const change = await fetch(`${url}/v1/meter/m/deduct`, { method: "POST", body: "{}" });
  expect(change.status).toBe(503);
  expect(await change.json()).toMatchObject({
    code: "not_leader",
    leader: "https://a.internal:9909",
    outcome: "none",
  });
  expect(change.headers.get("ninefold-leader")).toBe("https://a.internal:9909");
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
  const ready = await fetch(`${url}/readyz`);
  expect(ready.status).toBe(503);
  expect(await ready.json()).toEqual({
    status: "unavailable",
    role: "follower",
    state: "following",
    leader: "https://a.internal:9909",
    lag: 2,
    seq: 40,
  });
});

test("its metrics are those of its cluster", async () => {
  const values = async (url: string) =>
    (await (await fetch(`${url}/metrics`)).text()).split("\n").filter((line) => /^ninefold/.test(line));
  const before = [
    "ninefold_cluster_leader 0",
    ...["leader", "suspended", "follower", "empty"].map(
      (role) => `ninefold_cluster_role{role="${role}"} ${role === "follower" ? 1 : 0}`,
    ),
  ];
  const after = [
    "ninefold_cluster_position 40",
    "ninefold_cluster_lag_entries 2",
    "ninefold_cluster_elections_total 3",
    ...["unreachable", "rejected", "no_space", "not_durable"].map(
      (kind) => `ninefold_cluster_engine_errors_total{kind="${kind}"} 0`,
    ),
  ];
  expect(await values(standby("loopback"))).toEqual([...before, "ninefold_cluster_epoch 7", ...after]);
  expect(await values(standby("loopback", null))).toEqual([...before, ...after]);
});

test("a node without a database says so, and how far it is only to those who may read it", async () => {
  const url = standby("loopback", FOLLOWER.leader, { lag: null, position: null });
  expect(await (await fetch(`${url}/readyz`)).json()).toEqual({
    status: "unavailable",
    role: "follower",
    state: "empty",
    leader: "https://a.internal:9909",
    lag: null,
    seq: 0,
  });
  const byProxy = { "x-forwarded-for": "203.0.113.7" };
  const shown = await fetch(`${url}/readyz`, { headers: byProxy });
  expect([shown.status, await shown.json()]).toEqual([503, { status: "unavailable" }]);
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
