import { type Answer, Client } from "./client.ts";
import type { TestServer } from "./server.ts";

/** A heartbeat of a test, and how it is pinged. */
export interface TestHeartbeat {
  readonly id: string;
  /** The path of its ping URL. */
  readonly path: string;
  /** Pings it; `signal`: what stands behind the path. */
  ping(signal?: string, body?: string): Promise<Answer>;
  /** As its monitor's view has it. */
  view(): Promise<Record<string, unknown>>;
}

/** Makes a heartbeat. */
export async function makeHeartbeat(
  server: TestServer,
  account: Client,
  terms: object = {},
): Promise<TestHeartbeat> {
  const created = await account.post("/v1/pulse", { type: "heartbeat", ...terms });
  if (created.status !== 201) throw new Error(created.text);
  const id = String(created.body["id"]);
  const path = new URL(String(created.body["ping_url"])).pathname;
  // The server may have started anew since, on another port.
  const client = (key: string | null) => new Client(server.url, key);
  return {
    id,
    path,
    ping: (signal = "", body) => client(null).send(body === undefined ? "GET" : "POST", path + signal, body),
    view: async () => (await client(account.key).get(`/v1/pulse/${id}`)).body,
  };
}

/** The path of a project's pings by slug. */
export async function makePingKey(account: Client): Promise<string> {
  const { body } = await account.post("/v1/pulse/ping-key");
  return `/ping/${body["ping_key"]}`;
}
