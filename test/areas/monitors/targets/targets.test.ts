import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { RECORD_LENGTH_MAX } from "../../../../src/areas/monitors/options.ts";
import { INTERVAL_MS_MAX } from "../../../../src/areas/monitors/schema.ts";
import { FIRST_BYTES_MAX } from "../../../../src/kernel/outbound/first-bytes.ts";
import { expectError } from "../../../support/errors.ts";
import { until } from "../../../support/eventually.ts";
import { RawServer } from "../../../support/raw-server.ts";
import { type AccountClient, startTestServer, type TestServer } from "../../../support/server.ts";
import { WebhookSink } from "../../../support/webhook-sink.ts";

const MINUTE = 60_000;
const PUBLIC = "9.9.9.9";

/** Records by name, or by name and type. */
const records = new Map<string, readonly string[]>();
const resolver = {
  resolve: async (host: string, type?: string): Promise<readonly string[]> => {
    const found = records.get(type === undefined ? host : `${host} ${type}`);
    if (found === undefined) throw new Error("not found");
    return found;
  },
};

let server: TestServer;
let account: AccountClient;
let target: RawServer;
beforeEach(async () => {
  records.clear();
  target = await new RawServer(() => {}).start();
  server = await startTestServer({
    manualClock: true,
    args: ["--allow-private-targets", "127.0.0.1"],
    deps: { outbound: { resolver } },
  });
  account = await server.account();
});
afterEach(async () => {
  await server.stop();
  target.stop();
});

const tcp = (change: object = {}) => ({
  type: "tcp",
  host: "127.0.0.1",
  port: target.port,
  interval: MINUTE,
  timeout: 1_000,
  ...change,
});
const dns = (change: object = {}) => ({
  type: "dns",
  host: "shop.example",
  record_type: "A",
  interval: MINUTE,
  ...change,
});

async function create(body: object): Promise<string> {
  const answer = await account.post("/v1/pulse", body);
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
  return String(answer.body["id"]);
}

async function historyOf(
  id: string,
): Promise<{ checks: Record<string, unknown>[]; uptime: Record<string, number> }> {
  return JSON.parse((await account.get(`/v1/pulse/${id}/history?limit=1`)).text);
}

async function lastCheck(id: string): Promise<Record<string, unknown>> {
  return (await historyOf(id)).checks[0] ?? {};
}

/** Status and error of a manual check. */
async function checked(id: string): Promise<[status: unknown, error: unknown]> {
  const { body } = await account.post(`/v1/pulse/${id}/check`);
  return [body["status"], (await lastCheck(id))["error"]];
}

