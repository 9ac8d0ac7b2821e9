import { afterEach, beforeEach, expect, test } from "bun:test";
import { createOutbox, MAIL_ATTEMPTS_MAX, MAIL_CONCURRENCY } from "../../../src/kernel/mail/outbox.ts";
import type { Mailer, MailMessage } from "../../../src/kernel/mail/smtp.ts";
import { Scheduler, type WorkGate } from "../../../src/kernel/scheduler/scheduler.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

/** The operator's account. */
const ACCOUNT = 1;

let server: TestServer;
beforeEach(async () => {
  server = await startTestServer({ manualClock: true });
});
afterEach(() => server.stop());

/** A separate outbox on the server's kernel, with a mail server that the test controls. */
async function outboxWith(mailer: Mailer, gate: WorkGate | null = null) {
  const { kernel } = server.server;
  const log = { debug() {}, info() {}, warn() {}, error: (message: string) => errors.push(message) };
  const errors: string[] = [];
  const scheduler = new Scheduler(kernel.db, kernel.writer, kernel.clock, kernel.log);
  const outbox = createOutbox({ ...kernel, scheduler, log, gate, mailer: () => mailer });
  await scheduler.start();
  const enqueue = (to: string): Promise<string> =>
    kernel.writer.submit((tx) => outbox.enqueue(tx, ACCOUNT, { to, subject: "s", text: "t" }));
  return { errors, enqueue, scheduler, outbox };
}

test(`at most ${MAIL_CONCURRENCY} e-mails are sent concurrently, the others afterwards`, async () => {
  const sending: { message: MailMessage; taken: () => void }[] = [];
  const send = (message: MailMessage): Promise<string> =>
    new Promise((accept) => {
      sending.push({ message, taken: () => accept("250 OK") });
    });
  const { enqueue, scheduler } = await outboxWith({ send });
  for (let index = 0; index <= MAIL_CONCURRENCY; index += 1) await enqueue(`${index}@example.com`);
  const advanced = server.clock.advance(0);
  while (sending.length < MAIL_CONCURRENCY) await Bun.sleep(1);
  // Time in which another one could begin.
  for (let turn = 0; turn < 20; turn += 1) await Bun.sleep(1);
  expect(sending.map(({ message }) => message.to)).toEqual(
    Array.from({ length: MAIL_CONCURRENCY }, (_, index) => `${index}@example.com`),
  );
  for (const { taken } of sending) taken();
  await Bun.sleep(1);
  while (sending.length <= MAIL_CONCURRENCY) await Bun.sleep(1);
  expect(sending.at(-1)?.message.to).toBe(`${MAIL_CONCURRENCY}@example.com`);
  sending.at(-1)?.taken();
  await advanced;
  await scheduler.stop();
});

test(`an e-mail is dropped after ${MAIL_ATTEMPTS_MAX} attempts, at most an hour apart`, async () => {
  const times: number[] = [];
  const send = (): Promise<string> => {
    times.push(server.clock.now());
    return Promise.reject(new Error("no connection"));
  };
  const { enqueue, errors, scheduler, outbox } = await outboxWith({ send });
  await enqueue("nobody@example.com");
  await server.clock.advance(7 * 24 * 60 * 60 * 1000);
  expect(times).toHaveLength(MAIL_ATTEMPTS_MAX);
  const waits = times.slice(1).map((at, index) => at - (times[index] ?? 0));
  expect(waits.slice(0, 4)).toEqual([1_000, 2_000, 4_000, 8_000]);
  expect(Math.max(...waits)).toBe(60 * 60 * 1000);
  expect(errors).toEqual(["an e-mail was given up"]);
  const { sent, failures, lastError } = outbox.health;
  expect([sent, failures, lastError]).toEqual([0, MAIL_ATTEMPTS_MAX, "Error: no connection"]);
  expect(outbox.health.failingSince).toBe(times[0] ?? null);
  await scheduler.stop();
});

test(`at most ${MAIL_CONCURRENCY} tests are in progress; they show no address of the mail server`, async () => {
  const held = Promise.withResolvers<string>();
  let next: () => Promise<string> = () => held.promise;
  const { scheduler, outbox } = await outboxWith({ send: () => next() });
  const message = { to: "a@example.com", subject: "s", text: "t" };
  const trials = Array.from({ length: MAIL_CONCURRENCY }, () => outbox.trial(message));
  expect((await outbox.trial(message)).error).toBe("other tests are in progress: retry in a minute");
  held.resolve("250 2.0.0 queued");
  for (const trial of await Promise.all(trials))
    expect(trial).toEqual({ status: 250, response: "250 2.0.0 queued", error: null });
  const errors = [
    [
      Object.assign(new Error("connect ECONNREFUSED 10.0.0.5:25"), { code: "ESOCKET" }),
      null,
      "the mail server could not be reached",
    ],
    [
      Object.assign(new Error("x"), { code: "EAUTH", responseCode: 535, response: "535 user ops" }),
      null,
      "the mail server rejected the login of this server",
    ],
    [
      Object.assign(new Error("x"), { responseCode: 550, response: "550 no such user" }),
      550,
      "550 no such user",
    ],
  ] as const;
  for (const [thrown, status, error] of errors) {
    next = () => Promise.reject(thrown);
    expect(await outbox.trial(message)).toEqual({ status, response: null, error });
  }
  await scheduler.stop();
});

test("an e-mail that may not leave now is not sent, and retried", async () => {
  const sent: string[] = [];
  const send = ({ to }: MailMessage): Promise<string> => {
    sent.push(to);
    return Promise.resolve("250 OK");
  };
  let isOpen = false;
  const pass = (): Promise<void> | undefined =>
    isOpen ? undefined : Promise.reject(new Error("this node cannot confirm that it leads"));
  const { enqueue, scheduler, outbox } = await outboxWith({ send }, { pass, open: () => Promise.resolve() });
  await enqueue("later@example.com");
  await server.clock.advance(500);
  expect([sent, outbox.health.sent]).toEqual([[], 0]);
  isOpen = true;
  await server.clock.advance(1_000);
  expect([sent, outbox.health.sent]).toEqual([["later@example.com"], 1]);
  await scheduler.stop();
});
