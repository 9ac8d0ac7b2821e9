import type { Connection } from "./connection.ts";
import { FIRST_BYTES_MAX } from "./first-bytes.ts";
import { type Deadline, OutboundFailure } from "./outcome.ts";

/** One command of a dialog, and its reply. */
interface Step {
  /** Without the end of the line; null: the server speaks first. */
  readonly command: string | null;
  /** Whether a line is the last one of the reply. */
  readonly last: RegExp;
  /** The last line of a reply that accepts the command. */
  readonly accepted: RegExp;
}

/** Commands before the TLS handshake, by protocol: RFC 3207, RFC 3501 (section 6.2.1), RFC 2595 (section 4). */
const DIALOGS = {
  "starttls-smtp": [
    { command: null, last: /^\d{3}(?: |$)/, accepted: /^220/ },
    // The address literal of a client without a name.
    { command: "EHLO [127.0.0.1]", last: /^\d{3}(?: |$)/, accepted: /^250/ },
    { command: "STARTTLS", last: /^\d{3}(?: |$)/, accepted: /^220/ },
  ],
  "starttls-imap": [
    { command: null, last: /^\* /, accepted: /^\* OK(?: |$)/i },
    { command: "a1 STARTTLS", last: /^a1 /i, accepted: /^a1 OK(?: |$)/i },
  ],
  "starttls-pop3": [
    { command: null, last: /^/, accepted: /^\+OK/ },
    { command: "STLS", last: /^/, accepted: /^\+OK/ },
  ],
} as const satisfies Readonly<Record<string, readonly Step[]>>;

/** A protocol in which TLS begins by a command. */
export type StartTls = keyof typeof DIALOGS;
/** Names of all of them. */
export const START_TLS = Object.keys(DIALOGS) as StartTls[];

/**
 * Has the other end begin TLS. Returns what it sent first.
 * @throws OutboundFailure `timeout`, `reset`; `malformed` for another protocol, `tls` if it does not accept, `too-large` for
 *   replies of more than {@link FIRST_BYTES_MAX} bytes together
 */
export async function requestTls(
  connection: Connection,
  protocol: StartTls,
  deadline: Deadline,
): Promise<string> {
  const replies = new Replies(connection);
  let greeting: string | null = null;
  for (const step of DIALOGS[protocol]) {
    const reply = await replies.after(step, deadline);
    greeting ??= reply;
  }
  connection.listener = null;
  // Somebody on the way may have sent it, to be taken for what was sent over TLS.
  if (replies.hasMore) throw new OutboundFailure("tls", "the server sent more before the TLS handshake");
  return greeting ?? "";
}

/** Replies of a server, line by line. */
class Replies {
  private unread = "";
  private bytes = 0;

  constructor(private readonly connection: Connection) {}

  /** Whether there is more than the replies that were read. */
  get hasMore(): boolean {
    return this.unread !== "";
  }

  /** The reply to a command. @throws OutboundFailure */
  after({ command, last, accepted }: Step, deadline: Deadline): Promise<string> {
    const { connection } = this;
    let reply = "";
    return deadline.within<string>((settle) => {
      const read = (): void => {
        for (let end = this.unread.indexOf("\n"); end >= 0; end = this.unread.indexOf("\n")) {
          const line = this.unread.slice(0, end).replace(/\r$/, "");
          this.unread = this.unread.slice(end + 1);
          reply += `${line}\n`;
          if (!last.test(line)) continue;
          if (accepted.test(line)) settle.resolve(reply);
          else settle.reject(rejection(command));
          return;
        }
      };
      connection.listener = {
        onBytes: (bytes) => {
          this.bytes += bytes.length;
          this.unread += bytes.toString("latin1");
          if (this.bytes > FIRST_BYTES_MAX)
            settle.reject(new OutboundFailure("too-large", "the server's replies before TLS are too long"));
          else read();
        },
        onEnd: () =>
          settle.reject(new OutboundFailure("reset", "the connection was closed before the TLS handshake")),
      };
      if (!connection.isOpen) connection.listener.onEnd();
      else if (command === null) read();
      else connection.write(Buffer.from(`${command}\r\n`));
    });
  }
}

function rejection(command: string | null): OutboundFailure {
  return command === null
    ? new OutboundFailure("malformed", "the greeting is not that of this protocol")
    : new OutboundFailure("tls", "the server does not accept STARTTLS");
}