describe("a tcp monitor", () => {
  test("is up while its port accepts connections, over which it sends nothing", async () => {
    const received: string[] = [];
    target.onConnection = (socket) => socket.on("data", (bytes) => received.push(String(bytes)));
    const id = await create(tcp({ consecutive_threshold: 2 }));
    await server.clock.advance(5_000);
    expect((await account.get(`/v1/pulse/${id}`)).body).toMatchObject({
      type: "tcp",
      name: `127.0.0.1:${target.port}`,
      url: `tcp://127.0.0.1:${target.port}`,
      host: "127.0.0.1",
      port: target.port,
      keyword: null,
      record_type: null,
      status: "up",
      certificate: null,
    });
    target.stop();
    await server.clock.advance(MINUTE);
    expect((await account.get(`/v1/pulse/${id}`)).body).toMatchObject({ status: "up", failing: true });
    await server.clock.advance(MINUTE);
    expect((await account.get(`/v1/pulse/${id}`)).body).toMatchObject({ status: "down" });
    expect(await lastCheck(id)).toMatchObject({
      response_status: null,
      error: "connect: the connection was refused",
    });
    expect(received).toEqual([]);
  });

  test("alerts with the URL of its target, and continues after a restart", async () => {
    const hooks = new WebhookSink();
    const id = await create(tcp({ webhook_url: hooks.url("/hook") }));
    await server.clock.advance(5_000);
    await server.restart();
    account = server.client(account.key) as AccountClient;
    target.stop();
    await server.clock.advance(MINUTE);
    const [alert] = hooks.take();
    expect(JSON.parse(alert?.body ?? "{}")).toMatchObject({
      event: "monitor.down",
      monitor_id: id,
      url: `tcp://127.0.0.1:${target.port}`,
    });
    hooks.stop();
  });

  const greetings: readonly (readonly [what: string, pieces: readonly string[], error: string | null])[] = [
    ["has the text", ["220 mail.example ESMTP\r\n"], null],
    ["has the text in two pieces", ["220 mail.example ES", "MTP\r\n"], null],
    ["has another text", ["554 no\r\n"], "timeout: no complete response within 1000 ms"],
    ["ends before the text", ["554 no\r\n", ""], "keyword: not found in what the server sent first"],
    ["is silent", [], "timeout: no complete response within 1000 ms"],
    ["has the text at the limit", ["x".repeat(FIRST_BYTES_MAX - 5), "ESMTP"], null],
    [
      "has the text past the limit",
      ["x".repeat(FIRST_BYTES_MAX - 4), "ESMTP"],
      "keyword: not found in what the server sent first",
    ],
  ];
  for (const [what, pieces, error] of greetings) {
    test(`whose target's greeting ${what}`, async () => {
      target.onConnection = async (socket) => {
        for (const piece of pieces) {
          if (piece === "") socket.end();
          else socket.write(piece);
          await Bun.sleep(20);
        }
      };
      const timeout = error?.startsWith("timeout") === true ? 1_000 : 10_000;
      const id = await create(tcp({ keyword: "ESMTP", timeout }));
      expect(await checked(id)).toEqual([error === null ? "up" : "down", error]);
      await until(() => target.open.size === 0);
    });
  }

  test("can move to another port, and loses its text by null", async () => {
    const id = await create(tcp({ keyword: "ESMTP" }));
    const other = await new RawServer(() => {}).start();
    const changed = await account.put(`/v1/pulse/${id}`, { port: other.port, keyword: null });
    expect(changed.body).toMatchObject({ url: `tcp://127.0.0.1:${other.port}`, keyword: null });
    expect(await checked(id)).toEqual(["up", null]);
    expect([target.connections, other.connections]).toEqual([0, 1]);
    other.stop();
  });

  test("is checked at permitted addresses only, whatever its name resolves to later", async () => {
    const rejected = await account.post("/v1/pulse", tcp({ host: "10.0.0.1" }));
    expectError(rejected, "validation_error");
    expect(rejected.body["fields"]).toEqual({ host: [expect.stringContaining("public address")] });
    for (const host of ["0x0a.1", "[::ffff:10.0.0.1]", "::1", "localhost"])
      expectError(await account.post("/v1/pulse", tcp({ host })), "validation_error");
    records.set("db.example", ["127.0.0.1"]);
    const id = await create(tcp({ host: "DB.example" }));
    expect(await checked(id)).toEqual(["up", null]);
    records.set("db.example", ["127.0.0.1", "10.0.0.1"]);
    const [status, error] = await checked(id);
    expect(status).toBe("down");
    expect(error).toStartWith("blocked: the host must have a public address");
    expect(target.connections).toBe(1);
    expect(await checked(await create(tcp({ host: "none.example" })))).toEqual([
      "down",
      "dns: the name could not be resolved",
    ]);
  });

  test("of an IPv6 address has it in brackets", async () => {
    const { body } = await account.post("/v1/pulse", tcp({ host: "2001:4860:4860::8888", port: 53 }));
    expect(body).toMatchObject({
      url: "tcp://[2001:4860:4860::8888]:53",
      name: "[2001:4860:4860::8888]:53",
    });
  });
});

describe("a dns monitor", () => {
  const cases: readonly (readonly [
    type: string,
    found: readonly string[],
    expected: string | null,
    error: string | null,
  ])[] = [
    ["A", [PUBLIC], null, null],
    ["A", ["9.9.9.8", PUBLIC], PUBLIC, null],
    ["A", ["9.9.9.8", PUBLIC], "9.9.9.7", "record_value: none of 2 A records has it"],
    ["AAAA", ["2001:4860:4860::8888"], "2001:4860:4860:0:0:0:0:8888", null],
    ["CNAME", ["Edge.example"], "edge.example.", null],
    ["NS", ["ns1.example"], "ns2.example", "record_value: none of 1 NS records has it"],
    ["MX", ["10 mail.example"], "10 mail.example", null],
    ["TXT", ["v=spf1 -all"], "v=spf1 -all", null],
    ["TXT", ["other", "v=spf1 -all"], '"v=spf1 " "-all"', null],
    ["TXT", Array.from({ length: 64 }, () => ""), "v", "record_value: none of 64 TXT records has it"],
    ["TXT", Array.from({ length: 65 }, () => ""), "v", "dns: too many records: more than 64"],
    ["TXT", ["v=spf1 -all"], "V=SPF1 -all", "record_value: none of 1 TXT records has it"],
  ];
  for (const [record_type, found, record_value, error] of cases) {
    test(`with ${record_type} ${found.join(", ")} and the value ${record_value}`, async () => {
      records.set(`shop.example ${record_type}`, found);
      const id = await create(dns({ record_type, record_value: record_value ?? undefined }));
      expect(await checked(id)).toEqual([error === null ? "up" : "down", error]);
    });
  }

  test("is shown with its name and its records", async () => {
    records.set("shop.example A", [PUBLIC]);
    const id = await create(dns());
    await server.clock.advance(5_000);
    expect((await account.get(`/v1/pulse/${id}`)).body).toMatchObject({
      type: "dns",
      name: "shop.example",
      url: "dns:shop.example?type=A",
      host: "shop.example",
      record_type: "A",
      record_value: null,
      port: null,
      status: "up",
    });
    await account.put(`/v1/pulse/${id}`, { record_value: "9.9.9.8" });
    await server.clock.advance(MINUTE);
    expect((await account.get(`/v1/pulse/${id}`)).body).toMatchObject({ status: "down" });
    await account.put(`/v1/pulse/${id}`, { record_value: null });
    await server.clock.advance(MINUTE);
    expect((await account.get(`/v1/pulse/${id}`)).body).toMatchObject({ status: "up", record_value: null });
  });

  test("without records is down, and does not show private addresses", async () => {
    const id = await create(dns());
    expect(await checked(id)).toEqual(["down", "dns: no A record was found"]);
    records.set("shop.example A", ["10.0.0.1"]);
    const [status, error] = await checked(id);
    expect(status).toBe("down");
    expect(error).toStartWith("blocked: the name must have a public address");
    expect(error).not.toContain("10.0.0.1");
    expectError(await account.post("/v1/pulse", dns({ host: "localhost" })), "validation_error");
  });

  test("that hangs ends at its timeout", async () => {
    const hanging = await startTestServer({
      manualClock: true,
      deps: { outbound: { resolver: { resolve: () => new Promise<readonly string[]>(() => {}) } } },
    });
    account = await hanging.account();
    const id = await create(dns({ timeout: 1_000 }));
    expect(await checked(id)).toEqual(["down", "timeout: no complete response within 1000 ms"]);
    await hanging.stop();
  });
});

