import type { Span } from "./record.ts";

/**
 * What a partition does: `cut` closes connections, `freeze` delivers everything later, and `drop` nothing of what was open,
 * whose ends notice by themselves.
 */
export const PARTITIONS = ["cut", "freeze", "drop"] as const;
/** One of {@link PARTITIONS}. */
export type Partition = (typeof PARTITIONS)[number];

/** One end of a relayed connection. */
interface End {
  /** What arrived for it. */
  queue: Uint8Array[];
  /** Null until it is connected. */
  socket: Bun.Socket<Relayed> | null;
  /** Whether the other end has closed: it is closed once everything is delivered. */
  isOver: boolean;
}

interface Relayed {
  readonly client: End;
  readonly server: End;
  /** Whether a partition has swallowed it. */
  isDropped: boolean;
}

/** A TCP relay on loopback, between a probe and the server, that can be partitioned. */
export class Link {
  /** Partitions that are over, and the current one. */
  readonly cuts: { from: number; to: number }[] = [];
  private readonly listener;
  private readonly connections = new Set<Relayed>();
  private partition: Partition | null = null;

  /** `port`: that of the server. */
  constructor(private readonly port: number) {
    this.listener = Bun.listen<Relayed>({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        open: (socket) => this.accept(socket),
        data: (socket, chunk) => this.take(socket.data, "server", chunk),
        drain: (socket) => this.deliver(socket.data, "client"),
        close: (socket) => this.end(socket.data, "client"),
        error: (socket) => this.end(socket.data, "client"),
      },
    });
  }

  /** The URL of the server by this link. */
  get url(): string {
    return `http://127.0.0.1:${this.listener.port}`;
  }

  /** Partitions probe and server until {@link heal}. */
  break(partition: Partition): void {
    this.partition = partition;
    this.cuts.push({ from: Date.now(), to: Number.POSITIVE_INFINITY });
    for (const relayed of this.connections) {
      if (partition === "drop") relayed.isDropped = true;
      if (partition === "cut") this.close(relayed);
    }
  }

  heal(): void {
    this.partition = null;
    const cut = this.cuts.at(-1);
    if (cut !== undefined) cut.to = Math.min(cut.to, Date.now());
    for (const relayed of this.connections) {
      if (relayed.isDropped) continue;
      if (relayed.server.socket === null) this.connect(relayed);
      this.deliver(relayed, "client");
      this.deliver(relayed, "server");
    }
  }

  /** The partitions up to now. */
  spans(): Span[] {
    const now = Date.now();
    return this.cuts.map(({ from, to }) => ({ from, to: Math.min(to, now) }));
  }

  stop(): void {
    this.listener.stop(true);
    for (const relayed of this.connections) this.close(relayed);
  }

  private accept(socket: Bun.Socket<Relayed>): void {
    const relayed: Relayed = {
      client: { queue: [], socket, isOver: false },
      server: { queue: [], socket: null, isOver: false },
      isDropped: this.partition === "drop",
    };
    socket.data = relayed;
    this.connections.add(relayed);
    if (this.partition === "cut") this.close(relayed);
    if (this.partition === null) this.connect(relayed);
  }

  private connect(relayed: Relayed): void {
    Bun.connect<Relayed>({
      hostname: "127.0.0.1",
      port: this.port,
      data: relayed,
      socket: {
        open: (socket) => {
          relayed.server.socket = socket;
          this.deliver(relayed, "server");
        },
        data: (_, chunk) => this.take(relayed, "client", chunk),
        drain: () => this.deliver(relayed, "server"),
        close: () => this.end(relayed, "server"),
        error: () => this.end(relayed, "server"),
      },
    }).catch(() => this.close(relayed));
  }

  /** Takes bytes for an end. */
  private take(relayed: Relayed, to: "client" | "server", chunk: Uint8Array): void {
    if (relayed.isDropped) return;
    relayed[to].queue.push(new Uint8Array(chunk));
    this.deliver(relayed, to);
  }

  /** Delivers what waits for an end. */
  private deliver(relayed: Relayed, to: "client" | "server"): void {
    const end = relayed[to];
    if (this.partition !== null || relayed.isDropped || end.socket === null) return;
    for (let chunk = end.queue[0]; chunk !== undefined; chunk = end.queue[0]) {
      const written = end.socket.write(chunk);
      if (written < chunk.length) {
        end.queue[0] = chunk.subarray(Math.max(0, written));
        return;
      }
      end.queue.shift();
    }
    if (end.isOver) this.close(relayed);
  }

  /** An end has closed: what it has sent before is still delivered. */
  private end(relayed: Relayed, from: "client" | "server"): void {
    if (relayed.isDropped) {
      this.close(relayed);
      return;
    }
    const to = from === "client" ? "server" : "client";
    relayed[to].isOver = true;
    this.deliver(relayed, to);
  }

  private close(relayed: Relayed): void {
    this.connections.delete(relayed);
    relayed.client.socket?.end();
    relayed.server.socket?.end();
  }
}
