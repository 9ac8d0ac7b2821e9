import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { getServers, setServers } from "node:dns";
import { readFile } from "node:fs/promises";
import type { OutboundClient, RecordsOutcome, TcpOutcome } from "../../../src/kernel/outbound/client.ts";
import { RECORD_TYPES, RECORDS_MAX, type RecordType } from "../../../src/kernel/outbound/dns/message.ts";
import {
  createSystemResolver,
  LOOKUPS_MAX,
  LOOKUPS_PER_ACCOUNT_MAX,
  Lookups,
  SERVERS_CHECK_MS,
} from "../../../src/kernel/outbound/lookups.ts";
import { Deadline, type OutboundOutcome } from "../../../src/kernel/outbound/outcome.ts";
import { until } from "../../support/eventually.ts";
import { encodedName, NameServer } from "../../support/name-server.ts";
import { RawServer } from "../../support/raw-server.ts";
import { get, Opened, textOf } from "./support.ts";

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const HOSTILE = 1;
const OTHER = 2;

const opened = new Opened();
afterEach(() => opened.close());

/** A resolver whose responses the test controls. */
class HeldResolver {
  readonly held = new Map<string, (addresses: readonly string[]) => void>();
  asked = 0;

  resolve(host: string): Promise<readonly string[]> {
    this.asked += 1;
    return new Promise((resolve) => this.held.set(host, resolve));
  }

  async answer(host: string): Promise<void> {
    this.held.get(host)?.(["192.0.2.1"]);
    this.held.delete(host);
    await Bun.sleep(0);
  }
}

/** The outcome of a lookup: its first address, or the kind of failure. */
async function found(lookups: Lookups, host: string, account: number, ms = 5_000): Promise<string> {
  const deadline = new Deadline(ms);
  const addresses = await lookups
    .addressesOf(host, account, deadline)
    .catch((error) => [String(error.kind), error.message]);
  deadline.close();
  return String(addresses[0]);
}

describe("lookups", () => {
  let resolver: HeldResolver;
  let lookups: Lookups;
  let outcomes: Promise<string>[];
  beforeEach(() => {
    outcomes = [];
    resolver = new HeldResolver();
    lookups = new Lookups(resolver);
  });

  function hang(account: number, count: number, ms = 5_000): void {
    for (let at = 0; at < count; at += 1) {
      outcomes.push(found(lookups, `hang-${account}-${at}.example`, account, ms));
    }
  }

  test(`${LOOKUPS_PER_ACCOUNT_MAX} of one account run concurrently, and the next waits`, async () => {
    hang(HOSTILE, LOOKUPS_PER_ACCOUNT_MAX);
    expect(resolver.asked).toBe(LOOKUPS_PER_ACCOUNT_MAX);
    const next = found(lookups, "next.example", HOSTILE);
    const last = found(lookups, "last.example", HOSTILE);
    const other = found(lookups, "other.example", OTHER);
    expect(resolver.held.has("next.example")).toBe(false);
    expect(resolver.held.has("other.example")).toBe(true);
    await resolver.answer("other.example");
    expect(await other).toBe("192.0.2.1");
    await resolver.answer("hang-1-0.example");
    expect([resolver.held.has("next.example"), resolver.held.has("last.example")]).toEqual([true, false]);
    await resolver.answer("next.example");
    expect(await next).toBe("192.0.2.1");
    await resolver.answer("last.example");
    expect(await last).toBe("192.0.2.1");
  });

  test("an abandoned lookup occupies its place until the name servers end it", async () => {
    hang(HOSTILE, LOOKUPS_PER_ACCOUNT_MAX, 20);
    expect(new Set(await Promise.all(outcomes))).toEqual(new Set(["timeout"]));
    // The name was never looked up: that is not a failure of the target.
    expect(await found(lookups, "next.example", HOSTILE, 20)).toBe("local");
    expect(resolver.held.has("next.example")).toBe(false);
    await resolver.answer("hang-1-0.example");
    const next = found(lookups, "next.example", HOSTILE);
    await resolver.answer("next.example");
    expect(await next).toBe("192.0.2.1");
  });

  test("concurrent lookups of a name share one request, counted for the first account", async () => {
    const first = found(lookups, "shared.example", HOSTILE, 20);
    const joined = found(lookups, "shared.example", OTHER);
    expect(resolver.asked).toBe(1);
    // The first caller times out; the other one keeps waiting, and has all of its places.
    expect(await first).toBe("timeout");
    hang(OTHER, LOOKUPS_PER_ACCOUNT_MAX);
    expect(resolver.asked).toBe(1 + LOOKUPS_PER_ACCOUNT_MAX);
    // An account without a free place can still join a lookup.
    const late = found(lookups, "shared.example", OTHER);
    await resolver.answer("shared.example");
    expect(await Promise.all([joined, late])).toEqual(["192.0.2.1", "192.0.2.1"]);
  });

  test(`at most ${LOOKUPS_MAX} run concurrently in total`, async () => {
    for (let account = 0; account < LOOKUPS_MAX / LOOKUPS_PER_ACCOUNT_MAX; account += 1) {
      hang(account, LOOKUPS_PER_ACCOUNT_MAX);
    }
    expect(resolver.asked).toBe(LOOKUPS_MAX);
    expect(await found(lookups, "next.example", -1)).toBe("local");
    await resolver.answer("hang-0-0.example");
    const next = found(lookups, "next.example", -1);
    await resolver.answer("next.example");
    expect(await next).toBe("192.0.2.1");
  });

  test("a name without addresses is an error and frees its place", async () => {
    const failing = new Lookups({ resolve: () => Promise.reject(new Error("NXDOMAIN")) });
    for (let turn = 0; turn <= LOOKUPS_PER_ACCOUNT_MAX; turn += 1) {
      expect(await found(failing, `none-${turn}.example`, HOSTILE)).toBe("dns");
    }
  });
});

