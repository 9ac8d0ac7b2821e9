import { afterEach, describe, expect, test } from "bun:test";
import { isBearerKey } from "../../../src/kernel/secrets/key-format.ts";
import { MailServer, type ReceivedMail, selfSigned } from "../../support/mail-server.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

const SENDER = "keys@ninefold.example";
const running: { stop(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const thing of running.splice(0).reverse()) await thing.stop();
});

async function started(mail: MailServer, smtpUrl: string): Promise<TestServer> {
  running.push(mail);
  const server = await startTestServer({
    manualClock: true,
    args: ["--signup", "open", "--mail-from", SENDER],
    environment: { NINEFOLD_SMTP_URL: smtpUrl },
  });
  running.push(server);
  return server;
}

async function plain(): Promise<{ mail: MailServer; server: TestServer }> {
  const mail = await new MailServer().start();
  return { mail, server: await started(mail, mail.url) };
}

async function signUpForPro(server: TestServer, email = "ada@example.com"): Promise<string> {
  const answer = await server.client(null).post("/v1/signup", { email, tier: "pro" });
  expect(answer.status).toBe(201);
  expect(Object.keys(answer.body)).toEqual(["user_id"]);
  return String(answer.body.user_id);
}

/** The key in an e-mail. */
function keyIn(message: ReceivedMail | undefined): string {
  const key = /sm_[A-Za-z0-9]{43}_[0-9a-f]{8}/.exec(message?.raw ?? "")?.[0] ?? "no key";
  expect(isBearerKey(key)).toBe(true);
  return key;
}

async function tierBehind(server: TestServer, key: string): Promise<unknown> {
  const { body } = await server.client(key).get("/v1/meter/balance");
  const accounts = (await server.operator.get("/v1/admin/accounts")).body.accounts;
  return (accounts as { user_id: string }[]).find(({ user_id }) => user_id === body.user_id);
}

test("the key of a pro account is e-mailed to the address that signed up only", async () => {
  const { mail, server } = await plain();
  const userId = await signUpForPro(server);
  await server.clock.advance(0);
  expect(mail.received).toHaveLength(1);
  const [message] = mail.received;
  expect(message).toMatchObject({ from: SENDER, to: ["ada@example.com"], secure: false });
  expect(message?.raw).toContain("Subject: Your API key");
  expect(message?.raw).toContain(userId);
  expect(await tierBehind(server, keyIn(message))).toMatchObject({
    user_id: userId,
    tier: "pro",
    balance: 1_000_000,
  });
  await server.clock.advance(60 * 60 * 1000);
  expect(mail.received).toHaveLength(1);
});

test("a free account gets no e-mail", async () => {
  const { mail, server } = await plain();
  const answer = await server.client(null).post("/v1/signup", { email: "a@example.com", tier: "free" });
  expect(answer.status).toBe(201);
  await server.clock.advance(60_000);
  expect(mail.received).toEqual([]);
});

test("while the mail server is down, sending is retried after 1, 2, 4, … seconds, also after restarts", async () => {
  const { mail, server } = await plain();
  await mail.stop();
  const userId = await signUpForPro(server);
  const tries = (): number =>
    server.logs.filter(({ message }) => message === "an e-mail could not be sent yet").length;
  await server.clock.advance(0);
  expect(tries()).toBe(1);
  for (const [waitMs, expected] of [
    [999, 1],
    [1, 2],
    [1_999, 2],
    [1, 3],
  ] as const) {
    await server.clock.advance(waitMs);
    expect(tries()).toBe(expected);
  }
  await server.restart();
  await server.clock.advance(3_999);
  expect(tries()).toBe(3);
  await mail.start();
  await server.clock.advance(1);
  expect(mail.received).toHaveLength(1);
  expect(await tierBehind(server, keyIn(mail.received[0]))).toMatchObject({ user_id: userId });
  await server.clock.advance(24 * 60 * 60 * 1000);
  expect(mail.received).toHaveLength(1);
});

test("a temporary rejection is retried", async () => {
  const { mail, server } = await plain();
  mail.refuseWith = 451;
  await signUpForPro(server);
  await server.clock.advance(5_000);
  mail.refuseWith = null;
  await server.clock.advance(60_000);
  expect(mail.received).toHaveLength(1);
});

test("neither files nor logs contain the key of a pending e-mail", async () => {
  const { mail, server } = await plain();
  mail.refuseWith = 451;
  await signUpForPro(server);
  await server.clock.advance(10_000);
  const { db } = server.server.kernel;
  const jobs = db.all<{ payload: string }>("SELECT payload FROM jobs WHERE kind = 'mail.send'")();
  expect(jobs).toHaveLength(1);
  const { sealed } = JSON.parse(jobs[0]?.payload ?? "{}") as { sealed: string };
  const texts = [JSON.stringify([jobs, server.logs]), Buffer.from(sealed, "base64").toString("latin1")];
  mail.refuseWith = null;
  await server.clock.advance(60_000);
  const entropy = keyIn(mail.received[0]).slice(3, 46);
  for (const text of texts) expect(text).not.toContain(entropy);
});

describe("STARTTLS", () => {
  const tls = selfSigned();
  if (tls === null) {
    test("is tested where openssl can make a certificate", () => expect(Bun.which("openssl")).toBeNull());
    return;
  }

  test("is used if the mail server offers it", async () => {
    const mail = await new MailServer(tls).start();
    const server = await started(mail, `${mail.url}?tls.rejectUnauthorized=false`);
    await signUpForPro(server);
    await server.clock.advance(0);
    expect(mail.received).toHaveLength(1);
    expect(mail.received[0]?.secure).toBe(true);
    keyIn(mail.received[0]);
  });

  test("with an untrusted certificate, no e-mail is sent unless the URL permits it", async () => {
    const mail = await new MailServer(tls).start();
    const server = await started(mail, mail.url);
    await signUpForPro(server);
    await server.clock.advance(10_000);
    expect(mail.received).toEqual([]);
  });

  test("can be required: no e-mail is sent to a server that does not offer it", async () => {
    const mail = await new MailServer().start();
    const server = await started(mail, `${mail.url}?requireTLS=true`);
    await signUpForPro(server);
    await server.clock.advance(10_000);
    expect(mail.received).toEqual([]);
  });
});
