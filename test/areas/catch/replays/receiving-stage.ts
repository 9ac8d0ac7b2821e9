import { afterAll, afterEach, beforeAll, beforeEach } from "bun:test";
import { startTestServer, type TestServer } from "../../../support/server.ts";
import { LOOPBACK_ALLOWED, Receiver } from "../support.ts";

/** A server for all tests of a file, and a receiver for each. */
export class ReceivingStage {
  declare readonly server: TestServer;
  declare readonly receiver: Receiver;
}

/** Sets up a stage for the tests of the file that calls it. */
export function receivingStage(): ReceivingStage {
  const stage = new ReceivingStage();
  beforeAll(async () => {
    Object.assign(stage, { server: await startTestServer({ manualClock: true, args: LOOPBACK_ALLOWED }) });
  });
  afterAll(() => stage.server.stop());
  beforeEach(() => void Object.assign(stage, { receiver: new Receiver() }));
  afterEach(() => stage.receiver.stop());
  return stage;
}
