import { beforeEach, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { verifyDelivery } from "../../../../src/client/delivery.ts";
import { expectError } from "../../../support/errors.ts";
import { bucketOf, eventsOf, newBucket, setState } from "../support.ts";
import { targetStage } from "./targets-support.ts";

const stage = targetStage();
const { advance, bucket, endpoint, patch } = stage;

const ALL = { method: true, path: true, query: true, headers: ["x-*", "Authorization", "user-agent"] };
const METHODS = ["GET", "POST", "DELETE"];

/** Creates a live bucket that forwards to the receiver. */
async function direct(terms: object): Promise<void> {
  stage.bucketId = (await newBucket(stage.account, { target_url: stage.receiver.url, ...terms })).id;
  await setState(stage.account, stage.bucketId, "live");
}

/** Sends a request to the bucket, written by hand: the path reaches the server as it is. */
function request(method: string, below: string, headers: readonly string[] = [], body = ""): Promise<string> {
  const { hostname, port } = new URL(stage.server.url);
  const lines = [
    `${method} /v1/in/${stage.bucketId}${below} HTTP/1.1`,
    `Host: ${hostname}`,
    "Connection: close",
    ...headers,
    ...(body === "" ? [] : [`Content-Length: ${body.length}`]),
  ];
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () =>
      socket.write(`${lines.join("\r\n")}\r\n\r\n${body}`),
    );
    let text = "";
    socket.on("data", (bytes) => {
      text += String(bytes);
    });
    socket.on("end", () => resolve(text));
    socket.on("error", reject);
  });
}

/** Sends a request and forwards its event. Returns what the target received. */
async function forwarded(...sent: Parameters<typeof request>) {
  expect(await request(...sent)).toContain('"status":"accepted"');
  await advance(0);
  const hit = stage.receiver.hits.at(-1);
  if (hit === undefined) throw new Error("nothing was forwarded");
  return hit;
}

describe("a bucket with forward", () => {
  beforeEach(() => direct({ forward: ALL, methods: METHODS }));

  test("appends path and query as received, and keeps the method and the chosen headers", async () => {
    const hit = await forwarded(
      "DELETE",
      "/orders/a%2Fb/?q=1&q=%C3%A4+c",
      [
        "X-Shop: 7",
        "X-Api-Key: secret",
        "Authorization: Bearer t",
        "User-Agent: shop/2",
        "Accept-Language: de",
      ],
      "body",
    );
    expect(hit).toMatchObject({
      method: "DELETE",
      path: "/hooks/orders/a%2Fb/?from=ninefold&q=1&q=%C3%A4+c",
    });
    expect(hit.body.toString()).toBe("body");
    const chosen = ["x-shop", "authorization", "user-agent", "x-api-key", "accept-language"];
    expect(chosen.map((name) => hit.headers.get(name))).toEqual(["7", "Bearer t", "shop/2", null, null]);
  });

  test("sends a GET without a body, and signs an empty one", async () => {
    const hit = await forwarded("GET", "/x?a=1", ["Content-Type: application/json"], '{"a":1}');
    expect(hit).toMatchObject({ method: "GET", path: "/hooks/x?from=ninefold&a=1" });
    expect(hit.body).toHaveLength(0);
    expect(hit.headers.has("content-length")).toBe(false);
    expect(hit.headers.has("content-type")).toBe(false);
    const now = stage.server.clock.now();
    expect(await verifyDelivery(hit.headers, "", stage.account.key ?? "", { now })).toMatchObject({
      text: "",
    });
  });

  test("forwards no header of the connection or of Ninefold, whatever it names", async () => {
    await patch({
      forward: { headers: ["*", "host", "connection", "x-svc-event-id", "webhook-*", "x-ninefold-hops"] },
    });
    const hit = await forwarded(
      "POST",
      "/x",
      [
        "X-Svc-Event-Id: forged",
        "Webhook-Id: forged",
        "X-Ninefold-Hops: 3",
        "Keep-Alive: timeout=1",
        "X-A: 1",
        "Cookie: c",
      ],
      "b",
    );
    const { path, headers } = hit;
    expect(path).toBe("/hooks?from=ninefold");
    expect(headers.get("x-a")).toBe("1");
    expect(headers.get("x-ninefold-hops")).toBe("4");
    expect(headers.get("host")).toBe(new URL(stage.receiver.url).host);
    expect([headers.get("keep-alive"), headers.get("cookie")]).toEqual([null, null]);
    const [event] = await eventsOf(stage.account, stage.bucketId);
    expect([headers.get("x-svc-event-id"), headers.get("webhook-id")]).toEqual([
      String(event?.id),
      String(event?.id),
    ]);
  });

  test("replays the same request, and forwards a POST alone once forward is null", async () => {
    await forwarded("GET", "/x?a=1");
    const [event] = await eventsOf(stage.account, stage.bucketId);
    await stage.account.post(`/v1/catch/${stage.bucketId}/events/${event?.id}/replay`);
    expect(stage.receiver.hits.at(-1)).toMatchObject({ method: "GET", path: "/hooks/x?from=ninefold&a=1" });
    await patch({ forward: null });
    expect(await bucketOf(stage.account, stage.bucketId)).toMatchObject({ forward: null });
    await stage.account.post(`/v1/catch/${stage.bucketId}/events/${event?.id}/replay`);
    expect(stage.receiver.hits.at(-1)).toMatchObject({ method: "POST", path: "/hooks?from=ninefold" });
  });

  test("does not leave the path of the target", async () => {
    for (const path of ["/%2e%2e/admin", "/a/%2E./%2e%2E/b"]) {
      const sent = await request("POST", path, [], "b");
      if (!sent.includes('"status":"accepted"')) continue;
      await advance(0);
      expect(stage.receiver.hits.at(-1)?.path).toStartWith("/hooks");
    }
  });

  test("appends the longest path and query", async () => {
    const [path, query] = [`/${"p".repeat(1_000)}`, "q".repeat(8_000)];
    const hit = await forwarded("POST", `${path}?${query}`, [], "b");
    expect(hit.path).toBe(`/hooks${path}?from=ninefold&${query}`);
  });
});

