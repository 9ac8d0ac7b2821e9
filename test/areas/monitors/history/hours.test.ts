import { expect, test } from "bun:test";
import { startTestServer } from "../../../support/server.ts";
import { WebhookSink } from "../../../support/webhook-sink.ts";

test("uptime is the share of the time, also over the end of an hour; a manual check that ends in the next one counts nowhere", async () => {
  const server = await startTestServer({
    manualClock: true,
    args: ["--allow-private-targets", "127.0.0.0/8"],
  });
  const site = new WebhookSink();
  try {
    const account = await server.account();
    site.answers(503);
    const body = { url: site.url("/health"), interval: 60_000 };
    const id = String((await account.post("/v1/pulse", body)).body["id"]);
    await server.clock.advance(3_599_999);
    site.take();
    const held = Promise.withResolvers<Response>();
    const asked = Promise.withResolvers<void>();
    site.answersBy(() => {
      site.answersBy(() => 200);
      asked.resolve();
      return held.promise;
    });
    const manual = account.post(`/v1/pulse/${id}/check`);
    await asked.promise;
    await server.clock.advance(60_000);
    held.resolve(new Response(null, { status: 200 }));
    expect((await manual).status).toBe(200);
    await server.clock.advance(60_000);
    const { checks, uptime } = (await account.get(`/v1/pulse/${id}/history?limit=100`)).body as {
      checks: { checked_at: number; status: string; manual: boolean }[];
      uptime: object;
    };
    const scheduled = checks.filter(({ manual }) => !manual).map(({ checked_at }) => checked_at * 1_000);
    const [first = 0, recovered = 0] = [scheduled.at(-1), scheduled.at(1)];
    const now = server.clock.now();
    const percent = expect.closeTo(((now - recovered) / (now - first)) * 100, 1);
    expect(uptime).toEqual({ "24h": percent, "7d": percent, "30d": percent, "90d": percent });
  } finally {
    await server.stop();
    site.stop();
  }
});
