import { afterAll, afterEach, beforeAll, beforeEach } from "bun:test";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import {
  accepted,
  type BucketBody,
  bucketOf,
  eventsOf,
  LOOPBACK_ALLOWED,
  newBucket,
  Receiver,
  setState,
} from "../support.ts";

/** A server for all tests of a file; each test has a new account, paused bucket and target. */
export class ForwardingStage {
  declare readonly server: TestServer;
  declare readonly receiver: Receiver;
  declare account: AccountClient;
  declare readonly bucket: BucketBody;

  readonly advance = (ms: number): Promise<number> => this.server.clock.advance(ms);
  readonly live = (): Promise<void> => setState(this.account, this.bucket.id, "live");
  readonly paused = (): Promise<void> => setState(this.account, this.bucket.id, "paused");
  readonly send = (body: string): Promise<string> => accepted(this.server, this.bucket.id, body);
  readonly statuses = async (): Promise<string[]> =>
    (await eventsOf(this.account, this.bucket.id)).map(({ status }) => status);
  readonly counts = async (): Promise<BucketBody["events"]> =>
    (await bucketOf(this.account, this.bucket.id)).events;
}

/** Sets up a stage for the tests of the file that calls it. */
export function forwardingStage(): ForwardingStage {
  const stage = new ForwardingStage();
  beforeAll(async () => {
    const server = await startTestServer({ manualClock: true, args: LOOPBACK_ALLOWED });
    Object.assign(stage, { server });
  });
  afterAll(() => stage.server.stop());
  beforeEach(async () => {
    const receiver = new Receiver();
    const account = await stage.server.account();
    const bucket = await newBucket(account, { target_url: receiver.url });
    Object.assign(stage, { receiver, account, bucket });
  });
  afterEach(() => stage.receiver.stop());
  return stage;
}
