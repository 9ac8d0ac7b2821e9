import { isIP } from "node:net";
import { domainToASCII } from "node:url";
import type { Transporter } from "nodemailer";

/** An e-mail in plain text. */
export interface MailMessage {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  /** Further headers. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Hands a message to a mail server. */
export interface Mailer {
  /** Resolves with the response of the server when it has accepted the message. @throws Error if it could not be reached or rejected it. */
  send(message: MailMessage): Promise<string>;
}

/** A mail server as it is configured. */
export interface SmtpSettings {
  /**
   * `smtp://user:password@host:587` (STARTTLS when the server offers it) or `smtps://host:465`. nodemailer's options can
   * stand in the query, such as `?requireTLS=true`.
   */
  readonly url: string;
  /** Sender of all messages: an address, or a name and an address in angle brackets. */
  readonly from: string;
  /** The URL at which people reach this server; null if it is not configured. */
  readonly publicUrl: string | null;
}

/** How long connecting, greeting and each response of the mail server may take. */
const SMTP_TIMEOUT_MS = 15_000;
/** The same when a mail server is only tried: shorter, since someone waits. */
const VERIFY_TIMEOUT_MS = 10_000;

/** Marks a message as one that no person wrote (RFC 3834, section 5): automatic replies and absence notes skip it. */
const AUTOMATIC = { "Auto-Submitted": "auto-generated" } as const;

/** A mailer on an SMTP server. Other settings need another one. */
export function createSmtpMailer(settings: SmtpSettings): Mailer {
  let transport: Transporter | undefined;
  return {
    async send({ to, subject, text, headers = {} }) {
      transport ??= await openTransport(settings, SMTP_TIMEOUT_MS);
      const { response } = await transport.sendMail({
        from: settings.from,
        to: { name: "", address: to },
        subject,
        text,
        headers: { ...AUTOMATIC, ...headers },
      });
      return String(response);
    },
  };
}

/**
 * Connects to the mail server, reads its greeting, upgrades to TLS if it is offered or required, and logs in. Sends
 * nothing.
 * @throws Error that says what the server, or the way to it, did.
 */
export async function verifySmtp(settings: SmtpSettings): Promise<void> {
  const transport = await openTransport(settings, VERIFY_TIMEOUT_MS);
  try {
    await transport.verify();
  } finally {
    transport.close();
  }
}

/** Loaded at the first message: evaluating nodemailer would be a fifth of the start-up of every server. */
async function openTransport(settings: SmtpSettings, timeoutMs: number): Promise<Transporter> {
  const { createTransport } = await import("nodemailer");
  return createTransport({
    url: settings.url,
    name: ehloName(settings),
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
  });
}

/**
 * The name with which this server introduces itself (`EHLO`): the host name of the public URL, or else the domain of the
 * sender's address. Many mail servers reject names without a dot and addresses (`[127.0.0.1]`). `?name=` of the SMTP URL
 * overrides it.
 */
export function ehloName({ publicUrl, from }: Pick<SmtpSettings, "publicUrl" | "from">): string {
  const host = URL.parse(publicUrl ?? "")?.hostname ?? "";
  if (host.includes(".") && isIP(host) === 0) return host;
  const domain = from
    .slice(from.lastIndexOf("@") + 1)
    .replaceAll(">", "")
    .trim();
  return (from.includes("@") && domainToASCII(domain)) || "localhost";
}

/**
 * What an unsuccessful attempt was about: the `recipient` (there is no such mailbox: further attempts are useless), this
 * `message` (rejected for its content or by a policy), or the `server` (unreachable, busy, or configured differently: every
 * message fails until that is repaired).
 */
export type MailFault = "recipient" | "message" | "server";

/** Every {@link MailFault}. */
export const MAIL_FAULTS = ["recipient", "message", "server"] as const satisfies readonly MailFault[];

/** Extended codes (RFC 3463) for a policy, or the sender's address. Mail servers often postpone these errors until a recipient is named. */
const POLICY = /^55\d[ -]5\.(?:7\.\d+|1\.[78])\b/;

/** What the error of an attempt was about. */
export function faultOf(error: unknown): MailFault {
  const { responseCode, command, response } = error as {
    responseCode?: unknown;
    command?: unknown;
    response?: unknown;
  };
  if (typeof responseCode !== "number" || responseCode < 500) return "server";
  if (command === "DATA") return "message";
  // 55x are about the mailbox (RFC 5321, section 4.3.2); 50x, 521 and 53x are about the session.
  if (command !== "RCPT TO" || responseCode < 550) return "server";
  return POLICY.test(String(response)) ? "message" : "recipient";
}