test("a target without a path or a query of its own gets those of the request", async () => {
  const { origin } = new URL(stage.receiver.url);
  await direct({ target_url: origin, forward: { path: true, query: true } });
  expect(await forwarded("POST", "/a?b=1", [], "x")).toMatchObject({ path: "/a?b=1" });
  expect(await forwarded("POST", "", [], "x")).toMatchObject({ path: "/" });
  await direct({ target_url: `${origin}/base/`, forward: { path: true } });
  expect(await forwarded("POST", "/a?b=1", [], "x")).toMatchObject({ path: "/base/a" });
});

test("endpoints among the targets get the same parts", async () => {
  await bucket([await endpoint("a?k=1")], { forward: ALL, methods: METHODS });
  const got = await forwarded("GET", "/x?b=2", ["X-Shop: 7"], "ignored");
  expect(got).toMatchObject({ method: "GET", path: "/a/x?k=1&b=2" });
  expect([got.body.length, got.headers.get("x-shop")]).toEqual([0, "7"]);
  const [delivery] = (await stage.account.get("/v1/relay?limit=1")).body["deliveries"] as {
    relay_id: string;
    method: string;
  }[];
  expect(delivery?.method).toBe("GET");
  const shown = await stage.account.get(`/v1/relay/${delivery?.relay_id}`);
  expect(shown.body).toMatchObject({ method: "GET", event_id: expect.any(String) });
  const posted = await forwarded("POST", "/y", ["User-Agent: shop/2"], "body");
  expect(posted).toMatchObject({ method: "POST", path: "/a/y?k=1" });
  expect([posted.body.toString(), posted.headers.get("user-agent")]).toEqual(["body", "shop/2"]);
});

describe("the settings of forward", () => {
  const create = (forward: unknown) =>
    stage.account.post("/v1/catch/buckets", { target_url: "https://example.com/x", forward });

  test("have at most 20 headers, each a name with a star at its end alone", async () => {
    const names = (count: number) => Array.from({ length: count }, (_, at) => `x-${at}`);
    expect((await create({ headers: names(20) })).status).toBe(201);
    for (const headers of [names(21), ["x-*-y"], ["x y"], [""], ["**"]])
      expectError(await create({ headers }), "validation_error");
    for (const forward of [{ method: 1 }, [], "all"]) expectError(await create(forward), "validation_error");
  });

  test("name headers with secrets, or move them, only by a key that may read events", async () => {
    const made = await stage.account.post("/v1/keys", { prefix: "sm", name: "w", scopes: ["catch:write"] });
    const writer = stage.server.client(String(made.body["secret"]));
    const { id } = await newBucket(stage.account);
    const path = `/v1/catch/buckets/${id}`;
    expectError(await writer.patch(path, { forward: { headers: ["cookie"] } }), "conflict");
    expect((await writer.patch(path, { forward: { headers: ["*"] } })).status).toBe(200);
    await stage.account.patch(path, { forward: { headers: ["cookie"] } });
    expectError(await writer.patch(path, { target_url: "https://other.example.com/" }), "conflict");
    expect((await writer.patch(path, { name: "same" })).status).toBe(200);
  });
});
