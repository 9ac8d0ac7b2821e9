import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import { CHALLENGE_BYTES_MAX } from "../../../../src/areas/catch/ingestion/challenges.ts";
import { PATH_LENGTH_MAX, QUERY_LENGTH_MAX } from "../../../../src/areas/catch/ingestion/ingestion.ts";
import { DEFAULT_TIERS } from "../../../../src/kernel/limits/tiers.ts";
import { expectError } from "../../../support/errors.ts";
import { sendRaw } from "../../../support/raw-http.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import {
  accepted,
  balanceOf,
  bucketOf,
  eventOf,
  eventsOf,
  newBucket,
  Receiver,
  setState,
} from "../support.ts";

let server: TestServer;
let account: AccountClient;
beforeAll(async () => {
  const scale = { ...DEFAULT_TIERS.scale, requestsPerMinute: 1e6, catchPerMinute: 1e6 };
  server = await startTestServer({
    manualClock: true,
    args: [
      "--public-url",
      "https://nf.example",
      "--allow-private-targets",
      "127.0.0.0/8",
      "--trust-proxy",
      "127.0.0.1",
    ],
    config: { tiers: { ...DEFAULT_TIERS, scale } },
  });
  account = await server.account({ balance: 1_000 });
});
afterAll(() => server.stop());

const SECRET = "s3cr3t";
const seconds = () => String(Math.floor(server.clock.now() / 1000));

async function bucket(terms: object): Promise<string> {
  return (await newBucket(account, terms)).id;
}

/** Sends a request below a bucket's path, unchanged. */
function at(id: string, below: string, method = "GET", body?: string, headers: Record<string, string> = {}) {
  return server.client(null).send(method, `/v1/in/${id}${below}`, body, { headers });
}

/** Signs a body as Slack and Zoom do. */
function v0(body: string, names: readonly [string, string], secret = SECRET): Record<string, string> {
  const signature = createHmac("sha256", secret).update(`v0:${seconds()}:${body}`).digest("hex");
  return { [names[0]]: `v0=${signature}`, [names[1]]: seconds() };
}
const SLACK = ["x-slack-signature", "x-slack-request-timestamp"] as const;
const ZOOM = ["x-zm-signature", "x-zm-request-timestamp"] as const;

