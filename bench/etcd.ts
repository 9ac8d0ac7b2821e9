import { endsWithUs } from "../test/harness/processes/children.ts";
import { Connection } from "../test/harness/processes/connection.ts";
import { freePorts } from "../test/harness/processes/ports.ts";
import type { Competitor, Measurement } from "./benchmark.ts";
import { median } from "./results.ts";
import type { Stage } from "./stage.ts";

const CLIENTS = 32;
const LEASE_SECONDS = 600;
const READY_TRIES = 400;
const READY_PAUSE_MS = 25;

/**
 * Lock and unlock in etcd through its HTTP gateway, with every change synced and one lock per client. The leases are
 * created beforehand. Each cycle counts as two requests, like Ninefold's.
 */
export class EtcdLock implements Competitor {
  readonly name = "etcd lock";
  private url = "";
  private readonly leases: string[] = [];

  missing(): string | null {
    return Bun.which("etcd") === null ? "etcd is not installed: apt-get install etcd-server" : null;
  }

  async prepare(stage: Stage): Promise<void> {
    const [client, peer] = freePorts(2);
    this.url = `http://127.0.0.1:${client}`;
    const peerUrl = `http://127.0.0.1:${peer}`;
    const place = ["--data-dir", stage.subfolder("etcd"), "--name", "bench", "--log-level", "error"];
    const clients = ["--listen-client-urls", this.url, "--advertise-client-urls", this.url];
    const peers = ["--listen-peer-urls", peerUrl, "--initial-advertise-peer-urls", peerUrl];
    const server = Bun.spawn(
      ["etcd", ...place, ...clients, ...peers, "--initial-cluster", `bench=${peerUrl}`],
      {
        stdin: "ignore",
        stdout: "ignore",
        stderr: "ignore",
      },
    );
    endsWithUs(server);
    stage.atEnd(async () => {
      server.kill("SIGKILL");
      await server.exited;
    });
    await this.waitUntilReady();
    for (let client = 0; client < CLIENTS; client += 1) {
      this.leases.push(String((await this.once("/v3/lease/grant", { TTL: LEASE_SECONDS }))["ID"]));
    }
  }

  async measure(seconds: number): Promise<Measurement> {
    const latencies: number[] = [];
    const begun = performance.now();
    const end = begun + seconds * 1000;
    await Promise.all(this.leases.map((lease, client) => this.cycle(client, lease, end, latencies)));
    const perSecond = latencies.length / ((performance.now() - begun) / 1000);
    latencies.sort((a, b) => a - b);
    const p99Ms = latencies[Math.floor(latencies.length * 0.99)] ?? null;
    return { perSecond, p50Ms: median(latencies), p99Ms };
  }

  private async cycle(client: number, lease: string, end: number, latencies: number[]): Promise<void> {
    const connection = await Connection.open(this.url);
    const timed = async (path: string, body: object): Promise<Record<string, unknown>> => {
      const sent = performance.now();
      const response = await ask(connection, path, body);
      latencies.push(performance.now() - sent);
      return response;
    };
    while (performance.now() < end) {
      const { key } = await timed("/v3/lock/lock", { name: btoa(`lock-${client}`), lease });
      await timed("/v3/lock/unlock", { key });
    }
    connection.close();
  }

  private async waitUntilReady(): Promise<void> {
    for (let tries = 0; tries < READY_TRIES; tries += 1) {
      const ready = await this.once("/v3/maintenance/status", {}).then(
        () => true,
        () => false,
      );
      if (ready) return;
      await Bun.sleep(READY_PAUSE_MS);
    }
    throw new Error("etcd did not become ready");
  }

  private async once(path: string, body: object): Promise<Record<string, unknown>> {
    const connection = await Connection.open(this.url);
    try {
      return await ask(connection, path, body);
    } finally {
      connection.close();
    }
  }
}

async function ask(connection: Connection, path: string, body: object): Promise<Record<string, unknown>> {
  const headers = { "content-type": "application/json" };
  const response = await connection.request({ method: "POST", path, headers, body: JSON.stringify(body) });
  if (response.status !== 200) throw new Error(`etcd ${path}: ${response.status} ${response.text}`);
  return JSON.parse(response.text) as Record<string, unknown>;
}
