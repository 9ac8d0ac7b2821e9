import type { Socket as UdpSocket } from "node:dgram";
import dgram from "node:dgram";
import net from "node:net";
import { LruMap } from "../../limits/lru-map.ts";
import { realTimeout } from "../../time/clock.ts";
import {
  assertFewRecords,
  codeName,
  encodeQuestion,
  type Question,
  RESPONSE_CODES,
  type Response,
  readResponse,
} from "./message.ts";

/** How long a name server may take, in milliseconds, and how often all of them are asked: what systems use by default. */
export const DEFAULT_PATIENCE: Patience = { timeoutMs: 2_000, rounds: 3 };
/** Questions over one socket: afterwards a new one has another port, so that nobody can guess it. */
const QUESTIONS_PER_SOCKET = 256;
/** Port of name servers. */
export const DNS_PORT = 53;
/** Servers that are remembered not to know EDNS: anyone can choose some, and one that is forgotten costs a question. */
const PLAIN_SERVERS_MAX = 1_024;
/** Bytes of a header up to the number of records. */
const COUNTED_BYTES = 8;
/** Bytes before a message over TCP, which say how long it is. */
const LENGTH_BYTES = 2;

/** How long name servers are waited for. */
export interface Patience {
  readonly timeoutMs: number;
  readonly rounds: number;
}

/** Name servers that an error names: as many as systems use (resolv.conf(5)). */
const NAMED_MAX = 3;

/** What the name servers of a question have responded so far, by server: the code of an error, or null for nothing. */
export type ServerErrors = Map<string, number | null>;

/** How a question is asked. */
export interface Asking {
  readonly patience?: Patience;
  /** Receives what goes wrong, while it does. */
  readonly errors?: ServerErrors;
  /** Whether a further server is asked: without an effect on the one that is being asked. */
  readonly goesOn?: (() => boolean) | undefined;
  /** How errors name the servers, all of which are one; absent: each by its address. */
  readonly name?: string | undefined;
}

/** `the name server 192.0.2.1 responded with SERVFAIL, 192.0.2.2 did not respond`; null without any. */
export function describeErrors(errors: ServerErrors): string | null {
  const parts = [...errors]
    .slice(0, NAMED_MAX)
    .map(([server, code]) =>
      code === null ? `${server} did not respond` : `${server} responded with ${codeName(code)}`,
    );
  return parts.length === 0 ? null : `the name server ${parts.join(", ")}`;
}

/** There is no record, or no server that responds. Users can see the message. */
export class LookupFailure extends Error {}

/** Sends questions to name servers. Responses have at most 64 KiB, of which at most the header is read if it has too many records. */
export class NameServers {
  /** The sockets in use, by server. */
  private readonly sockets = new Map<string, QuestionSocket>();
  /** Servers that do not know EDNS. */
  private readonly plain = new LruMap<string, true>(PLAIN_SERVERS_MAX);

  /**
   * The response of the first server that has one. Servers that fail, or do not respond in time, are asked again.
   * @throws OutboundFailure `dns` for too many records; {@link LookupFailure} if no server responds
   */
  async ask(
    servers: readonly string[],
    question: Question,
    { patience = DEFAULT_PATIENCE, errors = new Map(), goesOn = () => true, name }: Asking = {},
  ): Promise<Response> {
    for (let round = 0; round < patience.rounds; round += 1) {
      let haveAllFailed = servers.length > 0;
      for (const server of servers) {
        if (!goesOn()) throw new LookupFailure("another response was enough");
        // While it is waited for, it has not responded.
        if (!errors.has(name ?? server)) errors.set(name ?? server, null);
        const response = await this.askOne(server, question, patience.timeoutMs * 2 ** round);
        if (response === null) haveAllFailed = false;
        else if (response.code === RESPONSE_CODES.ok || response.code === RESPONSE_CODES.noSuchName)
          return response;
        else errors.set(name ?? server, response.code);
      }
      // Each has said that it cannot respond.
      if (haveAllFailed) break;
    }
    throw new LookupFailure(describeErrors(errors) ?? "this server knows no name servers");
  }

  /** Null: it did not respond in time. @throws OutboundFailure `dns` */
  private async askOne(server: string, question: Question, timeoutMs: number): Promise<Response | null> {
    const hasEdns = this.plain.get(server) === undefined;
    const response = await this.exchange(server, question, hasEdns, timeoutMs);
    const { formatError, notImplemented } = RESPONSE_CODES;
    const isPlain = hasEdns && (response?.code === formatError || response?.code === notImplemented);
    if (!isPlain) return response;
    this.plain.set(server, true);
    return this.exchange(server, question, false, timeoutMs);
  }

  private async exchange(
    server: string,
    question: Question,
    hasEdns: boolean,
    timeoutMs: number,
  ): Promise<Response | null> {
    const response = await this.overUdp(server, question, hasEdns, timeoutMs);
    if (response?.isTruncated !== true) return response;
    const asked = encodeQuestion(randomId(), question, hasEdns);
    return asked === null ? null : overTcp(server, asked, question, timeoutMs);
  }

  private overUdp(
    server: string,
    question: Question,
    hasEdns: boolean,
    timeoutMs: number,
  ): Promise<Response | null> {
    let socket = this.sockets.get(server);
    if (socket === undefined || socket.isSpent) {
      const opened = new QuestionSocket(server, () => {
        if (this.sockets.get(server) === opened) this.sockets.delete(server);
      });
      this.sockets.set(server, opened);
      socket = opened;
    }
    return socket.ask(question, hasEdns, timeoutMs);
  }
}

