import { expect } from "bun:test";

/** A stream of events that is read as it comes. */
export class EventReader {
  text = "";
  hasEnded = false;
  /** Whether the server has ended it, not the end of its connection: that comes to streams that a stop has waited for in vain. */
  isComplete = false;
  private readonly controller = new AbortController();
  private woken = Promise.withResolvers<void>();

  /** Opens the stream: 200, and the headers that every stream has. */
  async read(url: string, headers: Readonly<Record<string, string>> = {}): Promise<this> {
    const response = await fetch(url, { headers, signal: this.controller.signal });
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(response.headers.get("x-accel-buffering")).toBe("no");
    expect(response.headers.get("content-encoding")).toBeNull();
    this.take(response.body).catch(() => {});
    return this;
  }

  close(): void {
    this.controller.abort();
  }

  async until(isThere: (text: string, hasEnded: boolean) => boolean): Promise<void> {
    while (!isThere(this.text, this.hasEnded)) await this.woken.promise;
  }

  private async take(body: ReadableStream<Uint8Array> | null): Promise<void> {
    const decoder = new TextDecoder();
    try {
      for await (const chunk of body ?? []) {
        this.text += decoder.decode(chunk, { stream: true });
        this.wake();
      }
      this.isComplete = true;
    } finally {
      this.hasEnded = true;
      this.wake();
    }
  }

  private wake(): void {
    const { resolve } = this.woken;
    this.woken = Promise.withResolvers();
    resolve();
  }
}
