import { afterAll, afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  encodeQuestion,
  RECORD_TYPES,
  RECORDS_MAX,
  type RecordType,
  readResponse,
  reverseName,
} from "../../../src/kernel/outbound/dns/message.ts";
import { NameServers, placeOf } from "../../../src/kernel/outbound/dns/name-servers.ts";
import { SystemNames } from "../../../src/kernel/outbound/dns/system-names.ts";
import { OutboundFailure } from "../../../src/kernel/outbound/outcome.ts";
import { encodedName, NameServer } from "../../support/name-server.ts";
import { Opened } from "./support.ts";

const TOO_MANY = `too many records: more than ${RECORDS_MAX}`;
const opened = new Opened();
afterEach(() => opened.close());

/** The data of a small record of each type. */
const DATA: Readonly<Record<RecordType, Buffer>> = {
  A: Buffer.from([192, 0, 2, 1]),
  AAAA: Buffer.from("20010db8000000000000000000000001", "hex"),
  CNAME: encodedName("a.example"),
  MX: Buffer.concat([Buffer.from([0, 10]), encodedName("a.example")]),
  NS: encodedName("a.example"),
  PTR: encodedName("a.example"),
  SOA: Buffer.concat([encodedName("ns.example"), encodedName("admin.example"), Buffer.alloc(20, 1)]),
  SRV: Buffer.concat([Buffer.from([0, 10, 0, 5, 0x13, 0xc4]), encodedName("a.example")]),
  CAA: Buffer.concat([Buffer.from([128, 5]), Buffer.from('issueca.example; a="b"')]),
  TXT: Buffer.from([0]),
};

/** A question for a name, and the start of a response to it that announces so many records. */
function begun(type: RecordType, count: number): { asked: Buffer; head: Buffer } {
  const asked = encodeQuestion(7, { name: "many.example", type }, false) ?? Buffer.alloc(0);
  const head = Buffer.from(asked);
  head.writeUInt16BE(0x8180, 2);
  head.writeUInt16BE(count, 6);
  return { asked, head };
}

/** A record of the name in the question. */
function record(type: RecordType, data: Buffer): Buffer {
  const number = { A: 1, NS: 2, CNAME: 5, SOA: 6, PTR: 12, MX: 15, TXT: 16, AAAA: 28, SRV: 33, CAA: 257 }[
    type
  ];
  const fields = Buffer.from([
    0xc0,
    12,
    number >> 8,
    number & 255,
    0,
    1,
    0,
    0,
    0,
    60,
    data.length >> 8,
    data.length & 255,
  ]);
  return Buffer.concat([fields, data]);
}

const read = (type: RecordType, records: readonly Buffer[]) => {
  const { asked, head } = begun(type, records.length);
  return readResponse(Buffer.concat([head, ...records]), asked, type);
};

