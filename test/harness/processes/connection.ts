/** A complete response. Header names are in lower case. */
export interface HttpResponse {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly text: string;
}

/** A request as it is sent. */
export interface WireRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** The connection ended before the response was whole: whether the request was carried out is in doubt. */
export class ConnectionLost extends Error {}

interface Waiting {
  readonly resolve: (response: HttpResponse) => void;
  readonly reject: (error: Error) => void;
}

/**
 * One keep-alive HTTP/1.1 connection, one request at a time. Unlike fetch it never sends anything twice, so the caller
 * knows exactly which requests have a response and which are in doubt. It reads responses with a Content-Length, and in
 * chunks, as Ninefold sends large ones.
 */
export class Connection {
  private readonly host: string;
  private socket: Bun.Socket | null = null;
  private received: Buffer = Buffer.alloc(0);
  private waiting: Waiting | null = null;
  private unsent: Buffer = Buffer.alloc(0);
  private closed = false;

  private constructor(host: string) {
    this.host = host;
  }

  /** Connects. @throws Error when no server is listening. */
  static async open(url: string): Promise<Connection> {
    const { hostname, port, host } = new URL(url);
    const connection = new Connection(host);
    connection.socket = await Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        data: (_socket, chunk) => connection.take(chunk),
        drain: () => connection.write(""),
        close: () => connection.lose(),
        error: () => connection.lose(),
        end: () => connection.lose(),
      },
    });
    return connection;
  }

  /** Whether another request can be sent. */
  get usable(): boolean {
    return !this.closed && this.waiting === null;
  }

  /** Sends a request. @throws ConnectionLost without a complete response. */
  request(request: WireRequest): Promise<HttpResponse> {
    if (this.closed || this.socket === null) return Promise.reject(new ConnectionLost("not connected"));
    if (this.waiting !== null) return Promise.reject(new Error("a request is in flight on this connection"));
    return new Promise((resolve, reject) => {
      this.waiting = { resolve, reject };
      this.write(this.headOf(request) + (request.body ?? ""));
    });
  }

  /** Sends text unchanged, for requests that arrive in pieces. What the socket cannot accept yet is sent later. */
  write(text: string): void {
    this.unsent = Buffer.concat([this.unsent, Buffer.from(text)]);
    if (this.unsent.length === 0) return;
    const written = this.socket?.write(this.unsent) ?? 0;
    this.unsent = this.unsent.subarray(Math.max(0, written));
  }

  /** Waits for the response to what {@link write} sent. */
  answer(): Promise<HttpResponse> {
    return new Promise((resolve, reject) => {
      this.waiting = { resolve, reject };
      this.deliver();
    });
  }

  close(): void {
    this.socket?.end();
  }

  /** The head of a request, up to and with its empty line. */
  headOf({ method, path, headers, body }: WireRequest): string {
    const lines = [`${method} ${path} HTTP/1.1`, `Host: ${this.host}`];
    for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
    if (body !== undefined) lines.push(`Content-Length: ${Buffer.byteLength(body)}`);
    return `${lines.join("\r\n")}\r\n\r\n`;
  }

  private take(chunk: Buffer): void {
    this.received = this.received.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.received, chunk]);
    this.deliver();
  }

  private deliver(): void {
    const waiting = this.waiting;
    if (waiting === null) return;
    const headEnd = this.received.indexOf("\r\n\r\n");
    if (headEnd < 0) return;
    const [statusLine = "", ...fields] = this.received.toString("latin1", 0, headEnd).split("\r\n");
    const headers = new Map(
      fields.map((field): [string, string] => {
        const colon = field.indexOf(":");
        return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()];
      }),
    );
    const bodyStart = headEnd + 4;
    const found =
      headers.get("transfer-encoding") === "chunked"
        ? chunkedBody(this.received, bodyStart)
        : sizedBody(this.received, bodyStart, Number(headers.get("content-length") ?? 0));
    if (found === null) return;
    this.received = this.received.subarray(found.end);
    this.waiting = null;
    const text = found.body.toString("utf8");
    waiting.resolve({ status: Number(statusLine.split(" ")[1]), headers, text });
  }

  private lose(): void {
    this.closed = true;
    const waiting = this.waiting;
    this.waiting = null;
    waiting?.reject(new ConnectionLost("the connection ended before the response was complete"));
  }
}

/** A body, and where it ends in the bytes that were received; null while it is not complete. */
type FoundBody = { readonly body: Buffer; readonly end: number } | null;

function sizedBody(bytes: Buffer, start: number, size: number): FoundBody {
  const end = start + size;
  return bytes.length < end ? null : { body: bytes.subarray(start, end), end };
}

/** Chunks, each after a line with its size, up to an empty one. */
function chunkedBody(bytes: Buffer, start: number): FoundBody {
  const chunks: Buffer[] = [];
  for (let at = start; ; ) {
    const line = bytes.indexOf("\r\n", at);
    if (line < 0) return null;
    const size = Number.parseInt(bytes.toString("latin1", at, line), 16);
    const end = line + 2 + size + 2;
    if (bytes.length < end) return null;
    if (size === 0) return { body: Buffer.concat(chunks), end };
    chunks.push(bytes.subarray(line + 2, line + 2 + size));
    at = end;
  }
}
