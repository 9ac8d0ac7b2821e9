import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { RECORD_LENGTH_MAX, RECORD_VALUES_MAX } from "../../../../src/areas/monitors/options.ts";
import { RESOLVER_LENGTH_MAX } from "../../../../src/areas/monitors/resolver.ts";
import { expectError } from "../../../support/errors.ts";
import { encodedName, NameServer } from "../../../support/name-server.ts";
import { type AccountClient, useTestServer } from "../../../support/server.ts";

const server = useTestServer({ manualClock: true, args: ["--allow-private-targets", "loopback"] });
let account: AccountClient;
let names: NameServer;
beforeAll(async () => {
  names = await new NameServer().start();
});
afterAll(() => names.stop());
beforeEach(async () => {
  account = await server.account({ tier: "unlimited" });
  names.change = (answer) => answer;
});
afterEach(() => names.records.clear());

const terms = (change: object = {}) => ({
  type: "dns",
  host: "shop.example",
  record_type: "A",
  interval: 60_000,
  resolver: names.address,
  ...change,
});

async function create(change: object = {}): Promise<string> {
  const { status, text, body } = await account.post("/v1/pulse", terms(change));
  expect([status, text]).toEqual([201, expect.any(String)]);
  return String(body["id"]);
}

/** Status and error of a manual check. */
async function checked(id: string): Promise<[status: unknown, error: unknown]> {
  const { body } = await account.post(`/v1/pulse/${id}/check`);
  const history = (await account.get(`/v1/pulse/${id}/history?limit=1`)).body["checks"];
  const [check] = history as Record<string, unknown>[];
  return [body["status"], check?.["error"]];
}

const text = (value: string) => Buffer.concat([Buffer.from([value.length]), Buffer.from(value)]);

describe("a dns monitor with a resolver", () => {
  test("compares records of every type, as zone files have them", async () => {
    names.names.set("shop.example", ["192.0.2.10", "20010db8000000000000000000000001"]);
    const soa = [encodedName("ns1.example"), encodedName("admin.example")];
    names.records.set("shop.example", [
      ["MX", Buffer.concat([Buffer.from([0, 10]), encodedName("mail.example")])],
      ["NS", encodedName("ns1.example")],
      ["TXT", Buffer.concat([text("v=spf1 "), text("-all")])],
      ["SOA", Buffer.concat([...soa, Buffer.from("0000000700000e100000025800093a8000000e10", "hex")])],
      ["SRV", Buffer.concat([Buffer.from([0, 10, 0, 5, 0x13, 0xc4]), encodedName("Sip.example")])],
      ["CAA", Buffer.concat([Buffer.from([0]), text("issue"), Buffer.from("letsencrypt.org")])],
    ]);
    names.records.set("www.example", [["CNAME", encodedName("shop.example")]]);
    names.records.set("10.2.0.192.in-addr.arpa", [["PTR", encodedName("shop.example")]]);
    const found: readonly (readonly [host: string, type: string, values: readonly string[]])[] = [
      ["shop.example", "A", ["192.0.2.10"]],
      ["shop.example", "AAAA", ["2001:db8:0::1"]],
      ["shop.example", "MX", ["10 mail.example", "10 MAIL.example."]],
      ["shop.example", "NS", ["NS1.example."]],
      ["shop.example", "TXT", ["v=spf1 -all", '"v=spf1 " "-all"']],
      ["shop.example", "SOA", ["ns1.example. admin.example. 7 3600 600 604800 3600"]],
      ["shop.example", "SRV", ["10 5 5060 sip.example", "10 5 5060 sip.example."]],
      ["shop.example", "CAA", ['0 issue "letsencrypt.org"', "0 Issue letsencrypt.org"]],
      ["www.example", "CNAME", ["shop.example."]],
      ["10.2.0.192.in-addr.arpa", "PTR", ["shop.example"]],
    ];
    for (const [host, record_type, values] of found)
      for (const record_value of values)
        expect([record_value, ...(await checked(await create({ host, record_type, record_value })))]).toEqual(
          [record_value, "up", null],
        );
    expect(
      await checked(await create({ record_type: "SRV", record_value: "10 5 5061 sip.example" })),
    ).toEqual(["down", "record_value: none of 1 SRV records has it"]);
  });

  test("looks up the names of an address", async () => {
    names.records.set("1.0.0.127.in-addr.arpa", [["PTR", encodedName("localhost")]]);
    const id = await create({ host: "127.0.0.1", record_type: "PTR", record_value: "localhost" });
    expect(await checked(id)).toEqual(["up", null]);
    expectError(
      await account.post("/v1/pulse", terms({ host: "10.0.0.1", record_type: "PTR" })),
      "validation_error",
    );
  });

  test("finds a text in a record, or the whole set", async () => {
    names.names.set("shop.example", ["192.0.2.10", "192.0.2.11"]);
    names.records.set("shop.example", [["TXT", text("v=spf1 include:spf.example -all")]]);
    const part = { record_type: "TXT", match: "contains", record_value: "include:spf.example" };
    const id = await create(part);
    expect(await checked(id)).toEqual(["up", null]);
    await account.put(`/v1/pulse/${id}`, { record_value: "include:SPF.example" });
    expect(await checked(id)).toEqual(["down", "record_value: none of 1 TXT records has it"]);
    const set = await create({ match: "set", record_values: ["192.0.2.11", "192.0.2.10"] });
    expect(await checked(set)).toEqual(["up", null]);
    await account.put(`/v1/pulse/${set}`, { record_values: ["192.0.2.10"] });
    expect(await checked(set)).toEqual(["down", "record_values: 0 of 1 A records missing, 1 others found"]);
    await account.put(`/v1/pulse/${set}`, { record_values: ["192.0.2.10", "192.0.2.11", "192.0.2.12"] });
    expect(await checked(set)).toEqual(["down", "record_values: 1 of 3 A records missing, 0 others found"]);
    const exact = await account.put(`/v1/pulse/${set}`, { match: "exact" });
    expect(exact.body).toMatchObject({ match: "exact", record_value: null, record_values: null });
    expect(await checked(set)).toEqual(["up", null]);
  });

  test("repeats over TCP what UDP cannot hold", async () => {
    const before = names.askedOverTcp;
    names.records.set("long.example", [
      ["TXT", Buffer.concat(Array.from({ length: 10 }, () => text("t".repeat(200))))],
    ]);
    const id = await create({
      host: "long.example",
      record_type: "TXT",
      match: "contains",
      record_value: "tt",
    });
    expect(await checked(id)).toEqual(["up", null]);
    expect(names.askedOverTcp - before).toBe(1);
  });

  test("is down with the resolver's name and code", async () => {
    names.names.set("shop.example", ["192.0.2.10"]);
    const id = await create();
    names.change = (answer) => Buffer.from(answer).fill(0x82, 3, 4);
    expect(await checked(id)).toEqual([
      "down",
      `dns: the name server ${names.address} responded with SERVFAIL`,
    ]);
    names.change = () => null;
    await account.put(`/v1/pulse/${id}`, { timeout: 1_000 });
    expect(await checked(id)).toEqual([
      "down",
      `timeout: the name server ${names.address} did not respond in time`,
    ]);
  });

  test("is queried at permitted addresses only", async () => {
    for (const resolver of ["10.0.0.1", "10.0.0.1:53", "[fd00::1]:53", "fd00::1"]) {
      const rejected = await account.post("/v1/pulse", terms({ resolver }));
      expectError(rejected, "validation_error");
      expect(rejected.body["fields"]).toEqual({ resolver: [expect.stringContaining("public address")] });
    }
    const id = await create({ resolver: `localhost:${names.address.split(":")[1]}` });
    names.names.set("shop.example", ["192.0.2.10"]);
    expect((await account.get(`/v1/pulse/${id}`)).body["resolver"]).toStartWith("localhost:");
    expect((await checked(id))[0]).toBe("up");
  });
});

