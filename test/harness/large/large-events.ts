import { join } from "node:path";
import { orphansIn } from "../crash/large-events.ts";
import { type Command, ServerProcess } from "../processes/server-process.ts";
import { describeMeasured, type Measured, secondsText, Watch } from "../processes/watch.ts";

/** Settings of a run. */
export interface LargeLoad {
  readonly command: Command;
  /** An empty folder; the data folder is created in it. */
  readonly folder: string;
  /** Events that are sent at the same time, from so many networks, each with so many bytes. */
  readonly events: number;
  readonly networks: number;
  readonly bytes: number;
  /** How often the server is killed while they are sent and forwarded; with any, once more while they are replayed. */
  readonly kills: number;
}

/** What the senders are told. */
export interface Orders extends Pick<LargeLoad, "events" | "networks" | "bytes"> {
  readonly buckets: readonly string[];
  /** Whether they send again what was not acknowledged. */
  readonly sendsAgain: boolean;
}

/** What the senders have seen once all is sent. */
export interface SentReport {
  readonly accepted: number;
  /** Some of the other responses. */
  readonly other: readonly string[];
  readonly sentMs: number;
}

/** What they have seen once all that was acknowledged is received, since it was sent or replayed. */
export interface ReceivedReport {
  readonly receivedMs: number;
  /** Whether everything that was received is as it was sent. */
  readonly areEqual: boolean;
}

/** Measurements of a run, while the events were sent, until they were forwarded, and while they were replayed. */
export interface LargeLoadResult extends SentReport {
  readonly forwarded: ReceivedReport;
  readonly replayed: ReceivedReport;
  readonly sending: Measured;
  readonly forwarding: Measured;
  readonly replaying: Measured;
  /** Pieces in the file that no event has, at the end. */
  readonly orphans: number;
}

/** Buckets of the accounts that receive the events. */
const BUCKETS = 10;

/** Fastest replays that the API takes. */
const REPLAYS_PER_SECOND = 100;
/** How long the removal of pieces without an event may take. */
const SETTLED_WITHIN_MS = 30_000;
const SETTLED_LOOK_MS = 50;

/** Sends many large events at the same time and replays them, while another account reads, and measures both. */
export async function runLargeLoad({
  command,
  folder,
  events,
  networks,
  bytes,
  kills,
}: LargeLoad): Promise<LargeLoadResult> {
  const data = join(folder, "data");
  const launch = (port: string) => {
    const args = ["--port", port, "--data", data, "--log-level", "warn"];
    args.push("--trust-proxy", "127.0.0.1", "--allow-private-targets", "loopback");
    return ServerProcess.start({ command, args });
  };
  let server = await launch("0");
  const { url } = server;
  const senders = Bun.spawn([process.execPath, join(import.meta.dir, "senders.ts"), url], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const lines = linesOf(senders.stdout);
  try {
    const { target } = JSON.parse(await lines()) as { target: string };
    const owner = await newAccount(url, server.key, "receiver");
    const made = await Promise.all(
      Array.from({ length: BUCKETS }, () =>
        post<{ id: string }>(url, owner, "/v1/catch/buckets", { target_url: target, state: "live" }),
      ),
    );
    const buckets = made.map(({ id }) => id);
    const watch = await Watch.start(server, await newAccount(url, server.key, "reader"));
    const killed = async (): Promise<void> => {
      watch.pause();
      await server.stop("SIGKILL");
      server = await launch(new URL(url).port);
      watch.follow(server);
    };
    const order = async (text: string): Promise<void> => {
      senders.stdin.write(`${text}\n`);
      await senders.stdin.flush();
    };
    /** The next report; the server is killed when so many events are acknowledged or received. */
    const report = async <Report>(killsAt: number[]): Promise<Report> => {
      for (;;) {
        const message = JSON.parse(await lines()) as { progress?: number };
        if (message.progress === undefined) return message as Report;
        const next = killsAt[0];
        if (next === undefined || message.progress < next) continue;
        killsAt.shift();
        await killed();
      }
    };
    await order(JSON.stringify({ events, networks, bytes, buckets, sendsAgain: kills > 0 } satisfies Orders));
    const killsAt = Array.from({ length: kills }, (_, at) => Math.ceil((events * (at + 1)) / (kills + 1)));
    const sent = await report<SentReport>(killsAt);
    const sending = watch.take();
    const forwarded = await report<ReceivedReport>([]);
    const forwarding = watch.take();
    await order("again");
    // What is received from here on counts.
    while (!(await lines()).includes('"progress":0'));
    for (const bucket of buckets)
      await post(url, owner, `/v1/catch/${bucket}/replays`, { per_second: REPLAYS_PER_SECOND });
    const replayed = await report<ReceivedReport>(kills > 0 ? [Math.ceil(events / 2)] : []);
    const replaying = watch.take();
    await watch.stop();
    const orphans = await settledOrphans(data);
    return { ...sent, forwarded, replayed, sending, forwarding, replaying, orphans };
  } finally {
    senders.kill();
    await senders.exited;
    await server.stop();
  }
}

async function settledOrphans(data: string): Promise<number> {
  const until = performance.now() + SETTLED_WITHIN_MS;
  for (;;) {
    const orphans = orphansIn(data);
    if (orphans === 0 || performance.now() > until) return orphans;
    await Bun.sleep(SETTLED_LOOK_MS);
  }
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

async function post<T>(url: string, key: string | null, path: string, body: object): Promise<T> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}

async function newAccount(url: string, key: string | null, name: string): Promise<string> {
  const account = { email: `${name}@example.com`, tier: "unlimited" };
  return (await post<{ api_key: string }>(url, key, "/v1/admin/accounts", account)).api_key;
}

/** The measurements as lines of text. */
export function describeLargeLoad(result: LargeLoadResult): string {
  const { accepted, sentMs, forwarded, replayed, sending, forwarding, replaying, orphans } = result;
  return [
    `${accepted} accepted in ${secondsText(sentMs)}: ${describeMeasured(sending)}`,
    `all forwarded in ${secondsText(forwarded.receivedMs)}${equality(forwarded)}: ${describeMeasured(forwarding)}`,
    `all replayed in ${secondsText(replayed.receivedMs)}${equality(replayed)}: ${describeMeasured(replaying)}`,
    `pieces without an event: ${orphans}`,
  ].join("\n");
}

function equality({ areEqual }: ReceivedReport): string {
  return areEqual ? ", byte for byte" : ", NOT AS SENT";
}
