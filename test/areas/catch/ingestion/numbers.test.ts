import { afterAll, beforeAll, expect, test } from "bun:test";
import { expectError } from "../../../support/errors.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import {
  accepted,
  eventOf,
  eventsOf,
  ingest,
  LOOPBACK_ALLOWED,
  newBucket,
  Receiver,
  setState,
} from "../support.ts";

let server: TestServer;
let account: AccountClient;
beforeAll(async () => {
  server = await startTestServer({ manualClock: true, args: LOOPBACK_ALLOWED });
  account = await server.account({ balance: 1_000 });
});
afterAll(() => server.stop());

/** A sender whose ids and types are members of the body. */
const BY_MEMBERS = {
  provider: "custom",
  signature: { header: "X-Sig", algorithm: "token", event_id: "/id", event_type: "/type" },
};

test("ids beyond 2^53 that differ in a digit are two events, and are stored with their digits", async () => {
  const { id } = await newBucket(account, { ...BY_MEMBERS, deduplicate_hours: 24 });
  const numbers = [
    "1234567890123456789",
    "1234567890123456790",
    "-9007199254740993",
    "1e400",
    "1.00000000000000000001",
  ];
  for (const number of numbers)
    expect((await ingest(server, id, `{"id":${number}}`)).status).toBe("accepted");
  for (const number of numbers)
    expect((await ingest(server, id, `{"id":${number}}`)).status).toBe("duplicate");
  const stored: (string | null)[] = [];
  for (const event of await eventsOf(account, id))
    stored.push((await eventOf(account, id, event.id)).provider_event_id);
  expect(stored).toEqual(numbers);
});

test("ids that a double holds are stored as before: 1.0 and 1 are one event", async () => {
  const { id } = await newBucket(account, { ...BY_MEMBERS, deduplicate_hours: 24 });
  const event = await accepted(server, id, '{"id":1.0,"type":1e3}');
  expect(await eventOf(account, id, event)).toMatchObject({ provider_event_id: "1", event_type: "1000" });
  expect((await ingest(server, id, '{"id":1}')).status).toBe("duplicate");
});

test("the payload of an event has the digits that were sent, also in the stream and in exports", async () => {
  const { id } = await newBucket(account);
  const body = '{"id":1234567890123456789,"items":[{"price":0.12345678901234567890},1e400]}';
  const event = await accepted(server, id, body);
  for (const path of [`/${id}/events/${event}`, `/${id}/stream?after=beginning`, `/${id}/events/export`])
    expect((await account.get(`/v1/catch${path}`)).text).toContain(`"payload":${body}`);
});

test("a target's filter compares all digits, with a text, and a rounded number is rejected", async () => {
  const receiver = new Receiver();
  try {
    const endpoint = await account.post("/v1/relay/endpoints", { url: receiver.url });
    const target = (filter: object) => ({
      target_url: null,
      targets: [{ endpoint_id: endpoint.body["endpoint_id"], filter }],
    });
    const { id } = await newBucket(account, target({ id: "1234567890123456789" }));
    await setState(account, id, "live");
    await accepted(server, id, '{"id":1234567890123456788}');
    await accepted(server, id, '{"id":1234567890123456789}');
    await server.clock.advance(1_000);
    expect(receiver.texts).toEqual(['{"id":1234567890123456789}']);
    const rejected = await account.send(
      "POST",
      "/v1/catch/buckets",
      JSON.stringify(target({ id: 0 })).replace('"id":0', '"id":1234567890123456789'),
    );
    expectError(rejected, "validation_error");
    expect(rejected.text).toContain("targets.0.filter.id");
  } finally {
    await receiver.stop();
  }
});
