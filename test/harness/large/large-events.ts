import { join } from "node:path";
import { type Command, ServerProcess } from "../processes/server-process.ts";
import { processorMs as processorMsOf, residentMiB } from "../processes/usage.ts";

/** Settings of a run. */
export interface LargeLoad {
  readonly command: Command;
  /** An empty folder; the data folder is created in it. */
  readonly folder: string;
  /** Events that are sent at the same time, from so many networks, each with so many bytes. */
  readonly events: number;
  readonly networks: number;
  readonly bytes: number;
}

/** What the senders are told. */
export interface Orders extends Pick<LargeLoad, "events" | "networks" | "bytes"> {
  readonly buckets: readonly string[];
  /** Forwarded events that they wait for. */
  readonly forwarded: number;
}

/** What the senders have seen once all is sent. */
export interface SentReport {
  readonly accepted: number;
  /** Some of the other responses. */
  readonly other: readonly string[];
  readonly sentMs: number;
}

/** What they have seen once all is forwarded. */
export interface ForwardedReport {
  readonly forwardedMs: number;
  readonly forwardedEqual: boolean;
}

/** Measurements of a part of a run. */
export interface Measured {
  /** The most memory that the server has used; null where the system does not report it. */
  readonly mib: number | null;
  /** 99th percentile of the latency of another account's reads, and how many there were. */
  readonly p99Ms: number;
  readonly reads: number;
  /** The same of a server that does nothing else, read at the same times by the same client: what the machine and the client take. */
  readonly bareP99Ms: number;
  /** Processor time that the server has taken in all its threads, in milliseconds; null where the system does not report it. */
  readonly processorMs: number | null;
}

/** Measurements of a run, while the events were sent, and while they were forwarded. */
export interface LargeLoadResult extends SentReport, ForwardedReport {
  readonly sending: Measured;
  readonly forwarding: Measured;
}

/** How often memory is measured. */
const MEMORY_MS = 50;
/** Time between two reads of the other account. */
const READ_MS = 10;
/** Buckets of the accounts that receive the events. */
const BUCKETS = 10;

