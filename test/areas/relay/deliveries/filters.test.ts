import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { SCANNED_ROWS_MAX } from "../../../../src/areas/relay/deliveries/listing.ts";
import { RawServer } from "../../../support/raw-server.ts";
import { relayStage } from "../support.ts";

const stage = relayStage();

describe("a list is filtered", () => {
  test("by time, including the start and excluding the end, with and without a status", async () => {
    const { clock } = stage.server;
    const ids: string[] = [];
    for (let count = 0; count < 4; count += 1) {
      ids.unshift(count === 2 ? ((await stage.failed(1))[0] ?? "") : await stage.sent());
      await clock.advance(1_000);
    }
    const since = clock.now() - 3_000;
    const until = clock.now() - 1_000;
    expect(await stage.listed(`since=${since}`)).toEqual(ids.slice(0, 3));
    expect(await stage.listed(`until=${until}`)).toEqual(ids.slice(1));
    expect(await stage.listed(`since=${since}&until=${until}`)).toEqual(ids.slice(1, 3));
    expect(await stage.listed(`since=${since}&status=failed`)).toEqual([ids[1] ?? ""]);
    expect(await stage.listed(`since=${until + 1_000}`)).toEqual([]);
  });

  test("by the reason of the failure", async () => {
    const terms = { retry_schedule: [] };
    const silent = await new RawServer(() => {}).start();
    try {
      const [http = ""] = await stage.failed(1);
      const network = await stage.sent({ ...terms, target_url: "http://127.0.0.1:9/" });
      const timeout = await stage.sent({
        ...terms,
        timeout_ms: 1_000,
        target_url: `http://127.0.0.1:${silent.port}/`,
      });
      await stage.sent();
      for (const [error, id] of Object.entries({ http, network, timeout })) {
        expect(await stage.listed(`status=failed&error=${error}`)).toEqual([id]);
        expect(await stage.listed(`error=${error}`)).toEqual([id]);
      }
      for (const error of ["blocked", "disabled"]) expect(await stage.listed(`error=${error}`)).toEqual([]);
      expect(await stage.listed("status=delivered&error=http")).toEqual([]);
      await stage.account.post(`/v1/relay/${http}/resend`);
      expect(await stage.listed("error=http")).toEqual([]);
    } finally {
      silent.stop();
    }
  });

  test("by event type, which scheduled deliveries do not have", async () => {
    stage.sink.answersBy(({ path }) => (path === "/alerts" ? 200 : 500));
    const monitor = await stage.monitor();
    await stage.server.clock.advance(6_000);
    await stage.account.delete(`/v1/pulse/${monitor}`);
    await stage.sent();
    const [alert = ""] = await stage.listed("filter=pulse");
    expect(await stage.listed("event_type=monitor.down")).toEqual([alert]);
    expect(await stage.listed("event_type=monitor.down&filter=pulse&status=delivered")).toEqual([alert]);
    expect(await stage.listed("event_type=monitor.up")).toEqual([]);
  });

  test("in pages", async () => {
    const ids = (await stage.failed(7)).toReversed();
    await stage.sent();
    const found: string[] = [];
    let query = "since=0&status=failed&limit=3";
    for (;;) {
      const { body } = await stage.account.get(`/v1/relay?${query}`);
      found.push(...(body["deliveries"] as { relay_id: string }[]).map(({ relay_id }) => relay_id));
      if (body["cursor"] === undefined) break;
      query = `since=0&status=failed&limit=3&cursor=${body["cursor"]}`;
    }
    expect(found).toEqual(ids);
  });

  test("with a first attempt in flight", async () => {
    const { promise, resolve } = Promise.withResolvers<Response>();
    stage.sink.answersBy(() => promise);
    const now = stage.server.clock.now();
    const relayId = String((await stage.ask()).body["relay_id"]);
    const advancing = stage.server.clock.advance(0);
    while (stage.sink.received.length === 0) await Bun.sleep(1);
    expect(await stage.listed(`status=delivering&since=${now}`)).toEqual([relayId]);
    expect(await stage.listed(`status=delivering&since=${now + 1}`)).toEqual([]);
    expect(await stage.listed(`status=delivering&until=${now}`)).toEqual([]);
    expect(await stage.listed("status=delivering&error=http")).toEqual([]);
    expect(await stage.listed("status=delivering&event_type=monitor.down")).toEqual([]);
    expect(await stage.listed(`status=scheduled&since=${now}`)).toEqual([]);
    resolve(new Response());
    await advancing;
  });
});

test("a page scans a limited number of deliveries; without a match the next page continues", async () => {
  const oldest = await stage.sent();
  await stage.server.clock.advance(1_000);
  const until = stage.server.clock.now();
  const newest = await stage.sent();
  await stage.copy(newest, SCANNED_ROWS_MAX, 3);
  await stage.copy(newest, 10, 5);
  for (const status of ["", "&status=delivered"]) {
    const first = await stage.account.get(`/v1/relay?until=${until}${status}`);
    expect([first.body["deliveries"], typeof first.body["cursor"]]).toEqual([[], "string"]);
    const next = await stage.account.get(`/v1/relay?until=${until}${status}&cursor=${first.body["cursor"]}`);
    expect((next.body["deliveries"] as { relay_id: string }[]).map(({ relay_id }) => relay_id)).toEqual([
      oldest,
    ]);
    expect(next.body["cursor"]).toBe(undefined);
  }
});

test("a failed delivery of an old version, without content, is listed and cannot be resent", async () => {
  const [relayId = ""] = await stage.failed(1);
  await stage.server.halt();
  const db = new Database(`${stage.server.folder}/ninefold.db`);
  db.run("UPDATE relays SET failure = NULL, headers = NULL, body = NULL");
  db.run(
    "UPDATE relay_attempts SET request_headers = NULL, response_headers = NULL, response_body = NULL, remote_address = NULL",
  );
  db.close();
  await stage.server.start();
  await stage.restart();
  const delivery = await stage.read(relayId);
  expect(delivery).toMatchObject({ status: "failed", attempts: 1 });
  expect(delivery.attempt_log[0]).toMatchObject({
    request_headers: null,
    response_headers: null,
    response_body: null,
    remote_address: null,
  });
  const answer = await stage.account.post(`/v1/relay/${relayId}/resend`);
  expect([answer.status, answer.text]).toEqual([
    409,
    expect.stringContaining("its content is not stored any more"),
  ]);
  const dry = await stage.account.post("/v1/relay/resend", { since: 0, dry_run: true });
  expect(dry.body).toEqual({ matched: 0 });
});
