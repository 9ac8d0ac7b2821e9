// Makes the kept data folder with pending forwards: forwards.tar.zst, and forwards.json with what it contains. It was made with the
// version before buckets had targets; the test starts the current server on it.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { pack } from "../../../../kept/archive.ts";
import { Receiver, receiverUrl, serverAt } from "../../../../kept/world.ts";
import type { AccountClient } from "../../../../support/server.ts";
import { TEST_START_MS } from "../../../../support/server.ts";
import { accepted, eventOf, newBucket, setState } from "../../support.ts";
import type { KeptForwards } from "./read.ts";

/** The buckets, with their targets and settings. Paths below `/broken` reject every request. */
const BUCKETS = {
  paused: { target_url: receiverUrl("/paused") },
  queued: { target_url: receiverUrl("/queued") },
  retrying: { target_url: receiverUrl("/broken/retrying") },
  scheduled: { target_url: receiverUrl("/broken/scheduled"), retry_schedule: ["1h", "2h"] },
  replaying: { target_url: receiverUrl("/replaying") },
} as const;

/** In a separate process: fills a folder, prints what it contains, and kills itself. */
async function fill(): Promise<void> {
  const receiver = new Receiver();
  const server = serverAt(TEST_START_MS, receiver);
  await server.start();
  const account: AccountClient = await server.account();
  const buckets: Record<string, string> = {};
  const events: Record<string, string> = {};
  for (const [name, terms] of Object.entries(BUCKETS)) {
    const { id } = await newBucket(account, { provider: "github", ...terms });
    buckets[name] = id;
    if (name !== "paused") await setState(account, id, "live");
  }
  const send = async (bucket: keyof typeof BUCKETS, ...names: readonly string[]): Promise<void> => {
    for (const name of names)
      events[name] = await accepted(server, buckets[bucket] ?? "", `{"name":"${name}"}`, {
        "content-type": "application/json",
        "x-github-event": "push",
      });
  };
  await send("paused", "p1", "p2", "p3");
  await send("replaying", "y1", "y2", "y3", "y4", "y5");
  await server.time.advance(0);
  await send("retrying", "r1");
  await send("scheduled", "s1");
  await server.time.advance(0);
  const replay = await account.post(`/v1/catch/${buckets["replaying"]}/replays`, { per_second: 1 });
  await server.time.advance(1_500);
  await send("queued", "q1", "q2", "q3");
  const views: Record<string, unknown> = {};
  for (const [bucket, names] of Object.entries({
    paused: ["p1", "p2", "p3"],
    queued: ["q1", "q2", "q3"],
    retrying: ["r1"],
    scheduled: ["s1"],
    replaying: ["y1", "y5"],
  }))
    for (const name of names) views[name] = await eventOf(account, buckets[bucket] ?? "", events[name] ?? "");
  const kept: KeptForwards = {
    at: server.time.now(),
    operatorKey: server.key,
    key: account.key ?? "",
    replayId: String(replay.body["replay_id"]),
    replayed: receiver.at("/replaying").length,
    buckets,
    events,
    views,
  };
  await Bun.write(Bun.stdout, JSON.stringify({ folder: server.folder, kept }));
  process.kill(process.pid, "SIGKILL");
}

if (Bun.argv[2] === "fill") await fill();
else {
  const child = Bun.spawn([process.execPath, "--no-env-file", import.meta.path, "fill"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const { folder, kept } = JSON.parse(await child.stdout.text()) as { folder: string; kept: KeptForwards };
  await child.exited;
  pack(folder, join(import.meta.dir, "forwards.tar.zst"));
  rmSync(folder, { recursive: true });
  await Bun.write(join(import.meta.dir, "forwards.json"), `${JSON.stringify(kept, null, 1)}\n`);
}