describe("settings of types", () => {
  const rejected: readonly (readonly [what: string, body: () => object, field: string])[] = [
    ["tcp without a host", () => tcp({ host: undefined }), "host"],
    ["tcp without a port", () => tcp({ port: undefined }), "port"],
    ["tcp without an interval", () => tcp({ interval: undefined }), "interval"],
    ["tcp with the port 0", () => tcp({ port: 0 }), "port"],
    ["tcp with a port past the limit", () => tcp({ port: 65_536 }), "port"],
    ["tcp with a URL", () => tcp({ url: "https://site.example.com" }), "url"],
    ["tcp with an assertion on HTTP", () => tcp({ accept_status: ["200"] }), "accept_status"],
    ["tcp with a record type", () => tcp({ record_type: "A" }), "record_type"],
    ["dns without a host", () => dns({ host: undefined }), "host"],
    ["dns without a record type", () => dns({ record_type: undefined }), "record_type"],
    ["dns with another record type", () => dns({ record_type: "HINFO" }), "record_type"],
    ["dns with a port", () => dns({ port: 53 }), "port"],
    ["dns with a keyword", () => dns({ keyword: "x" }), "keyword"],
    ["dns with an empty value", () => dns({ record_value: "" }), "record_value"],
    [
      "dns with a value past the limit",
      () => dns({ record_value: "x".repeat(RECORD_LENGTH_MAX + 1) }),
      "record_value",
    ],
    [
      "http with a host",
      () => ({ url: "https://a.example.com", interval: MINUTE, host: "a.example" }),
      "host",
    ],
    ["a heartbeat with a host", () => ({ type: "heartbeat", host: "a.example" }), "host"],
    ["another type", () => tcp({ type: "udp" }), "type"],
  ];
  for (const [what, body, field] of rejected) {
    test(`reject ${what}`, async () => {
      const answer = await account.post("/v1/pulse", body());
      expectError(answer, "validation_error");
      expect(Object.keys(Object(answer.body["fields"]))).toEqual([field]);
    });
  }

  for (const host of [
    "",
    "a b",
    "a/b",
    "a:1",
    "u@a",
    "a?b",
    "a#b",
    "a\\b",
    "[a]",
    "a..b",
    ".a",
    "x".repeat(254),
  ]) {
    test(`reject the host ${JSON.stringify(host.slice(0, 20))}`, async () => {
      for (const body of [tcp({ host }), dns({ host })]) {
        const answer = await account.post("/v1/pulse", body);
        expectError(answer, "validation_error");
        expect(Object.keys(Object(answer.body["fields"]))).toEqual(["host"]);
      }
    });
  }

  test("accept the longest value and an interval of a day, and not more, for every type", async () => {
    await create(dns({ record_value: "x".repeat(RECORD_LENGTH_MAX) }));
    const http = { url: "https://site.example.com/" };
    for (const body of [http, tcp(), dns({ host: "a.example" })]) {
      const id = await create({ ...body, interval: INTERVAL_MS_MAX });
      expect((await account.get(`/v1/pulse/${id}`)).body["interval"]).toBe(86_400_000);
      const longer = await account.post("/v1/pulse", { ...body, interval: INTERVAL_MS_MAX + 1 });
      expectError(longer, "validation_error");
    }
  });

  test("a monitor with an interval of a day is checked once a day, also after a restart", async () => {
    const id = await create(tcp({ interval: INTERVAL_MS_MAX }));
    await server.clock.advance(5_000);
    expect(target.connections).toBe(1);
    await server.restart();
    account = server.client(account.key) as AccountClient;
    await server.clock.advance(10 * INTERVAL_MS_MAX);
    expect([10, 11]).toContain(target.connections);
    expect((await historyOf(id)).uptime["7d"]).toBe(100);
  });

  test("a type cannot be changed", async () => {
    const id = await create(tcp());
    expectError(await account.put(`/v1/pulse/${id}`, { type: "dns" }), "validation_error");
    expectError(await account.put(`/v1/pulse/${id}`, { url: "https://a.example.com" }), "validation_error");
  });
});