describe(`at most ${RECORDS_MAX} records of a name are used`, () => {
  const TOO_MANY = ["dns", `too many records: more than ${RECORDS_MAX}`];
  const kinds = ["", ...RECORD_TYPES].flatMap((type) =>
    [RECORDS_MAX, RECORDS_MAX + 1].map((count) => [type, count] as const),
  );
  let examined: number;
  let records: readonly string[];
  let client: OutboundClient;
  beforeEach(() => {
    examined = 0;
    client = opened.client(["127.0.0.0/8"], {
      resolver: { resolve: async () => records },
      leadTo: () => "127.0.0.1",
    });
    const { policy } = client;
    const rejectionOf = policy.rejectionOf.bind(policy);
    policy.rejectionOf = (target, addresses, rules) => {
      examined += addresses.length;
      return rejectionOf(target, addresses, rules);
    };
  });
  const manyOf = (type: string, count: number): string[] =>
    Array.from({ length: count }, (_, at) => {
      if (type === "AAAA") return `2606:4700::${at + 1}`;
      return type === "" || type === "A" ? `127.1.0.${at + 1}` : "";
    });
  const where = { account: OTHER, host: "many.example", timeoutMs: 2_000 };
  const failed = (outcome: OutboundOutcome | RecordsOutcome | TcpOutcome) =>
    outcome.answered ? [] : [outcome.failure.kind, outcome.failure.message];

  for (const [type, count] of kinds.filter(([type]) => type !== "")) {
    test(`${count} ${type} records`, async () => {
      records = manyOf(type, count);
      const outcome = await client.lookUp({ ...where, type: type as RecordType, resolver: null });
      expect(failed(outcome)).toEqual(count > RECORDS_MAX ? TOO_MANY : []);
      expect(examined).toBeLessThanOrEqual(RECORDS_MAX);
    });
  }

  test("in every kind of request: HTTP, HTTPS, TCP, HTTP/2, and probes of the connectivity", async () => {
    const server = opened.add(await new RawServer((socket) => socket.write(OK)).start());
    const { port } = server;
    const http2 = () =>
      client.openHttp2(`http://many.example:${port}`, 2_000).then((session) => session.close());
    records = manyOf("A", RECORDS_MAX);
    expect(textOf(await client.send(get(`http://many.example:${port}/`)))).toBe("ok");
    expect(failed(await client.connectTo({ ...where, port, tls: null, expected: null }))).toEqual([]);
    expect(await client.reaches(`http://many.example:${port}`, where)).toBe(true);
    await http2();
    expect(examined).toBe(4 * RECORDS_MAX);
    records = manyOf("A", 3_900);
    for (const scheme of ["http", "https"])
      expect(failed(await client.send(get(`${scheme}://many.example:${port}/`)))).toEqual(TOO_MANY);
    expect(failed(await client.connectTo({ ...where, port, tls: null, expected: null }))).toEqual(TOO_MANY);
    expect(await client.reaches(`http://many.example:${port}`, where)).toBe(false);
    expect(await http2().catch((error) => error.kind)).toBe("dns");
    expect(examined).toBe(4 * RECORDS_MAX);
  });
});

