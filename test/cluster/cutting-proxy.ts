/** What a proxy does with the bytes of the next exchange. */
type Cut = "request" | "response" | null;

/** Passes bytes on to a port of this machine, and can cut a connection in the middle of a call. */
export class CuttingProxy {
  private cut: Cut = null;
  private isMute = false;
  private held: Promise<void> | null = null;
  /** Connections that were made. */
  connections = 0;
  private readonly listener: Bun.TCPSocketListener<{ other: Promise<Bun.Socket> }>;

  constructor(private readonly target: number) {
    this.listener = Bun.listen<{ other: Promise<Bun.Socket> }>({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        open: (client) => {
          this.connections += 1;
          client.data = { other: this.connect(client) };
        },
        data: async (client, bytes) => {
          const copy = Buffer.from(bytes);
          const other = await client.data.other;
          await this.held;
          if (this.isCut("request", client)) other.end();
          else other.write(copy);
        },
        close: async (client) => {
          const other = await client.data.other;
          // A server drops a request whose sender is gone before it has read the request.
          if (this.held === null) other.end();
        },
      },
    });
  }

  get port(): number {
    return this.listener.port;
  }

  /** Loses the next request before it arrives, or its response. */
  cutNext(cut: "request" | "response"): void {
    this.cut = cut;
  }

  /** From now on requests arrive, and no response comes back. */
  mute(): void {
    this.isMute = true;
  }

  /** Keeps requests back, as a slow network does, until the returned function is called: they arrive also when their sender is gone. */
  hold(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.held = promise;
    return () => {
      this.held = null;
      resolve();
    };
  }

  stop(): void {
    this.listener.stop(true);
  }

  private connect(client: Bun.Socket<{ other: Promise<Bun.Socket> }>): Promise<Bun.Socket> {
    return Bun.connect({
      hostname: "127.0.0.1",
      port: this.target,
      socket: {
        data: (other, bytes) => {
          if (this.isMute) return;
          if (this.isCut("response", client)) other.end();
          else client.write(bytes);
        },
        close: () => void client.end(),
      },
    });
  }

  private isCut(what: Cut, client: Bun.Socket<{ other: Promise<Bun.Socket> }>): boolean {
    if (this.cut !== what) return false;
    this.cut = null;
    client.terminate();
    return true;
  }
}
