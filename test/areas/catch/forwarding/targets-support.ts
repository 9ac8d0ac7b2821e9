import { afterAll, afterEach, beforeAll, beforeEach } from "bun:test";
import { AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { accepted, eventOf, LOOPBACK_ALLOWED, newBucket, Receiver, setState } from "../support.ts";

/** A server for all tests of a file; each test has a new account and a receiver for its endpoints. */
export class TargetStage {
  declare readonly server: TestServer;
  declare readonly receiver: Receiver;
  declare account: AccountClient;
  /** The bucket of the test, set by {@link bucket}. */
  bucketId = "";

  readonly advance = (ms: number): Promise<number> => this.server.clock.advance(ms);
  readonly send = (body: string, headers: Readonly<Record<string, string>> = {}): Promise<string> =>
    accepted(this.server, this.bucketId, body, headers);
  readonly event = (eventId: string) => eventOf(this.account, this.bucketId, eventId);
  readonly patch = (body: object) => this.account.patch(`/v1/catch/buckets/${this.bucketId}`, body);

  /** Creates an endpoint of the receiver. Returns its id. */
  readonly endpoint = async (path: string, terms: object = {}, account = this.account): Promise<string> => {
    const { origin } = new URL(this.receiver.url);
    const answer = await account.post("/v1/relay/endpoints", { url: `${origin}/${path}`, ...terms });
    if (answer.status !== 201) throw new Error(`no endpoint: ${answer.text}`);
    return String(answer.body["endpoint_id"]);
  };

  /** Creates a live bucket with endpoints as its targets. */
  readonly bucket = async (endpointIds: readonly string[], terms: object = {}): Promise<string> => {
    const targets = endpointIds.map((endpoint_id) => ({ endpoint_id }));
    this.bucketId = (await newBucket(this.account, { target_url: null, targets, ...terms })).id;
    await setState(this.account, this.bucketId, "live");
    return this.bucketId;
  };

  /** Bodies that an endpoint has received, in the order of their arrival. */
  readonly at = (path: string): string[] =>
    this.receiver.hits.filter((hit) => hit.path === `/${path}`).map(({ body }) => body.toString("utf8"));

  /** Restarts the server; the account's client follows it. */
  readonly restart = async (): Promise<void> => {
    await this.server.restart();
    const { key, userId, email } = this.account;
    this.account = new AccountClient(this.server.url, key ?? "", userId, email);
  };
}

/** Sets up a stage for the tests of the file that calls it. */
export function targetStage(): TargetStage {
  const stage = new TargetStage();
  beforeAll(async () => {
    const server = await startTestServer({ manualClock: true, args: LOOPBACK_ALLOWED });
    Object.assign(stage, { server });
  });
  afterAll(() => stage.server.stop());
  beforeEach(async () => {
    Object.assign(stage, { receiver: new Receiver(), account: await stage.server.account() });
  });
  afterEach(() => stage.receiver.stop());
  return stage;
}
