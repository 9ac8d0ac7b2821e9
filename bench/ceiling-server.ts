// The highest throughput to expect: Bun.serve that verifies a key, creates an id, writes the rows that Ninefold writes
// for the request, and commits once per batch, gathered as Ninefold gathers it: bun ceiling-server.ts FOLDER KEY
import { mkdirSync } from "node:fs";
import { openDataFolder } from "../src/data-folder.ts";
import { createLogger } from "../src/kernel/log.ts";
import { keyDigestHex } from "../src/kernel/secrets/key-format.ts";
import { Checkpointer, type Pausable } from "../src/kernel/storage/checkpointer.ts";
import { CommitDelay } from "../src/kernel/storage/commit-delay.ts";
import type { Tx } from "../src/kernel/storage/tx.ts";
import { createSystemClock } from "../src/kernel/time/clock.ts";
import { ceilingWork, type IncomingRequest } from "./ceiling-work.ts";
import { JSON_HEADERS, partsOf } from "./responses.ts";

const [folder = "", key = ""] = process.argv.slice(2);
const clock = createSystemClock();
const log = createLogger(clock, { level: "warn" });
mkdirSync(folder, { recursive: true });
const { db } = openDataFolder(folder, { masterKey: null, durability: "full", clock, log });
const works = ceilingWork(db);
const begin = db.control("BEGIN IMMEDIATE");
const commit = db.control("COMMIT");
const delay = new CommitDelay();
const keys = new Map([[keyDigestHex(key), true]]);

let committed = (): void => undefined;
let isPaused = false;
// Keeps the write-ahead log as small as Ninefold's.
const pausable: Pausable = {
  onCommitted: (observer) => {
    committed = observer;
  },
  pause: () => {
    isPaused = true;
    return Promise.resolve(() => {
      isPaused = false;
      if (queue.length > 0) schedule();
    });
  },
  onSyncFailure: (failure) => {
    throw failure;
  },
};
new Checkpointer(db, pausable, log);

interface Waiting {
  readonly incoming: IncomingRequest;
  readonly resolve: (response: Response) => void;
}

let queue: Waiting[] = [];
let isScheduled = false;
let wait: Timer | null = null;

function schedule(): void {
  if (isScheduled || isPaused) return;
  const waitMs = delay.waitMs(queue.length);
  if (waitMs > 0) {
    wait ??= setTimeout(flush, waitMs);
    return;
  }
  isScheduled = true;
  setImmediate(flush);
}

function flush(): void {
  isScheduled = false;
  clearTimeout(wait ?? undefined);
  wait = null;
  if (isPaused || queue.length === 0) return;
  const batch = queue;
  queue = [];
  begin();
  const tx = { now: Date.now(), willWrite: () => undefined } as unknown as Tx;
  const bodies = batch.map(({ incoming }) => works[areaOf(incoming.parts)]?.(tx, incoming));
  const commitAt = performance.now();
  commit();
  db.logSync?.now();
  delay.confirmed(batch.length, 0, performance.now() - commitAt);
  for (const [index, { incoming, resolve }] of batch.entries()) {
    const headers = { ...JSON_HEADERS, "x-request-id": incoming.id };
    resolve(new Response(JSON.stringify(bodies[index]), { headers }));
  }
  committed();
}

/** The area that a path names behind its version; pings have none. */
function areaOf([first = "", second = ""]: readonly string[]): string {
  return first === "ping" ? first : second;
}

function isKnown(request: Request): boolean {
  const secret = request.headers.get("authorization")?.slice("Bearer ".length) ?? "";
  return keys.has(keyDigestHex(secret));
}

async function respond(request: Request): Promise<Response> {
  const parts = partsOf(request.url);
  // Providers that send webhooks have no key, nor have jobs that ping.
  if (!["catch", "ping"].includes(areaOf(parts)) && !isKnown(request))
    return new Response("no", { status: 401 });
  const body = Buffer.from(await request.bytes());
  const incoming: IncomingRequest = { parts, headers: request.headers, body, id: Bun.randomUUIDv7() };
  return new Promise((resolve) => {
    queue.push({ incoming, resolve });
    schedule();
  });
}

const server = Bun.serve({ hostname: "127.0.0.1", port: 0, development: false, fetch: respond });
console.log(server.url.origin);
