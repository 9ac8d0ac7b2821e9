import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NINEFOLD_COMMAND, plainEnvironment } from "../harness/processes/server-process.ts";

/** Size of a run. */
export interface ListenSize {
  /** Number of kills and restarts of the listener. */
  readonly kills: number;
  /** Events sent per second during the whole run. */
  readonly perSecond: number;
  /** Time from a start of the listener to its kill. */
  readonly aliveMs: number;
}

/** Result of a run. */
export interface ListenResult {
  readonly sent: number;
  /** Forwarded events, each counted once. */
  readonly handed: number;
  /** Events that were forwarded again, under the same id. */
  readonly repeats: number;
  /** Accepted events that were never forwarded. */
  readonly lost: readonly string[];
  /** Events that were forwarded with another body than the accepted one. */
  readonly wrong: readonly string[];
  /** Whether the first deliveries of all events were in the order of acceptance. */
  readonly isInOrder: boolean;
}

/** Longest wait until everything has been forwarded. */
const QUIET_WITHIN_MS = 60_000;

/** Kills `ninefold listen` repeatedly with SIGKILL while events arrive. */
export async function killListeners(url: string, key: string, size: ListenSize): Promise<ListenResult> {
  const folder = mkdtempSync(join(tmpdir(), "ninefold-listen-"));
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const got: { id: string; body: string }[] = [];
  const sink = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      got.push({ id: request.headers.get("x-svc-event-id") ?? "", body: await request.text() });
      return new Response("ok");
    },
  });
  const made = await fetch(`${url}/v1/catch/buckets`, {
    method: "POST",
    headers,
    body: '{"delivery":"pull"}',
  });
  const { id } = (await made.json()) as { id: string };
  const listen = () =>
    Bun.spawn(
      [
        ...[...NINEFOLD_COMMAND, "listen", id, "--ack", "--after", "beginning"],
        ...["--forward-to", `http://127.0.0.1:${sink.port}/`, "--resume", join(folder, "cursor")],
      ],
      {
        env: plainEnvironment({ NINEFOLD_API_KEY: key, NINEFOLD_URL: url }),
        stdout: "ignore",
        stderr: "inherit",
      },
    );
  const sent = new Map<string, string>();
  const sender = sendEvents(`${url}/v1/catch/${id}`, size.perSecond, sent);
  let listener = listen();
  try {
    for (let kill = 0; kill < size.kills; kill += 1) {
      await Bun.sleep(size.aliveMs);
      listener.kill("SIGKILL");
      await listener.exited;
      listener = listen();
    }
    await sender.end();
    const end = performance.now() + QUIET_WITHIN_MS;
    while (new Set(got.map((one) => one.id)).size < sent.size && performance.now() < end) await Bun.sleep(50);
  } finally {
    listener.kill("SIGKILL");
    await listener.exited;
    await sink.stop(true);
    rmSync(folder, { recursive: true });
  }
  return resultOf(sent, got);
}

function sendEvents(url: string, perSecond: number, sent: Map<string, string>) {
  let isOver = false;
  const run = async (): Promise<void> => {
    const begun = performance.now();
    for (let number = 0; !isOver; number += 1) {
      const body = JSON.stringify({ number });
      const answer = await fetch(url, { method: "POST", body });
      const { event_id } = (await answer.json()) as { event_id?: string };
      if (event_id === undefined) throw new Error(`an event was not accepted: ${answer.status}`);
      sent.set(event_id, body);
      await Bun.sleep(Math.max(0, begun + ((number + 1) * 1_000) / perSecond - performance.now()));
    }
  };
  const running = run();
  return {
    end: () => {
      isOver = true;
      return running;
    },
  };
}

function resultOf(
  sent: ReadonlyMap<string, string>,
  got: readonly { id: string; body: string }[],
): ListenResult {
  const firsts = [...new Set(got.map(({ id }) => id))];
  return {
    sent: sent.size,
    handed: firsts.length,
    repeats: got.length - firsts.length,
    lost: [...sent.keys()].filter((id) => !firsts.includes(id)),
    wrong: got.filter(({ id, body }) => sent.get(id) !== body).map(({ id }) => id),
    isInOrder: firsts.every((id, index) => index === 0 || id > (firsts[index - 1] ?? "")),
  };
}
