import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Engine, startEtcd } from "../harness/failover/engines.ts";
import { Cleanup } from "../harness/processes/cleanup.ts";
import { Client } from "../support/client.ts";
import { until } from "../support/eventually.ts";
import { ProbeProcesses } from "../support/probe-processes.ts";
import { WebhookSink } from "../support/webhook-sink.ts";
import { isFollowing, Nodes, operatorOf } from "./nodes.ts";

const TIMEOUT_MS = 180_000;
/** So many monitors, each checked every 15 seconds, that results come at any time. */
const MONITORS = 15;

const cleanup = new Cleanup();
const probes = new ProbeProcesses();
let engine: Engine;
let nodes: Nodes;
beforeAll(async () => {
  engine = await startEtcd(cleanup, 1);
  nodes = new Nodes(engine.url, cleanup);
}, TIMEOUT_MS);
afterAll(async () => {
  probes.remove();
  await nodes.stopAll();
  await cleanup.run();
}, TIMEOUT_MS);

/** Results that a probe has sent in one request. */
interface Sent {
  readonly ids: readonly string[];
  readonly status: number;
  readonly response: string;
}

/** The address that leads to the node that leads, such as that of a load balancer. */
class Address {
  readonly sent: Sent[] = [];
  private readonly server;

  constructor(public leadsTo: string) {
    this.server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      idleTimeout: 0,
      fetch: (request) => this.forward(request),
    });
    cleanup.add(() => this.server.stop(true));
  }

  get url(): string {
    return `http://127.0.0.1:${this.server.port}`;
  }

  private async forward(request: Request): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    const { method, signal } = request;
    const text = await request.text();
    const headers = {
      authorization: request.headers.get("authorization") ?? "",
      "content-type": "application/json",
    };
    const body = method === "GET" ? null : text;
    const [status, response] = await fetch(`${this.leadsTo}${pathname}${search}`, {
      method,
      headers,
      body,
      signal,
    }).then(
      async (answer): Promise<[number, string]> => [answer.status, await answer.text()],
      (): [number, string] => [502, "no node"],
    );
    if (method === "POST") {
      const { results } = JSON.parse(text) as { results: { result_id: string }[] };
      this.sent.push({ ids: results.map(({ result_id }) => result_id), status, response });
    }
    return new Response(response, { status });
  }
}

const created = async (client: Client, path: string, body: object) => {
  const answer = await client.post(path, body);
  expect(answer.status, answer.text).toBe(201);
  return answer.body;
};

test(
  "when another node takes over, probes keep their results until it serves, each result counts once, and held alerts are sent once",
  async () => {
    const [site, hook] = [new WebhookSink(), new WebhookSink()];
    for (const sink of [site, hook]) cleanup.add(async () => sink.stop());
    const options = { advertises: true };
    const first = nodes.start("probes", nodes.folder(), options);
    const before = operatorOf(await first.server());
    const channel = await created(before, "/v1/pulse/channels", {
      name: "hook",
      kind: "webhook",
      config: { url: hook.url("/") },
      group_ms: 300_000,
    });
    const home = await created(before, "/v1/pulse/probes", { name: "home" });
    const fra = await created(before, "/v1/pulse/probes", { name: "fra" });
    for (let number = 0; number < MONITORS; number += 1)
      await created(before, "/v1/pulse", { url: site.url(`/${number}`), interval: 15_000, probes: ["home"] });
    const [shop, api] = await Promise.all(
      ["Shop", "API"].map(async (name) => {
        const monitor = { name, url: "https://10.9.8.7/", interval: 60_000, probes: ["fra"] };
        return String((await created(before, "/v1/pulse", monitor))["id"]);
      }),
    );
    const second = nodes.start("probes", nodes.folder(), options);
    await isFollowing(second);

    const address = new Address(first.url);
    const child = probes.start(address.url, String(home["token"]), ["--allow-private-targets", "loopback"]);
    await until(() => address.sent.some(({ status }) => status === 200));
    const result = (monitor_id: string | undefined, more: object) => ({
      monitor_id,
      age_ms: 0,
      status: "down",
      error: "timeout: none",
      ...more,
    });
    const sentBefore = [result(shop, { result_id: "a" }), result(api, { result_id: "b" })];
    const send = async (client: Client, results: object[]) =>
      (await new Client(client.url, String(fra["token"])).post("/v1/probe/results", { results })).body;
    expect(await send(before, sentBefore)).toEqual({ accepted: 2, rejected: [] });

    // A node that does not lead rejects results, which the probe keeps.
    address.leadsTo = second.url;
    await until(() => address.sent.some(({ status }) => status === 503));
    expect(child.exitCode).toBeNull();
    await first.stop();
    const after = operatorOf(await second.server(), before);
    const rejected = new Set(address.sent.flatMap(({ ids, status }) => (status === 503 ? ids : [])));
    const accepted = () => address.sent.filter(({ status }) => status === 200);
    await until(() => rejected.isSubsetOf(new Set(accepted().flatMap(({ ids }) => ids))));
    for (const { ids, response } of accepted())
      expect(JSON.parse(response)).toEqual({ accepted: ids.length, rejected: [] });
    const once = accepted().flatMap(({ ids }) => ids);
    expect(new Set(once).size).toBe(once.length);
    const { probes: seen } = (await after.get("/v1/pulse/probes")).body as {
      probes: Record<string, unknown>[];
    };
    expect(seen.map(({ name, status }) => [name, status])).toEqual([
      ["fra", "online"],
      ["home", "online"],
    ]);

    // The former leader has counted them; its response may have been lost.
    const sentAfter = [...sentBefore, result(shop, { result_id: "c", age_ms: 10 })];
    expect(await send(after, sentAfter)).toEqual({
      accepted: 1,
      rejected: [0, 1].map((index) => ({ index, reason: "duplicate" })),
    });
    expect(hook.take()).toEqual([]);
    expect((await after.patch(`/v1/pulse/channels/${channel["id"]}`, { group_ms: 0 })).status).toBe(200);
    const received = async () => {
      await until(() => hook.received.length > 0);
      return hook.take().map(({ body }) => JSON.parse(body) as Record<string, unknown>);
    };
    const [group, ...more] = await received();
    expect([group?.["event"], more]).toEqual(["monitor.group", []]);
    expect(group?.["alerts"]).toMatchObject(
      [shop, api].map((monitor_id) => ({ event: "monitor.down", monitor_id })),
    );
    await send(after, [result(shop, { result_id: "d", status: "up", latency_ms: 1, error: null })]);
    expect(await received()).toMatchObject([{ event: "monitor.up", monitor_id: shop }]);
    child.kill("SIGTERM");
    expect(await child.exited).toBe(0);
  },
  TIMEOUT_MS,
);
