import type { Transporter } from "nodemailer";

/** An e-mail in plain text. */
export interface MailMessage {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
}

/** Hands a message to a mail server. */
export interface Mailer {
  /** Resolves once the server has taken the message. @throws Error when it could not be reached or refused. */
  send(message: MailMessage): Promise<void>;
}

/** How long connecting, greeting and each answer of the mail server may take. */
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
 * Connects to the mail server, reads its greeting, turns to TLS where it is offered or asked for, and logs in. Sends
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
