import { createServer, type Server, type Socket } from "node:net";

/** A server that says exactly what a test wants it to say, byte by byte. */
export class RawServer {
  /** Requests as they came, one per head received. */
  readonly requests: string[] = [];
  /** Connections accepted so far. */
  connections = 0;
  /** Connections that are open now. */
  readonly open = new Set<Socket>();
  port = 0;
  /** What happens when a connection is made. */
  onConnection: ((socket: Socket) => void) | null = null;
  private readonly server: Server;

  constructor(respond: (socket: Socket, request: string, connection: number) => void) {
    this.server = createServer((socket) => {
      this.connections += 1;
      const number = this.connections;
      this.open.add(socket);
      this.onConnection?.(socket);
      socket.on("error", () => {});
      socket.on("close", () => this.open.delete(socket));
      let received = "";
      socket.on("data", (bytes: Buffer) => {
        received += bytes.toString("latin1");
        if (!isWhole(received)) return;
        const request = received;
        received = "";
        this.requests.push(request);
        respond(socket, request, number);
      });
    });
  }

  async start(host = "127.0.0.1"): Promise<this> {
    await new Promise<void>((resolve) => this.server.listen(0, host, resolve));
    const address = this.server.address();
    this.port = typeof address === "object" && address !== null ? address.port : 0;
    return this;
  }

  stop(): void {
    for (const socket of this.open) socket.destroy();
    this.server.close();
  }
}

function isWhole(text: string): boolean {
  const end = text.indexOf("\r\n\r\n");
  if (end < 0) return false;
  const length = /content-length: *(\d+)/i.exec(text.slice(0, end))?.[1] ?? "0";
  return text.length >= end + 4 + Number(length);
}
