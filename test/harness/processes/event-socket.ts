/** Streams that are opened concurrently: the accept queue of a server has at least this size. */
const OPENED_TOGETHER = 50;
const HEAD_END = "\r\n\r\n";

/** A stream of events on a bare socket, so that thousands of them need few resources. */
export class EventSocket {
  private socket: { write(text: string): number; end(): void } | null = null;
  private text = "";
  private isOpen = false;
  private readonly opened = Promise.withResolvers<this>();
  private readonly event = Promise.withResolvers<number>();

  /** Opens a stream and waits for its first event. @throws Error for any other response. */
  static async open(url: string, path: string): Promise<EventSocket> {
    const { hostname, port, host } = new URL(url);
    const stream = new EventSocket();
    stream.event.promise.catch(() => {});
    stream.socket = await Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        data: (_socket, chunk) => stream.take(chunk),
        close: () => stream.lose(),
        error: () => stream.lose(),
      },
    });
    stream.socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAccept: text/event-stream${HEAD_END}`);
    return stream.opened.promise;
  }

  /** Time of its first event, by `performance.now()`. */
  get heard(): Promise<number> {
    return this.event.promise;
  }

  close(): void {
    this.socket?.end();
  }

  private take(chunk: Buffer): void {
    // Parsed data is discarded.
    this.text += chunk.toString("latin1");
    if (!this.isOpen) this.begin();
    if (!this.isOpen) return;
    if (this.text.includes("data: ")) this.event.resolve(performance.now());
    this.text = "";
  }

  private begin(): void {
    if (!this.text.includes(HEAD_END)) return;
    if (!this.text.startsWith("HTTP/1.1 200 ")) {
      this.opened.reject(new Error(`no stream: ${this.text.split(HEAD_END, 1)[0]}`));
      this.close();
    } else if (this.text.includes(": ok\n\n")) {
      this.isOpen = true;
      this.opened.resolve(this);
    }
  }

  private lose(): void {
    const lost = new Error("the stream has ended");
    this.opened.reject(lost);
    this.event.reject(lost);
  }
}

/** Opens many streams, a few at a time. */
export async function openEventSockets(url: string, path: string, count: number): Promise<EventSocket[]> {
  const open: EventSocket[] = [];
  while (open.length < count) {
    const some = Math.min(OPENED_TOGETHER, count - open.length);
    open.push(...(await Promise.all(Array.from({ length: some }, () => EventSocket.open(url, path)))));
  }
  return open;
}