/** A question without a response so far. */
interface Pending {
  readonly bytes: Buffer;
  readonly question: Question;
  settle(response: Response | null): void;
  fail(error: unknown): void;
}

/** A UDP socket to one server, which accepts nothing from others. It is open as long as questions are pending. */
class QuestionSocket {
  private readonly pending = new Map<number, Pending>();
  private readonly socket: UdpSocket;
  private readonly unsent: Buffer[] = [];
  private isConnected = false;
  private asked = 0;
  private isClosed = false;

  constructor(
    server: string,
    private readonly onClose: () => void,
  ) {
    const { address, port } = placeOf(server);
    this.socket = dgram.createSocket(net.isIPv6(address) ? "udp6" : "udp4");
    this.socket.on("error", () => this.close());
    this.socket.on("message", (message) => this.receive(Buffer.from(message)));
    this.socket.connect(port, address, (error?: Error) => {
      // The network of the server cannot be reached.
      if (error) return this.close();
      this.isConnected = true;
      for (const bytes of this.unsent.splice(0)) this.send(bytes);
    });
    this.socket.unref();
  }

  get isSpent(): boolean {
    return this.isClosed || this.asked >= QUESTIONS_PER_SOCKET;
  }

  /** Null: no response within the time. @throws OutboundFailure `dns` */
  async ask(question: Question, hasEdns: boolean, timeoutMs: number): Promise<Response | null> {
    let id = randomId();
    while (this.pending.has(id)) id = randomId();
    const bytes = encodeQuestion(id, question, hasEdns);
    // There is no such name.
    if (bytes === null) return { code: RESPONSE_CODES.noSuchName, isTruncated: false, values: [], ttl: 0 };
    this.asked += 1;
    const { promise, resolve, reject } = Promise.withResolvers<Response | null>();
    this.pending.set(id, { bytes, question, settle: resolve, fail: reject });
    const cancel = realTimeout(timeoutMs, () => resolve(null));
    if (this.isConnected) this.send(bytes);
    else this.unsent.push(bytes);
    try {
      return await promise;
    } finally {
      cancel();
      this.pending.delete(id);
      if (this.pending.size === 0) this.close();
    }
  }

  private send(bytes: Buffer): void {
    if (this.isClosed) return;
    this.socket.send(bytes, (error) => {
      if (error) this.close();
    });
  }

  private receive(message: Buffer): void {
    const pending = message.length < LENGTH_BYTES ? undefined : this.pending.get(message.readUInt16BE(0));
    if (pending === undefined) return;
    try {
      const response = readResponse(message, pending.bytes, pending.question.type);
      // Anything else may come from somebody who guesses.
      if (response !== null) pending.settle(response);
    } catch (error) {
      pending.fail(error);
    }
  }

  private close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.onClose();
    this.socket.close();
    for (const { settle } of this.pending.values()) settle(null);
  }
}

/** An id that nobody can predict. */
function randomId(): number {
  const [id = 0] = crypto.getRandomValues(new Uint16Array(1));
  return id;
}

/** Null: no response within the time. @throws OutboundFailure `dns` for too many records, of which none is read */
function overTcp(
  server: string,
  asked: Buffer,
  question: Question,
  timeoutMs: number,
): Promise<Response | null> {
  const { promise, resolve, reject } = Promise.withResolvers<Response | null>();
  const { address, port } = placeOf(server);
  const socket = net.connect({ host: address, port });
  let parts: Buffer[] = [];
  let size = 0;
  /** Bytes of the whole message, once its start is there. */
  let total = Number.POSITIVE_INFINITY;
  const read = (part: Buffer): void => {
    parts.push(part);
    size += part.length;
    if (total === Number.POSITIVE_INFINITY && size >= LENGTH_BYTES + COUNTED_BYTES) {
      const head = Buffer.concat(parts);
      parts = [head];
      assertFewRecords(head.subarray(LENGTH_BYTES));
      total = LENGTH_BYTES + head.readUInt16BE(0);
    }
    if (size >= total)
      resolve(readResponse(Buffer.concat(parts).subarray(LENGTH_BYTES, total), asked, question.type));
  };
  socket.on("connect", () => {
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt16BE(asked.length, 0);
    socket.write(Buffer.concat([length, asked]));
  });
  socket.on("data", (part: Buffer) => {
    try {
      read(part);
    } catch (error) {
      reject(error);
    }
  });
  socket.on("error", () => resolve(null));
  socket.on("close", () => resolve(null));
  socket.unref();
  const cancel = realTimeout(timeoutMs, () => resolve(null));
  return promise.finally(() => {
    cancel();
    socket.destroy();
  });
}

/** The address and port of a server as the system lists it: `192.0.2.1`, `192.0.2.1:53`, `2001:db8::1` or `[2001:db8::1]:53`. */
export function placeOf(server: string): { address: string; port: number } {
  const [, inBrackets, plain = server, port] =
    /^(?:\[([^\]]{2,100})\]|([^:[\]]{1,100}))(?::(\d{1,5}))?$/.exec(server) ?? [];
  return { address: inBrackets ?? plain, port: port === undefined ? DNS_PORT : Number(port) };
}
