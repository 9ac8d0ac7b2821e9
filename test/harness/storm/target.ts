import { Connection, ConnectionLost, type HttpResponse } from "../processes/connection.ts";

/** The current server: running, about to be stopped, or stopped. */
export class Target {
  private url = "";
  private readonly key: () => string;
  private up = Promise.withResolvers<void>();
  /** True from just before a stop until the next server is running. */
  isStopping = true;

  constructor(key: () => string) {
    this.key = key;
  }

  /** Sets the running server. */
  attach(url: string): void {
    this.url = url;
    this.isStopping = false;
    this.up.resolve();
  }

  /** The server is about to be stopped: requests may fail from now on. */
  expectStop(): void {
    this.isStopping = true;
    this.up = Promise.withResolvers<void>();
  }

  /** Resolves when a server is running. */
  get ready(): Promise<void> {
    return this.up.promise;
  }

  /** Opens a connection. @throws ConnectionLost when the connection fails. */
  async open(url: string = this.url): Promise<Connection> {
    try {
      return await Connection.open(url);
    } catch {
      throw new ConnectionLost("connection refused");
    }
  }

  /** Sends a request for a lock. @throws ConnectionLost */
  send(connection: Connection, path: string, body: object): Promise<HttpResponse> {
    return connection.request({
      method: "POST",
      path: `/v1/latch/${path}`,
      headers: { authorization: `Bearer ${this.key()}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  }
}
