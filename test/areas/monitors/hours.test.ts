import { expect, test } from "bun:test";
import { startTestServer } from "../../support/server.ts";
import { WebhookSink } from "../../support/webhook-sink.ts";

test("a check that ends after one of the next hour counts in its own hour", async () => {
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
    const failed = site.take().length;
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
    const all = failed + site.take().length;
    const { uptime } = (await account.get(`/v1/pulse/${id}/history`)).body;
    const percent = Math.round(((all - failed) / all) * 100_000) / 1_000;
    expect(uptime).toEqual({ "24h": percent, "7d": percent, "30d": percent, "90d": percent });
  } finally {
    await server.stop();
    site.stop();
  }
});