describe("settings of records", () => {
  const longest = `${"a.".repeat(126)}a:65535`;
  const accepted: readonly object[] = [
    ...["1.1.1.1", "1.1.1.1:53", "ns1.example.com", "ns1.example.com:5353", "[2606:4700::1111]:53"].map(
      (resolver) => ({ resolver }),
    ),
    { resolver: "2606:4700::1111" },
    { resolver: longest },
    { resolver: null },
    { match: "exact", record_value: null },
    {
      match: "set",
      record_values: Array.from({ length: RECORD_VALUES_MAX }, (_, index) => `192.0.2.${index}`),
    },
    { match: "set", record_values: ["x".repeat(RECORD_LENGTH_MAX)] },
  ];
  for (const change of accepted)
    test(`accept ${JSON.stringify(change).slice(0, 60)}`, async () => {
      const id = await create(change);
      expect((await account.get(`/v1/pulse/${id}`)).body).toMatchObject(change);
    });

  const rejected: readonly (readonly [change: object, field: string])[] = [
    ...["", "a b", "a:0", "a:65536", "a:", "http://a", "a/b", ":53", "x".repeat(RESOLVER_LENGTH_MAX + 1)].map(
      (resolver) => [{ resolver }, "resolver"] as const,
    ),
    [{ match: "regexp" }, "match"],
    [{ match: null }, "match"],
    [{ match: "contains" }, "record_value"],
    [{ match: "set" }, "record_values"],
    [{ match: "set", record_values: [] }, "record_values"],
    [{ match: "set", record_values: ["a", "a"] }, "record_values"],
    [{ match: "set", record_values: [""] }, "record_values"],
    [{ match: "set", record_values: ["x".repeat(RECORD_LENGTH_MAX + 1)] }, "record_values"],
    [
      {
        match: "set",
        record_values: Array.from({ length: RECORD_VALUES_MAX + 1 }, (_, index) => `${index}`),
      },
      "record_values",
    ],
    [{ match: "set", record_values: ["a"], record_value: "a" }, "record_value"],
    [{ record_values: ["a"] }, "record_values"],
  ];
  for (const [change, field] of rejected)
    test(`reject ${JSON.stringify(change).slice(0, 60)}`, async () => {
      const answer = await account.post("/v1/pulse", terms(change));
      expectError(answer, "validation_error");
      expect(Object.keys(Object(answer.body["fields"]))[0]).toStartWith(field);
    });

  test("are for dns monitors only", async () => {
    for (const change of [{ resolver: "1.1.1.1" }, { match: "exact" }, { record_values: ["a"] }])
      expectError(
        await account.post("/v1/pulse", { url: "https://a.example.com/", interval: 60_000, ...change }),
        "validation_error",
      );
  });
});
