import type { FetchLike } from "../../src/client/index.ts";

/** A request, as the client has sent it. */
export interface SentRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

/** A `fetch` that remembers what goes through it. */
export interface Recorder {
  readonly requests: SentRequest[];
  readonly fetch: FetchLike;
}

/** Makes a recorder before the platform's `fetch`, or another one. */
export function createRecorder(send: FetchLike = (url, init) => fetch(url, init)): Recorder {
  const requests: SentRequest[] = [];
  return {
    requests,
    fetch: (url, init) => {
      const { pathname, search } = new URL(url);
      requests.push({
        method: String(init.method),
        path: pathname + search,
        headers: init.headers as Record<string, string>,
        body: typeof init.body === "string" ? init.body : null,
      });
      return send(url, init);
    },
  };
}
