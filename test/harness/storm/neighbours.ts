import { join } from "node:path";
import { type Command, ServerProcess } from "../processes/server-process.ts";
import { Account } from "./account.ts";
import { ATTACKS, type Attack } from "./attacks.ts";
import { Pings } from "./pings.ts";

/** Settings of a run. */
export interface Neighbours {
  readonly command: Command;
  /** An empty folder; the data folder is created in it. */
  readonly folder: string;
  /** How long each attack lasts. */
  readonly seconds: number;
  /** Share of the full amount of stored data, above 0 and at most 1. */
  readonly scale: number;
}

/** What another client saw while one attack was running. */
export interface NeighbourRow {
  readonly name: string;
  /** Requests of the attack with a response. */
  readonly requests: number;
  /** Status codes of the responses to the attack. */
  readonly statuses: readonly number[];
  /** Pings of the other client. */
  readonly pings: number;
  /** 99th percentile of their latency, in milliseconds. */
  readonly p99Ms: number;
  /** Why the row counts as failed. */
  readonly problems: readonly string[];
}

/** No request of one tenant may delay another tenant for longer. */
const PING_MS_MAX = 20;

/** Runs every attack on one server, one after another, while another client sends pings. */
export async function runNeighbours(run: Neighbours): Promise<NeighbourRow[]> {
  const { command, folder, seconds, scale } = run;
  const data = join(folder, "data");
  const args = ["--port", "0", "--data", data, "--log-level", "warn"];
  args.push("--allow-private-targets", "127.0.0.0/8");
  const server = await ServerProcess.start({ command, args });
  try {
    const operator = new Account(server.url, server.key ?? "");
    const rows: NeighbourRow[] = [];
    for (const attack of ATTACKS) rows.push(await runAttack(attack, operator, { seconds, scale }));
    return rows;
  } finally {
    await server.stop();
  }
}

async function runAttack(
  { name, statuses, clients, prepare }: Attack,
  operator: Account,
  { seconds, scale }: Pick<Neighbours, "seconds" | "scale">,
): Promise<NeighbourRow> {
  const send = await prepare(operator, scale);
  const seen = new Map<number, number>();
  const end = performance.now() + seconds * 1_000;
  const pings = await Pings.start(operator.url);
  const attackers = Array.from({ length: clients }, async () => {
    do {
      const status = await send();
      seen.set(status, (seen.get(status) ?? 0) + 1);
    } while (performance.now() < end);
  });
  await Promise.all([...attackers, Bun.sleep(seconds * 1_000)]);
  const { count, p99Ms } = await pings.stop();
  const unexpected = [...seen.keys()].filter((status) => !statuses.includes(status));
  const problems = unexpected.map((status) => `${seen.get(status)} responses with status ${status}`);
  if (p99Ms > PING_MS_MAX) problems.push(`p99 above ${PING_MS_MAX} ms`);
  return {
    name,
    requests: [...seen.values()].reduce((sum, value) => sum + value, 0),
    statuses: [...seen.keys()].sort(),
    pings: count,
    p99Ms,
    problems,
  };
}

/** The rows as a table. */
export function describeNeighbours(rows: readonly NeighbourRow[]): string {
  const width = Math.max(...rows.map(({ name }) => name.length));
  const lines = rows.map(({ name, requests, p99Ms, problems }) => {
    const verdict = problems.length === 0 ? "" : `  ${problems.join("; ")}`;
    return `${name.padEnd(width)} ${String(requests).padStart(7)} ${p99Ms.toFixed(1).padStart(9)} ms${verdict}`;
  });
  return [`${"attack".padEnd(width)} ${"sent".padStart(7)} ${"ping p99".padStart(12)}`, ...lines].join("\n");
}
