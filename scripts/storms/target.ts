import { type Answer, Connection, ConnectionLost } from "../processes/connection.ts";

/** The server of the moment: there, about to be ended, or gone. */
export class Target {
  private url = "";
  private readonly key: () => string;
  private up = Promise.withResolvers<void>();
  /** Set from just before the server is ended until the next one is there. */
  ending = true;

  constructor(key: () => string) {
    this.key = key;
  }

  /** A server is there. */
  attach(url: string): void {
    this.url = url;
    this.ending = false;
    this.up.resolve();
  }

  /** The server is about to be ended: requests may stay unanswered from here on. */
  expectEnd(): void {
    this.ending = true;
    this.up = Promise.withResolvers<void>();
  }

  /** Resolves while a server is there. */
  get ready(): Promise<void> {
    return this.up.promise;
  }

  /** Opens a connection. @throws ConnectionLost when nobody listens. */
  async open(url: string = this.url): Promise<Connection> {
    try {
      return await Connection.open(url);
    } catch {
      throw new ConnectionLost("nobody listens");
    }
  }

  /** Sends a request about a lock. @throws ConnectionLost */
  ask(connection: Connection, path: string, body: object): Promise<Answer> {
    return connection.request({
      method: "POST",
      path: `/v1/latch/${path}`,
      headers: { authorization: `Bearer ${this.key()}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  }
}
