import { afterEach, beforeEach, expect } from "bun:test";
import { AccountClient, startTestServer, type TestServer } from "../../support/server.ts";
import { WebhookSink } from "../../support/webhook-sink.ts";

/** A server on a manual clock with an account, a target that responds as a test defines, and a receiver of alerts. */
export class MonitorStage {
  declare readonly server: TestServer;
  declare account: AccountClient;
  declare readonly site: WebhookSink;
  declare readonly hooks: WebhookSink;

  /** Creates a monitor of the target. Returns its id. */
  readonly create = async (change: object = {}): Promise<string> => {
    const terms = { url: this.site.url("/health"), interval: 15_000, ...change };
    const answer = await this.account.post("/v1/pulse", terms);
    expect(answer.status).toBe(201);
    return String(answer.body["id"]);
  };

  /** The events of the notifications received since the last call. */
  readonly told = (): string[] => this.hooks.take().map(({ body }) => JSON.parse(body).event);

  /** A monitor as it is read. */
  readonly statusOf = async (id: string): Promise<Record<string, unknown>> =>
    (await this.account.get(`/v1/pulse/${id}`)).body;

  /** Restarts the server; the account's client follows it. */
  readonly restart = async (): Promise<void> => {
    await this.server.restart();
    const { key, userId, email } = this.account;
    this.account = new AccountClient(this.server.url, key ?? "", userId, email);
  };
}

/** Sets up a stage for each test of the file that calls it. */
export function monitorStage(): MonitorStage {
  const stage = new MonitorStage();
  beforeEach(async () => {
    const [site, hooks] = [new WebhookSink(), new WebhookSink()];
    const args = ["--allow-private-targets", "127.0.0.0/8"];
    const server = await startTestServer({ manualClock: true, args });
    Object.assign(stage, { site, hooks, server, account: await server.account() });
  });
  afterEach(async () => {
    await stage.server.stop();
    stage.site.stop();
    stage.hooks.stop();
  });
  return stage;
}
