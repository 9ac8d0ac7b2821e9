import type { AddressInfo } from "node:net";
import { createServer, type Server, type Socket } from "node:net";

/** Where in a dialogue a mail server can reject: at its greeting, after a command, or after the text of a message (`.`). */
export type MailStage = "greeting" | "EHLO" | "AUTH" | "MAIL" | "RCPT" | "DATA" | ".";

/** A mail server on loopback that answers as a test says, at stages at which the real one cannot reject. */
export class ScriptedMailServer {
  /** The response at one stage instead of success; `EHLO` includes the HELO that follows. */
  reject: { readonly at: MailStage; readonly reply: string } | null = null;
  /** The first words of the commands, such as `EHLO mail.example`. */
  readonly commands: string[] = [];
  /** Texts of the messages that it accepted. */
  readonly accepted: string[] = [];
  private readonly server: Server;
  /** Successful responses to commands. */
  private readonly responses: Readonly<Record<string, string>>;
  private readonly sockets = new Set<Socket>();

  /** `extensions`: lines of its response to EHLO, such as `PIPELINING`. */
  constructor(extensions: readonly string[] = []) {
    const lines = ["scripted.example", "AUTH PLAIN", ...extensions];
    this.responses = {
      EHLO: lines.map((line, at) => `250${at === lines.length - 1 ? " " : "-"}${line}`).join("\r\n"),
      AUTH: "235 2.7.0 welcome",
      MAIL: "250 2.1.0 sender",
      RCPT: "250 2.1.5 recipient",
      DATA: "354 go ahead",
    };
    this.server = createServer((socket) => this.serve(socket));
  }

  /** Its URL for `--smtp-url`, with a login. */
  get url(): string {
    return `smtp://ada:secret@127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    return this;
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise<void>((resolve) => this.server.close(() => resolve()));
  }

  private serve(socket: Socket): void {
    this.sockets.add(socket);
    socket.on("close", () => this.sockets.delete(socket));
    socket.on("error", () => {});
    const reply = (stage: MailStage, success: string): boolean => {
      const { reject } = this;
      const isRejected = reject?.at === stage;
      socket.write(`${isRejected ? reject.reply : success}\r\n`);
      return !isRejected;
    };
    let pending = "";
    let message: string[] | null = null;
    const take = (line: string): void => {
      if (message !== null) {
        if (line !== ".") message.push(line);
        else if (reply(".", "250 2.0.0 taken")) this.accepted.push(message.join("\n"));
        if (line === ".") message = null;
        return;
      }
      const word = line.split(/[ :]/)[0]?.toUpperCase() ?? "";
      this.commands.push(word === "AUTH" ? word : line);
      const command = (word === "HELO" ? "EHLO" : word) as MailStage;
      const known = this.responses[command];
      if (known === undefined) socket.write("221 2.0.0 bye\r\n");
      else if (reply(command, known) && word === "DATA") message = [];
    };
    socket.on("data", (chunk: Buffer) => {
      const lines = (pending + chunk.toString("latin1")).split("\r\n");
      pending = lines.pop() ?? "";
      for (const line of lines) take(line);
    });
    reply("greeting", "220 scripted.example ESMTP");
  }
}
