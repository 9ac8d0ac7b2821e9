import { afterEach, beforeEach, expect, test } from "bun:test";
import type { Mailer, MailMessage } from "../../../src/kernel/mail/outbox.ts";
import { createOutbox, MAIL_ATTEMPTS_MAX, MAIL_CONCURRENCY } from "../../../src/kernel/mail/outbox.ts";
import { Scheduler } from "../../../src/kernel/scheduler/scheduler.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

/** The operator's account. */
const ACCOUNT = 1;

let server: TestServer;
beforeEach(async () => {
  server = await startTestServer({ manualClock: true });
});
afterEach(() => server.stop());

/** A separate outbox on the server's kernel, with a mail server that the test controls. */
async function outboxWith(mailer: Mailer) {
  const { kernel } = server.server;
  const log = { debug() {}, info() {}, warn() {}, error: (message: string) => errors.push(message) };
  const errors: string[] = [];
  const scheduler = new Scheduler(kernel.db, kernel.writer, kernel.clock, kernel.log);
  const outbox = createOutbox({ ...kernel, scheduler, log, mailer });
  await scheduler.start();
  const enqueue = (to: string): Promise<string> =>
    kernel.writer.submit((tx) => outbox.enqueue(tx, ACCOUNT, { to, subject: "s", text: "t" }));
  return { errors, enqueue, scheduler };
}

test(`at most ${MAIL_CONCURRENCY} e-mails are sent concurrently, the others afterwards`, async () => {
  const sending: { message: MailMessage; taken: () => void }[] = [];
  const send = (message: MailMessage): Promise<void> =>
    new Promise((taken) => {
      sending.push({ message, taken });
    });
  const { enqueue, scheduler } = await outboxWith({ send });
  for (let index = 0; index <= MAIL_CONCURRENCY; index += 1) await enqueue(`${index}@example.com`);
  const advanced = server.clock.advance(0);
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
  const send = (): Promise<void> => {
    times.push(server.clock.now());
    return Promise.reject(new Error("no connection"));
  };
  const { enqueue, errors, scheduler } = await outboxWith({ send });
  await enqueue("nobody@example.com");
  await server.clock.advance(7 * 24 * 60 * 60 * 1000);
  expect(times).toHaveLength(MAIL_ATTEMPTS_MAX);
  const waits = times.slice(1).map((at, index) => at - (times[index] ?? 0));
  expect(waits.slice(0, 4)).toEqual([1_000, 2_000, 4_000, 8_000]);
  expect(Math.max(...waits)).toBe(60 * 60 * 1000);
  expect(errors).toEqual(["an e-mail was given up"]);
  await scheduler.stop();
});
