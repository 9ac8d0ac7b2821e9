import { join } from "node:path";
import { findBin, findProgram, otherUser } from "../../../scripts/steps/debian.ts";
import { run } from "../processes/children.ts";
import type { Cleanup } from "../processes/cleanup.ts";
import { freePorts } from "../processes/ports.ts";
import { EngineNode } from "./engine-node.ts";

/** An engine of a commit log on the loopback address. It ends with the clean-up that it was started with. */
export interface Engine {
  /** For `--commit-log`. */
  readonly url: string;
  /** Of PostgreSQL, the first is the primary. */
  readonly nodes: readonly EngineNode[];
  /** The node that orders what is written. */
  leader(): Promise<EngineNode>;
  /** Nodes without which nothing is confirmed, though others run. */
  majority(): Promise<readonly EngineNode[]>;
  /** Nodes without which nothing is written. */
  writers(): Promise<readonly EngineNode[]>;
}

/** Names of the engines. */
export type EngineName = "etcd" | "postgres";

/** What is missing on this machine for an engine; null when it can be started. */
export function missingFor(engine: EngineName): string | null {
  if (engine === "etcd")
    return findProgram("etcd") === null ? "etcd is not installed: apt-get install etcd-server" : null;
  if (findBin() === null) return "PostgreSQL is not installed: apt-get install postgresql";
  return otherUser() !== null && findProgram("setpriv") === null
    ? "PostgreSQL does not run as root, and there is no setpriv: apt-get install util-linux"
    : null;
}

/** Paths of a certificate and its key. */
interface TlsFiles {
  readonly certificate: string;
  readonly key: string;
}

/** Starts etcd with one or three nodes, which serve clients over TLS if they are given a certificate. `options`: more of its flags. */
export async function startEtcd(
  cleanup: Cleanup,
  count: 1 | 3,
  tls: TlsFiles | null = null,
  options: readonly string[] = [],
): Promise<Engine> {
  const folder = cleanup.folder("etcd");
  const ports = freePorts(count * 2);
  const members = Array.from({ length: count }, (_, index) => ({
    name: `etcd${index}`,
    client: `${tls === null ? "http" : "https"}://127.0.0.1:${ports[index * 2]}`,
    peer: `http://127.0.0.1:${ports[index * 2 + 1]}`,
  }));
  const initial = members.map(({ name, peer }) => `${name}=${peer}`).join(",");
  const nodes = members.map(({ name, client, peer }) => {
    const command = [
      ...[
        findProgram("etcd") ?? "etcd",
        "--name",
        name,
        "--data-dir",
        join(folder, name),
        "--log-level",
        "error",
      ],
      ...["--listen-client-urls", client, "--advertise-client-urls", client],
      ...["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", initial],
      ...(tls === null ? [] : ["--cert-file", tls.certificate, "--key-file", tls.key]),
      ...options,
    ];
    return new EngineNode(name, { command, folder, logPath: join(folder, `${name}.log`) }, async () => {
      // Its certificate is for the tests of the client.
      const response = await fetch(`${client}/health`, { tls: { rejectUnauthorized: false } });
      return ((await response.json()) as { health?: string }).health === "true";
    });
  });
  await startAll(cleanup, nodes);
  const url = `${tls === null ? "etcd" : "etcds"}://${members.map(({ client }) => new URL(client).host).join(",")}`;
  const leader = async (): Promise<EngineNode> => {
    for (const [index, { client }] of members.entries()) {
      const status = await etcdStatus(client).catch(() => null);
      if (status?.leader === status?.header.member_id && status !== null) return nodes[index] as EngineNode;
    }
    throw new Error("no node of etcd leads");
  };
  const majority = async (): Promise<EngineNode[]> => {
    const first = await leader();
    return [first, ...nodes.filter((node) => node !== first)].slice(0, Math.floor(count / 2) + 1);
  };
  return { url, nodes, leader, majority, writers: majority };
}

interface EtcdStatus {
  readonly header: { readonly member_id: string };
  readonly leader?: string;
}

async function etcdStatus(client: string): Promise<EtcdStatus> {
  const signal = AbortSignal.timeout(1_000);
  const response = await fetch(`${client}/v3/maintenance/status`, { method: "POST", body: "{}", signal });
  return (await response.json()) as EtcdStatus;
}

/** Settings of all servers: small, and back soon after a standby was lost. */
const POSTGRES_SETTINGS = [
  "listen_addresses=127.0.0.1",
  "unix_socket_directories=",
  "max_connections=60",
  "shared_buffers=16MB",
  "wal_retrieve_retry_interval=100ms",
];
const POSTGRES_USER = "ninefold";

/** Starts PostgreSQL: a primary with standbys, of which one must have a change before it is confirmed; without standbys, none. */
export async function startPostgres(cleanup: Cleanup, standbys: number): Promise<Engine> {
  const folder = cleanup.folder("postgres");
  const user = otherUser();
  const asUser =
    user === null ? [] : ["setpriv", `--reuid=${user}`, `--regid=${user}`, "--clear-groups", "--"];
  const program = (name: string) => [...asUser, join(findBin() ?? "", name)];
  if (user !== null) await run(["chown", user, folder]);
  const ports = freePorts(1 + standbys);
  const nodes = ports.map((port, index) => {
    const name = index === 0 ? "primary" : `standby${index}`;
    // A standby needs it once it is promoted.
    const names = standbys > 0 ? ["synchronous_standby_names=ANY 1 (*)"] : [];
    const settings = [...POSTGRES_SETTINGS, ...names, `port=${port}`].flatMap((text) => ["-c", text]);
    const command = [...program("postgres"), "-D", join(folder, name), ...settings];
    const place = ["-h", "127.0.0.1", "-p", String(port)];
    return new EngineNode(name, { command, folder, logPath: join(folder, `${name}.log`) }, async () => {
      const probe = Bun.spawn([...program("pg_isready"), ...place], { stdout: "ignore", stderr: "ignore" });
      return (await probe.exited) === 0;
    });
  });
  const primary = nodes[0] as EngineNode;
  const initdb = [...program("initdb"), "-D", join(folder, "primary"), "-U", POSTGRES_USER];
  await run([...initdb, "--auth=trust", "--no-locale", "--no-sync", "-E", "UTF8"], folder);
  await startAll(cleanup, [primary]);
  const from = ["-h", "127.0.0.1", "-p", String(ports[0]), "-U", POSTGRES_USER];
  for (const { name } of nodes.slice(1))
    await run(
      [...program("pg_basebackup"), ...from, "-D", join(folder, name), "-R", "-c", "fast", "--no-sync"],
      folder,
    );
  await startAll(cleanup, nodes.slice(1));
  const url = `postgres://${POSTGRES_USER}@${ports.map((port) => `127.0.0.1:${port}`).join(",")}/postgres`;
  return {
    url,
    nodes,
    leader: () => Promise.resolve(primary),
    majority: () => Promise.resolve(nodes.slice(1)),
    writers: () => Promise.resolve([primary]),
  };
}

async function startAll(cleanup: Cleanup, nodes: readonly EngineNode[]): Promise<void> {
  for (const node of nodes) {
    node.start();
    cleanup.add(() => node.kill());
  }
  await Promise.all(nodes.map((node) => node.ready()));
}

/** Starts an engine as it runs in production, with three nodes. */
export function startEngine(cleanup: Cleanup, engine: EngineName): Promise<Engine> {
  return engine === "etcd" ? startEtcd(cleanup, 3) : startPostgres(cleanup, 2);
}
