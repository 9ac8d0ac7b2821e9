import { createSocket, type Socket } from "node:dgram";
import { createServer, type Server } from "node:net";
import { freePort } from "../harness/processes/ports.ts";

const HEADER_BYTES = 12;
const TYPE_A = 1;
const TYPE_AAAA = 28;

/** Numbers of the types that have no addresses. */
const TYPES = { CNAME: 5, NS: 2, MX: 15, TXT: 16, SOA: 6, PTR: 12, SRV: 33, CAA: 257 } as const;

/** Longest response over UDP that clients without EDNS accept, and of those with it. */
const UDP_BYTES_MAX = 512;
const EDNS_BYTES_MAX = 1_232;
/** Longest message over TCP. */
const TCP_BYTES_MAX = 65_535;

/** A name server on a port of this machine, over UDP and TCP. What it does not know it does not answer, ever. */
export class NameServer {
  /** Addresses by name: IPv4, or IPv6 written in full, without colons. */
  readonly names = new Map<string, readonly string[]>();
  /** Other records by name: type, and data as it is sent. */
  readonly records = new Map<string, readonly (readonly [type: keyof typeof TYPES, data: Buffer])[]>();
  /** The names that were asked for, each once per question. */
  readonly asked: string[] = [];
  /** As `node:dns` names it. */
  address = "";
  /** The ports that questions came from. */
  readonly ports = new Set<number>();
  /** How long its records are valid. */
  validSeconds = 60;
  /** Questions over TCP. */
  askedOverTcp = 0;
  /** Whether questions with EDNS are rejected, as old servers do. */
  isOld = false;
  /** Changes a response before it is sent; null sends none. */
  change: (answer: Buffer) => Buffer | null | Promise<Buffer | null> = (answer) => answer;
  private readonly socket: Socket = createSocket("udp4");
  private readonly server: Server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (bytes) => {
      this.askedOverTcp += 1;
      const answer = this.answer(Buffer.from(bytes).subarray(2), TCP_BYTES_MAX);
      if (answer === null) return;
      const length = Buffer.alloc(2);
      length.writeUInt16BE(answer.length, 0);
      socket.write(Buffer.concat([length, answer]));
    });
  });

  async start(): Promise<this> {
    this.socket.on("message", async (message, from) => {
      this.ports.add(from.port);
      const hasEdns = message.readUInt16BE(10) > 0;
      const answer = this.answer(message, hasEdns ? EDNS_BYTES_MAX : UDP_BYTES_MAX);
      const changed = answer === null ? null : await this.change(answer);
      if (changed !== null) this.socket.send(changed, from.port, from.address);
    });
    // One that is free for both protocols.
    const port = freePort();
    await new Promise<void>((resolve) => this.socket.bind(port, "127.0.0.1", resolve));
    await new Promise<void>((resolve) => this.server.listen(port, "127.0.0.1", resolve));
    this.address = `127.0.0.1:${port}`;
    return this;
  }

  stop(): void {
    this.socket.close();
    this.server.close();
  }

  private answer(message: Buffer, bytesMax: number): Buffer | null {
    const labels: string[] = [];
    let at = HEADER_BYTES;
    for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
      labels.push(message.toString("latin1", at + 1, at + 1 + length));
      at += 1 + length;
    }
    const type = message.readUInt16BE(at + 1);
    const name = labels.join(".");
    this.asked.push(name);
    const addresses = this.names.get(name);
    const others = this.records.get(name);
    if (addresses === undefined && others === undefined) return null;
    const records = [
      ...(addresses ?? []).map((address) => addressRecord(address, this.validSeconds)),
      ...(others ?? []).map(([other, data]) => recordOf(TYPES[other], data, this.validSeconds)),
    ].filter((record) => record.type === type);
    const header = Buffer.from(message.subarray(0, HEADER_BYTES));
    header.writeUInt16BE(0x8180, 2);
    if (this.isOld && message.readUInt16BE(10) > 0) {
      header.writeUInt16BE(0x8181, 2);
      return header;
    }
    header.writeUInt16BE(0, 10);
    const question = message.subarray(HEADER_BYTES, at + 5);
    const answer = Buffer.concat([header, question, ...records.map(({ bytes }) => bytes)]);
    const isTruncated = answer.length > bytesMax;
    if (isTruncated) answer.writeUInt16BE(0x8380, 2);
    answer.writeUInt16BE(isTruncated ? 0 : records.length, 6);
    return isTruncated ? answer.subarray(0, HEADER_BYTES + question.length) : answer;
  }
}

function addressRecord(address: string, validSeconds: number) {
  const isIPv4 = address.includes(".");
  const data = isIPv4 ? Buffer.from(address.split(".").map(Number)) : Buffer.from(address, "hex");
  return recordOf(isIPv4 ? TYPE_A : TYPE_AAAA, data, validSeconds);
}

function recordOf(
  type: number,
  data: Buffer,
  validSeconds: number,
): { readonly type: number; readonly bytes: Buffer } {
  const head = Buffer.alloc(HEADER_BYTES);
  // The name: where it stands in the question.
  head.writeUInt16BE(0xc00c, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(validSeconds, 6);
  head.writeUInt16BE(data.length, 10);
  return { type, bytes: Buffer.concat([head, data]) };
}

/** A name as records have it. */
export function encodedName(name: string): Buffer {
  const labels = name
    .split(".")
    .map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]));
  return Buffer.concat([...labels, Buffer.from([0])]);
}