describe("challenges of senders", () => {
  const hub = (token: string, challenge: string) =>
    `?hub.mode=subscribe&hub.verify_token=${token}&hub.challenge=${encodeURIComponent(challenge)}`;

  test("meta and websub: the challenge as text, only with the right token", async () => {
    for (const provider of ["meta", "websub"]) {
      const id = await bucket({ provider, challenge: { token: "a-token" } });
      const answer = await at(id, hub("a-token", "1158201444"));
      expect([answer.status, answer.text, answer.headers.get("content-type")]).toEqual([
        200,
        "1158201444",
        "text/plain",
      ]);
      expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
      for (const token of ["b-token", "", "a-token-"])
        expectError(await at(id, hub(token, "1")), "forbidden");
      expect((await at(id, hub("a-token", "1").replace("subscribe", "unsubscribe"))).body["status"]).toBe(
        "ignored",
      );
    }
    const open = await bucket({ provider: "websub" });
    expect((await at(open, "?hub.mode=subscribe&hub.challenge=1")).text).toBe("1");
  });

  test("strava: the challenge as JSON", async () => {
    const id = await bucket({ provider: "strava", challenge: { token: "t" } });
    expect((await at(id, hub("t", "15f7d1a91c1f40f8a748fd134752feb3"))).body).toEqual({
      "hub.challenge": "15f7d1a91c1f40f8a748fd134752feb3",
    });
  });

  test("dropbox, and custom challenges as text and JSON", async () => {
    const dropbox = await bucket({ provider: "dropbox" });
    expect((await at(dropbox, "?challenge=abc.-_~9")).text).toBe("abc.-_~9");
    const text = await bucket({ challenge: { query: "nonce" } });
    expect((await at(text, "?nonce=7")).text).toBe("7");
    const json = await bucket({ challenge: { query: "nonce", as: "json", field: "echo" } });
    expect((await at(json, "/below?nonce=7")).body).toEqual({ echo: "7" });
    expect((await at(json, "?nonce=7", "POST", "{}")).body["status"]).toBe("accepted");
  });

  test("only values that cannot be a page are echoed", async () => {
    const id = await bucket({ provider: "dropbox" });
    const said = async (value: string) =>
      (await at(id, `?challenge=${encodeURIComponent(value)}`)).text === value;
    expect(await said("x".repeat(512))).toBe(true);
    for (const value of ["x".repeat(513), "", "<script>", "a b", "é", "a\n", "&"])
      expect(await said(value)).toBe(false);
    const graph = await bucket({ provider: "microsoft-graph" });
    const sentence = async (value: string) =>
      (await at(graph, `?validationToken=${encodeURIComponent(value)}`, "POST", "")).text === value;
    expect(
      await sentence(
        "Validation: Testing client application reachability for subscription Request-Id: 1f-2;",
      ),
    ).toBe(true);
    expect(await sentence("x".repeat(1_024))).toBe(true);
    for (const value of ["x".repeat(1_025), "<b>", "a&b", "'", '"', "a\tb", "é"])
      expect(await sentence(value)).toBe(false);
  });

  test("a pointer: the value as text or JSON, only where nothing else stands beside it", async () => {
    const id = await bucket({ challenge: { pointer: "/challenge" } });
    const post = (body: string, to = id) => at(to, "", "POST", body);
    expect([(await post('{"challenge":"abc.-_~9"}')).text, await eventsOf(account, id)]).toEqual([
      "abc.-_~9",
      [],
    ]);
    expect((await post(`{"challenge":"${"x".repeat(512)}"}`)).text).toBe("x".repeat(512));
    for (const body of [
      `{"challenge":"${"x".repeat(513)}"}`,
      '{"challenge":""}',
      '{"challenge":"<b>"}',
      '{"challenge":7}',
      '{"challenge":"a","id":1}',
      "[]",
      "no JSON",
      `{"challenge":"a"}${" ".repeat(CHALLENGE_BYTES_MAX)}`,
    ])
      expect((await post(body)).body["status"]).toBe("accepted");
    expect((await at(id, "", "PUT", '{"challenge":"a"}')).body["status"]).toBe("accepted");

    const deep = await bucket({ challenge: { pointer: "/data/token", as: "json" } });
    expect((await post('{"data":{"token":"t"}}', deep)).body).toEqual({ token: "t" });
    expect((await post('{"data":{"token":"t","a":1}}', deep)).body["status"]).toBe("accepted");
    expect((await post('{"data":{"token":"t"},"a":1}', deep)).body["status"]).toBe("accepted");
  });

  test("a pointer with a condition: other members do not matter, and the signature neither", async () => {
    const id = await bucket({
      provider: "github",
      signing_secret: SECRET,
      verification_mode: "reject",
      challenge: { pointer: "/nonce", when: { type: "verify" }, as: "json", field: "echo" },
    });
    const before = await balanceOf(account);
    expect((await at(id, "", "POST", '{"type":"verify","nonce":"n1","at":1}')).body).toEqual({ echo: "n1" });
    expect(await balanceOf(account)).toBe(before);
    expect((await at(id, "", "POST", '{"type":"event","nonce":"n1"}')).body["status"]).toBe("rejected");
    expect((await bucketOf(account, id)).challenge).toEqual({
      has_token: false,
      query: null,
      as: "json",
      field: "echo",
      pointer: "/nonce",
      when: { type: "verify" },
    });
  });

  test("CloudEvents: an origin that the bucket lists may send", async () => {
    const id = await bucket({
      challenge: { origins: ["eventgrid.azure.net"] },
      methods: ["POST", "OPTIONS"],
    });
    const ask = (to: string, origin: string) =>
      at(to, "/below", "OPTIONS", undefined, {
        "webhook-request-origin": origin,
        "webhook-request-callback": "http://127.0.0.1:1/never",
        "webhook-request-rate": "120",
      });
    const allowed = await ask(id, "eventgrid.azure.net");
    const names = ["webhook-allowed-origin", "webhook-allowed-rate", "allow"];
    expect([allowed.status, allowed.text, ...names.map((name) => allowed.headers.get(name))]).toEqual([
      200,
      "",
      "eventgrid.azure.net",
      String(1e6),
      "POST",
    ]);
    expect(await eventsOf(account, id)).toEqual([]);
    const other = await ask(id, "evil.example");
    expect([other.body["status"], other.headers.get("webhook-allowed-origin")]).toEqual(["accepted", null]);
    expect((await at(id, "", "OPTIONS")).body["status"]).toBe("accepted");
    const any = await bucket({ challenge: { origins: ["*"] } });
    expect((await ask(any, "a.example")).headers.get("webhook-allowed-origin")).toBe("a.example");
    expect((await ask(any, "<b>")).body["status"]).toBe("ignored");
    const none = await bucket({});
    expect((await ask(none, "a.example")).body["status"]).toBe("ignored");
  });

  test("event-grid: the validation code of its own schema, and the handshake of CloudEvents", async () => {
    const id = await bucket({ provider: "event-grid", challenge: { origins: ["eventgrid.azure.net"] } });
    const event = (eventType: string) => ({
      id: "2d1781af-3a4c-4d7c-bd0c-e34b19da4e66",
      topic: "/subscriptions/x",
      subject: "",
      data: { validationCode: "512d38b6-c7b8-40c8-89fe-f46f9e9622b6" },
      eventType,
      eventTime: "2018-01-25T22:12:19.4556811Z",
      dataVersion: "1",
    });
    const validation = JSON.stringify([event("Microsoft.EventGrid.SubscriptionValidationEvent")]);
    expect((await at(id, "", "POST", validation)).body).toEqual({
      validationResponse: "512d38b6-c7b8-40c8-89fe-f46f9e9622b6",
    });
    expect(await eventsOf(account, id)).toEqual([]);
    await at(id, "", "POST", JSON.stringify([event("a.created")]));
    await at(id, "", "POST", JSON.stringify([event("a.created"), event("a.created")]));
    const stored = await eventsOf(account, id);
    expect(stored.map(({ event_type, verification }) => [event_type, verification])).toEqual([
      ["a.created", "none"],
      ["a.created", "none"],
    ]);
    const ids = await Promise.all(stored.map(({ id: one }) => eventOf(account, id, one)));
    expect(ids.map(({ provider_event_id }) => provider_event_id)).toEqual([
      "2d1781af-3a4c-4d7c-bd0c-e34b19da4e66",
      null,
    ]);
    const handshake = await at(id, "", "OPTIONS", undefined, {
      "webhook-request-origin": "eventgrid.azure.net",
    });
    expect(handshake.headers.get("webhook-allowed-origin")).toBe("eventgrid.azure.net");
  });

  test("microsoft-graph: the decoded token, by GET too, and no event", async () => {
    const id = await bucket({ provider: "microsoft-graph" });
    const answer = await at(id, "?validationToken=Validation%3a+Testing+1");
    expect([answer.text, answer.headers.get("content-type")]).toEqual([
      "Validation: Testing 1",
      "text/plain",
    ]);
    expect((await bucketOf(account, id)).events.pending).toBe(0);
  });

  test("x: the token signed with the secret", async () => {
    const id = await bucket({ provider: "x", signing_secret: SECRET });
    const expected = createHmac("sha256", SECRET).update("a-token_1").digest("base64");
    expect((await at(id, "?crc_token=a-token_1")).body).toEqual({ response_token: `sha256=${expected}` });
    for (const token of ["x".repeat(129), "a.b", "{}", ""])
      expect((await at(id, `?crc_token=${token}`)).body["status"]).toBe("ignored");
    const open = await bucket({ provider: "x" });
    expect((await at(open, "?crc_token=a")).body["status"]).toBe("ignored");
  });

  test("slack: the challenge of a signed body; an unsigned one is an event", async () => {
    const id = await bucket({ provider: "slack", signing_secret: SECRET });
    const body = '{"token":"x","challenge":"3eZbrw1aBm2rZgRNFdxV","type":"url_verification"}';
    for (const path of [`/v1/catch/${id}`, `/v1/in/${id}/events`]) {
      const answer = await server.client(null).post(path, body, { headers: v0(body, SLACK) });
      expect(answer.body).toEqual({ challenge: "3eZbrw1aBm2rZgRNFdxV" });
    }
    expect((await at(id, "", "POST", body)).body).toMatchObject({
      status: "accepted",
      verification: "invalid",
    });
    const html = body.replace("3eZ", "<b>");
    expect((await at(id, "", "POST", html, v0(html, SLACK))).body["status"]).toBe("accepted");
  });

  test("zoom: the published vector, only for signed requests", async () => {
    const id = await bucket({ provider: "zoom", signing_secret: SECRET });
    const body = '{"event":"endpoint.url_validation","payload":{"plainToken":"qgg8vlvZRS6UYooatFL8Aw"}}';
    expect((await at(id, "", "POST", body, v0(body, ZOOM))).body).toEqual({
      plainToken: "qgg8vlvZRS6UYooatFL8Aw",
      encryptedToken: "86b565e97036973cc44c3b3f24af76cabe70c2cbf5554c32419d44ecf6c0f2ca",
    });
    expect((await at(id, "", "POST", body)).body).toMatchObject({
      status: "accepted",
      verification: "invalid",
    });
    for (const token of ["v0:1:x", "x".repeat(129), ""]) {
      const other = body.replace("qgg8vlvZRS6UYooatFL8Aw", token);
      expect((await at(id, "", "POST", other, v0(other, ZOOM))).body["status"]).toBe("accepted");
    }
  });

  test("discord: a response to a ping, 401 for a forged one", async () => {
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    const key = publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex");
    const id = await bucket({ provider: "discord", signing_secret: key });
    const signed = (body: string) => ({
      "x-signature-ed25519": sign(null, Buffer.from(seconds() + body), privateKey).toString("hex"),
      "x-signature-timestamp": seconds(),
    });
    expect((await at(id, "", "POST", '{"type":1}', signed('{"type":1}'))).body).toEqual({ type: 1 });
    expect((await at(id, "", "POST", '{"type":1}', signed('{"type":2}'))).status).toBe(401);
    const event = await at(id, "", "POST", '{"type":2,"id":"7"}', signed('{"type":2,"id":"7"}'));
    expect(event.body).toMatchObject({ status: "accepted", verification: "valid" });
  });

  test("are free of charge, also in a paused bucket; not for a suspended account", async () => {
    const owner = await server.account({ balance: 1 });
    const { id, ingest_url } = await newBucket(owner, { provider: "dropbox" });
    expect(ingest_url).toEndWith(`/v1/in/${id}`);
    for (let count = 0; count < 3; count += 1) expect((await at(id, "?challenge=1")).text).toBe("1");
    expect(await balanceOf(owner)).toBe(1);
    await server.operator.patch(`/v1/admin/accounts/${owner.userId}`, { suspended: true });
    expect((await at(id, "?challenge=1")).body["status"]).toBe("ignored");
  });
});

