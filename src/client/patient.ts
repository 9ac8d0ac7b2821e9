import type { FetchLike } from "./options.ts";

/** From this on a wait may outlast the platform's `fetch`: Node's gives up after 300 s without an answer. */
export const PATIENT_FROM_MS = 240_000;
/** How often the connection shows that it lives, so that no address translation on the way forgets it. */
const KEEP_ALIVE_MS = 30_000;

/** The part of Node's `process` that is used here. */
interface NodeProcess {
  getBuiltinModule?(name: string): unknown;
}

interface NodeResponse extends AsyncIterable<Uint8Array> {
  readonly statusCode?: number;
  readonly rawHeaders: readonly string[];
}

interface NodeRequest {
  on(event: "socket", listener: (socket: { setKeepAlive(on: boolean, ms: number): void }) => void): void;
  on(event: "error", listener: (error: Error) => void): void;
  on(event: "response", listener: (response: NodeResponse) => void): void;
  end(body?: unknown): void;
}

interface NodeHttp {
  request(url: string, options: object): NodeRequest;
}

/** A `fetch` for requests whose answer takes long. Where there is none, the platform's own has to do. */
export function patientFetch(): FetchLike {
  const { Bun, process } = globalThis as { Bun?: unknown; process?: NodeProcess };
  // Not in the types of other platforms.
  if (Bun !== undefined) return (url, init) => fetch(url, { ...init, timeout: false } as RequestInit);
  // Asked for like this, bundles for browsers hold nothing of Node.
  const load = process?.getBuiltinModule?.bind(process);
  if (load === undefined) return (url, init) => fetch(url, init);
  return (url, init) =>
    fetchByNode(load(url.startsWith("https:") ? "node:https" : "node:http") as NodeHttp, url, init);
}

/** One request on a connection of its own, with no time-out but the signal's. */
function fetchByNode(http: NodeHttp, url: string, init: RequestInit): Promise<Response> {
  return new Promise((resolve, reject) => {
    const { method, headers, signal, body } = init;
    const options = { method, headers, agent: false, ...(signal ? { signal } : {}) };
    const request = http.request(url, options);
    request.on("error", reject);
    request.on("socket", (socket) => socket.setKeepAlive(true, KEEP_ALIVE_MS));
    request.on("response", (response) => readWhole(response).then(resolve, reject));
    request.end(body);
  });
}

async function readWhole(response: NodeResponse): Promise<Response> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  for await (const chunk of response) chunks.push(new Uint8Array(chunk));
  const headers = new Headers();
  const { rawHeaders, statusCode = 0 } = response;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2)
    headers.append(rawHeaders[at] ?? "", rawHeaders[at + 1] ?? "");
  const bodyless = statusCode === 204 || statusCode === 304;
  return new Response(bodyless ? null : new Blob(chunks), { status: statusCode, headers });
}
