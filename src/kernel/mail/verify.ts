import { createTransport } from "nodemailer";

/** How long connecting, greeting and each answer may take. Shorter than when an e-mail is sent: someone waits. */
const SMTP_TIMEOUT_MS = 10_000;

/**
 * Connects to the mail server, reads its greeting, turns to TLS where it is offered or asked for, and logs in. Sends
 * nothing.
 * @throws Error that says what the server, or the way to it, did.
 */
export async function verifySmtp(url: string): Promise<void> {
  const transport = createTransport({
    url,
    connectionTimeout: SMTP_TIMEOUT_MS,
    greetingTimeout: SMTP_TIMEOUT_MS,
    socketTimeout: SMTP_TIMEOUT_MS,
  });
  try {
    await transport.verify();
  } finally {
    transport.close();
  }
}