describe("a response", () => {
  test.each(RECORD_TYPES)("of type %s with more than 64 records is rejected by its header alone", (type) => {
    const { asked, head } = begun(type, RECORDS_MAX + 1);
    expect(() => readResponse(head, asked, type)).toThrow(TOO_MANY);
    const most = Array.from({ length: RECORDS_MAX }, () => record(type, DATA[type]));
    expect(read(type, most)?.values).toHaveLength(RECORDS_MAX);
  });

  test("with one text of more than 64 parts is rejected", () => {
    expect(read("TXT", [record("TXT", Buffer.alloc(RECORDS_MAX))])?.values).toEqual([""]);
    expect(() => read("TXT", [record("TXT", Buffer.alloc(RECORDS_MAX + 1))])).toThrow(TOO_MANY);
  });

  test("has values as zone files have them", () => {
    const texts = Buffer.concat([Buffer.from([4]), Buffer.from("v=\u00e9"), Buffer.from([1, 33])]);
    const cases: readonly (readonly [RecordType, Buffer, string])[] = [
      ["SOA", DATA.SOA, `ns.example admin.example ${Array(5).fill("16843009").join(" ")}`],
      ["SRV", DATA.SRV, "10 5 5060 a.example"],
      ["CAA", DATA.CAA, '128 issue "ca.example; a=\\"b\\""'],
      ["PTR", DATA.PTR, "a.example"],
      ["TXT", texts, "v=\u00e9!"],
    ];
    for (const [type, data, value] of cases)
      expect([type, read(type, [record(type, data)])?.values]).toEqual([type, [value]]);
    for (const [type, data] of [
      ["SOA", DATA.SOA.subarray(0, -1)],
      ["SRV", DATA.SRV.subarray(0, 5)],
      ["CAA", Buffer.from([0, 9, 97])],
      ["CAA", Buffer.from([0])],
    ] as const)
      expect([type, read(type, [record(type, data)])]).toEqual([type, null]);
  });

  test("to the reverse name of an address", () => {
    expect(reverseName("192.0.2.1")).toBe("1.2.0.192.in-addr.arpa");
    expect(reverseName("2001:db8::1")).toBe(`1.${"0.".repeat(23)}8.b.d.0.1.0.0.2.ip6.arpa`);
  });

  test("of another server, question or id, or with a malformed record, is ignored", () => {
    const { asked, head } = begun("A", 1);
    const whole = Buffer.concat([head, record("A", DATA.A)]);
    const changed = (at: number, byte: number): Buffer => Buffer.from(whole).fill(byte, at, at + 1);
    expect(readResponse(whole, asked, "A")?.values).toEqual(["192.0.2.1"]);
    // A name that differs in case alone is the same.
    expect(readResponse(changed(13, "M".charCodeAt(0)), asked, "A")?.values).toEqual(["192.0.2.1"]);
    const others = [changed(1, 8), changed(13, "x".charCodeAt(0)), changed(2, 1), changed(5, 2)];
    const malformed = [
      whole.subarray(0, -1),
      head,
      read("A", [record("A", DATA.AAAA)]),
      head.subarray(0, 11),
    ];
    for (const message of [...others, ...malformed])
      expect(message instanceof Buffer ? readResponse(message, asked, "A") : message).toBeNull();
  });

  test("with pointers that lead in circles or forwards, and too long names, is ignored", () => {
    const start = begun("CNAME", 1).head.length + 12;
    const pointer = (at: number) => Buffer.from([0xc0 | (at >> 8), at & 255]);
    const label = Buffer.concat([Buffer.from([63]), Buffer.alloc(63, "a")]);
    for (const data of [
      pointer(start),
      pointer(start + 1),
      pointer(start + 500),
      Buffer.concat([Buffer.from([1, 97]), pointer(start)]),
      Buffer.concat([label, label, label, label, Buffer.from([0])]),
      Buffer.from([0x80, 0]),
    ])
      expect(read("CNAME", [record("CNAME", data)])).toBeNull();
    const escaped = Buffer.from([4, 97, 46, 92, 200, 0]);
    expect(read("CNAME", [record("CNAME", escaped)])?.values).toEqual(["a\\.\\\\\\200"]);
  });

  test("with any bytes changed is read or rejected", () => {
    const types: readonly RecordType[] = RECORD_TYPES;
    for (let seed = 1, turn = 0; turn < 20_000; turn += 1) {
      const type = types[turn % types.length] ?? "A";
      const { asked, head } = begun(type, 3);
      const message = Buffer.concat([head, ...Array.from({ length: 3 }, () => record(type, DATA[type]))]);
      for (let change = 0; change < 3; change += 1) {
        seed = (seed * 48_271) % 2_147_483_647;
        message[2 + (seed % (message.length - 2))] = (seed >> 8) & 255;
      }
      try {
        expect(readResponse(message, asked, type)?.values.length ?? 0).toBeLessThanOrEqual(RECORDS_MAX);
      } catch (error) {
        expect(error).toBeInstanceOf(OutboundFailure);
      }
    }
  });
});

