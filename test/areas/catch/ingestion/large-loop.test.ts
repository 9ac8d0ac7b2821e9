import { afterAll, beforeAll, expect, test } from "bun:test";
import { leastMs, longestTurnMs, TURN_MS_MAX } from "../../../support/processor-time.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { newBucket } from "../support.ts";

const MIB = 1024 * 1024;
/** A piece of a body as it arrives. */
const CHUNK = new Uint8Array(64 * 1024);

let server: TestServer;
let account: AccountClient;
beforeAll(async () => {
  server = await startTestServer();
  account = await server.account({ tier: "unlimited" });
});
afterAll(() => server.stop());

/** A request without a socket, so that nothing of a client's work counts. */
async function handled(path: string, init: RequestInit = {}): Promise<Response> {
  return server.server.app.http.handle(new Request(server.url + path, init));
}

async function ingested(bucketId: string, bytes: number): Promise<string> {
  let left = bytes;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (left <= 0) return controller.close();
      left -= CHUNK.length;
      controller.enqueue(CHUNK.slice());
    },
  });
  const response = await handled(`/v1/in/${bucketId}`, {
    method: "POST",
    body,
    headers: { "content-length": String(bytes) },
  });
  const { event_id } = (await response.json()) as { event_id?: string };
  if (event_id === undefined) throw new Error("not stored");
  return event_id;
}

async function drained(response: Response): Promise<void> {
  for await (const piece of response.body ?? []) expect(piece.length).toBeGreaterThan(0);
}

test("large bodies do not hold the event loop while they arrive, are read, searched and deleted", async () => {
  const { id } = await newBucket(account, { provider: "github", signing_secret: "secret" });
  const headers = { authorization: `Bearer ${account.key}` };
  const turn = await leastMs(TURN_MS_MAX, () =>
    longestTurnMs(async () => {
      const ids = await Promise.all(Array.from({ length: 16 }, () => ingested(id, 2 * MIB)));
      await Promise.all(
        ids.map(async (event) => drained(await handled(`/v1/catch/${id}/events/${event}/raw`, { headers }))),
      );
      await drained(await handled(`/v1/catch/${id}/events?q=nowhere`, { headers }));
      const until = "2100-01-01T00:00:00Z";
      await drained(await handled(`/v1/catch/${id}/events?before=${until}`, { method: "DELETE", headers }));
    }),
  );
  expect(turn).toBeLessThanOrEqual(TURN_MS_MAX);
}, 120_000);
