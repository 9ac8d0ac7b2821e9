import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NINEFOLD_COMMAND, ServerProcess } from "../harness/processes/server-process.ts";
import { Client } from "../support/client.ts";
import { WebhookSink } from "../support/webhook-sink.ts";

const KEYED = { headers: { "idempotency-key": "once" } };

let folder: string;
let sink: WebhookSink;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "ninefold-claim-"));
  sink = new WebhookSink();
});
afterEach(async () => {
  await sink.stop();
  rmSync(folder, { recursive: true, force: true });
});

function start(): Promise<ServerProcess> {
  const args = ["--port", "0", "--data", folder, "--allow-private-targets", "127.0.0.0/8"];
  return ServerProcess.start({ command: NINEFOLD_COMMAND, args });
}

const balanceOf = async (client: Client): Promise<unknown> =>
  (await client.get("/v1/meter/balance")).body.balance;

/** A replay of a webhook and a check of a monitor, each under an `Idempotency-Key`. */
const WORKS: readonly [name: string, path: (account: Client) => Promise<string>, status: number][] = [
  [
    "a replay",
    async (account) => {
      const { body: bucket } = await account.post("/v1/catch/buckets", { target_url: sink.url("/hook") });
      const { body: event } = await account.post(`/v1/catch/${bucket.id}`, { n: 1 });
      // Live for the replay only: pending events are also forwarded automatically.
      await account.patch(`/v1/catch/buckets/${bucket.id}`, { state: "live" });
      return `/v1/catch/${bucket.id}/events/${event.event_id}/replay`;
    },
    200,
  ],
  [
    "a manual check",
    async (account) => {
      const { body } = await account.post("/v1/pulse", {
        url: sink.url("/check"),
        interval: 300_000,
      });
      return `/v1/pulse/${body.id}/check`;
    },
    200,
  ],
];

test.each(WORKS)(
  "%s is charged once if the server is killed halfway",
  async (_, prepare, status) => {
    const first = await start();
    const { body } = await new Client(first.url, String(first.key)).post("/v1/admin/accounts", {
      email: "jane@example.com",
      tier: "pro",
      balance: 100,
    });
    const account = new Client(first.url, String(body.api_key));
    const path = await prepare(account);
    while (sink.received.length === 0 && path.includes("catch")) await Bun.sleep(5);
    const before = Number(await balanceOf(account));
    const seen = sink.received.length;
    sink.answersBy(() => new Promise(() => {}));
    const lost = account.post(path, undefined, KEYED).catch(() => "lost");
    while (sink.received.length === seen) await Bun.sleep(5);
    expect(await balanceOf(account)).toBe(before - 1);
    await first.stop("SIGKILL");
    expect(await lost).toBe("lost");

    sink.answersBy(() => 200);
    const second = await start();
    const after = new Client(second.url, String(body.api_key));
    expect(await balanceOf(after)).toBe(before);
    const repeat = await after.post(path, undefined, KEYED);
    expect({ status: repeat.status, replayed: repeat.headers.get("idempotent-replayed") }).toEqual({
      status,
      replayed: null,
    });
    expect(await balanceOf(after)).toBe(before - 1);
    const again = await after.post(path, undefined, KEYED);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(await balanceOf(after)).toBe(before - 1);
    await second.stop("SIGKILL");
  },
  60_000,
);
