import { undocumented } from "./document.ts";

/** An answer, read whole. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed body; empty when there is none. */
  readonly body: Record<string, unknown>;
}

/** What a test's request can carry besides method, path and body. */
export interface RequestOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** The response was stored by an earlier version, which did not have all of today's fields. */
  readonly storedByEarlierVersion?: boolean;
}

/** Sends requests with a key over a real socket. */
export class Client {
  readonly url: string;
  readonly key: string | null;

  constructor(url: string, key: string | null) {
    this.url = url;
    this.key = key;
  }

  get(path: string, options?: RequestOptions): Promise<Answer> {
    return this.send("GET", path, undefined, options);
  }

  post(path: string, body?: unknown, options?: RequestOptions): Promise<Answer> {
    return this.send("POST", path, body, options);
  }

  patch(path: string, body?: unknown, options?: RequestOptions): Promise<Answer> {
    return this.send("PATCH", path, body, options);
  }

  put(path: string, body?: unknown, options?: RequestOptions): Promise<Answer> {
    return this.send("PUT", path, body, options);
  }

  delete(path: string, options?: RequestOptions): Promise<Answer> {
    return this.send("DELETE", path, undefined, options);
  }

  /**
   * Sends a body as it is when it is text or bytes, as JSON otherwise.
   * @throws Error for a response that the API document does not describe
   */
  async send(method: string, path: string, body?: unknown, options: RequestOptions = {}): Promise<Answer> {
    const headers: Record<string, string> = { ...options.headers };
    if (this.key !== null) headers["authorization"] ??= `Bearer ${this.key}`;
    const init: RequestInit = { method, headers, redirect: "manual" };
    if (body !== undefined) {
      init.body = typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body);
      headers["content-type"] ??= "application/json";
    }
    if (options.signal !== undefined) init.signal = options.signal;
    const response = await fetch(this.url + path, init);
    const text = await response.text();
    const answer = { status: response.status, headers: response.headers, text, body: parse(text) };
    const surprises = undocumented(method, path, answer, options);
    if (surprises.length > 0) {
      throw new Error(`not as the API document says: ${surprises.join("; ")}\n${text.slice(0, 1_000)}`);
    }
    return answer;
  }
}

function parse(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return {};
  }
}