describe("a name server", () => {
  let server: NameServer;
  const servers = new NameServers();
  /** Longer than a response takes on a busy machine, and for tests with servers that do not respond. */
  const patience = { timeoutMs: 5_000, rounds: 2 };
  const impatience = { timeoutMs: 200, rounds: 2 };
  beforeEach(async () => {
    server = opened.add(await new NameServer().start());
  });
  const valuesOf = (name: string, type: RecordType, of = [server.address], limits = patience) =>
    servers.ask(of, { name, type }, { patience: limits }).then(
      ({ values }) => values,
      (error: unknown) => String(error instanceof OutboundFailure ? error.message : "none"),
    );

  test("with a response that UDP cannot hold is requested over TCP", async () => {
    server.records.set("text.example", [
      [
        "TXT",
        Buffer.concat(
          Array.from({ length: 10 }, () => Buffer.concat([Buffer.from([200]), Buffer.alloc(200, "t")])),
        ),
      ],
    ]);
    expect(await valuesOf("text.example", "TXT")).toEqual(["t".repeat(2_000)]);
    expect(server.askedOverTcp).toBe(1);
  });

  test.each(["A", "AAAA", "CNAME", "MX", "NS", "TXT"] as const)(
    "with the largest response of %s is not read",
    async (type) => {
      const count = Math.floor(64_000 / (12 + DATA[type].length));
      if (type === "A")
        server.names.set(
          "many.example",
          Array.from({ length: count }, () => "192.0.2.1"),
        );
      else if (type === "AAAA")
        server.names.set(
          "many.example",
          Array.from({ length: count }, () => DATA.AAAA.toString("hex")),
        );
      else
        server.records.set(
          "many.example",
          Array.from({ length: count }, () => [type, DATA[type]] as const),
        );
      expect(await valuesOf("many.example", type)).toBe(TOO_MANY);
    },
  );

  test("that sends the start of a large response, and never its end, is not waited for", async () => {
    const large = createServer((socket) => {
      socket.on("error", () => {});
      const start = Buffer.alloc(10);
      start.writeUInt16BE(65_535, 0);
      start.writeUInt16BE(5_000, 8);
      for (const byte of start) socket.write(Buffer.from([byte]));
    });
    await new Promise<void>((resolve) => large.listen(0, "127.0.0.1", resolve));
    opened.add({ stop: () => large.close() });
    // The same port over UDP: everything is truncated.
    const { port } = large.address() as { port: number };
    const udp = await Bun.udpSocket({
      hostname: "127.0.0.1",
      port,
      socket: {
        data(socket, message, from, address) {
          const answer = Buffer.from(message);
          answer.writeUInt16BE(0x8380, 2);
          socket.send(answer, from, address);
        },
      },
    });
    opened.add({ stop: () => udp.close() });
    const asked = servers.ask(
      [`127.0.0.1:${port}`],
      { name: "many.example", type: "A" },
      { patience: { timeoutMs: 60_000, rounds: 1 } },
    );
    expect(await asked.catch((error) => error.message)).toBe(TOO_MANY);
  });

  test("that does not know EDNS is queried without it", async () => {
    server.isOld = true;
    server.names.set("old.example", ["192.0.2.1"]);
    expect(await valuesOf("old.example", "A")).toEqual(["192.0.2.1"]);
    expect(await valuesOf("old.example", "A")).toEqual(["192.0.2.1"]);
    expect(server.asked).toHaveLength(3);
  });

  test("that fails, sends nonsense, or does not respond is replaced by the next one", async () => {
    const next = opened.add(await new NameServer().start());
    for (const item of [server, next]) item.names.set("a.example", ["192.0.2.1"]);
    const both = [server.address, next.address];
    for (const change of [
      () => null,
      (answer: Buffer) => answer.subarray(0, 5),
      (answer: Buffer) => Buffer.from(answer).fill(0x82, 3, 4),
      (answer: Buffer) => Buffer.from(answer).fill((answer[1] ?? 0) ^ 1, 1, 2),
    ]) {
      server.change = change;
      expect(await valuesOf("a.example", "A", both, impatience)).toEqual(["192.0.2.1"]);
    }
    expect(await valuesOf("a.example", "A", [server.address], impatience)).toBe("none");
    expect(await valuesOf("a.example", "A", [], impatience)).toBe("none");
    // Nothing listens there, and no network leads there.
    for (const nobody of ["127.0.0.1:1", "[2001:db8::1]:53", "[100::1]:53"])
      expect(await valuesOf("a.example", "A", [nobody, next.address], impatience)).toEqual(["192.0.2.1"]);
  });

  test("gets many questions concurrently, from changing ports", async () => {
    server.names.set("a.example", ["192.0.2.1"]);
    for (let batch = 0; batch < 3; batch += 1) {
      const all = await Promise.all(Array.from({ length: 50 }, () => valuesOf("a.example", "A")));
      expect(new Set(all.map(String))).toEqual(new Set(["192.0.2.1"]));
    }
    expect(server.ports.size).toBeGreaterThanOrEqual(3);
  });

  test("is not asked for a name that DNS does not allow", async () => {
    for (const name of ["", "a..example", `${"a".repeat(64)}.example`, `${"a.".repeat(127)}a`])
      expect(await valuesOf(name, "A")).toEqual([]);
    expect(server.asked).toEqual([]);
  });

  test("is listed in every notation", () => {
    expect(["192.0.2.1", "192.0.2.1:54", "2001:db8::1", "[2001:db8::1]:54"].map(placeOf)).toEqual([
      { address: "192.0.2.1", port: 53 },
      { address: "192.0.2.1", port: 54 },
      { address: "2001:db8::1", port: 53 },
      { address: "2001:db8::1", port: 54 },
    ]);
  });
});

describe("names of the system", () => {
  const folder = mkdtempSync(join(tmpdir(), "ninefold-names-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const [hosts, rules] = [join(folder, "hosts"), join(folder, "resolv.conf")];

  test("come from the hosts file, and incomplete ones are completed", () => {
    writeFileSync(
      hosts,
      "127.0.0.1 localhost # comment\n::1\tlocalhost LOCAL6\n10.0.0.1 db.example db\nno.address x\n",
    );
    writeFileSync(
      rules,
      "nameserver 192.0.2.1\nsearch shop.svc. svc\noptions ndots:2 timeout:1 attempts:9 rotate\n",
    );
    const names = new SystemNames(hosts, rules);
    expect(["localhost", "Local6", "DB", "x"].map((name) => names.addressesOf(name))).toEqual([
      ["127.0.0.1", "::1"],
      ["::1"],
      ["10.0.0.1"],
      [],
    ]);
    expect(names.candidates("db")).toEqual(["db.shop.svc", "db.svc", "db"]);
    expect(names.candidates("a.b.example")).toEqual([
      "a.b.example",
      "a.b.example.shop.svc",
      "a.b.example.svc",
    ]);
    expect(names.patience).toEqual({ timeoutMs: 1_000, rounds: 5 });
  });

  test("without the files are complete", () => {
    const names = new SystemNames(join(folder, "none"), join(folder, "none"));
    expect([names.addressesOf("localhost"), names.candidates("a.example")]).toEqual([[], ["a.example"]]);
  });
});
