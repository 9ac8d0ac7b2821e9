import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { MAIL_ATTEMPTS_MAX, MAIL_REJECTIONS_MAX } from "../../../src/kernel/mail/outbox.ts";
import { ehloName } from "../../../src/kernel/mail/smtp.ts";
import { type MailStage, ScriptedMailServer } from "../../support/scripted-mail-server.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

let mail: ScriptedMailServer;
let server: TestServer;
beforeEach(() => startWith(new ScriptedMailServer()));
afterEach(stop);

async function startWith(scripted: ScriptedMailServer): Promise<void> {
  mail = await scripted.start();
  server = await startTestServer({
    manualClock: true,
    args: ["--mail-from", "alerts@mail.example", "--smtp-url", mail.url],
  });
  const config = { to: ["ada@example.com"] };
  const channel = { name: "Ops", kind: "email", config, events: ["monitor.acknowledged"] };
  expect((await server.operator.post("/v1/pulse/channels", channel)).status).toBe(201);
}

async function stop(): Promise<void> {
  await server.stop();
  await mail.stop();
}

/** Causes one e-mail, and its first attempt. */
async function queueOne(): Promise<void> {
  const { body } = await server.operator.post("/v1/pulse/incidents", { title: "Payments fail" });
  expect((await server.operator.post(`/v1/pulse/incidents/${body["id"]}/acknowledge`)).status).toBe(200);
  await server.clock.advance(0);
}

const attempts = (): number => mail.commands.filter((command) => command.startsWith("EHLO")).length;
const isReported = async (): Promise<boolean> => {
  const { mail: state } = (await server.operator.get("/v1/admin/status")).body as {
    mail: { failing_since: string | null };
  };
  const { text } = await server.operator.get("/metrics");
  expect(text).toContain(`\nninefold_mail_failing ${state.failing_since === null ? 0 : 1}\n`);
  return state.failing_since !== null;
};
const givenUp = async (reason: string): Promise<boolean> =>
  (await server.operator.get("/metrics")).text.includes(
    `\nninefold_mail_given_up_total{reason="${reason}"} 1\n`,
  );

describe("an error of the mail server itself is reported, and the e-mail is sent after its repair", () => {
  const rows: readonly (readonly [MailStage, string])[] = [
    ["greeting", "554 5.3.2 no service"],
    ["greeting", "421 4.3.2 later"],
    ["EHLO", "550 5.7.1 go away"],
    ["EHLO", "504 5.5.2 a full name, please"],
    ["AUTH", "535 5.7.8 wrong password"],
    ["AUTH", "550 5.7.1 no"],
    ["MAIL", "530 5.7.0 Must issue a STARTTLS command first"],
    ["MAIL", "550 5.1.8 unknown sender"],
    ["MAIL", "552 5.2.2 quota"],
    ["MAIL", "451 4.3.0 later"],
    ["RCPT", "450 4.2.0 greylisted"],
    ["RCPT", "530 5.7.0 Must issue a STARTTLS command first"],
    ["RCPT", "504 5.5.2 Helo command rejected: need fully-qualified hostname"],
    ["DATA", "451 4.3.0 later"],
    [".", "452 4.3.1 disk full"],
  ];
  test.each(rows)("at %s with %s", async (at, reply) => {
    mail.reject = { at, reply };
    await queueOne();
    expect(await isReported()).toBe(true);
    await server.clock.advance(60 * MINUTE);
    expect(await isReported()).toBe(true);
    mail.reject = null;
    await server.clock.advance(60 * MINUTE);
    expect(mail.accepted).toHaveLength(1);
    expect(await isReported()).toBe(false);
  });

  test("until the attempts are exhausted, which is counted", async () => {
    mail.reject = { at: "MAIL", reply: "530 5.7.0 Must issue a STARTTLS command first" };
    await queueOne();
    await server.clock.advance(3 * DAY);
    expect([attempts(), await givenUp("server")]).toEqual([MAIL_ATTEMPTS_MAX, true]);
  });
});

describe("an e-mail that the mail server rejects is reported, and retried a few times", () => {
  const rows: readonly (readonly [MailStage, string])[] = [
    ["DATA", "554 5.5.1 no valid recipients"],
    [".", "550 5.7.1 looks like spam"],
    [".", "554 5.6.0 rejected"],
    ["RCPT", "554 5.7.1 Relay access denied"],
    ["RCPT", "550 5.1.8 sender address rejected: domain not found"],
  ];
  test.each(rows)("at %s with %s", async (at, reply) => {
    mail.reject = { at, reply };
    await queueOne();
    await server.clock.advance(DAY);
    expect([attempts(), await givenUp("message")]).toEqual([MAIL_REJECTIONS_MAX, true]);
    expect(await isReported()).toBe(true);
    mail.reject = null;
    await queueOne();
    expect([mail.accepted.length, await isReported()]).toEqual([1, false]);
  });
});

describe("a recipient that does not exist is given up immediately, and is no failure of the mail server", () => {
  test.each([
    "550 5.1.1 no such user",
    "550 no such user",
    "551 moved",
    "553 5.1.3 bad address",
    "556 5.1.10 null MX",
  ])("%s", async (reply) => {
    mail.reject = { at: "RCPT", reply };
    await queueOne();
    await server.clock.advance(DAY);
    expect([attempts(), await givenUp("recipient"), await isReported()]).toEqual([1, true, false]);
  });

  test("also if the mail server pipelines", async () => {
    await stop();
    await startWith(new ScriptedMailServer(["PIPELINING"]));
    mail.reject = { at: "RCPT", reply: "550 5.1.1 no such user" };
    await queueOne();
    await server.clock.advance(DAY);
    expect([attempts(), await givenUp("recipient"), await isReported()]).toEqual([1, true, false]);
  });
});

test("every e-mail says that no person wrote it", async () => {
  await queueOne();
  expect(mail.accepted[0]).toMatch(/^Auto-Submitted: auto-generated$/im);
});

describe("EHLO", () => {
  test("is followed by the domain of the sender without a public URL", async () => {
    await queueOne();
    expect(mail.commands[0]).toBe("EHLO mail.example");
  });

  test.each([
    ["https://nf.example", "alerts@mail.example", "nf.example"],
    ["https://nf.example:8443/ninefold", "alerts@mail.example", "nf.example"],
    ["https://bücher.example", "alerts@mail.example", "xn--bcher-kva.example"],
    ["http://127.0.0.1:9909", "alerts@mail.example", "mail.example"],
    ["http://[::1]:9909", "alerts@mail.example", "mail.example"],
    ["http://localhost:9909", "Ninefold <alerts@mail.example>", "mail.example"],
    [null, "alerts@bücher.example", "xn--bcher-kva.example"],
    [null, "alerts@localhost", "localhost"],
    [null, "alerts", "localhost"],
  ])("with public URL %p and sender %p is followed by %p", (publicUrl, from, name) => {
    expect(ehloName({ publicUrl, from })).toBe(name);
  });
});
