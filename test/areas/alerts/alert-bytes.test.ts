import { expect, test } from "bun:test";
import { useTestServer } from "../../support/server.ts";
import { isSignedNotification, type Received, WebhookSink } from "../../support/webhook-sink.ts";

const server = useTestServer({ manualClock: true, args: ["--allow-private-targets", "127.0.0.0/8"] });

/** The headers of an alert without those of the connection, and with fixed values for those that vary. */
function headersOf({ headers }: Received): Record<string, string> {
  const omitted = ["connection", "host", "accept", "accept-encoding"];
  const varying = ["webhook-id", "webhook-timestamp", "webhook-signature", "x-svc-delivery-id"];
  const shown = [...headers].filter(([name]) => !omitted.includes(name) && name !== "x-svc-signature");
  return Object.fromEntries(shown.map(([name, value]) => [name, varying.includes(name) ? "…" : value]));
}

const VARYING = {
  "webhook-id": "…",
  "webhook-timestamp": "…",
  "webhook-signature": "…",
  "x-svc-delivery-id": "…",
};

test("alerts of monitors by webhook_url and of meters have the bytes that their contract names", async () => {
  const sink = new WebhookSink();
  try {
    const account = await server.account({ tier: "pro" });
    sink.answersBy(({ path }) => (path === "/health" ? 503 : 200));
    const url = sink.url("/health");
    const monitor = { url, interval: 300_000, name: "Shop", webhook_url: sink.url("/alert") };
    const { body: made } = await account.post("/v1/pulse", monitor);
    await account.put("/v1/meter/m/alert", { threshold: 50, webhook_url: sink.url("/low") });
    await account.post("/v1/meter/m/refill", { amount: 60 });
    await account.post("/v1/meter/m/deduct", { amount: 20 });
    await server.clock.advance(5_000);
    const [down] = sink.received.filter(({ path }) => path === "/alert");
    const [low] = sink.received.filter(({ path }) => path === "/low");
    if (down === undefined || low === undefined) throw new Error("an alert is missing");

    const { latency_ms, checked_at, timestamp } = JSON.parse(down.body) as Record<string, number>;
    expect(down.body).toBe(
      `{"event":"monitor.down","monitor_id":"${made["id"]}","name":"Shop","url":"${url}","status":"down",` +
        `"previous_status":"unknown","error":"the target responded with 503","response_status":503,"latency_ms":${latency_ms},` +
        `"consecutive_failures":1,"checked_at":${checked_at},"timestamp":${timestamp}}`,
    );
    expect(low.body).toBe(
      `{"event":"meter.low","meter_id":"m","threshold":50,"balance":40,"available":40,` +
        `"at":"2026-03-10T12:00:00.000Z","request_id":"${JSON.parse(low.body).request_id}"}`,
    );
    for (const [alert, event] of [
      [down, "monitor.down"],
      [low, "meter.low"],
    ] as const) {
      expect(alert.method).toBe("POST");
      expect(isSignedNotification(alert, account.key ?? "")).toBe(true);
      expect(headersOf(alert)).toEqual({
        ...VARYING,
        "content-length": String(Buffer.byteLength(alert.body)),
        "content-type": "application/json",
        "user-agent": "Svc-Relay/1.0",
        "x-ninefold-hops": "1",
        "x-svc-event": event,
      });
    }
  } finally {
    sink.stop();
  }
});

test("alerts of monitors are retried after exactly 1, 5 and 15 s", async () => {
  const sink = new WebhookSink();
  try {
    const account = await server.account({ tier: "pro" });
    sink.answers(503);
    const terms = { url: sink.url("/health"), interval: 300_000, webhook_url: sink.url("/alert") };
    await account.post("/v1/pulse", terms);
    const alerts = () => sink.received.filter(({ path }) => path === "/alert").length;
    while (alerts() === 0) await server.clock.advance(10);
    for (const [index, delay] of [1_000, 5_000, 15_000].entries()) {
      await server.clock.advance(delay - 11);
      expect(alerts()).toBe(index + 1);
      await server.clock.advance(11);
      expect(alerts()).toBe(index + 2);
    }
    await server.clock.advance(60_000);
    expect(alerts()).toBe(4);
  } finally {
    sink.stop();
  }
});
