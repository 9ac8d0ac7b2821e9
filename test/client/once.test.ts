import { afterAll, beforeAll, expect, test } from "bun:test";
import { type FetchLike, Ninefold } from "../../src/client/index.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { WebhookSink } from "../support/webhook-sink.ts";
import { createRecorder } from "./support.ts";

/** Longer than the client waits for an attempt, shorter than it goes on trying. */
const TARGET_MS = 1_700;
const ATTEMPT_MS = 1_000;

const sink = new WebhookSink();
let server: TestServer;
let key = "";
beforeAll(async () => {
  // Real time: a check is real work, under way while the client asks again.
  server = await startTestServer({ args: ["--allow-private-targets", "127.0.0.0/8"] });
  key = String((await server.account({ balance: 100 })).key);
});
afterAll(async () => {
  await server.stop();
  await sink.stop();
});

test("a change that takes longer than its attempt happens once: the retry waits for the first response", async () => {
  sink.answersBy(() => Bun.sleep(TARGET_MS).then(() => new Response("well")));
  const statuses: (readonly [status: number, retryAfter: string | null])[] = [];
  const watched: FetchLike = async (url, init) => {
    const response = await fetch(url, init);
    statuses.push([response.status, response.headers.get("retry-after")]);
    return response;
  };
  const recorder = createRecorder(watched);
  const nf = new Ninefold({ url: server.url, apiKey: key, fetch: recorder.fetch });
  const { id } = await nf.monitors.create({ url: sink.url("/health"), interval: 300_000 });
  await nf.monitors.update(id, { active: false });
  statuses.length = 0;
  recorder.requests.length = 0;
  sink.received.length = 0;

  // One retry is enough: waiting for the first attempt uses none up.
  expect((await nf.monitors.check(id, { timeoutMs: ATTEMPT_MS, retries: 1 })).status).toBe("up");
  // The first attempt has no answer; the second one is told to come back, and the last one reads what the first one did.
  expect(statuses[0]).toEqual([409, "1"]);
  expect(statuses.at(-1)).toEqual([200, null]);
  expect(new Set(recorder.requests.map((request) => request.headers["Idempotency-Key"])).size).toBe(1);
  expect(sink.received).toHaveLength(1);
  // One credit each for create, update and the one check.
  expect((await nf.account.balance()).balance).toBe(97);
});
