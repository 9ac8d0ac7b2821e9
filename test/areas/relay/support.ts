import { afterAll, beforeAll, beforeEach, expect } from "bun:test";
import { uuidToBytes } from "../../../src/kernel/data/uuid.ts";
import type { Kernel } from "../../../src/kernel/kernel.ts";
import type { Answer } from "../../support/client.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import { WebhookSink } from "../../support/webhook-sink.ts";

/** A delivery in a response. */
export interface Delivery {
  readonly relay_id: string;
  readonly status: string;
  readonly attempts: number;
  readonly attempt_log: readonly Attempt[];
  readonly [field: string]: unknown;
}

/** An attempt in a response. */
export interface Attempt {
  readonly attempt: number;
  readonly started_at: number;
  readonly request_headers: Readonly<Record<string, string>> | null;
  readonly response_headers: Readonly<Record<string, string>> | null;
  readonly response_body: string | null;
  readonly response_body_base64?: string;
  readonly remote_address: string | null;
  readonly [field: string]: unknown;
}

/** A server on a manual clock with an account, and a target that responds as a test defines. */
export class RelayStage {
  readonly sink = new WebhookSink();

  declare readonly server: TestServer;
  declare account: AccountClient;

  /** Starts the server. */
  async open(environment: Readonly<Record<string, string>>): Promise<void> {
    const args = ["--allow-private-targets", "127.0.0.0/8"];
    const server = await startTestServer({ manualClock: true, args, environment });
    Object.assign(this, { server, account: await server.account() });
  }

  async stop(): Promise<void> {
    await this.server.stop();
    this.sink.stop();
  }

  /** Creates another account and resets the sink, which responds with 200. */
  async anew(): Promise<void> {
    this.account = await this.server.account();
    this.sink.answersBy(() => 200);
    this.sink.take();
  }

  /** Restarts the server; the account's client follows it. */
  async restart(): Promise<void> {
    await this.server.restart();
    const { key, userId, email } = this.account;
    this.account = new (this.account.constructor as typeof AccountClient)(
      this.server.url,
      key ?? "",
      userId,
      email,
    );
  }

  /** Creates a monitor of the sink that alerts the sink. Returns its id. */
  async monitor(): Promise<unknown> {
    const [url, webhook_url] = [this.sink.url("/health"), this.sink.url("/alerts")];
    const { body } = await this.account.post("/v1/pulse", { url, interval: 60_000, webhook_url });
    return body["id"];
  }

  /** Schedules a delivery that is due immediately. */
  async ask(change: object = {}): Promise<Answer> {
    const body = { target_url: this.sink.url("/hook"), method: "POST", delay: "0s", payload: { n: 1 } };
    const answer = await this.account.post("/v1/relay", { ...body, ...change });
    expect(answer.status, answer.text).toBeLessThan(300);
    return answer;
  }

  /** The same, and sends due deliveries. */
  async sent(change: object = {}): Promise<string> {
    const { body } = await this.ask(change);
    await this.server.clock.advance(0);
    return String(body["relay_id"]);
  }

  /** Creates deliveries that fail at their first attempt. */
  async failed(count: number, change: object = {}): Promise<string[]> {
    this.sink.answersBy(() => 400);
    const answers: string[] = [];
    for (let start = 0; start < count; start += 1)
      answers.push(String((await this.ask(change)).body["relay_id"]));
    await this.server.clock.advance(0);
    this.sink.answersBy(() => 200);
    this.sink.take();
    return answers;
  }

  /** Copies the row of a delivery, and restarts the server. */
  async copy(relayId: string, count: number, status = 4): Promise<void> {
    await copyDelivery(this.server.server.kernel, relayId, count, status);
    // New deliveries are numbered after them.
    await this.restart();
  }

  async read(relayId: string): Promise<Delivery> {
    const { body } = await this.account.get(`/v1/relay/${relayId}`);
    return body as unknown as Delivery;
  }

  /** The ids on a page. */
  async listed(query: string): Promise<string[]> {
    const { body, text } = await this.account.get(`/v1/relay?${query}`);
    if (!Array.isArray(body["deliveries"])) throw new Error(text);
    return (body["deliveries"] as { relay_id: string }[]).map(({ relay_id }) => relay_id);
  }
}

/** Sets up a stage for the tests of the file that calls it. Each test has a new account. */
export function relayStage(environment: Readonly<Record<string, string>> = {}): RelayStage {
  const stage = new RelayStage();
  beforeAll(() => stage.open(environment));
  beforeEach(() => stage.anew());
  afterAll(() => stage.stop());
  return stage;
}

/** Copies the row of a delivery: the newest numbers are the copies', which restarted servers continue. */
export async function copyDelivery(
  { db, writer }: Pick<Kernel, "db" | "writer">,
  relayId: string,
  count: number,
  status: number,
): Promise<void> {
  const columns =
    "relay_id, account_ref, project_ref, kind, target_url, method, attempts, scheduled_for, created_at, finished_at";
  const copies = db.change<[status: number, copies: number, relayId: Uint8Array]>(
    `INSERT INTO relays (status, ${columns}) SELECT ?, ${columns} FROM relays, (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT i FROM n) WHERE ref = (SELECT min(ref) FROM relays WHERE relay_id = ?)`,
  );
  await writer.submit((tx) => void copies(tx, status, count, uuidToBytes(relayId)));
}
