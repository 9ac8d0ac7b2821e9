import type { Transporter } from "nodemailer";
import { errorText } from "../errors.ts";
import type { Kernel } from "../kernel.ts";
import { backoffMs } from "../outbound/retries.ts";
import { laneName } from "../scheduler/dispatcher.ts";
import type { Job, JobOutcome } from "../scheduler/scheduler.ts";
import type { Tx } from "../storage/tx.ts";

/** Concurrent e-mails: mail servers limit connections. */
export const MAIL_CONCURRENCY = 4;
/** Attempts before an e-mail fails, about a day and a half after the first. */
export const MAIL_ATTEMPTS_MAX = 40;
/** Wait after a failed attempt, doubled each time up to the second value. */
const RETRY_MS = 1_000;
const RETRY_MAX_MS = 60 * 60 * 1000;

/** The kind of the durable job that sends one e-mail. */
export const MAIL_JOB = "mail.send";

/** E-mails that go out for sure: each is a durable job, sealed, retried until the mail server takes it. */
export interface Outbox {
  /** Whether a mail server is configured. Without one, operations that need mail must be rejected beforehand. */
  readonly available: boolean;
  /**
   * Queues a message in the unit of work that causes it. It waits while the account it is sent for is suspended. Returns its
   * id, for {@link withdraw}.
   */
  enqueue(tx: Tx, accountRef: number, message: MailMessage): string;
  /** Removes a queued message that a newer one supersedes. Returns whether it was still queued, or being sent. */
  withdraw(tx: Tx, id: string): boolean;
}

/** What the outbox is built on. */
export interface OutboxDeps extends Pick<Kernel, "scheduler" | "vault" | "clock" | "ids" | "log"> {
  /** Null when no mail server is configured: then messages queued earlier wait until there is one. */
  readonly mailer: Mailer | null;
}

/** Registers the mail job and returns the outbox. */
export function createOutbox(deps: OutboxDeps): Outbox {
  const { scheduler, vault, ids, mailer } = deps;
  if (mailer !== null) {
    scheduler.register(MAIL_JOB, {
      concurrency: MAIL_CONCURRENCY,
      run: (job) => deliver(deps, mailer, job),
    });
  }
  return {
    available: mailer !== null,
    enqueue(tx, accountRef, message) {
      const key = ids.uuidV7();
      const sealed = vault.seal(JSON.stringify(message), `mail:${key}`);
      const payload = { sealed: Buffer.from(sealed).toString("base64") };
      scheduler.enqueue(tx, MAIL_JOB, key, tx.now, payload, laneName(accountRef, "mail"));
      return key;
    },
    withdraw: (tx, id) => scheduler.cancel(tx, MAIL_JOB, id),
  };
}

async function deliver(deps: OutboxDeps, mailer: Mailer, job: Job): Promise<JobOutcome> {
  const { key, attempt } = job;
  const { sealed } = job.payload as { sealed: string };
  const message: MailMessage = JSON.parse(deps.vault.open(Buffer.from(sealed, "base64"), `mail:${key}`));
  try {
    await mailer.send(message);
    return {};
  } catch (error) {
    // The mail server's words may repeat the address, never the text; they help the operator, who sees this log.
    const fields = { mail: key, attempt: attempt + 1, error: errorText(error) };
    if (attempt + 1 >= MAIL_ATTEMPTS_MAX || isRefusedForGood(error)) {
      deps.log.error("an e-mail was given up", fields);
      return {};
    }
    deps.log.warn("an e-mail could not be sent yet", fields);
    return { retryAt: deps.clock.now() + backoffMs(attempt + 1, RETRY_MS, RETRY_MAX_MS) };
  }
}

/** SMTP 5xx: a permanent failure (RFC 5321, section 4.2.1). Failed logins are the operator's to fix. */
function isRefusedForGood(error: unknown): boolean {
  if (typeof error !== "object" || error === null) return false;
  const { responseCode, code } = error as { responseCode?: unknown; code?: unknown };
  return typeof responseCode === "number" && responseCode >= 500 && code !== "EAUTH";
}

/** An e-mail in plain text. */
export interface MailMessage {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
}

/** Hands a message to a mail server. */
export interface Mailer {
  /** Resolves when the server has accepted the message. @throws Error if it could not be reached or rejected it. */
  send(message: MailMessage): Promise<void>;
}

/** How long connecting, greeting and each response of the mail server may take. */
const SMTP_TIMEOUT_MS = 15_000;
/** The same when a mail server is only tried: shorter, since someone waits. */
const VERIFY_TIMEOUT_MS = 10_000;

/**
 * A mailer on an SMTP URL: `smtp://user:password@host:587` (STARTTLS when the server offers it) or
 * `smtps://host:465`. nodemailer's options can stand in the query, such as `?requireTLS=true`.
 */
export function createSmtpMailer(url: string, from: string): Mailer {
  let transport: Transporter | undefined;
  return {
    async send({ to, subject, text }) {
      transport ??= await openTransport(url, SMTP_TIMEOUT_MS);
      await transport.sendMail({ from, to: { name: "", address: to }, subject, text });
    },
  };
}

/**
 * Connects to the mail server, reads its greeting, upgrades to TLS if it is offered or required, and logs in. Sends
 * nothing.
 * @throws Error that says what the server, or the way to it, did.
 */
export async function verifySmtp(url: string): Promise<void> {
  const transport = await openTransport(url, VERIFY_TIMEOUT_MS);
  try {
    await transport.verify();
  } finally {
    transport.close();
  }
}

/** Loaded at the first message: evaluating nodemailer would be a fifth of the start-up of every server. */
async function openTransport(url: string, timeoutMs: number): Promise<Transporter> {
  const { createTransport } = await import("nodemailer");
  return createTransport({
    url,
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
  });
}
