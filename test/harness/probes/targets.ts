/** A target of a monitor: a path of an HTTP server, or a port. */
export interface Target {
  /** The fields of its monitor. */
  readonly body: Readonly<Record<string, unknown>>;
  /** Whether it sees checks while it is down. */
  readonly seesAll: boolean;
  readonly seen: number[];
  setUp(isUp: boolean): void;
}

/** What monitors check: targets on loopback, each of which is up or down, and notes when it was checked. */
export class Targets {
  private readonly paths: { seen: number[]; isUp: boolean }[] = [];
  private readonly ports: { stop(closeConnections: boolean): void }[] = [];
  private readonly server;

  constructor() {
    this.server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: ({ url }) => {
        const path = this.paths[Number(url.slice(url.lastIndexOf("/") + 1))];
        path?.seen.push(Date.now());
        return new Response(null, { status: path?.isUp ? 204 : 503 });
      },
    });
  }

  /** A path, which responds with 503 while it is down. */
  http(): Target {
    const path = { seen: [] as number[], isUp: true };
    const number = this.paths.push(path) - 1;
    const setUp = (isUp: boolean) => {
      path.isUp = isUp;
    };
    return { body: { url: `${this.server.url}${number}` }, seesAll: true, seen: path.seen, setUp };
  }

  /** A port, which is closed while it is down. */
  tcp(port: number): Target {
    const seen: number[] = [];
    const listen = () =>
      Bun.listen({
        hostname: "127.0.0.1",
        port,
        socket: { open: () => void seen.push(Date.now()), data: () => undefined },
      });
    let listener: ReturnType<typeof listen> | null = listen();
    this.ports.push({ stop: (closes) => listener?.stop(closes) });
    const setUp = (isUp: boolean) => {
      if (!isUp) listener?.stop(true);
      listener = isUp ? listen() : null;
    };
    return { body: { type: "tcp", host: "127.0.0.1", port }, seesAll: false, seen, setUp };
  }

  stop(): void {
    this.server.stop(true);
    for (const port of this.ports) port.stop(true);
  }
}