describe("/v1/in", () => {
  test("accepts any listed method, and stores path, query, headers and address", async () => {
    const id = await bucket({ methods: ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"] });
    for (const method of ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"])
      expect((await at(id, `/a/${method}`, method)).status).toBe(200);
    const events = await eventsOf(account, id);
    const methods: string[] = [];
    for (const { id: event } of events) methods.push((await eventOf(account, id, event)).method);
    expect(methods).toEqual(["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"]);

    const answer = await sendRaw(server.url, [
      `PUT /v1/in/${id}/a%2Fb//c/?x=%20&y HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 203.0.113.7\r\nX-One: 1\r\nX-Two: 2\r\nX-One: 3\r\nContent-Length: 2\r\n\r\nhi`,
    ]);
    const event = await eventOf(account, id, String(answer?.body["event_id"]));
    expect(event).toMatchObject({
      method: "PUT",
      path: "/a%2Fb//c/",
      query: "x=%20&y",
      remote_address: "203.0.113.7",
      size_bytes: 2,
      duplicates: 0,
      event_type: null,
      provider_event_id: null,
    });
    expect(event.headers_list.filter(([name]) => name?.startsWith("x-"))).toEqual([
      ["x-forwarded-for", "203.0.113.7"],
      ["x-one", "1, 3"],
      ["x-two", "2"],
    ]);
  });

  test("ignores GET, HEAD, OPTIONS and other methods unless listed", async () => {
    const id = await bucket({});
    for (const method of ["GET", "HEAD", "OPTIONS"]) expect((await at(id, "", method)).status).toBe(200);
    expect((await at(id, "")).body).toEqual({ status: "ignored", verification: "none" });
    await account.patch(`/v1/catch/buckets/${id}`, { methods: ["PUT"] });
    expect((await at(id, "", "POST", "{}")).body["status"]).toBe("ignored");
    expect((await server.client(null).post(`/v1/catch/${id}`, "{}")).body["status"]).toBe("ignored");
    expect((await at(id, "", "PUT", "{}")).body["status"]).toBe("accepted");
    expect((await bucketOf(account, id)).events.pending).toBe(1);
  });

  test("has an empty path without one below, and / as a path", async () => {
    const id = await bucket({});
    const paths: string[] = [];
    for (const below of ["", "?", "/", "/x?"]) {
      const { body } = await at(id, below, "POST", "{}");
      const { path, query } = await eventOf(account, id, String(body["event_id"]));
      paths.push(path + query);
    }
    expect(paths).toEqual(["", "", "/", "/x"]);
    const { path, method } = await eventOf(account, id, await accepted(server, id));
    expect([path, method]).toEqual(["", "POST"]);
  });

  test("returns too_large for paths and queries above the limits", async () => {
    const id = await bucket({});
    const status = async (below: string) => (await at(id, below, "POST", "{}")).body["status"];
    expect(await status(`/${"x".repeat(PATH_LENGTH_MAX - 1)}`)).toBe("accepted");
    expect(await status(`/${"x".repeat(PATH_LENGTH_MAX)}`)).toBe("too_large");
    expect(await status(`?${"x".repeat(QUERY_LENGTH_MAX)}`)).toBe("accepted");
    expect(await status(`?${"x".repeat(QUERY_LENGTH_MAX + 1)}`)).toBe("too_large");
  });

  test("ignores requests to buckets that do not exist, in any spelling", async () => {
    for (const path of ["x", "%zz", "x/%ff", "a%2Fb/c", "%f0%9f%92%a9/"]) {
      const answer = await sendRaw(server.url, [
        `POST /v1/in/${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}`,
      ]);
      expect(answer?.body, path).toEqual({ status: "ignored", verification: "none" });
    }
    expect((await server.client(null).post("/v1/in")).status).toBe(401);
  });

  test("verifies signatures over the URL with path and query under --public-url", async () => {
    const id = await bucket({ provider: "square", signing_secret: SECRET });
    const signature = (path: string) =>
      createHmac("sha256", SECRET).update(`https://nf.example/v1/in/${id}${path}{}`).digest("base64");
    const send = async (path: string, signed = path) =>
      (await at(id, path, "POST", "{}", { "x-square-hmacsha256-signature": signature(signed) })).body[
        "verification"
      ];
    expect([await send("/a?b=1"), await send(""), await send("/a?b=1", "/a")]).toEqual([
      "valid",
      "valid",
      "invalid",
    ]);
  });
});

describe("forwarded headers of the sender", () => {
  test("include its webhook-* headers unchanged, and those of presets and recipes", async () => {
    const receiver = new Receiver();
    try {
      const signature = { header: "X-Sig", algorithm: "token", event_type: "header:X-Kind" };
      const id = await bucket({ target_url: receiver.url, provider: "custom", signature });
      await setState(account, id, "live");
      const own = { "webhook-id": "msg_1", "webhook-timestamp": "1", "webhook-signature": "v1,AAAA" };
      await accepted(server, id, "{}", { ...own, "x-sig": "t", "x-kind": "k", "x-other": "o" });
      await server.clock.advance(1_000);
      await accepted(server, id, "{}", { "webhook-id": "msg_1" });
      await server.clock.advance(1_000);
      const [first, second] = receiver.hits.map(({ headers }) => headers.toJSON());
      expect(first).toMatchObject({ ...own, "x-sig": "t", "x-kind": "k" });
      expect(first).not.toHaveProperty("x-other");
      expect(first?.["x-svc-event-id"]).toStartWith("evt_");
      expect(second?.["webhook-id"]).toStartWith("evt_");
      expect(second?.["webhook-signature"]).toStartWith("v1,");
    } finally {
      await receiver.stop();
    }
  });
});
