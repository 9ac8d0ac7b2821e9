import type { Http2Session } from "../../kernel/outbound/client.ts";
import { monotonicMs } from "../../kernel/time/clock.ts";
import { CALL_MS_MAX } from "../commit-log.ts";
import { callUnary } from "./grpc.ts";

const PATH = "/etcdserverpb.KV/Txn";
/** Pause after a failure: an endpoint may serve only JSON, or be gone. */
const RETRY_MS = 5_000;

/** Types of fields in a message (Protocol Buffers). */
const VARINT = 0;
const BYTES = 2;
/** `Compare.target`: the revision that created the key. */
const TARGET_CREATE = 1;

/** An endpoint of etcd, and what a call needs there. */
export interface EtcdEndpoint {
  /** `http://host:2379`. */
  readonly url: string;
  readonly token: string | null;
}

/**
 * Puts values under keys that do not exist, by gRPC: the JSON gateway takes a third of the processor time that all of etcd's
 * nodes use for an entry. For everything else there is the gateway, and also for what does not succeed here.
 */
export class EtcdPut {
  private session: Promise<Http2Session> | null = null;
  private sessionUrl = "";
  private failedAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly open: (url: string) => Promise<Http2Session>) {}

  /**
   * True: the key did not exist, and has this value now. False: that is not known, and the gateway tells.
   *
   * @throws Error when the endpoint did not respond or rejected the call, after which the next calls wait for a while.
   */
  async put({ url, token }: EtcdEndpoint, key: Uint8Array, value: Uint8Array): Promise<boolean> {
    if (monotonicMs() - this.failedAt < RETRY_MS) return false;
    try {
      const headers = token === null ? {} : { token };
      const message = createRequest(key, value);
      const session = await this.sessionTo(url);
      return hasSucceeded(await callUnary(session, { path: PATH, headers, message, timeoutMs: CALL_MS_MAX }));
    } catch (error) {
      this.failedAt = monotonicMs();
      this.close();
      throw error;
    }
  }

  close(): void {
    this.session?.then(
      (session) => session.destroy(),
      () => undefined,
    );
    this.session = null;
  }

  /** The session that is open, as long as the server has not ended it. */
  private async sessionTo(url: string): Promise<Http2Session> {
    const session = this.sessionUrl === url ? await this.session : null;
    if (session !== null && !session.closed && !session.destroyed) return session;
    this.close();
    this.sessionUrl = url;
    this.session = this.open(url);
    return this.session;
  }
}

/** `TxnRequest`: if the key does not exist, put the value. */
function createRequest(key: Uint8Array, value: Uint8Array): Uint8Array {
  // Its revision is 0, which a message leaves out.
  const compare = Buffer.concat([Buffer.from([(2 << 3) | VARINT, TARGET_CREATE]), bytesField(3, key)]);
  const put = Buffer.concat([bytesField(1, key), bytesField(2, value)]);
  return Buffer.concat([bytesField(1, compare), bytesField(2, bytesField(2, put))]);
}

/** `TxnResponse.succeeded`, which stands after the header; left out when it is false. */
function hasSucceeded(message: Uint8Array): boolean {
  for (let at = 0; at < message.length; ) {
    const tag = message[at] ?? 0;
    if (tag === ((2 << 3) | VARINT)) return message[at + 1] === 1;
    if ((tag & 7) !== BYTES) break;
    const [length, from] = readVarint(message, at + 1);
    at = from + length;
  }
  return false;
}

function bytesField(field: number, value: Uint8Array): Uint8Array {
  const tag = [(field << 3) | BYTES];
  let rest = value.length;
  for (; rest > 127; rest >>>= 7) tag.push((rest & 127) | 128);
  return Buffer.concat([Buffer.from([...tag, rest]), value]);
}

function readVarint(message: Uint8Array, from: number): [value: number, end: number] {
  let value = 0;
  let at = from;
  for (let shift = 0; ; shift += 7) {
    const byte = message[at++] ?? 0;
    value |= (byte & 127) << shift;
    if (byte < 128) return [value, at];
  }
}
