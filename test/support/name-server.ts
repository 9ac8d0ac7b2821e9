import { createSocket, type Socket } from "node:dgram";

const HEADER_BYTES = 12;
const TYPE_A = 1;
const TYPE_AAAA = 28;

/** Numbers of the types that have no addresses. */
const TYPES = { CNAME: 5, NS: 2, MX: 15, TXT: 16 } as const;

/** A name server on a port of this machine. What it does not know it does not answer, ever. */
export class NameServer {
  /** Addresses by name: IPv4, or IPv6 written in full, without colons. */
  readonly names = new Map<string, readonly string[]>();
  /** Other records by name: type, and data as it is sent. */
  readonly records = new Map<string, readonly (readonly [type: keyof typeof TYPES, data: Buffer])[]>();
  /** The names that were asked for, each once per question. */
  readonly asked: string[] = [];
  /** As `node:dns` names it. */
  address = "";
  private readonly socket: Socket = createSocket("udp4");

  async start(): Promise<this> {
    this.socket.on("message", (message, from) => {
      const answer = this.answer(message);
      if (answer !== null) this.socket.send(answer, from.port, from.address);
    });
    await new Promise<void>((resolve) => this.socket.bind(0, "127.0.0.1", resolve));
    this.address = `127.0.0.1:${this.socket.address().port}`;
    return this;
  }

  stop(): void {
    this.socket.close();
  }

  private answer(message: Buffer): Buffer | null {
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
      ...(addresses ?? []).map((address) => addressRecord(address)),
      ...(others ?? []).map(([other, data]) => recordOf(TYPES[other], data)),
    ].filter((record) => record.type === type);
    const header = Buffer.from(message.subarray(0, HEADER_BYTES));
    header.writeUInt16BE(0x8180, 2);
    header.writeUInt16BE(records.length, 6);
    header.writeUInt16BE(0, 10);
    const question = message.subarray(HEADER_BYTES, at + 5);
    return Buffer.concat([header, question, ...records.map(({ bytes }) => bytes)]);
  }
}

function addressRecord(address: string) {
  const isIPv4 = address.includes(".");
  const data = isIPv4 ? Buffer.from(address.split(".").map(Number)) : Buffer.from(address, "hex");
  return recordOf(isIPv4 ? TYPE_A : TYPE_AAAA, data);
}

function recordOf(type: number, data: Buffer): { readonly type: number; readonly bytes: Buffer } {
  const head = Buffer.alloc(HEADER_BYTES);
  // The name: where it stands in the question.
  head.writeUInt16BE(0xc00c, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(60, 6);
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
