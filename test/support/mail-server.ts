import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SMTPServer } from "smtp-server";

/** A message as the mail server took it. */
export interface ReceivedMail {
  readonly from: string;
  readonly to: readonly string[];
  /** Headers and body as they came, with soft line breaks undone. */
  readonly raw: string;
  /** Whether the connection was encrypted. */
  readonly secure: boolean;
}

/** A certificate for 127.0.0.1 that nobody vouches for. */
export interface SelfSigned {
  readonly key: string;
  readonly cert: string;
}

/** A real SMTP server on loopback that keeps what it gets. */
export class MailServer {
  readonly received: ReceivedMail[] = [];
  /** The answer to every message instead of taking it, such as 451 or 550. */
  refuseWith: number | null = null;
  private server: SMTPServer | null = null;
  private readonly tls: SelfSigned | null;
  private port = 0;

  constructor(tls: SelfSigned | null = null) {
    this.tls = tls;
  }

  /** Its URL for `--smtp-url`, once it has been started. */
  get url(): string {
    return `smtp://127.0.0.1:${this.port}`;
  }

  /** Starts on the port that it had before, if any. */
  async start(): Promise<this> {
    const server = new SMTPServer({
      logger: false,
      disabledCommands: this.tls === null ? ["AUTH", "STARTTLS"] : ["AUTH"],
      ...this.tls,
      onData: (stream, session, done) => {
        const chunks: Buffer[] = [];
        stream.on("data", (chunk: Buffer) => chunks.push(chunk));
        stream.on("end", () => {
          if (this.refuseWith !== null) {
            done(Object.assign(new Error("not today"), { responseCode: this.refuseWith }));
            return;
          }
          const { mailFrom, rcptTo } = session.envelope;
          this.received.push({
            from: mailFrom === false ? "" : mailFrom.address,
            to: rcptTo.map(({ address }) => address),
            raw: Buffer.concat(chunks).toString("utf8").replace(/=\r\n/g, "").replaceAll("=3D", "="),
            secure: session.secure,
          });
          done();
        });
      },
    });
    server.on("error", () => {});
    await new Promise<void>((resolve) => server.listen(this.port, "127.0.0.1", resolve));
    this.port = (server.server.address() as AddressInfo).port;
    this.server = server;
    return this;
  }

  /** Stops answering; the port is refused from then on. */
  async stop(): Promise<void> {
    const { server } = this;
    this.server = null;
    if (server !== null) await new Promise<void>((resolve) => server.close(() => resolve()));
  }
}

/** Makes a self-signed certificate for 127.0.0.1 with openssl; null where there is none. */
export function selfSigned(): SelfSigned | null {
  const openssl = Bun.which("openssl");
  if (openssl === null) return null;
  const folder = mkdtempSync(join(tmpdir(), "ninefold-cert-"));
  try {
    const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
    const subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"];
    const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
    const command = [openssl, "req", "-x509", ...kind, ...subject, "-keyout", key, "-out", cert];
    const { success, stderr } = Bun.spawnSync(command, { stdout: "ignore", stderr: "pipe" });
    if (!success) throw new Error(`openssl: ${stderr.toString()}`);
    return { key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8") };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