/** Sends many large events at the same time, while another account reads, and measures both. */
export async function runLargeLoad({
  command,
  folder,
  events,
  networks,
  bytes,
}: LargeLoad): Promise<LargeLoadResult> {
  const args = ["--port", "0", "--data", join(folder, "data"), "--log-level", "warn"];
  args.push("--trust-proxy", "127.0.0.1", "--allow-private-targets", "loopback");
  const server = await ServerProcess.start({ command, args });
  const senders = Bun.spawn([process.execPath, join(import.meta.dir, "senders.ts"), server.url], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const lines = linesOf(senders.stdout);
  const bare = Bun.spawn([process.execPath, join(import.meta.dir, "bare-server.ts")], { stderr: "inherit" });
  try {
    const bareUrl = await linesOf(bare.stdout)();
    const { target } = JSON.parse(await lines()) as { target: string };
    const owner = await newAccount(server, "receiver");
    const buckets = await Promise.all(
      Array.from({ length: BUCKETS }, () =>
        post<{ id: string }>(server, owner, "/v1/catch/buckets", { target_url: target, state: "live" }),
      ),
    );
    const reader = await newAccount(server, "reader");
    const watch = new Watch(server, reader, bareUrl);
    const orders: Orders = {
      events,
      networks,
      bytes,
      buckets: buckets.map(({ id }) => id),
      forwarded: events,
    };
    senders.stdin.write(`${JSON.stringify(orders)}\n`);
    await senders.stdin.flush();
    const sent = JSON.parse(await lines()) as SentReport;
    const sending = watch.take();
    const forwarded = JSON.parse(await lines()) as ForwardedReport;
    const forwarding = watch.take();
    await watch.stop();
    return { ...sent, ...forwarded, sending, forwarding };
  } finally {
    bare.kill();
    senders.kill();
    await Promise.all([bare.exited, senders.exited]);
    await server.stop();
  }
}

/** Reads as another account, and measures the server's memory. */
class Watch {
  private latencies: number[] = [];
  private bareLatencies: number[] = [];
  private mib = 0;
  private processorMs = 0;
  private isOver = false;
  private readonly done: Promise<unknown>;

  constructor(
    private readonly server: ServerProcess,
    private readonly key: string,
    private readonly bareUrl: string,
  ) {
    this.done = Promise.all([this.read(), this.measure()]);
  }

  /** What was measured since the last call. */
  take(): Measured {
    const { mib, processorMs, latencies, bareLatencies } = this;
    this.latencies = [];
    this.bareLatencies = [];
    this.mib = 0;
    const isReported = mib > 0;
    this.processorMs = isReported ? processorMsOf(this.server.pid) : 0;
    return {
      mib: isReported ? mib : null,
      p99Ms: p99Of(latencies),
      reads: latencies.length,
      bareP99Ms: p99Of(bareLatencies),
      processorMs: isReported ? this.processorMs - processorMs : null,
    };
  }

  async stop(): Promise<void> {
    this.isOver = true;
    await this.done;
  }

  private async read(): Promise<void> {
    const headers = { authorization: `Bearer ${this.key}`, "x-forwarded-for": "203.0.113.9" };
    while (!this.isOver) {
      this.latencies.push(await latencyOf(`${this.server.url}/v1/meter/balance`, headers));
      this.bareLatencies.push(await latencyOf(this.bareUrl, headers));
      await Bun.sleep(READ_MS);
    }
  }

  private async measure(): Promise<void> {
    while (!this.isOver) {
      this.mib = Math.max(this.mib, residentMiB(this.server.pid) ?? 0);
      await Bun.sleep(MEMORY_MS);
    }
  }
}

/** Milliseconds that a read takes. */
async function latencyOf(url: string, headers: Record<string, string>): Promise<number> {
  const startedAt = performance.now();
  await (await fetch(url, { headers })).text();
  return performance.now() - startedAt;
}

function p99Of(latencies: readonly number[]): number {
  const sorted = latencies.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length * 0.99)] ?? 0;
}

/** The lines of a stream, one by one. */
function linesOf(stream: ReadableStream<Uint8Array>): () => Promise<string> {
  const reader = stream
    .pipeThrough(new TextDecoderStream() as never)
    .getReader() as ReadableStreamDefaultReader<string>;
  let text = "";
  return async () => {
    for (;;) {
      const end = text.indexOf("\n");
      if (end >= 0) {
        const line = text.slice(0, end);
        text = text.slice(end + 1);
        return line;
      }
      const { done, value } = await reader.read();
      if (done) throw new Error(`the senders ended: ${text}`);
      text += value;
    }
  };
}

async function post<T>({ url }: ServerProcess, key: string | null, path: string, body: object): Promise<T> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}

async function newAccount(server: ServerProcess, name: string): Promise<string> {
  const account = { email: `${name}@example.com`, tier: "unlimited" };
  return (await post<{ api_key: string }>(server, server.key, "/v1/admin/accounts", account)).api_key;
}

/** The measurements as lines of text. */
export function describeLargeLoad(result: LargeLoadResult): string {
  const { accepted, sentMs, forwardedMs, sending, forwarding } = result;
  return [
    `${accepted} accepted in ${seconds(sentMs)}: ${describeMeasured(sending)}`,
    `all forwarded in ${seconds(forwardedMs)}: ${describeMeasured(forwarding)}`,
  ].join("\n");
}

function describeMeasured({ mib, p99Ms, reads, bareP99Ms, processorMs }: Measured): string {
  const measured = [
    `p99 of ${reads} reads ${p99Ms.toFixed(1)} ms (of a server that does nothing else ${bareP99Ms.toFixed(1)} ms)`,
  ];
  if (mib !== null) measured.push(`memory ${mib.toFixed(0)} MiB`);
  if (processorMs !== null) measured.push(`processor ${seconds(processorMs)}`);
  return measured.join(", ");
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
