import { afterAll, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startEtcd } from "../harness/failover/engines.ts";
import { leaderOf, SupervisedNode } from "../harness/failover/supervised-node.ts";
import { Cleanup } from "../harness/processes/cleanup.ts";
import { freePorts } from "../harness/processes/ports.ts";
import { NINEFOLD_COMMAND, ROOT } from "../harness/processes/server-process.ts";
import { Proxies } from "../support/proxies.ts";

const TIMEOUT_MS = 120_000;
const LEADER_MS_MAX = 60_000;

const cleanup = new Cleanup();
afterAll(() => cleanup.run());

/** A place for a proxy that runs until the end of the tests. */
function proxiesIn(folder: string): Proxies {
  const proxies = new Proxies(folder);
  cleanup.add(() => proxies.stop());
  return proxies;
}

function startNginx(folder: string, port: number, nodes: readonly SupervisedNode[]): Promise<void> {
  const [n1 = "", n2 = ""] = nodes.map(({ url }) => new URL(url).host);
  const example = readFileSync(join(ROOT, "examples/failover/nginx.conf"), "utf8")
    .replace("n1:9909", n1)
    .replace("n2:9909", n2)
    .replace("listen 80;", `listen 127.0.0.1:${port};`);
  return proxiesIn(folder).nginx(example, port);
}

/** As the guide says it. */
function startCaddy(folder: string, port: number, nodes: readonly SupervisedNode[]): Promise<void> {
  const to = nodes.map(({ url }) => new URL(url).host).join(" ");
  const site = `http://127.0.0.1:${port} {\nreverse_proxy ${to} {\nhealth_uri /readyz\nhealth_interval 1s\n}\n}`;
  return proxiesIn(folder).caddy(site, port);
}

test(
  "behind nginx and Caddy, requests reach the node that leads, also after the leader is killed",
  async () => {
    const engine = await startEtcd(cleanup, 1);
    const folder = cleanup.folder("proxied");
    const configPath = join(folder, "ninefold.toml");
    writeFileSync(configPath, "");
    const masterKey = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("hex");
    const launch = {
      command: NINEFOLD_COMMAND,
      folder,
      commitLog: engine.url,
      leaseSeconds: 3,
      masterKey,
      configPath,
      archive: null,
    };
    const [one = 0, two = 0, nginx = 0, caddy = 0] = freePorts(4);
    const nodes = [one, two].map((port, index) => new SupervisedNode(`n${index + 1}`, port, launch, cleanup));
    await startNginx(cleanup.folder("nginx"), nginx, nodes);
    await startCaddy(cleanup.folder("caddy"), caddy, nodes);
    const first = await leaderOf(nodes, LEADER_MS_MAX, true);
    const headers = { authorization: `Bearer ${first.key}` };

    /** Refills a meter by 1 through a proxy, until that is acknowledged, and returns the balance. */
    const refill = async (port: number): Promise<number> => {
      const idempotencyKey = crypto.randomUUID();
      for (;;) {
        const response = await fetch(`http://127.0.0.1:${port}/v1/meter/m/refill`, {
          method: "POST",
          headers: { ...headers, "idempotency-key": idempotencyKey },
          body: JSON.stringify({ amount: 1 }),
        }).catch(() => null);
        if (response?.status === 200) return ((await response.json()) as { balance: number }).balance;
        // Refused by the proxy, or by a node that does not lead yet.
        expect([undefined, 502, 503, 504]).toContain(response?.status);
        await Bun.sleep(50);
      }
    };
    expect([await refill(nginx), await refill(caddy)]).toEqual([1, 2]);
    await first.kill();
    expect([await refill(nginx), await refill(caddy)]).toEqual([3, 4]);
  },
  TIMEOUT_MS,
);