describe("the system's resolver, with a local name server", () => {
  const before = getServers();
  let names: NameServer;
  beforeEach(async () => {
    names = opened.add(await new NameServer().start());
    setServers([names.address]);
  });
  afterEach(() => setServers(before));

  test("returns IPv4 first, each address once", async () => {
    names.names.set("both.example", [
      "20010db8000000000000000000000001",
      "192.0.2.2",
      "192.0.2.1",
      "192.0.2.2",
    ]);
    const addresses = await createSystemResolver().resolve("both.example");
    expect(addresses.slice(0, 2).toSorted()).toEqual(["192.0.2.1", "192.0.2.2"]);
    expect(addresses.slice(2)).toEqual(["2001:db8::1"]);
  });

  /** Whether a response is that to a question for IPv6 addresses. */
  const isOfIPv6 = (answer: Buffer) => answer.includes(Buffer.from([0, 28, 0, 1]));

  test("a name server that drops questions for IPv6 does not delay IPv4 addresses by its timeouts", async () => {
    names.names.set("both.example", ["192.0.2.1", "20010db8000000000000000000000001"]);
    names.change = (answer) => (isOfIPv6(answer) ? null : answer);
    const lookups = new Lookups(createSystemResolver());
    // The question itself is given up after 14 seconds.
    expect(await found(lookups, "both.example", 1, 4_000)).toBe("192.0.2.1");
  });

  test("IPv6 addresses that come later are used from then on", async () => {
    names.names.set("both.example", ["192.0.2.1", "20010db8000000000000000000000001"]);
    const later = Promise.withResolvers<void>();
    names.change = (answer) => (isOfIPv6(answer) ? later.promise.then(() => answer) : answer);
    const { resolve } = createSystemResolver();
    expect(await resolve("both.example")).toEqual(["192.0.2.1"]);
    later.resolve();
    await until(async () => (await resolve("both.example")).length === 2);
    expect(await resolve("both.example")).toEqual(["192.0.2.1", "2001:db8::1"]);
  });

  test("IPv4 addresses are waited for, since they work in more networks", async () => {
    names.names.set("both.example", ["192.0.2.1", "20010db8000000000000000000000001"]);
    names.change = async (answer) => {
      if (!isOfIPv6(answer)) await Bun.sleep(600);
      return answer;
    };
    expect(await createSystemResolver().resolve("both.example")).toEqual(["192.0.2.1", "2001:db8::1"]);
  });

  test("records of other types are values as zone files have them", async () => {
    const text = (value: string) => Buffer.concat([Buffer.from([value.length]), Buffer.from(value)]);
    names.names.set("shop.example", ["192.0.2.1", "20010db8000000000000000000000001"]);
    names.records.set("shop.example", [
      ["MX", Buffer.concat([Buffer.from([0, 10]), encodedName("mail.example")])],
      ["NS", encodedName("ns1.example")],
      ["TXT", Buffer.concat([text("v=spf1 "), text("-all")])],
    ]);
    names.records.set("www.example", [["CNAME", encodedName("shop.example")]]);
    const { resolve } = createSystemResolver();
    expect(await resolve("shop.example", "A")).toEqual(["192.0.2.1"]);
    expect(await resolve("shop.example", "AAAA")).toEqual(["2001:db8::1"]);
    expect(await resolve("shop.example", "MX")).toEqual(["10 mail.example"]);
    expect(await resolve("shop.example", "NS")).toEqual(["ns1.example"]);
    expect(await resolve("shop.example", "TXT")).toEqual(["v=spf1 -all"]);
    expect(await resolve("www.example", "CNAME")).toEqual(["shop.example"]);
    expect(await resolve("www.example", "MX").catch(() => "none")).toBe("none");
  });

  test("addresses are remembered as long as they are valid, records are not", async () => {
    names.names.set("shop.example", ["192.0.2.1"]);
    const { resolve } = createSystemResolver();
    for (let turn = 0; turn < 3; turn += 1) expect(await resolve("shop.example")).toEqual(["192.0.2.1"]);
    expect(names.asked).toHaveLength(2);
    for (let turn = 0; turn < 3; turn += 1) await resolve("shop.example", "A");
    expect(names.asked).toHaveLength(5);
    names.validSeconds = 0;
    names.names.set("moving.example", ["192.0.2.1"]);
    expect(await resolve("moving.example")).toEqual(["192.0.2.1"]);
    names.names.set("moving.example", ["192.0.2.2"]);
    expect(await resolve("moving.example")).toEqual(["192.0.2.2"]);
  });

  test("lookups of records share the limits of addresses, and only the same lookup shares a slot", async () => {
    names.names.set("shop.example", ["192.0.2.1"]);
    const client = opened.client([]);
    const found = await Promise.all(
      (["A", "A", "AAAA"] as const).map((type) =>
        client.lookUp({ account: OTHER, host: "shop.example", type, resolver: null, timeoutMs: 5_000 }),
      ),
    );
    expect(found.map((item) => (item.answered ? item.values : item.failure.message))).toEqual([
      expect.stringContaining("the name must have a public address"),
      expect.stringContaining("the name must have a public address"),
      "no AAAA record was found",
    ]);
    expect(names.asked).toEqual(["shop.example", "shop.example"]);
  });

  describe("what is wrong with a lookup is said", () => {
    /** Fails every question with a code. */
    const failing = (code: number) => (answer: Buffer) => {
      answer.writeUInt16BE(0x8180 | code, 2);
      answer.writeUInt16BE(0, 6);
      return answer;
    };
    async function errorOf(host: string, type?: RecordType, timeoutMs = 30_000): Promise<string[]> {
      const client = opened.client(["127.0.0.0/8"]);
      const outcome =
        type === undefined
          ? await client.send(get(`http://${host}/`, { timeoutMs }))
          : await client.lookUp({ account: OTHER, host, type, resolver: null, timeoutMs });
      return outcome.answered ? [] : [outcome.failure.kind, outcome.failure.message];
    }
    beforeEach(() => {
      names.names.set("shop.example", ["192.0.2.1"]);
    });

    test.each([
      ["SERVFAIL", 2],
      ["REFUSED", 5],
      ["the code 12", 12],
    ])("the name server responds with %s", async (name, code) => {
      names.change = failing(code);
      const expected = ["dns", `the name server ${names.address} responded with ${name}`];
      expect(await errorOf("shop.example", "MX")).toEqual(expected);
      expect(await errorOf("shop.example")).toEqual(expected);
    });

    test("the name server does not respond", async () => {
      names.change = () => null;
      const expected = ["timeout", `the name server ${names.address} did not respond in time`];
      expect(await errorOf("shop.example", "MX", 100)).toEqual(expected);
      expect(await errorOf("shop.example", undefined, 100)).toEqual(expected);
    });

    test("each name server that fails is named", async () => {
      names.change = failing(2);
      const other = opened.add(await new NameServer().start());
      other.names.set("shop.example", []);
      other.change = failing(5);
      setServers([names.address, other.address]);
      expect(await errorOf("shop.example", "MX")).toEqual([
        "dns",
        `the name server ${names.address} responded with SERVFAIL, ${other.address} responded with REFUSED`,
      ]);
    });

    test("the name does not exist", async () => {
      names.change = failing(3);
      expect(await errorOf("shop.example", "MX")).toEqual([
        "dns",
        "no MX record was found: the name does not exist",
      ]);
      expect(await errorOf("shop.example")).toEqual([
        "dns",
        "the name could not be resolved: it does not exist",
      ]);
    });

    test("the name exists without such a record", async () => {
      names.names.set("empty.example", []);
      expect(await errorOf("empty.example", "MX")).toEqual(["dns", "no MX record was found"]);
      expect(await errorOf("empty.example")).toEqual([
        "dns",
        "the name could not be resolved: it has no addresses",
      ]);
    });

    test("a name server that fails for IPv6 alone does not matter where there is an IPv4 address", async () => {
      names.names.set("v4.example", ["192.0.2.1"]);
      names.change = (answer) => (isOfIPv6(answer) ? failing(2)(answer) : answer);
      expect(await createSystemResolver().resolve("v4.example")).toEqual(["192.0.2.1"]);
      names.names.set("none.example", []);
      expect(await errorOf("none.example")).toEqual([
        "dns",
        `the name server ${names.address} responded with SERVFAIL`,
      ]);
    });
  });

  test("returns nothing for a name without addresses", async () => {
    names.names.set("none.example", []);
    expect(
      await createSystemResolver()
        .resolve("none.example")
        .catch(() => "none"),
    ).toBe("none");
  });

  test("reads the hosts file, and sends no query for localhost", async () => {
    expect(await createSystemResolver().resolve("localhost")).toContain("127.0.0.1");
    const server = opened.add(await new RawServer((socket) => socket.write(OK)).start());
    const nobody = { resolve: () => Promise.reject(new Error("asked")) };
    const client = opened.client(["127.0.0.0/8", "::1"], { resolver: nobody });
    expect(textOf(await client.send(get(`http://localhost:${server.port}/`)))).toBe("ok");
    expect(textOf(await client.send(get(`http://app.localhost:${server.port}/`)))).toBe("ok");
    expect(names.asked).toEqual([]);
  });

  test("hanging names delay neither other names nor reading of files", async () => {
    names.names.set("well.example", ["127.0.0.1"]);
    const server = opened.add(await new RawServer((socket) => socket.write(OK)).start());
    const client = opened.client();
    let ended = 0;
    for (let at = 0; at < 20; at += 1) {
      const hanging = get(`http://hang-${at}.example:${server.port}/`, {
        account: HOSTILE,
        timeoutMs: 30_000,
      });
      void client.send(hanging).then(() => {
        ended += 1;
      });
    }
    await until(() => names.asked.includes("hang-0.example"));
    expect(textOf(await client.send(get(`http://well.example:${server.port}/`, { account: OTHER })))).toBe(
      "ok",
    );
    expect((await readFile(import.meta.path)).length).toBeGreaterThan(0);
    expect(ended).toBe(0);
  });

  test("changed name servers of the system are queried immediately when the old ones fail", async () => {
    names.names.set("moved.example", []);
    const later = opened.add(await new NameServer().start());
    later.names.set("moved.example", ["192.0.2.7"]);
    let system = [names.address];
    const resolver = createSystemResolver(() => system);
    const failed = await resolver.resolve("moved.example").catch(() => "none");
    system = [later.address];
    // The system's resolver is not used again for every failing name.
    const soon = await resolver.resolve("moved.example").catch(() => "none");
    await Bun.sleep(SERVERS_CHECK_MS);
    expect([failed, soon, await resolver.resolve("moved.example")]).toEqual(["none", "none", ["192.0.2.7"]]);
  });
});
