import { expect, test } from "bun:test";
import { MailServer } from "../../../support/mail-server.ts";
import { startTestServer } from "../../../support/server.ts";
import { WebhookSink } from "../../../support/webhook-sink.ts";

test("the account receives an e-mail when its endpoint is disabled, unless notify_email is off", async () => {
  const sink = new WebhookSink();
  const mail = await new MailServer().start();
  const args = [
    ...["--allow-private-targets", "127.0.0.0/8"],
    ...["--smtp-url", mail.url, "--mail-from", "ninefold@example.com"],
  ];
  const server = await startTestServer({ manualClock: true, args });
  try {
    sink.answersBy(() => 410);
    const account = await server.account();
    const body = { url: sink.url("/a"), name: "Bookkeeping" };
    await account.post("/v1/relay/endpoints", body);
    await account.post("/v1/relay/endpoints", { url: sink.url("/b"), name: "Quiet", notify_email: false });
    await account.post("/v1/relay/messages", { event_type: "a", payload: {} });
    for (let turn = 0; turn < 6; turn += 1) await server.clock.advance(1);
    const states = (await account.get("/v1/relay/endpoints")).body.endpoints as { state: string }[];
    expect(states.map(({ state }) => state)).toEqual(["disabled", "disabled"]);
    expect(mail.received.map(({ to }) => to)).toEqual([[account.email]]);
    const [{ raw } = { raw: "" }] = mail.received;
    expect(raw).toContain("Webhooks to Bookkeeping have stopped");
    expect(raw).toContain("the target responded with 410");
  } finally {
    await server.stop();
    await mail.stop();
    sink.stop();
  }
});
