import { MailServer } from "./mail-server.ts";
import { startTestServer, type TestServer } from "./server.ts";

/** A server that reaches this machine and sends mails, and the mail server that gets them. */
export interface Mailing {
  readonly server: TestServer;
  readonly mail: MailServer;
}

/** Starts both, with a manual clock. `args`: further options of the server. */
export async function startMailing(args: readonly string[] = []): Promise<Mailing> {
  const mail = await new MailServer().start();
  const server = await startTestServer({
    manualClock: true,
    args: ["--allow-private-targets", "127.0.0.0/8", "--mail-from", "alerts@ninefold.example", ...args],
    environment: { NINEFOLD_SMTP_URL: mail.url },
  });
  return { server, mail };
}
